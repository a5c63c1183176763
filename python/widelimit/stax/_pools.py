"""Pools, norms and dropout: layers without weights that keep channels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence, Tuple

import numpy as np

from .. import layers
from ._diagonal import MAYBE, YES, Diagonal
from ._enums import Padding, choice
from ._module import Module, WithAxes, check_axis
from ._triple import Triple, triple
from ._weights import check_window, positions_after, sizes
from ._widths import FLATTENED


@dataclass
class _Pool(WithAxes):
    name: str
    kind: str
    window: Tuple[int, ...]
    strides: Tuple[int, ...]
    padding: str
    normalize_edges: bool
    batch_axis: int
    channel_axis: int
    in_jax = "pool"
    diagonal = Diagonal(MAYBE)

    def lower(self, value):
        check_window(self.name, value, self.window, self.strides)
        if not self.window:
            return value
        fields = {"window": list(self.window), "strides": list(self.strides), "padding": self.padding}
        shape = tuple(positions_after(*sizes, self.padding) for sizes in zip(value.shape, self.window, self.strides))
        layer = layers.from_fields(self.kind, normalize_edges=True if self.normalize_edges else None, **fields)
        return value.then(layer, shape=shape)


def _pool(name, kind, window_shape, strides, padding, normalize_edges, batch_axis, channel_axis):
    window = sizes(f"{name}: window_shape", window_shape)
    strides = (1,) * len(window) if strides is None else sizes(f"{name}: strides", strides)
    return triple(_Pool(name, kind, window, strides,
                        choice(f"{name}: padding", Padding, padding).name.lower(), normalize_edges, int(batch_axis),
                        int(channel_axis)))


def AvgPool(window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: Padding | str = "VALID",
            normalize_edges: bool = False, batch_axis: int = 0, channel_axis: int = -1) -> Triple:
    """Averages over windows: [n, spatial..., C] becomes [n, spatial'..., C].

    window_shape, strides  one size for each axis; strides are 1 if None
    padding                'VALID', 'SAME' or 'CIRCULAR'
    normalize_edges        averages at the edges over what is not padding
    ValueError if the number of axes does not fit.
    """
    return _pool("AvgPool", "average_pool", window_shape, strides, padding, normalize_edges, batch_axis, channel_axis)


def SumPool(window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: Padding | str = "VALID",
            batch_axis: int = 0, channel_axis: int = -1) -> Triple:
    """Sums over windows; arguments and errors as in AvgPool()."""
    return _pool("SumPool", "sum_pool", window_shape, strides, padding, False, batch_axis, channel_axis)


@dataclass
class _GlobalPool(WithAxes):
    name: str
    layer: object
    batch_axis: int
    channel_axis: int
    in_jax = "global_pool"
    diagonal = Diagonal(MAYBE, YES)

    def lower(self, value):
        return value.then(*([self.layer] if value.shape else []), **value.without_positions())


def GlobalAvgPool(batch_axis: int = 0, channel_axis: int = -1) -> Triple:
    """The mean over all positions that count: [n, spatial..., C] becomes [n, C]. Vectors stay as they are."""
    return triple(_GlobalPool("GlobalAvgPool", layers.global_average_pool(), int(batch_axis), int(channel_axis)))


def GlobalSumPool(batch_axis: int = 0, channel_axis: int = -1) -> Triple:
    """The sum over all positions that count: [n, spatial..., C] becomes [n, C]. Vectors stay as they are."""
    return triple(_GlobalPool("GlobalSumPool", layers.global_sum_pool(), int(batch_axis), int(channel_axis)))


@dataclass
class _Flatten(Module):
    batch_axis: int
    batch_axis_out: int
    in_jax = "flatten"
    name = "Flatten"
    diagonal = Diagonal(YES, YES)

    @property
    def told_axes(self):
        return self.batch_axis, None

    def lower(self, value):
        check_axis(self.name, value, "batch_axis", self.batch_axis)
        changes = {**value.without_positions(), "is_gaussian": False, "batch_axis": self.batch_axis_out,
                   "channel_axis": 1 - self.batch_axis_out}
        if not value.shape:
            return value.then(**changes)
        channels = value.channels * int(np.prod(value.shape))
        return value.then(layers.flatten(), channels=channels, places=value.places + (FLATTENED,), **changes)


def Flatten(batch_axis: int = 0, batch_axis_out: int = 0) -> Triple:
    """Positions become channels: [n, spatial..., C] becomes [n, prod(spatial) C], or its transpose with batch_axis_out=1."""
    if batch_axis_out not in (-2, -1, 0, 1):
        raise ValueError(f"Flatten: batch_axis_out: expected 0 or 1, got {batch_axis_out}")
    return triple(_Flatten(int(batch_axis), int(batch_axis_out) % 2))


class _Identity(Module):
    in_jax = "identity"
    name = "Identity"
    is_pointwise = True

    def apply(self, value):
        return value


def Identity() -> Triple:
    """Leaves inputs unchanged."""
    return triple(_Identity())


@dataclass
class _Dropout(Module):
    keep: float
    in_jax = "dropout"
    name = "Dropout"
    draws = True

    def lower(self, value):
        return value.then(layers.dropout(self.keep), is_gaussian=False)


def Dropout(rate: float, mode: str = "train") -> Triple:
    """Keeps a unit with probability 0 < rate <= 1 and divides it by that; with mode='test' it does nothing. ValueError for other
    values."""
    if not 0 < rate <= 1:
        raise ValueError(f"Dropout: rate, the probability to keep a unit: expected 0 < rate <= 1, got {rate}")
    if mode not in ("train", "test"):
        raise ValueError(f"Dropout: mode: expected 'train' or 'test', got {mode!r}")
    return triple(_Dropout(float(rate)) if mode == "train" else _Identity())


@dataclass
class _LayerNorm(WithAxes):
    axes: Tuple[int, ...]
    eps: float
    batch_axis: int
    channel_axis: int
    in_jax = "layer_norm"
    name = "LayerNorm"

    def lower(self, value):
        count = len(value.shape) + 2
        axes = {axis % count for axis in self.axes if -count <= axis < count}
        if len(axes) != len(self.axes) or value.batch_axis in axes:
            raise ValueError(f"LayerNorm: axis={self.axes}: expected different axes of shape {value.full_shape}, the "
                             "batch not among them")
        if value.channel_axis not in axes:
            raise ValueError(f"LayerNorm: axis={self.axes}: expected the channels (axis {value.channel_axis}) among the "
                             "axes: without them there is no kernel in the limit")
        spatial = [value.spatial_axes.index(axis) for axis in sorted(axes - {value.channel_axis})]
        named = ["space"] if spatial and len(spatial) == len(value.shape) else spatial
        return value.then(layers.layer_norm(["channels", *named], self.eps))


def LayerNorm(axis: int | Sequence[int] = -1, eps: float = 1e-12, batch_axis: int = 0,
              channel_axis: int = -1) -> Triple:
    """Layer normalisation over the channels, and over those spatial axes that are named.

    axis: one or several axes, including the channels; eps is added to the variance. With the batch among them, variances are means over
    each batch too, and the layer is one of functions of kernels (layer()).
    ValueError for axes that do not exist, and axes without the channels, which have no limit.
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    module = _LayerNorm(axes, eps, int(batch_axis), int(channel_axis))
    if batch_axis in axes:
        from ._batchwise import layer_norm

        return layer_norm(module)
    return triple(module)
