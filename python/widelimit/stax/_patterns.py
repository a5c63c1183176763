"""The graphs that kernel_fn takes: dense adjacency matrices, edges, or whatever a function makes dense."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import numbers


@dataclass(frozen=True)
class Patterns:
    """The form of the patterns that an Aggregate layer takes."""

    is_sparse: bool
    to_dense: Any

    def dense(self, pattern, nodes):
        """Adjacency matrices [n, nodes, nodes], rows for sources."""
        if self.is_sparse:
            return self._of_edges(np.asarray(pattern), nodes)
        pattern = numbers(pattern if self.to_dense is None else self.to_dense(pattern), name="pattern")
        if pattern.shape[1:] != (nodes, nodes):
            raise ValueError(f"pattern: expected an array [n, {nodes}, {nodes}], got shape {pattern.shape}")
        return pattern

    @staticmethod
    def _of_edges(pattern, nodes):
        """Adjacency matrices from sources and targets [n, edges, 2] or [n, edges, 1, 2]; edges with negative numbers are padding."""
        if pattern.ndim == 4 and pattern.shape[2] == 1:
            pattern = pattern[:, :, 0]
        if pattern.dtype.kind not in "iu" or pattern.ndim != 3 or pattern.shape[2] != 2:
            raise ValueError(f"pattern: expected integers [n, edges, 2], got {pattern.dtype} of shape {pattern.shape}")
        if pattern.size and pattern.max() >= nodes:
            raise ValueError(f"pattern: expected numbers of {nodes} nodes, got {pattern.max()}")
        result = np.zeros((len(pattern), nodes, nodes))
        for adjacency, edges in zip(result, pattern):
            edges = edges[(edges >= 0).all(1)]
            np.add.at(adjacency, (edges[:, 0], edges[:, 1]), 1.0)
        return result
