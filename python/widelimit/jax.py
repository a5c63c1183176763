"""Kernels that JAX differentiates and compiles around: jax.grad, jax.value_and_grad, jax.vjp, jax.jit, jax.vmap.

    import jax, widelimit.jax
    loss = lambda x: widelimit.jax.gram(network, x, test).ntk.sum()
    jax.jit(jax.value_and_grad(loss))(x)

Kernels are computed on the host by widelimit.gram and differentiated by widelimit.gram_vjp, through jax.pure_callback: wherever
JAX's arrays are, they are copied to the host and back. float32 inputs, and narrower ones, give float32 kernels; float64
needs JAX's jax_enable_x64. jax.vmap makes one call after another: give kernels whole batches where you can. There is no
forward mode (jax.jvp, jax.jacfwd: a NotImplementedError, or JAX's TypeError for functions compiled by jax.jit) and no second
derivative (a NotImplementedError).
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from . import _core
from ._differentiable import Differentiable, diagonal_kernels, pair_kernels
from ._jax import is_traced
from .kernels import Gram
from .stax._kernel_fn import KernelFunction

try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    raise ImportError("widelimit.jax needs JAX: pip install 'widelimit[jax]'") from error

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


def traced(function: Differentiable, inputs: Any, dtype: Any = None) -> list[Any]:
    """The results of a function at inputs, arrays and numbers, with their backward passes, as JAX's arrays of an element type;
    None: that of the inputs together."""
    inputs = [_real(value) for value in inputs]
    dtype = jnp.result_type(*(x.dtype for x in inputs)) if dtype is None else jax.dtypes.canonicalize_dtype(dtype)

    def value(*arrays):
        return _called_back(function, function.forward, [(shape, dtype) for shape in function.shapes], arrays)

    def there(*arrays):
        function.check_way_back([array.perturbed for array in arrays])
        primals = [array.value for array in arrays]
        # What is kept is made of arrays and of how they are nested: a constant is ().
        return value(*primals), (primals, [None if array.perturbed else () for array in arrays])

    def back(kept, cotangents):
        primals, places = kept
        return tuple(_derivatives(function, primals, cotangents, [place is None for place in places]))

    differentiable = jax.custom_vjp(value)
    differentiable.defvjp(there, back, symbolic_zeros=True)
    try:
        return list(differentiable(*inputs))
    except TypeError as error:
        if "forward-mode" not in str(error):
            raise
        raise NotImplementedError(f"{function.what}: there is no forward mode (jax.jvp, jax.jacfwd, jax.hessian): use "
                                  "reverse mode, jax.grad, jax.vjp or jax.jacrev") from error


def _real(value):
    """An array or number as JAX's, of the element types that kernels have."""
    array = jnp.asarray(value)
    if not jnp.issubdtype(array.dtype, jnp.inexact):
        array = array.astype(jnp.result_type(float))
    return array.astype(jnp.result_type(array.dtype, jnp.float32))


def _derivatives(function, primals, cotangents, wanted):
    """Derivatives with respect to the inputs, None for those not wanted; results that nothing depends on cost nothing."""
    zero = jax.custom_derivatives.SymbolicZero
    given = [k for k, cotangent in enumerate(cotangents) if not isinstance(cotangent, zero)]
    if not given or not any(wanted):
        return [None] * len(primals)

    def on_host(*arrays):
        weights = [None] * len(cotangents)
        for k, weight in zip(given, arrays[len(primals):]):
            weights[k] = weight
        return [part for part in function.backward(arrays[:len(primals)], weights, wanted) if part is not None]

    forms = [(x.shape, x.dtype) for x, is_wanted in zip(primals, wanted) if is_wanted]
    found = iter(_called_back(function, on_host, forms, (*primals, *(cotangents[k] for k in given))))
    return [next(found) if is_wanted else None for is_wanted in wanted]


def _called_back(differentiable, function, forms, arrays):
    """function(*arrays) on the host, arrays of the given (shape, element type) in a list."""

    def on_host(*given):
        found = function(*(np.asarray(array) for array in given))
        return [np.asarray(array, dtype, order="C") for array, (_, dtype) in zip(found, forms)]

    if not is_traced(*arrays):  # A callback would be compiled, once a call.
        return [jnp.asarray(found) for found in on_host(*arrays)]

    def no_second_derivatives(primals, tangents):
        raise NotImplementedError(f"{differentiable.what}: there are no second derivatives (jax.hessian, jax.grad of "
                                  f"jax.grad): {differentiable.instead}")

    # Versions before 0.4.34 go through a batch one by one without being told.
    takes_method = "vmap_method" in inspect.signature(jax.pure_callback).parameters
    options = {"vmap_method": "sequential"} if takes_method else {}
    shapes = [jax.ShapeDtypeStruct(*form) for form in forms]
    call = jax.custom_jvp(lambda *given: jax.pure_callback(on_host, shapes, *given, **options))
    call.defjvp(no_second_derivatives)
    return call(*arrays)
