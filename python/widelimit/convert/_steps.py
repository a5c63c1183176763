"""What one operation of a framework stands for: steps, each an operation of _trace."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from ._trace import Operation, Variable

Step = tuple  # (kind, inputs, attributes)


class Earlier(int):
    """As an input: what the step of this number, counted from 0, leaves."""


FIRST = Earlier(0)


def refused(reason: str, advice: str) -> list[Step]:
    """The step of an operation that has no limit."""
    return [("refused", (), {"reason": reason, "advice": advice})]


def written(operations: list[Operation], steps: list[Step], read: Callable[[Any], Any], shape: tuple[int, ...], place: str) -> Variable:
    """Appends operations for the steps, whose inputs are what `read` says, and returns the last one's result, of this shape."""
    outputs: list[Variable] = []
    for number, (kind, inputs, attributes) in enumerate(steps):
        values = tuple(outputs[value] if isinstance(value, Earlier) else read(value) for value in inputs)
        outputs.append(Variable(shape if number == len(steps) - 1 else _shape(kind, values, attributes)))
        operations.append(Operation(kind, values, outputs[-1], attributes, place))
    return outputs[-1]


def _shape(kind, inputs, attributes):
    """The shape that an operation leaves which is not the last of its steps."""
    if kind in ("reshape", "expand"):
        return attributes["shape"]
    if kind == "permute":
        return tuple(inputs[0].shape[k] for k in attributes["order"])
    if kind == "convolution":
        return _after_convolution(inputs, attributes)
    shapes = [value.shape if isinstance(value, Variable) else value.values.shape for value in inputs if value is not None]
    if kind == "contract":
        (batch_a, batch_b), (over_a, over_b) = attributes["batch"], attributes["contracting"]
        a, b = shapes[:2]
        return (*(a[k] for k in batch_a), *(size for k, size in enumerate(a) if k not in (*batch_a, *over_a)),
                *(size for k, size in enumerate(b) if k not in (*batch_b, *over_b)))
    if kind == "axis_map":
        return tuple(len(attributes["matrix"]) if k == attributes["dimension"] else size for k, size in enumerate(shapes[0]))
    if kind == "slice":
        return tuple(len(attributes["indices"]) if k == attributes["dimension"] else size for k, size in enumerate(shapes[0]))
    if kind in ("mean", "sum", "max", "variance"):
        gone, keep = attributes["dimensions"], attributes["keep"]
        return tuple(1 if k in gone else size for k, size in enumerate(shapes[0]) if keep or k not in gone)
    return tuple(np.broadcast_shapes(*shapes))


def _after_convolution(inputs, attributes):
    """[n, out, positions...] of a convolution that is not transposed."""
    sizes, filters = inputs[0].shape, inputs[1].values.shape
    positions = [(size + before + after - dilation * (length - 1) - 1) // stride + 1 for size, length, stride, before, after,
                 dilation in zip(
        sizes[2:], filters[2:], attributes["strides"], *attributes["pads"], attributes["dilations"])]
    return (sizes[0], filters[0], *positions)
