"""The library's nonlinearities, and their duals in closed form, as functions of JAX's arrays that have derivatives of any order:
readers of the operations that the library's formulas are.

A dual takes variances p, q and the covariance c of two Gaussian variables, and gives E[phi(u) phi(v)] and E[phi'(u) phi'(v)].
Where two inputs are multiples of each other, functions with a kink have an infinite slope, which counts as 0.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Callable

import jax
import jax.numpy as jnp
from jax.scipy.special import erf, erfc

from . import _core
from ._fields import layer

Dual = Callable[[Any, Any, Any], "tuple[Any, Any]"]


@jax.custom_jvp
def _root(square, scale):
    """The root of a number that is at least 0 and has the rounding errors of `scale`."""
    return jnp.sqrt(jnp.maximum(square, 0))


@_root.defjvp
def _(primals, tangents):
    square, scale = primals
    is_clear = square > 8 * jnp.finfo(square.dtype).eps * scale
    safe = jnp.where(is_clear, square, 1)
    return _root(square, scale), jnp.where(is_clear, tangents[0] / (2 * _root(safe, scale)), 0)


def _steep_root(p, q, c):
    """sqrt(pq - c^2); the difference of squares as a product is 0 where c = p = q, which it is not with fused multiply-adds."""
    is_there = (p > 0) & (q > 0)
    product = jnp.where(is_there, p * q, 1)
    largest, covariance = jnp.sqrt(product), jnp.where(is_there, c, 0)
    return jnp.where(is_there, _root((largest - covariance) * (largest + covariance), product), 0)


@jax.custom_jvp
def _quotient(a, b):
    return a / b


@_quotient.defjvp
def _(primals, tangents):
    # Entries that a condition leaves out may be divided by 0: their slopes must not be NaN, which 0 times them would be.
    (a, b), (slope_a, slope_b) = primals, tangents
    safe = jnp.where(b == 0, 1, b)
    return _quotient(a, b), jnp.where(b == 0, 0, (slope_a - a / safe * slope_b) / safe)


@jax.custom_jvp
def _at_least(low, x):
    """A bound for rounding errors: slopes pass through it."""
    return jnp.maximum(low, x)


@_at_least.defjvp
def _(primals, tangents):
    return _at_least(*primals), tangents[1] + jnp.zeros_like(primals[0])


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _matern_function(smoothness, square):
    """The Matern function at the root of a number."""
    s = jnp.sqrt(square)
    return (1, 1 + s, 1 + s + square / 3)[int(smoothness)] * jnp.exp(-s)


@_matern_function.defjvp
def _(smoothness, primals, tangents):
    (square,) = primals
    if smoothness > 1:
        slope = -0.25 / (smoothness - 1) * _matern_function(smoothness - 1, square)
    else:
        s = jnp.sqrt(jnp.where(square > 0, square, 1))
        slope = jnp.where(square > 0, -0.5 * jnp.exp(-s) / s, 0)
    return _matern_function(smoothness, square), slope * tangents[0]


def _negative_or_difference(a, *b):
    return a - b[0] if b else -a


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b, "-": _negative_or_difference, "*": lambda a, b: a * b, "/": _quotient, "fma": lambda a, b, c: a * b + c,
    "<": lambda a, b: a < b, "&&": lambda a, b: a & b, "?:": jnp.where, "at_least": _at_least, "fabs": lambda x: jnp.where(x < 0, -x, x),
    "sqrt": lambda x: _root(x, 0), "exp": jnp.exp, "expm1": jnp.expm1, "log": jnp.log, "sin": jnp.sin, "cos": jnp.cos,
    "sinh": jnp.sinh, "tanh": jnp.tanh, "erf": erf, "erfc": erfc, "atan2": jnp.arctan2,
    "determinant": lambda p, q, c: p * q - c * c, "steep_root": _steep_root, "acute_angle": lambda y, x, inverse: jnp.arctan2(y, x),
    "matern_function": _matern_function,
}
# At a kink in 0 the slope of phi is the mean of both sides, which is that of jnp.abs.
_OF_VALUES = {**_OPERATIONS, "fabs": jnp.abs}


def _computed(operations, wanted, known, functions):
    """The values of the names `wanted`, from those of the names `known`."""
    def value(operand):
        return known[operand] if operand in known else float(operand.strip("()f"))

    for name, does, operands in operations:
        known[name] = functions[does](*map(value, operands))
    return [value(name) for name in wanted]


def by_price(value: Callable[[Any, Any, Any], Any]) -> Dual:
    """The dual of a smooth function from its first half, whose slope in c is the second (Price's theorem)."""
    return lambda p, q, c: jax.jvp(lambda covariance: value(p, q, covariance), (c,), (jnp.ones_like(c),))


def dual_of(kind: str, fields: dict[str, Any]) -> Dual | None:
    """The dual of a kind of network files with its fields; None without a closed form."""
    if "python" in fields:  # Functions of Python, which have no formula.
        return None
    made = layer(kind, **fields)
    if _core.dual_operations(made, False) is None:
        return None

    def dual(p, q, c):
        operations, *wanted = _core.dual_operations(made, jnp.finfo(c.dtype).bits < 64)
        value, factor = _computed(operations, wanted, {"p": p, "q": q, "c": c}, _OPERATIONS)
        return value + jnp.zeros_like(c), factor + jnp.zeros_like(c)

    return dual


def scalar_function(kind: str, fields: dict[str, Any]) -> Callable[[Any], Any] | None:
    """phi of a kind with its fields; None for kinds that are no function of a number, or have no formula."""
    found = _core.value_operations(layer(kind, **fields))
    if found is None:
        return None
    operations, value = found
    return lambda x: _computed(operations, [value], {"x": x}, _OF_VALUES)[0] + jnp.zeros_like(x)
