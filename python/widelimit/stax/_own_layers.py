"""layer(): layers of functions of kernels for serial(), parallel() and repeat()."""

from __future__ import annotations

from functools import wraps
from typing import Any, Callable, TypeVar

from ._kernel_fn import KernelFunction
from ._own import Own
from ._triple import triple

_Function = TypeVar("_Function", bound=Callable[..., Any])


def layer(layer_fn: _Function) -> _Function:
    """A decorator of functions that return (init_fn, apply_fn, kernel_fn): they then return a layer for serial(), parallel()
    and repeat().

    init_fn(key, input_shape)       (shape of outputs, parameters)
    apply_fn(params, x, **kwargs)   outputs of the layer of finite width
    kernel_fn(kernel, **kwargs)     the Kernel after the layer from the Kernel before it (see Kernel.replace()), a function of
                                    NumPy's arrays, or of JAX's if inputs are; computed in double precision
    Kernels of such networks are computed layer by layer with all their pairs in memory; they have neither masks nor
    derivatives (NotImplementedError). TypeError for anything that is not such a triple."""

    @wraps(layer_fn)
    def made(*args: Any, **kwargs: Any) -> Any:
        found = layer_fn(*args, **kwargs)
        functions = found[:3] if isinstance(found, tuple) and len(found) in (3, 4) else ()
        if len(functions) != 3 or not all(callable(function) for function in functions):
            raise TypeError(f"layer: expected {layer_fn.__name__} to return (init_fn, apply_fn, kernel_fn), got {found!r}")
        if isinstance(functions[2], KernelFunction):
            return functions
        return triple(Own(layer_fn.__name__, *functions))

    return made  # type: ignore[return-value]


def supports_masking(remask_kernel: bool) -> Callable[[_Function], _Function]:
    """A decorator for functions that layer() decorates, which returns them unchanged. Networks with layers of functions of
    kernels take no masks."""
    return lambda layer_fn: layer_fn
