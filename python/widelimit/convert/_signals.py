"""What a tensor of the traced network is in the limit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ._axes import Dimension, shape_of
from ._functions import Function, composed_layer, known_layer, slope_of
from ._nodes import GAUSSIAN, OTHER, Node, make
from ._trace import refuse


@dataclass(frozen=True, eq=False)
class Signal:
    """function(scale * node), its axes arranged as dims say.

    function   pending elementwise operations, None for none
    rows       of queries and keys: a linear map of the channels of a head, [positions or 1, rows..., channels], whose rows
               are the atoms ('row', k) of dims. None for none
    root       the value of which this is the square, where it is one
    place      where its first function was applied
    """

    node: Node
    dims: tuple[Dimension, ...]
    scale: float = 1.0
    function: Function | None = None
    rows: "HeadMap | None" = None
    root: "Signal | None" = None
    place: str = ""

    @property
    def shape(self) -> tuple[int, ...]:
        return shape_of(self.dims)


@dataclass(frozen=True, eq=False)
class HeadMap:
    """matrix [positions or 1, rows..., channels]; axis: the spatial axis of its positions; stride and size of the channels'
    atom that it maps."""

    matrix: np.ndarray
    axis: Any
    size: int


@dataclass(frozen=True, eq=False)
class Statistic:
    """gain * (number + epsilon)^power, of a number of every position: the mean, the mean square ('square') or the variance of all
    channels of a value. over: spatial axes that the number is taken over as well; gain: a constant of channels, or None; factor: of
    the number, as long as it is a sum that has not been divided."""

    base: Signal
    kind: str
    dims: tuple[Dimension, ...]
    epsilon: float = 0.0
    power: float = 1.0
    over: tuple[Any, ...] = ()
    gain: Any = None
    factor: float = 1.0

    @property
    def shape(self) -> tuple[int, ...]:
        return shape_of(self.dims)


@dataclass(frozen=True, eq=False)
class Logits:
    """Products of queries and keys on their way to attention weights: dims have the batch, heads, positions of queries and,
    as ('key', axis), positions of keys.

    stage   logits; exponential; total (of exponentials); weights
    """

    queries: Signal
    keys: Signal
    dims: tuple[Dimension, ...]
    scale: float
    mask: np.ndarray | None = None
    stage: str = "logits"

    @property
    def shape(self) -> tuple[int, ...]:
        return shape_of(self.dims)


def effective(signal: Signal) -> Function:
    """The function of the node's channels that the signal is."""
    if signal.function is None:
        return lambda z: signal.scale * z
    return lambda z: signal.function(signal.scale * z)


def scaled(signal: Signal, factor: float) -> Signal:
    """factor times the signal."""
    if signal.function is None:
        return replace(signal, scale=signal.scale * factor, root=None)
    before = signal.function
    return replace(signal, root=None, function=lambda z: factor * before(z))


def applied(signal: Signal, function: Function, place: str) -> Signal:
    """function(signal), pending."""
    before = signal.function
    if signal.rows is not None:
        raise refuse(place, "a nonlinearity acts on parts of a head's channels", "apply it to all channels")
    return replace(signal, root=None, place=place if before is None else signal.place, function=function
                   if before is None else lambda z: function(before(z)))


def settled(signal: Signal, place: str) -> Signal:
    """The signal with its function as a node. A scale may remain."""
    if signal.function is None:
        return signal
    known = signal.node.functions.setdefault((signal.function, signal.scale), [])
    if not known:
        known.append(_settled(signal, signal.place or place))
    return replace(known[0], dims=signal.dims, place="")


def _settled(signal, place):
    function = effective(signal)
    slope = slope_of(function)
    if slope is not None:
        return replace(signal, scale=slope, function=None)
    if signal.node.law != GAUSSIAN:
        comes = {"raw": "the inputs themselves", "centred": f"{signal.node.place}, which multiplies channels one by one"}
        raise refuse(place, "a nonlinearity needs Gaussian channels, which layers with weights leave; its channels come from "
                     + comes.get(signal.node.law, signal.node.place or "a nonlinearity"),
                     "put a linear layer or a convolution over all channels before it")
    found, node = known_layer(function, place), signal.node
    if found is None and signal.scale != 1:
        found, node = known_layer(signal.function, place), unscaled(replace(signal, function=None), place).node
    if found is None:
        found, node = composed_layer(function, place), signal.node
    node = make("function", (node,), place, law=OTHER, layer=found[0])
    return replace(signal, node=node, scale=found[1], function=None)


def unscaled(signal: Signal, place: str) -> Signal:
    """The signal with function and scale as nodes."""
    signal = settled(signal, place)
    if signal.scale == 1:
        return signal
    return replace(signal, node=make("sum", (signal.node,), place, scales=(signal.scale,)), scale=1.0)
