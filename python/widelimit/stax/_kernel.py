"""The results of kernel_fn."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Dict, Tuple

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Kernel:
    """Kernels of a batch with itself or with another one, in the form of neural-tangents' Kernel.

    nngp, ntk    [n1, n2]; after layers with positions [n1, n2, H, H', W, W', ...], or [n1, n2, H, W, ...] with
                 diagonal_spatial
    cov1, cov2   variances of the inputs, [n1] or [n1, H, H', W, W', ...]; with diagonal_batch=False [n1, n1, ...]; cov2
                 is None if there is no x2
    x1_is_x2     whether there was no x2
    is_gaussian  whether outputs are Gaussian given the layer before it, as after Dense, but not after a nonlinearity
    is_input     whether no layer has been applied
    diagonal_batch, diagonal_spatial  whether cov1 and cov2, or all four, leave out pairs of inputs, or of positions
    shape1, shape2           of the activations that the kernels describe, inputs first
    batch_axis, channel_axis  of those shapes
    mask1, mask2             of a kernel made by hand: True where a position does not count, arrays that broadcast to shape1
                             and shape2; kernel_fn leaves them None
    origin       for the library's own use: what the kernel was computed from
    is_reversed  whether the spatial axes of these arrays come in reversed order, as after an odd number of convolutions

    The kernel_fn of any layer continues from a kernel made by hand, or changed. factor * kernel and kernel / factor
    are the kernels of outputs times a factor; number + kernel is that of outputs to which number times one standard normal
    variable is added.
    """

    nngp: NDArray[Any]
    ntk: NDArray[Any] | None
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
    mask1: NDArray[np.bool_] | None = None
    mask2: NDArray[np.bool_] | None = None
    # What it was computed from, for kernel_fn(kernel).
    origin: Any = field(default=None, repr=False, compare=False)

    __array_ufunc__ = None  # Products of NumPy's numbers with a kernel are computed by the kernel.

    def replace(self, **changes: Any) -> Kernel:
        """The kernel with other fields."""
        return replace(self, **{"origin": None, **changes})

    def asdict(self) -> Dict[str, Any]:
        """Fields by their names; arrays are not copied."""
        return {name: getattr(self, name) for name in _ALL}

    def astuple(self) -> Tuple[Any, ...]:
        """Fields in their order; arrays are not copied."""
        return tuple(getattr(self, name) for name in _ALL)

    def slice(self, n1_slice: slice, n2_slice: slice) -> Kernel:
        """The kernel of some inputs of either batch; diagonal_batch only (NotImplementedError)."""
        if not self.diagonal_batch:
            raise NotImplementedError("slice: expected a Kernel with diagonal_batch")
        cov2 = (self.cov1 if self.cov2 is None else self.cov2)[n2_slice]
        cov1, shapes = self.cov1[n1_slice], []
        for shape, cov in ((self.shape1, cov1), (self.shape2, cov2)):
            sizes = list(shape)
            sizes[self.batch_axis] = cov.shape[0]
            shapes.append(tuple(sizes))
        return self.replace(nngp=self.nngp[n1_slice, n2_slice], cov1=cov1, cov2=cov2, shape1=shapes[0], shape2=shapes[1],
                            ntk=self.ntk if self.ntk is None or self.ntk.ndim == 0 else self.ntk[n1_slice, n2_slice],
                            mask1=None if self.mask1 is None else self.mask1[n1_slice],
                            mask2=None if self.mask2 is None else self.mask2[n2_slice])

    def reverse(self) -> Kernel:
        """The kernel with the spatial axes of all arrays in the other order."""
        axes = 1 if self.diagonal_batch else 2

        def turned(array, batch_axes):
            if array is None or array.ndim <= batch_axes:
                return array
            spatial = list(range(batch_axes, array.ndim))
            pairs = [spatial[k:k + 2] for k in range(0, len(spatial), 2)] if not self.diagonal_spatial else [[k] for k in spatial]
            return array.transpose(*range(batch_axes), *(axis for pair in pairs[::-1] for axis in pair))

        return self.replace(nngp=turned(self.nngp, 2), ntk=turned(self.ntk, 2), cov1=turned(self.cov1, axes),
                            cov2=turned(self.cov2, axes), is_reversed=not self.is_reversed)

    def _with(self, change, ntk):
        return self.replace(nngp=change(self.nngp), cov1=change(self.cov1), ntk=ntk,
                            cov2=None if self.cov2 is None else change(self.cov2))

    def __mul__(self, other: float) -> Kernel:
        return self._with(lambda array: other**2 * array, None if self.ntk is None else other**2 * self.ntk)

    def __add__(self, other: float) -> Kernel:
        return self._with(lambda array: other**2 + array, self.ntk)

    def __truediv__(self, other: float) -> Kernel:
        return self * (1 / other)

    def __neg__(self) -> Kernel:
        return self

    __rmul__, __radd__, __sub__, __pos__ = __mul__, __add__, __add__, __neg__  # As in neural-tangents, whose signs are those of the weights.


_ALL = tuple(name for name in Kernel.__dataclass_fields__ if name != "origin")
FIELDS = tuple(name for name in _ALL if name not in ("mask1", "mask2"))
ARRAYS = ("nngp", "ntk", "cov1", "cov2")


class _Rest:
    """The part of a Kernel that is not arrays, for JAX's trees: equal if the numbers are, and made by the same network."""

    def __init__(self, facts, origin):
        self.facts, self.origin = facts, origin

    def __eq__(self, other):
        return isinstance(other, _Rest) and self.facts == other.facts and (self.origin or [None])[0] is (other.origin or [None])[0]

    def __hash__(self):
        return hash(tuple(self.facts.items()))


_CHILDREN = ("nngp", "ntk", "cov1", "cov2", "x1_is_x2", "mask1", "mask2")


@lru_cache(1)
def registered():
    """Registers Kernels as trees of arrays with JAX, if it has been imported."""
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
    array = array.transpose(*range(batch_axes), *(batch_axes + axis for axis in axes))
    return np.ascontiguousarray(array) if isinstance(array, np.ndarray) else array


def unzipped(array, shape, is_diagonal, is_reversed, batch_axes):
    """The inverse of zipped(): [batch..., d, d'], or [batch..., d]."""
    order = list(range(len(shape)))[::-1] if is_reversed else list(range(len(shape)))
    places = [order.index(axis) for axis in range(len(shape))]
    axes = places if is_diagonal else [2 * place for place in places] + [2 * place + 1 for place in places]
    array = array.transpose(*range(batch_axes), *(batch_axes + axis for axis in axes))
    positions = int(np.prod(shape))
    return array.reshape(*array.shape[:batch_axes], *[positions] * (1 if is_diagonal else 2))
