"""Duals of nonlinearities in closed form, as functions of JAX's arrays that have derivatives of any order.

A dual takes variances p, q and the covariance c of two Gaussian variables, and gives E[phi(u) phi(v)] and E[phi'(u) phi'(v)].
Where two inputs are multiples of each other, functions with a kink have an infinite slope, which counts as 0.
"""

from __future__ import annotations

from functools import partial
from math import cos, factorial, pi, sqrt
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np

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


def _sine_and_angle(p, q, c):
    """sqrt(pq - c^2), and the angle between 0 and pi; a variance of 0 counts as uncorrelated."""
    is_there = (p > 0) & (q > 0)
    product = jnp.where(is_there, p * q, 1)
    covariance = jnp.where(is_there, c, 0)
    # The difference of squares as a product: 0 where c = p = q, which pq - c^2 with fused multiply-adds is not.
    largest = jnp.sqrt(product)
    sine = _root((largest - covariance) * (largest + covariance), product)
    return jnp.where(is_there, sine, 0), jnp.arctan2(sine, covariance)


def _ab_relu(a, b):
    def dual(p, q, c):
        sine, angle = _sine_and_angle(p, q, c)
        weight = (b - a) ** 2 / (2 * pi)
        slope = weight * (pi - angle) + a * b
        return c * slope + weight * sine, slope

    return dual


def _sign(p, q, c):
    angle = _sine_and_angle(p, q, c)[1]
    return 1 - 2 / pi * angle, jnp.zeros_like(angle)


def _rectified_monomial(degree):
    def dual(p, q, c):
        sine, angle = _sine_and_angle(p, q, c)
        moments = [(pi - angle) / (2 * pi)]
        moments.append(c * moments[0] + sine / (2 * pi))
        for n in range(1, degree):
            moments.append((2 * n + 1) * c * moments[n] + n**2 * (p * q - c * c) * moments[n - 1])
        return moments[degree], degree**2 * moments[degree - 1] if degree else jnp.zeros_like(angle)

    return dual


def by_price(value: Callable[[Any, Any, Any], Any]) -> Dual:
    """The dual of a smooth function from its first half, whose slope in c is the second (Price's theorem)."""
    return lambda p, q, c: jax.jvp(lambda covariance: value(p, q, covariance), (c,), (jnp.ones_like(c),))


def _tilted(p, q, c, shift=1.0):
    """det(shift + covariance), of which no term is negative."""
    return shift**2 + shift * (p + q) + (p * q - c * c)


def _erf(a=1.0, b=1.0, c=0.0, d=0.0):
    shift = 1 / (2 * b**2)
    return by_price(lambda p, q, k: 2 * a**2 / pi * jnp.arctan2(k, jnp.sqrt(_tilted(p, q, k, shift))) + d**2) if c == 0 else None


def _gelu(p, q, c):
    determinant = _tilted(p, q, c)
    angle = jnp.arctan2(c, jnp.sqrt(determinant))
    shrinkage = (2 + p + q) / ((1 + p) * (1 + q))
    return c * (0.25 + angle / (2 * pi)) + (c * c * shrinkage + p * q - c * c) / (2 * pi * jnp.sqrt(determinant))


def _wave(a, b, cosine):
    """a sin(b x + shift), of which the cosine of twice the shift is given."""
    def value(p, q, c):
        near, far = (jnp.exp(-b * b / 2 * (p + q - sign * 2 * c)) for sign in (1, -1))
        return a * a / 2 * (near - cosine * far)

    return by_price(value)


def _gabor(p, q, c):
    determinant = 4 * (p * q - c * c)
    tilted = 1 + 2 * (p + q) + determinant
    return jnp.exp(-(p + q + determinant) / (2 * tilted)) / jnp.sqrt(tilted) * jnp.sinh(c / tilted)


def _polynomial(coefficients):
    def moments(variance, k):
        terms = range(0, len(coefficients) - k, 2)
        return sum((coefficients[k + m] * factorial(k + m) / (2 ** (m // 2) * factorial(m // 2)) * variance ** (m // 2)
                    for m in terms), jnp.zeros_like(variance))

    def value(p, q, c):
        return sum(moments(p, k) * moments(q, k) * c**k / factorial(k) for k in range(len(coefficients)))

    return by_price(value)


def _hermite(degree):
    coefficients = np.polynomial.hermite_e.herme2poly([0] * degree + [1]) / sqrt(factorial(degree))
    return _polynomial(coefficients.tolist())


def _exp_normalized(gamma=1.0, shift=-1.0):
    def dual(p, q, c):
        is_there = (p > 0) & (q > 0)
        size = jnp.sqrt(jnp.where(is_there, p * q, 1))
        value = jnp.where(is_there, jnp.exp(gamma * (c / size + shift)), jnp.exp(gamma * shift))
        return jnp.where(is_there, size * value, 0), gamma * value

    return dual


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _matern_function(order, square):
    """The Matern function of the smoothness order + 1/2 at the root of a number."""
    s = jnp.sqrt(square)
    return (1, 1 + s, 1 + s + square / 3)[order] * jnp.exp(-s)


@_matern_function.defjvp
def _(order, primals, tangents):
    (square,) = primals
    if order > 0:
        slope = -0.5 / (2 * order - 1) * _matern_function(order - 1, square)
    else:
        s = jnp.sqrt(jnp.where(square > 0, square, 1))
        slope = jnp.where(square > 0, -0.5 * jnp.exp(-s) / s, 0)
    return _matern_function(order, square), slope * tangents[0]


def _matern(smoothness=1.5, length=1.0):
    order = int(smoothness)

    def dual(p, q, c):
        distance = jnp.maximum((p - c) + (q - c), 0)
        if order == 0:
            distance = jnp.where(distance > 2 * jnp.finfo(c.dtype).eps * (p + q), distance, 0)
        value = _matern_function(order, 2 * smoothness / length**2 * distance)
        return value, jnp.zeros_like(value)

    return dual


_DUALS: dict[str, Callable[..., Dual | None]] = {
    "identity": lambda: lambda p, q, c: (c, jnp.ones_like(c)),
    "relu": lambda: _ab_relu(0.0, 1.0),
    "leaky_relu": lambda slope: _ab_relu(slope, 1.0),
    "ab_relu": _ab_relu,
    "abs": lambda: _ab_relu(-1.0, 1.0),
    "sign": lambda: _sign,
    "rectified_monomial": _rectified_monomial,
    "erf": _erf,
    "sigmoid_like": lambda: _erf(0.5, 1 / 2.4020563531719796, d=0.5),
    "gelu": lambda: by_price(_gelu),
    "sin": lambda a=1.0, b=1.0, c=0.0: _wave(a, b, cos(2 * c)),
    "cos": lambda a=1.0, b=1.0, c=0.0: _wave(a, b, -cos(2 * c)),
    "rbf": lambda gamma=1.0: _wave(sqrt(2), sqrt(2 * gamma), 0.0),
    "exp": lambda a=1.0, b=1.0: by_price(lambda p, q, c: a * a * jnp.exp(b * b / 2 * (p + q + 2 * c))),
    "gaussian": lambda a=1.0, b=-1.0: by_price(
        lambda p, q, c: a * a / jnp.sqrt((1 - 2 * b * p) * (1 - 2 * b * q) - (2 * b * c) ** 2)),
    "gabor": lambda: by_price(_gabor),
    "polynomial": lambda coefficients: _polynomial(coefficients),
    "monomial": lambda degree: _polynomial([0.0] * degree + [1.0]),
    "hermite": _hermite,
    "exp_normalized": _exp_normalized,
    "matern": _matern,
}


def dual_of(kind: str, fields: dict[str, Any]) -> Dual | None:
    """The dual of a kind of network files with its fields; None without a closed form."""
    make = _DUALS.get(kind)
    return None if make is None else make(**fields)
