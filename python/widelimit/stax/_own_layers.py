"""layer(): layers of functions of kernels for serial(), parallel() and repeat()."""

from __future__ import annotations

from functools import wraps
from typing import Any, Callable, TypeVar

from ._kernel_fn import KernelFunction
from ._masks import MaskedArray, masked, parts_of
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
    Kernels of such networks are computed layer by layer with all their pairs in memory; they have no derivatives
    (NotImplementedError), and masks as supports_masking() says. TypeError for anything that is not such a triple."""

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
    """A decorator for functions that layer() decorates, which return (init_fn, apply_fn, kernel_fn) or, with a mask_fn, four functions:
    their layers then take masks.

    apply_fn(params, x, mask=..., **kwargs)  x has zeros where the mask, or None, says that nothing counts
    mask_fn(mask, input_shape)               the mask of outputs; without it, that of the inputs
    remask_kernel                            whether the kernel after the layer gets zeros where nothing counts"""

    def decorate(layer_fn: _Function) -> _Function:
        @wraps(layer_fn)
        def made(*args: Any, **kwargs: Any) -> Any:
            found = layer_fn(*args, **kwargs)
            if not isinstance(found, tuple) or len(found) not in (3, 4):
                raise TypeError(f"supports_masking: expected {layer_fn.__name__} to return (init_fn, apply_fn, kernel_fn) or these and a "
                                f"mask_fn, got {found!r}")
            return masking(found, remask_kernel)

        return made  # type: ignore[return-value]

    return decorate


def masking(functions: Any, remask_kernel: bool) -> Any:
    """(init_fn, apply_fn, kernel_fn) of a layer that takes masks; see supports_masking()."""
    init_fn, apply_fn, kernel_fn = functions[:3]
    mask_fn = functions[3] if len(functions) == 4 else lambda mask, shape: mask

    def with_masks(params: Any, x: Any, *, mask_constant: Any = None, **kwargs: Any) -> Any:
        array, mask = parts_of(masked(x, mask_constant))
        outputs = apply_fn(params, array, mask=mask, **kwargs)
        return outputs if mask is None else MaskedArray(outputs, mask_fn(mask, array.shape))

    @wraps(kernel_fn)
    def of_kernels(k: Any, **kwargs: Any) -> Any:
        masks = [None if mask is None else mask_fn(mask, shape) for mask, shape in ((k.mask1, k.shape1), (k.mask2, k.shape2))]
        found = kernel_fn(k, **kwargs)
        if remask_kernel and any(mask is not None for mask in masks):
            return found.mask(*masks)
        return found.replace(mask1=masks[0], mask2=masks[1])

    return init_fn, with_masks, of_kernels
