"""What activations() returns, and how it is made."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Sequence

import numpy as np
from numpy.typing import NDArray

from ._types import Numbers


class Activations(NamedTuple):
    """What the blocks of a model make of a batch, for measure(), measure_attention() and report(beside=...).

    layers         depth + 1 arrays [sequences, tokens, width]: before the first block, and after each
    attention      depth arrays [sequences, heads, tokens, tokens] of weights, or none
    log_gradient   [depth + 1]: ln of the mean of |dX^l / dX^0|^2 / (tokens width), as of propagate(), by random directions; None if
                   gradients were not asked for
    log_gradient_error   its standard error over sequences and directions
    """

    layers: list[NDArray[Any]]
    attention: list[NDArray[Any]]
    log_gradient: Numbers | None
    log_gradient_error: Numbers | None


def gradient_columns(squares: Sequence[NDArray[Any]]) -> tuple[Numbers, Numbers]:
    """(ln of means, their standard errors) of squared gradients, one array of samples for each layer."""
    means = np.array([one.mean() for one in squares])
    errors = np.array([one.std(ddof=1) / math.sqrt(one.size) if one.size > 1 else math.nan for one in squares])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(means), errors / means
