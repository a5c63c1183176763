"""Kernels that JAX differentiates and compiles around: jax.grad, jax.value_and_grad, jax.vjp, jax.jit, jax.vmap.

    import jax, widelimit.jax
    loss = lambda x: widelimit.jax.gram(network, x, test).ntk.sum()
    jax.jit(jax.value_and_grad(loss))(x)

Kernels are computed on the host by widelimit.gram and differentiated by widelimit.gram_vjp, through jax.pure_callback: wherever
JAX's arrays are, they are copied to the host and back. float32 inputs, and narrower ones, give float32 kernels; float64
needs JAX's jax_enable_x64. jax.vmap makes one call after another: give kernels whole batches where you can.

Forward mode (jax.jvp, jax.jacfwd) and second derivatives (jax.hessian) are for networks whose layers all have formulas, and for
inputs without masks and graphs: dense and convolutional layers, nonlinearities with closed forms, pools, flatten, norms over channels,
dropout, and branches of these. JAX computes them from these formulas, with all pairs of positions in memory. For others forward mode
is a NotImplementedError (JAX's TypeError for functions compiled by jax.jit), and so are second derivatives.
"""

from __future__ import annotations

from typing import Any

from . import _core
from ._pair_kernels import diagonal_kernels, pair_kernels
from .kernels import Gram
from .stax._kernel_fn import KernelFunction

try:
    import jax.numpy as jnp
except ImportError as error:
    raise ImportError("widelimit.jax needs JAX: pip install 'widelimit[jax]'") from error
from ._host_functions import traced

__all__ = ["gram", "gram_diagonal"]


def gram(network: _core.Network | KernelFunction, x1: Any, x2: Any = None, kernels: str = "both", **options: Any) -> Gram:
    """widelimit.gram(network, x1, x2, kernels) as a function of x1 and x2 that JAX may transform.

    network  a Network, or a kernel_fn of widelimit.stax, with a readout
    x1, x2   arrays that the network takes; without x2 the symmetric kernel of x1
    kernels  'nngp', 'ntk' or 'both'
    options  arguments that are not differentiated: threads; for a Network also lengths1, lengths2, mask1, mask2, graphs1 and
             graphs2, for a kernel_fn mask_constant and pattern

    Returns a Gram of JAX's arrays [n1, n2], None for kernels that were not asked for. Infinite slopes count as in
    widelimit.gram_vjp. Shapes that do not fit are errors at once; an error that is found during the computation is an error of
    this package outside jax.jit, and JAX's JaxRuntimeError with the same text inside.
    """
    inputs = _inputs(x1) if x2 is None else _inputs(x1, x2)
    return _differentiable(pair_kernels(network, kernels, options, *(x.shape for x in inputs)), inputs)


def gram_diagonal(network: _core.Network | KernelFunction, x: Any, kernels: str = "both", **options: Any) -> Gram:
    """widelimit.gram_diagonal(network, x, kernels) as a function of x that JAX may transform: a Gram of vectors [n].
    Options are threads, and for a Network lengths, mask and graphs."""
    inputs = _inputs(x)
    return _differentiable(diagonal_kernels(network, kernels, options, inputs[0].shape), inputs)


def _inputs(*arrays):
    """Arrays of JAX, of one of the element types that kernels have."""
    for array, name in zip(arrays, ("x1", "x2")):
        if isinstance(array, (list, tuple)):
            raise TypeError(f"{name}: expected one array, got a {type(array).__name__}; pad inputs of different size, and say "
                            "by lengths1 or mask1 what counts")
    # Integers count as float64 where JAX has it, as they do for widelimit.gram.
    arrays = [array if jnp.issubdtype(array.dtype, jnp.inexact) else array.astype(jnp.result_type(float))
              for array in map(jnp.asarray, arrays)]
    dtype = jnp.result_type(*arrays, jnp.float32)
    if dtype not in (jnp.float32, jnp.float64):
        raise TypeError(f"inputs: expected arrays of real numbers, got elements of type {dtype}")
    return [jnp.asarray(array).astype(dtype) for array in arrays]


def _differentiable(kernels, inputs):
    """A Gram of the kernels of inputs, with its backward pass."""
    found = traced(kernels, inputs, inputs[0].dtype)
    return Gram(**{"nngp": None, "ntk": None, **dict(zip(kernels.names, found))})
