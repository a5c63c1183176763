"""The transformer of Cowsik et al. in closed form: Parameters, BlockMap, exponents, phase diagrams, critical initialisations."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._arrays import numbers, one_of, real, whole
from .._progress import Progress, teller
from ._types import Numbers

_COORDINATES = ("alpha", "alpha_A", "alpha_M", "sigma_w", "sigma_out", "sigma_A", "tokens", "depth", "mlp_depth")


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


def told(parameters, **arguments):
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
        self._map = _core.PropagationMap(told(parameters))

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


def trajectory(parameters: Parameters, depth: int = 16, q0: float = 1, c0: float = 0, causal: bool = False,
               progress: Progress = None) -> Trajectory:
    """Norms and angles after each block of tokens with norm q0 and cosine c0, -1 / (n - 1) .. 1: a Trajectory of
    [depth + 1] numbers, from BlockMap. Progress counts blocks; under a causal mask a block costs some tens of nanoseconds times the
    square of the tokens, of which whole matrices are kept."""
    return Trajectory(*_core.propagation_trajectory(
        told(parameters, depth=depth, q0=q0, c0=c0, causal=causal), teller(progress, "steps")))


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
        told(parameters, depth=depth, causal=causal, published=published))}
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
    found = _core.width_spread(told(parameters, width=width, depth=depth))
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
        told(parameters, depth=depth, causal=causal, one_block=one_block, published=published), across, along,
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
        told(parameters, depth=depth, causal=causal, one_block=one_block, published=published), _range(x, "x"), _range(y, "y"))
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
    found, exponents = _core.critical_initialisation(told(parameters, depth=depth, free=free, tolerance=tolerance, causal=causal))
    chosen = {name: found[name] for name in ("alpha_A", "alpha_M", "sigma_w")}
    return CriticalInitialisation(dataclasses.replace(parameters, **chosen), *exponents)


def critical_values(which: str, free: str, parameters: Parameters, depth: float = 16, causal: bool = False) -> Numbers:
    """Every value of `free` ('sigma_w' in [0.05, 60], 'alpha_A' or 'alpha_M' in (0, 1)) at which the exponent 'angle' or
    'gradient' vanishes, in ascending order. Two values closer than 1/64 of the range are missed."""
    return _core.critical_values(one_of(which, "which", ("angle", "gradient")), one_of(free, "free", _COORDINATES),
                                 told(parameters, depth=depth, causal=causal))


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
