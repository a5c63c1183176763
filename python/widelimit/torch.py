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

import numpy as np

from . import _core
from ._differentiable import Differentiable, diagonal_kernels, pair_kernels
from .kernels import Gram
from .stax._kernel_fn import KernelFunction

try:
    import torch
except ImportError as error:
    raise ImportError("widelimit.torch needs PyTorch: pip install 'widelimit[torch]'") from error

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
    tensors = [_tensor(array, name) for array, name in zip(given, ("x1", "x2"))]
    is_narrow = all(tensor.is_floating_point() and tensor.element_size() <= 4 for tensor in tensors)
    return [tensor.to(torch.float32 if is_narrow else torch.float64) for tensor in tensors]


def _tensor(array, name):
    if isinstance(array, (list, tuple)):
        raise TypeError(f"{name}: expected one tensor, got a {type(array).__name__}; pad inputs of different size, and say by "
                        "lengths1 or mask1 what counts")
    tensor = torch.as_tensor(array)
    if tensor.device.type != "cpu":
        raise TypeError(f"{name}: expected a tensor on the CPU, where kernels are computed, got one on {tensor.device}; "
                        "x.cpu() has derivatives too")
    if tensor.is_complex():
        raise TypeError(f"{name}: expected a tensor of real numbers, got elements of type {tensor.dtype}")
    return tensor


def _gram(kernels, inputs):
    return Gram(**{"nngp": None, "ntk": None, **dict(zip(kernels.names, recorded(kernels, inputs)))})


def recorded(function: Differentiable, inputs: Any) -> list[Any]:
    """The results of a function at inputs, arrays and numbers, as tensors with their backward passes."""
    tensors = [_real(_tensor(value, name)) for value, name in zip(inputs, ("x1", *("x2",) * len(inputs)))]
    return list(_Results.apply(function, *tensors))


def _real(tensor):
    return tensor if tensor.dtype == torch.float32 else tensor.to(
        torch.float32 if tensor.is_floating_point() and tensor.element_size() < 4 else torch.float64)


class _Results(torch.autograd.Function):
    """Results of a Differentiable, in the order of their names."""

    @staticmethod
    def forward(function, *inputs):
        return _tensors(function.forward(*map(_array, inputs)))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.function, *tensors = inputs
        ctx.save_for_backward(*tensors)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, *cotangents):
        if all(cotangent is None for cotangent in cotangents):
            return (None,) * len(ctx.needs_input_grad)
        wanted = ctx.needs_input_grad[1:]
        ctx.function.check_way_back(wanted)
        return (None, *_Derivatives.apply(ctx.function, wanted, len(cotangents), *cotangents, *ctx.saved_tensors))

    @staticmethod
    def jvp(ctx, *tangents):
        raise NotImplementedError(f"{ctx.function.what}: there is no forward mode (torch.func.jvp, torch.func.jacfwd): use "
                                  "reverse mode, backward(), torch.func.grad or torch.func.jacrev")

    @staticmethod
    def vmap(info, in_dims, function, *inputs):
        return _one_by_one(_Results, info.batch_size, in_dims, function, *inputs)


class _Derivatives(torch.autograd.Function):
    """The backward pass, which torch.func needs as a function of its own: cotangents, then inputs."""

    @staticmethod
    def forward(function, wanted, count, *tensors):
        arrays = [None if given is None else _array(given) for given in tensors]
        return _tensors(function.backward(arrays[count:], arrays[:count], wanted))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.function = inputs[0]

    @staticmethod
    def backward(ctx, *cotangents):
        raise NotImplementedError(f"{ctx.function.what}: there are no second derivatives: {ctx.function.instead}")

    @staticmethod
    def vmap(info, in_dims, function, wanted, count, *tensors):
        return _one_by_one(_Derivatives, info.batch_size, in_dims, function, wanted, count, *tensors)


def _one_by_one(kind, count, axes, *arguments):
    """torch.func.vmap makes one call after another."""
    calls = [kind.apply(*(value.select(axis, k) if isinstance(axis, int) else value for value, axis in zip(arguments, axes)))
             for k in range(count)]
    stacked = tuple(None if parts[0] is None else torch.stack(parts) for parts in zip(*calls))
    return stacked, tuple(None if part is None else 0 for part in stacked)


def _array(tensor):
    return tensor.numpy(force=True)


def _tensors(arrays):
    return tuple(None if array is None else torch.from_numpy(np.require(array, None, ["C", "W"])) for array in arrays)
