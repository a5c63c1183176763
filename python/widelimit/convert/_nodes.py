"""The limit of a network as an expression: nodes, each with the nodes that it is computed from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

RAW, GAUSSIAN, CENTRED, SHIFTED, OTHER = "raw", "gaussian", "centred", "shifted", "other"


@dataclass(frozen=True, eq=False)
class WeightRecord:
    """Weights, or additive parameters, as a layer uses them: values [out, fan-in], and which entries of which parameter they
    are; whole: all values of the parameter."""

    name: str
    values: np.ndarray
    entries: np.ndarray
    trained: bool
    whole: np.ndarray


@dataclass(frozen=True, eq=False)
class Node:
    """A value [n, spatial..., channels] of the network.

    axes     the spatial axes in order, pairs of a name and a size
    law      raw: the input's own channels. gaussian: independent Gaussian channels. centred: independent channels of mean 0
             that are not Gaussian. shifted: gaussian plus fixed numbers. other: independent channels
    key      equal for nodes with the same weights applied to the same values
    """

    kind: str
    parents: tuple["Node", ...]
    axes: tuple[tuple[Any, int], ...]
    channels: int
    law: str
    place: str
    data: dict[str, Any] = field(default_factory=dict)
    key: Any = None
    spine: tuple["Node", ...] = ()
    functions: dict[Any, Any] = field(default_factory=dict)  # Nodes of functions of this one, each made once.

    def size(self, axis: Any) -> int:
        return dict(self.axes).get(axis, 1)


def common(spines: list[tuple[Node, ...]]) -> tuple[Node, ...]:
    """The nodes that all of them begin with."""
    shortest = min(spines, key=len)
    for k, node in enumerate(shortest):
        if any(spine[k] is not node for spine in spines):
            return shortest[:k]
    return shortest


def make(kind: str, parents: tuple[Node, ...], place: str, *, axes: Any = None, channels: int | None = None, law: str | None = None,
         key: Any = None, **data: Any) -> Node:
    """A node with the axes, channels and law of its first parent, where nothing else is said."""
    first = parents[0] if parents else None
    node = Node(kind, parents, first.axes if axes is None else tuple(axes), first.channels if channels is None else channels,
                first.law if law is None else law, place, data, key)
    object.__setattr__(node, "spine", (common([parent.spine for parent in parents]) if parents else ()) + (node,))
    return node


def every_node(output: Node) -> list[Node]:
    """All nodes that a node is computed from, each once, itself the last."""
    found: dict[int, Node] = {}

    def visit(node):
        if id(node) not in found:
            for parent in node.parents:
                visit(parent)
            found[id(node)] = node

    visit(output)
    return list(found.values())
