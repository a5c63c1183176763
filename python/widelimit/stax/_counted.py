"""Requests in which of some inputs nothing counts: their kernels are 0, as in neural-tangents, and the library computes the others'."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ._masks import mask_through
from ._request import array_shapes, facts_of


def count_of(module, first, batch):
    """Whether something of each input [n] counts before the network and after each of its layers, except within branches. batch: a
    Batch with a mask."""
    mask = ~(batch.mask if batch.mask is not None else batch.counts)[..., None]
    mask = np.moveaxis(mask, (0, -1), (first.batch_axis, first.channel_axis))
    found = [_counts(mask, first)]
    mask_through(module, mask, first, lambda mask, value: found.append(_counts(mask, value)))
    return np.logical_and.reduce(found)


def _counts(mask, value):
    return ~np.moveaxis(mask, value.batch_axis, 0).reshape(mask.shape[value.batch_axis], -1).all(1)


@dataclass(frozen=True)
class Counted:
    """The requests for all inputs, of which those count that left and right say (right: None for one batch); `some`: the request for
    these, None if there are none of a batch, `sample`: one for all, which is not computed."""

    sample: Any
    left: np.ndarray
    right: Any

    @property
    def value(self):
        return self.sample.value

    @property
    def first(self):
        return self.sample.first

    @property
    def x1_is_x2(self):
        return self.sample.x1_is_x2

    def stored(self, store):
        return replace(self, sample=self.sample.stored(store))

    def facts(self):
        request = self.sample
        n1, n2 = (len(side) for side in (self.left, self.left if self.right is None else self.right))
        return facts_of(request.value, n1, n2, request.x1_is_x2, request.diagonal_batch, request.diagonal_spatial)

    def _some(self):
        if not self.left.any() or (self.right is not None and not self.right.any()):
            return None
        request = self.sample
        return replace(request, left=request.left.among(self.left),
                       right=None if request.right is None else request.right.among(self.right))

    def _places(self, name):
        """The inputs that count along the axes of the batches of an array."""
        right = self.left if self.right is None else self.right
        if name in ("nngp", "ntk"):
            return np.ix_(self.left, right)
        side = self.left if name == "cov1" else right
        return (side,) if self.sample.diagonal_batch else np.ix_(side, side)

    def arrays(self, names):
        """As Request.arrays()."""
        some, request = self._some(), self.sample
        full1, full2 = self._full_shapes()
        shapes = array_shapes(replace(request.value, rows=()), request.first, full1, full2, request.diagonal_spatial, request.diagonal_batch)
        found = {} if some is None else some.arrays(names)
        result = {}
        for name in names:
            if name == "cov2" and self.right is None:
                result[name] = None
                continue
            result[name] = np.zeros(shapes[name], request.left.array.dtype)
            if found:
                result[name][self._places(name)] = found[name]
        return result

    def _full_shapes(self):
        shapes = []
        for side in (self.left, self.right):
            sizes = list(self.first.full_shape)
            sizes[self.first.batch_axis] = None if side is None else len(side)
            shapes.append(None if side is None else tuple(sizes))
        return shapes

    def vjp(self, weights, wanted="both"):
        """As Request.vjp()."""
        some = self._some()
        sides = [self.sample.left] if self.right is None else [self.sample.left, self.sample.right]
        whole = [np.zeros_like(batch.array) for batch in sides]
        found = [None] * len(sides) if some is None else some.vjp(self._taken(weights), wanted)
        for array, part, counts in zip(whole, found, (self.left, self.right)):
            if part is not None:
                array[counts] = part
        return tuple(array if wanted in (side, "both") else None for array, side in zip(whole, ("x1", "x2")))

    def number_vjp(self, weights, paths):
        """As Request.number_vjp()."""
        some = self._some()
        return [0.0] * len(paths) if some is None else some.number_vjp(self._taken(weights), paths)

    def _taken(self, weights):
        return {name: None if weight is None else np.asarray(weight)[self._places(name)] for name, weight in weights.items()}
