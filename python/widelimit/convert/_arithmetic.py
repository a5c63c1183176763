"""Elementwise operations of one or two values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ._axes import BATCH, CHANNEL, Atom
from ._functions import slope_of
from ._encodings import encoded, shifted_channels
from ._nodes import make
from ._positions import broadcast, joined, mapped
from ._shapes import row_axis
from ._signals import HeadMap, Logits, Signal, Statistic, applied, effective, scaled, settled
from ._sums import multiplied, summed
from ._trace import Constant, Operation, refuse


def elementwise(state: Any, operation: Operation, value: Any) -> Any:
    function = operation.attributes["function"]
    if isinstance(value, Signal):
        slope = slope_of(function) if value.rows is not None else None
        if slope is not None:
            return replace(value, rows=replace(value.rows, matrix=slope * value.rows.matrix))
        return _with_root(applied(value, function, operation.place), value, function)
    if isinstance(value, Logits):
        return state.attention.elementwise(operation, value)
    return state.norms.root(operation, value)


def _with_root(result, value, function):
    """Remembers of which value this is the square."""
    probe = np.array([-1.5, 0.7])
    return replace(result, root=value) if np.allclose(function(probe), probe**2) else result


def add(state: Any, operation: Operation, a: Any, b: Any) -> Any:
    return _plus(state, operation, a, b, 1.0, 1.0)


def subtract(state: Any, operation: Operation, a: Any, b: Any) -> Any:
    return _plus(state, operation, a, b, 1.0, -1.0)


def _plus(state, operation, a, b, sign_a, sign_b):
    place = operation.place
    if isinstance(a, Constant):
        a, b, sign_a, sign_b = b, a, sign_b, sign_a
    if isinstance(a, Logits) or isinstance(b, Logits):
        return state.attention.plus(operation, a, b, sign_a, sign_b)
    if isinstance(a, Statistic) or isinstance(b, Statistic):
        return state.norms.plus(operation, a, b, sign_a, sign_b)
    if isinstance(b, Constant):
        return _plus_constant(state, operation, scaled(a, sign_a), sign_b, b)
    if a.rows is not None or b.rows is not None:
        return _plus_rows(a, b, sign_a, sign_b, place)
    a, b = aligned(a, b, place)
    if a.node is b.node and (a.function or b.function):
        first, second = effective(a), effective(b)
        return Signal(a.node, a.dims, 1.0, lambda z: sign_a * first(z) + sign_b * second(z))
    a, b = settled(a, place), settled(b, place)
    return summed([(sign_a * a.scale, a.node), (sign_b * b.scale, b.node)], a.dims, place)


def _plus_rows(a, b, sign_a, sign_b, place):
    if a.rows is None or b.rows is None or a.node is not b.node or a.dims != b.dims:
        raise refuse(place, "parts of different heads' channels are added", "add before channels are cut into heads")
    axis = a.rows.axis if a.rows.axis is not None else b.rows.axis
    matrix = sign_a * a.scale * a.rows.matrix + sign_b * b.scale * b.rows.matrix
    return replace(a, scale=1.0, rows=HeadMap(matrix, axis, a.rows.size))


def aligned(a: Signal, b: Signal, place: str) -> tuple[Signal, Signal]:
    """Two signals with the same dims, by broadcasting and by joining axes where the other's are joined."""
    rank = max(len(a.dims), len(b.dims))
    a, b = (replace(s, dims=((),) * (rank - len(s.dims)) + s.dims) for s in (a, b))
    for k in range(rank):
        for first, second in ((a, b), (b, a)):
            here, there = first.dims[k], second.dims[k]
            if here != there and len(here) == 1 and isinstance(here[0].axis, tuple) and here[0].axis[0] == "joined" and len(there) > 1:
                moved = joined(second, tuple(atom.axis for atom in there), place)
                a, b = (a, moved) if second is b else (moved, b)
    dims = []
    for here, there in zip(a.dims, b.dims):
        here, there = (() if _is_repeat(d) else d for d in (here, there))
        if here != there and here and there:
            raise refuse(place, f"values of shapes {a.shape} and {b.shape} are combined whose dimensions are different axes of the network",
                         "reshape them alike")
        dims.append(here or there)
    found = [atom for dimension in dims for atom in dimension]
    if len(set(found)) < len(found):
        raise refuse(place, "values of pairs of positions are made (one dimension of positions against another)",
                     "use attention, or combine values position by position")
    axes = max((s.node.axes for s in (a, b)), key=len)
    a, b = (replace(s if dict(s.node.axes) == dict(axes) else broadcast(s, axes, place), dims=tuple(dims)) for s in (a, b))
    if a.node.axes != b.node.axes:
        raise refuse(place, f"values with different positions are combined, {a.node.axes} and {b.node.axes}", "bring them to one shape")
    return a, b


def _is_repeat(dimension):
    return bool(dimension) and isinstance(dimension[0].axis, tuple) and dimension[0].axis[0] == "repeat"


def spread(constant: Constant, dims: Any) -> tuple[np.ndarray, list[int]]:
    """A constant with as many dimensions as dims, and those along which it varies."""
    values = constant.values.reshape((1,) * (len(dims) - constant.values.ndim) + constant.values.shape)
    return values, [k for k, size in enumerate(values.shape) if size > 1 and np.ptp(values, k).any()]


def _kinds(signal, varying):
    return {("batch" if atom.axis == BATCH else "channel" if atom.axis == CHANNEL else "row" if atom.axis[0:1] == ("row",) else "position")
            if isinstance(atom.axis, tuple) or isinstance(atom.axis, str) else "position"
            for k in varying for atom in signal.dims[k]}


def _plus_constant(state, operation, signal, sign, constant):
    place = operation.place
    values, varying = spread(constant, signal.dims)
    kinds = _kinds(signal, varying)
    if "batch" in kinds:
        raise refuse(place, "a constant that differs from input to input is added", "leave it out")
    if not values.any() and constant.parameter is None:
        return signal
    if constant.number is not None and (constant.parameter is None or (values.size == 1 and signal.node.channels > 1)):
        number = sign * constant.number
        return applied(signal, lambda z: z + number, place)
    if signal.node.kind == "norm" and not values.any() and all(
            atom.axis == CHANNEL for k, size in enumerate(values.shape) if size > 1 for atom in signal.dims[k]):
        return signal  # A norm's shifts, whose gradients are left out as those of its gains.
    if signal.function is None and constant.parameter is not None and kinds <= {"channel"}:
        biased = shifted_channels(signal, constant, place)
        if biased is not None:
            return biased
    return encoded(state, settled(signal, place), sign, constant, values, place)


def multiply(state: Any, operation: Operation, a: Any, b: Any) -> Any:
    place = operation.place
    if isinstance(a, Constant):
        a, b = b, a
    if isinstance(a, Logits) or isinstance(b, Logits):
        return state.attention.times(operation, a, b)
    if isinstance(a, Statistic) or isinstance(b, Statistic):
        return state.norms.times(operation, a, b)
    if isinstance(b, Constant):
        return times_constant(a, b, place)
    if a.rows is not None or b.rows is not None:
        raise refuse(place, "parts of heads' channels are multiplied with each other", "multiply before channels are cut into heads")
    a, b = aligned(a, b, place)
    if a.node is b.node:
        first, second = effective(a), effective(b)
        is_square = a.function is b.function and a.scale == b.scale
        return Signal(a.node, a.dims, 1.0, lambda z: first(z) * second(z), root=a if is_square else None)
    a, b = settled(a, place), settled(b, place)
    return scaled(multiplied([a.node, b.node], a.dims, place), a.scale * b.scale)


def times_constant(signal: Signal, constant: Constant, place: str) -> Signal:
    values, varying = spread(constant, signal.dims)
    kinds = _kinds(signal, varying)
    if not kinds:
        return scaled(signal, float(values.ravel()[0]))
    if "row" in kinds or signal.rows is not None:
        return _rows_times(signal, values, varying, place)
    if kinds == {"position"}:
        return _positions_times(signal, values, varying, place)
    if kinds == {"channel"}:
        mean = float((values**2).mean())
        if np.ptp(values) <= 1e-3 * np.sqrt(mean):
            return scaled(signal, float(values.mean()))
        signal = settled(signal, place)
        return replace(signal, node=make("sum", (signal.node,), place, scales=(float(np.sqrt(mean)),), law="other"))
    if kinds == {"channel", "position"} and _is_head_table(signal, values, varying):
        from ._shapes import as_rows

        return _rows_times(as_rows(signal, place), values, varying, place)
    raise refuse(place, f"a constant that varies along {' and '.join(sorted(kinds))} is multiplied",
                 "multiply by one number, or by learned weights")


def _is_head_table(signal, values, varying):
    return all(len(signal.dims[k]) == 1 for k in varying) and any(
        atom.axis == CHANNEL and atom.stride == 1 for k in varying for atom in signal.dims[k]) and signal.node.kind == "weights"


def _rows_times(signal, values, varying, place):
    """Rotary tables: numbers of every position and channel of a head."""
    matrix, axis = signal.rows.matrix, signal.rows.axis
    table = values
    order, places = [], []
    for k in varying:
        (atom,) = signal.dims[k]
        if isinstance(atom.axis, tuple) and atom.axis[0] == "row":
            places.append(row_axis(signal, k))
        elif atom.axis in (BATCH, CHANNEL) or (axis is not None and atom.axis != axis):
            raise refuse(place, "a table of numbers of several axes is multiplied to a head's channels", "use one table of positions")
        else:
            axis = atom.axis
            places.append(0)
        order.append(k)
    table = table[tuple(slice(None) if k in order else 0 for k in range(values.ndim))]
    shape = [1] * matrix.ndim
    for size, at in zip(table.shape, places):
        shape[at] = size
    table = np.transpose(table, np.argsort(places)).reshape(shape)
    return replace(signal, rows=HeadMap(matrix * table, axis, signal.rows.size))


def _positions_times(signal, values, varying, place):
    (k, *others) = varying
    if others or len(signal.dims[k]) != 1 or signal.dims[k][0].size != signal.node.size(signal.dims[k][0].axis):
        raise refuse(place, "numbers of several spatial axes are multiplied", "multiply by numbers of one axis")
    return mapped(signal, signal.dims[k][0].axis, np.diag(values.ravel()), place)


def divide(state: Any, operation: Operation, a: Any, b: Any) -> Any:
    place = operation.place
    if isinstance(b, Constant) and not isinstance(a, Constant):
        return multiply(state, operation, a, Constant(1 / b.values))
    if isinstance(b, Logits):
        return state.attention.divided(operation, a, b)
    if isinstance(b, Statistic):
        return state.norms.times(operation, a, replace(b, power=-b.power))
    if isinstance(a, Constant) and a.number is not None:
        number = a.number
        return applied(b, lambda z: number / z, place)
    if isinstance(a, Signal) and isinstance(b, Signal) and b.function is not None and a.node is b.node:
        first, second = effective(a), effective(b)
        return Signal(a.node, a.dims, 1.0, lambda z: first(z) / second(z))
    raise refuse(place, "values of the network are divided by each other", "use a norm, or softmax of logits")


def power(state: Any, operation: Operation, a: Any, b: Any) -> Any:
    if not isinstance(b, Constant) or b.number is None:
        raise refuse(operation.place, "a power that depends on the input", "use a constant power")
    exponent = b.number
    if isinstance(a, Statistic):
        return state.norms.root(operation, a, exponent)
    return _with_root(applied(a, lambda z: np.asarray(z, float) ** exponent, operation.place), a, lambda z: z**exponent)


def _extreme(choose):
    def handler(state, operation, a, b):
        if isinstance(a, Constant):
            a, b = b, a
        if isinstance(a, Statistic):
            return a  # A variance that is kept above 0, or above a number below it.
        if isinstance(a, Logits):
            return state.attention.extreme(operation, a, b)
        if isinstance(b, Constant) and b.number is not None:
            number = b.number
            return applied(a, lambda z: choose(z, number), operation.place)
        if isinstance(b, Signal):
            a, b = aligned(a, b, operation.place)
            if a.node is b.node:
                first, second = effective(a), effective(b)
                return Signal(a.node, a.dims, 1.0, lambda z: choose(first(z), second(z)))
        raise refuse(operation.place, "the larger or smaller of two values of the network has no limit here", "use a product or a sum")
    return handler


maximum, minimum = _extreme(np.maximum), _extreme(np.minimum)


def where(state: Any, operation: Operation, condition: Any, a: Any, b: Any) -> Any:
    """Masks of logits; of one value's function, a choice by its own sign."""
    if isinstance(condition, Constant) and any(isinstance(value, Logits) for value in (a, b)):
        return state.attention.where(operation, condition, a, b)
    sources = [value for value in (condition, a, b) if isinstance(value, Signal)]
    if sources and all(isinstance(value, Signal) or (isinstance(value, Constant) and value.number is not None)
                       for value in (condition, a, b)) \
            and all(source.node is sources[0].node for source in sources):
        parts = [effective(value) if isinstance(value, Signal) else (lambda z, number=value.number: number + 0 * z)
                 for value in (condition, a, b)]
        return Signal(sources[0].node, sources[0].dims, 1.0, lambda z: np.where(parts[0](z) != 0, parts[1](z), parts[2](z)))
    if isinstance(condition, Constant) and isinstance(a, Signal) and isinstance(b, Constant) and not b.values.any():
        return times_constant(a, Constant(condition.values.astype(float)), operation.place)
    if isinstance(condition, Constant) and isinstance(b, Signal) and isinstance(a, Constant) and not a.values.any():
        return times_constant(b, Constant(1.0 - condition.values.astype(float)), operation.place)
    raise refuse(operation.place, "a choice between values of the network that depends on others", "use a product with a gate")


__all__ = ["Atom", "add", "divide", "elementwise", "maximum", "minimum", "multiply", "power", "subtract", "where"]
