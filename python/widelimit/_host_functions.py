"""Functions of NumPy's arrays that know their backward passes (_differentiable.py), as functions of JAX's arrays.

Values and first derivatives in reverse mode are computed on the host. Where the function has a formula of JAX's arrays, that gives
forward mode and all further derivatives.
"""

from __future__ import annotations

import inspect
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters import ad, batching, mlir

from ._jax import is_traced, with_any_ranks

try:
    from jax.extend.core import Primitive
except ImportError:  # Versions before 0.4.36.
    from jax.core import Primitive


def traced(function: Any, inputs: Any, dtype: Any = None) -> list[Any]:
    """The results of a Differentiable at inputs, arrays and numbers, with their derivatives, as JAX's arrays of an element type;
    None: that of the inputs together."""
    inputs = [_real(value) for value in inputs]
    dtype = jnp.result_type(*(x.dtype for x in inputs)) if dtype is None else jax.dtypes.canonicalize_dtype(dtype)
    formula = with_any_ranks(function.formula())
    return list(_with_way_back(function, dtype, inputs) if formula is None else _WithFormula(function, formula, dtype)(*inputs))


def _with_way_back(function, dtype, inputs):
    """With first derivatives in reverse mode."""
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
        return differentiable(*inputs)
    except TypeError as error:
        if "forward-mode" not in str(error):
            raise
        raise NotImplementedError(f"{function.what}: there is no forward mode (jax.jvp, jax.jacfwd, jax.hessian): use "
                                  "reverse mode, jax.grad, jax.vjp or jax.jacrev") from error


class _WithFormula:
    """With derivatives of any order: formula(*arrays) are the results."""

    def __init__(self, function, formula, dtype):
        self.function, self._formula, self._dtype = function, formula, dtype
        self.forms = [(shape, dtype) for shape in function.shapes]

    def __call__(self, *inputs):
        value = jax.custom_jvp(lambda *arrays: _called_back(self.function, self.function.forward, self.forms, arrays, self._formula))
        value.defjvp(self._slopes, symbolic_zeros=True)
        return value(*inputs)

    def _slopes(self, primals, tangents):
        wanted = tuple(not isinstance(tangent, jax.custom_derivatives.SymbolicZero) for tangent in tangents)
        directions = [tangent for tangent, is_wanted in zip(tangents, wanted) if is_wanted]
        if not directions:
            return self(*primals), [jnp.zeros(*form) for form in self.forms]
        try:
            self.function.check_way_back(wanted)
        except NotImplementedError:  # Then the way back is that of the formula.
            return self(*primals), self.along(wanted, *primals, *directions)
        return self(*primals), _slopes_p.bind(*primals, *directions, owner=self, wanted=wanted)

    def along(self, wanted, *arrays):
        """The derivative of the results along directions of the wanted inputs, which follow the inputs in `arrays`."""
        inputs, directions = arrays[:len(wanted)], arrays[len(wanted):]
        of_wanted, moving = self._of_wanted(wanted, inputs)
        return jax.jvp(of_wanted, moving, list(directions))[1]

    def _of_wanted(self, wanted, inputs):
        """The formula as a function of the wanted inputs, and these."""
        def of_wanted(*moving):
            moving = iter(moving)
            found = self._formula(*(next(moving) if is_wanted else array for array, is_wanted in zip(inputs, wanted)))
            return [array.astype(self._dtype) for array in found]

        return of_wanted, [array for array, is_wanted in zip(inputs, wanted) if is_wanted]

    def back(self, wanted, cotangents, inputs):
        """Derivatives with respect to the wanted inputs, computed on the host, with those of the formula."""
        given = [k for k, cotangent in enumerate(cotangents) if cotangent is not None]

        def by_formula(*arrays):
            of_wanted, moving = self._of_wanted(wanted, arrays[:len(inputs)])
            weights = iter(arrays[len(inputs):])
            return list(jax.vjp(of_wanted, *moving)[1]([next(weights) if k in given else jnp.zeros(*form)
                                                        for k, form in enumerate(self.forms)]))

        arrays = (*inputs, *(cotangents[k] for k in given))
        return _on_the_way_back(self.function, given, wanted, arrays, len(inputs), by_formula)


# The derivative of a function's results along directions of some of its inputs, whose transpose is the host's.
_slopes_p = Primitive("widelimit_slopes")
_slopes_p.multiple_results = True


def _slopes_by_formula(*arrays, owner, wanted):
    return owner.along(wanted, *arrays)


def _slopes_transposed(cotangents, *arrays, owner, wanted):
    inputs = arrays[:len(wanted)]
    found = owner.back(wanted, [None if isinstance(c, ad.Zero) else c for c in cotangents], inputs) if not all(
        isinstance(c, ad.Zero) for c in cotangents) else [None] * sum(wanted)
    return [None] * len(inputs) + list(found)


def _slopes_of_slopes(arrays, directions, **parameters):
    directions = [ad.instantiate_zeros(direction) for direction in directions]
    return jax.jvp(lambda *moving: _slopes_by_formula(*moving, **parameters), arrays, directions)


def _slopes_of_batches(arrays, axes, owner, wanted):
    """Directions together; inputs, for which the host is called each time, one after another."""
    def one(*moving):
        return _slopes_p.bind(*moving, owner=owner, wanted=wanted)

    if all(axis is None for axis in axes[:len(wanted)]):
        found = jax.vmap(lambda *moving: owner.along(wanted, *moving), axes)(*arrays)
        return found, [0] * len(found)
    return _one_after_another(one, arrays, axes)


def _one_after_another(function, arrays, axes):
    """A function of batches of some of its arrays, at each of them."""
    moved = [None if axis is None else jnp.moveaxis(array, axis, 0) for array, axis in zip(arrays, axes)]

    def at(mapped):
        return function(*(array if part is None else part for array, part in zip(arrays, mapped)))

    found = jax.lax.map(at, moved)
    return found, [0] * len(found)


_slopes_p.def_impl(_slopes_by_formula)
_slopes_p.def_abstract_eval(lambda *arrays, owner, wanted: [jax.core.ShapedArray(*form) for form in owner.forms])
ad.primitive_jvps[_slopes_p] = _slopes_of_slopes
ad.primitive_transposes[_slopes_p] = _slopes_transposed
batching.primitive_batchers[_slopes_p] = _slopes_of_batches
mlir.register_lowering(_slopes_p, mlir.lower_fun(_slopes_by_formula, multiple_results=True))


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

    arrays = (*primals, *(cotangents[k] for k in given))
    found = iter(_on_the_way_back(function, given, wanted, arrays, len(primals)))
    return [next(found) if is_wanted else None for is_wanted in wanted]


def _on_the_way_back(function, given, wanted, arrays, count, formula=None):
    """function.backward() on the host: derivatives with respect to the wanted ones of `count` inputs, the first of `arrays`; the
    others are the cotangents of the results `given`."""
    def on_host(*there):
        weights = [None] * len(function.shapes)
        for k, weight in zip(given, there[count:]):
            weights[k] = weight
        return [part for part in function.backward(there[:count], weights, wanted) if part is not None]

    forms = [(x.shape, x.dtype) for x, is_wanted in zip(arrays, wanted) if is_wanted]
    return _called_back(function, on_host, forms, arrays, formula)


def _called_back(differentiable, function, forms, arrays, formula=None):
    """function(*arrays) on the host, arrays of the given (shape, element type) in a list; formula: the same for derivatives and for
    export, which takes no functions of Python along."""

    def on_host(*given):
        found = function(*(np.asarray(array) for array in given))
        return [np.asarray(array, dtype, order="C") for array, (_, dtype) in zip(found, forms)]

    if not is_traced(*arrays):  # A callback would be compiled, once a call.
        return [jnp.asarray(found) for found in on_host(*arrays)]

    def slopes(primals, tangents):
        if formula is not None:
            return call(*primals), jax.jvp(formula, primals, tangents)[1]
        raise NotImplementedError(f"{differentiable.what}: there are no second derivatives (jax.hessian, jax.grad of "
                                  f"jax.grad): {differentiable.instead}")

    call = jax.custom_jvp(lambda *given: _on_host_p.bind(*given, on_host=on_host, forms=tuple(forms), formula=formula,
                                                         what=differentiable.what))
    call.defjvp(slopes)
    return call(*arrays)


# A function of NumPy's arrays with its formula, of which export takes the latter.
_on_host_p = Primitive("widelimit_callback")
_on_host_p.multiple_results = True


def _callback(*arrays, on_host, forms, **others):
    # Versions before 0.4.34 go through a batch one by one without being told.
    takes_method = "vmap_method" in inspect.signature(jax.pure_callback).parameters
    options = {"vmap_method": "sequential"} if takes_method else {}
    return jax.pure_callback(on_host, [jax.ShapeDtypeStruct(*form) for form in forms], *arrays, **options)


def _exported(*arrays, forms, formula, what, **others):
    if formula is None:
        raise NotImplementedError(f"{what}: jax.export: expected layers that have formulas, without masks and patterns: others are "
                                  "computed by this library, which no export takes along")
    return [array.astype(dtype) for array, (_, dtype) in zip(formula(*arrays), forms)]


def _lowered(context, *arrays, **parameters):
    is_export = getattr(context.module_context.lowering_parameters, "for_export", False)
    return mlir.lower_fun(_exported if is_export else _callback, multiple_results=True)(context, *arrays, **parameters)


def _of_batches(arrays, axes, **parameters):
    return _one_after_another(lambda *moving: _on_host_p.bind(*moving, **parameters), arrays, axes)


_on_host_p.def_impl(_callback)
_on_host_p.def_abstract_eval(lambda *arrays, forms, **others: [jax.core.ShapedArray(*form) for form in forms])
batching.primitive_batchers[_on_host_p] = _of_batches
mlir.register_lowering(_on_host_p, _lowered)
