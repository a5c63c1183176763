"""Elementwise nonlinearities."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from .. import layers
from .._jax import is_of_jax
from ._module import Simple
from ._triple import Triple, triple


def _nonlinearity(name, kind, **parameters):
    return triple(Simple(name, layers.nonlinearity(kind, **parameters)))


def Relu(do_stabilize: bool = False, do_backprop: bool = False) -> Triple:
    """max(x, 0)"""
    return _nonlinearity("Relu", "relu")


def LeakyRelu(alpha: float, do_stabilize: bool = False, do_backprop: bool = False) -> Triple:
    """min(alpha x, 0) + max(x, 0)"""
    return _nonlinearity("LeakyRelu", "leaky_relu", slope=float(alpha))


def ABRelu(a: float, b: float, do_stabilize: bool = False, do_backprop: bool = False) -> Triple:
    """a min(x, 0) + b max(x, 0)"""
    return _nonlinearity("ABRelu", "ab_relu", a=float(a), b=float(b))


def Abs(do_stabilize: bool = False, do_backprop: bool = False) -> Triple:
    """|x|"""
    return _nonlinearity("Abs", "abs")


def Erf(a: float = 1.0, b: float = 1.0, c: float = 0.0, do_backprop: bool = False) -> Triple:
    """a erf(b x) + c"""
    return _nonlinearity("Erf", "erf", a=float(a), b=float(b), d=float(c))


def Sigmoid_like(do_backprop: bool = False) -> Triple:
    """(erf(x / 2.4020563531719796) + 1) / 2"""
    return _nonlinearity("Sigmoid_like", "sigmoid_like")


def Gelu(approximate: bool = False, do_backprop: bool = False) -> Triple:
    """x Phi(x), Phi the standard normal distribution function, of finite networks too: `approximate` changes nothing."""
    return _nonlinearity("Gelu", "gelu")


def Sin(a: float = 1.0, b: float = 1.0, c: float = 0.0) -> Triple:
    """a sin(b x + c)"""
    return _nonlinearity("Sin", "sin", a=float(a), b=float(b), c=float(c))


def Cos(a: float = 1.0, b: float = 1.0, c: float = 0.0) -> Triple:
    """a cos(b x + c)"""
    return _nonlinearity("Cos", "cos", a=float(a), b=float(b), c=float(c))


def Rbf(gamma: float = 1.0) -> Triple:
    """sqrt(2) sin(sqrt(2 gamma) x + pi/4)"""
    return _nonlinearity("Rbf", "rbf", gamma=float(gamma))


def Sign() -> Triple:
    """sign(x)"""
    return _nonlinearity("Sign", "sign")


def Exp(a: float = 1.0, b: float = 1.0) -> Triple:
    """a exp(b x)"""
    return _nonlinearity("Exp", "exp", a=float(a), b=float(b))


def Gaussian(a: float = 1.0, b: float = -1.0) -> Triple:
    """a exp(b x^2)"""
    return _nonlinearity("Gaussian", "gaussian", a=float(a), b=float(b))


def ExpNormalized(gamma: float = 1.0, shift: float = -1.0, do_clip: bool = False) -> Triple:
    """The kernel exp(gamma (correlation + shift)) times the norms."""
    return _nonlinearity("ExpNormalized", "exp_normalized", gamma=float(gamma), shift=float(shift))


def Gabor() -> Triple:
    """exp(-x^2) sin(x)"""
    return _nonlinearity("Gabor", "gabor")


def Monomial(degree: int) -> Triple:
    """x^degree"""
    return _nonlinearity("Monomial", "monomial", degree=int(degree))


def RectifiedMonomial(degree: int) -> Triple:
    """max(x, 0)^degree"""
    return _nonlinearity("RectifiedMonomial", "rectified_monomial", degree=int(degree))


def Polynomial(coef: Sequence[float]) -> Triple:
    """sum_k coef[k] x^k"""
    return _nonlinearity("Polynomial", "polynomial", coefficients=[float(c) for c in coef])


def Hermite(degree: int) -> Triple:
    """The normalised probabilists' Hermite polynomial."""
    return _nonlinearity("Hermite", "hermite", degree=int(degree))


def Elementwise(fn: Callable[..., Any] | None = None, nngp_fn: Callable[..., Any] | None = None,
                d_nngp_fn: Callable[..., Any] | None = None) -> Triple:
    """A nonlinearity from nngp_fn(cov12, var1, var2) = E[fn(u) fn(v)] and d_nngp_fn = E[fn'(u) fn'(v)], or from fn alone
    by quadrature. Functions of arrays of NumPy, or made of JAX's. d_nngp_fn, where it is not given, is the slope of
    nngp_fn in cov12 (Price's theorem): by jax.grad where nngp_fn is made of JAX's functions, else by differences."""
    if nngp_fn is None:
        if fn is None:
            raise ValueError("Elementwise: expected fn or nngp_fn")
        return triple(_OfFunctions("Elementwise", layers.elementwise, (fn,)))
    return triple(_OfFunctions("Elementwise", _dual, (nngp_fn, d_nngp_fn)))


class _OfFunctions(Simple):
    """A nonlinearity made of a user's functions; pickled with these, where they can be."""

    def __init__(self, name, make, functions):
        super().__init__(name, make(*functions))
        self._made_of = name, make, functions

    def __reduce__(self):
        return _OfFunctions, self._made_of


def _dual(nngp_fn, d_nngp_fn):
    slope = _slope_of(nngp_fn) if d_nngp_fn is None else d_nngp_fn
    return layers.elementwise_dual(lambda p, q, c: nngp_fn(c, p, q), lambda p, q, c: slope(c, p, q))


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
    """A nonlinearity from fn, and perhaps its derivative df, by quadrature; deg is not needed. Functions of arrays of
    NumPy, or made of JAX's."""
    return triple(_OfFunctions("ElementwiseNumerical", layers.elementwise, (fn, df)))
