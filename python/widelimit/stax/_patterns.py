"""The graphs that kernel_fn and apply_fn take: dense adjacency matrices, edges, or whatever a function makes dense."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import numbers


@dataclass(frozen=True)
class Patterns:
    """The form of the patterns that an Aggregate layer takes."""

    is_sparse: bool
    to_dense: Any

    def dense(self, pattern, shape, axes):
        """Adjacency matrices [n, positions, positions], rows for sources, of graphs over some axes of positions of a shape: along the
        others, places of one graph are not joined."""
        sizes = tuple(shape[axis] for axis in axes)
        matrices = self._over_axes(pattern, sizes)
        if tuple(axes) == tuple(range(len(shape))):
            return matrices
        others = [axis for axis in range(len(shape)) if axis not in axes]
        order = [*axes, *others]  # The order of axes in which graphs over the others stand beside one another.
        joined = np.stack([np.kron(matrix, np.eye(int(np.prod([shape[axis] for axis in others])))) for matrix in matrices]) if len(
            matrices) else np.zeros((0, int(np.prod(shape)), int(np.prod(shape))))
        ordered = [shape[axis] for axis in order]
        back = [order.index(axis) for axis in range(len(shape))]
        joined = joined.reshape(len(matrices), *ordered, *ordered)
        return joined.transpose(0, *(1 + k for k in back), *(1 + len(shape) + k for k in back)).reshape(
            len(matrices), int(np.prod(shape)), int(np.prod(shape)))

    def _over_axes(self, pattern, sizes):
        nodes = int(np.prod(sizes))
        if self.is_sparse:
            return self._of_edges(np.asarray(pattern), sizes)
        pattern = numbers(pattern if self.to_dense is None else self.to_dense(pattern), name="pattern")
        if pattern.shape[1:] != sizes * 2:
            raise ValueError(f"pattern: expected an array [n, {', '.join(map(str, sizes * 2))}], got shape {pattern.shape}")
        return pattern.reshape(len(pattern), nodes, nodes)

    @staticmethod
    def _of_edges(pattern, sizes):
        """Adjacency matrices from sources and targets [n, edges, axes, 2], or [n, edges, 2] of one axis; edges with negative numbers
        are padding."""
        pattern = _with_axes(pattern, sizes)
        if pattern.size and (pattern.max((0, 1, 3)) >= sizes).any():
            raise ValueError(f"pattern: expected numbers of nodes below {sizes if len(sizes) > 1 else sizes[0]}, got {pattern.max()}")
        nodes = int(np.prod(sizes))
        result = np.zeros((len(pattern), nodes, nodes))
        for adjacency, edges in zip(result, pattern):
            edges = edges[(edges >= 0).all((1, 2))]
            np.add.at(adjacency, tuple(np.ravel_multi_index(edges[:, :, end].T, sizes) for end in (0, 1)), 1.0)
        return result

    def summed(self, pattern, nodes, sizes):
        """Sums over the neighbours of nodes [n, nodes, ...] of JAX, whose numbers run over axes of these sizes."""
        import jax.numpy as jnp

        if not self.is_sparse:
            pattern = jnp.asarray(pattern if self.to_dense is None else self.to_dense(pattern))
            if pattern.shape != (len(nodes), *sizes * 2):
                raise ValueError(f"pattern: expected an array of shape {(len(nodes), *sizes * 2)}, got {pattern.shape}")
            return jnp.einsum("nst,nsc->ntc", pattern.reshape(len(pattern), *nodes.shape[1:2] * 2).astype(nodes.dtype), nodes)
        edges = _with_axes(jnp.asarray(pattern), sizes)
        counts = (edges >= 0).all((2, 3))
        ends = [jnp.where(counts, jnp.ravel_multi_index(tuple(jnp.moveaxis(edges[..., end], 2, 0)), sizes, mode="clip"), 0)
                for end in (0, 1)]
        batch = jnp.arange(len(nodes))[:, None]
        sent = jnp.where(counts[..., None], nodes[batch, ends[0]], jnp.zeros((), nodes.dtype))
        return jnp.zeros_like(nodes).at[batch, ends[1]].add(sent)


def _with_axes(pattern, sizes):
    """Edges as integers [n, edges, axes, 2]."""
    if pattern.ndim == 3 and len(sizes) == 1:
        pattern = pattern[:, :, None]
    if pattern.dtype.kind not in "iu" or pattern.ndim != 4 or pattern.shape[2:] != (len(sizes), 2):
        wanted = "[n, edges, 2]" if len(sizes) == 1 else f"[n, edges, {len(sizes)}, 2]"
        raise ValueError(f"pattern: expected integers {wanted}, got {pattern.dtype} of shape {pattern.shape}")
    return pattern
