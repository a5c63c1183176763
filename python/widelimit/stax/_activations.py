"""Elementwise nonlinearities."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from .. import layers
from .._arrays import real, whole
from .._jax import is_of_jax
from ._module import Simple
from ._triple import Triple, triple


def _parameter(name, value):
    if name.endswith("degree"):
        return whole(value, name)
    if name.endswith("coefficients"):
        return [real(number, name) for number in value]
    return real(value, name)


def _nonlinearity(name, kind, **parameters):
    checked = {field: _parameter(f"{name}: {field}", value) for field, value in parameters.items()}
    return triple(Simple(name, layers.nonlinearity(kind, **checked)))


def Relu(do_stabilize: bool = False, do_backprop: bool = False) -> Triple:
    """max(x, 0)"""
    return _nonlinearity("Relu", "relu")


def LeakyRelu(alpha: float, do_stabilize: bool = False, do_backprop: bool = False) -> Triple:
    """min(alpha x, 0) + max(x, 0)"""
    return _nonlinearity("LeakyRelu", "leaky_relu", slope=real(alpha, "LeakyRelu: alpha"))


def ABRelu(a: float, b: float, do_stabilize: bool = False, do_backprop: bool = False) -> Triple:
    """a min(x, 0) + b max(x, 0), a and b finite."""
    return _nonlinearity("ABRelu", "ab_relu", a=a, b=b)


def Abs(do_stabilize: bool = False, do_backprop: bool = False) -> Triple:
    """|x|"""
    return _nonlinearity("Abs", "abs")


def Erf(a: float = 1.0, b: float = 1.0, c: float = 0.0, do_backprop: bool = False) -> Triple:
    """a erf(b x) + c"""
    return _nonlinearity("Erf", "erf", a=a, b=b, d=real(c, "Erf: c"))


def Sigmoid_like(do_backprop: bool = False) -> Triple:
    """(erf(x / 2.4020563531719796) + 1) / 2"""
    return _nonlinearity("Sigmoid_like", "sigmoid_like")


def Gelu(approximate: bool = False, do_backprop: bool = False) -> Triple:
    """x Phi(x), Phi the standard normal distribution function, of finite networks too: `approximate` changes nothing."""
    return _nonlinearity("Gelu", "gelu")


def Sin(a: float = 1.0, b: float = 1.0, c: float = 0.0) -> Triple:
    """a sin(b x + c)"""
    return _nonlinearity("Sin", "sin", a=a, b=b, c=c)


def Cos(a: float = 1.0, b: float = 1.0, c: float = 0.0) -> Triple:
    """a cos(b x + c)"""
    return _nonlinearity("Cos", "cos", a=a, b=b, c=c)


def Rbf(gamma: float = 1.0) -> Triple:
    """sqrt(2) sin(sqrt(2 gamma) x + pi/4)"""
    return _nonlinearity("Rbf", "rbf", gamma=gamma)


def Sign() -> Triple:
    """sign(x)"""
    return _nonlinearity("Sign", "sign")


def Exp(a: float = 1.0, b: float = 1.0) -> Triple:
    """a exp(b x)"""
    return _nonlinearity("Exp", "exp", a=a, b=b)


def Gaussian(a: float = 1.0, b: float = -1.0) -> Triple:
    """a exp(b x^2)"""
    return _nonlinearity("Gaussian", "gaussian", a=a, b=b)


def ExpNormalized(gamma: float = 1.0, shift: float = -1.0, do_clip: bool = False) -> Triple:
    """The kernel exp(gamma (correlation + shift)) times the norms."""
    return _nonlinearity("ExpNormalized", "exp_normalized", gamma=gamma, shift=shift)


def Gabor() -> Triple:
    """exp(-x^2) sin(x)"""
    return _nonlinearity("Gabor", "gabor")


def Monomial(degree: int) -> Triple:
    """x^degree, degree 0 .. 64. NetworkError for others."""
    return _nonlinearity("Monomial", "monomial", degree=degree)


def RectifiedMonomial(degree: int) -> Triple:
    """max(x, 0)^degree, degree 0 .. 32; NetworkError for others. Of degree 0 it is the step, 1 the ReLU."""
    return _nonlinearity("RectifiedMonomial", "rectified_monomial", degree=degree)


def Polynomial(coef: Sequence[float]) -> Triple:
    """sum_k coef[k] x^k; coef: 1 to 65 finite numbers, the constant first. NetworkError for another number of them."""
    return _nonlinearity("Polynomial", "polynomial", coefficients=coef)


def Hermite(degree: int) -> Triple:
    """The probabilists' Hermite polynomial, normalised to E[phi(z)^2] = 1; degree 0 .. 64. NetworkError for others."""
    return _nonlinearity("Hermite", "hermite", degree=degree)


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
    """A nonlinearity from fn, and perhaps its derivative df, by quadrature; deg, the number of its points in
    neural-tangents, is chosen here. Functions and errors as of Elementwise()."""
    return triple(_OfFunctions("ElementwiseNumerical", layers.elementwise, (fn, df)))
