"""Layers with weights: Dense and the convolutions."""

from __future__ import annotations

from dataclasses import dataclass
from operator import index
from typing import Any, Optional, Sequence, Tuple

import numpy as np

from .. import layers
from .._jax import is_traced
from ._diagonal import MAYBE, NO, YES, Diagonal
from ._enums import Padding, choice
from ._module import WithAxes, check_deviations, parametrisation, variance
from ._structure import Place
from ._triple import Triple, triple


@dataclass
class _Dense(WithAxes):
    out_dim: int
    W_std: float
    b_std: Optional[float]
    batch_axis: int
    channel_axis: int
    parameterization: str
    s: Tuple[float, float]
    trainable: str = "all"
    in_jax = "dense"
    name = "Dense"
    diagonal = Diagonal()
    is_pointwise = True

    def lower(self, value):
        fields = parametrisation(self.name, self.parameterization, self.s, value.channels, self.b_std)
        layer = layers.from_fields("dense", trainable=self.trainable, weight_variance=variance(self.W_std), bias_variance=variance(self.b_std),
                                   **fields)
        width = int(self.out_dim * (self.s[1] if fields else 1))
        return value.then(layer, channels=width, places=value.places + (width,), is_gaussian=True)

    def parameters(self, value, counter):
        channels = self.apply(value).channels
        weights = Place(counter.take(value.channels, channels))
        shape = [1] * (len(value.shape) + 2)
        shape[value.channel_axis] = channels
        return weights, biases_of(self, counter, channels, shape)


def biases_of(module, counter, count, shape):
    """None without biases; with a deviation of 0, in the NTK parametrisation, numbers that change nothing."""
    if module.b_std is None:
        return None
    if module.b_std == 0 and str(module.parameterization).lower() == "ntk":
        return Place(np.zeros(shape, int), False)
    return Place(counter.take(count).reshape(shape))


def _check_deviations(name, **deviations):
    """check_deviations() for known numbers; JAX may trace others, by which kernel_fn can be differentiated."""
    check_deviations(name, **{what: std for what, std in deviations.items() if not is_traced(std)})


def Dense(out_dim: int, W_std: float = 1.0, b_std: float | None = None, batch_axis: int = 0, channel_axis: int = -1,
          parameterization: str = "ntk", s: Tuple[float, float] = (1, 1), trainable: str = "all") -> Triple:
    """A dense layer at every position: [n, ..., C] becomes [n, ..., out_dim].

    out_dim           channels of finite networks; kernels depend on it only through parameterization='standard'
    W_std, b_std      standard deviations of weights (times 1 / sqrt(C)) and biases; None: no biases. They may be numbers that JAX
                      traces, or tensors of PyTorch that require gradients: kernel_fn has derivatives with respect to them
    parameterization  'ntk' or 'standard'; s: factors (before, after) by which 'standard' widths grow
    trainable         'all', 'weights', 'biases' or 'none': NTKs, and derivatives by parameters, are without the others
    ValueError for deviations that are not finite, and axes that are not where the inputs have them.
    """
    _check_deviations("Dense", W_std=W_std, b_std=b_std)
    return triple(_Dense(int(out_dim), W_std, b_std, int(batch_axis), int(channel_axis), parameterization, tuple(s),
                         _checked_trainable("Dense", trainable)))


def _checked_trainable(name, trainable):
    words = ("all", "weights", "biases", "none")
    if trainable not in words:
        raise ValueError(f"{name}: trainable: expected one of {', '.join(words)}, got {trainable!r}")
    return trainable


def positions_after(size, window, stride, padding):
    """Positions along an axis after a window that moves over it."""
    return (size - window) // stride + 1 if padding == "valid" else -(-size // stride)


def _positions_after_transposed(size, window, stride, padding):
    return size * stride + (max(window - stride, 0) if padding == "valid" else 0)


def sizes(name, values):
    """Sizes along axes: integers of at least 1."""
    try:
        found = tuple(index(size) for size in values)
    except TypeError:
        raise TypeError(f"{name}: expected integers, one an axis, got {values!r}") from None
    if any(size < 1 for size in found):
        raise ValueError(f"{name}: expected integers of at least 1, got {found}")
    return found


def check_window(name, value, window, strides):
    """Checks that a window and strides have as many axes as the value has axes of positions."""
    if len(window) != len(value.shape) or len(strides) != len(value.shape):
        raise ValueError(f"{name}: expected a window and strides of {len(value.shape)} axes for shape "
                         f"{value.full_shape}, got {tuple(window)} and {tuple(strides)}")


def turned_axes(value, order):
    """The order of all axes of an array that puts the spatial ones in this order among themselves."""
    axes = list(range(len(value.full_shape)))
    for place, k in zip(value.spatial_axes, order):
        axes[place] = value.spatial_axes[k]
    return axes


@dataclass
class _Convolution(WithAxes):
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
    batch_axis: int
    channel_axis: int
    filter_axes: Tuple[int, ...]  # Axes of an array of weights [window..., in, out], in the order in which callers have them.
    axes_after: Tuple[int, int]  # Axes of the batch and of the channels after the layer.
    order_after: Tuple[int, ...]  # Spatial axes of the inputs in the order in which outputs have them.
    trainable: str = "all"
    in_jax = "convolution"

    @property
    def diagonal(self):
        return Diagonal(NO) if self.turns else Diagonal(YES, MAYBE if self.kind == "local_conv" else NO)

    @property
    def turns(self):
        """Whether outputs have the spatial axes in another order than inputs."""
        return self.order_after != tuple(range(len(self.order_after)))

    def lower(self, value):
        behind = self.before_turning(value)
        if not self.turns:
            return behind
        places = np.arange(int(np.prod(behind.shape))).reshape(behind.shape).transpose(self.order_after)
        layer = layers.from_fields("positions_map", matrix=np.eye(places.size)[places.ravel()].tolist(), shape=list(places.shape))
        return behind.then(layer, shape=places.shape)

    def turned(self, array, behind):
        """Outputs, or their mask, with the spatial axes of outputs; behind: the form before."""
        return array if not self.turns else array.transpose(turned_axes(behind, self.order_after))

    def before_turning(self, value):
        """lower() with the spatial axes in the order of the inputs'."""
        check_window(self.name, value, self.filter_shape, self.strides)
        fields = parametrisation(self.name, self.parameterization, self.s, value.channels, self.b_std)
        window = {"filter": list(self.filter_shape), "strides": list(self.strides), "padding": self.padding}
        layer = layers.from_fields(self.kind if self.filter_shape else "dense", **(window if self.filter_shape else {}),
                                   weight_variance=variance(self.W_std), bias_variance=variance(self.b_std),
                                   trainable=self.trainable, **fields)
        behind = _positions_after_transposed if self.kind == "conv_transpose" else positions_after
        shape = tuple(behind(*sizes, self.padding) for sizes in zip(value.shape, self.filter_shape, self.strides))
        # As in neural-tangents, unshared weights, unlike shared ones, have out_chan channels whatever s[1] is.
        scaled = fields and self.kind != "local_conv"
        width = int(self.out_chan * (self.s[1] if scaled else 1))
        reverses = self.kind != "local_conv" and not value.is_diagonal and bool(value.shape)
        return value.then(layer, shape=shape, channels=width, places=value.places + (width,), is_gaussian=True,
                          is_reversed=value.is_reversed != reverses, batch_axis=self.axes_after[0],
                          channel_axis=self.axes_after[1])

    def parameters(self, value, counter):
        behind = self.apply(value)
        bias_shape = [1] * (len(value.shape) + 2)
        bias_shape[behind.channel_axis] = behind.channels
        if self.kind == "local_conv" and self.filter_shape:
            return self._unshared(value, behind, counter)
        weights = counter.take(*self.filter_shape, value.channels, behind.channels).transpose(self.filter_axes)
        return Place(weights), biases_of(self, counter, behind.channels, bias_shape)

    def _unshared(self, value, behind, counter):
        """Moves weights and biases of a position together: the library has them side by side."""
        taps, axes = int(np.prod(self.filter_shape)), len(value.shape)
        has_biases = self.b_std is not None and (self.b_std != 0 or str(self.parameterization).lower() != "ntk")
        block = counter.take(*behind.shape, taps * value.channels + has_biases, behind.channels)
        weights = block[..., :taps * value.channels, :].reshape(*behind.shape, taps, value.channels, behind.channels)
        weights = np.swapaxes(weights, -3, -2).reshape(*behind.shape, -1, behind.channels)
        if self.b_std is None:
            return Place(weights.transpose(self.filter_axes)), None
        biases = block[..., -1, :] if has_biases else np.zeros((*behind.shape, behind.channels), int)
        biases = np.moveaxis(biases[None], (0, axes + 1), (behind.batch_axis, behind.channel_axis))
        return Place(weights.transpose(self.filter_axes)), Place(biases, has_biases)


@dataclass(frozen=True)
class _Layout:
    """The meaning of a convolution's dimension numbers."""

    batch_axis: int
    channel_axis: int
    order: Tuple[int, ...]  # Places of the input's spatial axes among those of the filter.
    filter_axes: Tuple[int, ...]
    axes_after: Tuple[int, int]
    order_after: Tuple[int, ...]  # Places of the outputs' spatial axes among those of the input.


def _layout(name, dimension_numbers, axes):
    """The layout for numbers such as ('NCHW', 'OIHW', 'NHWC'): those of inputs, filter and outputs."""
    if dimension_numbers is None:
        return _Layout(0, axes + 1, tuple(range(axes)), tuple(range(axes + 2)), (0, axes + 1),
                       tuple(range(axes)))
    try:
        left, right, out = (str(spec) for spec in dimension_numbers)
        spatial = [letter for letter in left if letter not in "NC"]
        order = [[letter for letter in right if letter not in "OI"].index(letter) for letter in spatial]
        layout = _Layout(left.index("N"), left.index("C"), tuple(order), tuple([*spatial, "I", "O"].index(c) for c in right),
                         (out.index("N"), out.index("C")), tuple(spatial.index(letter) for letter in out if letter not in "NC"))
        fits = sorted(left) == sorted(out)
    except ValueError:
        layout = None
    if layout is None or not fits or len(left) != axes + 2 or len(right) != axes + 2:
        raise ValueError(f"{name}: dimension_numbers: expected three strings such as ('NHWC', 'HWIO', 'NHWC') for "
                         f"{axes} axes, got {dimension_numbers!r}")
    return layout


def _convolution(name, kind, out_chan, filter_shape, strides, padding, W_std, b_std, dimension_numbers,
                 parameterization, s, trainable):
    _check_deviations(name, W_std=W_std, b_std=b_std)
    filter_shape = sizes(f"{name}: filter_shape", filter_shape)
    strides = (1,) * len(filter_shape) if strides is None else sizes(f"{name}: strides", strides)
    layout = _layout(name, dimension_numbers, len(filter_shape))
    if kind == "local_conv" and layout.order_after != tuple(range(len(filter_shape))):
        raise NotImplementedError(f"{name}: dimension_numbers: expected outputs whose spatial axes come in the order of the "
                                  f"inputs', got {dimension_numbers!r}")
    if len(strides) != len(filter_shape):
        raise ValueError(f"{name}: expected strides of {len(filter_shape)} axes, as filter_shape has, got {strides}")
    return triple(_Convolution(name, kind, int(out_chan), tuple(filter_shape[k] for k in layout.order),
                               tuple(strides[k] for k in layout.order),
                               choice(f"{name}: padding", Padding, padding).name.lower(), W_std, b_std,
                               parameterization, tuple(s), layout.batch_axis, layout.channel_axis, layout.filter_axes,
                               layout.axes_after, layout.order_after, _checked_trainable(name, trainable)))


def Conv(out_chan: int, filter_shape: Sequence[int], strides: Sequence[int] | None = None,
         padding: Padding | str = "VALID", W_std: float = 1.0, b_std: float | None = None,
         dimension_numbers: Any = None, parameterization: str = "ntk", s: Tuple[float, float] = (1, 1),
         trainable: str = "all") -> Triple:
    """A convolution: [n, spatial..., C] becomes [n, spatial'..., out_chan].

    filter_shape, strides  one size for each axis, strides are 1 if None
    padding                'VALID', 'SAME' or 'CIRCULAR'
    W_std, b_std           standard deviations of weights (times 1 / sqrt(C prod(filter_shape))) and biases; None: no biases
    dimension_numbers      of inputs, filter and outputs, three strings such as ('NHWC', 'HWIO', 'NCHW'); None: channels last
    parameterization, s, trainable  as in Dense()
    Outputs may have spatial axes in another order than inputs. ValueError if the number of axes does not fit.
    """
    return _convolution("Conv", "conv", out_chan, filter_shape, strides, padding, W_std, b_std, dimension_numbers,
                        parameterization, s, trainable)


def ConvTranspose(out_chan: int, filter_shape: Sequence[int], strides: Sequence[int] | None = None,
                  padding: Padding | str = "VALID", W_std: float = 1.0, b_std: float | None = None,
                  dimension_numbers: Any = None, parameterization: str = "ntk",
                  s: Tuple[float, float] = (1, 1), trainable: str = "all") -> Triple:
    """A transposed convolution: strides multiply the spatial sizes; arguments and errors as in Conv()."""
    return _convolution("ConvTranspose", "conv_transpose", out_chan, filter_shape, strides, padding, W_std, b_std,
                        dimension_numbers, parameterization, s, trainable)


def ConvLocal(out_chan: int, filter_shape: Sequence[int], strides: Sequence[int] | None = None,
              padding: Padding | str = "VALID", W_std: float = 1.0, b_std: float | None = None,
              dimension_numbers: Any = None, parameterization: str = "ntk",
              s: Tuple[float, float] = (1, 1), trainable: str = "all") -> Triple:
    """A convolution whose weights are not shared between positions; arguments and errors as in Conv(), and NotImplementedError for
    outputs with spatial axes in another order."""
    return _convolution("ConvLocal", "local_conv", out_chan, filter_shape, strides, padding, W_std, b_std,
                        dimension_numbers, parameterization, s, trainable)
