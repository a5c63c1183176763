"""What stax layers are: modules that turn a value, the layers so far with the shape behind them, into the next one."""

from dataclasses import dataclass, replace
from typing import Optional, Tuple



@dataclass(frozen=True)
class Value:
    """Where a network stands: its layers, and the form of what is behind them."""

    shape: Tuple[int, ...]  # Spatial sizes in their order.
    channels: int
    channel_axis: int  # Place of the channels among all axes, the batch's being 0.
    layers: Tuple[object, ...] = ()
    places: Tuple[object, ...] = ()  # Where a finite network is free to choose channels (_widths.py).
    reversed_axes: bool = False  # As neural-tangents reverses spatial axes with every convolution.

    @property
    def full_shape(self):
        """Shape with the batch as -1 and the channels in their place."""
        axes = list(self.shape)
        axes.insert(self.channel_axis - 1, self.channels)
        return (-1, *axes)

    def then(self, *new_layers, **changes):
        """The value behind more layers."""
        return replace(self, layers=self.layers + tuple(new_layers), **changes)


@dataclass(frozen=True)
class Branches:
    """Behind FanOut: what was in front of it, and a value without layers for each branch."""

    trunk: Value
    values: Tuple[Value, ...]


class Module:
    """One stax layer. `lower` adds it to a Value (or to Branches, if it takes them)."""

    takes_branches = False
    # The axis of the channels that the layer was told, if it was told one in a way that decides the input's layout.
    input_channel_axis: Optional[int] = None

    def lower(self, value):
        raise NotImplementedError

    def apply(self, value):
        """lower() for a value of the kind that this layer takes."""
        if isinstance(value, Branches) != self.takes_branches:
            expected, got = ("branches, behind FanOut", "one input") if self.takes_branches else (
                "one input", "the branches of FanOut")
            raise ValueError(f"{self.name}: expected {expected}, got {got}")
        return self.lower(value)

    def parts(self):
        """Modules inside this one."""
        return ()


@dataclass
class Simple(Module):
    """A layer of the library that leaves the form as it is."""

    name: str
    layer: object

    def lower(self, value):
        return value.then(self.layer)


def check_batch_axis(name, batch_axis):
    if batch_axis != 0:
        raise NotImplementedError(f"{name}: batch_axis={batch_axis}: expected 0; transpose the inputs")


def check_channel_axis(name, value, channel_axis):
    """The axis that a layer was told must be where the channels are."""
    axes = len(value.shape) + 2
    if not -axes <= channel_axis < axes or channel_axis % axes != value.channel_axis:
        raise ValueError(f"{name}: channel_axis={channel_axis}: expected {value.channel_axis}, where the channels are "
                         f"in shape {value.full_shape}")


def variance(std):
    """Of a standard deviation; None: no such parameters."""
    return 0.0 if std is None else float(std) ** 2


def parametrisation(name, kind, s, input_width, b_std):
    """Fields of a layer with weights in 'ntk' or 'standard' parameterization."""
    if kind == "ntk":
        return {}
    if kind != "standard":
        raise ValueError(f"{name}: parameterization: expected 'ntk' or 'standard', got {kind!r}")
    return {"parametrisation": "standard", "input_width": int(input_width), "width_scale": float(s[0]),
            "zero_biases": b_std is not None and b_std == 0}


def input_channel_axis(module):
    """The layout of the input that the first module with one was told, or None."""
    if module.input_channel_axis is not None:
        return module.input_channel_axis
    for part in module.parts():
        axis = input_channel_axis(part)
        if axis is not None:
            return axis
    return None


def start(module, shape):
    """The value in front of a network for inputs of a full shape, batch first."""
    axes = len(shape)
    if axes < 2:
        raise ValueError(f"expected inputs [n, ..., channels] with at least two axes, got shape {tuple(shape)}")
    axis = input_channel_axis(module)
    axis = axes - 1 if axis is None else axis % axes
    spatial = tuple(int(size) for k, size in enumerate(shape) if k not in (0, axis))
    return Value(spatial, int(shape[axis]), axis)
