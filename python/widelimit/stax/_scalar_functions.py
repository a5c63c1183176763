"""The library's nonlinearities as functions of JAX's arrays, by the kinds of network files."""

from __future__ import annotations

from math import factorial, pi, sqrt
from typing import Any, Callable

import jax.numpy as jnp
from jax.scipy.special import erf

_SIGMOID_SCALE = 2.4020563531719796


def _erf(x, a=1.0, b=1.0, c=0.0, d=0.0):
    return a * erf(b * x + c) + d


def _gelu(x):
    return x * (1 + erf(x / sqrt(2))) / 2


def _ab_relu(x, a, b):
    return a * jnp.minimum(x, 0) + b * jnp.maximum(x, 0)


def _polynomial(x, coefficients):
    result = jnp.zeros_like(x)
    for coefficient in coefficients[::-1]:
        result = result * x + coefficient
    return result


def _hermite(x, degree):
    before, value = jnp.zeros_like(x), jnp.ones_like(x)
    for k in range(degree):
        before, value = value, x * value - k * before
    return value / sqrt(factorial(degree))


def _rectified_monomial(x, degree):
    return jnp.heaviside(x, 0.5) if degree == 0 else jnp.maximum(x, 0) ** degree


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "relu": lambda x: jnp.maximum(x, 0),
    "leaky_relu": lambda x, slope: _ab_relu(x, slope, 1.0),
    "ab_relu": _ab_relu,
    "abs": jnp.abs,
    "sign": jnp.sign,
    "erf": _erf,
    "sigmoid_like": lambda x: (erf(x / _SIGMOID_SCALE) + 1) / 2,
    "gelu": _gelu,
    "sin": lambda x, a=1.0, b=1.0, c=0.0: a * jnp.sin(b * x + c),
    "cos": lambda x, a=1.0, b=1.0, c=0.0: a * jnp.cos(b * x + c),
    "exp": lambda x, a=1.0, b=1.0: a * jnp.exp(b * x),
    "gaussian": lambda x, a=1.0, b=-1.0: a * jnp.exp(b * x**2),
    "rbf": lambda x, gamma=1.0: sqrt(2) * jnp.sin(sqrt(2 * gamma) * x + pi / 4),
    "polynomial": _polynomial,
    "hermite": _hermite,
    "gabor": lambda x: jnp.exp(-x**2) * jnp.sin(x),
    "monomial": lambda x, degree: x**degree,
    "rectified_monomial": _rectified_monomial,
}


def scalar_function(kind: str, fields: dict[str, Any]) -> Callable[[Any], Any] | None:
    """phi of a kind with its fields; None for kinds that are no function of a number."""
    function = _FUNCTIONS.get(kind)
    return None if function is None else lambda x: function(x, **fields)
