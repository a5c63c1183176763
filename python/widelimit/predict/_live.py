"""Solves and flows by JAX and PyTorch, for arrays that are being differentiated or traced (_caller.py)."""

from __future__ import annotations

import sys

import numpy as np

from .._arrays import numbers, scalar_or_array
from .._caller import is_live
from .._jax import with_any_ranks


def library_of(*arrays):
    """Jax or Torch if one of the arrays is theirs; None if all are NumPy's."""
    jax, torch = sys.modules.get("jax"), sys.modules.get("torch")
    if jax is not None and any(isinstance(array, jax.Array) for array in arrays):
        return Jax
    if torch is not None and any(isinstance(array, torch.Tensor) for array in arrays):
        return Torch
    return None


def real(value, name="array"):
    """Real numbers: NumPy's in double precision, or an array of another library if it is live."""
    if not is_live(value):
        return numbers(value, name=name) if value is None or np.ndim(value) else scalar_or_array(value, name)
    jax = sys.modules.get("jax")
    return (Jax if jax is not None and isinstance(value, jax.Array) else Torch).array(value)


class Jax:
    """The functions of JAX that predictions need, in double precision if it is enabled."""

    @staticmethod
    def array(value):
        import jax.numpy as jnp

        return jnp.asarray(value, jnp.result_type(float))

    @staticmethod
    def functions():
        import jax.numpy as jnp

        return jnp

    @staticmethod
    def transposed(array, axes):
        return array.transpose(axes)

    @staticmethod
    def cholesky(matrix):
        import jax.numpy as jnp

        return jnp.linalg.cholesky(matrix)

    @staticmethod
    def solved(factor, vectors):
        import jax

        return jax.scipy.linalg.cho_solve((factor, True), vectors)

    @staticmethod
    def spectral(kind, matrix, scale):
        """f(matrix, scale) of a symmetric matrix, [..., n, n] for scales [...]."""
        import jax

        @with_any_ranks
        def value(matrix, scale):
            values, vectors = jax.numpy.linalg.eigh(matrix)
            values = jax.numpy.maximum(values, 0)
            return (vectors * kind(jax.numpy, values, scale[..., None])[0][..., None, :]) @ vectors.T

        @with_any_ranks
        def slope(primals, tangents):
            (matrix, scale), (change, pace) = primals, tangents
            values, vectors = jax.numpy.linalg.eigh(matrix)
            divided, by_scale = _slopes(jax.numpy, kind, jax.numpy.maximum(values, 0), scale)
            inner = divided * (vectors.T @ change @ vectors) + jax.numpy.eye(len(values)) * (by_scale * pace[..., None])[..., None]
            return value(matrix, scale), vectors @ inner @ vectors.T

        function = jax.custom_jvp(value)
        function.defjvp(slope)
        return function(matrix, scale)

    @staticmethod
    def largest(matrix):
        import jax.numpy as jnp

        return jnp.linalg.eigvalsh(matrix)[-1]


class Torch:
    """The functions of PyTorch that predictions need, in double precision."""

    @staticmethod
    def array(value):
        import torch

        return torch.as_tensor(value).to(torch.float64)

    @staticmethod
    def functions():
        import torch

        return torch

    @staticmethod
    def transposed(array, axes):
        return array.permute(*axes)

    @staticmethod
    def cholesky(matrix):
        import torch

        try:
            return torch.linalg.cholesky(matrix)
        except torch.linalg.LinAlgError as error:
            raise np.linalg.LinAlgError("the kernel is not positive definite: diag_reg adds to its diagonal") from error

    @staticmethod
    def solved(factor, vectors):
        import torch

        return torch.cholesky_solve(vectors, factor)

    @staticmethod
    def spectral(kind, matrix, scale):
        """f(matrix, scale) of a symmetric matrix, [..., n, n] for scales [...]."""
        import torch

        class Spectral(torch.autograd.Function):
            @staticmethod
            def forward(ctx, matrix, scale):
                values, vectors = torch.linalg.eigh(matrix)
                values = values.clamp(min=0)
                ctx.save_for_backward(values, vectors, scale)
                return (vectors * kind(torch, values, scale[..., None])[0][..., None, :]) @ vectors.T

            @staticmethod
            @torch.autograd.function.once_differentiable
            def backward(ctx, weights):
                values, vectors, scale = ctx.saved_tensors
                divided, by_scale = _slopes(torch, kind, values, scale)
                inner = vectors.T @ weights @ vectors
                found = vectors @ (divided * inner).reshape(-1, len(values), len(values)).sum(0) @ vectors.T
                return found, (inner.diagonal(dim1=-2, dim2=-1) * by_scale).sum(-1)

        return Spectral.apply(matrix, scale)

    @staticmethod
    def largest(matrix):
        import torch

        return torch.linalg.eigvalsh(matrix)[-1]


def remaining(xp, values, scale):
    """exp(-scale v), with its slopes in v and in scale."""
    left = xp.exp(-xp.where(values > 0, scale * values, 0 * values))
    return left, xp.where(left > 0, -scale * left, 0 * left), -values * left


def progress(xp, values, scale):
    """(1 - exp(-scale v)) / v, which is scale where v is 0, with its slopes."""
    x = xp.where(values > 0, scale * values, 0 * values)
    safe, left = xp.where(values > 0, values, 0 * values + 1), xp.exp(-x)
    near = 1e-30
    found = xp.where(x > near, -xp.expm1(-x) / safe, scale + 0 * values)
    series = scale**2 * (-1 / 2 + x * (1 / 3 - x * (1 / 8 - x * (1 / 30 - x * (1 / 144 - x / 840)))))
    direct = (xp.where(left > 0, x * left, 0 * left) + xp.expm1(-x)) / safe**2
    return found, xp.where(x < 0.05, series, direct), left


def _slopes(xp, kind, values, scale):
    """Divided differences of f between eigenvalues, [..., n, n], and the slopes of f in scale, [..., n]: the derivative of a
    function of a symmetric matrix is V (divided o V^T dM V) V^T (Daleckii and Krein 1965)."""
    at, _, by_scale = kind(xp, values, scale[..., None])
    gap, middle = values[:, None] - values[None, :], (values[:, None] + values[None, :]) / 2
    is_near = xp.abs(gap) <= xp.finfo(values.dtype).eps ** (1 / 3) * middle
    slope = kind(xp, middle, scale[..., None, None])[1]
    difference = at[..., :, None] - at[..., None, :]
    return xp.where(is_near, slope, difference / xp.where(is_near, gap * 0 + 1, gap)), by_scale


class LiveFlow:
    """Flow of a live kernel, at live times, or of live vectors."""

    def __init__(self, library, matrix, rate):
        self._library, self.matrix, self._rate = library, library.array(matrix), rate

    def remaining(self, t, vectors):
        """exp(-rate T t) v"""
        return self._apply(remaining, t, vectors)

    def progress(self, t, vectors):
        """T^-1 (I - exp(-rate T t)) v, which is rate t v where T is 0."""
        return self._apply(progress, t, vectors)

    def _apply(self, kind, t, vectors):
        scale = self._library.array(t) * self._rate
        return self._library.spectral(kind, self.matrix, scale) @ self._library.array(vectors)
