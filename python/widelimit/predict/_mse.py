"""gradient_descent_mse and max_learning_rate."""

from __future__ import annotations

from typing import Sequence

import numpy as np
from numpy.typing import ArrayLike

from .._caller import caller_of
from ._apart import apart, product
from ._flow import Flow, Solver, checked_times, flow_of, precision_of, regularised
from ._layout import Targets, as_matrix, difference, kernel_array, square_kernel
from ._live import library_of, real
from ._types import FlowPredictor


def check_start(fx_train_0, fx_test_0, k_test_train):
    """Checks that there is something to predict, and that it can be predicted."""
    if fx_train_0 is None and fx_test_0 is None:
        raise ValueError("expected fx_train_0 or fx_test_0, got neither: nothing would be predicted")
    if fx_test_0 is not None and k_test_train is None:
        raise ValueError("k_test_train: expected the kernel between test and training inputs together with fx_test_0")


class _Prediction:
    """predict_fn of gradient_descent_mse()."""

    def __init__(self, kernel, targets, learning_rate, precision, caller):
        self._caller = caller
        self._kernel, self._targets, self._precision = kernel, targets, precision
        self._rate = learning_rate / targets.size
        self._flow = self._solver = None

    def weights(self, t, residual):
        """T^-1 (I - exp(-T t)) residual."""
        if t is not None:
            return self.flow(t, residual).progress(t, residual)
        if library_of(self._kernel) is not None:
            return Solver(self._kernel)(residual)
        if self._solver is None:
            self._solver = Solver(self._kernel)
        return self._solver(residual)

    def flow(self, t, residual):
        """The flow of residuals at times t; kept if nothing is live."""
        if library_of(self._kernel, t, residual) is not None:
            return flow_of(self._kernel, self._rate, self._precision, t, residual)
        if self._flow is None:
            self._flow = Flow(self._kernel, self._rate, self._precision)
        return self._flow

    def __call__(self, t=None, fx_train_0=0.0, fx_test_0=None, k_test_train=None):
        check_start(fx_train_0, fx_test_0, k_test_train)
        times, targets = None if t is None else checked_times(t), self._targets
        begin = 0.0 if fx_train_0 is None else fx_train_0
        if np.broadcast_shapes(np.shape(begin), targets.y.shape) != tuple(targets.y.shape):
            raise ValueError(f"fx_train_0: expected a number or an array of shape {tuple(targets.y.shape)}, got shape "
                             f"{np.shape(begin)}")
        residual = targets.rows(difference(targets.y, begin, "fx_train_0"))
        found = []
        if fx_train_0 is not None:
            left = 0.0 if times is None else targets.outputs(self.flow(times, residual).remaining(times, residual),
                                                             targets.kernel_shape)
            found.append(difference(targets.y, left, "outputs"))
        if fx_test_0 is not None:
            cross = targets.check(kernel_array(k_test_train, "k_test_train"), "k_test_train")
            change = product(as_matrix(cross), self.weights(times, residual))
            found.append(-difference(-targets.outputs(change, cross.shape[::2]), fx_test_0, "fx_test_0"))
        caller = caller_of(self._caller, t, fx_train_0, fx_test_0, k_test_train)
        return caller.give(found[0] if len(found) == 1 else tuple(found), "own")


def gradient_descent_mse(k_train_train: ArrayLike, y_train: ArrayLike, learning_rate: float = 1.0, diag_reg: float = 0.0,
                         diag_reg_absolute_scale: bool = False, trace_axes: int | Sequence[int] = (-1,)) -> FlowPredictor:
    """Outputs under gradient flow of the mean squared error, linear in the kernel.

    k_train_train  [n, n], the NTK of the training inputs
    y_train        [n, ..., outputs], finite
    learning_rate  the unit of time is 1 / learning_rate of the mean squared error's gradient flow
    diag_reg       >= 0, added to the diagonal: times the mean diagonal, or with diag_reg_absolute_scale as it is
    trace_axes     axes of y_train that the kernels lack

    Returns predict_fn(t=None, fx_train_0=0., fx_test_0=None, k_test_train=None): outputs on the training inputs at
    time t, and, if fx_test_0 is given, a pair with those on the test inputs; only the latter if fx_train_0 is None.
    t=None: at the end; an array of times >= 0: outputs have its axes first. fx_train_0 is a number or of y_train's
    shape, fx_test_0 a number or [n_test, ..., outputs], k_test_train [n_test, n]. ValueError for shapes that do not fit and
    times below 0, numpy.linalg.LinAlgError at t=None for a kernel that is not positive definite.
    """
    targets = Targets(y_train, trace_axes)
    kernel = targets.check(square_kernel(k_train_train, "k_train_train"), "k_train_train")
    matrix = regularised(as_matrix(kernel), diag_reg, diag_reg_absolute_scale)
    return _Prediction(matrix, targets, learning_rate, precision_of(k_train_train),
                       caller_of(targets.caller, k_train_train)).__call__


def max_learning_rate(ntk_train_train: ArrayLike, y_train_size: int | None = None, momentum: float = 0.0,
                      eps: float = 1e-12) -> float:
    """The largest learning rate at which gradient descent on the mean squared error converges:
    2 (1 + momentum) y_train_size / (largest eigenvalue + eps). ntk_train_train is [n, n]; y_train_size is the number of
    values in the targets (None: the number of rows); momentum is in 0 .. 1. ValueError for a kernel that is not square."""
    kernel = as_matrix(square_kernel(ntk_train_train, "ntk_train_train"))
    library = library_of(kernel)
    size = len(kernel) if y_train_size is None else y_train_size
    largest = apart(np.linalg.eigvalsh, kernel)[-1] if library is None else library.largest(kernel)
    found: float = caller_of(ntk_train_train).give(2 * (1 + momentum) * size / (largest + eps), "own")
    return found
