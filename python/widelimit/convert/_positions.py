"""Nodes that move, join and leave out positions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ._axes import BATCH, CHANNEL, Atom, atoms_of, renamed
from ._nodes import Node, make
from ._signals import Signal, settled
from ._trace import refuse


def mapped(signal: Signal, axis: Any, matrix: np.ndarray, place: str) -> Signal:
    """A linear map [out, in] of the positions along an axis."""
    signal = settled(signal, place)
    out, size = matrix.shape
    axes = tuple((name, out if name == axis else length) for name, length in signal.node.axes)
    node = signal.node if np.array_equal(matrix, np.eye(size)) else make("map", (signal.node,), place, axes=axes,
                                                                        matrices={axis: matrix})
    if out == 1:
        node = without(node, axis, place)
    return replace(signal, node=node, dims=renamed(signal.dims, lambda atom: atom if atom.axis != axis else Atom(axis, 1, out)))


def without(node: Node, axis: Any, place: str) -> Node:
    """Without an axis of one position."""
    if axis not in dict(node.axes):
        return node
    return make("index", (node,), place, axes=tuple(pair for pair in node.axes if pair[0] != axis), axis=axis)


def joined(signal: Signal, axes: tuple[Any, ...], place: str) -> Signal:
    """Several axes, all there are, as one of a name of its own; dims must have them side by side."""
    signal = settled(signal, place)
    sizes = tuple(signal.node.size(axis) for axis in axes)
    name, total = ("joined", axes, sizes), int(np.prod(sizes))
    node = make("shape", (_ordered(signal.node, axes, place),), place, axes=((name, total),))

    def change(atom):
        if atom.axis not in axes:
            return atom
        k = axes.index(atom.axis)
        return Atom(name, atom.stride * int(np.prod(sizes[k + 1:])), atom.size)

    return replace(signal, node=node, dims=renamed(signal.dims, change))


def parted(signal: Signal, axis: Any, atoms: list[Atom], place: str) -> Signal:
    """One axis as several, of the atoms, the slowest first. Parts of a joined axis are the axes that it was made of."""
    signal = settled(signal, place)
    sizes = tuple(atom.size for atom in atoms)
    joined_before = isinstance(axis, tuple) and axis[0] == "joined"
    if joined_before and tuple(size for size in axis[2] if size > 1) == sizes:
        names = tuple(name for name, size in zip(axis[1], axis[2]) if size > 1)
    else:
        names = tuple(("part", axis, sizes, k) for k in range(len(sizes)))
    if len(signal.node.axes) > 1:
        raise refuse(place, "an axis is cut into several beside other axes", "reshape all positions together")
    node = make("shape", (signal.node,), place, axes=tuple(zip(names, sizes)))

    def change(atom):
        if atom.axis != axis:
            return atom
        for name, part in zip(names, atoms):
            if part.stride <= atom.stride and atom.stride * atom.size <= part.stride * part.size:
                return Atom(name, atom.stride // part.stride, atom.size)
        raise refuse(place, "positions are cut into parts that overlap", "reshape all positions together")

    return replace(signal, node=node, dims=renamed(signal.dims, change))


def _ordered(node, axes, place):
    """The node with its axes in this order."""
    if tuple(name for name, _ in node.axes if name in axes) == tuple(axes) and len(node.axes) == len(axes):
        return node
    if set(dict(node.axes)) != set(axes):
        raise refuse(place, "some axes of positions are joined and others are not", "join all of them")
    sizes = [node.size(axis) for axis in axes]
    order = np.arange(int(np.prod(sizes))).reshape([size for _, size in node.axes])
    taken = np.transpose(order, [[name for name, _ in node.axes].index(axis) for axis in axes]).ravel()
    return make("map", (node,), place, axes=tuple(zip(axes, sizes)), full=np.eye(len(taken))[taken])


def as_axes(signal: Signal, dimensions: list[int], place: str) -> tuple[Signal, list[Any]]:
    """The signal with exactly one whole axis, or none of size 1, in each of these dimensions."""
    for k in dimensions:
        dimension = signal.dims[k]
        names = {atom.axis for atom in dimension}
        if names & {BATCH, CHANNEL} or any(isinstance(name, tuple) and name[0] == "repeat" for name in names):
            raise refuse(place, f"dimension {k} of {signal.shape} has to be one of positions, and is one of the batch or of channels",
                         "move the dimensions, or say where the batch is (batch_axis)")
        if len(dimension) > 1:
            signal = joined(signal, tuple(atom.axis for atom in dimension), place)
        elif dimension and dimension[0] != Atom(dimension[0].axis, 1, signal.node.size(dimension[0].axis)):
            signal = parted(signal, dimension[0].axis, _parts(signal, dimension[0].axis), place)
    return signal, [signal.dims[k][0].axis if signal.dims[k] else None for k in dimensions]


def _parts(signal, axis):
    return sorted(atoms_of(signal.dims, axis), key=lambda atom: -atom.stride)


def broadcast(signal: Signal, axes: tuple[tuple[Any, int], ...], place: str) -> Signal:
    """The same values at every position of the axes that the signal has lost."""
    signal = settled(signal, place)
    node = _kept(signal.node, place)
    sizes = dict(axes)
    if [name for name, _ in node.axes] != [name for name, _ in axes]:
        raise refuse(place, "a value without positions meets one with positions that it was not made of",
                     "take the mean of positions and broadcast it to the same positions")
    matrices = {name: np.ones((sizes[name], 1)) for name, size in node.axes if size != sizes[name]}
    return replace(signal, node=make("map", (node,), place, axes=axes, matrices=matrices))


def _kept(node, place):
    """The node with the axes of one position that it, or what it is made of, has left out."""
    if node.kind == "index":
        return _kept(node.parents[0], place)
    if node.kind in ("input", "shape", "flatten", "positions") or "full" in node.data:
        return node
    parents = tuple(_kept(parent, place) for parent in node.parents)
    if all(parent is before for parent, before in zip(parents, node.parents)):
        return node
    missing = [pair for pair in parents[0].axes if pair[0] not in dict(node.axes) and pair[1] == 1]
    axes = tuple((name, node.size(name)) for name, _ in parents[0].axes if name in dict(node.axes) or (name, 1) in missing)
    return make(node.kind, parents, node.place, axes=axes, channels=node.channels, law=node.law, key=node.key, **node.data)
