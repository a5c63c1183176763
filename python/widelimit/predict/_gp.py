"""gp_inference."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Sequence

import numpy as np
from numpy.typing import ArrayLike

from .._caller import caller_of
from .._named import by_name
from ._apart import product
from ._flow import Solver, regularised
from ._live import library_of
from ._layout import Targets, as_covariance, as_matrix, difference, kernel_array, square_kernel
from ._types import Gaussian, PosteriorPredictor


def names_of(get, known):
    """The names that are wanted, as a tuple."""
    names = ("nngp", "ntk") if get is None else (get,) if isinstance(get, str) else tuple(get)
    for name in names:
        if name not in known:
            raise ValueError(f"get: expected {' or '.join(known)}, got {name!r}")
    return names


def _part(kernels, name, what):
    """The kernel of a name, from an object that has several, or the only one."""
    if not hasattr(kernels, "nngp") and not hasattr(kernels, "ntk"):
        return kernel_array(kernels, what)
    kernel = getattr(kernels, name, None)
    if kernel is None:
        raise ValueError(f"{what}: expected the kernel {name}, got none")
    return kernel_array(kernel, f"{what}.{name}")


class _Posterior:
    """predict_fn of gp_inference()."""

    def __init__(self, kernels, targets, diag_reg, diag_reg_absolute_scale):
        self._kernels, self._targets = kernels, targets
        self._caller = caller_of(targets.caller, kernels)
        self._regularisation = diag_reg, diag_reg_absolute_scale
        # Live results belong to the function that is being transformed: they are not kept.
        self._solver = self._make_solver if caller_of(self._caller).is_live else lru_cache(2)(self._make_solver)

    def __reduce__(self):
        return _Posterior, (self._kernels, self._targets, *self._regularisation)

    def _train(self, name):
        kernel = square_kernel(_part(self._kernels, name, "k_train_train"), "k_train_train")
        return self._targets.check(kernel, "k_train_train")

    def _make_solver(self, name):
        return Solver(regularised(as_matrix(self._train(name)), *self._regularisation))

    def __call__(self, get=None, k_test_train=None, k_test_test=None):
        names = names_of(get, ("nngp", "ntk", "ntkgp"))
        found = {name: self._of(name, k_test_train, k_test_test) for name in names}
        caller = caller_of(self._caller, k_test_train, k_test_test)
        return by_name("Gaussians", names if get is None else get, caller.give(found, "own"))

    def _of(self, name, k_test_train, k_test_test):
        kernel = "ntk" if name == "ntkgp" else name
        y = self._targets.y
        if k_test_train is None:
            train = self._train(kernel)
            y = np.array(y) if library_of(y) is None else y
            return y if k_test_test is None else Gaussian(y, 0 * train)
        cross = self._targets.check(_part(k_test_train, kernel, "k_test_train"), "k_test_train")
        shape, rows = cross.shape[::2], as_matrix(cross)
        mean = self._targets.outputs(product(rows, self._solver(kernel)(self._targets.rows(y))), shape)
        if k_test_test is None:
            return mean
        prior = as_matrix(_part(k_test_test, "ntk" if name == "ntkgp" else "nngp", "k_test_test"))
        factors = self._solver(kernel)(rows.T)
        if name != "ntk":
            return Gaussian(mean, as_covariance(difference(prior, product(rows, factors), "covariance"), shape))
        for kernels, what in ((self._kernels, "k_train_train"), (k_test_train, "k_test_train")):
            if not hasattr(kernels, "nngp"):
                raise ValueError(f"{what}: expected both kernels, nngp and ntk, for the covariance of trained networks")
        mixed = product(as_matrix(_part(k_test_train, "nngp", "k_test_train")), factors)
        spread = product(factors.T, as_matrix(self._train("nngp")), factors)
        return Gaussian(mean, as_covariance(difference(prior, mixed + mixed.T - spread, "covariance"), shape))


def gp_inference(k_train_train: Any, y_train: ArrayLike, diag_reg: float = 0.0, diag_reg_absolute_scale: bool = False,
                 trace_axes: int | Sequence[int] = (-1,)) -> PosteriorPredictor:
    """Predictions from given kernels: the Bayesian posterior ('nngp'), infinite ensembles of networks trained to the end ('ntk'),
    and the posterior with the NTK as covariance ('ntkgp').

    k_train_train  [n, n], or a result of kernel_fn: something with .nngp and .ntk
    y_train        [n, ..., outputs], finite
    diag_reg       >= 0, added to the diagonal: times the mean diagonal, or with diag_reg_absolute_scale as it is
    trace_axes     axes of y_train that the kernels lack
    Returns predict_fn(get=None, k_test_train=None, k_test_test=None): means, or Gaussians if k_test_test is given;
    without k_test_train the training targets themselves, and covariances of 0. k_test_train is [n_test, n], k_test_test
    [n_test, n_test], with positions as in k_train_train; means are [n_test, ..., outputs]. ValueError for shapes that do not
    fit, numpy.linalg.LinAlgError for a kernel that is not positive definite.
    """
    targets = Targets(y_train, trace_axes)
    return _Posterior(k_train_train, targets, diag_reg, diag_reg_absolute_scale).__call__
