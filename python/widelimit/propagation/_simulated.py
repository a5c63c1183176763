"""The transformer of Cowsik et al. in random networks of finite width."""

from __future__ import annotations

from typing import NamedTuple, Sequence

from .. import _core
from .._arrays import each, whole
from .._progress import Progress, teller
from ._transformer import Parameters, told
from ._types import Estimate, Numbers


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
        told(parameters, depth=depth, q0=q0, c0=c0, causal=causal, width=width, networks=networks, seed=seed),
        _drawing(threads, progress)))


def simulate_samples(parameters: Parameters, depths: Sequence[int], q0: float = 1, c0: float = 0, causal: bool = False,
                     width: int = 64, networks: int = 32, seed: int = 0, threads: int = 0,
                     progress: Progress = None) -> list[TokenSamples]:
    """TokenSamples after each of these numbers of blocks (0: the start), for histograms. Other arguments are those of
    simulate_trajectory()."""
    return [TokenSamples(*samples) for samples in _core.simulate_samples(
        told(parameters, q0=q0, c0=c0, causal=causal, width=width, networks=networks, seed=seed),
        [whole(depth, "depths") for depth in each(depths, "depths", "integers")], _drawing(threads, progress))]


def simulate_angle(parameters: Parameters, q0: float | None = None, c0: float = 0.99, causal: bool = False, width: int = 64,
                   networks: int = 32, seed: int = 0, threads: int = 0,
                   progress: Progress = None) -> Estimate:
    """Mean log growth of 1 - cosine in one block, from norm q0 (None: the fixed point, or 1 without one) and cosine c0: an Estimate to compare
    with exponents().lambda_a_log. Other arguments are those of simulate_trajectory()."""
    return Estimate(*_core.simulate_angle(
        told(parameters, q0=q0, c0=c0, causal=causal, width=width, networks=networks, seed=seed), _drawing(threads, progress)))


def simulate_gradient(parameters: Parameters, depth: int = 16, q0: float | None = None, c0: float = 0, causal: bool = False,
                      width: int = 64, networks: int = 32, seed: int = 0, threads: int = 0,
                      progress: Progress = None) -> MeasuredGradient:
    """The MeasuredGradient, to compare with exponents().lambda_g, from equal tokens at the fixed point or, with q0, from Gaussian
    ones of norm q0 and cosine c0. Other arguments are those of simulate_trajectory(); gradients triple the cost."""
    if q0 is None and c0 != 0:
        raise ValueError("c0: expected q0 as well; tokens start equal, at the fixed point, without them")
    of_mean, of_log = _core.simulate_gradient(
        told(parameters, depth=depth, q0=q0, c0=c0, causal=causal, width=width, networks=networks, seed=seed),
        _drawing(threads, progress))
    return MeasuredGradient(Estimate(*of_mean), Estimate(*of_log))


def simulate_groups(parameters: Parameters, depth: int = 16, q0: float = 1, p_inside: float = 0.75, p_across: float = 0.5,
                    causal: bool = False, width: int = 64, networks: int = 32, seed: int = 0, threads: int = 0,
                    progress: Progress = None) -> tuple[Numbers, Numbers]:
    """Shows how two halves of tokens, with products p_inside within and p_across between them
    (0 <= p_across <= p_inside <= q0), become alike: products inside over products across after each block, and standard errors,
    both [depth + 1]. Other arguments are those of simulate_trajectory()."""
    ratio, error = _core.simulate_groups(
        told(parameters, depth=depth, q0=q0, p_inside=p_inside, p_across=p_across, causal=causal, width=width, networks=networks,
              seed=seed), _drawing(threads, progress))
    return ratio, error


def _drawing(threads, progress):
    return _core.Drawing(whole(threads, "threads"), teller(progress, "steps"))
