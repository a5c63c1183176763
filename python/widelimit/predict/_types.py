"""The types of the functions that this module returns."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Protocol, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

Numbers = NDArray[np.float64]


class Gaussian(NamedTuple):
    """Mean, in the shape of the outputs, and covariance, in that of the kernel."""

    mean: NDArray[np.float64]
    covariance: NDArray[np.float64]


class FlowPredictor(Protocol):
    """predict_fn of gradient_descent_mse(): outputs on training inputs, on test inputs, or a pair of both."""

    @overload
    def __call__(self, t: ArrayLike | None = None, fx_train_0: ArrayLike = 0.0, fx_test_0: None = None,
                 k_test_train: ArrayLike | None = None) -> Numbers: ...

    @overload
    def __call__(self, t: ArrayLike | None = None, fx_train_0: ArrayLike | None = 0.0, fx_test_0: ArrayLike | None = None,
                 k_test_train: ArrayLike | None = None) -> Any: ...


class EnsemblePredictor(Protocol):
    """predict_fn of gradient_descent_mse_ensemble(): a mean or a Gaussian for a name, a named tuple for several."""

    @overload
    def __call__(self, t: ArrayLike | None = None, x_test: ArrayLike | None = None, *, get: Literal["nngp", "ntk"],
                 compute_cov: Literal[True], **test_kwargs: Any) -> Gaussian: ...

    @overload
    def __call__(self, t: ArrayLike | None = None, x_test: ArrayLike | None = None, *, get: Literal["nngp", "ntk"],
                 compute_cov: Literal[False] = False, **test_kwargs: Any) -> Numbers: ...

    @overload
    def __call__(self, t: ArrayLike | None = None, x_test: ArrayLike | None = None, get: Any = None,
                 compute_cov: bool = False, **test_kwargs: Any) -> Any: ...


class PosteriorPredictor(Protocol):
    """predict_fn of gp_inference(): a mean or a Gaussian for a name, a named tuple for several."""

    def __call__(self, get: Any = None, k_test_train: Any = None, k_test_test: Any = None) -> Any: ...


class LossPredictor(Protocol):
    """predict_fn of gradient_descent(): outputs, a pair of them, or an ODEState."""

    def __call__(self, t: ArrayLike | None = None, fx_train_or_state_0: Any = 0.0, fx_test_0: ArrayLike | None = None,
                 k_test_train: ArrayLike | None = None) -> Any: ...
