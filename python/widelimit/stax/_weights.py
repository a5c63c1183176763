"""Layers with weights: Dense and the convolutions."""

from __future__ import annotations

from dataclasses import dataclass
from operator import index
from typing import Any, Optional, Sequence, Tuple

from .. import layers
from .._jax import is_traced
from ._diagonal import MAYBE, NO, YES, Diagonal
from ._enums import Padding, choice
from ._module import WithAxes, check_deviations, parametrisation, variance
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
    name = "Dense"
    diagonal = Diagonal()

    def lower(self, value):
        fields = parametrisation(self.name, self.parameterization, self.s, value.channels, self.b_std)
        layer = layers.from_fields("dense", weight_variance=variance(self.W_std), bias_variance=variance(self.b_std),
                                   **fields)
        width = int(self.out_dim * (self.s[1] if fields else 1))
        return value.then(layer, channels=width, places=value.places + (width,), is_gaussian=True)


def _check_deviations(name, **deviations):
    """check_deviations() of those that are known; JAX may trace others, which kernel_fn has derivatives by."""
    check_deviations(name, **{what: std for what, std in deviations.items() if not is_traced(std)})


def Dense(out_dim: int, W_std: float = 1.0, b_std: float | None = None, batch_axis: int = 0, channel_axis: int = -1,
          parameterization: str = "ntk", s: Tuple[float, float] = (1, 1)) -> Triple:
    """A dense layer at every position: [n, ..., C] becomes [n, ..., out_dim].

    out_dim           channels of finite networks; kernels depend on it where parameterization='standard' says so
    W_std, b_std      standard deviations of weights (times 1 / sqrt(C)) and biases; None: no biases. Numbers that JAX
                      traces, and tensors of PyTorch that require gradients: kernel_fn has derivatives by them
    parameterization  'ntk' or 'standard'; s: factors (in front, behind) by which 'standard' widths grow
    ValueError for deviations that are not finite, and axes that are not where the inputs have them.
    """
    _check_deviations("Dense", W_std=W_std, b_std=b_std)
    return triple(_Dense(int(out_dim), W_std, b_std, int(batch_axis), int(channel_axis), parameterization, tuple(s)))


def positions_behind(size, window, stride, padding):
    """Positions along an axis behind a window that moves over it."""
    return (size - window) // stride + 1 if padding == "valid" else -(-size // stride)


def _positions_behind_transposed(size, window, stride, padding):
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
    """A window and strides of as many axes as the value has positions along."""
    if len(window) != len(value.shape) or len(strides) != len(value.shape):
        raise ValueError(f"{name}: expected a window and strides of {len(value.shape)} axes for shape "
                         f"{value.full_shape}, got {tuple(window)} and {tuple(strides)}")


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

    @property
    def diagonal(self):
        return Diagonal(YES, MAYBE if self.kind == "local_conv" else NO)

    def lower(self, value):
        check_window(self.name, value, self.filter_shape, self.strides)
        fields = parametrisation(self.name, self.parameterization, self.s, value.channels, self.b_std)
        layer = layers.from_fields(self.kind, filter=list(self.filter_shape), strides=list(self.strides),
                                   padding=self.padding, weight_variance=variance(self.W_std),
                                   bias_variance=variance(self.b_std), **fields)
        behind = _positions_behind_transposed if self.kind == "conv_transpose" else positions_behind
        shape = tuple(behind(*sizes, self.padding) for sizes in zip(value.shape, self.filter_shape, self.strides))
        # As in neural-tangents, whose unshared weights, unlike shared ones, are of out_chan channels whatever s[1] is.
        scaled = fields and self.kind != "local_conv"
        width = int(self.out_chan * (self.s[1] if scaled else 1))
        reverses = self.kind != "local_conv" and not value.is_diagonal
        return value.then(layer, shape=shape, channels=width, places=value.places + (width,), is_gaussian=True,
                          is_reversed=value.is_reversed != reverses)


def _layout(name, dimension_numbers, axes):
    """The axes of the batch and the channels that convolution dimension numbers such as ('NCHW', 'OIHW', 'NCHW') say,
    and the places of the input's spatial axes among those of the filter."""
    if dimension_numbers is None:
        return 0, axes + 1, range(axes)
    try:
        left, right, out = (str(spec) for spec in dimension_numbers)
        spatial = [letter for letter in left if letter not in "NC"]
        order = [[letter for letter in right if letter not in "OI"].index(letter) for letter in spatial]
        layout = left.index("N"), left.index("C"), order
    except ValueError:
        layout = None
    if layout is None or len(left) != axes + 2 or len(right) != axes + 2:
        raise ValueError(f"{name}: dimension_numbers: expected three strings such as ('NHWC', 'HWIO', 'NHWC') for "
                         f"{axes} axes, got {dimension_numbers!r}")
    if left != out:
        raise NotImplementedError(f"{name}: dimension_numbers: expected inputs and outputs of one layout, got "
                                  f"{dimension_numbers!r}")
    return layout


def _convolution(name, kind, out_chan, filter_shape, strides, padding, W_std, b_std, dimension_numbers,
                 parameterization, s):
    _check_deviations(name, W_std=W_std, b_std=b_std)
    filter_shape = sizes(f"{name}: filter_shape", filter_shape)
    strides = (1,) * len(filter_shape) if strides is None else sizes(f"{name}: strides", strides)
    batch_axis, channel_axis, order = _layout(name, dimension_numbers, len(filter_shape))
    if len(strides) != len(filter_shape):
        raise ValueError(f"{name}: expected strides of {len(filter_shape)} axes, as filter_shape has, got {strides}")
    return triple(_Convolution(name, kind, int(out_chan), tuple(filter_shape[k] for k in order),
                               tuple(strides[k] for k in order),
                               choice(f"{name}: padding", Padding, padding).name.lower(), W_std, b_std,
                               parameterization, tuple(s), batch_axis, channel_axis))


def Conv(out_chan: int, filter_shape: Sequence[int], strides: Sequence[int] | None = None,
         padding: Padding | str = "VALID", W_std: float = 1.0, b_std: float | None = None,
         dimension_numbers: Any = None, parameterization: str = "ntk", s: Tuple[float, float] = (1, 1)) -> Triple:
    """A convolution: [n, spatial..., C] becomes [n, spatial'..., out_chan].

    filter_shape, strides  one size an axis, strides 1 where None
    padding                'VALID', 'SAME' or 'CIRCULAR'
    W_std, b_std           standard deviations of weights (times 1 / sqrt(C prod(filter_shape))) and biases; None: no biases
    dimension_numbers      three strings such as ('NCHW', 'OIHW', 'NCHW'); None: channels last
    parameterization, s    as in Dense()
    ValueError where the number of axes does not fit, NotImplementedError for outputs in another layout than inputs.
    """
    return _convolution("Conv", "conv", out_chan, filter_shape, strides, padding, W_std, b_std, dimension_numbers,
                        parameterization, s)


def ConvTranspose(out_chan: int, filter_shape: Sequence[int], strides: Sequence[int] | None = None,
                  padding: Padding | str = "VALID", W_std: float = 1.0, b_std: float | None = None,
                  dimension_numbers: Any = None, parameterization: str = "ntk",
                  s: Tuple[float, float] = (1, 1)) -> Triple:
    """A transposed convolution: strides multiply the spatial sizes; arguments and errors as in Conv()."""
    return _convolution("ConvTranspose", "conv_transpose", out_chan, filter_shape, strides, padding, W_std, b_std,
                        dimension_numbers, parameterization, s)


def ConvLocal(out_chan: int, filter_shape: Sequence[int], strides: Sequence[int] | None = None,
              padding: Padding | str = "VALID", W_std: float = 1.0, b_std: float | None = None,
              dimension_numbers: Any = None, parameterization: str = "ntk",
              s: Tuple[float, float] = (1, 1)) -> Triple:
    """A convolution whose weights are not shared between positions; arguments and errors as in Conv()."""
    return _convolution("ConvLocal", "local_conv", out_chan, filter_shape, strides, padding, W_std, b_std,
                        dimension_numbers, parameterization, s)
