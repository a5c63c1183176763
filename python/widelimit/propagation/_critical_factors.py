"""Factors of a block's scales at which an exponent vanishes: critical initialisations of any block of block_from()."""

from __future__ import annotations

import math

import numpy as np

from .._arrays import one_of, real, whole
from ._block import Block
from ._exponents_of_block import exponents_of_block
from ._plan import SCALES
from ._types import Numbers

_POINTS = 13


def critical_factors(which: str, scale: str, block: Block, tokens: int = 16, low: float = 0.1, high: float = 10.0,
                     threads: int = 0) -> Numbers:
    """Every factor from `low` to `high` of one scale (Block.scaled) at which an exponent of the block vanishes, in ascending order.

    which   'angle', 'gradient', or 'relative gradient', that of relative changes: lambda_g minus the growth of norms
    scale   'query_key', 'value_output', 'mlp_in', 'mlp_out', 'attention_branch', 'mlp_branch' or 'skip'
    block   of block_from(); exponents are those of its whole depth

    Two factors that are closer to each other than a 12th of the range, in logarithms, are missed. ValueError for blocks without angles,
    and for ranges that are not positive. Cost: 13 times block_exponents(), and about 20 times for each factor.
    """
    one_of(which, "which", ("angle", "gradient", "relative gradient"))
    one_of(scale, "scale", SCALES)
    if not isinstance(block, Block):
        raise TypeError(f"block: expected a Block of block_from(), got {block!r}")
    low, high = real(low, "low"), real(high, "high")
    if not 0 < low < high:
        raise ValueError(f"low, high: expected a range of positive factors, got {low} and {high}")

    def exponent(logarithm):
        return _exponent(which, block.scaled(**{scale: math.exp(logarithm)}), whole(tokens, "tokens", 2), threads)

    grid = np.linspace(math.log(low), math.log(high), _POINTS)
    values = [exponent(point) for point in grid]
    return np.array([math.exp(_root(exponent, grid[k], grid[k + 1], values[k], values[k + 1]))
                     for k in range(_POINTS - 1) if values[k] * values[k + 1] < 0 or values[k] == 0])


def _exponent(which, block, tokens, threads):
    found = exponents_of_block(block, tokens, threads)
    if which == "angle":
        if found.lambda_a_log is None:
            raise ValueError(f"block: expected a block that has angles: {found.no_angles}")
        return found.lambda_a_log.value
    return found.lambda_g.value - (found.norm_growth.value if which == "relative gradient" else 0.0)


def _root(function, left, right, at_left, at_right):
    """Between two numbers of different signs: secants, and halves where these do not shorten the interval by a half."""
    while right - left > 1e-9 and at_left != 0:
        secant = left - at_left * (right - left) / (at_right - at_left)
        before = right - left
        for middle in (secant, (left + right) / 2):
            if not left < middle < right:
                continue
            value = function(middle)
            left, right, at_left, at_right = (left, middle, at_left, value) if value * at_right > 0 else (middle, right, value, at_right)
            if right - left < before / 2:
                break
    return left
