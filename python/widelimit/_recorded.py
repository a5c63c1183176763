"""Functions of NumPy's arrays that know their backward passes (_differentiable.py), as functions of tensors of PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch


def tensor_of(array: Any, name: str) -> torch.Tensor:
    """A tensor on the CPU. TypeError for anything else."""
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


def recorded(function: Any, inputs: Any) -> list[Any]:
    """The results of a Differentiable at inputs, arrays and numbers, as tensors with their backward passes."""
    tensors = [_real(tensor_of(value, name)) for value, name in zip(inputs, ("x1", *("x2",) * len(inputs)))]
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
