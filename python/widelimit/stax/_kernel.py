"""What kernel_fn gives."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Tuple

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Kernel:
    """Kernels of a batch with itself or with another one, as neural-tangents' Kernel has them.

    nngp, ntk    [n1, n2]; behind layers with positions [n1, n2, H, H', W, W', ...], or [n1, n2, H, W, ...] where
                 diagonal_spatial
    cov1, cov2   variances of the inputs, [n1] or [n1, H, H', W, W', ...]; with diagonal_batch=False [n1, n1, ...]; cov2
                 is None where x2 is
    x1_is_x2     whether there was no x2
    is_gaussian  whether outputs are Gaussian given the layer in front, as behind Dense, not behind a nonlinearity
    is_input     whether no layer has been applied
    diagonal_batch, diagonal_spatial  whether cov1 and cov2, or all four, leave out pairs of inputs, or of positions
    shape1, shape2           of the activations that the kernels describe, inputs first
    batch_axis, channel_axis  of those shapes
    origin       of the library's own use: what the kernel was made of
    is_reversed  whether the spatial axes of these arrays come in reversed order, as behind an odd number of convolutions
    """

    nngp: NDArray[Any]
    ntk: NDArray[Any]
    cov1: NDArray[Any]
    cov2: NDArray[Any] | None
    x1_is_x2: bool
    is_gaussian: bool
    is_reversed: bool
    is_input: bool
    diagonal_batch: bool
    diagonal_spatial: bool
    shape1: Tuple[int, ...]
    shape2: Tuple[int, ...]
    batch_axis: int
    channel_axis: int
    # What it was made of, for kernel_fn(kernel).
    origin: Any = field(default=None, repr=False, compare=False)

    def replace(self, **changes: Any) -> Kernel:
        """The kernel with other fields. kernel_fn() does not take what comes out."""
        return replace(self, **{"origin": None, **changes})


FIELDS = tuple(name for name in Kernel.__dataclass_fields__ if name != "origin")
ARRAYS = ("nngp", "ntk", "cov1", "cov2")


class _Rest:
    """What a Kernel is beside its arrays, for JAX's trees: equal where the numbers are, and made by the same network."""

    def __init__(self, facts, origin):
        self.facts, self.origin = facts, origin

    def __eq__(self, other):
        return isinstance(other, _Rest) and self.facts == other.facts and (self.origin or [None])[0] is (other.origin or [None])[0]

    def __hash__(self):
        return hash(tuple(self.facts.items()))


_CHILDREN = ("nngp", "ntk", "cov1", "cov2", "x1_is_x2")


@lru_cache(1)
def registered():
    """Tells JAX, where it has been imported, that Kernels are trees of arrays."""
    jax = sys.modules["jax"]

    def flatten(kernel):
        facts = {name: getattr(kernel, name) for name in FIELDS if name not in _CHILDREN}
        module, x1, x2, options = kernel.origin or (None,) * 4
        origin = None if kernel.origin is None else (module, options)
        return ([getattr(kernel, name) for name in _CHILDREN], (x1, x2)), _Rest(facts, origin)

    def unflatten(rest, children):
        arrays, (x1, x2) = children
        origin = None if rest.origin is None else (rest.origin[0], x1, x2, rest.origin[1])
        return Kernel(**dict(zip(_CHILDREN, arrays)), **rest.facts, origin=origin)

    jax.tree_util.register_pytree_node(Kernel, flatten, unflatten)


def zipped(matrices, shape, is_diagonal, is_reversed, batch_axes):
    """Covariances [batch..., d, d'] (or [batch..., d]) as [batch..., H, H', W, W', ...] (or [batch..., H, W, ...])."""
    order = list(range(len(shape)))[::-1] if is_reversed else list(range(len(shape)))
    if is_diagonal:
        array, axes = matrices.reshape(*matrices.shape[:batch_axes], *shape), order
    else:
        array = matrices.reshape(*matrices.shape[:batch_axes], *shape, *shape)
        axes = [place for axis in order for place in (axis, axis + len(shape))]
    return np.ascontiguousarray(array.transpose(*range(batch_axes), *(batch_axes + axis for axis in axes)))
