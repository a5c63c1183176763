"""What is added to a value and does not depend on the input: biases, learned and fixed encodings of positions, extra tokens."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ._axes import BATCH, CHANNEL, Atom
from ._nodes import CENTRED, GAUSSIAN, OTHER, RAW, SHIFTED, Node, WeightRecord, make
from ._positions import as_axes, mapped
from ._signals import Signal, settled, unscaled
from ._sums import summed
from ._trace import Constant, Operation, refuse
from ._weights import vector


def shifted_channels(signal: Signal, constant: Constant, place: str) -> Signal | None:
    """The bias of the layer whose output the signal is; None if there is no such layer, or it has one."""
    node = signal.node
    if node.kind not in ("weights", "attention") or node.data["bias"] is not None or signal.scale != 1 \
            or constant.values.size != node.channels or signal.rows is not None:
        return None
    bias = vector(constant)
    same = ("bias", bias.name, bias.entries.tobytes())
    if same not in node.functions:
        node.functions[same] = make(node.kind, node.parents, node.place, axes=node.axes, channels=node.channels, law=node.law, key=node.key,
                                    **{**node.data, "bias": bias})
    return replace(signal, node=node.functions[same])


def encoded(state: Any, signal: Signal, sign: float, constant: Constant, values: np.ndarray, place: str) -> Signal:
    """The signal plus sign times the constant, of as many dimensions as the signal."""
    if signal.node.law == RAW:
        raise refuse(place, "a constant is added to the inputs' own channels, which are few, so that no mean over them is taken",
                     "add it to the inputs beforehand, or behind the first layer")
    varying = [k for k, size in enumerate(values.shape) if size > 1]
    positions = [k for k in varying if not any(atom.axis in (CHANNEL, BATCH) for atom in signal.dims[k])]
    signal, axes = as_axes(signal, positions, place)
    count = int(np.prod([values.shape[k] for k in varying if k not in positions], dtype=int))
    if count != signal.node.channels:
        if not values.any():
            return signal
        raise refuse(place, "a number for each position, the same for all channels, is added", "add a vector for each position")
    table = np.moveaxis(values, positions, range(len(positions)))
    order = [axes.index(axis) for axis, _ in signal.node.axes if axis in axes]
    table = np.transpose(table, [*order, *range(len(positions), table.ndim)])
    sizes = tuple((axis, size) for axis, size in signal.node.axes if axis in axes)
    entries = None if constant.parameter is None else np.transpose(
        np.moveaxis(constant.parameter.entries.reshape(values.shape), positions, range(len(positions))),
        [*order, *range(len(positions), table.ndim)])
    node = encoding(signal.node, table.reshape(*(size for _, size in sizes), count), entries, constant, sizes, place)
    return summed([(signal.scale, signal.node), (sign, node)], signal.dims, place)


def encoding(parent: Node, table: np.ndarray, entries: np.ndarray | None, constant: Constant, varying: Any, place: str) -> Node:
    """A node with the parent's axes that holds a table [sizes of `varying`..., channels]: of parameters, or fixed numbers."""
    channels = table.shape[-1]
    rows = table.reshape(-1, channels)
    if constant.parameter is None:
        return make("encoding", (parent,), place, channels=channels, law=SHIFTED, key=("fixed", id(constant), place),
                    fixed=rows, varying=varying, weight=None, bias=None)
    weight = WeightRecord(constant.parameter.name, np.asarray(rows.T, float), entries.reshape(-1, channels).T, constant.parameter.trained,
                        constant.parameter.whole)
    return make("encoding", (parent,), place, channels=channels, law=GAUSSIAN, key=(weight.name, weight.entries.tobytes()),
                weight=weight, bias=None, varying=varying)


def centred(node: Node) -> Node:
    """A sum without the means over channels of the fixed numbers in it, which a layer norm takes away."""
    if node.kind == "encoding" and node.law == SHIFTED:
        rows = node.data["fixed"]
        data = {**node.data, "fixed": rows - rows.mean(1, keepdims=True)}
        return make("encoding", node.parents, node.place, channels=node.channels, law=CENTRED, key=(*node.key, "centred"), **data)
    if node.kind == "sum" and node.law == SHIFTED:
        parents = tuple(centred(parent) for parent in node.parents)
        return make("sum", parents, node.place, axes=node.axes, law=CENTRED, **node.data)
    return node


def concat_positions(state: Any, values: tuple[Any, ...], k: int, operation: Operation) -> Signal:
    """Values one after the other along an axis of positions, constants (extra tokens, zeros) among them."""
    place = operation.place
    signals = {j: unscaled(value, place) for j, value in enumerate(values) if isinstance(value, Signal)}
    first = next(j for j, signal in signals.items() if signal.dims[k])
    main, (axis,) = as_axes(signals[first], [k], place)
    nodes = []
    for j, value in enumerate(values):
        if isinstance(value, Constant):
            nodes.append(_tokens(main, axis, k, value, place))
            continue
        signal = main if j == first else settled(signals[j], place)
        if signal.dims[k]:
            signal, (other,) = as_axes(signal, [k], place)
            nodes.append(_as_named(signal.node, other, axis))
        elif signal.node.kind == "index" and signal.node.data["axis"] == axis:
            nodes.append(signal.node.parents[0])  # One position that was cut out.
        else:
            nodes.append(make("map", (signal.node,), place, axes=((axis, 1), *signal.node.axes), full=np.eye(
                int(np.prod([size for _, size in signal.node.axes])))))
    parts = [_part_of(node, axis) for node in nodes]
    if all(base is parts[0][0] and matrix is not None for base, matrix in parts):
        moved = mapped(replace(main, node=parts[0][0], dims=_resized(main.dims, axis, parts[0][0].size(axis))), axis,
                       np.concatenate([matrix for _, matrix in parts]), place)
        return moved
    rest = {tuple((name, size) for name, size in node.axes if name != axis) for node in nodes}
    if len(rest) > 1:
        raise refuse(place, "values with different other positions are put one after the other", "bring them to one shape")
    total = sum(node.size(axis) for node in nodes)
    laws = {node.law for node in nodes}
    node = make("positions", tuple(nodes), place, axes=tuple((name, total if name == axis else size) for name, size in nodes[first].axes),
                law=laws.pop() if len(laws) == 1 else OTHER, axis=axis)
    dims = tuple((Atom(axis, 1, total),) if j == k else dimension for j, dimension in enumerate(main.dims))
    return Signal(node, dims)


def _resized(dims, axis, size):
    """dims as they are where the axis has another size."""
    return tuple((Atom(axis, 1, size),) if dimension and dimension[0].axis == axis else dimension for dimension in dims)


def _part_of(node, axis):
    """What a node takes positions along one axis of, and their matrix; None where it does something else."""
    if node.kind == "index" and node.data["axis"] == axis:
        return _part_of(node.parents[0], axis)
    if node.kind == "map" and set(node.data.get("matrices", {None: 0})) <= {axis}:
        base, inner = _part_of(node.parents[0], axis)
        matrix = node.data["matrices"].get(axis)
        return base, inner if matrix is None else matrix @ inner
    if node.kind == "map" and "full" in node.data and len(node.axes) == 1 and node.axes[0][0] == axis and node.parents[0].kind == "index":
        return _part_of(node.parents[0], axis)
    return node, np.eye(node.size(axis)) if axis in dict(node.axes) else None


def _as_named(node, name, wanted):
    if name == wanted:
        return node
    return make("map", (node,), node.place, axes=tuple((wanted if axis == name else axis, size) for axis, size in node.axes),
                matrices={})


def _tokens(main, axis, k, constant, place):
    """A constant [batch, tokens, channels] as positions of their own; equal for all inputs."""
    values = constant.values
    batch = next(j for j, dimension in enumerate(main.dims) if any(atom.axis == BATCH for atom in dimension))
    if np.ptp(values, batch).any():
        raise refuse(place, "constants that differ from input to input are put beside positions", "use the same for all inputs")
    count = values.shape[k]
    if main.node.law == RAW:
        raise refuse(place, "tokens are put beside the inputs' own channels", "put them behind the first layer")
    blank = np.zeros((count, main.node.size(axis)))
    blank[np.arange(count), np.arange(count) % main.node.size(axis)] = 1
    base = make("map", (main.node,), place, axes=tuple((name, count if name == axis else size) for name, size in main.node.axes),
                matrices={axis: blank})
    order = [k, *(j for j in range(values.ndim) if j not in (k, batch))]
    table = np.transpose(values, [batch, *order])[0]
    entries = None if constant.parameter is None else np.transpose(constant.parameter.entries, [batch, *order])[0]
    channels = main.node.channels
    if table.size != count * channels:
        raise refuse(place, "tokens of several spatial axes are put beside positions", "join the axes first")
    varying = ((axis, count),) if count > 1 else ()
    entries = None if entries is None else entries.reshape(table.size)
    return encoding(base, table.reshape(count, channels) if count > 1 else table.reshape(channels), entries, constant, varying, place)
