"""What the theory says of a transformer, in one call: norms, angles, gradients, entropies and exponents, and the model beside it."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._arrays import real, whole
from .._progress import Progress
from ._block import Block
from ._entropy import AttentionEntropy, attention_entropy
from ._exponents_of_block import exponents_of_block
from ._layer_activations import Activations
from ._measured import Measured, MeasuredAttention, measure, measure_attention
from ._plan import SCALES
from ._repeated import BlockExponents, Propagated, propagate, start_gram
from ._types import Numbers


class Sensitivity(NamedTuple):
    """By how much the exponents of a block change where one of its scales (Block.scaled) is multiplied by e: derivatives by the
    logarithm. lambda_a_log is None where a block has no angles."""

    scale: str
    lambda_a_log: float | None
    lambda_g: float


@dataclasses.dataclass(frozen=True)
class Report:
    """What the theory says of a transformer; print() shows it, plot() draws it.

    tokens           Propagated: norms, cosines and gradients at the start and after each block
    exponents        BlockExponents from equal tokens, of the whole depth
    entropy          AttentionEntropy of each block
    tokens_apart     blocks up to which the mean 1 - cosine stays at least `apart`
    gradients_alive  blocks up to which squared gradients, those of relative changes (divided by q / q_0, as a last norm does), stay
                     within a factor `alive` of 1
    sensitivities    a Sensitivity for each scale
    measured, measured_attention, activations   of a model, if activations were given; else None
    """

    block: Block
    tokens: Propagated
    exponents: BlockExponents
    entropy: AttentionEntropy
    tokens_apart: int
    gradients_alive: int
    sensitivities: tuple[Sensitivity, ...]
    apart: float
    alive: float
    measured: Measured | None = None
    measured_attention: MeasuredAttention | None = None
    activations: Activations | None = None

    def columns(self) -> dict[str, Numbers]:
        """The table by its columns, [depth + 1]; entropies, which belong to blocks, have NaN at the end. Columns of the model end in
        `_measured`."""
        columns = {"q": self.tokens.q, "cosine": self.tokens.cosine, "ln_gradient": self.tokens.log_gradient,
                   "entropy": _behind(self.entropy.entropy), "uniform": _behind(self.entropy.uniform)}
        if self.measured is not None:
            columns |= {"q_measured": self.measured.q, "cosine_measured": self.measured.cosine}
        if self.activations is not None and self.activations.log_gradient is not None:
            columns["ln_gradient_measured"] = self.activations.log_gradient
        if self.measured_attention is not None:
            columns["entropy_measured"] = _behind(self.measured_attention.entropy.mean(axis=1))
        return columns

    def __str__(self) -> str:
        return "\n".join([str(self.block), "", *_table(self.columns()), "", *self._sentences(), *self._sensitivity_lines()])

    def _sentences(self):
        found, depth = self.exponents, len(self.tokens.q) - 1
        where = "at the fixed point" if found.at_fixed_point else f"from norm {found.start_norm:.3g}, on average over {depth} blocks"
        yield f"equal tokens, {where}: norms grow by {found.norm_growth.value:+.4f} a block (logarithms)"
        if found.lambda_a_log is None:
            yield f"angles: none, {found.no_angles}"
        else:
            yield f"angles    {found.lambda_a_log.value:+.4f} a block: {_sign(found.lambda_a_log.value, 'chaotic', 'ordered')}"
        yield f"gradients {found.lambda_g.value:+.4f} a block: {_sign(found.lambda_g.value, 'exploding', 'vanishing')}"
        yield f"tokens stay apart (1 - cosine above {self.apart:g}) for {_blocks(self.tokens_apart, depth)}"
        yield f"gradients of relative changes stay alive (within a factor {self.alive:g}) for {_blocks(self.gradients_alive, depth)}"
        share = self.entropy.entropy / np.maximum(self.entropy.uniform, 1e-300)
        yield f"attention has {share.min():.0%} to {share.max():.0%} of the entropy of uniform weights"

    def _sensitivity_lines(self):
        if self.sensitivities:
            yield ""
            yield f"{'scale multiplied by e':22s}{'angles':>10s}{'gradients':>12s}"
        for one in self.sensitivities:
            angle = "none" if one.lambda_a_log is None else f"{one.lambda_a_log:+.4f}"
            yield f"{one.scale:22s}{angle:>10s}{one.lambda_g:>+12.4f}"

    def plot(self, path: Any = None) -> Any:
        """A picture over depth by matplotlib, saved to `path` if it is given: squared norms, 1 - cosine, gradients and entropies, the
        theory as lines and the model as points. Returns the figure."""
        from ._report_picture import report_figure

        return report_figure(self, path)


def report(block: Block, tokens: int = 8, cosine: float = 0.0, start: ArrayLike | None = None, beside: Activations | None = None,
           apart: float = 0.01, alive: float = 1000.0, sensitivities: bool = True, threads: int = 0,
           progress: Progress = None) -> Report:
    """What the theory says of a transformer's blocks: a Report.

    block            of block_from()
    tokens, cosine   how many tokens of norm block.start_norm start, and the cosine of two of them
    start            their Gram matrix X X^T / width, [n, n], in place of these
    beside           activations() of the model itself: theory starts from its tokens, and stands beside what is measured
    apart, alive     the least mean 1 - cosine of tokens that count as apart; the largest factor by which squared gradients of relative
                     changes may grow or shrink
    sensitivities    whether exponents are computed again for each scale, twice

    Progress counts blocks of the first run. Cost: that of propagate() and of block_exponents(), the latter 15 times with sensitivities.
    """
    if not isinstance(block, Block):
        raise TypeError(f"block: expected a Block of block_from(), got {block!r}; propagate() and block_exponents() take networks")
    measured = attention = None
    if beside is not None:
        measured = measure(beside.layers)
        start, block = _start_of(measured, start), _of_depth(block, len(beside.layers) - 1)
        attention = measure_attention(beside.attention) if beside.attention else None
    gram = start_gram(whole(tokens, "tokens", 2), block.start_norm, real(cosine, "cosine")) if start is None else np.asarray(start, float)
    found = propagate(block, gram, threads=threads, progress=progress)
    return Report(
        block, found, exponents_of_block(block, len(gram), threads), attention_entropy(block.plans, found.grams),
        _blocks_before(1 - found.cosine < apart), _blocks_before(np.abs(_log_relative_gradient(found)) > math.log(alive)),
        _sensitivities(block, len(gram), threads) if sensitivities else (), apart, alive, measured, attention, beside)


def _start_of(measured, start):
    if start is not None:
        raise ValueError("start: expected a start or activations beside the theory, got both: the theory starts from theirs")
    if measured.start is None:
        raise ValueError("beside: expected sequences that keep the same tokens")
    return measured.start


def _of_depth(block, depth):
    if block.depth == 1:
        return block.repeated(depth)
    if block.depth != depth:
        raise ValueError(f"beside: expected activations before and after {block.depth} blocks, got those of {depth}")
    return block


def _sensitivities(block, tokens, threads):
    step, found = 0.05, []
    for scale in SCALES:
        more, less = (exponents_of_block(block.scaled(**{scale: math.exp(sign * step)}), tokens, threads) for sign in (1, -1))
        angles = None if None in (more.lambda_a_log, less.lambda_a_log) else (
            more.lambda_a_log.value - less.lambda_a_log.value) / (2 * step)
        found.append(Sensitivity(scale, angles, (more.lambda_g.value - less.lambda_g.value) / (2 * step)))
    return tuple(found)


def _log_relative_gradient(found):
    """ln of the squared gradient of relative changes: of X^l / sqrt(q_l) by X^0 / sqrt(q_0)."""
    return found.log_gradient - np.log(found.q / found.q[0])


def _blocks_before(beyond):
    """The number of blocks before the first that goes beyond; 0 if the start does."""
    return max(int(np.argmax(beyond)) - 1, 0) if beyond.any() else len(beyond) - 1


def _behind(numbers):
    return np.append(numbers, math.nan)


def _sign(value, above, below):
    return above if value > 0 else below


def _blocks(count, depth):
    return f"all {depth} blocks" if count == depth else f"{count} of {depth} blocks"


def _table(columns):
    yield "block" + "".join(f"{name:>{max(10, len(name) + 2)}s}" for name in columns)
    for row in range(len(columns["q"])):
        cells = [f"{'' if math.isnan(values[row]) else f'{values[row]:.4g}':>{max(10, len(name) + 2)}s}"
                 for name, values in columns.items()]
        yield (f"{row:5d}" + "".join(cells)).rstrip()
