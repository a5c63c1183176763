"""One call of kernel_fn, and the kernels of the library that it needs."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Optional

import numpy as np

from .._arrays import numbers
from ..derivatives import cotangent, gram_diagonal_vjp, gram_number_vjp, gram_vjp
from ..kernels import gram, gram_diagonal, position_covariances, position_variances
from ._inputs import Batch
from ._kernel import zipped
from ._module import Value


@dataclass(frozen=True)
class Request:
    """A network, its inputs, and the form in which its kernels are wanted."""

    network: Any
    value: Value
    left: Batch
    right: Optional[Batch]
    diagonal_batch: bool
    diagonal_spatial: bool
    threads: int
    first: Optional[Value] = None  # The value before the network.
    store: Optional[str] = None  # The folder of a store for nngp and ntk.

    def stored(self, store):
        """The same, with a folder for nngp and ntk."""
        return replace(self, store=store)

    @cached_property
    def x1_is_x2(self):
        return self.right is None or self.left.is_same(self.right)

    def arrays(self, names):
        """Some of ARRAYS by their names."""
        result = {}
        kernels = [name for name in ("nngp", "ntk") if name in names]
        if kernels:
            # Equal inputs are the same ones: dropout drops the same in both.
            right = None if self.x1_is_x2 else self.right
            found = self._kernels(self.left, right, "both" if len(kernels) == 2 else kernels[0], self.store)
            result = {name: getattr(found, name) for name in kernels}
        for name, batch in (("cov1", self.left), ("cov2", self.right)):
            if name in names:
                result[name] = None if batch is None else self._variances(batch)
        return {name: result[name] for name in names}

    def vjp(self, weights, wanted="both"):
        """Derivatives of the sum of weights times arrays with respect to the inputs, channels last: those of x1 and, if there is
        one, of x2; None if `wanted` is the other. weights: cotangents of ARRAYS by their names, None for those without."""
        given = self._cotangents(weights)
        parts = [[], []]
        if given["nngp"] is not None or given["ntk"] is not None or not any(
                weights.get(name) is not None for name in ("cov1", "cov2")):
            for part, found in zip(parts, self._pairs_vjp({name: given[name] for name in ("nngp", "ntk")}, wanted)):
                part.append(found)
        for part, side, batch, name in zip(parts, ("x1", "x2"), (self.left, self.right), ("cov1", "cov2")):
            if given[name] is not None and wanted in (side, "both"):
                part.append(self._variances_vjp(batch, given[name]))
        sides = (self.left,) if self.right is None else (self.left, self.right)
        return tuple(self._total(part, batch, wanted in (side, "both"))
                     for part, batch, side in zip(parts, sides, ("x1", "x2")))

    @staticmethod
    def _total(parts, batch, is_wanted):
        if not is_wanted:
            return None
        present = [part for part in parts if part is not None]
        return sum(present[1:], present[0]) if present else np.zeros_like(batch.array)

    def number_vjp(self, weights, paths):
        """Derivatives of the same sum with respect to numbers of the network: sums over the paths of each."""
        given, flat = self._cotangents(weights), [path for several in paths for path in several]
        total = np.zeros(len(flat))
        pairs = {name: given[name] for name in ("nngp", "ntk") if given[name] is not None}
        options = {"numbers": flat, "threads": self.threads}
        if pairs:
            right = None if self.x1_is_x2 else self.right
            sides = {**self.left.options("1"), **({} if right is None else right.options("2"))}
            total += gram_number_vjp(self.network, self.left.array, None if right is None else right.array, **pairs,
                                     **options, **sides)
        for batch, name in ((self.left, "cov1"), (self.right, "cov2")):
            if given[name] is not None:
                matrix = np.diag(given[name]) if self.diagonal_batch else given[name]
                total += gram_number_vjp(self.network, batch.array, nngp=matrix, **options, **batch.options("1"))
        found = iter(total)
        return [sum(next(found) for _ in several) for several in paths]

    def _cotangents(self, weights):
        dtype = self.left.array.dtype
        found = {name: cotangent(weights.get(name), dtype, name) for name in ("nngp", "ntk")}
        for name in ("cov1", "cov2"):
            found[name] = None if weights.get(name) is None else numbers(weights[name], dtype, name)
        return found

    def _variances_vjp(self, batch, weight):
        if self.diagonal_batch:
            return gram_diagonal_vjp(self.network, batch.array, nngp=weight, threads=self.threads, **batch.options())
        return gram_vjp(self.network, batch.array, nngp=weight, threads=self.threads, **batch.options("1"))

    def _pairs_vjp(self, given, wanted):
        left, right = self.left, self.right
        if right is None:
            return (gram_vjp(self.network, left.array, wanted=wanted, threads=self.threads, **given, **left.options("1")),)
        sides = {**left.options("1"), **right.options("2")}
        n = len(left.array)
        if not self.x1_is_x2 or any(part is not None and part.shape != (n, n) for part in given.values()):
            return gram_vjp(self.network, left.array, right.array, wanted=wanted, threads=self.threads, **given, **sides)
        # Equal inputs are the same ones, and the kernel of an input with itself depends on both sides alike.
        own = {name: None if part is None else part.diagonal() for name, part in given.items()}
        of_pairs = {name: None if part is None else part - np.diag(own[name]) for name, part in given.items()}
        halves = gram_diagonal_vjp(self.network, left.array, threads=self.threads, **own, **left.options()) / 2
        found = gram_vjp(self.network, left.array, right.array, wanted=wanted, threads=self.threads, **of_pairs, **sides)
        return tuple(None if part is None else part + halves for part in found)

    def _kernels(self, left, right, kernels, store=None):
        second = None if right is None else right.array
        options = {**left.options("1"), **({} if right is None else right.options("2"))}
        if not self.value.shape:
            return gram(self.network, left.array, second, kernels, threads=self.threads, store=store, **options)
        if store is not None:
            raise NotImplementedError("store: expected a network with a readout; kernels between positions are kept in "
                                      "memory")
        found = position_covariances(self.network, left.array, second, kernels, self.diagonal_spatial,
                                     threads=self.threads, **options)
        return found._replace(**{name: self._zipped(getattr(found, name), 2) for name in ("nngp", "ntk")})

    def _variances(self, batch):
        if not self.diagonal_batch:
            return self._kernels(batch, None, "nngp").nngp
        if not self.value.shape:
            return gram_diagonal(self.network, batch.array, "nngp", threads=self.threads, **batch.options()).nngp
        found = position_variances(self.network, batch.array, "nngp", self.diagonal_spatial, threads=self.threads,
                                   **batch.options())
        return self._zipped(found.nngp, 1)

    def _zipped(self, matrices, batch_axes):
        if matrices is None:
            return None
        return zipped(matrices, self.value.shape, self.diagonal_spatial, self.value.is_reversed, batch_axes)

    def facts(self):
        """The facts that a Kernel gives about its arrays."""
        right = self.left if self.right is None else self.right
        return facts_of(self.value, len(self.left.array), len(right.array), self.x1_is_x2, self.diagonal_batch,
                        self.diagonal_spatial)


def facts_of(value, n1, n2, x1_is_x2, diagonal_batch, diagonal_spatial):
    """The facts that a Kernel of n1 and n2 inputs after a network gives about its arrays."""
    shape1, shape2 = (tuple(n if size == -1 else size for size in value.full_shape) for n in (n1, n2))
    return {"x1_is_x2": x1_is_x2, "is_gaussian": value.is_gaussian, "is_reversed": value.is_reversed, "is_input": False,
            "diagonal_batch": diagonal_batch, "diagonal_spatial": bool(value.shape) and diagonal_spatial,
            "shape1": shape1, "shape2": shape2, "batch_axis": value.batch_axis, "channel_axis": value.channel_axis}


def array_shapes(value, first, shape1, shape2, is_diagonal, diagonal_batch):
    """Shapes of ARRAYS for inputs of full shapes at `first`, after the network; None for cov2 without x2."""
    order = value.shape[::-1] if value.is_reversed else value.shape
    positions = tuple(size for size in order for _ in range(1 if is_diagonal else 2))
    n1, n2 = (None if shape is None else counted(shape[first.batch_axis], value.rows) for shape in (shape1, shape2))
    pairs = (n1, n1 if n2 is None else n2, *positions)

    def variances(n):
        return None if n is None else (n, *positions) if diagonal_batch else (n, n, *positions)

    return {"nngp": pairs, "ntk": pairs, "cov1": variances(n1), "cov2": variances(n2)}


def counted(n, slices):
    """The number of inputs out of n that slices of the batch leave."""
    for rows in slices:
        n = len(range(n)[rows])
    return n
