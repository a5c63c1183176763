#!/usr/bin/env python3
"""accuracy.py PAGE: writes docs/accuracy.md: how far kernels after every nonlinearity, norm and attention are from formulas
that are evaluated with 80 bits, in float and in double. The package must be importable; long double must have 64 bits of
mantissa, as on x86."""

import json
import pathlib
import platform
import sys
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


class Row:
    """Errors of one layer in one precision: K' and T' in epsilon, largest and mean, and absolute at variance 1."""

    def __init__(self, name, refusal=""):
        self.name, self.refusal, self.parts = name, refusal, []

    def add(self, found, expected, scale, dtype, at_one):
        told = errors(found, expected, scale, dtype)
        absolute = np.abs(found.astype(Wide) - expected)[at_one]
        self.parts.append((told.max(initial=0), told.mean() if told.size else 0, absolute.max(initial=0)))

    def text(self):
        cells = [cell for largest, mean, absolute in self.parts for cell in (short(largest), short(mean), f"{float(absolute):.1e}")]
        return f"| {self.name} | " + " | ".join(cells) + " |"


def short(number):
    return f"{float(number):.2g}" if number < 100 else f"{float(number):.0f}" if number < 1e4 else f"{float(number):.1e}"


def covariances(network, x, y):
    """(p, q, c, p q - c^2) before a layer, as the library has them, in 80 bits. Vectors that are multiples of each other are
    perfectly correlated, which the library knows although its covariances are rounded."""
    c = widelimit.gram(network, x, y, kernels="nngp").nngp.astype(Wide)
    p, q = (np.ravel(widelimit.gram_diagonal(network, batch).nngp).astype(Wide) for batch in (x, y))
    p, q = np.broadcast_to(p[:, None], c.shape), np.broadcast_to(q[None, :], c.shape)
    root = np.where(p == q, p, np.sqrt(p) * np.sqrt(q))
    multiples = np.broadcast_to(np.tile(np.asarray(CORRELATIONS) == 1, len(y) // len(CORRELATIONS)), c.shape)
    c = np.where(multiples, root, np.clip(c, -root, root))
    return tuple(np.ravel(array) for array in (p, q, c, np.where(multiples, 0, np.maximum(p * q - c * c, 0))))


def row_of_activation(kind, example, fields, layer, dtype):
    function, variances = reference_of(kind, fields)
    kept, refusal = accepted(layer, variances, dtype)
    row = Row(f"`{kind}`" + (f" {arguments_of(example)}" if example else ""), refusal)
    x, y = vectors(kept, CORRELATIONS, dtype)
    p, q, c, determinant = covariances(widelimit.Network([layers.dense()]), x, y)
    found = widelimit.gram(widelimit.Network([layers.dense(), layer]), x, y)
    with np.errstate(all="ignore"):
        value, derivative = function(p, q, c, determinant)
        zero = np.zeros_like(p)
        (left, left_slope), (right, right_slope) = (function(v, v, v, zero) for v in (p, q))
        at_one = (np.abs(p - 1) < 1e-3) & (np.abs(q - 1) < 1e-3)
        row.add(np.ravel(found.nngp), value, np.sqrt(left) * np.sqrt(right), dtype, at_one)
        # The NTK before the layer is c.
        row.add(np.ravel(found.ntk), c * derivative, np.abs(c) * np.sqrt(left_slope) * np.sqrt(right_slope), dtype, at_one)
    return row


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


def row_of_norm(name, layer, epsilon, dtype):
    kept, refusal = accepted(layer, VARIANCES, dtype)
    row = Row(name, refusal)
    x, y = vectors(kept, CORRELATIONS, dtype)
    p, q, c, _ = covariances(widelimit.Network([layers.dense()]), x, y)
    found = widelimit.gram(widelimit.Network([layers.dense(), layer]), x, y)
    expected = c / np.sqrt((p + Wide(epsilon)) * (q + Wide(epsilon)))
    scale, at_one = np.sqrt(p * q / ((p + Wide(epsilon)) * (q + Wide(epsilon)))), (np.abs(p - 1) < 1e-3) & (np.abs(q - 1) < 1e-3)
    row.add(np.ravel(found.nngp), expected, scale, dtype, at_one)
    row.add(np.ravel(found.ntk), expected, scale, dtype, at_one)
    return row


# Attention, from the inputs themselves: what is before it counts as well.

def own_and_cross(x, y):
    """K of two sequences [d, C] in 80 bits: of x with itself, of y with itself, of both."""
    x, y = x.astype(Wide), y.astype(Wide)
    return tuple(left @ right.T / Wide(x.shape[1]) for left, right in ((x, x), (y, y), (x, y)))


def weights_matrix(kind, logits):
    if kind in ("softmax", "softmax1"):
        powers = np.exp(logits)
        return powers / (powers.sum(axis=1, keepdims=True) + (1 if kind == "softmax1" else 0))
    return {"identity": logits, "relu": np.maximum(logits, 0), "abs": np.abs(logits)}[kind]


def inverse_width(kind, std, value, bias, x, y):
    left, right, cross = own_and_cross(x, y)
    a, b = weights_matrix(kind, std * left), weights_matrix(kind, std * right)
    mixed = value * (a @ cross @ b.T)
    return mixed + bias, mixed + 2 * mixed + bias  # T before the layer is K.


def inverse_sqrt_width(kind, std, value, bias, x, y):
    """docs/theory/attention.md, section 3, with D for elementwise weights, and T = K before the layer."""
    left, right, cross = own_and_cross(x, y)
    closed = {"identity": lambda p, q, c, d: (c, np.ones_like(c)), "relu": lambda *g: rectifier(0, 1, *g),
              "abs": lambda *g: rectifier(-1, 1, *g), "erf": lambda *g: error_function(1, 1, 0, *g)}[kind]
    nngp, ntk = np.empty_like(cross), np.empty_like(cross)
    for a in range(len(left)):
        for b in range(len(right)):
            p = np.broadcast_to((std**2 * left[a, a] * np.diag(left))[:, None], cross.shape)
            q = np.broadcast_to((std**2 * right[b, b] * np.diag(right))[None, :], cross.shape)
            c = std**2 * cross[a, b] * cross
            found, slope = closed(p, q, c, p * q - c * c)
            mixed = value * np.sum(cross * found)
            bent = value * std**2 * np.sum(cross * cross * slope)
            nngp[a, b] = mixed + bias
            # 2 S + b, the values' own T, and the bracket: (2 K + T) K D + K T D with T = K.
            ntk[a, b] = 2 * mixed + bias + mixed + (3 + 1) * cross[a, b] * bent
    return nngp, ntk


def row_of_attention(scaling, kind, dtype):
    layer = layers.attention(scaling, kind, 0.8, 1.3, 0.1)
    network = widelimit.Network([layers.dense(), layer])
    row = Row(f"{'1/width' if scaling == 'inverse_width' else '1/sqrt(width)'}, {kind}")
    std, value, bias = Wide(0.8), Wide(1.3), Wide(0.1)
    function = inverse_width if scaling == "inverse_width" else inverse_sqrt_width
    random = np.random.default_rng(0)
    x, y = random.normal(size=(2, 6, 8, 12)).astype(dtype)
    found = widelimit.position_covariances(network, x, y)
    own = [[function(kind, std, value, bias, one, one) for one in batch] for batch in (x, y)]
    collected = {name + part: [] for name in ("nngp", "ntk") for part in ("", "_expected", "_scale")}
    for i, left in enumerate(x):
        for j, right in enumerate(y):
            expected = function(kind, std, value, bias, left, right)
            for which, name in enumerate(("nngp", "ntk")):
                scale = np.sqrt(np.diag(own[0][i][which])[:, None] * np.diag(own[1][j][which]))
                collected[name].append(np.ravel(getattr(found, name)[i, j]))
                collected[f"{name}_expected"].append(np.ravel(expected[which]))
                collected[f"{name}_scale"].append(np.ravel(scale))
    for name in ("nngp", "ntk"):
        values, expected, scale = (np.concatenate(collected[name + end]) for end in ("", "_expected", "_scale"))
        row.add(values, expected, scale, dtype, np.ones(len(values), bool))
    return row


HEADING = ("| {} | K': largest | mean | absolute | T': largest | mean | absolute |\n|---|---|---|---|---|---|---|\n")


def table(heading, rows):
    return HEADING.format(heading) + "".join(row.text() + "\n" for row in rows) + "\n"


def refusals(rows):
    told = [f"- {row.name}: {row.refusal}" for row in rows if row.refusal]
    return "".join(line + "\n" for line in told)


FIRST = """# Accuracy of every layer

This page says how far entries of the NNGP (K') and of the NTK (T') after a layer are from the layer's formula. The reference is evaluated in 80-bit
arithmetic (64 bits of mantissa) at the covariances that the library has before the layer. Errors are in units of the machine epsilon (1.2e-7 in float,
2.2e-16 in double) times the scale of the entry. For K' this is the geometric mean of the two variances after the layer; for T' it is the same mean of the
two inputs' own T', except after nonlinearities, where it is the T before the layer times the geometric mean of the two E[phi'(u)^2]. The tables give the
largest and the mean error over all pairs, and the largest absolute error between inputs of variance 1.
[theory/accuracy.md](theory/accuracy.md) explains where kernels lose digits and what the library does about it.

    PYTHONPATH=build/release/python python bench/accuracy.py docs/accuracy.md

The figures are of {machine}. They are measurements and not guarantees; [testing.md](testing.md) says what the tests require.

The inputs have variances {variances} (up to 100 for nonlinearities by quadrature). Each is paired with
each at the correlations {correlations}.

"""

REMARKS = """Nonlinearities by quadrature (tanh, sigmoid, silu, softplus) are accurate to about 1e-12 in double by design. The exponent of `exp` reaches 320
at variances of 1000, and rounding it costs half as many epsilon. `sign` treats angles below
1.4e-3 as 0 in float ([theory/accuracy.md](theory/accuracy.md), section 2), which 1 - 1e-6 is. The NTK after `sign` is 0 by convention.

"""

ATTENTION = """## Attention

The inputs are sequences of 8 positions with 12 normal channels, and a dense layer precedes the attention (query_key_std 0.8, output_value_variance 1.3,
bias_variance 0.1). The reference starts from the inputs here, so that errors before the layer count as well. Absolute errors are over all pairs. ReLU-like
weights of scaling 1/sqrt(width) are interpolated in the correlation. Softmax of scaling 1/sqrt(width) is not in the tables: it is sampled, and its kernels come
with standard errors.

"""


def main():
    if np.finfo(Wide).nmant < 63:
        sys.exit("accuracy.py: expected a long double with 64 bits of mantissa, as x86 has it")
    warnings.simplefilter("ignore")
    text = FIRST.format(machine=machine(), variances=", ".join(f"{value:g}" for value in VARIANCES),
                        correlations=", ".join(f"{value:.6g}" for value in CORRELATIONS))
    refused = {}
    text += "## Nonlinearities\n\n"
    for dtype in (np.float64, np.float32):
        rows = [row_of_activation(*described, dtype) for described in activations()]
        text += table("in double" if dtype == np.float64 else "in float", rows)
        refused[dtype] = refusals(rows)
    text += REMARKS + "## Norms\n\n"
    for dtype in (np.float64, np.float32):
        rows = [row_of_norm(f"`{kind}`, epsilon {epsilon:g}", getattr(layers, kind)(epsilon=epsilon), epsilon, dtype)
                for kind in ("layer_norm", "rms_norm") for epsilon in (1e-12, 1e-3)]
        text += table("in double" if dtype == np.float64 else "in float", rows)
    text += ATTENTION
    for dtype in (np.float64, np.float32):
        rows = [row_of_attention("inverse_width", kind, dtype) for kind in ("softmax", "softmax1", "identity", "relu", "abs")]
        rows += [row_of_attention("inverse_sqrt_width", kind, dtype) for kind in ("identity", "relu", "abs", "erf")]
        text += table("in double" if dtype == np.float64 else "in float", rows)
    text += "## What is refused\n\nThese nonlinearities have no kernel at some of the variances above; the first error of each:\n\n"
    for dtype, what in ((np.float64, "In double"), (np.float32, "In float")):
        text += f"{what}:\n\n{refused[dtype] or '- nothing'}\n"
    pathlib.Path(sys.argv[1]).write_text(text.rstrip() + "\n")


def machine():
    names = [line.split(":", 1)[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]
    return f"widelimit {widelimit.__version__} on {names[0] if names else platform.machine()}"


if __name__ == "__main__":
    main()
