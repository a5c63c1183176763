"""Operations that arrange: reshapes, permutations, slices, concatenations, means."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ._axes import BATCH, CHANNEL, Atom, renamed, reshaped, size_of
from ._positions import as_axes, mapped
from ._signals import HeadMap, Logits, Signal, Statistic, settled, unscaled
from ._trace import Constant, Operation, refuse
from ._weights import concatenated


def reshape(state: Any, operation: Operation, value: Any) -> Any:
    return _with_rows_in_order(replace(value, dims=reshaped(value.dims, operation.attributes["shape"], operation.place)))


def permute(state: Any, operation: Operation, value: Any) -> Any:
    return _with_rows_in_order(replace(value, dims=tuple(value.dims[k] for k in operation.attributes["order"])))


def expand(state: Any, operation: Operation, value: Any) -> Any:
    """New sizes of dimensions of size 1 are repeats, which belong to no axis."""
    shape = operation.attributes["shape"]
    dims = ((),) * (len(shape) - len(value.dims)) + value.dims
    return replace(value, dims=tuple((Atom(("repeat", state.fresh()), 1, size),) if size_of(dimension) != size else dimension
                                     for dimension, size in zip(dims, shape)))


def take(state: Any, operation: Operation, value: Any) -> Any:
    """slice: entries `indices` along a dimension."""
    k, indices = operation.attributes["dimension"], np.asarray(operation.attributes["indices"])
    dimension, place = value.dims[k], operation.place
    if len(indices) == size_of(dimension) and (indices == np.arange(len(indices))).all():
        return value
    if not isinstance(value, Signal):
        if isinstance(value, Logits):
            raise refuse(place, "a part of attention weights is taken", "attend to a part of the positions by a mask")
        return replace(value, dims=value.dims[:k] + (dimension if len(indices) > 1 else (),) + value.dims[k + 1:])
    if not dimension:
        return replace(value, dims=value.dims[:k] + ((Atom(("repeat", state.fresh()), 1, len(indices)),),) + value.dims[k + 1:])
    axis = dimension[0].axis
    if axis == BATCH:
        raise refuse(place, "a part of the batch is taken", "every input has to be computed by itself")
    if isinstance(axis, tuple) and axis[0] == "repeat":
        return replace(value, dims=value.dims[:k] + (((Atom(axis, 1, len(indices)),) if len(indices) > 1 else ()),) + value.dims[k + 1:])
    if isinstance(axis, tuple) and axis[0] == "row":
        return _of_rows(value, k, lambda matrix, at: np.take(matrix, indices, at))
    if axis == CHANNEL:
        return _channels(state, value, k, indices, place)
    value, (axis,) = as_axes(value, [k], place)
    return mapped(value, axis, np.eye(value.node.size(axis))[indices], place)


def _channels(state, signal, k, indices, place):
    if len(signal.dims[k]) != 1:
        raise refuse(place, "a part of joined channels and positions is taken", "take it before they are joined")
    atom = signal.dims[k][0]
    inner = atom.stride == 1 and atom.size < signal.node.channels
    if inner or signal.rows is not None:
        return _of_rows(as_rows(signal, place), k, lambda matrix, at: np.take(matrix, indices, at))
    digits = np.arange(signal.node.channels) // atom.stride % atom.size
    chosen = np.concatenate([np.flatnonzero(digits == index) for index in indices]) if atom.stride == 1 else \
        np.flatnonzero(np.isin(digits, indices))
    node = state.parts.of(signal.node, chosen, place)

    def change(other):
        if other.axis != CHANNEL:
            return other
        if other == atom:
            return Atom(CHANNEL, atom.stride, len(indices))
        return Atom(CHANNEL, other.stride * len(indices) // atom.size, other.size) if other.stride > atom.stride else other

    return replace(signal, node=node, dims=renamed(signal.dims, change))


def as_rows(signal: Signal, place: str) -> Signal:
    """A signal whose channels of a head are rows of a matrix. The outermost atom of channels counts heads."""
    if signal.rows is not None:
        return signal
    signal = settled(signal, place)
    atoms = [atom for dimension in signal.dims for atom in dimension if atom.axis == CHANNEL]
    heads = max(atoms, key=lambda atom: atom.stride)
    inner = [atom for atom in atoms if atom is not heads]
    if not inner:
        raise refuse(place, "a part of a head's channels is taken from what is no head", "cut channels into heads first")
    falling = sorted(inner, key=lambda atom: -atom.stride)
    matrix = np.eye(heads.stride).reshape(1, *(atom.size for atom in falling), heads.stride)
    matrix = np.transpose(matrix, [0, *(1 + falling.index(atom) for atom in inner), len(inner) + 1])
    dims = renamed(signal.dims, lambda atom: Atom(("row", inner.index(atom)), 1, atom.size) if atom in inner else atom)
    return _with_rows_in_order(replace(signal, dims=dims, rows=HeadMap(matrix, None, heads.stride)))


def _with_rows_in_order(signal: Any) -> Any:
    """The matrix with one axis of rows for each dimension of dims that has rows, in their order."""
    if not isinstance(signal, Signal) or signal.rows is None:
        return signal
    matrix = signal.rows.matrix
    atoms = [[atom for atom in dimension if _is_row(atom)] for dimension in signal.dims]
    flat = [atom for found in atoms for atom in found]
    falling = sorted(flat, key=lambda atom: (atom.axis[1], -atom.stride))
    matrix = matrix.reshape(len(matrix), *(atom.size for atom in falling), matrix.shape[-1])
    matrix = np.transpose(matrix, [0, *(1 + falling.index(atom) for atom in flat), matrix.ndim - 1])
    sizes = [size_of(tuple(found)) for found in atoms if found]
    matrix = matrix.reshape(len(matrix), *sizes, matrix.shape[-1])
    names = iter(range(len(sizes)))
    dims = tuple((Atom(("row", next(names)), 1, size_of(tuple(found))),) if found else dimension
                 for found, dimension in zip(atoms, signal.dims))
    return replace(signal, dims=dims, rows=replace(signal.rows, matrix=matrix))


def _of_rows(signal, k, change):
    """change(matrix, axis of the matrix) for the rows in dimension k."""
    matrix = change(signal.rows.matrix, row_axis(signal, k))
    size = matrix.shape[row_axis(signal, k)]
    # A dimension of one row keeps its atom: it is an axis of the matrix.
    dims = signal.dims[:k] + ((Atom(signal.dims[k][0].axis, 1, size),),) + signal.dims[k + 1:]
    return replace(signal, dims=dims, rows=replace(signal.rows, matrix=matrix))


def row_axis(signal: Signal, k: int) -> int:
    """The axis of the matrix for the rows in dimension k: rows are numbered as dims have them, behind the positions."""
    return 1 + sum(1 for dimension in signal.dims[:k] for atom in dimension if _is_row(atom))


def _is_repeat(atom):
    return isinstance(atom.axis, tuple) and atom.axis[0] == "repeat"


def _is_row(atom):
    return isinstance(atom.axis, tuple) and atom.axis[0] == "row"


def axis_map(state: Any, operation: Operation, value: Any) -> Any:
    """A linear map of what must be positions."""
    if not isinstance(value, Signal):
        raise refuse(operation.place, "attention weights or statistics are mapped", "leave out the map")
    if not value.dims[operation.attributes["dimension"]]:
        return mapped_single(state, operation, value)
    value, (axis,) = as_axes(value, [operation.attributes["dimension"]], operation.place)
    return mapped(value, axis, operation.attributes["matrix"], operation.place)


def mapped_single(state, operation, value):
    """A map [out, 1] of one position."""
    k, matrix, place = operation.attributes["dimension"], operation.attributes["matrix"], operation.place
    value = settled(value, place)
    if len(matrix) == 1:
        return replace(value, scale=value.scale * float(matrix[0, 0]))
    raise refuse(place, f"one position becomes {len(matrix)}", "broadcast it where it is added or multiplied")


def concat(state: Any, operation: Operation, *values: Any) -> Any:
    k, place = operation.attributes["dimension"], operation.place
    signals = [value for value in values if isinstance(value, Signal)]
    if len(signals) == len(values) and all(signal.rows is not None or _is_head(signal, k) for signal in signals):
        return _concat_rows(signals, k, place)
    if any(not isinstance(value, (Signal, Constant)) for value in values):
        raise refuse(place, "attention weights are concatenated", "concatenate what they attend to")
    dimension = next((signal.dims[k] for signal in signals if signal.dims[k]), ())
    if not dimension:
        raise refuse(place, f"values are stacked along a new dimension {k}", "concatenate channels or positions")
    if dimension[0].axis == BATCH:
        raise refuse(place, "batches are concatenated", "every input has to be computed by itself")
    if dimension[0].axis == CHANNEL:
        return _concat_channels(signals, values, k, place)
    return state.concat_positions(values, k, operation)


def _is_head(signal, k):
    dimension = signal.dims[k]
    return len(dimension) == 1 and dimension[0].axis == CHANNEL and dimension[0].stride == 1 and \
        dimension[0].size < signal.node.channels and signal.node.kind == "weights"


def _concat_rows(signals, k, place):
    signals = [as_rows(signal, place) for signal in signals]
    if any(signal.node is not signals[0].node or signal.dims[:k] != signals[0].dims[:k] for signal in signals):
        raise refuse(place, "parts of different heads' channels are concatenated", "concatenate parts of one head")
    count, at = max(len(signal.rows.matrix) for signal in signals), row_axis(signals[0], k)
    is_new = not signals[0].dims[k]
    matrices = [signal.scale * (np.expand_dims(signal.rows.matrix, at) if is_new else signal.rows.matrix) for signal in signals]
    matrix = np.concatenate([np.broadcast_to(m, (count, *m.shape[1:])) for m in matrices], at)
    axis, first = next((s.rows.axis for s in signals if s.rows.axis is not None), None), signals[0]
    dims = renamed(first.dims, lambda atom: Atom(("row", atom.axis[1] + (is_new and atom.axis[1] >= at - 1)), 1, atom.size)
                   if _is_row(atom) else atom)
    dims = dims[:k] + ((Atom(("row", at - 1), 1, matrix.shape[at]),),) + dims[k + 1:]
    return replace(first, dims=dims, scale=1.0, rows=HeadMap(matrix, axis, first.rows.size))


def _concat_channels(signals, values, k, place):
    if len(signals) < len(values):
        raise refuse(place, "constant channels are concatenated to channels of the network", "add a learned encoding instead")
    for signal in signals:
        if any(len([atom for atom in dimension if atom.axis == CHANNEL]) and dimension != (Atom(CHANNEL, 1, signal.node.channels),)
               for dimension in signal.dims if dimension):
            raise refuse(place, "parts of heads are concatenated as channels", "join heads first")
    signals = [unscaled(signal, place) for signal in signals]
    names = {signal.node.axes for signal in signals}
    if len(names) > 1:
        raise refuse(place, f"channels at different positions are concatenated: {sorted(map(str, names))}", "bring them to one shape first")
    node = concatenated([signal.node for signal in signals], place)
    dims = tuple((Atom(CHANNEL, 1, node.channels),) if j == k else dimension for j, dimension in enumerate(signals[0].dims))
    return Signal(node, dims)


def reduced(state: Any, operation: Operation, value: Any) -> Any:
    """mean and sum, over positions or, as a statistic, over channels."""
    dimensions, place = operation.attributes["dimensions"], operation.place
    if isinstance(value, Logits):
        return state.attention.reduced(operation, value)
    atoms = [atom for k in dimensions for atom in value.dims[k]]
    if isinstance(value, Statistic) or not atoms:
        return _dropped(value, operation)
    if any(atom.axis == BATCH for atom in atoms):
        raise refuse(place, "a mean over the batch makes every output depend on all inputs", "leave it out (batch norm: module.eval())")
    if any(atom.axis == CHANNEL for atom in atoms):
        return _dropped(state.norms.statistic(operation, value, atoms), operation)
    value = settled(value, place)
    for axis in dict.fromkeys(atom.axis for atom in atoms if not _is_repeat(atom)):
        value = _mean_along(value, axis, [atom for atom in atoms if atom.axis == axis], place)
    count = int(np.prod([atom.size for atom in atoms]))
    scale = value.scale * (count if operation.kind == "sum" else 1)
    return _dropped(replace(value, scale=scale), operation)


def _mean_along(value, axis, atoms, place):
    size = value.node.size(axis)
    index, rest = np.arange(size), np.zeros(size, int)
    stride = 1
    for atom in sorted((a for d in value.dims for a in d if a.axis == axis and a not in atoms), key=lambda atom: atom.stride):
        rest = rest + index // atom.stride % atom.size * stride
        stride *= atom.size
    matrix = (rest[None] == np.arange(stride)[:, None]) * (stride / size)
    kept = [a for d in value.dims for a in d if a.axis == axis and a not in atoms]
    if len(kept) > 1:
        raise refuse(place, "a mean over the middle part of an axis", "reshape all positions together")
    dims = renamed(value.dims, lambda atom: None if atom in atoms else Atom(axis, 1, size) if atom.axis == axis else atom)
    return mapped(replace(value, dims=dims), axis, matrix, place)


def _dropped(value, operation):
    """Without the reduced dimensions, which have no atoms of the network left, or kept of size 1."""
    dimensions, keep = operation.attributes["dimensions"], operation.attributes["keep"]
    if keep:
        return replace(value, dims=tuple(() if k in dimensions else dimension for k, dimension in enumerate(value.dims)))
    return replace(value, dims=tuple(dimension for k, dimension in enumerate(value.dims) if k not in dimensions))


def maximum_over(state: Any, operation: Operation, value: Any) -> Any:
    """max: of logits, which softmax subtracts; a maximum over positions has no limit."""
    if isinstance(value, Logits):
        return state.attention.reduced(operation, value)
    raise refuse(operation.place, "a maximum over positions or channels has no limit in closed form", "take the mean (average pooling)")
