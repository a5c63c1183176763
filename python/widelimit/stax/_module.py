"""The form of stax layers: modules that turn a value, the layers so far with the shape after them, into the next value."""

from dataclasses import dataclass, field, replace
from typing import Any, Dict, Optional, Tuple

import numpy as np

from .._arrays import real, whole
from .._jax import refuse_traced
from ._diagonal import Diagonal, folded


@dataclass(frozen=True)
class Value:
    """The state of a network while it is built: its layers, and the form of the activations after them."""

    shape: Tuple[int, ...]  # Spatial sizes in their order.
    channels: int
    channel_axis: int  # Place of the channels among all axes, as the next one.
    batch_axis: int = 0
    layers: Tuple[object, ...] = ()
    places: Tuple[object, ...] = ()  # The places where a finite network is free to choose channels (_widths.py).
    is_gaussian: bool = False
    # neural-tangents reverses the spatial axes of covariances with every convolution; those that only keep the variances
    # of positions are never reversed.
    is_reversed: bool = False
    is_diagonal: bool = False
    has_masks: bool = False
    has_patterns: bool = True  # Whether inputs come with graphs: Aggregate does nothing without them.
    rows: Tuple[slice, ...] = ()  # Slices of the batch.

    @property
    def full_shape(self):
        """Shape with the batch as -1, all axes in their place."""
        axes = list(self.shape)
        for axis, size in sorted(((self.batch_axis, -1), (self.channel_axis, self.channels))):
            axes.insert(axis, size)
        return tuple(axes)

    @property
    def spatial_axes(self):
        """Places of the spatial axes among all axes."""
        return tuple(axis for axis in range(len(self.shape) + 2) if axis not in (self.batch_axis, self.channel_axis))

    def then(self, *new_layers, **changes):
        """The value after more layers."""
        return replace(self, layers=self.layers + tuple(new_layers), **changes)

    def without_positions(self):
        """The changes that a readout makes: vectors, with the batch and the channels in the order that they had."""
        is_batch_first = self.batch_axis < self.channel_axis
        return {"shape": (), "batch_axis": 0 if is_batch_first else 1, "channel_axis": 1 if is_batch_first else 0,
                "is_reversed": False}


@dataclass(frozen=True)
class Branches:
    """The value after FanOut: what was before it, and a value without layers for each branch."""

    trunk: Value
    values: Tuple[Value, ...]


class Module:
    """One stax layer. `lower` adds it to a Value (or to Branches, if it takes them)."""

    takes_branches = False
    opens_branches = keeps_branches = False  # FanOut; parallel.
    joins_batch = False  # Whether outputs of branches become those of further inputs.
    # (batch, channels): the axes that the layer was told, which determine the input's layout; channels None: all of them.
    told_axes: Optional[Tuple[int, Optional[int]]] = None
    # What it asks of the kernel before it, None if it does not care.
    diagonal: Optional[Diagonal] = None
    in_jax: Optional[str] = None  # The word under which _outputs.py and _drawn.py know it.
    draws = False  # Whether networks of finite width draw at random each time they are applied.

    def lower(self, value):
        raise NotImplementedError

    def apply(self, value):
        """lower() for a value of the kind that this layer takes."""
        if isinstance(value, Branches) != self.takes_branches:
            expected, got = ("branches, after FanOut", "one input") if self.takes_branches else (
                "one input", "the branches of FanOut")
            raise ValueError(f"{self.name}: expected {expected}, got {got}")
        return self.lower(value)

    def parts(self):
        """Modules inside this one."""
        return ()

    # Whether it treats every position like a vector.
    is_pointwise = False

    def parameters(self, value, counter):
        """The structure of its parameters (_structure.py) after a value."""
        return ()

    def form(self, value, counter):
        """That structure, and the value after the layer."""
        return self.parameters(value, counter), self.apply(value)


@dataclass
class Simple(Module):
    """A nonlinearity, which leaves the form unchanged."""

    name: str
    layer: object
    kind: str = ""  # With its fields, as network files have them; "" for a user's functions.
    fields: Dict[str, Any] = field(default_factory=dict)
    in_jax = "nonlinearity"
    diagonal = Diagonal()
    is_pointwise = True

    def lower(self, value):
        return value.then(self.layer, is_gaussian=False)


@dataclass
class Sequence(Module):
    """Modules one after the other."""

    modules: Tuple[Module, ...]
    in_jax = "serial"
    name = "serial"

    def apply(self, value):
        for module in self.modules:
            value = module.apply(value)
        return value

    def form(self, value, counter):
        trees = []
        for module in self.modules:
            tree, value = module.form(value, counter)
            trees.append(tree)
        return trees, value

    def parts(self):
        return self.modules

    @property
    def is_pointwise(self):
        return all(module.is_pointwise for module in self.modules)

    @property
    def diagonal(self):
        return folded(self.modules, Diagonal.then)


class WithAxes(Module):
    """A layer that was told where the batch and the channels are."""

    batch_axis: int
    channel_axis: int

    @property
    def told_axes(self):
        return self.batch_axis, self.channel_axis

    def apply(self, value):
        if isinstance(value, Value):
            check_axis(self.name, value, "batch_axis", self.batch_axis)
            check_axis(self.name, value, "channel_axis", self.channel_axis)
        return super().apply(value)


def check_axis(name, value, what, axis):
    """Checks that an axis that a layer was told is where it says."""
    axes, expected = len(value.shape) + 2, getattr(value, what)
    if not -axes <= axis < axes or axis % axes != expected:
        raise ValueError(f"{name}: {what}={axis}: expected {expected}, where it is in shape {value.full_shape}")


def check_deviations(name, **deviations):
    """Checks that standard deviations are finite numbers, or None."""
    for what, std in deviations.items():
        refuse_traced(f"{name}: {what}", std)
        if std is not None and not np.isfinite(real(std, f"{name}: {what}")):
            raise ValueError(f"{name}: {what}: expected a finite number, got {std!r}")


def variance(std):
    """The variance of a standard deviation; None: no such parameters."""
    refuse_traced("W_std, b_std", std)
    return 0.0 if std is None else float(std) ** 2


def parametrisation(name, kind, s, input_width, b_std):
    """Fields of a layer with weights in 'ntk' or 'standard' parameterization."""
    if str(kind).lower() == "ntk":
        return {}
    if str(kind).lower() != "standard":
        raise ValueError(f"{name}: parameterization: expected 'ntk' or 'standard', got {kind!r}")
    return {"parametrisation": "standard", "input_width": int(input_width), "width_scale": float(s[0]),
            "zero_biases": b_std is not None and b_std == 0}


def _told_axes(module):
    """The axes that the first module with some was told, or None."""
    if module.told_axes is not None:
        return module.told_axes
    for part in module.parts():
        axes = _told_axes(part)
        if axes is not None:
            return axes
    return None


def axis_among(count, name, axis):
    """The place of an axis among so many, from either end."""
    place = whole(axis, f"kernel_fn: {name}", -count)
    if place >= count:
        raise ValueError(f"kernel_fn: {name}: expected one of {count} axes, from {-count} to {count - 1}, got {axis}")
    return place % count


def start(module, shape, batch_axis=None, channel_axis=None, **options):
    """The value before a network for inputs of a full shape, whose axes are where the caller says, or else the first layer that
    was told."""
    axes = len(shape)
    if axes < 2:
        raise ValueError(f"expected inputs [n, ..., channels] with at least two axes, got shape {tuple(shape)}")
    batch, channels = _told_axes(module) or (0, None)
    batch = batch % axes if batch_axis is None else axis_among(axes, "batch_axis", batch_axis)
    if channel_axis is not None:
        channels = axis_among(axes, "channel_axis", channel_axis)
    channels = (axes - 1 if batch != axes - 1 else axes - 2) if channels is None else channels % axes
    if batch == channels:
        raise ValueError(f"kernel_fn: batch_axis, channel_axis: expected different axes of inputs of shape {tuple(shape)}, got "
                         f"{batch} for both")
    spatial = tuple(int(size) for k, size in enumerate(shape) if k not in (batch, channels))
    return Value(spatial, int(shape[channels]), channels, batch, **options)
