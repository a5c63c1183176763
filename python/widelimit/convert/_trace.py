"""What a front end reads of a network: operations on tensors, in the order in which they ran.

Every front end (PyTorch, Flax, ONNX) writes the same few kinds of operations; translate.py alone knows what they mean in the
limit. Operations whose inputs are all constant are computed by the front end and do not appear.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import _core


class ConversionError(_core.NetworkError):
    """A module, or a part of one, that has no infinite-width limit here. The text names the submodule, says why, and what
    one may do."""

    reached = 1_000_000  # Operations that were understood before it.


def refuse(place: str, reason: str, advice: str) -> ConversionError:
    return ConversionError(f"{place or 'module'}: {reason}; {advice}")


@dataclass(frozen=True)
class Parameter:
    """Where a constant comes from: the parameter's name, which of its entries it holds, [shape of the constant], and the values of
    the whole."""

    name: str
    entries: np.ndarray
    trained: bool
    whole: np.ndarray


@dataclass(frozen=True, eq=False)
class Constant:
    """A tensor that does not depend on the input. `parameter` is None for buffers and for what is computed."""

    values: np.ndarray
    parameter: Parameter | None = None

    @property
    def number(self) -> float | None:
        """The number that all entries are, None where they differ or there is none."""
        same = self.values.size and (self.values.size == 1 or (self.values.ravel()[0] == self.values).all())
        return float(self.values.ravel()[0]) if same else None


@dataclass(frozen=True, eq=False)
class Variable:
    """A tensor that depends on the input."""

    shape: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Operation:
    """One step. Kinds, their inputs and attributes:

    contract     a, b; batch, contracting: a pair of tuples of dimensions each. Leaves batch, rest of a, rest of b
    convolution  x [n, C, ...], weights [out, C / groups, ...], bias [out] or None; strides, pads [2, axes], dilations, groups
                 and, for transposed ones, whose weights are [C, out / groups, ...], transposed and output_padding
    elementwise  x; function of NumPy's arrays, name
    add, subtract, multiply, divide, maximum, minimum    a, b, with NumPy's broadcasting
    power        a, b, b constant
    reshape (shape), permute (order), expand (shape)     x
    slice        x; dimension, indices
    axis_map     x; dimension, matrix [out, in]
    concat       inputs; dimension
    mean, sum, max, variance    x; dimensions, keep
    softmax      x; dimension
    layer_norm, rms_norm    x, gain, shift or None; dimensions, epsilon
    group_norm   x [n, C, ...], gain, shift; groups, epsilon
    group_of_norm   x [n, groups, ...]; epsilon: over all dimensions behind the second
    dropout      x; rate
    attention    q, k, v [..., heads, positions, channels], mask or None; causal, scale
    where        condition, a, b
    embedding    weights [count, C], indices
    refused      inputs; reason, advice
    """

    kind: str
    inputs: tuple[Any, ...]
    output: Variable
    attributes: dict[str, Any] = field(default_factory=dict)
    place: str = ""


@dataclass(frozen=True)
class Trace:
    """A network as it ran on an example."""

    operations: list[Operation]
    input: Variable
    output: Any
    name: str
