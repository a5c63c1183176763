"""The covariance SDE of shaped transformers: paths, exact distributions, and random networks of finite width.

    from widelimit import sde
    model = sde.transformer(gamma_squared=0.5)
    paths = sde.simulate(model, sde.start(tokens=2, rho0=0.2), times=[0.5, 1])

The SDE describes the covariance V = X X^T / n [m, m] of m tokens, in a network whose depth and width n go to infinity together:
time is layer over width. Networks are those of the paper, shaped or not. Mathematics: docs/theory/covariance-sde.md. Source:
Noci et al. 2023, arXiv:2306.17759.

Arguments are the fields of the configurations of `widelimit sde`, with the same ranges and defaults; those that are
None are left to the function. A covariance V0 [m, m] is where paths start. `threads` is 0 for one on each core, and results do not
depend on it; Ctrl-C stops every function. Equal seeds give the bits that `widelimit sde` gives.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._arrays import numbers, real, whole
from ._progress import Progress, teller

__all__ = [
    "Coefficients", "Comparison", "Distance", "Ensemble", "Entropy", "Explosion", "GradientNorms", "Law", "Model", "Network", "Outputs",
    "attention", "coefficients", "commuting_limit", "compare", "correlation_law", "diffusion", "drift", "entropy", "explosion", "explosion_probability", "flow",
    "gap_law", "gradients", "mlp", "outputs", "resnet", "sample_networks", "simulate", "stack", "start", "stopping_times", "transformer",
    "with_finite_width_drift"]

Numbers = NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class Model:
    """Coefficients of dV = b(V) dt + Sigma(V)^(1/2) dB, made by mlp(), resnet(), attention(), transformer() and stack():

        b     = relu_drift nu(rho) sqrt(V^aa V^bb) + attention_drift b_att(V)
        Sigma = linear_noise Sigma_lin(V) + attention_noise A(V)

    c_plus, c_minus: slopes of the shaped ReLU, 1 + c / sqrt(n); mask of the attention: 'full' or 'causal'. ArgumentError names a
    coefficient below 0, or one that is not finite.
    """

    relu_drift: float = 0
    attention_drift: float = 0
    linear_noise: float = 0
    attention_noise: float = 0
    c_plus: float = 0
    c_minus: float = 0
    mask: str = "full"

    def __post_init__(self) -> None:
        _model(self)


def mlp(c_plus: float = 0, c_minus: float = -1) -> Model:
    """The plain multilayer perceptron with shaped ReLU."""
    return _made("mlp", c_plus=c_plus, c_minus=c_minus)


def resnet(gamma_squared: float, c_plus: float = 0, c_minus: float = -1, hidden_ratio: float = 1) -> Model:
    """Residual feedforward blocks. gamma_squared in [0, 1] is the square of the residual weight, 1 - gamma_squared that of the
    shortcut; hidden_ratio is the hidden width over the width."""
    return _made("resnet", gamma_squared=gamma_squared, c_plus=c_plus, c_minus=c_minus, hidden_ratio=hidden_ratio)


def attention(gamma_squared: float, temperature: float = 1, mask: str = "full", heads: int = 1) -> Model:
    """Residual shaped attention; temperature > 0 is tau_0, mask 'full' or 'causal', and heads have their own queries and keys."""
    return _made("attention", gamma_squared=gamma_squared, temperature=temperature, mask=mask, heads=heads)


def transformer(gamma_squared: float, temperature: float = 1, c_plus: float = 0, c_minus: float = -1, mask: str = "full",
                heads: int = 1, hidden_ratio: float = 1, gamma_squared_feedforward: float | None = None) -> Model:
    """The shaped transformer, with an attention and a feedforward block in each layer, of equal residual weights unless
    gamma_squared_feedforward is given."""
    return _made("transformer", gamma_squared=gamma_squared, temperature=temperature, c_plus=c_plus, c_minus=c_minus, mask=mask,
                 heads=heads, hidden_ratio=hidden_ratio, gamma_squared_feedforward=gamma_squared_feedforward)


def _made(model, **given):
    return Model(*_core.sde_model(model, {"model": model, **given}))


def stack(first: Model, second: Model) -> Model:
    """Two kinds of blocks in turn, counted as one layer. ArgumentError for different slopes or masks."""
    return Model(*_core.sde_stack(_model(first), _model(second)))


def with_finite_width_drift(model: Model, width: int) -> Model:
    """The model with the exact ReLU drift of a network of this width."""
    return Model(*_core.sde_finite_width_drift(_model(model), whole(width, "width")))


def start(tokens: int = 2, variance: float = 1, rho0: float = 0.2) -> Numbers:
    """The covariance [tokens, tokens] of tokens of equal variance and correlation."""
    return _core.sde_start({"tokens": tokens, "variance": variance, "rho0": rho0})


def drift(model: Model, v: ArrayLike) -> Numbers:
    """b(V) for a covariance v [m, m]: symmetric, [m, m]."""
    return _core.sde_drift(_model(model), numbers(v, name="v"))


def diffusion(model: Model, v: ArrayLike) -> Numbers:
    """Sigma(V), [D, D], D = m (m + 1) / 2, over the pairs (a, b), a <= b, row by row (numpy.triu_indices(m)). Cost: m^4, and
    m^5 under a causal mask."""
    return _core.sde_diffusion(_model(model), numbers(v, name="v"))


class Coefficients(NamedTuple):
    """The terms of drift() and diffusion() at one V: softmax moments S1 [m, m, m, m], as S1[a, d, b, w], and S2 [m, m] (eq. 10);
    linear [D, D], Sigma for linear_noise 1, and attention [D, D], the tensor A for attention_noise 1. Cost: m^6 for S1."""

    first_moment: Numbers
    second_moment: Numbers
    linear: Numbers
    attention: Numbers


def coefficients(v: ArrayLike, mask: str = "full") -> Coefficients:
    """The Coefficients at a covariance v [m, m], for full attention or under a mask that is 'causal'."""
    v = numbers(v, name="v")
    first, *others = _core.sde_coefficients(v, mask)
    return Coefficients(first.reshape((len(v),) * 4), *others)


class Ensemble(NamedTuple):
    """Covariances of independent paths or networks. A stopped path keeps its last state inside the bounds.

    times              [times]
    covariances        [times, paths, m, m]
    ends               [paths]: 'horizon' for those that never left the bounds, 'above', 'below' or 'not_finite'
    stop_times         [paths]: time of the state at which a path stopped, the horizon if it did not
    last_inside_times  [paths]: time of the last state inside the bounds
    cone_exits         [paths]: number of steps that left the positive semidefinite cone and were clipped
    sampling           of networks, how they were drawn: 'reduced' or 'explicit_weights'; None for paths of the SDE
    """

    times: Numbers
    covariances: Numbers
    ends: NDArray[np.str_]
    stop_times: Numbers
    last_inside_times: Numbers
    cone_exits: NDArray[np.int64]
    sampling: str | None = None

    @property
    def running(self) -> NDArray[np.bool_]:
        """Whether a path had not stopped by a time, [times, paths]."""
        return (self.ends == "horizon") | (self.times[:, None] < self.stop_times)

    @property
    def correlations(self) -> Numbers:
        """Correlations of tokens, [times, paths, m, m]; NaN where a variance is 0."""
        deviation = np.sqrt(np.diagonal(self.covariances, axis1=2, axis2=3))
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.covariances / (deviation[..., :, None] * deviation[..., None, :])


def _ensemble(found):
    values, times, ends, stop, inside, exits = found
    m = round(values.shape[1] ** 0.5)
    return Ensemble(times, values.reshape(len(times), -1, m, m), np.array(ends), stop, inside, exits.astype(np.int64))


def simulate(model: Model, V0: ArrayLike, times: Sequence[float] | ArrayLike, *, paths: int = 4096, max_step: float = 0.01,
             step_control: float | None = None, scheme: str | None = None, lower: float = 0, upper: float = 1e4, seed: int = 0,
             threads: int = 0) -> Ensemble:
    """Paths of the SDE from V0 [m, m]: an Ensemble.

    times         at which covariances are kept, increasing and positive; the last is the horizon T = depth / width
    max_step      largest step; step_control cuts it where attention is fast (None: 0.02 if the model has attention, else 0: never)
    scheme        'geometric' (which stays in the cone; for full attention), 'euler_maruyama' or 'euler_maruyama_dense'; None:
                  the first one that works for the model
    lower, upper  a path stops at its first state with an eigenvalue outside; lower = 0: no bound
    seed          equal seeds give equal bits, and the first paths of larger ensembles

    ArgumentError for a V0 that is not a covariance within the bounds, and for numbers out of range. Cost: paths * steps * m^3.
    """
    return _simulated("simulate", model, V0, times, paths=paths, max_step=max_step, step_control=step_control, scheme=scheme,
                      lower=lower, upper=upper, seed=seed, threads=threads)


def _simulated(function, model, V0, times, threads, **options):
    return _ensemble(_core.sde_simulate(function, _model(model), _given(V0, times=times, **options), whole(threads, "threads")))


class Explosion(NamedTuple):
    """How many paths exploded by each time, [times]: the number beyond the upper bound; the probability to explode from there, 1
    if it is not known; the share of paths times that; its 95 % interval [times, 2]; and the Ensemble."""

    beyond_upper: NDArray[np.int64]
    explodes_from_there: Numbers
    probability: Numbers
    interval_95: Numbers
    paths: Ensemble


def explosion(model: Model, V0: ArrayLike, times: Sequence[float] | ArrayLike, *, paths: int = 4096, max_step: float = 0.01,
              step_control: float = 0.005, scheme: str | None = None, lower: float = 0, upper: float = 1e6, seed: int = 0,
              threads: int = 0) -> Explosion:
    """An Explosion, by simulation with fine steps. For more than two tokens, and for two under a causal mask, it is an upper
    bound. Arguments are those of simulate(); upper is at least 1e3. For two tokens, explosion_probability() and gap_law() are
    exact."""
    given = _given(V0, times=times, paths=paths, max_step=max_step, step_control=step_control, scheme=scheme, lower=lower, upper=upper,
                   seed=seed)
    rows, ensemble = _core.sde_explosion(_model(model), given, whole(threads, "threads"))
    return Explosion(rows[:, 0].astype(np.int64), rows[:, 1], rows[:, 2], rows[:, 3:], _ensemble(ensemble))


@dataclasses.dataclass(frozen=True)
class Network:
    """A network of finite width, whose layers are an attention block, a feedforward block, or both.

    name                       'shaped_transformer', 'shaped_attention', 'shaped_resnet', 'mlp' (without residual weights),
                               'unshaped', 'unshaped_pre_ln', 'unshaped_post_ln', or one of the interventions of the paper's
                               figure 3, by its name in the configuration of `widelimit sde network`
    width                      n
    gamma_squared              square of the residual weight, in [0, 1]; None: weights 1 and 1, for the unshaped networks
    temperature                tau_0; c_plus, c_minus: slopes 1 + c / sqrt(n)
    mask, heads                of the attention: 'full' or 'causal'; heads divide the width
    key_width, hidden_width    0: width / heads, width
    gamma_squared_feedforward  of the feedforward block; None: that of the attention block
    g1, g2                     weights of the identity and of the mean next to the softmax (eq. 33); None: those of the name

    Immutable; `dataclasses.replace` makes others.
    """

    name: str
    width: int
    gamma_squared: float | None = None
    temperature: float = 1
    c_plus: float = 0
    c_minus: float = -1
    mask: str = "full"
    heads: int = 1
    key_width: int = 0
    hidden_width: int = 0
    gamma_squared_feedforward: float | None = None
    g1: float | None = None
    g2: float | None = None

    def __post_init__(self) -> None:
        _network(self)

    def limit(self) -> Model:
        """The Model to which it converges. ArgumentError unless all its blocks are shaped."""
        return Model(*_network(self).limit())


def sample_networks(network: Network, V0: ArrayLike, layers: Sequence[int], *, samples: int = 4096, lower: float = 0,
                    upper: float = 1e300, sampling: str | None = None, seed: int = 0, threads: int = 0) -> Ensemble:
    """Covariances of random networks after the given layers: an Ensemble, whose times are layer over width.

    V0        covariance of the inputs, [m, m]; the width is at least m
    layers    increasing, from at least 1; the last is the depth
    samples   number of networks
    lower, upper  bounds of the eigenvalues, as in simulate()
    sampling  'reduced': m x m matrices of the exact distribution; 'explicit_weights': the network as written, m n^2 for a
              block; None: 'reduced' wherever the network has such matrices, which Post-LN, Pre-LN with several heads and
              heads of fewer channels than tokens do not; the Ensemble says which

    ArgumentError for arguments that do not fit each other.
    """
    return _drawn("sample_networks", network, V0, layers, samples=samples, lower=lower, upper=upper, sampling=sampling, seed=seed,
                  threads=threads)


def _drawn(function, network, V0, layers, threads, **options):
    ensemble, sampling = _core.sde_networks(function, _network(network), _given(V0, layers=layers, **options),
                                            whole(threads, "threads"))
    return _ensemble(ensemble)._replace(sampling=sampling)


class Outputs(NamedTuple):
    """Outputs X W / sqrt(n) of networks or paths at the last time, for those that ran up to it: which they are, `paths` [k];
    `values` [k, outputs, m]; and the kurtosis of the outputs of each token, 3 E V^2 / (E V)^2, [m], which is 3 for normal ones."""

    paths: NDArray[np.int64]
    values: Numbers
    kurtosis: Numbers


def outputs(ensemble: Ensemble, outputs: int = 1, seed: int = 0) -> Outputs:
    """Draws Outputs from the covariances of sample_networks() or simulate(): given V, each is N(0, V). `outputs` is their
    number in each network; give the seed of the ensemble, from whose numbers they draw apart. NumericalError if nothing ran
    up to the last time."""
    running = np.flatnonzero(_of_type(ensemble, Ensemble, "ensemble").running[-1])
    if len(running) == 0:
        raise _core.NumericalError("outputs: nothing stayed within the bounds up to the last time; take an earlier one")
    last = ensemble.covariances[-1, running]
    variances = np.diagonal(last, axis1=1, axis2=2)
    values = _core.sde_outputs(last, running.tolist(), {"outputs": outputs, "seed": seed})
    return Outputs(running, values.reshape(len(running), -1, last.shape[1]),
                   3 * (variances ** 2).mean(axis=0) / variances.mean(axis=0) ** 2)


class Distance(NamedTuple):
    """The Kolmogorov-Smirnov distance between two samples, and the probability of a larger one if their distributions are equal."""

    distance: float
    p_value: float


class Comparison(NamedTuple):
    """Networks and paths of their limit, at equal times and from the same start, and Distances at the last time by the names of
    entries, such as 'V00' and 'rho01', for those that ran up to it."""

    networks: Ensemble
    limit: Ensemble
    distances: dict[str, Distance]


def compare(network: Network, V0: ArrayLike, layers: Sequence[int], *, samples: int = 4096, paths: int | None = None,
            max_step: float = 0.01, step_control: float | None = None, scheme: str | None = None, seed: int = 0,
            threads: int = 0) -> Comparison:
    """Compares sample_networks() with simulate() of the network's limit: a Comparison of up to four tokens. paths=None: as many
    as samples. ArgumentError unless the network is shaped."""
    model = _of_type(network, Network, "network").limit()
    for name, count in (("samples", samples), ("paths", samples if paths is None else paths)):
        if whole(count, name) < 2:
            raise _core.ArgumentError(f"compare: {name}: expected an integer of at least 2, got {count}")
    sampled = _drawn("compare", network, V0, layers, samples=samples, seed=seed, threads=threads)
    limit = _simulated("compare", model, V0, sampled.times, paths=samples if paths is None else paths, max_step=max_step,
                       step_control=step_control, scheme=scheme, seed=seed, threads=threads)
    distances = {}
    for a in range(min(sampled.covariances.shape[2], 4)):
        for b in range(a, min(sampled.covariances.shape[2], 4)):
            for name in ("V", "rho")[:1 if a == b else 2]:
                first, second = (_at_the_end(ensemble, name, a, b) for ensemble in (sampled, limit))
                if len(first) == 0 or len(second) == 0:
                    raise _core.NumericalError("compare: no network or no path of the SDE stayed within the bounds up to the "
                                               "horizon; take an earlier one")
                distances[f"{name}{a}{b}"] = Distance(*_core.two_sample_test(first, second))
    return Comparison(sampled, limit, distances)


def _at_the_end(ensemble, name, a, b):
    values = ensemble.covariances if name == "V" else ensemble.correlations
    return np.ascontiguousarray(values[-1, ensemble.running[-1], a, b])


def stopping_times(network: Network, V0: ArrayLike, layers: Sequence[int], *, gammas: Sequence[float] | None = None,
                   temperatures: Sequence[float] | None = None, samples: int = 4096, lower: float = 1e-4, upper: float = 1e4,
                   sampling: str | None = None, seed: int = 0, threads: int = 0) -> Numbers:
    """The times at which the eigenvalues of networks leave [lower, upper]: last times inside, [temperatures, gammas, samples], the
    horizon for networks that stay. gammas are residual weights, temperatures tau_0; None: the network's own."""
    _of_type(network, Network, "network")
    squared = [network.gamma_squared] if gammas is None else [_weight(gamma) ** 2 for gamma in _list(gammas, "gammas")]
    return np.array([[_drawn("stopping_times", dataclasses.replace(network, gamma_squared=gamma_squared, temperature=temperature), V0,
                             layers, samples=samples, lower=lower, upper=upper, sampling=sampling, seed=seed,
                             threads=threads).last_inside_times for gamma_squared in squared]
                     for temperature in ([network.temperature] if temperatures is None else _list(temperatures, "temperatures"))])


class Entropy(NamedTuple):
    """Entropy in nats of the softmax rows in the attention of the next layer: means over networks with standard errors,
    and the expansion to first order in 1 / n, all [layers, m]; NaN where all networks have stopped."""

    entropy: Numbers
    error: Numbers
    expansion: Numbers


def entropy(network: Network, V0: ArrayLike, layers: Sequence[int], *, samples: int = 4096, lower: float = 0,
            upper: float = 1e300, sampling: str | None = None, seed: int = 0, threads: int = 0) -> Entropy:
    """The Entropy of softmax rows as a function of depth. Arguments are those of sample_networks(); ArgumentError for networks
    without attention."""
    given = _given(V0, layers=layers, samples=samples, lower=lower, upper=upper, sampling=sampling, seed=seed)
    return Entropy(*_core.sde_entropy(_network(network), given, whole(threads, "threads")))


class GradientNorms(NamedTuple):
    """Mean squared gradients of <X_L, R>, R standard normal, over m n, with standard errors over networks: with respect to the
    tokens X_0 to X_L, [depth + 1], and to the parameters, {'query', 'key', 'value', 'hidden' or 'output', 'weight' for an mlp:
    (values, errors)}, [depth]."""

    tokens: Numbers
    tokens_error: Numbers
    parameters: dict[str, tuple[Numbers, Numbers]]


def gradients(network: Network, V0: ArrayLike, depth: int, *, samples: int = 32, seed: int = 0, threads: int = 0,
              progress: Progress = None) -> GradientNorms:
    """The GradientNorms of `samples` random networks, shaped, unshaped, Pre-LN or Post-LN, from a forward and a backward pass.
    Progress is called with (networks done, total networks). Cost of a network: m^2 n depth, up to m = n / 2."""
    tokens, parameters = _core.sde_gradients(_network(network), _given(V0, depth=depth, samples=samples, seed=seed),
                                             whole(threads, "threads"), teller(progress, "networks"))
    return GradientNorms(*tokens, {name: tuple(values) for name, values in parameters.items()})


class Law:
    """The distribution of a number at one time, exact to 1e-8 in every probability. Made by correlation_law() and
    gap_law(). x and p are numbers or vectors, and so are results."""

    def __init__(self, law: _core.SdeLaw) -> None:
        self._law = law

    @property
    def total_mass(self) -> float:
        """The probability of not having exploded."""
        return self._law.total_mass

    def cumulative(self, x: ArrayLike) -> Numbers:
        """P(value <= x); exploded paths are above every x, and NaN is NaN."""
        return _each(self._law.cumulative, x, "x")

    def density(self, x: ArrayLike) -> Numbers:
        """The derivative of cumulative()."""
        return _each(self._law.density, x, "x")

    def quantile(self, p: ArrayLike) -> Numbers:
        """The smallest x with cumulative(x) = p. ArgumentError unless 0 < p < total_mass."""
        return _each(self._law.quantile, p, "p")

    def chart_quantile(self, p: ArrayLike) -> Numbers:
        """artanh of the correlation, or the natural logarithm of the gap, at quantile(p); late correlations would round to 1 or
        -1, and late gaps to 0."""
        return _each(self._law.chart_quantile, p, "p")


def _each(function, x, name):
    given = np.asarray(x)
    return function(numbers(given.ravel(), name=name)).reshape(given.shape)


def correlation_law(model: Model, rho0: float, time: float) -> Law:
    """The Law of the correlation of two tokens under a model without attention, from rho0 in (-1, 1). ArgumentError for times
    that are out of reach, NumericalError if no grid resolves the distribution."""
    return Law(_core.sde_law(_model(model), False, real(rho0, "rho0"), real(time, "time")))


def gap_law(model: Model, gap0: float, time: float) -> Law:
    """The Law of the gap (V^11 + V^22 - 2 V^12) / 4 of two tokens under full attention without ReLU, from gap0 > 0. Errors are
    those of correlation_law()."""
    return Law(_core.sde_law(_model(model), True, real(gap0, "gap0"), real(time, "time")))


def explosion_probability(model: Model, gap0: float) -> float:
    """The probability that two tokens under shaped attention, with this gap, explode in finite time."""
    return _core.sde_explosion_probability(_model(model), real(gap0, "gap0"))


def flow(model: Model, V0: ArrayLike, times: Sequence[float] | ArrayLike) -> Numbers:
    """The flow of the drift alone, dV = b(V) dt, [times, m, m]. NumericalError if it explodes before a time."""
    return _states(_core.sde_flow("flow", _model(model), _given(V0, times=times)))


def commuting_limit(V0: ArrayLike, times: Sequence[float] | ArrayLike, shortcut: str = "unit") -> Numbers:
    """V at times layer / depth of the unshaped ReLU residual network with gamma = 1 / sqrt(depth), [times, m, m]: its limits of
    width and depth commute. shortcut: 'unit', under which variances grow as e^t, or 'variance_preserving'."""
    return _states(_core.sde_flow("commuting_limit", None, _given(V0, flow="commuting", times=times, shortcut=shortcut)))


def _states(found):
    return found.reshape(-1, found.shape[1], found.shape[1])


def _of_type(value, kind, name):
    if not isinstance(value, kind):
        raise TypeError(f"{name}: expected sde.{kind.__name__}, got {value!r}")
    return value


def _list(values, name):
    if isinstance(values, (str, bytes)) or np.ndim(values) != 1:
        raise TypeError(f"{name}: expected a list of numbers, got {values!r}")
    return values


def _weight(gamma):
    value = real(gamma, "gammas")
    if not 0 <= value <= 1:
        raise _core.ArgumentError(f"stopping_times: gammas: expected numbers in [0, 1], got {gamma!r}")
    return value


def _given(V0, **arguments):
    return {"V0": numbers(V0, name="V0"), **arguments}


def _model(model):
    _of_type(model, Model, "model")
    return _core.SdeModel(*(real(getattr(model, name), name) for name in (
        "relu_drift", "attention_drift", "linear_noise", "attention_noise", "c_plus", "c_minus")), model.mask)


def _network(network):
    _of_type(network, Network, "network")
    given = {field.name: getattr(network, field.name) for field in dataclasses.fields(network)}
    given["network"] = given.pop("name")
    if network.gamma_squared is None and str(network.name).startswith("unshaped"):
        given.update({"gamma_squared": 1, "lambda": 1})
    return _core.sde_network(given)
