"""Empirical kernels and Taylor polynomials of any function f(params, x, **kwargs) that JAX differentiates."""

from __future__ import annotations

import importlib.util
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from ._jax import double_precision


class JaxFunction:
    """f(params, x, **apply_fn_kwargs) of JAX: params, x and outputs are trees of arrays."""

    def __init__(self, f):
        self.f = f

    def kernel(self, name, params, x1, x2, axes, kwargs):
        """'nngp' or 'ntk', a tree of arrays like the outputs."""
        import jax

        tree = jax.tree_util
        sides = _sides(kwargs, x1, x2)
        found = [(self._outputs if name == "nngp" else self._jacobian)(params, x, given) for x, given in sides]
        if name == "nngp":
            return tree.tree_map(lambda a, b: contracted(a[..., None], b[..., None], axes), found[0], found[-1])
        # Jacobians are trees like the outputs, whose leaves are trees like the parameters.
        outputs = tree.tree_structure(jax.eval_shape(lambda p: self._outputs(p, *sides[0]), params))
        left, right = (outputs.flatten_up_to(side) for side in (found[0], found[-1]))
        return outputs.unflatten([self._products(params, a, b, axes) for a, b in zip(left, right)])

    @staticmethod
    def _products(params, left, right, axes):
        import jax

        leaves = [jax.tree_util.tree_leaves(part) for part in (params, left, right)]
        parts = []
        for array, a, b in zip(*leaves):
            flat = [jac.reshape(*jac.shape[:jac.ndim - np.ndim(array)], np.size(array)) for jac in (a, b)]
            parts.append(contracted(*flat, axes))
        return reduce(add, parts)

    def _outputs(self, params, x, kwargs):
        return self.f(params, x, **kwargs)

    def _jacobian(self, params, x, kwargs):
        import jax

        return jax.jacrev(lambda p: self.f(p, x, **kwargs))(params)

    def expanded(self, params, degree):
        """f(params, x, ...) as its Taylor polynomial at `params`."""
        import jax

        def polynomial(new_params, *args, **kwargs):
            shift = jax.tree_util.tree_map(lambda new, old: new - old, new_params, params)

            def term(f, k):
                """f and its derivatives along the shift, from the k-th on."""
                if k == degree:
                    return f(params)
                slope = term(lambda p: jax.jvp(f, (p,), (shift,))[1], k + 1)
                return jax.tree_util.tree_map(lambda value, part: value + part / (k + 1), f(params), slope)

            return term(lambda p: self.f(p, *args, **kwargs), 0)

        return polynomial

    def vector_product(self, params, x1, x2, kwargs):
        """cotangents -> their product with the NTK."""
        import jax

        sides = _sides(kwargs, x1, x2)
        left, right = (lambda p: self._outputs(p, *sides[0])), (lambda p: self._outputs(p, *sides[-1]))
        back = jax.vjp(right, params)[1]
        return lambda cotangents: jax.jvp(left, (params,), back(cotangents))[1]


class InDouble(JaxFunction):
    """The same for arrays of NumPy."""

    def kernel(self, name, params, x1, x2, axes, kwargs):
        return self._computed(super().kernel, name, params, x1, x2, axes, kwargs)

    def expanded(self, params, degree):
        polynomial = super().expanded(params, degree)
        return lambda *args, **kwargs: self._computed(polynomial, *args, **kwargs)

    def vector_product(self, params, x1, x2, kwargs):
        product = self._computed(super().vector_product, params, x1, x2, kwargs)
        return lambda cotangents: self._computed(product, cotangents)

    @staticmethod
    def _computed(function, *args, **kwargs):
        import jax

        with double_precision():
            found = function(*args, **kwargs)
        return found if callable(found) else jax.tree_util.tree_map(np.asarray, found)


def _sides(kwargs, x1, x2):
    """(x, arguments) of each batch, one if x2 is x1 or None."""
    found = [{}, {}]
    for name, value in kwargs.items():
        pair = value if isinstance(value, tuple) and len(value) == 2 else (value, value)
        if name == "rng" and x2 is not None and value is not None:
            pair = _keys(*pair, x1, x2)
        for arguments, part in zip(found, pair):
            arguments[name] = part
    one = [(x1, found[0])]
    return one if x2 is None or x2 is x1 else one + [(x2, found[1])]


def _keys(key1, key2, x1, x2):
    """The keys of two batches: equal ones for equal batches and different ones for others, as in neural-tangents."""
    import jax

    if key1 is key2:
        other = jax.random.fold_in(key2, 1)
    else:
        other = jax.numpy.where(_are_equal(key1, key2), jax.random.fold_in(key2, 1), key2)
    return key1, jax.numpy.where(_are_same(x1, x2), key1, other)


def _are_equal(key1, key2):
    import jax

    data = [jax.random.key_data(key) if "key" in str(key.dtype) else key for key in (key1, key2)]
    return (data[0] == data[1]).all()


def _are_same(x1, x2):
    """Whether trees of arrays count as one batch."""
    import jax

    from .stax._inputs import are_same

    return reduce(jax.numpy.logical_and, [are_same(*pair) for pair in zip(*map(jax.tree_util.tree_leaves, (x1, x2)))], True)


def contracted(left, right, axes):
    """The kernel of two sides [axes of outputs..., features]: for axes A, B, ... of outputs an array [A, A', B, B', ...].
    Those of axes.trace are averaged over their diagonal and removed, those of axes.diagonal appear once. Arrays are NumPy's or
    JAX's."""
    count = left.ndim - 1
    trace, diagonal = (_axes_of(given, count, name) for given, name in (
        (axes.trace, "trace_axes"), (axes.diagonal, "diagonal_axes")))
    if set(trace) & set(diagonal):
        raise ValueError(f"trace_axes, diagonal_axes: expected different axes, got {axes.trace} and {axes.diagonal}")
    first = list(range(count))
    second = [axis if axis in trace or axis in diagonal else count + 1 + axis for axis in first]
    kept = [axis for axis in first if axis not in trace]
    result = [label for axis in kept for label in ([axis] if axis in diagonal else [axis, second[axis]])]
    for axis in (*trace, *diagonal):
        if left.shape[axis] != right.shape[axis]:
            raise ValueError(f"trace_axes, diagonal_axes: axis {axis}: expected outputs of one size along it, got "
                             f"{left.shape[axis]} and {right.shape[axis]}")
    if isinstance(left, np.ndarray):
        einsum = np.einsum
    else:
        import jax.numpy as jnp

        einsum = jnp.einsum
    size = int(np.prod([left.shape[axis] for axis in trace]))
    return einsum(left, [*first, count], right, [*second, count], result, optimize=True) / size


def _axes_of(given, count, name):
    axes = [given] if isinstance(given, int) else list(given)
    if any(not -count <= axis < count for axis in axes):
        raise ValueError(f"{name}: expected axes of outputs with {count} axes, got {tuple(axes)}")
    return list(dict.fromkeys(axis % count for axis in axes))  # As in neural-tangents, an axis may be named twice.


def function_of_jax(f: Any) -> JaxFunction:
    """NotImplementedError without JAX, TypeError for anything that is not a function."""
    if not callable(f):
        raise TypeError(f"f: expected a function f(params, x), got {f!r}")
    if importlib.util.find_spec("jax") is None:
        raise NotImplementedError("f: functions that are not the apply_fn of a network of widelimit.stax are differentiated "
                                  "by JAX, which is not installed: pip install 'widelimit[jax]'")
    return JaxFunction(f)
