"""(init_fn, apply_fn, kernel_fn) of a module."""

from __future__ import annotations

from typing import Any, Protocol, Sequence, Tuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._finite import FiniteFunctions
from ._kernel_fn import KernelFunction
from ._module import Module
from ._own import has_own
from ._own_functions import OwnFunctions


class InitFunction(Protocol):
    """(shape of outputs, parameters) of a network of finite width for inputs of a full shape, with the batch as -1 or its size.
    Parameters are a list for serial(), a tuple for parallel(), arrays with a leading axis for repeat(), (W, b) for Dense, b None
    without biases, and () for layers without parameters."""

    def __call__(self, key: Any, input_shape: Sequence[int]) -> Tuple[Tuple[int, ...], Any]: ...


class ApplyFunction(Protocol):
    """Outputs of a network of finite width; rng: a key for the draws of dropout."""

    def __call__(self, params: Any, x: ArrayLike, rng: Any = None, **kwargs: Any) -> NDArray[np.float64]: ...


Triple = Tuple[InitFunction, ApplyFunction, KernelFunction]


def triple(module: Module) -> Triple:
    """The form of every stax layer: plain functions, each of which knows its module."""
    finite = OwnFunctions(module) if has_own(module) else FiniteFunctions(module)
    return finite.init_fn, finite.apply_fn, KernelFunction(module)


def module_of(layer: Any) -> Module:
    """The module inside a triple of this package."""
    kernel_fn = layer[2] if isinstance(layer, tuple) and len(layer) == 3 else None
    if not isinstance(kernel_fn, KernelFunction):
        raise TypeError(f"expected a layer of widelimit.stax, (init_fn, apply_fn, kernel_fn), got {layer!r}")
    return kernel_fn.module
