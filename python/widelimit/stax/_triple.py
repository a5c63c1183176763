"""(init_fn, apply_fn, kernel_fn) of a module."""

from __future__ import annotations

import inspect
from functools import wraps
from typing import Any, Callable, Protocol, Sequence, Tuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._finite import FiniteFunctions
from ._flow import FlowFunctions, is_plain
from ._kernel_fn import KernelFunction
from ._masks import unmasked
from ._module import Module
from ._own import has_own
from ._own_functions import OwnFunctions


class InitFunction(Protocol):
    """(shape of outputs, parameters) of a network of finite width for inputs of a full shape, with the batch as -1 or its size.
    Parameters are a list for serial(), a tuple for parallel(), arrays with a leading axis for repeat(), (W, b) for Dense, b None
    without biases, and () for layers without parameters."""

    def __call__(self, key: Any, input_shape: Sequence[int]) -> Tuple[Tuple[int, ...], Any]: ...


class ApplyFunction(Protocol):
    """Outputs of a network of finite width.

    rng            a key for the draws of dropout
    mask_constant  the number of inputs that do not count (it may be NaN): outputs are then a MaskedArray; x may be one too
    pattern        graphs for Aggregate layers, which do nothing without them
    Other arguments are ignored, as in neural-tangents, with one warning for each."""

    def __call__(self, params: Any, x: ArrayLike, rng: Any = None, **kwargs: Any) -> NDArray[np.float64]: ...


Triple = Tuple[InitFunction, ApplyFunction, KernelFunction]


def triple(module: Module) -> Triple:
    """The form of every stax layer: plain functions, each of which knows its module."""
    finite = OwnFunctions(module) if has_own(module) else FiniteFunctions(module) if is_plain(module) else FlowFunctions(module)
    return NamedMethod(finite, "init_fn", module.name), NamedMethod(finite, "apply_fn", module.name), KernelFunction(module)


class NamedMethod:
    """A method by the name of its layer, which neural-tangents' functions have too."""

    def __init__(self, owner: Any, method: str, name: str) -> None:
        self.__self__, self._method = owner, method
        self.__name__ = self.__qualname__ = name
        function = getattr(type(owner), method)
        self.__doc__, self.__annotations__ = function.__doc__, function.__annotations__

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(getattr(self.__self__, self._method))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.__self__, self._method)(*args, **kwargs)

    def __reduce__(self) -> Tuple[Any, ...]:
        return NamedMethod, (self.__self__, self._method, self.__name__)

    def __repr__(self) -> str:
        return f"<{self._method} of {self.__name__}>"


_Function = TypeVar("_Function", bound=Callable[..., Any])


def unmask_fn(fn: _Function) -> _Function:
    """The function with arrays in place of each MaskedArray among its outputs, and zeros where they do not count. Empirical kernels,
    linearize and monte_carlo_kernel_fn do so by themselves for an apply_fn of this package with one input and one output."""
    owner = getattr(fn, "__self__", None)
    if isinstance(fn, NamedMethod) and isinstance(owner, FiniteFunctions):
        return NamedMethod(owner, "unmasked_apply_fn", fn.__name__)  # type: ignore[return-value]

    @wraps(fn)
    def without_masks(*args: Any, **kwargs: Any) -> Any:
        return unmasked(fn(*args, **kwargs))

    return without_masks  # type: ignore[return-value]


def module_of(layer: Any) -> Module:
    """The module inside a triple of this package."""
    kernel_fn = layer[2] if isinstance(layer, tuple) and len(layer) == 3 else None
    if not isinstance(kernel_fn, KernelFunction):
        raise TypeError(f"expected a layer of widelimit.stax, (init_fn, apply_fn, kernel_fn), got {layer!r}")
    return kernel_fn.module
