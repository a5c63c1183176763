"""Learning-rate transfer: how far the first step of gradient descent moves features and outputs as width and depth grow.

    from widelimit import layers, transfer
    network = Network([layers.dense(2), layers.relu(), layers.dense(2), layers.relu(), layers.dense()])
    print(transfer.table(lambda depth: network, x, y, widths=[64, 256, 1024]))

Sizes are exact in the limit of wide networks and small rates: they follow from the kernels at initialisation (docs/theory/transfer.md,
which also says what is not known). Networks are those of vectors, of dense layers, nonlinearities, norms and sums, and end in a dense
layer, the readout.
"""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any, Callable, NamedTuple, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core, _layer_lists
from ._arrays import numbers, one_of, real, whole
from ._step_kernels import StepKernels
from .finite import FiniteNetwork

__all__ = ["FeatureStep", "FirstStep", "PARAMETRISATIONS", "SampledStep", "first_step", "sampled_step", "table", "with_depth_scaled"]

Numbers = NDArray[np.float64]

PARAMETRISATIONS = ("ntk", "standard", "mup", "depth_mup")

_KINDS_WITHOUT_POSITIONS = ("attention", "conv", "local_conv", "conv_transpose", "recurrent", "aggregate", "flatten", "dropout", "product",
                            "concat")


class FeatureStep(NamedTuple):
    """Features behind one layer, root mean squares over inputs and channels: at the start, and of their change in the first step.

    layer   its path, such as 'layers[2]', in the network with repetitions written out
    """

    layer: str
    size: float
    change: float


class FirstStep(NamedTuple):
    """What the first step of gradient descent on half the mean square error does, to first order in the rate.

    output         root mean square of the outputs at the start, over inputs and networks
    output_change  of their change
    features       FeatureStep behind each layer with weights, the readout excepted
    largest_rate   the rate at which the fastest component of the training outputs' error is only reversed: above it gradient
                   descent of the linearised network diverges
    """

    output: float
    output_change: float
    features: tuple[FeatureStep, ...]
    largest_rate: float


class SampledStep(NamedTuple):
    """The same in random networks: means over networks of mean squares, as roots, and their standard errors."""

    output_change: float
    output_change_error: float
    changes: Numbers
    change_errors: Numbers


@dataclasses.dataclass(frozen=True)
class _Rule:
    """A parametrisation in terms of the NTK's: powers of the width in the output's factor and in the rate of all layers, and whether
    weights themselves are trained, instead of standard normal numbers."""

    output_power: float
    rate_power: float
    trains_weights: bool
    scales_branches: bool = False


_RULES = {"ntk": _Rule(0.0, 0.0, False), "standard": _Rule(0.0, 0.0, True), "mup": _Rule(-0.5, 1.0, False),
          "depth_mup": _Rule(-0.5, 1.0, False, True)}


def with_depth_scaled(network: _core.Network) -> _core.Network:
    """The network whose residual branches have their factors divided by the root of the number of residual sums: what depth-muP
    does to the forward pass. A sum is residual if one of its branches has no layers."""
    given = _layer_lists.unrolled(network)
    count = sum(_is_residual(layer) for layer in given)
    for layer in given if count else ():
        if _is_residual(layer):
            for branch in layer["branches"]:
                if branch["layers"]:
                    branch["scale"] = branch.get("scale", 1.0) / math.sqrt(count)
    return _layer_lists.network(given)


def first_step(network: _core.Network, x: ArrayLike, y: ArrayLike, parametrisation: str = "mup", width: int = 1024,
               rate: float = 1.0) -> FirstStep:
    """The FirstStep of networks of this width.

    network          its layers, in the NTK parametrisation
    x, y             training inputs [n, channels] and targets [n]
    parametrisation  'ntk': standard normal numbers are trained, weights are sigma / sqrt(fan_in) times these. 'standard': weights
                     themselves are trained. 'mup': the NTK's with outputs divided by sqrt(width) and rates times width. 'depth_mup': the
                     same with residual branches divided by the root of their number
    width            of all layers but the readout, at least 1
    rate             of gradient descent: changes are proportional to it

    Each number is the leading order in 1 / width. Changes of features behind nonlinearities have an error of about 1 % from 4096 draws of
    slopes; all else follows from kernels alone. ValueError for layers that have positions or groups of channels. Cost: a few Gram matrices
    of the network for each of its layers.
    """
    rule = _RULES[one_of(parametrisation, "parametrisation", PARAMETRISATIONS)]
    x, y = _data(x, y)
    width, rate = whole(width, "width", 1), real(rate, "rate")
    given = _layer_lists.unrolled(with_depth_scaled(network) if rule.scales_branches else network)
    _check(given)
    kernels = StepKernels(given, x, width, rule.trains_weights)
    count, start, tangent = len(y), kernels.covariance(len(given)), kernels.tangent(len(given))
    output_factor, rate_factor = float(width) ** (2 * rule.output_power), rate * float(width) ** rule.rate_power / count
    # The mean of products of the outputs' errors at the start.
    errors = np.outer(y, y) + output_factor * start
    squares = kernels.feature_changes(errors)
    features = tuple(FeatureStep(path, math.sqrt(size), rate_factor * math.sqrt(output_factor / width * change))
                     for path, size, change in squares)
    moved = output_factor * math.sqrt(np.trace(tangent @ errors @ tangent) / count)
    return FirstStep(math.sqrt(output_factor * np.trace(start) / count), rate_factor * moved, features,
                     2 * rate / (rate_factor * output_factor * float(np.linalg.eigvalsh(tangent)[-1])))


def sampled_step(network: _core.Network, x: ArrayLike, y: ArrayLike, parametrisation: str = "mup", width: int = 128,
                 rate: float = 1.0, networks: int = 32, seed: int = 0) -> SampledStep:
    """The SampledStep of `networks` (at least 2) random networks of this width, by a step of a millionth of the rate: what first_step()
    says of them in the limit, for the same layers."""
    rule = _RULES[one_of(parametrisation, "parametrisation", PARAMETRISATIONS)]
    x, y = _data(x, y)
    whole(networks, "networks", 2)
    given = _layer_lists.unrolled(with_depth_scaled(network) if rule.scales_branches else network)
    _check(given)
    squares = np.array([_sampled_squares(given, x, y, rule, whole(width, "width", 1), real(rate, "rate"), whole(seed, "seed") + k)
                        for k in range(networks)])
    means, errors = squares.mean(axis=0), squares.std(axis=0, ddof=1) / math.sqrt(networks)
    roots = np.sqrt(means)
    return SampledStep(roots[-1], errors[-1] / (2 * roots[-1]), roots[:-1], errors[:-1] / (2 * roots[:-1]))


def table(network_of: Callable[[int], _core.Network], x: ArrayLike, y: ArrayLike, widths: Sequence[int] = (64, 256, 1024),
          depths: Sequence[int] = (1,), rate: float = 1.0) -> str:
    """Changes of the last features and of the outputs, and the largest rate, for each parametrisation, width and depth, as text.

    network_of   makes the network of a depth
    """
    lines = [f"{'parametrisation':16s}{'width':>7s}{'depth':>7s}{'features':>12s}{'outputs':>12s}{'largest rate':>14s}"]
    for parametrisation in PARAMETRISATIONS:
        for depth in depths:
            for width in widths:
                step = first_step(network_of(depth), x, y, parametrisation, width, rate)
                lines.append(f"{parametrisation:16s}{width:7d}{depth:7d}{step.features[-1].change:12.4g}{step.output_change:12.4g}"
                             f"{step.largest_rate:14.4g}")
    return "\n".join(lines)


def _data(x, y):
    x, y = numbers(x, name="x"), numbers(y, name="y").ravel()
    if x.ndim != 2 or len(x) != len(y):
        raise ValueError(f"x: expected inputs [n, channels] and as many targets, got shapes {x.shape} and {y.shape}")
    return x, y


def _is_residual(layer):
    return layer["layer"] == "sum" and any(not branch["layers"] for branch in layer["branches"])


def _check(given):
    if not given or given[-1]["layer"] != "dense":
        raise ValueError(f"network: expected a dense layer at the end, the readout, got {given[-1]['layer'] if given else 'no layers'}")
    for path, layer in _layer_lists.all_layers(given):
        if layer["layer"] in _KINDS_WITHOUT_POSITIONS or "pool" in layer["layer"]:
            raise ValueError(f"{path}: expected layers that act on vectors, whose tangent kernels meet number by number, got "
                             f"{layer['layer']}: the change of its features mixes positions or channels")
        if layer.get("parametrisation", "ntk") != "ntk" or layer.get("trainable", "all") != "all":
            raise ValueError(f"{path}: expected dense layers in the NTK parametrisation that are trained, got {json.dumps(layer)}: what is "
                             "trained, and how, is what `parametrisation` says")
    first = next((layer["layer"] for layer in given[:-1] if layer["layer"] in ("dense", "sum")), None)
    if first is None:
        raise ValueError("network: expected a layer with weights before the readout, got none: there are no features")
    if first != "dense":
        raise ValueError("network: expected a dense layer before the first sum, which would have as many channels as the inputs")


def _sampled_squares(given, x, y, rule, width, rate, seed):
    """Mean squares of the change of features behind each layer, and of outputs, in one network."""
    step = 1e-6
    network = FiniteNetwork(_layer_lists.network(given), (), x.shape[1], width, seed=seed)
    start, output_factor = network.parameters, float(width) ** rule.output_power
    before = output_factor * network(x)[:, 0]
    gradient = network.vector_jacobian(x, output_factor * (before - y)[:, None] / len(y))
    speeds = _speeds(given, x.shape[1], width) if rule.trains_weights else np.ones_like(start)
    moved = start - step * rate * float(width) ** rule.rate_power * speeds * gradient
    squares = []
    for place in [k + 1 for k in range(len(given) - 1) if given[k]["layer"] in ("dense", "sum")]:
        part = FiniteNetwork(_layer_lists.network(given[:place]), (), x.shape[1], width, outputs=width, seed=seed)
        features = []
        for parameters in (start, moved):
            part.parameters = parameters[:len(part.parameters)]
            features.append(part(x))
        squares.append(np.square((features[1] - features[0]) / step).mean())
    network.parameters = moved
    return [*squares, np.square((output_factor * network(x)[:, 0] - before) / step).mean()]


def _speeds(given, channels, width):
    """By what the rate of each standard normal number is multiplied where the weights made of them are trained at rate 1."""
    found, places = [], []
    _layer_lists.mapped(given, lambda layer, first: places.append((layer, channels if first else width)) or layer)
    for k, (layer, inputs) in enumerate(places):
        outputs = 1 if k == len(places) - 1 else width
        found.append(np.full(inputs * outputs, inputs / layer.get("weight_variance", 1.0)))
        if layer.get("bias_variance", 0.0) > 0:
            found.append(np.full(outputs, 1 / layer["bias_variance"]))
    return np.concatenate(found)
