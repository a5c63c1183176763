"""The results of kernel_fn."""

from __future__ import annotations

import operator
import sys
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Dict, Optional, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from .._jax import is_of_jax
from ._masks import with_zeros


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
    is_reversed  whether the spatial axes of these arrays come in reversed order, as after an odd number of convolutions

    The kernel_fn of any layer continues from a kernel made by hand, or changed. factor * kernel and kernel / factor
    are the kernels of outputs times a factor; number + kernel is that of outputs to which number times one standard normal
    variable is added. JAX sees a Kernel as a tree of nngp, ntk, cov1, cov2, x1_is_x2, mask1 and mask2.
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

    __array_ufunc__ = None  # Products of NumPy's numbers with a kernel are computed by the kernel.

    def __post_init__(self) -> None:
        if "jax" in sys.modules:
            registered()

    @property
    def origin(self) -> Any:
        """What kernel_fn computed it from, for the library's own use: None for a kernel made by hand or changed."""
        return self.__dict__.get("_origin")

    def from_origin(self, origin: Any) -> Kernel:
        """The same, which remembers what it was computed from; for the library's own use."""
        object.__setattr__(self, "_origin", origin)
        return self

    def replace(self, **changes: Any) -> Kernel:
        """The kernel with other fields."""
        return replace(self, **changes)

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
        """The kernel with the spatial axes of all arrays in the other order. Arrays that only keep the variances of positions are never
        reversed."""
        order = () if self.diagonal_spatial else range((self.nngp.ndim - 2) // 2)[::-1]
        return self._permuted(order).replace(is_reversed=not self.is_reversed)

    def transpose(self, axes: Optional[Sequence[int]] = None) -> Kernel:
        """The kernel with the spatial axes of all arrays in this order, as in neural-tangents: shape1, shape2 and is_reversed stay as they
        are, and without `axes` nothing is changed."""
        return self if axes is None else self._permuted(axes)

    def _permuted(self, order):
        each = 1 if self.diagonal_spatial else 2

        def turned(array, batch_axes):
            if array is None or array.ndim <= batch_axes or not order:
                return array
            return array.transpose(*range(batch_axes), *(batch_axes + each * axis + side for axis in order for side in range(each)))

        return self._of_arrays(turned)

    def _of_arrays(self, change):
        """The kernel with change(array, axes of its batches) of every array."""
        own = 1 if self.diagonal_batch else 2
        return self.replace(nngp=change(self.nngp, 2), ntk=change(self.ntk, 2), cov1=change(self.cov1, own),
                            cov2=change(self.cov2, own))

    def mask(self, mask1: Any, mask2: Any) -> Kernel:
        """The kernel with zeros where one of two positions does not count, and these masks, which have the axes of shape1 and shape2 and
        one channel (NotImplementedError for others); None: everything counts."""
        masks = [self._mask_of_positions(mask) for mask in (mask1, mask2)]
        left, right = masks[0], masks[1] if mask2 is not None else masks[0]
        own = 1 if self.diagonal_batch else 2
        return self.replace(cov1=with_zeros(self.cov1, self._mask_of_pairs(left, left, own)),
                            cov2=None if self.cov2 is None else with_zeros(self.cov2, self._mask_of_pairs(right, right, own)),
                            nngp=with_zeros(self.nngp, self._mask_of_pairs(*masks, 2)),
                            ntk=self.ntk if self.ntk is None or np.ndim(self.ntk) == 0 else with_zeros(
                                self.ntk, self._mask_of_pairs(*masks, 2)), mask1=mask1, mask2=mask2)

    def _mask_of_positions(self, mask):
        """[n, spatial...], in the order of the kernel's arrays."""
        if mask is None:
            return None
        if mask.shape[self.channel_axis] != 1:
            raise NotImplementedError(f"Kernel.mask: expected masks of one channel, got shape {mask.shape}: a kernel has no channels")
        mask = library(mask).moveaxis(mask, (self.batch_axis, self.channel_axis), (0, -1))[..., 0]
        return mask.transpose(0, *range(1, mask.ndim)[::-1]) if self.is_reversed else mask

    def _mask_of_pairs(self, left, right, batch_axes):
        """Where one of two positions does not count, with axes of size 1 where that does not depend on them."""
        return None if left is None and right is None else self._of_pairs(left, right, batch_axes, operator.or_)

    def _of_pairs(self, left, right, batch_axes, join=operator.mul):
        """join() of numbers of positions [n, spatial...] of both sides, in the axes of an array of the kernel; None: nothing of a side."""
        found = None
        for array, side in ((left, 0), (right, 1)):
            if array is None:
                continue
            shape = [array.shape[0]] if batch_axes == 1 else [array.shape[0], 1][::1 - 2 * side]
            for size in array.shape[1:]:
                shape += [size] if self.diagonal_spatial else [size, 1][::1 - 2 * side]
            found = array.reshape(shape) if found is None else join(found, array.reshape(shape))
        return found

    def _variances_of(self, cov):
        """The variances [n, spatial...] among cov1 or cov2."""
        arrays = library(cov)
        batch = [0] if self.diagonal_batch else [0, 0]
        count = (cov.ndim - len(batch)) // (1 if self.diagonal_spatial else 2)
        spatial = [1 + axis for axis in range(count) for _ in range(1 if self.diagonal_spatial else 2)]
        return arrays.einsum(cov, batch + spatial, list(range(1 + count)))

    def dot_general(self, other1: Any, other2: Any, is_lhs: bool, dimension_numbers: Any) -> Kernel:
        """The kernel of products, as jax.lax.dot_general makes them, of the inputs with constant arrays: other1 with those of the first
        batch and other2 with those of the second, on the left if is_lhs; None: no product. ValueError for the channels among the
        contracted and batch axes, NotImplementedError for factors with different numbers of axes."""
        others = [None if other is None else library(self.nngp, other).asarray(other) for other in (other1, other2)]
        given = [other for other in others if other is not None]
        if not given:
            return self
        if len({other.ndim for other in given}) > 1:
            raise NotImplementedError("Kernel.dot_general: expected factors with equally many axes, got "
                                      f"{' and '.join(str(other.ndim) for other in given)}")
        return _Products(self, given[0].ndim, is_lhs, dimension_numbers).of(others)

    def __getitem__(self, index: Any) -> Kernel:
        """The kernel of some inputs and positions: an index of the activations, of slices, tuples or arrays of integers for the batch and
        integers and slices for positions. NotImplementedError for channels and for single inputs."""
        parts = _parts_of_index(index, len(self.shape1))
        of_batch, of_channels = parts[self.batch_axis], parts[self.channel_axis]
        if not (isinstance(of_channels, slice) and of_channels == slice(None)):
            raise NotImplementedError(f"Kernel[...]: axis {self.channel_axis}, the channels: expected ':', got {of_channels!r}")
        if isinstance(of_batch, (int, np.integer)):
            raise NotImplementedError(f"Kernel[...]: axis {self.batch_axis}, the batch: expected a slice, got {of_batch!r}: a kernel "
                                      "always has a batch")
        spatial = [part for axis, part in enumerate(parts) if axis not in (self.batch_axis, self.channel_axis)]
        spatial = spatial[::-1] if self.is_reversed else spatial
        positions = [part for part in spatial for _ in range(1 if self.diagonal_spatial else 2)]

        def chosen(array, batch_axes):
            if array is None or np.ndim(array) == 0:
                return array
            for axis in range(batch_axes):
                array = array[(slice(None),) * axis + (of_batch,)]
            return array[(slice(None),) * batch_axes + tuple(positions)]

        gone = [axis for axis, part in enumerate(parts) if isinstance(part, (int, np.integer))]
        shapes = [np.broadcast_to(np.int8(0), shape)[tuple(parts)].shape for shape in (self.shape1, self.shape2)]
        masks = [None if mask is None else library(mask).broadcast_to(mask, [
            size if axis != self.channel_axis else mask.shape[axis] for axis, size in enumerate(shape)])[tuple(parts)]
            for mask, shape in ((self.mask1, self.shape1), (self.mask2, self.shape2))]
        return self._of_arrays(chosen).replace(shape1=shapes[0], shape2=shapes[1], mask1=masks[0], mask2=masks[1],
                                               **{name: axis - sum(other < axis for other in gone) for name, axis in (
                                                   ("batch_axis", self.batch_axis), ("channel_axis", self.channel_axis))})

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


class _Products:
    """The kernels of products of activations with arrays of `axes` axes, by labels of axes for einsum."""

    def __init__(self, kernel, axes, is_left, dimension_numbers):
        self._kernel, self._is_left, self._count = kernel, is_left, len(kernel.shape1)
        (contracted, batched) = [pair[::-1] if is_left else pair for pair in dimension_numbers]
        inputs, others = ([axis % total for axis in (*contracted[side], *batched[side])] for side, total in ((0, self._count), (1, axes)))
        if kernel.channel_axis in inputs:
            raise ValueError(f"Kernel.dot_general: dimension_numbers: expected other axes than the channels ({kernel.channel_axis})")
        self._met = dict(zip(others, inputs))  # Axes of the input by those of the factor that they meet.
        self._new = [axis for axis in range(axes) if axis not in others]
        shared = [axis % self._count for axis in batched[0]]
        free = [axis for axis in range(self._count) if axis not in inputs]
        new = [("new", axis) for axis in self._new]
        # The axes of the product, in the order of dot_general.
        self._order = shared + (new + free if is_left else free + new)

    def of(self, others):
        """The Kernel of products with two arrays, None for no product."""
        kernel, own = self._kernel, 1 if self._kernel.diagonal_batch else 2
        order = self._order
        fields = {"nngp": self._product(kernel.nngp, 2, others), "ntk": self._product(kernel.ntk, 2, others),
                  "cov1": self._product(kernel.cov1, own, others[:1] * 2), "cov2": self._product(kernel.cov2, own, others[1:] * 2)}
        if kernel.batch_axis not in order:
            return kernel.replace(**fields, is_reversed=False)
        shapes = {name: tuple(self._size(axis, shape, other) for axis in order) for name, shape, other in (
            ("shape1", kernel.shape1, others[0]), ("shape2", kernel.shape2, others[1]))}
        return kernel.replace(**fields, **shapes, is_reversed=False, batch_axis=order.index(kernel.batch_axis),
                              channel_axis=order.index(kernel.channel_axis))

    @staticmethod
    def _size(axis, shape, other):
        return shape[axis] if isinstance(axis, int) else 1 if other is None else other.shape[axis[1]]

    def _product(self, array, batch_axes, others):
        if array is None or np.ndim(array) == 0:
            return array
        kernel, names = self._kernel, {}

        def label(axis, side):
            """One label for an axis of both sides where the array has only its diagonal."""
            is_single = batch_axes == 1 if axis == kernel.batch_axis else kernel.diagonal_spatial
            return names.setdefault((axis, 0 if is_single else side), len(names))

        spatial = [axis for axis in range(self._count) if axis not in (kernel.batch_axis, kernel.channel_axis)]
        spatial = spatial[::-1] if kernel.is_reversed and not kernel.diagonal_spatial else spatial
        own = _in_pairs([kernel.batch_axis], label) + _in_pairs(spatial, label)
        operands = [array, own]
        for side, other in enumerate(others):
            if other is not None:
                operands += [other, [label(self._met.get(axis, ("new", axis)), side) for axis in range(other.ndim)]]
        order = [axis for axis in self._order if axis not in (kernel.batch_axis, kernel.channel_axis)]
        batch = [kernel.batch_axis] if kernel.batch_axis in self._order else []
        present = {name for operand in operands[1::2] for name in operand}
        result = [name for name in _in_pairs(batch + order, label) if name in present]
        return library(*operands[::2]).einsum(*operands, result, optimize=True)


def _in_pairs(axes, label):
    """Labels of both sides of axes, once where they are one."""
    return [name for axis in axes for name in dict.fromkeys((label(axis, 0), label(axis, 1)))]


def library(*arrays: Any) -> Any:
    """jax.numpy if one of the arrays is JAX's, else NumPy."""
    if any(map(is_of_jax, arrays)):
        import jax.numpy as jnp

        return jnp
    return np


def _parts_of_index(index, axes):
    """One part of an index for every axis."""
    parts = list(index) if isinstance(index, tuple) else [index]
    dots = [k for k, part in enumerate(parts) if part is Ellipsis]
    if dots:
        parts[dots[0]:dots[0] + 1] = [slice(None)] * (axes - len(parts) + 1)
    if len(parts) > axes:
        raise IndexError(f"Kernel[...]: expected an index of at most {axes} axes, got {len(parts)}")
    return parts + [slice(None)] * (axes - len(parts))


_ALL = tuple(Kernel.__dataclass_fields__)
FIELDS = tuple(name for name in _ALL if name not in ("mask1", "mask2"))
ARRAYS = ("nngp", "ntk", "cov1", "cov2")


_CHILDREN = ("nngp", "ntk", "cov1", "cov2", "x1_is_x2", "mask1", "mask2")


@lru_cache(1)
def registered():
    """Registers Kernels as trees of arrays with JAX, if it has been imported. What such a tree is made into is a kernel made by hand."""
    facts = tuple(name for name in _ALL if name not in _CHILDREN)

    def flatten(kernel):
        return [getattr(kernel, name) for name in _CHILDREN], tuple(getattr(kernel, name) for name in facts)

    def unflatten(rest, children):
        return Kernel(**dict(zip(_CHILDREN, children)), **dict(zip(facts, rest)))

    sys.modules["jax"].tree_util.register_pytree_node(Kernel, flatten, unflatten)


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
