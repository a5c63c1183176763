"""Elementwise nonlinearities."""

from __future__ import annotations

import sys
from typing import Any, Callable

import numpy as np

from .. import layers
from .._arrays import real, whole
from .._jax import is_function_of_jax, is_of_jax
from ._module import Simple
from ._triple import Triple, triple


def _parameter(name, value):
    if name.endswith("degree"):
        return whole(value, name)
    if name.endswith("coef"):
        return [real(number, name) for number in value] or [0.0]
    return real(value, name)


def nonlinearity(name: str, kind: str, **parameters: tuple[str, Any]) -> Triple:
    """The layer of a kind, called `name`; each field of it with the argument's name and value."""
    checked = {field: _parameter(f"{name}: {argument}", value) for field, (argument, value) in parameters.items()}
    return triple(Simple(name, layers.nonlinearity(kind, **checked), kind, checked))


def Elementwise(fn: Callable[..., Any] | None = None, nngp_fn: Callable[..., Any] | None = None,
                d_nngp_fn: Callable[..., Any] | None = None) -> Triple:
    """A nonlinearity from nngp_fn(cov12, var1, var2) = E[fn(u) fn(v)] and d_nngp_fn = E[fn'(u) fn'(v)], or from fn alone
    by quadrature. Functions of arrays of NumPy, or made of JAX's. d_nngp_fn, where it is not given, is the slope of
    nngp_fn in cov12 (Price's theorem): by jax.grad where nngp_fn is made of JAX's functions, else by differences.

    TypeError for what is no function; ArgumentError once a kernel is computed for functions that give another shape than
    their arguments' or numbers that are not finite (docs/python.md has the limits of quadrature)."""
    if nngp_fn is None:
        if fn is None:
            raise ValueError("Elementwise: expected fn or nngp_fn")
        return triple(OfFunctions("Elementwise", layers.elementwise, (fn,)))
    return triple(OfFunctions("Elementwise", _dual, (nngp_fn, d_nngp_fn)))


class OfFunctions(Simple):
    """A nonlinearity made of a user's functions; pickled with these, where they can be."""

    in_jax = "function"

    def __init__(self, name, make, functions):
        layer = make(*functions)
        dual = None if make is layers.elementwise else _formula_of(*functions)
        if dual is not None:
            layer._dual = dual
        super().__init__(name, layer)
        self._made_of = name, make, functions

    @property
    def function(self):
        """phi, None if there is only its dual."""
        _, make, functions = self._made_of
        return functions[0] if make is layers.elementwise else None

    def __reduce__(self):
        return OfFunctions, self._made_of


def _dual(nngp_fn, d_nngp_fn):
    slope = _slope_of(nngp_fn) if d_nngp_fn is None else d_nngp_fn
    return layers.elementwise_dual(lambda p, q, c: nngp_fn(c, p, q), lambda p, q, c: slope(c, p, q))


def _formula_of(nngp_fn, d_nngp_fn):
    """The dual as a function of JAX's arrays; None if the functions are not such."""
    if "jax" not in sys.modules:
        return None
    from .._duals import by_price

    functions = [function for function in (nngp_fn, d_nngp_fn) if function is not None]
    if not all(is_function_of_jax(function, 3) for function in functions):
        return None
    if d_nngp_fn is None:
        return by_price(lambda p, q, c: nngp_fn(c, p, q))
    return lambda p, q, c: (nngp_fn(c, p, q), d_nngp_fn(c, p, q))


def _slope_of(nngp_fn):
    def slope(c, p, q):
        if is_of_jax(nngp_fn(c, p, q)):
            import jax

            return jax.numpy.vectorize(jax.grad(nngp_fn))(c, p, q)
        return _difference(nngp_fn, c, p, q)

    return slope


def _difference(nngp_fn, c, p, q):
    step = 1e-5 * np.sqrt(p * q) + 1e-150
    # At perfect correlation from within, to second order.
    inside = np.clip(c, -np.sqrt(p * q) + 2 * step, np.sqrt(p * q) - 2 * step)
    centre = (nngp_fn(inside + step, p, q) - nngp_fn(inside - step, p, q)) / (2 * step)
    bend = (nngp_fn(inside + step, p, q) - 2 * nngp_fn(inside, p, q) + nngp_fn(inside - step, p, q)) / step**2
    return centre + bend * (c - inside)


def ElementwiseNumerical(fn: Callable[..., Any], deg: int, df: Callable[..., Any] | None = None,
                         do_backprop: bool = False) -> Triple:
    """A nonlinearity from fn, and perhaps its derivative df, by quadrature; deg, the number of its points in
    neural-tangents, is chosen here. Functions and errors as of Elementwise()."""
    return triple(OfFunctions("ElementwiseNumerical", layers.elementwise, (fn, df)))
