"""From a function of numbers, composed of a network's elementwise operations, to the layer that it is."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from .. import layers
from . import functions
from .functions import _erf as erf
from .functions import _logistic as logistic
from ._trace import ConversionError, refuse

Function = Callable[[np.ndarray], np.ndarray]

_GRID = np.concatenate([np.linspace(-7, 7, 281), [-0.013, 0.013, 1.7e-3]])

# Layers of network files, beside the function that each computes.
_KINDS: list[tuple[Function, Callable[[], Any]]] = [
    (lambda z: np.maximum(z, 0), layers.relu),
    (lambda z: z * (1 + erf(z / np.sqrt(2))) / 2, layers.gelu),
    (np.tanh, layers.tanh),
    (lambda z: z * logistic(z), layers.silu),
    (logistic, layers.sigmoid),
    (lambda z: np.logaddexp(0, z), layers.softplus),
    (erf, layers.erf),
    (np.abs, layers.abs),
    (np.sin, layers.sin),
    (np.cos, layers.cos),
    (np.exp, layers.exp),
    (lambda z: np.exp(-z * z), layers.gaussian),
    (np.sign, layers.sign),
    (functions.squared_relu, lambda: layers.rectified_monomial(degree=2)),
]


def _own(name):
    function = getattr(functions, name)
    return function, lambda: layers.elementwise(function, kind=name)


_KINDS += [_own(name) for name in functions.__all__ if name not in ("squared_relu", "celu")]


def slope_of(function: Function) -> float | None:
    """a where the function is a z, else None."""
    values = function(_GRID)
    slope = float(function(np.ones(1))[0])
    return slope if np.allclose(values, slope * _GRID, rtol=1e-6, atol=1e-9) else None


def _two_slopes(values):
    """Of a function that is linear on either side of 0."""
    below, above = values[np.argmin(_GRID)] / _GRID.min(), values[np.argmax(_GRID)] / _GRID.max()
    pieces = below * np.minimum(_GRID, 0) + above * np.maximum(_GRID, 0)
    if not np.allclose(values, pieces, rtol=1e-6, atol=1e-9):
        return None
    return layers.leaky_relu(slope=float(below)) if abs(above - 1) < 1e-6 else layers.ab_relu(a=float(below), b=float(above))


def _polynomial(values):
    for degree in range(2, 9):
        coefficients = np.polynomial.polynomial.polyfit(_GRID, values, degree)
        if np.allclose(np.polynomial.polynomial.polyval(_GRID, coefficients), values, rtol=1e-7, atol=1e-7 * np.abs(values).max()):
            coefficients[np.abs(coefficients) < 1e-9 * np.abs(coefficients).max()] = 0
            return layers.polynomial(coefficients=[float(c) for c in coefficients])
    return None


def known_layer(function: Function, place: str) -> tuple[Any, float] | None:
    """The layer of the function up to a factor, and that factor; None where there is no layer of a name."""
    with np.errstate(all="ignore"):
        values = np.asarray(function(_GRID), float)
    if not np.isfinite(values).all():
        raise refuse(place, "a function that is not finite everywhere (logarithm, root, reciprocal) has no limit on Gaussian channels",
                     "use a function that is defined for every number")
    if np.ptp(values) == 0:
        raise refuse(place, "a function that is the same for all inputs", "leave it out")
    for known, make in _KINDS:
        expected = known(_GRID)
        factor = float(values @ expected / (expected @ expected))
        if np.allclose(values, factor * expected, rtol=2e-6, atol=2e-6 * np.abs(values).max()):
            return make(), factor if abs(factor - 1) > 1e-6 else 1.0
    layer = _two_slopes(values) or _polynomial(values)
    return None if layer is None else (layer, 1.0)


def composed_layer(function: Function, place: str) -> tuple[Any, float]:
    """The layer of any other function, by quadrature; files cannot hold it."""
    try:
        return layers.elementwise(function, kind="composed"), 1.0
    except (ValueError, TypeError, ArithmeticError) as error:
        raise ConversionError(f"{place}: {error}") from error
