"""Linear layers, pools, norms and maps over positions."""

from dataclasses import dataclass, replace
from typing import Any, Optional, Tuple

import numpy as np

from .. import layers
from ._module import (Module, check_batch_axis, check_channel_axis, parametrisation, variance)
from ._triple import triple
from ._widths import FLATTENED


@dataclass
class _Dense(Module):
    out_dim: int
    W_std: float
    b_std: Optional[float]
    channel_axis: int
    parameterization: str
    s: Tuple[float, float]
    name = "Dense"

    def lower(self, value):
        check_channel_axis(self.name, value, self.channel_axis)
        fields = parametrisation(self.name, self.parameterization, self.s, value.channels, self.b_std)
        layer = layers.from_fields("dense", weight_variance=variance(self.W_std), bias_variance=variance(self.b_std),
                                   **fields)
        width = int(self.out_dim * (self.s[1] if fields else 1))
        return value.then(layer, channels=width, places=value.places + (width,))


def Dense(out_dim, W_std=1.0, b_std=None, batch_axis=0, channel_axis=-1, parameterization="ntk", s=(1, 1)):
    """A dense layer at every position."""
    check_batch_axis("Dense", batch_axis)
    return triple(_Dense(int(out_dim), W_std, b_std, channel_axis, parameterization, tuple(s)))


def _padding(name, padding):
    if str(padding).lower() not in ("same", "valid", "circular"):
        raise NotImplementedError(f"{name}: padding: expected 'SAME', 'VALID' or 'CIRCULAR', got {padding!r}")
    return str(padding).lower()


def _positions_behind(size, window, stride, padding):
    return (size - window) // stride + 1 if padding == "valid" else -(-size // stride)


def _positions_behind_transposed(size, window, stride, padding):
    return size * stride + (max(window - stride, 0) if padding == "valid" else 0)


def _check_axes(name, value, window, strides):
    if len(window) != len(value.shape) or len(strides) != len(value.shape):
        raise ValueError(f"{name}: expected a window and strides of {len(value.shape)} axes for shape "
                         f"{value.full_shape}, got {tuple(window)} and {tuple(strides)}")


@dataclass
class _Convolution(Module):
    name: str
    kind: str
    out_chan: int
    filter_shape: Tuple[int, ...]
    strides: Tuple[int, ...]
    padding: str
    W_std: float
    b_std: Optional[float]
    parameterization: str
    s: Tuple[float, float]
    input_channel_axis: Optional[int]

    def lower(self, value):
        _check_axes(self.name, value, self.filter_shape, self.strides)
        fields = parametrisation(self.name, self.parameterization, self.s, value.channels, self.b_std)
        layer = layers.from_fields(self.kind, filter=list(self.filter_shape), strides=list(self.strides),
                                   padding=self.padding, weight_variance=variance(self.W_std),
                                   bias_variance=variance(self.b_std), **fields)
        behind = _positions_behind_transposed if self.kind == "conv_transpose" else _positions_behind
        shape = tuple(behind(*sizes, self.padding) for sizes in zip(value.shape, self.filter_shape, self.strides))
        width = int(self.out_chan * (self.s[1] if fields else 1))
        return value.then(layer, shape=shape, channels=width, places=value.places + (width,),
                          reversed_axes=not value.reversed_axes)


def _layout(name, dimension_numbers):
    """The axis of channels that convolution dimension numbers such as ('NCHW', 'OIHW', 'NCHW') say, or None."""
    if dimension_numbers is None:
        return None
    try:
        left, _, out = dimension_numbers
        axis = left.index("C")
    except (TypeError, ValueError, AttributeError):
        raise NotImplementedError(f"{name}: dimension_numbers: expected three strings such as ('NHWC', 'HWIO', "
                                  f"'NHWC'), got {dimension_numbers!r}") from None
    if left != out or left[0] != "N" or axis not in (1, len(left) - 1):
        raise NotImplementedError(f"{name}: dimension_numbers: expected inputs and outputs of one layout, batch first "
                                  f"and channels second or last, got {dimension_numbers!r}")
    return axis


def _convolution(name, kind, out_chan, filter_shape, strides, padding, W_std, b_std, dimension_numbers,
                 parameterization, s):
    strides = (1,) * len(filter_shape) if strides is None else tuple(strides)
    return triple(_Convolution(name, kind, int(out_chan), tuple(filter_shape), strides, _padding(name, padding), W_std,
                               b_std, parameterization, tuple(s), _layout(name, dimension_numbers)))


def Conv(out_chan, filter_shape, strides=None, padding="VALID", W_std=1.0, b_std=None, dimension_numbers=None,
         parameterization="ntk", s=(1, 1)):
    """A convolution."""
    return _convolution("Conv", "conv", out_chan, filter_shape, strides, padding, W_std, b_std, dimension_numbers,
                        parameterization, s)


def ConvTranspose(out_chan, filter_shape, strides=None, padding="VALID", W_std=1.0, b_std=None,
                  dimension_numbers=None, parameterization="ntk", s=(1, 1)):
    """A transposed convolution."""
    return _convolution("ConvTranspose", "conv_transpose", out_chan, filter_shape, strides, padding, W_std, b_std,
                        dimension_numbers, parameterization, s)


def ConvLocal(out_chan, filter_shape, strides=None, padding="VALID", W_std=1.0, b_std=None, dimension_numbers=None,
              parameterization="ntk", s=(1, 1)):
    """A convolution whose weights are not shared between positions."""
    return _convolution("ConvLocal", "local_conv", out_chan, filter_shape, strides, padding, W_std, b_std,
                        dimension_numbers, parameterization, s)


@dataclass
class _Pool(Module):
    name: str
    kind: str
    window: Tuple[int, ...]
    strides: Tuple[int, ...]
    padding: str
    normalize_edges: bool
    channel_axis: int

    def lower(self, value):
        check_channel_axis(self.name, value, self.channel_axis)
        _check_axes(self.name, value, self.window, self.strides)
        layer = layers.from_fields(self.kind, window=list(self.window), strides=list(self.strides),
                                   padding=self.padding, normalize_edges=True if self.normalize_edges else None)
        shape = tuple(_positions_behind(*sizes, self.padding) for sizes in zip(value.shape, self.window, self.strides))
        return value.then(layer, shape=shape)


def _pool(name, kind, window_shape, strides, padding, normalize_edges, batch_axis, channel_axis):
    check_batch_axis(name, batch_axis)
    strides = (1,) * len(window_shape) if strides is None else tuple(strides)
    return triple(_Pool(name, kind, tuple(window_shape), strides, _padding(name, padding), normalize_edges,
                        channel_axis))


def AvgPool(window_shape, strides=None, padding="VALID", normalize_edges=False, batch_axis=0, channel_axis=-1):
    """Averages over windows, by default with strides 1."""
    return _pool("AvgPool", "average_pool", window_shape, strides, padding, normalize_edges, batch_axis, channel_axis)


def SumPool(window_shape, strides=None, padding="VALID", batch_axis=0, channel_axis=-1):
    """Sums over windows, by default with strides 1."""
    return _pool("SumPool", "sum_pool", window_shape, strides, padding, False, batch_axis, channel_axis)


@dataclass
class _GlobalPool(Module):
    name: str
    layer: object
    channel_axis: int

    def lower(self, value):
        check_channel_axis(self.name, value, self.channel_axis)
        return value.then(self.layer, shape=(), channel_axis=1)


def GlobalAvgPool(batch_axis=0, channel_axis=-1):
    """The mean over all positions."""
    check_batch_axis("GlobalAvgPool", batch_axis)
    return triple(_GlobalPool("GlobalAvgPool", layers.global_average_pool(), channel_axis))


def GlobalSumPool(batch_axis=0, channel_axis=-1):
    """The sum over all positions."""
    check_batch_axis("GlobalSumPool", batch_axis)
    return triple(_GlobalPool("GlobalSumPool", layers.global_sum_pool(), channel_axis))


@dataclass
class _Flatten(Module):
    name = "Flatten"

    def lower(self, value):
        if not value.shape:
            return value
        channels = value.channels * int(np.prod(value.shape))
        return value.then(layers.flatten(), shape=(), channels=channels, channel_axis=1,
                          places=value.places + (FLATTENED,))


def Flatten(batch_axis=0, batch_axis_out=0):
    """Positions become channels."""
    check_batch_axis("Flatten", batch_axis)
    check_batch_axis("Flatten", batch_axis_out)
    return triple(_Flatten())


class _Identity(Module):
    name = "Identity"

    def apply(self, value):
        return value


def Identity():
    """Nothing."""
    return triple(_Identity())


@dataclass
class _Dropout(Module):
    keep: float
    name = "Dropout"

    def lower(self, value):
        return value.then(layers.dropout(self.keep))


def Dropout(rate, mode="train"):
    """Keeps a unit with probability `rate` while training."""
    if not 0 < rate <= 1:
        raise ValueError(f"Dropout: rate, the probability to keep a unit: expected 0 < rate <= 1, got {rate}")
    if mode not in ("train", "test"):
        raise ValueError(f"Dropout: mode: expected 'train' or 'test', got {mode!r}")
    return triple(_Dropout(float(rate)) if mode == "train" else _Identity())


@dataclass
class _LayerNorm(Module):
    axes: Tuple[int, ...]
    eps: float
    channel_axis: int
    name = "LayerNorm"

    def lower(self, value):
        check_channel_axis(self.name, value, self.channel_axis)
        count = len(value.shape) + 2
        axes = {axis % count for axis in self.axes if -count <= axis < count}
        if len(axes) != len(self.axes) or 0 in axes:
            raise ValueError(f"LayerNorm: axis={self.axes}: expected different axes among 1 .. {count - 1}")
        if value.channel_axis not in axes:
            raise NotImplementedError("LayerNorm: expected the channels among the axes, as neural-tangents does")
        spatial = sorted(axis - 1 - (axis > value.channel_axis) for axis in axes - {value.channel_axis})
        return value.then(layers.layer_norm(["channels", *spatial], self.eps))


def LayerNorm(axis=-1, eps=1e-12, batch_axis=0, channel_axis=-1):
    """Layer normalisation over the channels, and over spatial axes where they are named."""
    check_batch_axis("LayerNorm", batch_axis)
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    return triple(_LayerNorm(axes, eps, channel_axis))


@dataclass
class _ImageResize(Module):
    size: Tuple[int, ...]
    method: str
    antialias: bool
    channel_axis: int
    name = "ImageResize"

    def lower(self, value):
        check_channel_axis(self.name, value, self.channel_axis)
        if len(self.size) != len(value.shape) + 2:
            raise ValueError(f"ImageResize: shape: expected {len(value.shape) + 2} sizes for {value.full_shape}, got "
                             f"{self.size}")
        wanted = [size for k, size in enumerate(self.size) if k not in (0, value.channel_axis)]
        # neural-tangents takes the sizes in the order that its axes have behind an odd number of convolutions.
        given = wanted[::-1] if value.reversed_axes else wanted
        shape = tuple(old if size == -1 else int(size) for size, old in zip(given, value.shape))
        layer = layers.from_fields("image_resize", size=[int(size) for size in given], method=self.method,
                                   antialias=self.antialias)
        return value.then(layer, shape=shape)


def ImageResize(shape, method, antialias=True, precision=None, batch_axis=0, channel_axis=-1):
    """Resizing to `shape`, batch and channels included, -1 to leave an axis; 'linear', 'nearest' or 'cubic'."""
    check_batch_axis("ImageResize", batch_axis)
    name = {"bilinear": "linear", "trilinear": "linear", "triangle": "linear", "bicubic": "cubic"}.get(
        str(method).lower(), str(method).lower())
    if name not in ("linear", "nearest", "cubic"):
        raise NotImplementedError(f"ImageResize: method: expected 'linear', 'nearest' or 'cubic', got {method!r}")
    return triple(_ImageResize(tuple(shape), name, bool(antialias), channel_axis))


class _SliceMaker:
    def __getitem__(self, index):
        return index


Slice = _SliceMaker()  # Slice[:, 1:4, ::2] for Index.


@dataclass
class _Index(Module):
    index: Tuple[Any, ...]
    channel_axis: int
    name = "Index"

    def lower(self, value):
        check_channel_axis(self.name, value, self.channel_axis)
        parts = self._parts(len(value.shape) + 2)
        if parts[0] != slice(None):
            raise NotImplementedError("Index: the batch: expected ':'; index the inputs or the kernel instead")
        if parts[value.channel_axis] != slice(None):
            raise NotImplementedError("Index: the channels: expected ':', as neural-tangents does")
        spatial = [part for k, part in enumerate(parts) if k not in (0, value.channel_axis)]
        value = self._sliced(value, [part if isinstance(part, slice) else slice(None) for part in spatial])
        for axis in reversed(range(len(spatial))):
            if not isinstance(spatial[axis], slice):
                value = self._without(value, axis, int(spatial[axis]))
        return value

    def _parts(self, axes):
        parts = list(self.index)
        if Ellipsis in parts:
            at = parts.index(Ellipsis)
            parts[at:at + 1] = [slice(None)] * (axes - len(parts) + 1)
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
        channel_axis = value.channel_axis - (axis < value.channel_axis - 1)
        return value.then(layers.from_fields("index", axis=axis, position=position), shape=shape,
                          channel_axis=channel_axis)


def Index(idx, batch_axis=0, channel_axis=-1):
    """Slices and single positions of the spatial axes; idx: as in NumPy, e.g. stax.Slice[:, 1:4, 2]."""
    check_batch_axis("Index", batch_axis)
    return triple(_Index(idx if isinstance(idx, tuple) else (idx,), channel_axis))


@dataclass
class _DotGeneral(Module):
    matrix: np.ndarray
    contracted: Tuple[Tuple[int, ...], Tuple[int, ...]]
    on_left: bool
    name = "DotGeneral"

    def lower(self, value):
        inputs, others = self.contracted[::-1] if self.on_left else self.contracted
        full = (value.channel_axis,) + (0,)
        if len(inputs) != 1 or any(axis % (len(value.shape) + 2) in full for axis in inputs) or self.matrix.ndim != 2:
            raise NotImplementedError("DotGeneral: expected a matrix contracted with one spatial axis of the input and "
                                      "no batch axes; layers.from_fields('positions_map', ...) takes any other map")
        axis = inputs[0] % (len(value.shape) + 2)
        spatial = axis - 1 - (axis > value.channel_axis)
        matrix = self.matrix if others[0] % 2 == 1 else self.matrix.T  # [out, in]
        if matrix.shape[1] != value.shape[spatial]:
            raise ValueError(f"DotGeneral: expected a matrix for {value.shape[spatial]} positions, got shape "
                             f"{self.matrix.shape}")
        value = self._mapped(value, spatial, matrix)
        return self._moved(value, spatial)

    @staticmethod
    def _mapped(value, spatial, matrix):
        maps = [np.eye(size) for size in value.shape]
        maps[spatial] = matrix
        shape = value.shape[:spatial] + (matrix.shape[0],) + value.shape[spatial + 1:]
        return value.then(layers.from_fields("positions_map", matrices=[m.tolist() for m in maps]), shape=shape)

    def _moved(self, value, spatial):
        """The free axis of the matrix comes last (first, if the matrix stands on the left)."""
        if self.on_left:
            raise NotImplementedError("DotGeneral: lhs puts a new axis in front of the batch; use rhs")
        if spatial != len(value.shape) - 1:
            raise NotImplementedError("DotGeneral: expected the last spatial axis to be contracted, as its result is "
                                      "the last axis; layers.from_fields('positions_map', ...) takes any other map")
        axis = len(value.shape)
        return replace(value, channel_axis=axis if value.channel_axis == len(value.shape) + 1 else value.channel_axis)


def DotGeneral(*, lhs=None, rhs=None, dimension_numbers=(((), ()), ((), ())), precision=None, batch_axis=0,
               channel_axis=-1):
    """A product with a matrix over a spatial axis, as jax.lax.dot_general; the new axis is the last one."""
    check_batch_axis("DotGeneral", batch_axis)
    if (lhs is None) == (rhs is None):
        raise ValueError("DotGeneral: expected either lhs or rhs")
    contracted, batched = dimension_numbers
    if any(len(axes) for axes in batched):
        raise NotImplementedError("DotGeneral: expected dimension_numbers without batch axes")
    matrix = np.asarray(rhs if lhs is None else lhs, float)
    return triple(_DotGeneral(matrix, tuple(tuple(axes) for axes in contracted), lhs is not None))


@dataclass
class _Aggregate(Module):
    aggregate_axis: Any
    channel_axis: int
    name = "Aggregate"

    def lower(self, value):
        check_channel_axis(self.name, value, self.channel_axis)
        axes = self.aggregate_axis
        axes = None if axes is None else [axes] if isinstance(axes, int) else list(axes)
        if len(value.shape) != 1 or (axes is not None and [axis % 3 for axis in axes] != [1]):
            raise NotImplementedError("Aggregate: expected inputs [n, nodes, channels] and aggregate_axis 1")
        return value.then(layers.from_fields("aggregate"))


def Aggregate(aggregate_axis=None, batch_axis=0, channel_axis=-1, to_dense=None, implementation="DENSE"):
    """Sums over neighbours in a graph; kernel_fn takes the adjacency matrices as pattern=(pattern1, pattern2)."""
    check_batch_axis("Aggregate", batch_axis)
    if to_dense is not None or str(implementation).upper() != "DENSE":
        raise NotImplementedError("Aggregate: expected dense patterns [n, nodes, nodes]; zeros cost nothing here")
    return triple(_Aggregate(aggregate_axis, channel_axis))
