"""Which rule of initialisation a tensor of weights follows."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

# A rule is taken if the measured variance is within so many standard errors of it.
STANDARD_ERRORS = 4.0


@dataclass(frozen=True)
class Measured:
    """The variance of a tensor's entries.

    variance         what is used: that of the rule, or the measured one
    measured, error  the mean of squares and its standard error
    rule             in words; 'measured' where none fits, 'given' where the user says
    """

    variance: float
    measured: float
    error: float
    rule: str


def _rules(fan_in, fans_out, uniform):
    """(name, variance) of rules of PyTorch, Flax and papers, the likelier first."""
    kind = "uniform" if uniform else "normal"
    yield "PyTorch's default, uniform of variance 1 / (3 fan_in)", 1 / (3 * fan_in)
    yield f"Kaiming {kind}, 2 / fan_in", 2 / fan_in
    yield f"LeCun {kind}, 1 / fan_in", 1 / fan_in
    for fan_out in dict.fromkeys(fans_out):
        yield f"Xavier {kind}, 2 / (fan_in + fan_out)", 2 / (fan_in + fan_out)
        yield f"Xavier {kind} with the gain 5/3 of tanh", 50 / 9 / (fan_in + fan_out)
        yield f"Xavier {kind} with the gain sqrt(2)", 4 / (fan_in + fan_out)
        yield f"Kaiming {kind} by fan_out, 2 / fan_out", 2 / fan_out
        yield f"1 / fan_out, {kind}", 1 / fan_out
        yield "PyTorch's default of transposed convolutions, uniform of variance 1 / (3 fan_out)", 1 / (3 * fan_out)
    for gain in (0.5, 1.5, 2.0, 3.0):
        yield f"{kind} of deviation {gain:g} / sqrt(fan_in)", gain * gain / fan_in
    for std in (0.02, 0.01, 0.006, 0.05, 0.1, 0.2, 0.5, 1.0):
        yield f"standard deviation {std:g}", std * std
    for layers in range(1, 129):
        yield f"standard deviation 0.02 / sqrt({2 * layers}), of {layers} residual blocks", 0.0004 / (2 * layers)


def _is_orthogonal(values):
    rows, columns = values.shape
    small = values if rows <= columns else values.T
    gram = small @ small.T
    size = gram[0, 0]
    return len(small) > 1 and size > 0 and np.allclose(gram, size * np.eye(len(small)), atol=1e-3 * size)


def measured(values: np.ndarray, fan_in: int, fans_out: tuple[int, ...], bias: bool = False, given: float | None = None,
             beside: str | None = None) -> Measured:
    """The variance of entries of a tensor: values [out, fan-in], or a bias [out] of a layer of that fan-in. fans_out: outputs of
    the layer, and of the whole tensor where the layer is a part of one (queries, keys and values together). beside: the rule of the
    weights, for a bias."""
    flat = np.asarray(values, float).ravel()
    squares = flat * flat
    mean = float(squares.mean()) if flat.size else 0.0
    error = float(squares.std() / sqrt(max(flat.size - 1, 1)))
    if given is not None:
        return Measured(given, mean, error, "given")
    if not flat.any():
        return Measured(0.0, 0.0, 0.0, "zeros")
    if not bias and values.ndim == 2 and _is_orthogonal(values):
        return Measured(mean, mean, 0.0, "orthogonal")
    if flat.size > 1 and np.ptp(flat) <= 1e-6 * np.abs(flat).max():
        return Measured(mean, mean, 0.0, "ones" if abs(flat[0] - 1) < 1e-6 else f"the constant {flat[0]:.4g}")
    # Few entries of a truncated normal variable can look uniform.
    uniform = flat.size >= 8 and float((flat**4).mean()) < 2.1 * mean * mean
    found = _by_rule(flat, mean, error, (fan_in, fans_out, bias, beside), uniform)
    return found if found.rule != "measured" or not uniform else _by_rule(flat, mean, error, (fan_in, fans_out, bias, beside), False)


def _by_rule(flat, mean, error, layer, uniform):
    (fan_in, fans_out, bias, beside), bound, best = layer, float(np.abs(flat).max()), None
    for name, variance in _rules(fan_in, fans_out, uniform):
        if name.startswith("PyTorch") and not (bound <= 1.0001 * sqrt(3 * variance)):
            continue
        if uniform and " uniform" in name and not (1 - 60 / flat.size) * sqrt(3 * variance) <= bound <= 1.0001 * sqrt(3 * variance):
            continue
        if bias and not name.startswith(("PyTorch", "standard")):
            continue
        # Of few biases the weights say which default they follow.
        if bias and beside is not None and beside.startswith("PyTorch") and beside != name:
            continue
        tolerance = variance * sqrt((0.8 if uniform else 2.0) / flat.size)  # Of the mean of squares, if the rule holds.
        if "residual" in name and tolerance > 0.25 * variance * variance / 0.0004:
            continue  # Its neighbours, of one block more or less, would fit as well.
        deviation = abs(mean - variance) / tolerance
        score = deviation**2 + _PENALTIES[_rank(name, bias)]
        if deviation <= STANDARD_ERRORS and (best is None or score < best[2]):
            best = name, variance, score
    if best is None:
        return Measured(mean, mean, error, "measured")
    return Measured(best[1], mean, error, best[0].replace("of variance ", "", 1) if bias else best[0])


def _rank(name, bias):
    """Rules that are common come first; of scaled residual branches, whose number of blocks is a guess, the last. Few biases tell
    little: they are mostly PyTorch's default, that of transposed convolutions where they are beyond its bound, or zeros."""
    if "residual" in name or bias and name.startswith("standard"):
        return 2
    return 1 if name.startswith("standard") or "deviation" in name or "gain" in name or "transposed" in name else 0


# Squares of standard errors by which a rule of each rank has to fit better than one of the rank before.
_PENALTIES = (0.0, 4.0, 8.0)
