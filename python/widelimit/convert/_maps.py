"""Layers of maps of positions: poolings, slices and readouts where a matrix is one, else the matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import layers
from ._nodes import Node


def map_layers(nodes: list[Node], following: Node | None) -> tuple[list[Any], bool]:
    """The layers of maps and indices in a row, and whether the convolution behind them is circular instead of the last."""
    result: list[Any] = []
    group: list[Node] = []
    for node in nodes:
        if "full" in node.data:
            result += _grouped(group)[0] + _full(node)
            group = []
        else:
            group.append(node)
    made, skipped = _grouped(group, following)
    return result + made, skipped


def _full(node):
    sizes = [size for _, size in node.axes]
    if not node.parents[0].axes and not sizes:
        return []
    return [layers.positions_map(node.data["full"], sizes or [1])]


def _grouped(nodes, following=None):
    if not nodes:
        return [], False
    axes = list(nodes[0].parents[0].axes)
    matrices: dict[Any, np.ndarray] = {}
    dropped = []
    for node in nodes:
        if node.kind == "index":
            dropped.append(node.data["axis"])
        for axis, matrix in node.data.get("matrices", {}).items():
            matrices[axis] = matrix @ matrices[axis] if axis in matrices else matrix
    if dropped and len(dropped) == len(axes) and all(_is_mean(matrices.get(axis), size) for axis, size in axes):
        return [layers.global_average_pool()], False
    if following is not None and not dropped and _is_circular(matrices, axes, following):
        return [], True
    indices = [(axis, matrices.pop(axis)) for axis in dropped if axis in matrices and _picked(matrices[axis]) is not None]
    result = _moved(axes, matrices)
    for axis in dropped:
        position = next((_picked(matrix) for name, matrix in indices if name == axis), 0)
        names = [name for name, _ in axes]
        result.append(layers.index(axis=names.index(axis), position=position))
        axes.pop(names.index(axis))
    return result, False


def _is_mean(matrix, size):
    return size == 1 if matrix is None else matrix.shape == (1, size) and np.allclose(matrix, 1 / size)


def _picked(matrix):
    """The position that a map to one position takes, None if it takes several."""
    row = matrix[0]
    return int(np.argmax(row)) if len(matrix) == 1 and row.max() == 1 and np.count_nonzero(row) == 1 else None


def _moved(axes, matrices):
    """One layer that maps along all axes."""
    if not matrices:
        return []
    windows = [_window(matrices.get(axis)) for axis, _ in axes]
    if all(window is not None for window in windows):
        return [layers.average_pool([window for window, _ in windows], [stride for _, stride in windows])]
    slices = [_slice(matrices.get(axis), size) for axis, size in axes]
    if all(cut is not None for cut in slices):
        begin, end, step = zip(*slices)
        return [layers.slice(list(begin), list(end), list(step))]
    return [layers.positions_map(matrices=[matrices.get(axis, np.eye(size)) for axis, size in axes])]


def _window(matrix):
    """(window, stride) where the map averages over windows inside the axis, as average_pool does."""
    if matrix is None:
        return 1, 1
    out, size = matrix.shape
    window = int(np.count_nonzero(matrix[0]))
    starts = matrix.argmax(1)
    stride = int(starts[1] - starts[0]) if out > 1 else window
    if window < 1 or stride < 1 or starts[0] != 0 or out != (size - window) // stride + 1:
        return None
    expected = np.zeros_like(matrix)
    for k in range(out):
        expected[k, k * stride:k * stride + window] = 1 / window
    return (window, stride) if np.allclose(matrix, expected) and window > 1 else None


def _slice(matrix, size):
    if matrix is None:
        return 0, size, 1
    if not ((matrix == 0) | (matrix == 1)).all() or (matrix.sum(1) != 1).any():
        return None
    picked = matrix.argmax(1)
    step = int(picked[1] - picked[0]) if len(picked) > 1 else 1
    if step < 1 or (np.diff(picked) != step).any():
        return None
    return int(picked[0]), int(picked[-1]) + 1, step


def _is_circular(matrices, axes, following):
    """Whether the maps are the circular padding of the convolution that follows."""
    filters = following.data.get("filter")
    if following.kind != "weights" or not filters or not matrices:
        return False
    for axis, size in axes:
        length = filters.get(axis, 1)
        if length % 2 == 0 or following.data["strides"].get(axis, 1) != 1 or following.data["dilations"].get(axis, 1) != 1 \
                or any(following.data["pads"].get(axis, (0, 0))):
            return False
        reach = length // 2
        if not np.array_equal(matrices.get(axis, np.eye(size)), np.eye(size)[np.arange(-reach, size + reach) % size]):
            return False
    return True
