"""(init_fn, apply_fn, kernel_fn) of a module."""

from ._finite import FiniteFunctions
from ._kernel_fn import KernelFunction


def triple(module):
    """What every stax layer is: plain functions, each of which knows its module."""
    finite = FiniteFunctions(module)
    return finite.init_fn, finite.apply_fn, KernelFunction(module)


def module_of(layer):
    """The module inside a triple of this package."""
    kernel_fn = layer[2] if isinstance(layer, tuple) and len(layer) == 3 else None
    if not isinstance(kernel_fn, KernelFunction):
        raise TypeError(f"expected a layer of widelimit.stax, (init_fn, apply_fn, kernel_fn), got {layer!r}")
    return kernel_fn.module
