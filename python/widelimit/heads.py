"""Specialisation of attention heads in the single-location model: flows, SGD, Bayes risks, Hessians.

    from widelimit import heads
    prior = heads.Prior.spikes(4, 10)
    (trained,) = heads.flow("softmax1", prior, tokens=5, heads=4, step=0.5)

A sequence has L tokens, one of which carries a signal that is a mixture of F spikes, with features theta from a Prior. H heads
score the tokens; m [H, F] are their overlaps with the spikes, S [H, H] the Gram matrix of their parts orthogonal to these,
r a root of S, b [H] biases and v scales (one for each head for 'softmaxv', else one). Activations are 'softmax', 'softmaxv',
'softmax1' and 'bayes'; times tau are learning rate times steps. Losses are 1 - 1/L for uniform attention.
Mathematics: docs/theory/head-specialization.md. Source: Sagitova, Duranthon, Zdeborova, arXiv:2603.03993.

Arguments are the fields of the configurations of `widelimit heads`, with the same ranges and defaults; those that are None are
left to the function. Functions with `progress` call it with (steps done, total steps). `threads` is 0 for one on each core. Results depend on
neither; Ctrl-C stops all functions. Equal seeds give the bits that `widelimit heads` gives.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._arrays import integer_array, numbers, real, whole
from ._progress import Progress, teller
from ._core import Prior

__all__ = [
    "Comparison", "EscapeRates", "Estimate", "FlowPath", "HeadParameters", "HessianConstants", "ImageHeads", "ImageTask", "Judged",
    "LeftSaddle", "Prior", "Pruned", "Resampled", "SgdPath", "SpecialisationTimes", "TrainedHeads", "attention_map",
    "bayes_optimal_heads", "bayes_posterior", "bayes_risk", "compare", "digit_times", "digits", "escape_rates", "flow",
    "fresh_sequences", "hessian", "judge", "noise_start", "prune", "resampling", "sgd", "specialisation_times", "split_rate"]

Numbers = NDArray[np.float64]


class Estimate(NamedTuple):
    """A mean with its standard error."""

    value: float
    standard_error: float


class HeadParameters(NamedTuple):
    """The state of the heads: m [H, F], r [H, H] with S = r r^T, b [H], v [scales]."""

    m: Numbers
    r: Numbers
    b: Numbers
    v: Numbers


class FlowPath(NamedTuple):
    """A flow at its recorded times [k]: tau, the loss on its samples and the largest entry of the gradient, all [k]; m [k, H, F],
    S and r [k, H, H], b [k, H], v [k, scales]."""

    tau: Numbers
    loss: Numbers
    gradient: Numbers
    m: Numbers
    S: Numbers
    r: Numbers
    b: Numbers
    v: Numbers

    @property
    def end(self) -> HeadParameters:
        """The parameters at the end of the flow."""
        return HeadParameters(self.m[-1], self.r[-1], self.b[-1], self.v[-1])


class LeftSaddle(NamedTuple):
    """A saddle at which a flow rested before it continued: when, its loss there on its own samples, and the rate, per unit of
    tau, at which a flow leaves it."""

    tau: float
    loss: float
    split_rate: float


class TrainedHeads(NamedTuple):
    """The heads after one flow: its seed, whether the gradient fell below stop_gradient, the loss on fresh samples with its
    standard error, the lowest eigenvalue of the Hessian if the flow came to rest (else None), whether the loss still falls in
    some direction there (the curvature is below -5e-5 and below minus three times the remaining gradient), the saddles that it
    left, and the FlowPath."""

    seed: int
    converged: bool
    loss: float
    standard_error: float
    curvature: float | None
    at_saddle: bool
    left_saddles: list[LeftSaddle]
    path: FlowPath


class SgdPath(NamedTuple):
    """A run of online SGD at its recorded times [k]: tau and the loss of the batch [k]; overlaps m [k, H, F], Gram matrices q of
    the heads [k, H, H] and p of the spikes [k, F, F], S = q - m p^-1 m^T [k, H, H], b [k, H], v [k, scales]."""

    tau: Numbers
    loss: Numbers
    m: Numbers
    q: Numbers
    p: Numbers
    S: Numbers
    b: Numbers
    v: Numbers


def flow(activation: str, prior: Prior, tokens: int, heads: int, *, tau: float | None = None, step: float = 0.1,
         records: int = 200, starts: int = 1, start: HeadParameters | None = None, eta: float = 1,
         stop_gradient: float = 1e-4, leave_saddles: bool = True, stepper: str = "euler", variant: str = "frame", batch_noise: float = 0,
         samples: int = 100_000, fresh_samples: int = 200_000, symmetry: str = "plain", seed: int = 1, threads: int = 0,
         progress: Progress = None) -> list[TrainedHeads]:
    """Gradient flows of the population loss, the limit of online SGD. Returns TrainedHeads for each start.

    tau            last time, a whole number of steps; None: 20,000, with records at growing instead of even times
    step           of the integrator, in tau; records: approximate number of rows of the path
    starts         number of flows, each with its own seed (seed, seed + 1, ...); heads end in different minima
    start          the point from which all of them begin; None: random points, with heads of length eta
    stop_gradient  a flow ends once every entry of its gradient is below this; 0: never
    leave_saddles  a flow that rests at a saddle is moved along its descending direction and continues; False: it ends there
    stepper        'euler', 'runge_kutta4' or 'dormand_prince'
    variant        'frame': the flow that SGD follows; 'symmetric': the symmetrised gradient that the paper prints
    batch_noise    gamma D / N_b of an SGD whose noise enters S; for 'euler' only
    samples        size of the training set, drawn once for a flow; fresh_samples: number of those on which the loss is judged
    symmetry       'closed': samples are completed under shifts of the heads and signs of features; or 'plain'

    ArgumentError for numbers out of range, NumericalError if a state stops being finite.
    """
    given = dict(activation=activation, tokens=tokens, heads=heads, tau=tau, step=step, records=records, starts=starts, eta=eta,
                 stop_gradient=stop_gradient, leave_saddles=leave_saddles, stepper=stepper, variant=variant, batch_noise=batch_noise,
                 samples=samples, fresh_samples=fresh_samples, symmetry=symmetry, seed=seed)
    found = _core.head_flow(_prior(prior), given, None if start is None else _arrays(start, "start"), *_run(threads, progress))
    return [TrainedHeads(one["seed"], one["converged"], one["loss"], one["loss_standard_error"], curvature, bool(one["saddle"]),
                         [LeftSaddle(**saddle) for saddle in one["left_saddles"]], path)
            for one, curvature, path in zip(found["summary"]["starts"], found["curvatures"], _paths(found["table"], FlowPath))]


def _paths(table, kind):
    """The paths of all starts, which follow each other in a table."""
    return [kind(*(table[name][table["start"] == start] for name in kind._fields)) for start in np.unique(table["start"])]


def _prior(prior):
    if not isinstance(prior, Prior):
        raise TypeError(f"prior: expected heads.Prior, such as Prior.flip2(2, 2), got {prior!r}")
    return prior


def _run(threads, progress, what="steps"):
    return whole(threads, "threads"), teller(progress, what)


class Pruned(NamedTuple):
    """Losses after 0, 1, ..., H - 1 removals, and the heads removed, in their order."""

    losses: Numbers
    removed: list[int]


def prune(activation: str, parameters: HeadParameters, prior: Prior, tokens: int, *, normaliser: str = "kept_heads",
          fresh_samples: int = 200_000, seed: int = 1, threads: int = 0) -> Pruned:
    """Removes heads one by one, each time the one without which the loss is lowest, on the fresh samples of a flow() with
    the same seed. Returns a Pruned. normaliser: 'kept_heads' or 'full_model', the heads over which weights are normalised.
    Cost: H^2 / 2 losses."""
    given = _judged(activation, parameters, tokens, fresh_samples, seed)
    return Pruned(*_core.head_prune(_prior(prior), _arrays(parameters), {**given, "normaliser": normaliser}, whole(threads, "threads")))


def _judged(activation, parameters, tokens, fresh_samples, seed):
    return dict(activation=activation, tokens=tokens, heads=len(_arrays(parameters)[0]), fresh_samples=fresh_samples, seed=seed)


class Judged(NamedTuple):
    """The population loss of heads, its derivatives entry by entry, and the mean attention weight of the token that carries
    the signal and of all others together."""

    loss: Estimate
    gradient: HeadParameters
    relevant: float
    other: float


def judge(activation: str, parameters: HeadParameters, prior: Prior, tokens: int, *, fresh_samples: int = 200_000, seed: int = 1,
          threads: int = 0) -> Judged:
    """The loss of heads and where they attend, on the fresh samples of a flow() with the same seed: a Judged."""
    loss, gradient, mass = _core.head_judge(_prior(prior), _arrays(parameters), _judged(activation, parameters, tokens, fresh_samples, seed),
                                            whole(threads, "threads"))
    return Judged(Estimate(*loss), HeadParameters(*gradient), *mass)


def sgd(activation: str, prior: Prior, tokens: int, heads: int, dimension: int, tau: float, *, batch: int | None = None,
        gamma: float = 0.02, eta: float = 1, records: int = 100, form: str = "gram", planted_m: ArrayLike | None = None,
        seed: int = 1, threads: int = 0, progress: Progress = None) -> SgdPath:
    """Online SGD with fresh batches in D dimensions, from a random start: an SgdPath.

    dimension  D; at least H + F + L for the form 'gram'
    tau        last time, gamma times steps
    batch      sequences in each step; None: D
    gamma      learning rate; eta: length of a head at the start; records: approximate number of rows, at even times
    form       'gram': the same in distribution without vectors of length D, hundreds of times faster; or 'vector'
    planted_m  overlaps at the start, [H, F]; None: random ones
    """
    given = dict(activation=activation, tokens=tokens, heads=heads, dimension=dimension, tau=tau, batch=batch, gamma=gamma, eta=eta,
                 records=records, form=form, planted_m=planted_m, seed=seed)
    return _paths(_core.head_sgd(_prior(prior), given, *_run(threads, progress))["table"], SgdPath)[0]


class Comparison(NamedTuple):
    """An SGD and the flow from its start, at the same times and in the same frame."""

    sgd: SgdPath
    flow: FlowPath

    @property
    def largest_difference_m(self) -> float:
        """The largest difference between overlaps, at any time."""
        return float(abs(self.sgd.m - self.flow.m).max())

    @property
    def largest_difference_S(self) -> float:
        """The largest difference between entries of S, at any time."""
        return float(abs(self.sgd.S - self.flow.S).max())


def compare(activation: str, prior: Prior, tokens: int, heads: int, dimension: int, tau: float, *, step: float = 0.1,
            samples: int = 100_000, symmetry: str = "plain", batch: int | None = None, gamma: float = 0.02, eta: float = 1,
            records: int = 100, form: str = "gram", planted_m: ArrayLike | None = None, seed: int = 1, threads: int = 0,
            progress: Progress = None) -> Comparison:
    """An sgd() and the flow from its own start, spikes whitened and batch noise included: a Comparison. `step`, `samples` and
    `symmetry` are those of the flow, the rest those of sgd(). Both are recorded at times that are steps of both; ArgumentError if
    tau is none of them."""
    given = dict(activation=activation, tokens=tokens, heads=heads, dimension=dimension, tau=tau, step=step, samples=samples,
                 symmetry=symmetry, batch=batch, gamma=gamma, eta=eta, records=records, form=form, planted_m=planted_m, seed=seed)
    found = _core.head_compare(_prior(prior), given, *_run(threads, progress))
    return Comparison(*_paths(found["sgd"], SgdPath), *_paths(found["flow"], FlowPath))


class SpecialisationTimes(NamedTuple):
    """log_scale [etas] = ln(sqrt(D) / eta). times [etas, starts], or [etas, starts, F] for single features or classes, are NaN
    if the run ended before. ends [etas, starts] are 'specialised', 'rest' or 'tau'."""

    log_scale: Numbers
    times: Numbers
    ends: NDArray[np.str_]

    @property
    def mean(self) -> Numbers:
        """Over the starts of each eta, [etas] or [etas, F]; NaN where one of them has no time."""
        return self.times.mean(axis=1)

    @property
    def variance(self) -> Numbers:
        """Over the starts of each eta, at least two of them, like `mean`."""
        return self.times.var(axis=1, ddof=1)

    @property
    def slope(self) -> Numbers:
        """Slopes of the times in log_scale by least squares, a number or [F], over the etas at which all starts have one; NaN
        for fewer than two such etas. Theory: 1 / split_rate()."""
        times = self.times if self.times.ndim == 3 else self.times[..., None]
        slopes = np.array([_slope(self.log_scale, one) for one in np.moveaxis(times, 2, 0)])
        return slopes if self.times.ndim == 3 else slopes[0]


def _slope(scales, times):
    known = ~np.isnan(times).any(axis=1)
    if len(np.unique(scales[known])) < 2:
        return math.nan
    deviations = scales[known] - scales[known].mean()
    return float(deviations @ times[known].mean(axis=1) / (deviations @ deviations))


def specialisation_times(activation: str, prior: Prior, tokens: int, heads: int, dimension: int, etas: Sequence[float],
                         tau: float, *, starts: int = 2, features: bool = False, delta: float | None = None,
                         dynamics: str = "flow", step: float | None = None, samples: int | None = None,
                         symmetry: str | None = None, stop_gradient: float | None = None, gamma: float | None = None,
                         batch: int | None = None, seed: int = 1, threads: int = 0,
                         progress: Progress = None) -> SpecialisationTimes:
    """The times at which heads from random starts in D dimensions specialise: SpecialisationTimes.

    etas      lengths of the heads at the start, with `starts` runs for each (seed, seed + 1, ...)
    features  False: the time at which two heads are further apart than delta (None: 0.2); True: for each feature, the time at
              which the length of its overlaps minus their mean exceeds delta (None: 1); of flows only
    dynamics  'flow', or 'sgd': online SGD in Gram form at finite D, as figure 6 of the paper has it
    tau       last time
    step (0.1), samples (20,000), symmetry ('closed') and stop_gradient (0) are those of flow(), for 'flow' alone;
    gamma (0.02) and batch (the dimension) those of sgd(), for 'sgd' alone. Progress counts runs.
    """
    if features and dynamics == "sgd":
        raise ValueError("features: times of single features are those of flows; take dynamics='flow'")
    given = dict(activation=activation, tokens=tokens, heads=heads, dimension=dimension, etas=etas, tau=tau, starts=starts, delta=delta,
                 step=step, samples=samples, symmetry=symmetry, stop_gradient=stop_gradient, gamma=gamma, batch=batch, seed=seed)
    found = _times(_core.timed_heads(_prior(prior), given if features else {**given, "dynamics": dynamics}, bool(features),
                                     *_run(threads, progress)), starts)
    return found if features else found._replace(times=found.times[..., 0])


def _times(found, starts):
    """Of all sizes and starts."""
    table = found["table"]
    times = np.stack([table[name] for name in table if "_time" in name], axis=-1)
    return SpecialisationTimes(table["log_scale"][::starts], times.reshape(-1, starts, times.shape[1]),
                               np.array(found["ends"]["end"]).reshape(-1, starts))


class Resampled(NamedTuple):
    """A flow on samples that are kept, and the one from its start for which they are drawn anew at every step, at the same
    times; and whether the first came to rest."""

    seed: int
    converged: bool
    kept: FlowPath
    fresh: FlowPath

    @property
    def largest_difference_m(self) -> float:
        """The largest difference between overlaps, at any time."""
        return float(abs(self.kept.m - self.fresh.m).max())

    @property
    def largest_difference_S(self) -> float:
        """The largest difference between entries of S, at any time."""
        return float(abs(self.kept.S - self.fresh.S).max())


def resampling(activation: str, prior: Prior, tokens: int, heads: int, *, tau: float = 40, step: float = 0.1,
               samples: int = 100_000, symmetry: str = "plain", eta: float = 1, records: int = 100, stop_gradient: float = 1e-4,
               starts: int = 1, seed: int = 1, threads: int = 0, progress: Progress = None) -> list[Resampled]:
    """What keeping the samples of a flow() changes: Resampled for each start. `samples` is the size of the set that is kept and
    of each that is drawn; both flows end once the gradient on the kept samples is below stop_gradient. Other arguments are
    those of flow(). Cost: the samples are drawn in every step."""
    given = dict(activation=activation, tokens=tokens, heads=heads, tau=tau, step=step, samples=samples, symmetry=symmetry, eta=eta,
                 records=records, stop_gradient=stop_gradient, starts=starts, seed=seed)
    found = _core.head_resampling(_prior(prior), given, *_run(threads, progress))
    return [Resampled(one["seed"], one["converged"], kept, fresh) for one, kept, fresh in zip(
        found["summary"]["starts"], _paths(found["kept"], FlowPath), _paths(found["fresh"], FlowPath))]


class ImageTask:
    """The task of digits: the signal of a sequence is a random image of a set, times an amplitude, and the classes' mean images
    are its features.

    images     pixels from 0 to 255, [N, pixels] or [N, height, width]; they are divided by 255 and centred
    labels     classes from 0 on, [N], each of which has an image
    amplitude  nu, which multiplies the centred image

    ArgumentError for anything else. Source: arXiv:2603.03993, section V.
    """

    def __init__(self, images: ArrayLike, labels: ArrayLike, amplitude: float = 0.3) -> None:
        pixels, classes = numbers(images, name="images"), integer_array(labels, "labels")
        if pixels.ndim not in (2, 3):
            raise ValueError(f"images: expected [N, pixels] or [N, height, width], got an array of shape {pixels.shape}")
        if classes.ndim != 1:
            raise ValueError(f"labels: expected [N], got an array of shape {classes.shape}")
        self._task = _core.HeadImageTask(pixels.reshape(len(pixels), -1), classes.tolist(), {"amplitude": amplitude})
        self.amplitude: float = self._task.amplitude
        self.class_means: Numbers = self._task.class_means()

    @property
    def dimension(self) -> int:
        """The number of pixels, D."""
        return self.class_means.shape[1]


class ImageHeads(NamedTuple):
    """Heads that SGD trained on images: keys k [H, D], b [H] and v [scales]; their loss on fresh sequences, the Bayes risk, and
    the cosines of keys with the classes' mean images [H, classes]."""

    k: Numbers
    b: Numbers
    v: Numbers
    loss: Estimate
    bayes_risk: Estimate
    cosines: Numbers


def digits(activation: str, task: ImageTask, tau: float, *, tokens: int = 5, heads: int = 10, eta: float = 1,
           gamma: float = 0.25, batch: int | None = None, fresh_samples: int = 20_000, risk_samples: int = 1_000,
           seed: int = 1, threads: int = 0, progress: Progress = None) -> ImageHeads:
    """Online SGD on images from a random start, up to the time tau = gamma times steps: ImageHeads.

    eta            length of a head at the start; gamma: learning rate; batch: sequences in each step (None: one a pixel)
    fresh_samples  sequences on which the heads are judged; risk_samples: those of the estimate of the Bayes risk
    """
    given = dict(activation=activation, tau=tau, tokens=tokens, heads=heads, eta=eta, gamma=gamma, batch=batch,
                 fresh_samples=fresh_samples, risk_samples=risk_samples, seed=seed)
    found = _core.head_digits(_images(task), given, *_run(threads, progress))
    summary = found["summary"]
    loss, risk = (Estimate(summary[name], summary[f"{name}_standard_error"]) for name in ("loss", "bayes_risk"))
    return ImageHeads(found["table"]["k"], found["table"]["b"], np.array(summary["v"]), loss, risk, np.array(summary["cosines"]))


def _images(task):
    if not isinstance(task, ImageTask):
        raise TypeError(f"task: expected heads.ImageTask, got {task!r}")
    return task._task


def digit_times(activation: str, task: ImageTask, etas: Sequence[float], tau: float, *, tokens: int = 5, heads: int = 10,
                starts: int = 2, delta: float = 1, gamma: float = 0.25, batch: int | None = None, seed: int = 1,
                threads: int = 0, progress: Progress = None) -> SpecialisationTimes:
    """The times at which heads specialise to each class of images along SGD: SpecialisationTimes of [etas, starts, classes].

    delta  length of a class' overlaps minus their mean over the heads that counts as specialised
    tau    time at which a run is given up; other arguments are those of digits(). Progress counts runs.
    """
    given = dict(activation=activation, etas=etas, tau=tau, tokens=tokens, heads=heads, starts=starts, delta=delta, gamma=gamma,
                 batch=batch, seed=seed)
    return _times(_core.timed_images(_images(task), given, *_run(threads, progress)), starts)


def bayes_risk(prior: Prior, tokens: int, samples: int = 1_000_000, seed: int = 1, threads: int = 0,
               progress: Progress = None) -> Estimate:
    """The lowest loss that any heads can have: an Estimate of 1 - sum_l p_l^2 over drawn sequences, where p is the posterior."""
    return Estimate(*_core.head_bayes_risk(_prior(prior), dict(tokens=tokens, samples=samples, seed=seed), *_run(threads, progress)))


def bayes_posterior(prior: Prior, chi_star: ArrayLike, spike_gram: ArrayLike | None = None) -> Numbers:
    """The probability that each token carries the signal, [L], from the projections chi_star [L, F] of the tokens on the
    spikes. spike_gram: p [F, F] at finite D; None: the identity."""
    return _core.head_bayes_posterior(_prior(prior), numbers(chi_star, name="chi_star"),
                                      None if spike_gram is None else numbers(spike_gram, name="spike_gram"))


def bayes_optimal_heads(prior: Prior, heads: int) -> HeadParameters:
    """Heads with which the activation 'bayes' reaches the Bayes risk of a discrete prior. ArgumentError for Gaussian priors,
    points of probability 0, and fewer heads than points."""
    return HeadParameters(*_core.bayes_optimal_heads(_prior(prior), {"heads": heads}))


class HessianConstants(NamedTuple):
    """The loss to second order around m = 0, r = 0 (docs/theory/head-specialization.md): c1 to c5, the bias b and the scale v
    about which it is expanded, and the pull on all heads along E[theta] at the start."""

    c1: float
    c2: float
    c3: float
    c4: float
    c5: float
    b: float
    v: float
    initial_pull: float


def hessian(activation: str, tokens: int, heads: int, b: float | None = None) -> HessianConstants:
    """The HessianConstants at the point that the flow reaches from b = 0, v = 1, or for 'softmax1' at a given bias.
    ArgumentError for fewer than two tokens."""
    return HessianConstants(*_core.head_hessian(dict(activation=activation, tokens=tokens, heads=heads), None if b is None else real(b, "b")))


class EscapeRates(NamedTuple):
    """Growth rates per unit of tau along an eigenvector of Cov(theta): of heads that move apart (at least two), and together."""

    split: float
    common: float


def escape_rates(constants: HessianConstants, heads: int, eigenvalue: float) -> EscapeRates:
    """The EscapeRates from the origin along an eigenvector of Cov(theta) with this eigenvalue, at least 0."""
    if not isinstance(constants, HessianConstants):
        raise TypeError(f"constants: expected heads.HessianConstants, got {constants!r}")
    return EscapeRates(*_core.head_escape_rates(tuple(constants[:5]), whole(heads, "heads"), real(eigenvalue, "eigenvalue")))


def split_rate(activation: str, tokens: int, heads: int, nu1: float, nu2: float, samples: int | None = 1_000_000, seed: int = 1,
               threads: int = 0) -> Estimate:
    """The rate at which heads split along the second feature from the unspecialised saddle of Prior.flip2(nu1, nu2). Its
    inverse is the slope of specialisation times in ln(sqrt(D) / eta). It is computed by Monte Carlo, or with samples=None by
    quadrature, for few tokens. ArgumentError unless the activation is 'softmax' or 'bayes' and heads >= 2."""
    given = dict(activation=activation, tokens=tokens, heads=heads, seed=seed)
    return Estimate(*_core.head_split_rate(given, real(nu1, "nu1"), real(nu2, "nu2"),
                                           None if samples is None else whole(samples, "samples"), whole(threads, "threads")))


def attention_map(activation: str, parameters: HeadParameters, chi_star: ArrayLike, xi: ArrayLike) -> Numbers:
    """The weights over H that each head gives to each token of a sequence, [H, L], from the tokens' projections chi_star [L, F]
    on the spikes and xi [L, H] on the rest of the heads. Columns sum to the weights of the tokens."""
    return _core.head_attention_map({"activation": activation}, _arrays(parameters), numbers(chi_star, name="chi_star"),
                                    numbers(xi, name="xi"))


def fresh_sequences(prior: Prior, tokens: int, heads: int, sequences: int = 6, *, fresh_samples: int = 200_000,
                    seed: int = 1) -> tuple[Numbers, Numbers]:
    """The first of the fresh samples of a flow() with as many of them and the same seed, for attention_map(): projections
    (chi_star [sequences, L, F], xi [sequences, L, H])."""
    given = dict(tokens=tokens, heads=heads, sequences=sequences, fresh_samples=fresh_samples, seed=seed)
    chi_star, xi = _core.head_sequences(_prior(prior), given)
    return chi_star.reshape(-1, tokens, chi_star.shape[1]), xi.reshape(-1, tokens, xi.shape[1])


def noise_start(activation: str, heads: int, features: int, eta: float = 1, seed: int = 0) -> HeadParameters:
    """A random start: m normal with standard deviation 0.01, r = eta I plus as much noise, b = 0, v = 1."""
    given = dict(activation=activation, heads=heads, eta=eta, seed=seed)
    return HeadParameters(*_core.noise_start(given, whole(features, "features")))


def _arrays(parameters, name="parameters"):
    if not isinstance(parameters, (tuple, list)) or len(parameters) != len(HeadParameters._fields):
        raise TypeError(f"{name}: expected heads.HeadParameters, got {parameters!r}")
    return tuple(numbers(array, name=f"{name}.{field}") for field, array in zip(HeadParameters._fields, parameters))
