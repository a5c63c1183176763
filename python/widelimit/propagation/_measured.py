"""Activations and attention weights of a model of one's own."""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple, Sequence

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._arrays import _numpy, each, numbers, truths
from ._repeated import BlockExponents, Blocks, Propagated, block_exponents, propagate
from ._types import Numbers


class Measured(NamedTuple):
    """Norms and angles in a model's activations, [layers], with standard errors over sequences (NaN for one).

    q, cosine            mean squared norm of a token over the width, mean cosine of two tokens of a sequence
    cosine_gap           1 - cosine, without cancellation
    norm_growth,         logarithms of the growth of q and of 1 - cosine from layer to layer, the first 0; the latter
    angle_growth         estimates lambda_a_log if tokens are nearly equal, and is NaN where they are equal but for rounding
    start                Gram matrix of the tokens of the first layer, [tokens, tokens] that are kept; None if sequences keep
                         tokens at different positions
    theory, exponents    if a block was given: propagate() from `start`, and block_exponents()
    q_spread             standard deviation of a sequence's squared norms over their mean
    product_ratio        mean product of two tokens over q: the mean cosine if all norms are alike, else that of the longest
    rounding_gap         a cosine_gap below is made of rounding: 32 epsilon^2 of the type of the arrays, or of a coarser one in
                         which all numbers are exact
    largest_share        of a sequence's sum of squared norms, that of its longest token: 1 / tokens if all norms are alike
    largest_token        the position that is the longest in most sequences
    """

    q: Numbers
    q_error: Numbers
    cosine: Numbers
    cosine_error: Numbers
    cosine_gap: Numbers
    norm_growth: Numbers
    angle_growth: Numbers
    start: Numbers | None
    theory: Propagated | None
    exponents: BlockExponents | None
    q_spread: Numbers
    product_ratio: Numbers
    product_ratio_error: Numbers
    rounding_gap: Numbers
    largest_share: Numbers
    largest_token: Numbers

    @property
    def blocks_left_out(self) -> int:
        """The number of blocks whose angle_growth is NaN, because tokens before or after them are equal but for rounding."""
        return int(np.isnan(self.angle_growth[1:]).sum())

    @property
    def mean_norm_growth(self) -> float:
        """Log growth of q in each block, over all blocks."""
        return math.log(self.q[-1] / self.q[0]) / max(len(self.q) - 1, 1)

    @property
    def mean_angle_growth(self) -> float:
        """Mean log growth of 1 - cosine in a block, over the blocks that are not left out: > 0 chaotic, < 0 ordered, NaN if all
        are left out."""
        if len(self.q) == 1:
            return 0.0
        growth = self.angle_growth[1:]
        return math.nan if np.isnan(growth).all() else float(np.nanmean(growth))


def measure(layers: Sequence[ArrayLike], block: Blocks | None = None, threads: int = 0,
            lengths: ArrayLike | None = None, mask: ArrayLike | None = None) -> Measured:
    """Norms and angles in activations of your own model: a Measured.

    layers  arrays or tensors of one shape, [sequences, tokens, width], before the first block and after each block
    block   a Network of one block, or what else propagate() takes, to compare with the theory from the first layer's tokens
    lengths, mask  of padded sequences: their true lengths [sequences], or [sequences, tokens] of bool or of integers 0 and 1;
            what is False is left out, and may hold anything

    A RuntimeWarning says in how many blocks angles are rounding. ArgumentError for other shapes, fewer than two tokens, numbers
    that are not finite, and tokens that are 0.
    """
    given = [_numpy(layer, f"layers[{k}]") for k, layer in enumerate(each(layers, "layers", "arrays"))]
    arrays = [numbers(layer, name=f"layers[{k}]") for k, layer in enumerate(given)]
    if not arrays:
        raise ValueError("layers: expected activations of one layer at least, got none")
    for k, array in enumerate(arrays):
        if array.ndim == 2:
            raise ValueError(f"layers[{k}]: expected activations [sequences, tokens, width], got the shape {array.shape}; one "
                             "sequence is array[None]")
        if array.ndim != 3 or array.shape != arrays[0].shape:
            raise ValueError(f"layers[{k}]: expected activations [sequences, tokens, width] of the shape of the others, got "
                             f"{array.shape} and {arrays[0].shape}")
    kept = _kept_tokens(arrays[0].shape[:2], lengths, mask)
    columns, start, note = _core.measured_layers(arrays, kept, [_epsilon(one.dtype) for one in given])
    columns["largest_token"] = columns["largest_token"].astype(int)
    start = start if start.size > 0 else None
    theory = known = None
    if block is not None:
        if len(arrays) < 2:
            raise ValueError("block: expected activations of at least two layers to compare with")
        if start is None:
            raise ValueError("block: the theory is that of one number of tokens, but sequences keep tokens at different "
                             "positions; measure sequences of one length at a time")
        theory = propagate(block, start, len(arrays) - 1, threads)
        known = block_exponents(block, len(start), len(arrays) - 1, None, threads)
    if note is not None:
        warnings.warn(f"measure: {note}", RuntimeWarning, stacklevel=2)
    return Measured(start=start, theory=theory, exponents=known, **columns)


class MeasuredAttention(NamedTuple):
    """What the heads of a model attend to, [blocks, heads]: means over the rows of a sequence, then over sequences, with standard
    errors (NaN for one).

    entropy         of a row's weights, in nats
    uniform         logarithm of the number of keys: the largest entropy
    first_weight    weight on the first token that is kept, where many models have a sink
    largest_weight  of a row
    kept_weight     of a row, on the keys that are kept, before it was brought to 1: less where what is left out is a sink
    rows_left_out   rows without weight on a kept key, [blocks, heads]; of them only kept_weight knows
    """

    entropy: Numbers
    entropy_error: Numbers
    uniform: Numbers
    first_weight: Numbers
    first_weight_error: Numbers
    largest_weight: Numbers
    largest_weight_error: Numbers
    kept_weight: Numbers
    kept_weight_error: Numbers
    rows_left_out: Numbers


def measure_attention(attention: Sequence[ArrayLike], lengths: ArrayLike | None = None,
                      mask: ArrayLike | None = None) -> MeasuredAttention:
    """Entropies and sinks of attention weights of your own model: a MeasuredAttention.

    attention      arrays or tensors of one shape, [sequences, heads, tokens, tokens], of each block, after the softmax
    lengths, mask  as in measure(): what a mask leaves out, such as a sink, may have weight, and each row is brought to 1 over the
                   keys that are kept; padding behind the lengths must have none

    ArgumentError for rows whose weights do not sum to 1 within 2 %.
    """
    arrays = [numbers(block, name=f"attention[{k}]") for k, block in enumerate(each(attention, "attention", "arrays"))]
    if not arrays:
        raise ValueError("attention: expected weights of one block at least, got none")
    for k, array in enumerate(arrays):
        if array.ndim != 4 or array.shape[2] != array.shape[3] or array.shape != arrays[0].shape:
            raise ValueError(f"attention[{k}]: expected weights [sequences, heads, tokens, tokens] of the shape of the others, got "
                             f"{array.shape}")
    kept = _kept_tokens((arrays[0].shape[0], arrays[0].shape[2]), lengths, mask)
    found = [_core.measured_attention(array, f"attention[{k}]", kept, lengths is not None) for k, array in enumerate(arrays)]
    flat = np.array([[(*entropy, uniform, *first, *largest, *weight, rows) for entropy, uniform, first, largest, weight, rows in block]
                     for block in found])
    return MeasuredAttention(*np.moveaxis(flat, -1, 0))


def _kept_tokens(shape, lengths, mask):
    """Which tokens of [sequences, tokens] are no padding, row-major; empty for all."""
    if lengths is not None and mask is not None:
        raise ValueError("lengths: expected lengths or a mask, got both")
    if lengths is not None:
        return _core.kept_before(lengths, *shape)
    if mask is None:
        return []
    mask = truths(mask, "mask")
    if mask.shape != shape:
        raise ValueError(f"mask: expected a mask [sequences, tokens] = {list(shape)}, got {list(mask.shape)}")
    return mask.ravel().tolist()


def _epsilon(dtype):
    """Distance of 1 from the next number of a type; of integers, which are exact, that of float64."""
    if dtype.name == "bfloat16":
        return 2.0 ** -7
    return float(np.finfo(dtype).eps) if dtype.kind == "f" and dtype.itemsize <= 8 else 2.0 ** -52
