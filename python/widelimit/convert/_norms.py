"""Norms over channels, as operations of their own or written out as means, squares and roots."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ._arithmetic import times_constant
from ._axes import BATCH, CHANNEL, Atom
from ._encodings import centred, encoded, shifted_channels
from ._functions import slope_of
from ._nodes import CENTRED, OTHER, SHIFTED, make
from ._signals import Signal, Statistic, effective, scaled, settled
from ._trace import Constant, Operation, refuse


def normalised(signal: Signal, kind: str, epsilon: float, axes: tuple[Any, ...], place: str) -> Signal:
    """'layer_norm' or 'rms_norm' over the channels and these spatial axes."""
    signal = settled(signal, place)
    node, law = signal.node, signal.node.law
    if kind == "layer_norm" and law == SHIFTED:
        node = centred(node)
        law = node.law
    if kind == "layer_norm" and law == OTHER:
        raise refuse(place, f"a layer norm takes the mean from channels that are not Gaussian (they come from {node.place or node.kind}), "
                     "whose mean is not 0", "put it behind a linear layer, or use an RMS norm")
    # A scale of the values is one of epsilon: the norm itself does not see it.
    epsilon = epsilon / signal.scale**2
    is_zero_mean = law == CENTRED and kind == "layer_norm"
    made = make("norm", (node,), place, law=law, norm="rms_norm" if is_zero_mean else kind, epsilon=epsilon, over=axes)
    return replace(signal, node=made, scale=float(np.sign(signal.scale)))


def norm_operation(state: Any, operation: Operation, value: Any, gain: Any = None, shift: Any = None) -> Signal:
    """layer_norm and rms_norm over `dimensions`."""
    place = operation.place
    dimensions = operation.attributes["dimensions"]
    atoms = [atom for k in dimensions for atom in value.dims[k]]
    if not isinstance(value, Signal) or value.rows is not None:
        raise refuse(place, "attention weights, or parts of heads, are normalised", "normalise channels")
    _check_all_channels(value, atoms, place)
    axes = tuple(dict.fromkeys(atom.axis for atom in atoms if atom.axis != CHANNEL))
    result = normalised(value, operation.kind, operation.attributes["epsilon"], axes, place)
    return affine(state, result, gain, shift, place)


def _check_all_channels(value, atoms, place):
    channels = int(np.prod([atom.size for atom in atoms if atom.axis == CHANNEL], dtype=int))
    if any(atom.axis == BATCH for atom in atoms):
        raise refuse(place, "a norm over the batch makes every output depend on all inputs", "use a norm over channels")
    if channels != value.node.channels:
        what = "queries and keys are normalised" if value.node.kind == "weights" and channels > 1 else "a part of the channels is normalised"
        raise refuse(place, f"{what}: {channels} of {value.node.channels} channels", "normalise all channels of a position")
    for axis in {atom.axis for atom in atoms if atom.axis != CHANNEL}:
        size = int(np.prod([atom.size for atom in atoms if atom.axis == axis]))
        if size != value.node.size(axis):
            raise refuse(place, "a norm over a part of an axis", "normalise over all of its positions")


def group_norm(state: Any, operation: Operation, value: Any, gain: Any, shift: Any) -> Signal:
    """Groups of a fixed number of channels have no limit; one group is a layer norm over channels and positions. With more
    groups every group is as large as one likes, so that all have the same norm."""
    place = operation.place
    axes = tuple(axis for axis, _ in value.node.axes)
    if operation.attributes["groups"] == value.node.channels and value.node.channels > 1:
        raise refuse(place, "an instance norm (a group norm of one channel a group) has random numbers for norms",
                     "use a group norm of few groups")
    result = normalised(value, "layer_norm", operation.attributes["epsilon"], axes, place)
    return affine(state, result, gain, shift, place)


def group_of_norm(state: Any, operation: Operation, value: Any) -> Signal:
    """A norm over all dimensions behind the second, which counts groups of channels."""
    place, atoms = operation.place, [atom for dimension in value.dims[2:] for atom in dimension]
    inner = int(np.prod([atom.size for atom in atoms if atom.axis == CHANNEL], dtype=int))
    if inner == 1 and value.node.channels > 1:
        raise refuse(place, "an instance norm (a norm of every channel by itself) has random numbers for norms",
                     "use a group norm of few groups")
    axes = tuple(axis for axis, _ in value.node.axes)
    return normalised(value, "layer_norm", operation.attributes["epsilon"], axes, place)


def affine(state: Any, signal: Signal, gain: Constant | None, shift: Constant | None, place: str) -> Signal:
    """Gains and shifts of channels, given as constants that broadcast to the signal."""
    if gain is not None:
        signal = times_constant(signal, Constant(gain.values, gain.parameter), place)
    if shift is not None and shift.values.any():
        biased = shifted_channels(signal, shift, place) if shift.parameter is not None else None
        if biased is not None:
            return biased
        values = shift.values.reshape((1,) * (len(signal.dims) - shift.values.ndim) + shift.values.shape)
        return encoded(state, signal, 1.0, shift, values, place)
    return signal


class Written:
    """Norms written out: statistics of channels and what is done with them."""

    def statistic(self, operation: Operation, signal: Signal, atoms: list[Any]) -> Statistic:
        """A mean over channels, of the values themselves or of their squares."""
        place = operation.place
        count = float(np.prod([atom.size for atom in atoms])) if operation.kind == "sum" else 1.0
        _check_all_channels(signal, atoms, place)
        over = tuple(dict.fromkeys(atom.axis for atom in atoms if atom.axis != CHANNEL))
        if operation.kind == "variance":
            return Statistic(signal, "variance", signal.dims, over=over)
        if slope_of(effective(signal)) is not None or signal.root is None:
            return Statistic(signal, "mean", signal.dims, over=over, factor=count)
        if signal.root is not None:
            if signal.node.kind == "centring":
                return Statistic(signal.node.data["base"], "variance", signal.dims, over=over, factor=count)
            return Statistic(signal.root, "square", signal.dims, over=over, factor=count)

    def plus(self, operation: Operation, a: Any, b: Any, sign_a: float, sign_b: float) -> Any:
        """x - mean, number + epsilon, and E[x^2] - E[x]^2."""
        _check_divided(operation, a, b)
        if isinstance(a, Signal) and isinstance(b, Statistic) and (b.kind, b.power, sign_a, sign_b) == ("mean", 1.0, 1.0, -1.0) \
                and _same(a, b.base):
            return replace(a, node=make("centring", (a.node,), operation.place, base=a), scale=1.0, function=None)
        if isinstance(a, Statistic) and isinstance(b, Constant) and b.number is not None and a.power == 1:
            return replace(a, epsilon=a.epsilon + sign_b * b.number)
        if isinstance(a, Statistic) and isinstance(b, Statistic) and (a.kind, b.kind, b.power, sign_b) == ("square", "mean", 2.0, -1.0) \
                and _same(a.base, b.base):
            return replace(a, kind="variance")
        raise refuse(operation.place, "means over channels are added to something else than in a norm", "write x - mean, or use LayerNorm")

    def root(self, operation: Operation, value: Statistic, exponent: float | None = None) -> Statistic:
        """A power of a statistic; functions that are powers are found by their values."""
        _check_divided(operation, value)
        if exponent is None:
            function = operation.attributes["function"]
            four, nine = float(function(np.array(4.0))), float(function(np.array(9.0)))
            exponent = next((power for power in (0.5, -0.5, -1.0, 2.0, 1.0)
                             if np.isclose(four, 4.0**power) and np.isclose(nine, 9.0**power)), None)
        if exponent is None:
            raise refuse(operation.place, "a function of a mean over channels is taken", "use a norm")
        return replace(value, power=value.power * exponent)

    def times(self, operation: Operation, a: Any, b: Any) -> Any:
        """A value times the inverse root of its statistic, which may have met the gains before."""
        if isinstance(a, Statistic):
            a, b = b, a
        if isinstance(a, Statistic):
            _check_divided(operation, a, b)
            if a.kind == b.kind == "mean" and _same(a.base, b.base):
                return replace(a, power=a.power + b.power)
            raise refuse(operation.place, "means over channels are multiplied", "use a norm")
        if isinstance(a, Constant) and a.number is not None and b.power == 1:
            factor = b.factor * a.number
            return replace(b, factor=1.0 if np.isclose(factor, 1, rtol=1e-5) else factor)
        _check_divided(operation, b)
        if isinstance(a, Constant):
            return replace(b, dims=_with_gains(b.dims, a), gain=a if b.gain is None else Constant(a.values * b.gain.values))
        return self._norm(operation, a, b)

    @staticmethod
    def _norm(operation, signal, statistic):
        """value / root(statistic), both of one value but for factors."""
        place = operation.place
        is_centred = signal.node.kind == "centring"
        value, base = signal.node.data["base"] if is_centred else signal, statistic.base
        ratio = _ratio(value, base)
        if not np.isclose(statistic.power, -0.5) or ratio is None:
            raise refuse(place, "channels are multiplied with a number made of the mean of channels", "use a norm")
        if statistic.kind != ("variance" if is_centred else "square"):
            raise refuse(place, "a value and the deviation that it is divided by are not both centred", "use a layer norm or an RMS norm")
        result = normalised(replace(base, dims=signal.dims), "layer_norm" if is_centred else "rms_norm", statistic.epsilon,
                            statistic.over, place)
        factor = ratio * (float(effective(signal)(np.ones(1))[0]) if is_centred else 1.0)
        return affine(None, scaled(result, factor), statistic.gain, None, place)


def _with_gains(dims, gain):
    """dims of one number for each position, times numbers for channels, which belong to no axis until they meet values."""
    shape = (1,) * (len(dims) - gain.values.ndim) + gain.values.shape
    return tuple((Atom(("repeat", -1 - k), 1, size),) if size > 1 and not dimension else dimension
                 for k, (dimension, size) in enumerate(zip(dims, shape)))


def _check_divided(operation, *values):
    if any(isinstance(value, Statistic) and value.factor != 1 for value in values):
        raise refuse(operation.place, "a sum over channels grows with the width", "take the mean")


def _ratio(a, b):
    """a / b where that is one number, else None."""
    first, second = (effective(signal)(np.array([-1.5, 0.7, 1.1])) for signal in (a, b))
    if a.node is not b.node or not second.any():
        return None
    ratio = float(first @ second / (second @ second))
    return ratio if np.allclose(first, ratio * second) else None


def _same(a, b):
    ratio = _ratio(a, b)
    return ratio is not None and np.isclose(ratio, 1)
