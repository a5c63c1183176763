"""Which axes of a network the dimensions of a tensor are made of, through reshapes, permutations and slices.

A dimension is a tuple of atoms, the slowest first. An atom is a part of an axis (the batch, the channels, or one spatial
axis): the digit of the axis' index that has `size` values and the weight `stride`. A whole axis is (axis, 1, size). Atoms of
size 1 do not exist, so that dimensions of size 1 are ().
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from ._trace import refuse

BATCH, CHANNEL = "batch", "channel"


class Atom(NamedTuple):
    axis: Any
    stride: int
    size: int


Dimension = tuple  # of atoms


def whole(axis: Any, size: int) -> Dimension:
    return (Atom(axis, 1, size),) if size > 1 else ()


def size_of(dimension: Dimension) -> int:
    return prod(atom.size for atom in dimension)


def shape_of(dims: tuple[Dimension, ...]) -> tuple[int, ...]:
    return tuple(size_of(dimension) for dimension in dims)


def merged(atoms: list[Atom]) -> Dimension:
    """Neighbouring digits of one axis as one."""
    result: list[Atom] = []
    for atom in atoms:
        last = result[-1] if result else None
        if last and last.axis == atom.axis and last.stride == atom.stride * atom.size:
            result[-1] = Atom(atom.axis, atom.stride, last.size * atom.size)
        else:
            result.append(atom)
    return tuple(result)


def reshaped(dims: tuple[Dimension, ...], shape: tuple[int, ...], place: str) -> tuple[Dimension, ...]:
    """The dimensions after a reshape in row-major order. ConversionError where an axis would be cut unevenly."""
    rest = [atom for dimension in dims for atom in dimension]
    result = []
    for size in shape:
        taken: list[Atom] = []
        while size > 1:
            atom = rest.pop(0)
            if size % atom.size == 0:
                taken.append(atom)
                size //= atom.size
            elif atom.size % size == 0:
                inner = atom.size // size
                taken.append(Atom(atom.axis, atom.stride * inner, size))
                rest.insert(0, Atom(atom.axis, atom.stride, inner))
                size = 1
            else:
                raise refuse(place, f"a reshape from {shape_of(dims)} to {shape} mixes axes of the network",
                             "reshape so that every axis is kept, joined with its neighbour, or cut into equal parts")
        result.append(merged(taken))
    return tuple(result)


def atoms_of(dims: tuple[Dimension, ...], axis: Any) -> list[Atom]:
    return [atom for dimension in dims for atom in dimension if atom.axis == axis]


def renamed(dims: tuple[Dimension, ...], change: Any) -> tuple[Dimension, ...]:
    """Every atom replaced by change(atom), an atom, or None if it goes."""
    result = []
    for dimension in dims:
        changed = [change(atom) for atom in dimension]
        result.append(merged([atom for atom in changed if atom is not None and atom.size > 1]))
    return tuple(result)
