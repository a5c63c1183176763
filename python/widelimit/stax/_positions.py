"""Linear maps over positions: resizing, slices, products with constant arrays, sums over neighbours in a graph."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Callable, Optional, Sequence, Tuple

import numpy as np
from numpy.typing import ArrayLike

from .. import layers
from .._arrays import scalar_or_array
from ._diagonal import NO, Diagonal
from ._enums import AggregateImplementation, choice
from ._module import WithAxes
from ._patterns import Patterns
from ._triple import Triple, triple


@dataclass
class _ImageResize(WithAxes):
    size: Tuple[int, ...]
    method: str
    antialias: bool
    batch_axis: int
    channel_axis: int
    in_jax = "resize"
    name = "ImageResize"

    @property
    def diagonal(self):
        axes = len(self.size)
        ours = (self.batch_axis % axes, self.channel_axis % axes)
        return Diagonal(NO) if any(s != -1 for k, s in enumerate(self.size) if k not in ours) else Diagonal()

    def lower(self, value):
        if len(self.size) != len(value.shape) + 2:
            raise ValueError(f"ImageResize: shape: expected {len(value.shape) + 2} sizes for {value.full_shape}, got "
                             f"{self.size}")
        if self.size[value.channel_axis] not in (-1, value.channels):
            raise ValueError(f"ImageResize: shape: expected -1 for the channels, axis {value.channel_axis}, got "
                             f"{self.size}")
        if self.size[value.batch_axis] != -1:
            raise NotImplementedError(f"ImageResize: shape: expected -1 for the batch, got {self.size}")
        wanted = tuple(self.size[axis] for axis in value.spatial_axes)
        if all(size == -1 for size in wanted) and not value.is_reversed:
            return value
        shape = tuple(old if size == -1 else int(size) for size, old in zip(wanted, value.shape))
        # neural-tangents takes the sizes in the order that its axes have after an odd number of convolutions.
        shape = shape[::-1] if value.is_reversed else shape
        layer = layers.from_fields("image_resize", size=list(shape), method=self.method, antialias=self.antialias)
        return value.then(layer, shape=shape)


_METHODS = {"nearest": "nearest", **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), "linear"),
            **dict.fromkeys(("cubic", "bicubic", "tricubic"), "cubic")}


def ImageResize(shape: Sequence[int], method: Any, antialias: bool = True, precision: Any = None, batch_axis: int = 0,
                channel_axis: int = -1) -> Triple:
    """Resizing to `shape`, batch and channels included, -1 to leave an axis; 'linear', 'nearest' or 'cubic', or a
    jax.image.ResizeMethod. antialias: smooths where an axis shrinks, as jax.image does. [n, spatial..., C] becomes
    [n, *shape[1:-1], C]. With a size for the batch, the layer is one of functions of kernels (layer()), which needs JAX. ValueError for
    another number of axes and for sizes of the channels, NotImplementedError for other methods, NetworkError for sizes below 1."""
    word = str(getattr(method, "name", method)).lower()
    if word not in _METHODS:
        raise NotImplementedError(f"ImageResize: method: expected 'linear', 'nearest' or 'cubic', got {method!r}; "
                                  "layers.from_fields('positions_map', ...) takes any map")
    module = _ImageResize(tuple(shape), _METHODS[word], bool(antialias), int(batch_axis), int(channel_axis))
    if len(module.size) > 1 and module.size[batch_axis] != -1:
        from ._batchwise import image_resize

        return image_resize(module)
    return triple(module)


class _SliceMaker:
    """Gives what is between its brackets to Index: stax.Index(stax.Slice[:, 1:4, ::2])."""

    def __getitem__(self, index):
        return index


Slice = _SliceMaker()


@dataclass
class _Index(WithAxes):
    index: Tuple[Any, ...]
    batch_axis: int
    channel_axis: int
    in_jax = "index"
    name = "Index"

    def lower(self, value):
        parts = self._parts(len(value.shape) + 2)
        if not isinstance(parts[value.batch_axis], slice):
            raise NotImplementedError("Index: the batch: expected a slice, as neural-tangents does")
        if parts[value.channel_axis] != slice(None):
            raise NotImplementedError("Index: the channels: expected ':', as neural-tangents does")
        if parts[value.batch_axis] != slice(None):
            value = replace(value, rows=value.rows + (parts[value.batch_axis],))
        gone = [axis for axis, part in enumerate(parts) if not isinstance(part, slice)]
        spatial = [parts[axis] for axis in value.spatial_axes]
        value = self._sliced(value, [part if isinstance(part, slice) else slice(None) for part in spatial])
        for axis in reversed(range(len(spatial))):
            if not isinstance(spatial[axis], slice):
                value = self._without(value, axis, int(spatial[axis]))
        return replace(value, batch_axis=value.batch_axis - sum(axis < value.batch_axis for axis in gone),
                       channel_axis=value.channel_axis - sum(axis < value.channel_axis for axis in gone))

    def _parts(self, axes):
        parts = list(self.index)
        dots = [k for k, part in enumerate(parts) if part is Ellipsis]
        if dots:
            parts[dots[0]:dots[0] + 1] = [slice(None)] * (axes - len(parts) + 1)
        parts += [slice(None)] * (axes - len(parts))
        if len(parts) != axes or not all(isinstance(p, (slice, int, np.integer)) for p in parts):
            raise NotImplementedError(f"Index: expected integers and slices for at most {axes} axes, got {self.index}")
        return parts

    @staticmethod
    def _sliced(value, slices):
        if all(part == slice(None) for part in slices):
            return value
        layer = layers.from_fields("slice", begin=[p.start for p in slices], end=[p.stop for p in slices],
                                   step=[p.step for p in slices])
        return value.then(layer, shape=tuple(len(range(n)[p]) for n, p in zip(value.shape, slices)))

    @staticmethod
    def _without(value, axis, position):
        shape = value.shape[:axis] + value.shape[axis + 1:]
        return value.then(layers.from_fields("index", axis=axis, position=position), shape=shape)


def Index(idx: Any, batch_axis: int = 0, channel_axis: int = -1) -> Triple:
    """Slices and single positions of the spatial axes, and slices of the batch; idx: as in NumPy, e.g.
    stax.Slice[::2, 1:4, 2]. An axis with a single position is removed. NetworkError for positions that do not exist,
    NotImplementedError for channels and for anything but integers and slices."""
    return triple(_Index(idx if isinstance(idx, tuple) else (idx,), int(batch_axis), int(channel_axis)))


@dataclass
class _DotGeneral(WithAxes):
    other: np.ndarray
    contracted: Tuple[Tuple[int, ...], Tuple[int, ...]]  # Axes of the input, and of the other factor.
    batched: Tuple[Tuple[int, ...], Tuple[int, ...]]
    is_left: bool  # Whether the other factor is on the left.
    batch_axis: int
    channel_axis: int
    in_jax = "dot_general"
    name = "DotGeneral"

    @property
    def diagonal(self):
        return Diagonal(NO) if self.contracted[0] else Diagonal()

    def lower(self, value):
        if self.other.ndim == 0:
            return self._scaled(value)
        axes = len(value.shape) + 2
        inner = [axis % axes for axis in (*self.contracted[0], *self.batched[0])]
        if value.channel_axis in inner:
            raise ValueError(f"DotGeneral: dimension_numbers: expected other axes than the channels ({value.channel_axis})")
        if value.batch_axis in inner:
            raise NotImplementedError("DotGeneral: dimension_numbers: expected other axes than the batch; multiply the "
                                      "inputs or the kernels instead")
        matrix, shape, changes = self._map(value)
        if not shape:
            layer = layers.from_fields("positions_map", matrix=matrix.tolist())
            return value.then(layer, layers.from_fields("index", axis=0, position=0), shape=(), is_reversed=False, **changes)
        layer = layers.from_fields("positions_map", matrix=matrix.tolist(), shape=list(shape))
        return value.then(layer, shape=shape, is_reversed=False, **changes)

    def _scaled(self, value):
        factor = float(self.other)
        return value.then(layers.sum((factor, [])), is_reversed=False)

    def _map(self, value):
        """The matrix over positions, the spatial sizes after it, and where batch and channels are then."""
        sizes = list(value.full_shape)
        count = int(np.prod(value.shape))
        sizes[value.batch_axis], sizes[value.channel_axis] = 1, count
        # The image of every position, each in its own channel.
        basis = np.moveaxis(np.eye(count).reshape(*value.shape, count)[None], (0, -1),
                            (value.batch_axis, value.channel_axis))
        labels, order = self._labels(len(sizes))
        images = np.einsum(basis, labels[0], self.other, labels[1], order, optimize=True)
        batch, channels = order.index(value.batch_axis), order.index(value.channel_axis)
        images = np.moveaxis(images, (batch, channels), (0, -1))[0]
        shape = images.shape[:-1]
        return images.reshape(-1, count), shape, {"batch_axis": batch, "channel_axis": channels}

    def _labels(self, axes):
        """Labels for einsum of the axes of the input and of the other factor, and of the product's as dot_general orders them."""
        ours = list(range(axes))
        theirs = [axes + k for k in range(self.other.ndim)]
        for pairs in (self.contracted, self.batched):
            for mine, other in zip(*pairs):
                theirs[other % self.other.ndim] = mine % axes
        shared = [axis % axes for axis in self.batched[0]]
        gone = {axis % axes for axis in self.contracted[0]} | set(shared)
        free, new = [axis for axis in ours if axis not in gone], [label for label in theirs if label >= axes]
        return (ours, theirs), shared + (new + free if self.is_left else free + new)


def DotGeneral(*, lhs: ArrayLike | None = None, rhs: ArrayLike | None = None,
               dimension_numbers: Any = (((), ()), ((), ())), precision: Any = None, batch_axis: int = 0,
               channel_axis: int = -1) -> Triple:
    """A product with a constant array over spatial axes, like jax.lax.dot_general. Axes that it adds are positions.

    lhs, rhs           the constant factor on that side of the inputs; without either nothing is changed
    dimension_numbers  ((contracted axes of the left, of the right), (batch axes of the left, of the right))
    With the batch among the axes, the layer is one of functions of kernels (layer()); after products over the batch there is none.
    ValueError for both factors and for the channels among the axes.
    """
    if lhs is not None and rhs is not None:
        raise ValueError("DotGeneral: expected at most one of lhs and rhs")
    other = scalar_or_array(1.0 if lhs is None and rhs is None else rhs if lhs is None else lhs, "DotGeneral: the factor")
    if not np.isfinite(other).all():
        raise ValueError("DotGeneral: the factor: expected finite numbers")
    is_left = rhs is None
    contracted, batched = (tuple(tuple(axes) for axes in (pair[::-1] if is_left else pair)) for pair in dimension_numbers)
    module = _DotGeneral(other, contracted, batched, is_left, int(batch_axis), int(channel_axis))
    if batch_axis in contracted[0] + batched[0]:
        from ._batchwise import dot_general

        return dot_general(module, dimension_numbers)
    return triple(module)


@dataclass
class _Aggregate(WithAxes):
    axes: Optional[Tuple[int, ...]]
    patterns: Patterns
    batch_axis: int
    channel_axis: int
    name = "Aggregate"
    in_jax = "aggregate"
    diagonal = Diagonal(NO, NO)

    def lower(self, value):
        if not value.has_patterns:
            return value
        if value.rows:
            raise NotImplementedError("Aggregate: expected no slices of the batch before it, as patterns have one entry an "
                                      "input")
        self.axes_among(len(value.shape))
        return value.then(layers.from_fields("aggregate"))

    def axes_among(self, count):
        """The numbers, among `count` axes of positions, of those over which it sums."""
        total = count + 2
        spatial = [axis for axis in range(total) if axis not in (self.batch_axis % total, self.channel_axis % total)]
        axes = spatial if self.axes is None else sorted(axis % total for axis in self.axes if -total <= axis < total)
        if not axes or len(set(axes)) != len(axes) or not set(axes) <= set(spatial) or (
                self.axes is not None and len(axes) != len(self.axes)):
            raise ValueError(f"Aggregate: aggregate_axis={self.axes}: expected axes of positions, of {spatial} where inputs have "
                             f"{total} axes")
        return tuple(spatial.index(axis) for axis in axes)


def Aggregate(aggregate_axis: int | Sequence[int] | None = None, batch_axis: int = 0, channel_axis: int = -1,
              to_dense: Callable[..., Any] | None = None,
              implementation: AggregateImplementation | str = "DENSE") -> Triple:
    """Sums over neighbours in a graph, whose nodes are the positions along some axes (None: all).

    kernel_fn takes the graphs as pattern=(pattern1, pattern2), apply_fn as pattern: adjacency arrays [n, sizes of the axes..., the
    same sizes...], the sources first, or for 'SPARSE' integers [n, edges, axes, 2], [n, edges, 2] for one axis; without graphs
    nothing is changed. ValueError for axes that are not those of positions, and patterns of another shape."""
    axes = None if aggregate_axis is None else (aggregate_axis,) if isinstance(aggregate_axis, int) else tuple(aggregate_axis)
    kind = choice("Aggregate: implementation", AggregateImplementation, implementation)
    return triple(_Aggregate(axes, Patterns(kind == AggregateImplementation.SPARSE, to_dense), int(batch_axis),
                             int(channel_axis)))
