"""Blocks of any layers, one repeated or one after another: tokens, exponents and gradients in the limit and at finite width.

Functions take a Network, which is repeated `depth` times (16 where nothing is said); a list of Networks, which stand one after another
and have that depth; or a Block of block_from(), of the depth that it says.
"""

from __future__ import annotations

from typing import NamedTuple, Sequence, Union

from numpy.typing import ArrayLike

from .. import _core
from .._arrays import numbers, real, whole
from .._progress import Progress, teller
from ._block import Block
from ._types import Estimate, Numbers

Blocks = Union[_core.Network, Sequence[_core.Network], Block]

_USUAL_DEPTH = 16


def _told(block, depth):
    """(Networks, depth) for the compiled half: one Network and how often it is repeated, or Networks one after another and None."""
    if isinstance(block, _core.Network):
        return [block], _USUAL_DEPTH if depth is None else whole(depth, "depth")
    if isinstance(block, Block):
        block = block if depth is None else block.repeated(depth)
        return ([block.network], block.depth) if block.is_repeated else (block.networks, None)
    if not isinstance(block, (list, tuple)) or not all(isinstance(one, _core.Network) for one in block):
        raise TypeError(f"block: expected a Network, a list of Networks or a Block, got {block!r}")
    if depth is not None and whole(depth, "depth") != len(block):
        raise ValueError(f"depth: expected that of the list of blocks, {len(block)}, or none, got {depth}")
    return list(block), None


def start_gram(tokens: int, q: float = 1, cosine: float = 0) -> Numbers:
    """The Gram matrix [tokens, tokens] of tokens with norm q and one cosine, from which propagate() may start."""
    return _core.start_gram({"tokens": tokens, "q0": q, "c0": cosine})


class Propagated(NamedTuple):
    """Tokens at the start and after each block, depth + 1 of them; standard errors are 0 unless a layer is sampled.

    grams         [depth + 1, n, n]: X X^T / width
    q             [depth + 1]: mean of the diagonal
    cosine        [depth + 1]: mean cosine of two tokens; NaN for a single token
    log_gradient  [depth + 1]: ln of the mean of |dX^l / dX^0|^2 / (n width); NaN in sampled networks
    product_ratio [depth + 1]: mean product of two tokens over q, which is the cosine if all norms are alike
    """

    grams: Numbers
    q: Numbers
    q_error: Numbers
    cosine: Numbers
    cosine_error: Numbers
    log_gradient: Numbers
    log_gradient_error: Numbers
    product_ratio: Numbers
    product_ratio_error: Numbers


def _propagated(found):
    grams, columns = found
    return Propagated(grams.reshape(-1, grams.shape[1], grams.shape[1]), **columns)


def propagate(block: Blocks, start: ArrayLike, depth: int | None = None, threads: int = 0,
              progress: Progress = None) -> Propagated:
    """Tokens through blocks of any layers: Gram matrices of tokens follow the kernel recursion, gradients that of tangent
    kernels. Returns a Propagated.

    block   a Network that takes n tokens and leaves n tokens of the same width, repeated `depth` times (None: 16); or Networks
            one after another, which may differ: factors, windows or variances that change with depth; or a Block
    start   their Gram matrix X X^T / width, [n, n], for example from start_gram() or measure()

    ArgumentError for a start that is not symmetric with a positive diagonal, NetworkError for a block that leaves another
    shape, NumericalError if covariances leave the range of doubles. Progress counts blocks. Cost: depth times a pair of
    gram() with all its positions, up to 16 times that for sampled layers.
    """
    blocks, times = _told(block, depth)
    return _propagated(_core.propagate(blocks, numbers(start, name="start"), times, whole(threads, "threads"),
                                       teller(progress, "steps")))


def collapsed_norm(block: _core.Network, tokens: int, threads: int = 0) -> float | None:
    """The norm that the block leaves unchanged if all tokens are equal; None if norms grow or shrink forever, or if
    equal tokens do not stay equal."""
    return _core.collapsed_norm(block, whole(tokens, "tokens"), whole(threads, "threads"))


class BlockExponents(NamedTuple):
    """Log growth in each block, from equal tokens of norm start_norm: of norms (0 at a fixed point), of small angles
    between tokens (lambda_a_log; also in the last block alone), and of the squared Jacobian (lambda_g). Where equal tokens do not
    stay equal (dropout, zero padding, positions in the values) there are no small angles: theirs are None, and no_angles says why."""

    start_norm: float
    at_fixed_point: bool
    norm_growth: Estimate
    lambda_a_log: Estimate | None
    lambda_a_log_last_block: Estimate | None
    lambda_g: Estimate
    no_angles: str | None = None


def block_exponents(block: Blocks, tokens: int, depth: int | None = None, start_norm: float | None = None, threads: int = 0,
                    progress: Progress = None) -> BlockExponents:
    """The BlockExponents of a repeated block for n >= 2 tokens, from start_norm, or with None from the norm that the block
    leaves unchanged, or from 1 if there is none; blocks that differ from place to place have none. Blocks, errors and depth are
    those of propagate(); the cost is twice that."""
    blocks, times = _told(block, depth)
    found = _core.block_exponents(blocks, whole(tokens, "tokens"), times,
                                  None if start_norm is None else real(start_norm, "start_norm"),
                                  whole(threads, "threads"), teller(progress, "steps"))
    return BlockExponents(**{name: Estimate(**value) if isinstance(value, dict) else value for name, value in found.items()})


class LayerGradients(NamedTuple):
    """Mean squared gradients of the parameters of one layer of the block, block by block, [depth], the first block first.

    layer      its path, such as 'layers[0].branches[1].layers[2]'
    kind       such as 'dense'
    parameter  for attention also its matrices, 'query', 'key', 'value' and 'output'; '' for the whole layer
    """

    layer: str
    kind: str
    parameter: str
    gradients: Numbers
    errors: Numbers


def layer_gradients(block: Blocks, start: ArrayLike, depth: int | None = None, threads: int = 0,
                    progress: Progress = None) -> list[LayerGradients]:
    """The gradients that the parameters of every layer of the block receive from a random gradient after all blocks:
    LayerGradients of each. Arguments and errors are those of propagate(), and an ArgumentError for blocks that do not have layers of
    the same kinds at the same places; the cost is depth / 2 times that of propagate() for each layer, and three times as much for
    attention."""
    blocks, times = _told(block, depth)
    return [LayerGradients(*layer) for layer in _core.layer_gradients(
        blocks, numbers(start, name="start"), times, whole(threads, "threads"), teller(progress, "steps"))]


class SampledBlock(NamedTuple):
    """propagate() and layer_gradients() in random networks of finite width; log_gradient is NaN."""

    tokens: Propagated
    gradients: list[LayerGradients]


def sample_block(block: Blocks, start: ArrayLike, depth: int | None = None, width: int = 128, networks: int = 32,
                 heads: int = 8, seed: int = 0, threads: int = 0, progress: Progress = None) -> SampledBlock:
    """The SampledBlock of `networks` networks (at least 2) of `width` channels and `heads` heads, a divisor of the width, with
    Gaussian tokens of Gram matrix `start` [n, n] before the blocks, which are those of layer_gradients(). Equal seeds give equal
    bits. Raises the errors of propagate(), and NetworkError for layers without a finite counterpart. Progress counts networks."""
    blocks, times = _told(block, depth)
    told = {"depth": len(blocks) if times is None else times, "width": width, "networks": networks, "heads": heads, "seed": seed}
    tokens, gradients = _core.sample_block(blocks, times is not None, numbers(start, name="start"), told, whole(threads, "threads"),
                                           teller(progress, "steps"))
    return SampledBlock(_propagated(tokens), [LayerGradients(*layer) for layer in gradients])
