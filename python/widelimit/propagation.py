"""Signal propagation in deep networks at initialisation: norms and angles of tokens, gradients, phase diagrams.

    from widelimit import propagation
    parameters = propagation.Parameters(tokens=64, sigma_w=2)
    propagation.exponents(parameters, depth=24).lambda_g

This module has the transformer of Cowsik et al. in closed form (Parameters, BlockMap, exponents, phase_diagram, critical), the
same in random networks (simulate_...), a block of any layers (propagate, block_exponents, layer_gradients, sample_block) and
activations of your own model (measure). Norms are squared and divided by the width: q = |X_i|^2 / d; cosines are those of two
tokens, and gaps are 1 - cosine. Mathematics: docs/theory/signal-propagation.md.

Functions with `progress` call it with (steps done, total steps). `threads` is 0 for one on each core. Results depend on
neither; Ctrl-C stops all functions. Equal seeds give the bits that `widelimit propagation` gives.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from typing import Any, NamedTuple, Sequence, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._arrays import _numpy, each, numbers, one_of, real, truths, whole
from ._progress import Progress, teller

__all__ = [
    "BlockExponents", "BlockMap", "CriticalInitialisation", "CriticalLines", "Curve", "Estimate", "Exponents", "FixedPoint", "LayerGradients",
    "LossFit", "Measured", "MeasuredAttention", "MeasuredGradient", "Parameters", "PhaseDiagram", "Propagated", "SampledBlock", "SimulatedTrajectory",
    "TokenSamples", "TokenState", "Trajectory", "WidthSpread", "block_exponents", "collapsed_norm", "critical", "critical_lines", "critical_values",
    "exponents", "fit_losses", "layer_gradients", "measure", "measure_attention", "phase_diagram", "propagate", "sample_block", "simulate_angle",
    "simulate_gradient", "simulate_groups", "simulate_samples", "simulate_trajectory", "start_gram", "trajectory", "width_spread"]

Numbers = NDArray[np.float64]

_COORDINATES = ("alpha", "alpha_A", "alpha_M", "sigma_w", "sigma_out", "sigma_A", "tokens", "depth", "mlp_depth")


class Estimate(NamedTuple):
    """A mean with its standard error."""

    value: float
    standard_error: float


@dataclasses.dataclass(frozen=True)
class Parameters:
    """A transformer at initialisation: attention and MLP branches of given strengths with skip connections, and norms before
    each branch. Immutable; `dataclasses.replace` makes others.

    tokens            n, at least 2
    sigma_A           scale of the attention scores, at least 0
    alpha_A, alpha_M  strengths of the attention and of the MLP branch, in [0, 1], not both 0
    sigma_w           gain (a standard deviation) of the hidden MLP matrices, at least 0
    sigma_out         that of the last one: 'unit', 'shared' (sigma_w), or a number of at least 0
    mlp_depth         nonlinearities of the MLP, at least 1
    activation        'linear' or a nonlinearity of layers by its name, with its defaults: 'tanh', 'relu', 'gelu', ...
    skip_A, skip_M    factors of the skip connections, at least 0; None: sqrt(1 - alpha^2). With 1 for both, as in most
                      transformers, norms grow with depth and have no fixed point

    ArgumentError names what is out of range. Source: Cowsik et al. 2024, arXiv:2403.02579.
    """

    tokens: int = 256
    sigma_A: float = 1
    alpha_A: float = 0.5
    alpha_M: float = 0.5
    sigma_w: float = 1
    sigma_out: str | float = "unit"
    mlp_depth: int = 2
    activation: str = "tanh"
    skip_A: float | None = None
    skip_M: float | None = None

    def __post_init__(self) -> None:
        _core.check_parameters(vars(self))

    def block(self, causal: bool = False) -> _core.Network:
        """The block as a Network for propagate(), its attention sampled instead of averaged: this is what the option --block of
        `widelimit propagation` writes."""
        return _core.block_of_parameters(vars(self), bool(causal))


def _told(parameters, **arguments):
    """What a computation is told, for the compiled half, which checks it by the table of the computation."""
    if not isinstance(parameters, Parameters):
        raise TypeError(f"parameters: expected propagation.Parameters, got {parameters!r}")
    return {**vars(parameters), **arguments}


class TokenState(NamedTuple):
    """Tokens that share one norm and one cosine: q, and gap = q (1 - cosine), q minus the product of two tokens."""

    q: float = 1.0
    gap: float = 0.0

    @classmethod
    def from_cosine(cls, q: float, cosine: float) -> TokenState:
        """Tokens of norm q and this cosine."""
        return cls(q, q * (1 - cosine))

    @property
    def p(self) -> float:
        """The product of two tokens."""
        return self.q - self.gap

    @property
    def cosine_gap(self) -> float:
        """1 - cosine, without cancellation."""
        return self.gap / self.q

    @property
    def cosine(self) -> float:
        """The cosine of two tokens."""
        return 1 - self.gap / self.q


class Trajectory(NamedTuple):
    """Norms and gaps q - p of tokens at the start and after each block, [depth + 1]."""

    q: Numbers
    gap: Numbers

    @property
    def cosine_gap(self) -> Numbers:
        """1 - cosine, without cancellation, [depth + 1]."""
        return self.gap / self.q

    @property
    def cosine(self) -> Numbers:
        """The cosine of two tokens, [depth + 1]."""
        return 1 - self.gap / self.q


class FixedPoint(NamedTuple):
    """A state that a block leaves unchanged, the largest magnitude of an eigenvalue of the block's Jacobian there, and
    'stable', 'marginal' or 'unstable'."""

    state: TokenState
    largest_eigenvalue: float
    stability: str


class BlockMap:
    """One block, acting on norms and products of tokens, in the annealed approximation (numerator and denominator of
    softmax are averaged separately).

    Tokens are a TokenState, or a Gram matrix X X^T / d, [m, m], where m need not be parameters.tokens. ArgumentError for
    norms that are not positive, cosines out of range and matrices that are not symmetric.
    """

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters
        self._map = _core.PropagationMap(_told(parameters))

    def __reduce__(self) -> tuple[Any, ...]:
        return BlockMap, (self.parameters,)

    @overload
    def attention(self, tokens: TokenState, causal: bool = ...) -> TokenState: ...
    @overload
    def attention(self, tokens: ArrayLike, causal: bool = ...) -> Numbers: ...
    def attention(self, tokens: TokenState | ArrayLike, causal: bool = False) -> TokenState | Numbers:
        """The tokens after the attention branch and its skip connection."""
        return self._mapped("attention", tokens, causal)

    @overload
    def mlp(self, tokens: TokenState) -> TokenState: ...
    @overload
    def mlp(self, tokens: ArrayLike) -> Numbers: ...
    def mlp(self, tokens: TokenState | ArrayLike) -> TokenState | Numbers:
        """The tokens after the MLP branch and its skip connection."""
        return self._mapped("mlp", tokens, False)

    @overload
    def block(self, tokens: TokenState, causal: bool = ...) -> TokenState: ...
    @overload
    def block(self, tokens: ArrayLike, causal: bool = ...) -> Numbers: ...
    def block(self, tokens: TokenState | ArrayLike, causal: bool = False) -> TokenState | Numbers:
        """The tokens after both. Under a causal mask tokens do not stay alike, so only a Gram matrix is allowed (ValueError)."""
        return self._mapped("block", tokens, causal)

    def _mapped(self, part, tokens, causal):
        if isinstance(tokens, TokenState):
            if causal:
                raise ValueError("causal: expected a Gram matrix of the tokens, which do not stay alike, got a TokenState")
            return TokenState(*self._map.state(part, tuple(tokens)))
        return self._map.gram(part, numbers(tokens, name="tokens"), causal)

    def jacobian(self, state: TokenState, part: str = "block") -> Numbers:
        """d(q', gap') / d(q, gap), [2, 2], for 'attention', 'mlp' or the whole 'block'."""
        return self._map.jacobian(one_of(part, "part", ("attention", "mlp", "block")), tuple(state))

    @overload
    def trajectory(self, start: TokenState, depth: int, causal: bool = ...) -> Trajectory: ...
    @overload
    def trajectory(self, start: ArrayLike, depth: int, causal: bool = ...) -> Numbers: ...
    def trajectory(self, start: TokenState | ArrayLike, depth: int, causal: bool = False) -> Trajectory | Numbers:
        """The tokens at the start and after each of `depth` blocks: a Trajectory for a TokenState (under a causal mask, of means
        over tokens), Gram matrices [depth + 1, m, m] for a Gram matrix."""
        if isinstance(start, TokenState):
            return Trajectory(*self._map.state_trajectory(tuple(start), whole(depth, "depth"), causal))
        grams = self._map.gram_trajectory(numbers(start, name="start"), whole(depth, "depth"), causal)
        return grams.reshape(-1, grams.shape[1], grams.shape[1])

    def fixed_points(self) -> list[FixedPoint]:
        """All fixed points under a full mask: first the one at which all tokens are equal, then, in the chaotic phase, the one
        with open angles. NumericalError if the iteration that finds it does not settle."""
        return [FixedPoint(TokenState(q, gap), eigenvalue, stability)
                for q, gap, eigenvalue, stability in self._map.fixed_points()]


def trajectory(parameters: Parameters, depth: int = 16, q0: float = 1, c0: float = 0, causal: bool = False) -> Trajectory:
    """Norms and angles after each block of tokens with norm q0 and cosine c0, -1 / (n - 1) .. 1: a Trajectory of
    [depth + 1] numbers, from BlockMap."""
    return Trajectory(*_core.propagation_trajectory(_told(parameters, depth=depth, q0=q0, c0=c0, causal=causal)))


class Exponents(NamedTuple):
    """The exponents of angles in the forward pass and of gradients in the backward pass.

    lambda_a                 gaps between nearly equal tokens grow by 1 + lambda_a in each block: > 0 chaotic, < 0 ordered
    lambda_a_log             ln(1 + lambda_a), which growths of measured gaps estimate
    lambda_g                 log growth of the squared gradient in each block: > 0 exploding, < 0 vanishing
    ..._infinite_depth       their limits
    one_block_from_1         log growth of a vanishing gap in one block from norm 1
    q_star, q_M              norm before the attention and before the MLP branch, if all tokens are equal
    k_out, f                 output variance of the MLP, slope of its covariance map
    mu_delta, mu_q           growth of gaps and of deviations of the norm; mu_delta is None under a causal mask
    jacobian_q_p             d(q', p') / d(q, p) at equal tokens, [2, 2]; None under a causal mask
    largest_annealed_gap     1 - cosine up to which the annealed average of attention is good
    norm_growth              log growth of squared norms in each block: 0 at the fixed point

    Where norms have no fixed point (skip_A skip_M of 1 or more), exponents are means over the depth, a whole number of
    blocks, from norm 1, and what belongs to a fixed point is None.
    """

    lambda_a: float
    lambda_a_log: float
    lambda_g: float
    lambda_a_infinite_depth: float | None
    lambda_g_infinite_depth: float | None
    one_block_from_1: float
    q_star: float | None
    q_M: float | None
    k_out: float | None
    f: float | None
    mu_delta: float | None
    mu_q: float | None
    jacobian_q_p: Numbers | None
    largest_annealed_gap: float
    norm_growth: float

    @property
    def phase(self) -> str:
        """Both signs in words, such as 'chaotic angles, exploding gradients'."""
        return _core.phase_name(self.lambda_a, self.lambda_g)


def exponents(parameters: Parameters, depth: float = 16, causal: bool = False, published: bool = False) -> Exponents:
    """The Exponents of a transformer of this depth, in closed form. With `published` lambda_a and lambda_g are the paper's
    equations 18 and 19 as printed, with q_star in the place of q_M; ArgumentError beside a causal mask, and where norms have
    no fixed point."""
    found = {"norm_growth": 0.0, **_core.propagation_exponents(
        _told(parameters, depth=depth, causal=causal, published=published))}
    if found.get("jacobian_q_p") is not None:
        found["jacobian_q_p"] = np.array(found["jacobian_q_p"])
    return Exponents(*(found.get(name) for name in Exponents._fields))


class WidthSpread(NamedTuple):
    """How networks of one width scatter about their exponents, over all of their blocks; leading order in 1 / width.

    lambda_a, lambda_g  (low, high): into which 90 of 100 networks fall; lambda_a is None where one block makes all tokens equal
    angle_variance      of ln of the mean 1 - cosine of nearly equal tokens
    gradient_variance   of ln of the squared gradient
    limit_depth         the most blocks at which neither variance passes 1: beyond, the limit does not describe single networks;
                        None if that is beyond a million
    """

    lambda_a: tuple[float, float] | None
    lambda_g: tuple[float, float]
    angle_variance: float
    gradient_variance: float
    limit_depth: int | None


def width_spread(parameters: Parameters, width: int, depth: int = 16) -> WidthSpread:
    """The WidthSpread of a transformer of full attention."""
    found = _core.width_spread(_told(parameters, width=width, depth=depth))
    angle, gradient = ((found[f"{name}_low"], found[f"{name}_high"]) for name in ("lambda_a", "lambda_g"))
    return WidthSpread(None if angle[0] is None else angle, gradient, found["angle_variance"], found["gradient_variance"],
                       found["limit_depth"])


class PhaseDiagram(NamedTuple):
    """Both exponents as functions of two parameters: x [columns], y [rows], lambda_a and lambda_g [rows, columns]; NaN where the
    numbers of the MLP leave the range of doubles."""

    x: Numbers
    y: Numbers
    lambda_a: Numbers
    lambda_g: Numbers


def phase_diagram(parameters: Parameters, x: tuple[str, ArrayLike] = ("alpha", np.linspace(0.01, 0.95, 100)),
                  y: tuple[str, ArrayLike] = ("sigma_w", np.linspace(0.2, 4, 100)), depth: float = 16,
                  causal: bool = False, one_block: bool = False, published: bool = False, threads: int = 0,
                  progress: Progress = None) -> PhaseDiagram:
    """A PhaseDiagram of two parameters.

    x, y       (name, values): 'alpha' (both strengths), 'alpha_A', 'alpha_M', 'sigma_w', 'sigma_out', 'sigma_A', 'tokens',
               'depth' or 'mlp_depth'; the others are those of `parameters`
    one_block  lambda_a is the log growth of gaps in one block from norm 1, which the paper measures
    published  as in exponents()

    ArgumentError names a parameter and its value out of range; a RuntimeWarning says how many points are NaN. Progress counts
    rows.
    """
    across, along = _axis(x, "x"), _axis(y, "y")
    lambda_a, lambda_g = _core.phase_diagram(
        _told(parameters, depth=depth, causal=causal, one_block=one_block, published=published), across, along,
        whole(threads, "threads"), teller(progress, "steps"))
    if undefined := int((np.isnan(lambda_a) | np.isnan(lambda_g)).sum()):
        warnings.warn(f"phase_diagram: no exponents at {undefined} of {lambda_a.size} points, where the numbers of the MLP leave "
                      "the range of doubles", RuntimeWarning, stacklevel=2)
    return PhaseDiagram(np.array(across[1]), np.array(along[1]), lambda_a, lambda_g)


class Curve(NamedTuple):
    """Points [points, 2] in order along a curve, and whether it closes."""

    points: Numbers
    closed: bool


class CriticalLines(NamedTuple):
    """Curves on which lambda_a and lambda_g vanish, and the points [k, 2] where these cross."""

    angle: list[Curve]
    gradient: list[Curve]
    crossings: Numbers


def critical_lines(parameters: Parameters, x: tuple[str, float, float] = ("alpha", 0.01, 0.95),
                   y: tuple[str, float, float] = ("sigma_w", 0.2, 4), depth: float = 16, causal: bool = False,
                   one_block: bool = False, published: bool = False) -> CriticalLines:
    """The CriticalLines within a rectangle of two parameters, (name, first, last) as in phase_diagram(): every point lies
    on its line to 1e-12 of the sides. ArgumentError for 'mlp_depth', and under a causal mask for 'tokens' and 'depth',
    which do not change continuously; start strengths above 0."""
    angle, gradient, crossings = _core.critical_lines(
        _told(parameters, depth=depth, causal=causal, one_block=one_block, published=published), _range(x, "x"), _range(y, "y"))
    return CriticalLines([Curve(*curve) for curve in angle], [Curve(*curve) for curve in gradient], crossings)


class CriticalInitialisation(NamedTuple):
    """Parameters on the line lambda_a = 0, their exponents, and depth * lambda_g, the log growth of the squared gradient."""

    parameters: Parameters
    lambda_a: float
    lambda_g: float
    log_gradient_growth: float


def critical(parameters: Parameters, depth: int = 16, free: str = "strengths_and_gain", tolerance: float = 0.1,
             causal: bool = False) -> CriticalInitialisation:
    """The CriticalInitialisation of a transformer of this depth.

    free       what is chosen: 'strengths_and_gain' (alpha_A, alpha_M at their given ratio, and sigma_w), one of 'sigma_w',
               'alpha_M' and 'alpha_A', or 'balanced': the sigma_w with lambda_g = -lambda_a
    tolerance  of 'strengths_and_gain': largest log growth of the squared gradient over the network, > 0

    NumericalError, which names the free parameter, if no value is critical.
    """
    found, exponents = _core.critical_initialisation(_told(parameters, depth=depth, free=free, tolerance=tolerance, causal=causal))
    chosen = {name: found[name] for name in ("alpha_A", "alpha_M", "sigma_w")}
    return CriticalInitialisation(dataclasses.replace(parameters, **chosen), *exponents)


def critical_values(which: str, free: str, parameters: Parameters, depth: float = 16, causal: bool = False) -> Numbers:
    """Every value of `free` ('sigma_w' in [0.05, 60], 'alpha_A' or 'alpha_M' in (0, 1)) at which the exponent 'angle' or
    'gradient' vanishes, in ascending order. Two values closer than 1/64 of the range are missed."""
    return _core.critical_values(one_of(which, "which", ("angle", "gradient")), one_of(free, "free", _COORDINATES),
                                 _told(parameters, depth=depth, causal=causal))


class SimulatedTrajectory(NamedTuple):
    """Means over random networks with standard errors, [depth + 1]."""

    q: Numbers
    q_error: Numbers
    cosine: Numbers
    cosine_error: Numbers


class TokenSamples(NamedTuple):
    """Squared norms of single tokens and cosines of pairs after `depth` blocks, of all networks."""

    depth: int
    squared_norms: Numbers
    cosines: Numbers


class MeasuredGradient(NamedTuple):
    """The gradient exponent of random networks: that of the mean squared gradient, and the mean of its logarithm, which is
    lower."""

    log_of_mean: Estimate
    mean_of_log: Estimate


def simulate_trajectory(parameters: Parameters, depth: int = 16, q0: float = 1, c0: float = 0, causal: bool = False,
                        width: int = 64, networks: int = 32, seed: int = 0, threads: int = 0,
                        progress: Progress = None) -> SimulatedTrajectory:
    """trajectory() in random transformers of finite width, from Gaussian tokens of norm q0 and cosine c0 in [0, 1]: a
    SimulatedTrajectory.

    width, networks  channels, and how many networks (at least 2)
    seed             equal seeds give equal bits with any number of threads

    Progress counts networks, and Ctrl-C is noticed between them. Cost of a network and block: about
    (5 + mlp_depth) n width^2 + 2 n^2 width multiply-adds.
    """
    return SimulatedTrajectory(**_core.simulate_trajectory(
        _told(parameters, depth=depth, q0=q0, c0=c0, causal=causal, width=width, networks=networks, seed=seed),
        _drawing(threads, progress)))


def simulate_samples(parameters: Parameters, depths: Sequence[int], q0: float = 1, c0: float = 0, causal: bool = False,
                     width: int = 64, networks: int = 32, seed: int = 0, threads: int = 0,
                     progress: Progress = None) -> list[TokenSamples]:
    """TokenSamples after each of these numbers of blocks (0: the start), for histograms. Other arguments are those of
    simulate_trajectory()."""
    return [TokenSamples(*samples) for samples in _core.simulate_samples(
        _told(parameters, q0=q0, c0=c0, causal=causal, width=width, networks=networks, seed=seed),
        [whole(depth, "depths") for depth in each(depths, "depths", "integers")], _drawing(threads, progress))]


def simulate_angle(parameters: Parameters, q0: float | None = None, c0: float = 0.99, causal: bool = False, width: int = 64,
                   networks: int = 32, seed: int = 0, threads: int = 0,
                   progress: Progress = None) -> Estimate:
    """Mean log growth of 1 - cosine in one block, from norm q0 (None: the fixed point, or 1 without one) and cosine c0: an Estimate to compare
    with exponents().lambda_a_log. Other arguments are those of simulate_trajectory()."""
    return Estimate(*_core.simulate_angle(
        _told(parameters, q0=q0, c0=c0, causal=causal, width=width, networks=networks, seed=seed), _drawing(threads, progress)))


def simulate_gradient(parameters: Parameters, depth: int = 16, q0: float | None = None, c0: float = 0, causal: bool = False,
                      width: int = 64, networks: int = 32, seed: int = 0, threads: int = 0,
                      progress: Progress = None) -> MeasuredGradient:
    """The MeasuredGradient, to compare with exponents().lambda_g, from equal tokens at the fixed point or, with q0, from Gaussian
    ones of norm q0 and cosine c0. Other arguments are those of simulate_trajectory(); gradients triple the cost."""
    if q0 is None and c0 != 0:
        raise ValueError("c0: expected q0 as well; tokens start equal, at the fixed point, without them")
    of_mean, of_log = _core.simulate_gradient(
        _told(parameters, depth=depth, q0=q0, c0=c0, causal=causal, width=width, networks=networks, seed=seed),
        _drawing(threads, progress))
    return MeasuredGradient(Estimate(*of_mean), Estimate(*of_log))


def simulate_groups(parameters: Parameters, depth: int = 16, q0: float = 1, p_inside: float = 0.75, p_across: float = 0.5,
                    causal: bool = False, width: int = 64, networks: int = 32, seed: int = 0, threads: int = 0,
                    progress: Progress = None) -> tuple[Numbers, Numbers]:
    """Shows how two halves of tokens, with products p_inside within and p_across between them
    (0 <= p_across <= p_inside <= q0), become alike: products inside over products across after each block, and standard errors,
    both [depth + 1]. Other arguments are those of simulate_trajectory()."""
    ratio, error = _core.simulate_groups(
        _told(parameters, depth=depth, q0=q0, p_inside=p_inside, p_across=p_across, causal=causal, width=width, networks=networks,
              seed=seed), _drawing(threads, progress))
    return ratio, error


def _drawing(threads, progress):
    return _core.Drawing(whole(threads, "threads"), teller(progress, "steps"))


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


def propagate(block: _core.Network, start: ArrayLike, depth: int = 16, threads: int = 0,
              progress: Progress = None) -> Propagated:
    """Repeats a block of any layers: Gram matrices of tokens follow the kernel recursion, gradients that of tangent kernels.
    Returns a Propagated.

    block   a Network that takes n tokens and leaves n tokens of the same width
    start   their Gram matrix X X^T / width, [n, n], for example from start_gram() or measure()

    ArgumentError for a start that is not symmetric with a positive diagonal, NetworkError for a block that leaves another
    shape, NumericalError if covariances leave the range of doubles. Progress counts blocks. Cost: depth times a pair of
    gram() with all its positions, up to 16 times that for sampled layers.
    """
    return _propagated(_core.propagate(block, numbers(start, name="start"), whole(depth, "depth"),
                                       whole(threads, "threads"), teller(progress, "steps")))


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


def block_exponents(block: _core.Network, tokens: int, depth: int = 16, start_norm: float | None = None, threads: int = 0,
                    progress: Progress = None) -> BlockExponents:
    """The BlockExponents of a repeated block for n >= 2 tokens, from start_norm, or with None from the norm that the block
    leaves unchanged, or from 1 if there is none. Errors are those of propagate(); the cost is twice that."""
    found = _core.block_exponents(block, whole(tokens, "tokens"), whole(depth, "depth"),
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


def layer_gradients(block: _core.Network, start: ArrayLike, depth: int = 16, threads: int = 0,
                    progress: Progress = None) -> list[LayerGradients]:
    """The gradients that the parameters of every layer of the block receive from a random gradient after all blocks:
    LayerGradients of each. Arguments and errors are those of propagate(); the cost is depth / 2 times that for each layer, and
    three times as much for attention."""
    return [LayerGradients(*layer) for layer in _core.layer_gradients(
        block, numbers(start, name="start"), whole(depth, "depth"), whole(threads, "threads"), teller(progress, "steps"))]


class SampledBlock(NamedTuple):
    """propagate() and layer_gradients() in random networks of finite width; log_gradient is NaN."""

    tokens: Propagated
    gradients: list[LayerGradients]


def sample_block(block: _core.Network, start: ArrayLike, depth: int = 16, width: int = 128, networks: int = 32, heads: int = 8,
                 seed: int = 0, threads: int = 0,
                 progress: Progress = None) -> SampledBlock:
    """The SampledBlock of `networks` networks (at least 2) of `width` channels and `heads` heads, a divisor of the width,
    with Gaussian tokens of Gram matrix `start` [n, n] before `depth` blocks. Equal seeds give equal bits. Raises the errors of
    propagate(), and NetworkError for layers without a finite counterpart. Progress counts networks."""
    told = {"depth": depth, "width": width, "networks": networks, "heads": heads, "seed": seed}
    tokens, gradients = _core.sample_block(block, numbers(start, name="start"), told, whole(threads, "threads"),
                                           teller(progress, "steps"))
    return SampledBlock(_propagated(tokens), [LayerGradients(*layer) for layer in gradients])


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


def measure(layers: Sequence[ArrayLike], block: _core.Network | None = None, threads: int = 0,
            lengths: ArrayLike | None = None, mask: ArrayLike | None = None) -> Measured:
    """Norms and angles in activations of your own model: a Measured.

    layers  arrays or tensors of one shape, [sequences, tokens, width], before the first block and after each block
    block   a Network of one block, to compare with the theory from the first layer's tokens
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


class LossFit(NamedTuple):
    """The loss after training from both exponents, min(bias + max(weight_a |lambda_a|, weight_g |lambda_g|), ceiling),
    fitted by least squares: weights >= 0 and bias with bootstrap errors, how well it describes the losses, and the
    `predicted` ones [n]."""

    weight_a: float
    weight_g: float
    bias: float
    weight_a_error: float
    weight_g_error: float
    bias_error: float
    root_mean_square_error: float
    explained_variance: float
    rank_correlation: float
    predicted: Numbers


def fit_losses(lambda_a: ArrayLike, lambda_g: ArrayLike, loss: ArrayLike, classes: int | None = None, bootstrap: int = 200,
               seed: int = 0) -> LossFit:
    """The LossFit of trained networks.

    lambda_a, lambda_g  their exponents [n], n >= 4, the first in one form throughout
    loss                [n], not all equal
    classes             of the task, at least 2: losses are at most their logarithm; None: no ceiling
    bootstrap           draws for the standard errors, at least 2

    ArgumentError for anything else.
    """
    found, predicted = _core.fit_losses(numbers(lambda_a, name="lambda_a"), numbers(lambda_g, name="lambda_g"),
                                        numbers(loss, name="loss"), {"classes": classes, "bootstrap": bootstrap, "seed": seed})
    return LossFit(**found, predicted=predicted)


def _parts(given, name, expected):
    if not isinstance(given, (tuple, list)) or len(given) != expected.count(",") + 1:
        raise TypeError(f"{name}: expected {expected}, got {given!r}")
    return given


def _axis(axis, name):
    coordinate, values = _parts(axis, name, "(coordinate, values)")
    return one_of(coordinate, name, _COORDINATES), numbers(values, name=name).ravel().tolist()


def _range(given, name):
    coordinate, first, last = _parts(given, name, "(coordinate, first, last)")
    return one_of(coordinate, name, _COORDINATES), real(first, name), real(last, name)
