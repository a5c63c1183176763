"""From the operations of a traced network to the nodes of its limit. This is the one translation of all front ends."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _arithmetic, _contractions, _norms, _shapes
from ._attention import Attention
from ._axes import BATCH, CHANNEL, whole
from ._encodings import concat_positions
from ._nodes import RAW, Node, every_node, make
from ._signals import Logits, Signal, Statistic, settled, unscaled
from ._trace import Constant, ConversionError, Operation, Trace, Variable, refuse
from ._weights import Parts


def _needed(trace):
    """The operations that the output depends on."""
    needed, kept = {trace.output}, []
    for operation in reversed(trace.operations):
        if operation.output in needed:
            needed.update(value for value in operation.inputs if isinstance(value, Variable))
            kept.append(operation)
    return kept[::-1]


def _dropout(state, operation, value):
    rate = operation.attributes["rate"]
    if isinstance(value, Logits) or rate == 0:
        if rate:
            raise refuse(operation.place, "attention weights are dropped at random", "module.eval(), or dropout of values only")
        return value
    value = unscaled(value, operation.place)
    law = "centred" if value.node.law == "gaussian" else value.node.law
    return Signal(make("dropout", (value.node,), operation.place, law=law, keep=1 - rate), value.dims)


def _refused(state, operation, *values):
    raise refuse(operation.place, operation.attributes["reason"], operation.attributes["advice"])


_HANDLERS = {
    "contract": _contractions.contract, "convolution": _contractions.convolution, "embedding": _contractions.embedding,
    "attention": _contractions.attention, "elementwise": _arithmetic.elementwise, "add": _arithmetic.add,
    "subtract": _arithmetic.subtract, "multiply": _arithmetic.multiply, "divide": _arithmetic.divide, "power": _arithmetic.power,
    "maximum": _arithmetic.maximum, "minimum": _arithmetic.minimum, "where": _arithmetic.where, "reshape": _shapes.reshape,
    "permute": _shapes.permute, "expand": _shapes.expand, "slice": _shapes.take, "axis_map": _shapes.axis_map, "concat": _shapes.concat,
    "mean": _shapes.reduced, "sum": _shapes.reduced, "variance": _shapes.reduced, "max": _shapes.maximum_over,
    "softmax": lambda state, operation, value: state.attention.softmax(operation, value), "layer_norm": _norms.norm_operation,
    "rms_norm": _norms.norm_operation, "group_norm": _norms.group_norm, "group_of_norm": _norms.group_of_norm, "dropout": _dropout,
    "refused": _refused,
}


class Translation:
    """The values of a trace, one after the other. channel: the input's dimension of channels, None for indices."""

    def __init__(self, trace: Trace, batch: int, channel: int | None, one_hot: bool, untie: bool) -> None:
        shape = trace.input.shape
        self.attention, self.norms, self.parts, self.one_hot = Attention(), _norms.Written(), Parts(), one_hot
        self._count, self._values = 0, {}
        axes = tuple((k, size) for k, size in enumerate(shape) if k not in (batch, channel))
        self.root = make("input", (), "the input", axes=axes, channels=1 if channel is None else shape[channel], law=RAW)
        names = {batch: BATCH, channel: CHANNEL}
        self._values[trace.input] = Signal(self.root, tuple(whole(names.get(k, k), size) for k, size in enumerate(shape)))
        for k, operation in enumerate(_needed(trace)):
            try:
                self._values[operation.output] = self._computed(operation)
            except ConversionError as error:
                error.reached = k
                raise
        self.output = self._finished(trace)
        _check(self.output, untie)

    def fresh(self) -> int:
        """A number that no other repeat has."""
        self._count += 1
        return self._count

    def concat_positions(self, values: Any, k: int, operation: Operation) -> Signal:
        return concat_positions(self, values, k, operation)

    def one_hot_input(self, node: Node, count: int, place: str) -> Node:
        """The input as one-hot vectors of this many channels."""
        if self.root.channels not in (1, count):
            raise refuse(place, f"the indices are looked up in tables of {self.root.channels} and of {count} rows", "use one table")
        if self.root.channels == 1:
            self.root = make("input", (), node.place, axes=node.axes, channels=count, law=RAW)
        return self.root

    def _computed(self, operation):
        values = [self._values.get(value) if isinstance(value, Variable) else value for value in operation.inputs]
        handler = _HANDLERS.get(operation.kind)
        if handler is None:
            raise refuse(operation.place, f"the operation {operation.kind} has no limit here", "use others, or write to us")
        try:
            result = handler(self, operation, *values)
        except ConversionError:
            raise
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            kinds = ", ".join(type(value).__name__.lower() for value in values)
            raise refuse(operation.place, f"the operation {operation.kind} of {kinds} is not understood ({error})",
                         "write it by layers that docs/convert.md lists") from error
        if result.shape != operation.output.shape:
            raise refuse(operation.place, f"{operation.kind} leaves the shape {operation.output.shape}, which was read as {result.shape}",
                         "please report this module")
        return result

    def _finished(self, trace):
        if not isinstance(trace.output, Variable):
            raise refuse("module", "the output does not depend on the input", "pass a module that uses its input")
        value = self._values[trace.output]
        if isinstance(value, (Logits, Statistic)) or value.rows is not None:
            raise refuse("module", "the output is no value of channels (attention weights, a norm)", "return what a layer leaves")
        return unscaled(settled(value, "module"), "module").node


def _check(output, untie):
    """Weights that are used twice, and values that nothing here can end in or go on from."""
    seen: dict[str, list[Node]] = {}
    for node in every_node(output):
        heads = [parent for parent in node.parents if parent.kind == "heads"]
        if heads or (node is output and node.kind == "heads"):
            raise refuse((heads or [node])[0].place, "attention is used without weights for its outputs", "put a linear layer behind it")
        if node.kind == "centring" and node.law not in ("gaussian", "centred"):
            raise refuse(node.place, "the mean over channels is taken away outside of a norm", "use a layer norm")
        for part in (node, *_projections(node)):
            for weight in (part.data.get("weight"), part.data.get("bias")):
                if weight is not None and np.ptp(weight.values) > 0:  # Zeros that a file keeps once are no tie.
                    seen.setdefault(weight.name, []).append(part)
    for name, nodes in seen.items():
        if not untie:
            _check_shared(name, nodes)


def _projections(node):
    heads = node.data.get("heads_node")
    return [heads.data[name] for name in ("query", "keys", "value")] if heads is not None else []


def _check_shared(name, nodes):
    used: dict[int, Node] = {}
    for node in nodes:
        weight = next(w for w in (node.data.get("weight"), node.data.get("bias")) if w is not None and w.name == name)
        for entry in weight.entries.ravel()[:: max(1, weight.entries.size // 1000)]:
            other = used.setdefault(int(entry), node)
            if other is not node and not (other.key == node.key and other.parents == node.parents):
                raise refuse(node.place, f"the parameter {name} is used at two places (also by {other.place}): tied weights make both "
                                         f"outputs "
                             "depend on each other", "give each its own, or pass untie=True, which draws them independently")
