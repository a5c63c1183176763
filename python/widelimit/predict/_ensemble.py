"""gradient_descent_mse_ensemble."""

from __future__ import annotations

from collections import namedtuple
from contextlib import nullcontext
from threading import RLock
from typing import Any, Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from .._caller import caller_of, is_live
from .._jax import concretely
from .._named import by_name
from ._apart import product
from ._flow import Flow, checked_times, flow_of, precision_of, regularised
from ._gp import Gaussian, gp_inference, names_of
from ._live import library_of, real
from ._layout import Targets, as_covariance, as_matrix, difference, square_kernel, swapped
from ._types import EnsemblePredictor

_Kernels = namedtuple("Kernels", ("nngp", "ntk"), defaults=(None, None))


def _is_pair(value):
    return isinstance(value, tuple) and len(value) == 2


class _Ensemble:
    """predict_fn of gradient_descent_mse_ensemble()."""

    def __init__(self, kernel_fn, x_train, targets, rate, regularisation, kwargs):
        self._kernel_fn, self._x_train, self._kwargs = kernel_fn, x_train, kwargs
        self._targets, self._rate, self._regularisation = targets, rate, regularisation
        self._made_of = kernel_fn, x_train, targets, rate, regularisation, kwargs
        self._train, self._flows, self._posterior = {}, {}, {}
        self._is_live = is_live(x_train, targets.y, regularisation, kwargs, getattr(kernel_fn, "numbers", ()))
        self._lock = RLock()  # Protects what is kept between calls, which may come from several threads.

    def __reduce__(self):
        return _Ensemble, self._made_of

    def __call__(self, t=None, x_test=None, get=None, compute_cov=False, **test_kwargs):
        if self._is_live:  # Results for live training data belong to the function that is being transformed.
            return _Ensemble(*self._made_of)._predicted(t, x_test, get, compute_cov, test_kwargs)
        return self._predicted(t, x_test, get, compute_cov, test_kwargs)

    def _predicted(self, t, x_test, get, compute_cov, test_kwargs):
        names = names_of(get, ("nngp", "ntk"))
        caller = caller_of(self._targets.caller, self._x_train, t, x_test)
        t = None if t is None else checked_times(t)
        needed = tuple(name for name in ("nngp", "ntk") if name in names or (name == "nngp" and compute_cov))
        train = self._train_kernels(needed)
        cross, prior = self._test_kernels(x_test, needed, compute_cov, test_kwargs)
        if t is None:
            found = self._at_the_end(train, needed)(names if get is None else get, cross, prior)
            return caller.give(found, "own")
        values = {name: self._at(t, name, train, cross, prior) for name in names}
        return by_name("Gaussians", names if get is None else get, caller.give(values, "own"))

    def _train_kernels(self, names):
        with self._lock:
            wanted = tuple(name for name in names if name not in self._train)
            if wanted:
                with nullcontext() if self._is_live else concretely():
                    self._keep(wanted, self._kernel_fn(self._x_train, None, wanted, **self._kwargs))
            return _Kernels(**self._train)

    def _keep(self, names, found):
        for name in names:
            kernel = square_kernel(getattr(found, name), name)
            self._train[name] = self._targets.check(kernel, name)
            self._flows[name] = precision_of(getattr(found, name))

    def _test_kernels(self, x_test, names, compute_cov, test_kwargs):
        """Kernels of test with training inputs, and of test inputs with each other if wanted; None: on the training inputs."""
        if x_test is None:
            return None, True if compute_cov else None
        between, among = dict(self._kwargs), {**self._kwargs, **test_kwargs}
        for name, value in test_kwargs.items():
            ours = self._kwargs.get(name)
            between[name] = (value[0], ours[0]) if _is_pair(value) and _is_pair(ours) else value
        cross = self._kernel_fn(x_test, self._x_train, names, **between)
        return cross, self._kernel_fn(x_test, None, "nngp", **among) if compute_cov else None

    def _at_the_end(self, train, names):
        with self._lock:
            if names not in self._posterior:
                self._posterior[names] = gp_inference(train, self._targets.y, *self._regularisation,
                                                      self._targets.trace_axes)
            return self._posterior[names]

    def _flow(self, name, t):
        with self._lock:
            if library_of(self._train[name], t, self._targets.y) is not None:
                matrix = regularised(as_matrix(self._train[name]), *self._regularisation)
                return flow_of(matrix, self._rate, None, t, self._targets.y)
            if not isinstance(self._flows[name], Flow):
                matrix = regularised(as_matrix(self._train[name]), *self._regularisation)
                self._flows[name] = Flow(matrix, self._rate, self._flows[name])
            return self._flows[name]

    def _at(self, t, name, train, cross, prior):
        flow, y = self._flow(name, t), self._targets.rows(self._targets.y)
        if cross is None:
            mean = difference(y, flow.remaining(t, y), "outputs")
            shape = self._targets.kernel_shape
            covariance = None if prior is None else self._train_covariance(t, name, flow, train)
        else:
            kernel = self._targets.check(real(getattr(cross, name)), name)
            rows, shape = as_matrix(kernel), kernel.shape[::2]
            mean = product(rows, flow.progress(t, y))
            covariance = None if prior is None else self._covariance(t, name, flow, train, cross, rows, prior)
        mean = self._targets.outputs(mean, shape)
        return mean if covariance is None else Gaussian(mean, as_covariance(covariance, shape))

    @staticmethod
    def _train_covariance(t, name, flow, train):
        if name == "nngp":
            return flow.remaining(2 * t, flow.matrix)
        left = flow.remaining(t, np.eye(len(flow.matrix)))
        return product(left, as_matrix(train.nngp), swapped(left))

    @staticmethod
    def _covariance(t, name, flow, train, cross, rows, prior):
        prior = as_matrix(real(prior))
        if name == "nngp":
            # The flow that has run for 2 t: the prior minus what the data explain.
            return difference(prior, product(rows, flow.progress(2 * t, rows.T)), "covariance")
        factors = flow.progress(t, rows.T)
        mixed = product(as_matrix(real(cross.nngp)), factors)
        spread = product(swapped(factors), as_matrix(train.nngp), factors)
        return difference(prior, mixed + swapped(mixed) - spread, "covariance")


def gradient_descent_mse_ensemble(kernel_fn: Callable[..., Any], x_train: ArrayLike, y_train: ArrayLike,
                                  learning_rate: float = 1.0, diag_reg: float = 0.0,
                                  diag_reg_absolute_scale: bool = False, trace_axes: int | Sequence[int] = (-1,),
                                  **kernel_fn_train_train_kwargs: Any) -> EnsemblePredictor:
    """Mean and covariance of infinite ensembles of networks trained on the mean squared error. 'ntk' trains all layers;
    'nngp' only the last layer, which at infinite time gives the Bayesian posterior.

    kernel_fn      from widelimit.stax, called with pairs of x_train [n, ...] and x_test [n_test, ...]
    y_train        [n, ..., outputs], finite
    learning_rate  the unit of time is 1 / learning_rate of the mean squared error's gradient flow
    diag_reg       >= 0, added to the diagonal: times the mean diagonal, or with diag_reg_absolute_scale as it is
    trace_axes     axes of y_train that the kernels lack
    further arguments go to kernel_fn for the pairs of training inputs

    Returns predict_fn(t=None, x_test=None, get=('nngp', 'ntk'), compute_cov=False). It gives the mean, or with compute_cov a
    Gaussian with mean and covariance, for a string, and a named tuple of them for a tuple of names. t=None: infinite time; an
    array of times: results have its axes first. x_test=None: on the training inputs, at infinite time without diag_reg.
    ValueError for shapes, times below 0 and numbers that are not finite; numpy.linalg.LinAlgError for a kernel that is not
    positive definite, which a diag_reg can prevent.
    """
    targets = Targets(y_train, trace_axes)
    regularisation = diag_reg, diag_reg_absolute_scale
    return _Ensemble(kernel_fn, x_train, targets, learning_rate / targets.size, regularisation,
                     kernel_fn_train_train_kwargs).__call__
