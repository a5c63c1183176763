"""Parameters of networks of finite width in neural-tangents' nesting: a list for serial(), a tuple of arrays for a layer.
The library has them in one vector; a structure says where each of its numbers belongs.

A structure consists of lists and tuples of Place and None. `form` of a module makes it, with a Counter that hands out the vector.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import numbers
from .._caller import is_live


class Counter:
    """Hands out the library's vector of parameters from its beginning. heads: the number of attention heads, and the channels of
    keys in each."""

    def __init__(self, heads=(8, 32)):
        self.count, self.heads = 0, heads

    def take(self, *shape):
        """The next numbers, in an array of indices."""
        first, self.count = self.count, self.count + int(np.prod(shape))
        return np.arange(first, self.count).reshape(shape)


class Shapes(Counter):
    """The same where only the shapes count: arrays without memory of their own."""

    def take(self, *shape):
        return np.broadcast_to(np.int8(0), shape)


@dataclass
class Place:
    """An array of parameters: the indices of its numbers in the vector, or, if `has_effect` is False, an array of its
    shape whose numbers change nothing, such as biases times a deviation of 0."""

    indices: np.ndarray
    has_effect: bool = True

    @property
    def shape(self):
        return self.indices.shape


def stacked(trees):
    """One structure made of several, with a leading axis for them, or a list of them if they are not alike."""
    return _stacked(trees) if are_alike(trees) else list(trees)


def are_alike(trees):
    """Whether structures have the same shapes."""
    return all(_forms(tree) == _forms(trees[0]) for tree in trees)


def _stacked(trees):
    first = trees[0]
    if isinstance(first, (list, tuple)):
        return type(first)(_stacked(parts) for parts in zip(*trees))
    if first is None:
        return None
    return Place(np.stack([place.indices for place in trees]), first.has_effect)


def _forms(tree):
    return [_forms(part) for part in tree] if isinstance(tree, (list, tuple)) else None if tree is None else tree.shape


def unpacked(tree, vector, nothing):
    """Arrays with the numbers of a vector; nothing(shape): zeros of a shape."""
    if isinstance(tree, Place):
        return vector[tree.indices] if tree.has_effect else nothing(tree.shape)
    return None if tree is None else type(tree)(unpacked(part, vector, nothing) for part in tree)


class Packer:
    """The inverse of unpacked(): parameters in one vector."""

    def __init__(self, tree, count):
        self.tree, self.count = tree, count
        indices = [place.indices.ravel() for place in self._places(tree)]
        order = np.concatenate(indices) if indices else np.zeros(0, int)
        self._inverse = None if np.array_equal(order, np.arange(len(order))) else np.argsort(order)

    def _places(self, tree):
        if isinstance(tree, Place):
            if tree.has_effect:
                yield tree
        elif tree is not None:
            for part in tree:
                yield from self._places(part)

    def __call__(self, params):
        """A vector [count] in double precision; for arrays that are being differentiated, one of their library."""
        arrays = list(_matching(self.tree, params, "params"))
        if is_live(arrays):
            vector = _joined_by_owner(arrays)
        else:
            arrays = [numbers(array, name="params") for array in arrays]
            vector = np.concatenate([array.ravel() for array in arrays]) if arrays else np.zeros(0)
        return vector if self._inverse is None else vector[self._inverse]


def check_parameters(tree, params):
    """ValueError for parameters of another structure or other shapes."""
    for _ in _matching(tree, params, "params"):
        pass


def _joined_by_owner(arrays):
    jax = sys.modules.get("jax")
    if jax is not None and any(isinstance(array, jax.Array) for array in arrays):
        return jax.numpy.concatenate([jax.numpy.ravel(array) for array in arrays])
    import torch

    return torch.cat([torch.as_tensor(array).reshape(-1) for array in arrays])


def _matching(tree, params, name):
    """The arrays that have an effect, in order. ValueError for another structure or other shapes."""
    if isinstance(tree, Place):
        shape = None if params is None or isinstance(params, (list, tuple, dict)) else np.shape(params)
        if shape is None or not _broadcasts(shape, tree.shape):
            got = f"one of shape {shape}" if shape is not None else _said(params)
            raise ValueError(f"{name}: expected an array of shape {tree.shape}, got {got}")
        if tree.has_effect:
            yield params
    elif tree is None:
        if params is not None and not _is_zero(params):  # Where there are no biases neural-tangents' users write 0.
            raise ValueError(f"{name}: expected None, got {_said(params)}")
    else:
        if not isinstance(params, (list, tuple)) or len(params) != len(tree):
            kind = "list" if isinstance(tree, list) else "tuple"
            raise ValueError(f"{name}: expected a {kind} of {len(tree)}, as init_fn gives it, got {_said(params)}")
        for k, (part, given) in enumerate(zip(tree, params)):
            yield from _matching(part, given, f"{name}[{k}]")


def _is_zero(params: Any) -> bool:
    return isinstance(params, (int, float)) and params == 0


def _broadcasts(shape: Any, expected: Any) -> bool:
    """Whether shapes differ by leading axes of size 1 at most, which biases [1, C] lack beside inputs of more axes."""
    missing = len(expected) - len(shape)
    return missing >= 0 and expected == (1,) * missing + tuple(shape)


def _said(params: Any) -> str:
    if isinstance(params, (list, tuple)):
        return f"a {type(params).__name__} of {len(params)}"
    return f"an array of shape {np.shape(params)}" if hasattr(params, "shape") else repr(params)
