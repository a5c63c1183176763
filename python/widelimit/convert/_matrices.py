"""Poolings, paddings and resizes along one axis as matrices [out, in]."""

from __future__ import annotations

import numpy as np


def average_windows(size: int, window: int, stride: int, pads: tuple[int, int] = (0, 0), count_pads: bool = True,
                    beyond: bool = False) -> np.ndarray:
    """Means over windows, with zeros around the axis that count, or do not, in the mean. beyond: the last window may end
    beyond them (PyTorch's ceil_mode)."""
    before, after = pads
    out = (size + before + after - window) // stride + 1
    if beyond and (out - 1) * stride + window < size + before + after and out * stride < size + before:
        out += 1
    matrix = np.zeros((out, size))
    for k in range(out):
        begin = k * stride - before
        end = min(begin + window, size + after)
        inside = slice(max(begin, 0), min(end, size))
        count = end - begin if count_pads else inside.stop - inside.start
        matrix[k, inside] = 1 / count
    return matrix


def adaptive_windows(size: int, out: int) -> np.ndarray:
    """Means over `out` windows that cover the axis, as PyTorch's adaptive average pooling has them."""
    matrix = np.zeros((out, size))
    for k in range(out):
        begin, end = k * size // out, -(-(k + 1) * size // out)
        matrix[k, begin:end] = 1 / (end - begin)
    return matrix


def padded(size: int, before: int, after: int, mode: str = "constant") -> np.ndarray:
    """Zeros, or what the mode ('reflect', 'replicate', 'circular') puts before and after the axis; negative numbers cut."""
    index = np.arange(-before, size + after)
    if mode == "constant":
        matrix = np.zeros((len(index), size))
        inside = (index >= 0) & (index < size)
        matrix[np.flatnonzero(inside), index[inside]] = 1
        return matrix
    if mode == "circular":
        index = index % size
    elif mode == "replicate":
        index = np.clip(index, 0, size - 1)
    else:
        index = np.abs(index)
        index = np.where(index >= size, 2 * (size - 1) - index, index)
    return np.eye(size)[index]


def resized(size: int, out: int, linear: bool, align_corners: bool = False, scale: float | None = None) -> np.ndarray:
    """Interpolation to the nearest position below, or linear, as PyTorch has them. scale: positions there for one here."""
    ratio = (size - 1) / (out - 1) if align_corners and out > 1 else 1 / scale if scale else size / out
    matrix = np.zeros((out, size))
    for k in range(out):
        if not linear:
            matrix[k, min(int(np.floor(k * ratio)), size - 1)] = 1
            continue
        place = k * ratio if align_corners else max((k + 0.5) * ratio - 0.5, 0)
        left = min(int(place), size - 1)
        right, part = min(left + 1, size - 1), place - left
        matrix[k, left] += 1 - part
        matrix[k, right] += part
    return matrix
