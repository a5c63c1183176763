"""Kernels that PyTorch differentiates.

    import torch, widelimit.torch
    loss = widelimit.torch.gram(network, x, test).ntk.sum()
    loss.backward()                                            # x.grad

Kernels are computed by widelimit.gram and differentiated by widelimit.gram_vjp. float32 tensors, and narrower ones, give
float32 kernels, others float64. Tensors must be on the CPU; elsewhere they are an error. torch.func.vmap makes one call
after another. There are no second derivatives and no forward mode (NotImplementedErrors).
"""

from __future__ import annotations

from typing import Any

from . import _core
from ._pair_kernels import diagonal_kernels, pair_kernels
from .kernels import Gram
from .stax._kernel_fn import KernelFunction

try:
    import torch
except ImportError as error:
    raise ImportError("widelimit.torch needs PyTorch: pip install 'widelimit[torch]'") from error
if not hasattr(torch, "func"):
    raise ImportError(f"widelimit.torch needs PyTorch 2.0 or newer, got {torch.__version__}: pip install 'widelimit[torch]'")
from ._recorded import recorded, tensor_of

__all__ = ["gram", "gram_diagonal"]


def gram(network: _core.Network | KernelFunction, x1: Any, x2: Any = None, kernels: str = "both", **options: Any) -> Gram:
    """widelimit.gram(network, x1, x2, kernels) of tensors, with derivatives with respect to those that require them.

    network  a Network, or a kernel_fn of widelimit.stax, with a readout
    x1, x2   tensors that the network takes, on the CPU; without x2 the symmetric kernel of x1
    kernels  'nngp', 'ntk' or 'both'
    options  threads; for a Network also lengths1, lengths2, mask1, mask2, graphs1 and graphs2, for a kernel_fn
             mask_constant and pattern

    Returns a Gram of tensors [n1, n2], None for kernels that were not asked for. Infinite slopes count as in
    widelimit.gram_vjp. Errors are those of widelimit.gram and widelimit.gram_vjp.
    """
    inputs = _inputs(x1) if x2 is None else _inputs(x1, x2)
    return _gram(pair_kernels(network, kernels, options, *(x.shape for x in inputs)), inputs)


def gram_diagonal(network: _core.Network | KernelFunction, x: Any, kernels: str = "both", **options: Any) -> Gram:
    """widelimit.gram_diagonal(network, x, kernels) of a tensor, with its derivatives: a Gram of vectors [n]. Options
    are threads, and for a Network lengths, mask and graphs."""
    inputs = _inputs(x)
    return _gram(diagonal_kernels(network, kernels, options, inputs[0].shape), inputs)


def _inputs(*given):
    """Tensors on the CPU, of one of the element types that kernels have."""
    tensors = [tensor_of(array, name) for array, name in zip(given, ("x1", "x2"))]
    is_narrow = all(tensor.is_floating_point() and tensor.element_size() <= 4 for tensor in tensors)
    return [tensor.to(torch.float32 if is_narrow else torch.float64) for tensor in tensors]


def _gram(kernels, inputs):
    return Gram(**{"nngp": None, "ntk": None, **dict(zip(kernels.names, recorded(kernels, inputs)))})
