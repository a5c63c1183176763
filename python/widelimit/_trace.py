"""What JAX reads of a user's function, if JAX has been imported: its derivatives, and a digest of its text; and what it compiles."""

import hashlib
import re
import sys

import numpy as np

from . import _core
from ._jax import double_precision


def digest(function, *shapes):
    """Hexadecimal digits that tell functions of arrays of these shapes apart, the same in every process with this version of
    JAX. None where JAX cannot read the function: it is not written in JAX, or calls Python while it runs."""
    jax = sys.modules.get("jax")
    if jax is None:
        return None
    try:
        with double_precision():
            read = jax.make_jaxpr(function)(*(jax.ShapeDtypeStruct(shape, np.float64) for shape in shapes))
    except Exception:  # Functions of NumPy fail in any way when they get what stands for an array.
        return None
    text = str(read)
    if "callback" in text:
        return None
    # Functions with rules of their own are written with their address, which tells nothing.
    parts = [re.sub(r" at 0x[0-9a-f]+", "", text).encode()]
    parts += [np.asarray(constant).tobytes() for constant in _constants(read)]
    return hashlib.sha256(b"".join(parts)).hexdigest()


def elementwise(phi, derivative):
    """phi and its derivative, compiled by JAX, which has read them. The derivative is that of JAX if none is given; it stays None
    where JAX's is not finite though phi is, as beside a jax.numpy.where() that chooses a root."""
    compiled = _compiled(phi)
    if compiled is None:
        return phi, derivative
    if derivative is not None:
        return compiled, _compiled(derivative) or derivative
    slope = _compiled(_slope_of(phi))
    places = np.geomspace(1e-3, 2000, 500)
    places = np.concatenate([-places, places])
    with double_precision():
        is_usable = np.isfinite(slope(places)) | ~np.isfinite(compiled(places))
    return compiled, slope if is_usable.all() else None


def _slope_of(phi):
    import jax
    import jax.numpy as jnp

    def slope(z):
        # Steps may be given as truth values or integers, which have no tangents.
        return jax.jvp(lambda places: jnp.asarray(phi(places)).astype(float), (z,), (jnp.ones_like(z),))[1]

    return slope


def _compiled(function):
    """An elementwise function that JAX reads, compiled for a few sizes, to which arguments are filled up. None if it gives
    another shape or something else than real numbers, which is left to be said where it is called."""
    import jax

    with double_precision():
        result = jax.eval_shape(function, jax.ShapeDtypeStruct((3,), np.float64))
    if getattr(result, "shape", None) != (3,) or result.dtype.kind not in "fiub":
        return None
    compiled = jax.jit(function)

    def called(z):
        z = np.asarray(z, float)
        size = 64
        while size < z.size:
            size *= 8
        filled = np.full(size, z.ravel()[-1] if z.size else 0.0)
        filled[:z.size] = z.ravel()
        return np.asarray(compiled(filled))[:z.size].reshape(z.shape)

    return called


def _constants(read):
    """The arrays that a function was made with, those of functions that it calls included: its text only names them."""
    found = list(getattr(read, "consts", ()))
    for equation in getattr(read, "jaxpr", read).eqns:
        for value in equation.params.values():
            for inner in value if isinstance(value, (tuple, list)) else (value,):
                if hasattr(inner, "eqns") or hasattr(inner, "jaxpr"):
                    found += _constants(inner)
    return found


def _finite(name, arrays):
    """The arrays in NumPy. NumericalError where a derivative is not finite."""
    given = [None if array is None else np.asarray(array, float) for array in arrays]
    if not all(array is None or np.isfinite(array).all() for array in given):
        raise _core.NumericalError(f"{name}: its derivatives are not finite: expected a function that JAX can differentiate "
                                   "wherever covariances are possible; jax.numpy.where() keeps what it does not choose in "
                                   "derivatives, so that arguments must be safe on both sides")
    return given


def pair_adjoint(name, transform):
    """The backward pass of a pair layer's function: from its arguments and the adjoints of its results to those of its
    arguments."""
    import jax

    @jax.jit
    def with_ntk(nngp, ntk, left, right, nngp_adjoint, ntk_adjoint):
        _, back = jax.vjp(lambda *arguments: tuple(transform(*arguments)), nngp, ntk, left, right)
        return back((nngp_adjoint, ntk_adjoint))

    @jax.jit
    def without_ntk(nngp, left, right, nngp_adjoint):
        _, back = jax.vjp(lambda k, p, q: transform(k, None, p, q)[0], nngp, left, right)
        return back(nngp_adjoint)

    def adjoint(nngp, ntk, left, right, nngp_adjoint, ntk_adjoint):
        with double_precision():
            if ntk is not None:
                return tuple(_finite(name, with_ntk(nngp, ntk, left, right, nngp_adjoint, ntk_adjoint)))
            of_nngp, of_left, of_right = without_ntk(nngp, left, right, nngp_adjoint)
            return tuple(_finite(name, (of_nngp, None, of_left, of_right)))

    return adjoint


def slope_in_covariance(nngp):
    """The slope of a function of p, q and c in c, entry by entry."""
    import jax
    import jax.numpy as jnp

    def slope(p, q, c):
        return jax.jvp(lambda covariance: nngp(p, q, covariance), (c,), (jnp.ones_like(c),))[1]

    return slope


def dual_slopes(name, nngp, derivative):
    """The slopes of both functions of p, q and c in each of these, [6, n], entry by entry."""
    import jax
    import jax.numpy as jnp

    @jax.jit
    def slopes(p, q, c):
        parts = []
        for function in (nngp, derivative):
            result, back = jax.vjp(function, p, q, c)
            parts += back(jnp.ones_like(result))
        return jnp.stack(parts)

    def called(p, q, c):
        with double_precision():
            return _finite(name, (slopes(p, q, c),))[0]

    return called
