#!/usr/bin/env python3
"""accuracy.py PAGE [--peer PYTHON]: writes docs/accuracy.md: how far kernels after every nonlinearity, norm and attention are from
formulas that are evaluated with 80 bits, in float and in double; beside the errors of neural-tangents, if PYTHON has it. The package
must be importable; long double must have 64 bits of mantissa, as on x86."""

import argparse
import json
import pathlib
import platform
import subprocess
import sys
import tempfile
import textwrap
import warnings

import numpy as np

import widelimit
from widelimit import _core, layers

Wide = np.longdouble
PI = Wide(4) * np.arctan(Wide(1))
VARIANCES = (1e-6, 1e-3, 0.1, 1.0, 10.0, 100.0, 1e3, 1e6)
# Trapezia over the plane have too many nodes beyond.
QUADRATURE_VARIANCES = tuple(variance for variance in VARIANCES if variance <= 100)
CORRELATIONS = (-1 + 1e-6, -0.99, -0.9, -0.5, -0.1, 0.0, 0.1, 0.5, 0.9, 0.99, 0.999, 1 - 1e-6, 1.0)


# Expectations in closed form: (E[phi(u) phi(v)], E[phi'(u) phi'(v)]) of variances p and q, covariances c and d = p q - c^2.

def angle(p, q, c, d):
    return np.arctan2(np.sqrt(np.maximum(d, 0)), c)


def rectifier(below, above, p, q, c, d):
    kink = (above - below)**2 / (2 * PI)
    slope = (above**2 + below**2) / 2 - kink * angle(p, q, c, d)
    return kink * np.sqrt(np.maximum(d, 0)) + c * slope, slope


def wave(a, b, phase, p, q, c, d):
    near = np.exp(-b**2 * (p + q - 2 * c) / 2)
    far = np.exp(-b**2 * (p + q + 2 * c) / 2) * np.cos(2 * phase)
    return a**2 / 2 * (near - far), a**2 * b**2 / 2 * (near + far)


def error_function(a, b, shift, p, q, c, d):
    rest = 1 + 2 * b**2 * (p + q) + 4 * b**4 * np.maximum(d, 0)
    return (a**2 * 2 / PI * np.arctan2(2 * b**2 * c, np.sqrt(rest)) + shift**2, a**2 * b**2 * 4 / PI / np.sqrt(rest))


def gelu(p, q, c, d):
    square = 1 + p + q + d
    root, both = np.sqrt(square), 1 / (1 + p) + 1 / (1 + q)
    share = Wide(0.25) + np.arctan(c / root) / (2 * PI)
    return c * share + (d + c**2 * both) / (2 * PI * root), share + c * (both + 1 / square) / (2 * PI * root)


def gaussian(a, b, p, q, c, d):
    size = 1 - 2 * b * (p + q) + 4 * b**2 * d
    return a**2 / np.sqrt(size), 4 * a**2 * b**2 * c / (size * np.sqrt(size))


def gabor(p, q, c, d):
    """The exponentials turn the Gaussian of covariance S into one of covariance (S^-1 + 2)^-1; the slope in c is its T'."""
    size, slope = 1 + 2 * (p + q) + 4 * d, -8 * c
    left, right, both = (p + 2 * d) / size, (q + 2 * d) / size, c / size
    of_left, of_right, of_both = (-4 * c - left * slope) / size, (-4 * c - right * slope) / size, (1 - both * slope) / size
    near, far = np.exp(-(left + right - 2 * both) / 2), np.exp(-(left + right + 2 * both) / 2)
    value = (near - far) / (2 * np.sqrt(size))
    of_near, of_far = -near * (of_left + of_right - 2 * of_both) / 2, -far * (of_left + of_right + 2 * of_both) / 2
    return value, (of_near - of_far) / (2 * np.sqrt(size)) - value * slope / (2 * size)


def moments(degree, p, q, c):
    """E[u^i v^j] for i, j <= degree: Isserlis' theorem."""
    table = [[np.zeros_like(c) for _ in range(degree + 1)] for _ in range(degree + 1)]
    table[0][0] = np.ones_like(c)
    for j in range(2, degree + 1):
        table[0][j] = (j - 1) * q * table[0][j - 2]
    for i in range(1, degree + 1):
        for j in range(degree + 1):
            if i >= 2:
                table[i][j] = table[i][j] + (i - 1) * p * table[i - 2][j]
            if j >= 1:
                table[i][j] = table[i][j] + j * c * table[i - 1][j - 1]
    return table


def polynomial(coefficients, p, q, c, d):
    table = moments(len(coefficients) - 1, p, q, c)
    value = derivative = np.zeros_like(c)
    for i, left in enumerate(coefficients):
        for j, right in enumerate(coefficients):
            value = value + left * right * table[i][j]
            if i and j:
                derivative = derivative + left * right * i * j * table[i - 1][j - 1]
    return value, derivative


def quadrant(degree, p, q, c, d):
    """Moments of order (degree, degree) over the quadrant where both are positive: Cho and Saul."""
    before, here = 0, (PI - angle(p, q, c, d)) / (2 * PI)
    if degree == 0:
        return here
    before, here = here, np.sqrt(np.maximum(d, 0)) / (2 * PI) + c * here
    for k in range(1, degree):
        before, here = here, (2 * k + 1) * c * here + k**2 * np.maximum(d, 0) * before
    return here


def rectified_monomial(degree, p, q, c, d):
    return quadrant(degree, p, q, c, d), degree**2 * quadrant(degree - 1, p, q, c, d) if degree else np.zeros_like(c)


def exponential(a, b, p, q, c, d):
    value = a**2 * np.exp(b**2 * (p + q + 2 * c) / 2)
    return value, b**2 * value


def exp_normalized(gamma, shift, p, q, c, d):
    root = np.sqrt(p * q)
    factor = np.exp(gamma * (c / root + shift))
    return root * factor, gamma * factor


def matern(smoothness, length, p, q, c, d):
    s = np.sqrt(2 * smoothness * np.maximum((p - c) + (q - c), 0)) / length
    return {0.5: 1, 1.5: 1 + s, 2.5: 1 + s + s * s / 3}[float(smoothness)] * np.exp(-s), np.zeros_like(c)


def sign(p, q, c, d):
    return 2 / PI * (PI / 2 - angle(p, q, c, d)), np.zeros_like(c)


HERMITE = {2: (-1 / np.sqrt(Wide(2)), 0, 1 / np.sqrt(Wide(2)))}


# Functions without a closed form, and the trapezium rule over the plane.

def logistic(x):
    return 1 / (1 + np.exp(-x))


SMOOTH = {
    "tanh": (np.tanh, lambda x: 1 / np.cosh(x)**2),
    "sigmoid": (logistic, lambda x: logistic(x) * logistic(-x)),
    "silu": (lambda x: x * logistic(x), lambda x: logistic(x) * (1 + x * logistic(-x))),
    "softplus": (lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))), logistic),
}


def nodes(variance):
    """Of a standard normal variable: the nearest poles of the functions are pi / 2 and pi from the axis, so that a spacing h
    leaves exp(-pi^2 / (h sqrt(variance)))."""
    spacing = min(Wide(0.45), Wide(0.21) / np.sqrt(variance + Wide(1e-30)))
    count = int(9.5 / spacing)
    points = spacing * np.arange(-count, count + 1).astype(Wide)
    return points, spacing * np.exp(-points**2 / 2) / np.sqrt(2 * PI)


def by_quadrature(functions, p, q, c, d):
    found = np.empty((2, len(c)), Wide)
    for k, (one, other, both, rest) in enumerate(zip(p, q, c, d)):
        root = np.sqrt(one)
        along, across = both / root, np.sqrt(np.maximum(rest, 0) / one)
        first, first_weights = nodes(max(one, other))
        second, second_weights = nodes(across**2)
        for which, function in enumerate(functions):
            inner = function(along * first[:, None] + across * second) @ second_weights
            found[which, k] = np.sum(first_weights * function(root * first) * inner)
    return found[0], found[1]


def reference_of(kind, fields):
    """A function of p, q, c and d for a nonlinearity with all its fields, and the variances that it is for."""
    wide = {name: Wide(value) for name, value in fields.items() if isinstance(value, (int, float))}
    closed = {
        "relu": lambda *g: rectifier(0, 1, *g),
        "leaky_relu": lambda *g: rectifier(wide["slope"], 1, *g),
        "ab_relu": lambda *g: rectifier(wide["a"], wide["b"], *g),
        "abs": lambda *g: rectifier(-1, 1, *g),
        "identity": lambda p, q, c, d: (c, np.ones_like(c)),
        "sign": sign,
        "erf": lambda *g: error_function(wide["a"], wide["b"], wide["d"], *g),
        "sigmoid_like": lambda *g: error_function(Wide(0.5), 1 / Wide(2.4020563531719796), Wide(0.5), *g),
        "gelu": gelu,
        "sin": lambda *g: wave(wide["a"], wide["b"], wide["c"], *g),
        "cos": lambda *g: wave(wide["a"], wide["b"], wide["c"] + PI / 2, *g),
        "rbf": lambda p, q, c, d: (np.exp(-wide["gamma"] * (p + q - 2 * c)), 2 * wide["gamma"] * np.exp(-wide["gamma"] * (p + q - 2 * c))),
        "exp": lambda *g: exponential(wide["a"], wide["b"], *g),
        "gaussian": lambda *g: gaussian(wide["a"], wide["b"], *g),
        "gabor": gabor,
        "polynomial": lambda *g: polynomial([Wide(value) for value in fields["coefficients"]], *g),
        "monomial": lambda *g: polynomial([Wide(0)] * fields["degree"] + [Wide(1)], *g),
        "hermite": lambda *g: polynomial(HERMITE[fields["degree"]], *g),
        "rectified_monomial": lambda *g: rectified_monomial(fields["degree"], *g),
        "exp_normalized": lambda *g: exp_normalized(wide["gamma"], wide["shift"], *g),
        "matern": lambda *g: matern(wide["smoothness"], wide["length"], *g),
    }
    if kind in SMOOTH:
        return lambda *g: by_quadrature(SMOOTH[kind], *g), QUADRATURE_VARIANCES
    return closed[kind], VARIANCES


# What the library gives.

def vectors(variances, correlations, dtype):
    """x at angle 0, and y at the angles of the correlations, of every variance: covariances are x y^T / 2."""
    radii = np.sqrt(2 * np.asarray(variances))
    angles = np.arccos(np.asarray(correlations))
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return (np.stack([radii, np.zeros_like(radii)], axis=1).astype(dtype),
            (radii[:, None, None] * directions).reshape(-1, 2).astype(dtype))


def accepted(layer, variances, dtype):
    """The variances at which there is a kernel, and what is said of the first that is refused."""
    kept, refusal = [], ""
    for variance in variances:
        try:
            widelimit.gram(widelimit.Network([layers.dense(), layer]), vectors([variance], [0.5], dtype)[1])
            kept.append(variance)
        except _core.Error as error:
            refusal = refusal or f"variance {variance:g}: {error}"
    return kept, refusal


def errors(found, expected, scale, dtype):
    """In epsilon of the scale, where it is a normal number."""
    told = np.isfinite(expected) & (scale > np.finfo(dtype).tiny)
    return np.abs(found.astype(Wide)[told] - expected[told]) / (scale[told] * Wide(np.finfo(dtype).eps))


class Case:
    """One layer in one precision: what it is for neural-tangents, what the library finds, and how both are compared with the
    reference. `compare(found, row, before)` adds the errors of K' and T' to a row; before: covariances in front of the layer."""

    def __init__(self, name, dtype, compare, kind, fields, batches, refusal="", mask_constant=None, peer=True):
        self.name, self.dtype, self.compare, self.kind, self.fields = name, dtype, compare, kind, fields
        self.batches, self.refusal, self.mask_constant, self.peer = batches, refusal, mask_constant, peer
        self.own, self.others, self.peer_refusal = [], [], ""

    def as_json(self, number):
        described = {"kind": self.kind, "fields": self.fields, "x": f"x{number}", "y": f"y{number}",
                     "covariances": self.kind != "attention" and self.batches[0].ndim == 2}
        if self.mask_constant is not None:
            described["mask_constant"] = self.mask_constant
        return described

    def text(self, with_peer):
        cells = [cell for largest, mean, absolute in self.own for cell in (short(largest), short(mean), f"{float(absolute):.1e}")]
        if with_peer:
            cells += [cell for largest, mean, _ in self.others for cell in (short(largest), short(mean))] or ["-"] * 4
        return f"| {self.name} | " + " | ".join(cells) + " |"


def part(found, expected, scale, dtype, at_one):
    """(largest, mean) in epsilon, and the largest absolute error."""
    told = errors(found, expected, scale, dtype)
    finite = told[np.isfinite(told)]
    absolute = np.abs(found.astype(Wide) - expected)[at_one]
    largest = np.inf if finite.size < told.size else told.max(initial=0)
    return largest, finite.mean() if finite.size else 0, absolute.max(initial=0)


def short(number):
    if not np.isfinite(number):
        return "not finite"
    return f"{float(number):.2g}" if number < 100 else f"{float(number):.0f}" if number < 1e4 else f"{float(number):.1e}"


def own_covariances(network, x, y):
    """(c, p, q) before a layer, as the library has them."""
    p, q = (np.ravel(widelimit.gram_diagonal(network, batch).nngp) for batch in (x, y))
    return widelimit.gram(network, x, y, kernels="nngp").nngp, p, q


def wide_covariances(c, p, q):
    """(p, q, c, p q - c^2) of all pairs in 80 bits. Vectors that are multiples of each other are perfectly correlated, although
    their covariances are rounded."""
    c = c.astype(Wide)
    p, q = np.broadcast_to(p.astype(Wide)[:, None], c.shape), np.broadcast_to(q.astype(Wide)[None, :], c.shape)
    root = np.where(p == q, p, np.sqrt(p) * np.sqrt(q))
    multiples = np.broadcast_to(np.tile(np.asarray(CORRELATIONS) == 1, c.shape[1] // len(CORRELATIONS)), c.shape)
    c = np.where(multiples, root, np.clip(c, -root, root))
    return tuple(np.ravel(array) for array in (p, q, c, np.where(multiples, 0, np.maximum(p * q - c * c, 0))))


def near_one(p, q):
    return (np.abs(p - 1) < 1e-3) & (np.abs(q - 1) < 1e-3)


def case_of_vectors(name, layer, kind, fields, reference, variances, dtype):
    """A layer after a dense one, between vectors. reference(p, q, c, p q - c^2): K', T' and the scales of both."""
    kept, refusal = accepted(layer, variances, dtype)
    x, y = vectors(kept, CORRELATIONS, dtype)

    def compare(nngp, ntk, before):
        p, q, c, determinant = wide_covariances(*before)
        with np.errstate(all="ignore"):
            value, tangent, scale, tangent_scale = reference(p, q, c, determinant)
        return [part(np.ravel(nngp), value, scale, dtype, near_one(p, q)), part(np.ravel(ntk), tangent, tangent_scale, dtype, near_one(p, q))]

    case = Case(name, dtype, compare, kind, fields, (x, y), refusal)
    found = widelimit.gram(widelimit.Network([layers.dense(), layer]), x, y)
    case.own = compare(found.nngp, found.ntk, own_covariances(widelimit.Network([layers.dense()]), x, y))
    return case


def case_of_activation(kind, example, fields, layer, dtype):
    function, variances = reference_of(kind, fields)

    def reference(p, q, c, determinant):
        value, derivative = function(p, q, c, determinant)
        (left, left_slope), (right, right_slope) = (function(v, v, v, np.zeros_like(v)) for v in (p, q))
        # The NTK before the layer is c.
        return (value, c * derivative, np.sqrt(left) * np.sqrt(right), np.abs(c) * np.sqrt(left_slope) * np.sqrt(right_slope))

    name = f"`{kind}`" + (f" {arguments_of(example)}" if example else "")
    return case_of_vectors(name, layer, kind, fields, reference, variances, dtype)


def arguments_of(fields):
    """(a 0.7, b 0.4)"""
    def shown(value):
        return "[" + ", ".join(map(shown, value)) + "]" if isinstance(value, list) else f"{value:.3g}"

    return "(" + ", ".join(f"{name} {shown(value)}" for name, value in fields.items()) + ")"


def written_fields(layer):
    """All fields of a layer, defaults written out."""
    written = json.loads(widelimit.Network([layer]).to_json())["layers"][0]
    return {name: value for name, value in written.items() if name != "layer"}


def activations():
    """(kind, fields of its example, all fields, layer) of every nonlinearity of the library's table."""
    for kind in json.loads(_core.layer_kinds()):
        if kind["group"] == "activation":
            layer = getattr(layers, kind["name"])(**kind["example"])
            fields = written_fields(layer)
            if kind["name"] == "erf":  # Written without fields where all are defaults.
                fields = {"a": 1.0, "b": 1.0, "c": 0.0, "d": 0.0, **fields}
            yield kind["name"], kind["example"], fields, layer


def case_of_norm(kind, epsilon, dtype):
    def reference(p, q, c, _):
        factor = 1 / np.sqrt((p + Wide(epsilon)) * (q + Wide(epsilon)))
        return c * factor, c * factor, np.sqrt(p * q) * factor, np.sqrt(p * q) * factor

    return case_of_vectors(f"`{kind}`, epsilon {epsilon:g}", getattr(layers, kind)(epsilon=epsilon), kind, {"epsilon": epsilon}, reference,
                           VARIANCES, dtype)


# Layers of sequences, from the inputs themselves: what is before them counts as well.

POSITIONS, CHANNELS = 8, 12
SEQUENCE_VARIANCES = (1e-2, 1.0, 10.0)
SEQUENCE_CORRELATIONS = (-0.999, -0.9, 0.0, 0.9, 0.999)


def sequences(dtype):
    """x of every variance, and y of every variance at every correlation with x."""
    random = np.random.default_rng(0)
    x, other = random.normal(size=(2, POSITIONS, CHANNELS))
    y = [root * (rho * x + (1 - rho**2)**0.5 * other) for root in np.sqrt(SEQUENCE_VARIANCES) for rho in SEQUENCE_CORRELATIONS]
    return np.stack([root * x for root in np.sqrt(SEQUENCE_VARIANCES)]).astype(dtype), np.stack(y).astype(dtype)


def case_of_sequences(name, layer, reference, dtype, kind, fields, counts=None, peer=True):
    """A layer after a dense one, between all positions. reference(x, y): K' and T'. counts: the positions of x and of y that count."""
    x, y = sequences(dtype)
    masked = counts if counts is not None else (np.ones(POSITIONS, bool),) * 2
    own = [[reference(one, one, seen, seen) for one in batch] for batch, seen in ((x, masked[0]), (y, masked[1]))]
    expected = [[reference(left, right, *masked) for right in y] for left in x]

    def compare(nngp, ntk, _):
        parts = []
        for which, found in enumerate((nngp, ntk)):
            wanted = np.array([[pair[which] for pair in row] for row in expected])
            roots = [np.sqrt(np.array([np.diag(one[which]) for one in batch])) for batch in own]
            scale = roots[0][:, None, :, None] * roots[1][None, :, None, :]
            parts.append(part(np.ravel(found), np.ravel(wanted), np.ravel(scale), dtype, np.ones(wanted.size, bool)))
        return parts

    constant = 1000.0
    case = Case(name, dtype, compare, kind, fields, (x, y), mask_constant=None if counts is None else constant, peer=peer)
    masks = {}
    if counts is not None:
        masks = {f"mask{k + 1}": np.broadcast_to(seen, (len(batch), POSITIONS)) for k, (batch, seen) in enumerate(zip((x, y), counts))}
        case.batches = tuple(np.where(seen[None, :, None], batch, dtype(constant)) for batch, seen in zip((x, y), counts))
    try:
        found = widelimit.position_covariances(widelimit.Network([layers.dense(), layer]), x, y, **masks)
        case.own = compare(found.nngp, found.ntk, None)
    except _core.Error as error:
        case.refusal = str(error)
    return case


def own_and_cross(x, y):
    """K of two sequences [d, C] in 80 bits: of x with itself, of y with itself, of both."""
    x, y = x.astype(Wide), y.astype(Wide)
    return tuple(left @ right.T / Wide(x.shape[1]) for left, right in ((x, x), (y, y), (x, y)))


def weights_matrix(kind, logits):
    if kind in ("softmax", "softmax1"):
        powers = np.exp(logits)
        return powers / (powers.sum(axis=1, keepdims=True) + (1 if kind == "softmax1" else 0))
    return {"identity": logits, "relu": np.maximum(logits, 0), "abs": np.abs(logits)}[kind]


KAPPA, VALUE, BIAS = Wide(0.8), Wide(1.3), Wide(0.1)


class AttentionReference:
    """docs/theory/attention.md, sections 2, 3 and 4, with T = K before the layer."""

    def __init__(self, scaling, kind, sees=None, frequencies=None, alibi=0, encodings=None):
        """sees [a, c]: the positions c that position a sees. encodings: (weight of K, R times its weight)."""
        self.scaling, self.kind, self.alibi = scaling, kind, Wide(alibi)
        self.sees = np.ones((POSITIONS, POSITIONS), bool) if sees is None else sees
        self.frequencies = None if frequencies is None else np.asarray(frequencies, Wide)
        self.encodings = encodings

    def rotation(self, distance):
        if self.frequencies is None:
            return np.ones(np.shape(distance), Wide)
        return np.mean(np.cos(np.asarray(distance, Wide)[..., None] * self.frequencies), axis=-1)

    def encoded(self, covariance):
        return covariance if self.encodings is None else self.encodings[0] * covariance + self.encodings[1]

    def __call__(self, x, y, left_counts, right_counts):
        left, right, cross = own_and_cross(x, y)
        function = self.inverse_width if self.scaling == "inverse_width" else self.inverse_sqrt_width
        seen = [self.sees & counts[None, :] for counts in (left_counts, right_counts)]
        nngp, ntk = function(*(self.encoded(own) for own in (left, right)), cross, self.encoded(cross), *seen)
        counted = left_counts[:, None] & right_counts[None, :]
        return np.where(counted, nngp, 0), np.where(counted, ntk, 0)

    def weights(self, own, sees):
        distance = np.subtract.outer(np.arange(POSITIONS), np.arange(POSITIONS))
        logits = KAPPA * own * self.rotation(distance) - self.alibi * np.abs(distance)
        if self.kind in ("softmax", "softmax1"):
            powers = np.where(sees, np.exp(logits), 0)
            return powers / (powers.sum(axis=1, keepdims=True) + (1 if self.kind == "softmax1" else 0))
        return np.where(sees, {"identity": logits, "relu": np.maximum(logits, 0), "abs": np.abs(logits)}[self.kind], 0)

    def inverse_width(self, left, right, cross, _, left_sees, right_sees):
        mixed = VALUE * (self.weights(left, left_sees) @ cross @ self.weights(right, right_sees).T)
        return mixed + BIAS, 3 * mixed + BIAS

    def inverse_sqrt_width(self, left, right, cross, encoded, left_sees, right_sees):
        closed = {"identity": lambda p, q, c, d: (c, np.ones_like(c)), "relu": lambda *g: rectifier(0, 1, *g),
                  "abs": lambda *g: rectifier(-1, 1, *g), "erf": lambda *g: error_function(1, 1, 0, *g)}[self.kind]
        nngp, ntk = np.empty_like(cross), np.empty_like(cross)
        places = np.arange(POSITIONS)
        for a in places:
            for b in places:
                keys = encoded * self.rotation(np.subtract.outer(places - a, places - b))
                p = np.broadcast_to((KAPPA**2 * left[a, a] * np.diag(left))[:, None], cross.shape)
                q = np.broadcast_to((KAPPA**2 * right[b, b] * np.diag(right))[None, :], cross.shape)
                c = KAPPA**2 * encoded[a, b] * keys
                found, slope = closed(p, q, c, p * q - c * c)
                sees = np.outer(left_sees[a], right_sees[b])
                mixed = VALUE * np.sum(np.where(sees, cross * found, 0))
                # T~ is w K + w' R = K~: that of the encodings counts too.
                bent = VALUE * KAPPA**2 * np.sum(np.where(sees, cross * keys * slope, 0))
                nngp[a, b] = mixed + BIAS
                # 2 S + b, the values' own T, and the bracket: (2 K~ + T~) K~ D + K~ T~ D with T~ = K~.
                ntk[a, b] = 2 * mixed + BIAS + mixed + (3 + 1) * encoded[a, b] * bent
        return nngp, ntk


def case_of_attention(scaling, kind, dtype, what="", fields=None, counts=None, peer=True, **reference):
    fields = fields or {}
    layer = layers.attention(scaling, kind, float(KAPPA), float(VALUE), float(BIAS), **fields)
    name = f"{'1/width' if scaling == 'inverse_width' else '1/sqrt(width)'}, {kind}" + (f", {what}" if what else "")
    described = {"scaling": scaling, "weights": kind, "query_key_std": float(KAPPA), "output_value_variance": float(VALUE),
                 "bias_variance": float(BIAS), **fields}
    return case_of_sequences(name, layer, AttentionReference(scaling, kind, **reference), dtype, "attention", described, counts, peer)


def plain_attention(dtype):
    return ([case_of_attention("inverse_width", kind, dtype) for kind in ("softmax", "softmax1", "identity", "relu", "abs")] +
            [case_of_attention("inverse_sqrt_width", kind, dtype) for kind in ("identity", "relu", "abs", "erf")])


ATTENTIONS = (("inverse_width", "softmax"), ("inverse_sqrt_width", "identity"), ("inverse_sqrt_width", "relu"))


def masked_attention(dtype):
    distance = np.abs(np.subtract.outer(np.arange(POSITIONS), np.arange(POSITIONS)))
    causal, keys = np.tri(POSITIONS, dtype=bool), np.random.default_rng(3).random((POSITIONS, POSITIONS)) < 0.5
    np.fill_diagonal(keys, True)
    counts = (np.arange(POSITIONS) != 2, ~np.isin(np.arange(POSITIONS), (0, 5)))
    for scaling, kind in ATTENTIONS:
        yield case_of_attention(scaling, kind, dtype, "causal", {"causal": True}, sees=causal)
        yield case_of_attention(scaling, kind, dtype, "window 3", {"window": 3}, sees=distance < 3)
        yield case_of_attention(scaling, kind, dtype, "causal, prefix 3", {"causal": True, "prefix": 3},
                                sees=causal | (np.arange(POSITIONS) < 3)[None, :])
        yield case_of_attention(scaling, kind, dtype, "mask of keys", {"mask": keys.tolist()}, sees=keys)
        yield case_of_attention(scaling, kind, dtype, "masked inputs", counts=counts)


def positioned_attention(dtype):
    places = np.arange(1, POSITIONS + 1).astype(Wide)
    distance = np.subtract.outer(places, places)
    structured = Wide(0.5) * np.exp(-Wide(3.0) * (distance / POSITIONS)**2)
    decay = [0.7**r for r in range(POSITIONS)]
    decayed = Wide(0.5) * np.asarray(decay, Wide)[np.abs(distance).astype(int)]
    for scaling, kind in ATTENTIONS:
        def encodings(what, covariance, **fields):
            return case_of_attention(scaling, kind, dtype, what, {"positions": {"position_weight": 0.5, "input_weight": 1.0, **fields}},
                                     encodings=(Wide(1), covariance))

        yield encodings("identity encodings", Wide(0.5) * np.eye(POSITIONS, dtype=Wide), kind="identity")
        yield encodings("structured encodings", structured, kind="structured", rho=1.0, phi=3.0)
        yield encodings("decaying encodings", decayed, kind="decay", values=decay, power=1)
        yield case_of_attention(scaling, kind, dtype, "rotary", {"rotary": {"base": 10000, "pairs": 4}},
                                frequencies=[Wide(10000)**(-Wide(i) / 4) for i in range(4)])
    for kind in ("softmax", "softmax1"):
        yield case_of_attention("inverse_width", kind, dtype, "ALiBi 0.3", {"alibi": 0.3}, alibi=0.3)


def sequence_norms(dtype):
    """Over the channels of every position, and over channels and positions."""
    for epsilon in (1e-12, 1e-3):
        def over(space, x, y, left_counts, right_counts):
            left, right, cross = own_and_cross(x, y)

            def factors(own, counts):
                variances = np.diag(own)
                return 1 / np.sqrt((np.full(POSITIONS, variances[counts].mean()) if space else variances) + Wide(epsilon))

            found = cross * np.outer(factors(left, left_counts), factors(right, right_counts))
            found = np.where(np.outer(left_counts, right_counts), found, 0)
            return found, found

        for what, space, axes in (("channels", False, ["channels"]), ("channels and positions", True, ["channels", "space"])):
            def reference(*given, space=space):
                return over(space, *given)

            fields = {"epsilon": epsilon, "axis": [1, 2] if space else [-1]}
            yield case_of_sequences(f"`layer_norm` over {what}, epsilon {epsilon:g}", layers.layer_norm(axes=axes, epsilon=epsilon), reference,
                                    dtype, "layer_norm", fields)
            counts = (np.arange(POSITIONS) != 2, ~np.isin(np.arange(POSITIONS), (0, 5)))
            yield case_of_sequences(f"`layer_norm` over {what}, epsilon {epsilon:g}, masked inputs",
                                    layers.layer_norm(axes=axes, epsilon=epsilon), reference, dtype, "layer_norm", fields, counts)


def ask_peer(interpreter, cases):
    """Lets neural-tangents compute the same kernels, one precision a process."""
    for dtype in PRECISIONS:
        asked = [case for case in cases if case.dtype == dtype and case.peer]
        arrays = {f"{side}{number}": batch for number, case in enumerate(asked) for side, batch in zip("xy", case.batches)}
        with tempfile.TemporaryDirectory() as folder:
            given, answers = pathlib.Path(folder, "cases.npz"), pathlib.Path(folder, "results.npz")
            np.savez(given, cases=json.dumps([case.as_json(number) for number, case in enumerate(asked)]), **arrays)
            worker = pathlib.Path(__file__).with_name("accuracy_neural_tangents.py")
            subprocess.run([interpreter, str(worker), str(given), str(answers)], check=True)
            found = np.load(answers)
            for number, case in enumerate(asked):
                if f"{number}/nngp" in found:
                    before = tuple(found[f"{number}/{name}"] for name in "cpq") if f"{number}/c" in found else None
                    case.others = case.compare(found[f"{number}/nngp"], found[f"{number}/ntk"], before)
                elif f"{number}/refusal" in found:
                    case.peer_refusal = str(found[f"{number}/refusal"])


def table(heading, cases, with_peer):
    names = ["K': largest", "mean", "absolute", "T': largest", "mean", "absolute"]
    if with_peer:
        names += ["neural-tangents, K': largest", "mean", "T': largest", "mean"]
    told = [case for case in cases if case.own]
    return (f"| {heading} | " + " | ".join(names) + " |\n" + "|---" * (len(names) + 1) + "|\n" +
            "".join(case.text(with_peer) + "\n" for case in told) + "\n")


def refusals(cases, of_peer=False):
    told = [(case.name, case.peer_refusal if of_peer else case.refusal) for case in cases]
    return "".join(f"- {name}: {refusal}\n" for name, refusal in told if refusal)


FIRST = """# Accuracy of every layer

This page says how far entries of the NNGP (K') and of the NTK (T') after a layer are from the layer's formula. The reference is evaluated in 80-bit
arithmetic (64 bits of mantissa) at the covariances that the library has before the layer. Errors are in units of the machine epsilon (1.2e-7 in float,
2.2e-16 in double) times the scale of the entry. For K' this is the geometric mean of the two variances after the layer; for T' it is the same mean of the
two inputs' own T', except after nonlinearities, where it is the T before the layer times the geometric mean of the two E[phi'(u)^2]. The tables give the
largest and the mean error over all pairs, and the largest absolute error between inputs of variance 1.
[theory/accuracy.md](theory/accuracy.md) explains where kernels lose digits and what the library does about it.

    PYTHONPATH=build/release/python python bench/accuracy.py docs/accuracy.md [--peer PYTHON]

The figures are of {machine}. They are measurements and not guarantees;
[testing.md](testing.md) says what the tests require.
{peer}
The inputs have variances {variances} (up to 100 for nonlinearities by quadrature). Each is paired with
each at the correlations {correlations}.

"""

PEER = """
The last columns are the errors of neural-tangents 0.6.5 (JAX 0.4.23 on processors) for the same inputs, by the same reference at the covariances that
it has before the layer; "-" where it has no such layer, "not finite" where some entry is infinite or not a number although the formula is finite. Its
correlation of 1 is that of inputs that are multiples of each other, as in the rest of the table. Its `Hermite` is for inputs of variance 1, so that its
K' differs at all others. Errors of a million epsilon and more after norms over the positions of masked inputs say that both mean something else by them.
"""

REMARKS = """Nonlinearities by quadrature (tanh, sigmoid, silu, softplus) are accurate to about 1e-12 in double by design. The exponent of `exp` reaches 320
at variances of 1000, and rounding it costs half as many epsilon. `sign` treats angles below
1.4e-3 as 0 in float ([theory/accuracy.md](theory/accuracy.md), section 2), which 1 - 1e-6 is. The NTK after `sign` is 0 by convention.

"""

SEQUENCES = """## Sequences

From here on the inputs are sequences of {positions} positions with {channels} normal channels: x of the variances {variances}, and y of each of
these at each of the correlations {correlations} with x. A dense layer precedes the layer. The reference starts from the inputs,
so that errors before the layer count as well. Largest, mean and absolute errors are over all pairs of positions of all pairs of inputs. "Masked
inputs" lack position 2 of x and positions 0 and 5 of y.

### Norms over channels and over positions

"""

ATTENTION = """### Attention

All attention has query_key_std 0.8, output_value_variance 1.3 and bias_variance 0.1. ReLU-like weights of scaling 1/sqrt(width) are interpolated in
the correlation, K' to about 2e-11 and T' to about 1e-10 of the scale; masks that let positions see different ones, and rotary positions, rule that out, and the sums are exact.
Softmax of scaling 1/sqrt(width) is not in the tables: it is sampled, and its kernels come with standard errors.

"""

MASKS = """### Attention under masks

"""

ENCODINGS = """### Attention with encodings of positions

Encodings are added to what queries and keys see, with variance 0.5: independent ones, structured ones (phi 3) and ones whose covariance decays by 0.7 a
position. Rotary positions have four frequencies of base 10000.

"""

PRECISIONS = {np.float64: "in double", np.float32: "in float"}


def sections():
    """(text in front, a function of the precision that makes the cases)."""
    places = {"positions": POSITIONS, "channels": CHANNELS, "variances": ", ".join(f"{value:g}" for value in SEQUENCE_VARIANCES),
              "correlations": ", ".join(f"{value:g}" for value in SEQUENCE_CORRELATIONS)}
    return (("## Nonlinearities\n\n", lambda dtype: [case_of_activation(*described, dtype) for described in activations()]),
            (REMARKS + "## Norms\n\n",
             lambda dtype: [case_of_norm(kind, epsilon, dtype) for kind in ("layer_norm", "rms_norm") for epsilon in (1e-12, 1e-3)]),
            (SEQUENCES.format(**places), lambda dtype: list(sequence_norms(dtype))),
            (ATTENTION, plain_attention),
            (MASKS, lambda dtype: list(masked_attention(dtype))),
            (ENCODINGS, lambda dtype: list(positioned_attention(dtype))))


def refused_combinations():
    """(what, the message) of layers above with options or inputs that have no kernel."""
    x = sequences(np.float64)[0]
    images = np.zeros((1, 4, 4, 3)) + 1
    sees_nothing = np.tri(POSITIONS, k=-1, dtype=bool)
    counts = np.arange(POSITIONS)[None, :].repeat(len(x), axis=0) != 2

    def attention(*given, inputs=x, mask=None, **options):
        return lambda: widelimit.position_covariances(widelimit.Network([layers.dense(), layers.attention(*given, **options)]), inputs, mask1=mask)

    encodings = {"kind": "identity", "position_weight": 0.5, "input_weight": 1.0, "in_values": True}
    tries = {
        "a norm of channels that are not Gaussian":
            lambda: widelimit.gram(widelimit.Network([layers.dense(), layers.relu(), layers.layer_norm()]), x[:, 0]),
        "ALiBi with ReLU weights": attention("inverse_width", "relu", alibi=0.3),
        "untied queries and keys with ReLU weights, 1/width": attention("inverse_width", "relu", tied=False),
        "tied queries and keys, 1/sqrt(width)": attention("inverse_sqrt_width", "relu", tied=True),
        "a window over images": attention("inverse_width", "softmax", inputs=images, window=2),
        "rotary positions of images": attention("inverse_width", "softmax", inputs=images, rotary={"base": 10000, "pairs": 2}),
        "softmax at a position that sees none":
            lambda: widelimit.position_covariances(
                widelimit.Network([layers.dense(), layers.attention(mask=sees_nothing.tolist())]), x),
        "masked inputs with encodings in the values, 1/sqrt(width)": attention("inverse_sqrt_width", "relu", mask=counts, positions=encodings),
    }
    for what, run in tries.items():
        try:
            run()
            yield what, "no error"
        except _core.Error as error:
            yield what, str(error)


def refusals_text(all_cases, with_peer):
    text = "## What is refused\n\nThese have no kernel at some of the inputs above; the first error of each:\n\n"
    for dtype, name in PRECISIONS.items():
        told = refusals([case for case in all_cases if case.dtype == dtype])
        text += f"{name.capitalize()}:\n\n" + (told or "- nothing\n") + "\n"
    text += "Layers, options and inputs that have no kernel together:\n\n"
    text += "".join(f"- {what}: {message}\n" for what, message in refused_combinations()) + "\n"
    peer = refusals([case for case in all_cases if case.dtype == np.float64], of_peer=True)
    if with_peer and peer:
        text += f"By neural-tangents:\n\n{peer}\n"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("--peer", metavar="PYTHON", help="a Python that has neural-tangents: its errors stand beside ours")
    arguments = parser.parse_args()
    if np.finfo(Wide).nmant < 63:
        sys.exit("accuracy.py: expected a long double with 64 bits of mantissa, as x86 has it")
    warnings.simplefilter("ignore")
    with_peer = arguments.peer is not None
    text = FIRST.format(machine=machine(), peer=PEER if with_peer else "", variances=", ".join(f"{value:g}" for value in VARIANCES),
                        correlations=", ".join(f"{value:.6g}" for value in CORRELATIONS))
    made = [(front, {dtype: make(dtype) for dtype in PRECISIONS}) for front, make in sections()]
    all_cases = [case for _, cases in made for some in cases.values() for case in some]
    if with_peer:
        ask_peer(arguments.peer, all_cases)
    for front, cases in made:
        text += front + "".join(table(name, cases[dtype], with_peer) for dtype, name in PRECISIONS.items())
    text += refusals_text(all_cases, with_peer)
    arguments.page.write_text("\n".join(map(within_a_page, text.rstrip().splitlines())) + "\n")


def within_a_page(line):
    """Messages of the library may be longer than the lines of a page."""
    if line.startswith(("|", "    ")):
        return line
    return textwrap.fill(line, 160, subsequent_indent="  " if line.startswith("- ") else "", break_long_words=False, break_on_hyphens=False)


def machine():
    names = [line.split(":", 1)[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]
    return f"widelimit {widelimit.__version__} on {names[0] if names else platform.machine()}"


if __name__ == "__main__":
    main()
