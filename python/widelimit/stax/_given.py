"""Kernels made by hand, or changed, as the start of a network.

The library computes kernels of inputs. Here, numbers as inputs represent the given kernel's inputs by their variances, and a
layer before all others turns a pair of such numbers into the covariances that are given for it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .. import layers
from .._arrays import element_type, numbers
from ._inputs import Batch
from ._kernel import unzipped
from ._module import Value


_NO_PAIRS = "Kernel: covariances between inputs of one batch: expected a Kernel with diagonal_batch=False"


def checked_shape(kernel):
    """The sizes of the axes of positions."""
    if kernel.shape1 is None or kernel.shape2 is None:
        raise ValueError("Kernel: shape1, shape2: expected the shapes of the activations, got None")
    own = (kernel.batch_axis, kernel.channel_axis)
    spatial = [tuple(size for k, size in enumerate(shape) if k not in own) for shape in (kernel.shape1, kernel.shape2)]
    if spatial[0] != spatial[1] or len(kernel.shape1) < 2:
        raise ValueError(f"Kernel: expected shapes [n, ..., channels] with the same positions, got {kernel.shape1} and "
                         f"{kernel.shape2}")
    return spatial[0]


def form_of(kernel):
    """The value before a network that a Kernel says, without layers."""
    return Value(checked_shape(kernel), int(kernel.shape1[kernel.channel_axis]), kernel.channel_axis, kernel.batch_axis,
                 is_gaussian=bool(kernel.is_gaussian), is_reversed=bool(kernel.is_reversed),
                 is_diagonal=bool(kernel.diagonal_spatial), has_masks=kernel.mask1 is not None, has_patterns=False)


class GivenKernel:
    """A Kernel, checked. precision: 'float', 'double' or None, as kernel_fn takes it."""

    def __init__(self, kernel, precision=None):
        self.is_diagonal = bool(kernel.diagonal_spatial)
        self._kernel, self._axes = kernel, 1 if kernel.diagonal_batch else 2
        self._shape = checked_shape(kernel)
        self.x1_is_x2 = bool(np.asarray(kernel.x1_is_x2))
        self._dtype = element_type(precision, kernel.nngp)
        n1, n2 = self._sizes = tuple(shape[kernel.batch_axis] for shape in (kernel.shape1, kernel.shape2))
        self._pairs = {"nngp": self._matrices(kernel.nngp, "nngp", n1, n2)}
        self.has_ntk = kernel.ntk is not None
        if self.has_ntk:
            ntk = np.broadcast_to(0.0, np.shape(kernel.nngp)) if np.ndim(kernel.ntk) == 0 and not kernel.ntk else kernel.ntk
            self._pairs["ntk"] = self._matrices(ntk, "ntk", n1, n2)
        self._variances = [self._matrices(kernel.cov1, "cov1", *(n1,) * self._axes)]
        if kernel.cov2 is not None:
            self._variances.append(self._matrices(kernel.cov2, "cov2", *(n2,) * self._axes))
        elif not self.x1_is_x2:
            raise ValueError("Kernel: cov2: expected the variances of x2, got None and x1_is_x2=False")
        # For one batch, the covariances among its inputs are those of all pairs, if the kernel has them.
        self.is_one = self.x1_is_x2 and kernel.cov2 is None and self._is_symmetric()
        if not self.is_one and len(self._variances) == 1:
            self._variances *= 2

    def _matrices(self, array, name, *batch):
        """[batch..., d, d'], or [batch..., d] if the kernel only has variances of positions."""
        array = numbers(array, name=f"Kernel: {name}")
        order = self._shape[::-1] if self._kernel.is_reversed and not self.is_diagonal else self._shape
        expected = (*batch, *(size for size in order for _ in range(1 if self.is_diagonal else 2)))
        if array.shape != expected:
            raise ValueError(f"Kernel: {name}: expected shape {expected}, got {array.shape}")
        return unzipped(array, self._shape, self.is_diagonal, self._kernel.is_reversed and not self.is_diagonal, len(batch))

    def _is_symmetric(self):
        nngp, own = self._pairs["nngp"], self._variances[0]
        turned = (1, 0, 2) if self.is_diagonal else (1, 0, 3, 2)
        diagonal = np.arange(len(nngp))
        return nngp.shape[0] == nngp.shape[1] and all(
            np.array_equal(array, array.transpose(turned)) for array in self._pairs.values()) and np.array_equal(
                nngp[diagonal, diagonal], own if self._axes == 1 else own[diagonal, diagonal])

    def value(self, has_patterns):
        """The value before a network: after the layer that gives the kernel."""
        given = self._layers_of_positions() if self._shape else self._layers_of_vectors()
        return replace(form_of(self._kernel), layers=given, has_patterns=has_patterns)

    def _layers_of_positions(self):
        leaves = "gaussian" if self._kernel.is_gaussian else "not_gaussian"
        return (layers.pair(self._given, leaves=leaves, kind="kernel"),)

    def _layers_of_vectors(self):
        """Layers for many pairs at once. After the first dense layer, K = T = c, the products of numbers' roots; the dense layer
        at the end, after which channels are Gaussian, adds K to T."""
        is_gaussian = self._kernel.is_gaussian

        def nngp(p, q, c):
            return self._of_many("nngp", p, q, c)

        def slope(p, q, c):
            ntk = self._of_many("ntk", p, q, c)
            return (ntk - self._of_many("nngp", p, q, c) if is_gaussian else ntk) / np.where(c > 0, c, 1)

        return (layers.dense(), layers.elementwise_dual(nngp, slope if self.has_ntk else None, kind="kernel"),
                *([layers.dense()] if is_gaussian else []))

    def _of_many(self, name, variances1, variances2, products):
        """_of() for arrays of vectors' numbers. Where there are no inputs, the library has zeros."""
        there = products > 0
        if not np.all(there):
            result = np.zeros(np.shape(products))
            result[there] = self._of_many(name, variances1[there], variances2[there], products[there])
            return result
        first, second = (np.rint(np.asarray(v)).astype(int) - 1 for v in (variances1, variances2))
        if self.is_one:
            return self._one(self._pairs[name])[first, second]
        n1 = self._sizes[0]
        result = np.zeros(first.shape)
        across = self._one(self._pairs[name])
        for rows, columns in ((first, second), (second, first)):
            chosen = (rows < n1) & (columns >= n1)
            result[chosen] = across[rows[chosen], columns[chosen] - n1]
        if name == "ntk":  # Nothing depends on the NTK of inputs within a batch.
            return result
        for own, shift, chosen in ((self._variances[0], 0, (first < n1) & (second < n1)),
                                   (self._variances[1], n1, (first >= n1) & (second >= n1))):
            rows, columns = first[chosen] - shift, second[chosen] - shift
            if self._axes == 1 and (rows != columns).any():
                raise ValueError(_NO_PAIRS)
            result[chosen] = self._one(own)[rows] if self._axes == 1 else self._one(own)[rows, columns]
        return result

    def _one(self, matrices):
        """Matrices of vectors, which have one position."""
        return matrices[..., 0] if self.is_diagonal else matrices[..., 0, 0]

    def batches(self, graphs):
        """The batches that represent x1, and x2 if it is another batch."""
        sides = [self._batch(0, 1, self._kernel.mask1, graphs[0], self._kernel.shape1)]
        if not self.is_one:
            sides.append(self._batch(1, 1 + self._sizes[0], self._kernel.mask2, graphs[1], self._kernel.shape2))
        return sides[0], None if self.is_one else sides[1]

    def _are_zeros(self, side):
        """Which vectors of x1 (side 0) or x2 are 0: the library knows them by inputs of 0, and takes other zeros for rounding."""
        own = self._one(self._variances[side])
        own = own if self._axes == 1 else own.diagonal()
        if self.has_ntk:
            return (own == 0) & np.all(self._one(self._pairs["ntk"]) == 0, axis=1 - side)
        return own == 0

    def _batch(self, side, first, mask, graphs, full_shape):
        count = self._sizes[side]
        codes = np.sqrt(np.arange(first, first + count, dtype=float))
        if not self._shape:
            codes[self._are_zeros(side)] = 0
        codes = codes.reshape(-1, *[1] * (len(self._shape) + 1))
        array = np.ascontiguousarray(np.broadcast_to(codes, (count, *self._shape, 1)), self._dtype)
        if mask is None:
            return Batch(array, None, graphs)
        axes = (self._kernel.batch_axis, self._kernel.channel_axis)
        is_masked = np.moveaxis(np.broadcast_to(np.asarray(mask), full_shape), axes, (0, -1))
        counts = np.ascontiguousarray(~is_masked.all(-1))
        return Batch(array, counts, graphs) if self._shape else Batch(array, None, graphs, counts)

    def _given(self, nngp, ntk, variances1, variances2):
        """The covariances of a pair of inputs, identified by their variances."""
        first, second = (round(float(variances[0])) - 1 for variances in (variances1, variances2))
        return self._of("nngp", first, second), None if ntk is None else self._of("ntk", first, second)

    def _of(self, name, first, second):
        n1 = self._sizes[0]
        if self.is_one or (first < n1 <= second):
            found = self._pairs[name][first, second if self.is_one else second - n1]
        elif second < n1 <= first:
            found = self._pairs[name][second, first - n1].T
        elif name == "ntk":  # Nothing depends on the NTK of inputs within a batch.
            return np.zeros((int(np.prod(self._shape)),) * 2)
        else:
            own, shift = (self._variances[0], 0) if first < n1 else (self._variances[1], n1)
            if self._axes == 1 and first != second:
                raise ValueError(_NO_PAIRS)
            found = own[first - shift] if self._axes == 1 else own[first - shift, second - shift]
        return np.diag(found) if self.is_diagonal else found
