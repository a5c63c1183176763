"""Nodes of layers with weights, and of parts of their channels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._nodes import CENTRED, GAUSSIAN, Node, WeightRecord, make
from ._trace import Constant, refuse

_LINEAR = ("sum", "map", "mean", "norm", "dropout", "index", "function", "broadcast")


def record(constant: Constant, order: list[int], rows: int, place: str) -> WeightRecord:
    """A constant's values as [out, fan-in]: its dimensions in `order`, of which the first `rows` are the outputs."""
    if constant.parameter is None:
        raise refuse(place, "weights that are no parameter (a buffer, or computed from the network's own numbers) mix channels",
                     "make them a parameter, whose entries are drawn independently")
    values = np.transpose(constant.values, order)
    out = int(np.prod(values.shape[:rows], dtype=int))
    entries = np.transpose(constant.parameter.entries, order).reshape(out, -1)
    return WeightRecord(constant.parameter.name, np.asarray(values, float).reshape(out, -1), entries, constant.parameter.trained,
                        constant.parameter.whole)


def vector(constant: Constant) -> WeightRecord | None:
    """A constant [out] as a record, None where it is no parameter."""
    if constant.parameter is None:
        return None
    return WeightRecord(constant.parameter.name, np.asarray(constant.values, float).ravel(), constant.parameter.entries.ravel(),
                        constant.parameter.trained,
                        constant.parameter.whole)


def weights(parent: Node, weight: WeightRecord, bias: WeightRecord | None, place: str, *, channels: int, fan_channels: int,
            axes: Any = None, each: bool = False, **data: Any) -> Node:
    """New weights after a node. fan_channels: channels that each output reads; each: every channel has weights of its own. Equal
    weights after equal nodes are one node."""
    key = (weight.name, weight.entries.tobytes(), id(parent))
    same = (*key, None if bias is None else bias.name, repr(data))
    if same not in parent.functions:
        parent.functions[same] = make("weights", (parent,), place, axes=axes, channels=channels, law=CENTRED if each else GAUSSIAN, key=key,
                                      weight=weight, bias=bias, fan_channels=fan_channels, each=each, **data)
    return parent.functions[same]


class Parts:
    """Parts of the channels of nodes, each made once, so that equal parts are equal nodes."""

    def __init__(self) -> None:
        self._made: dict[Any, Node] = {}

    def of(self, node: Node, channels: np.ndarray, place: str) -> Node:
        """The given channels of a node: of its weights back to those that mix all channels, on every path."""
        key = (id(node), channels.tobytes())
        if key not in self._made:
            self._made[key] = self._part(node, channels, place)
        return self._made[key]

    def _part(self, node, channels, place):
        count, data = len(channels), dict(node.data)
        if node.kind in ("weights", "attention", "encoding"):
            data["weight"] = _rows(data["weight"], channels)
            data["bias"] = _rows(data.get("bias"), channels)
            parents = tuple(self.of(parent, channels, place) for parent in node.parents) if data.get("each") else node.parents
            return make(node.kind, parents, node.place, axes=node.axes, channels=count, law=node.law,
                        key=(data["weight"].name, data["weight"].entries.tobytes(), id(parents[0])), **data)
        if node.kind in (*_LINEAR, "product"):
            parents = tuple(self.of(parent, channels, place) for parent in node.parents)
            return make(node.kind, parents, node.place, axes=node.axes, channels=count, law=node.law, **data)
        if node.kind == "concat":
            return self._part_of_concat(node, channels, place)
        what = "the input's own channels" if node.kind == "input" else f"channels behind {node.place or node.kind}"
        raise refuse(place, f"a part of {what} is taken", "cut the inputs beforehand" if node.kind == "input" else
                     "take the part behind a linear layer")

    def _part_of_concat(self, node, channels, place):
        first, found = 0, []
        for parent in node.parents:
            inside = channels[(channels >= first) & (channels < first + parent.channels)] - first
            if len(inside):
                found.append(parent if len(inside) == parent.channels else self.of(parent, inside, place))
            first += parent.channels
        return found[0] if len(found) == 1 else concatenated(found, node.place)


def concatenated(parents: list[Node], place: str) -> Node:
    """Channels of several nodes side by side."""
    laws = {parent.law for parent in parents}
    return make("concat", tuple(parents), place, channels=sum(parent.channels for parent in parents),
                law=laws.pop() if len(laws) == 1 else "other")


def _rows(weight, channels):
    if weight is None:
        return None
    return WeightRecord(weight.name, weight.values[channels], weight.entries[channels], weight.trained, weight.whole)
