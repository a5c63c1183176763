"""The inputs of kernel_fn: arrays in the layout that the network was told, with masks and graphs."""

from dataclasses import dataclass
from typing import Optional

import numpy as np

from .._arrays import numbers
from .._jax import is_traced


@dataclass(frozen=True)
class Batch:
    """Inputs [n, spatial..., channels] with their masks and adjacency matrices; counts [n], of vectors: whether something of one
    counts."""

    array: np.ndarray
    mask: Optional[np.ndarray]
    graphs: Optional[np.ndarray]
    counts: Optional[np.ndarray] = None

    def options(self, suffix=""):
        """Options for gram()."""
        found = {"mask": self.mask, "graphs": self.graphs}
        return {name + suffix: value for name, value in found.items() if value is not None}

    def chosen(self, slices):
        """Some of the inputs."""
        if not slices:
            return self
        batch = self
        for rows in slices:
            batch = batch.among(rows)
        return batch

    def among(self, rows):
        """The inputs of a slice, or of truth values."""
        parts = (self.array, self.mask, self.graphs, self.counts)
        return Batch(*(None if part is None else np.ascontiguousarray(part[rows]) for part in parts))

    def is_same(self, other):
        """Whether these are the inputs of another batch."""
        pairs = zip((self.mask, self.graphs, self.counts), (other.mask, other.graphs, other.counts))
        return same_inputs(self.array, other.array) and all(
            (a is None and b is None) or (a is not None and b is not None and np.array_equal(a, b)) for a, b in pairs)


def same_inputs(x1, x2):
    """Whether two arrays count as one, as in neural-tangents: if no number differs by 1e-12."""
    if x1 is x2:
        return True
    if x1.shape != x2.shape:
        return False
    return all(bool((np.abs(a - b) < 1e-12).all()) for a, b in ((x1[:1], x2[:1]), (x1, x2)))  # Most differ at once.


def are_same(x1, x2):
    """same_inputs() for arrays of any library: a truth value, which is only known later within functions that JAX compiles."""
    if x1 is x2:
        return True
    if np.shape(x1) != np.shape(x2):
        return False
    if is_traced(x1, x2):
        import jax.numpy as jnp

        return jnp.all(jnp.abs(jnp.asarray(x1) - jnp.asarray(x2)) < 1e-12)
    return same_inputs(numbers(x1, name="x1"), numbers(x2, name="x2"))


def batch_of(array, value, mask_constant, graphs):
    """A Batch made of an array whose axes are ordered as in `value`."""
    last = array
    if (value.batch_axis, value.channel_axis) != (0, array.ndim - 1):
        last = np.ascontiguousarray(np.moveaxis(array, (value.batch_axis, value.channel_axis), (0, -1)))
    if mask_constant is None:
        return Batch(last, None, graphs)
    is_masked = np.isnan(last) if np.isnan(mask_constant) else last == mask_constant
    # A position counts unless all its channels are masked; single masked channels are 0.
    counts = ~is_masked.all(-1)
    array = np.where(is_masked, last.dtype.type(0), last)
    return Batch(array, None, graphs, counts) if last.ndim == 2 else Batch(array, counts, graphs)


def checked_array(x, dtype, name):
    """One array of numbers; unchanged if no element type is given."""
    if isinstance(x, (list, tuple)) and len(x) and getattr(x[0], "ndim", 0) >= 2:
        raise NotImplementedError(f"{name}: expected one array, got a list: networks of several inputs are not here")
    return x if dtype is None else numbers(x, dtype, name)
