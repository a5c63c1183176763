"""PyTorch's operations (ATen, which everything else is made of) as those of _trace."""

from __future__ import annotations

from math import sqrt
from typing import Any, Callable

import numpy as np

from . import functions
from .functions import _erf as erf
from .functions import _logistic as logistic
from ._matrices import adaptive_windows, average_windows, padded, resized
from ._steps import FIRST, Earlier, Step, refused

UNARY: dict[str, Callable[..., Any]] = {
    "relu": lambda z: np.maximum(z, 0), "tanh": np.tanh, "sigmoid": logistic, "silu": lambda z: z * logistic(z), "erf": erf, "sin": np.sin,
    "cos": np.cos, "exp": np.exp, "abs": np.abs, "neg": np.negative, "sqrt": np.sqrt, "rsqrt": lambda z: 1 / np.sqrt(z),
    "square": np.square,
    "reciprocal": lambda z: 1 / z, "mish": functions.mish, "hardswish": functions.hardswish, "hardsigmoid": functions.hardsigmoid,
    "log_sigmoid_forward": functions.log_sigmoid, "sign": np.sign, "softsign": functions.softsign, "log": np.log, "log1p": np.log1p,
    "expm1": np.expm1, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh, "erfc": lambda z: 1 - erf(z),
}


def _gelu(approximate="none"):
    return functions.gelu_tanh if approximate == "tanh" else lambda z: z * (1 + erf(z / sqrt(2))) / 2


def _elu(alpha=1.0, scale=1.0, input_scale=1.0):
    return lambda z: scale * np.where(z > 0, z, alpha * np.expm1(np.minimum(z, 0) * input_scale))


def _softplus(beta=1.0, threshold=20.0):
    return lambda z: np.logaddexp(0, beta * z) / beta


WITH_PARAMETERS: dict[str, Callable[..., Callable[..., Any]]] = {
    "gelu": _gelu, "elu": _elu, "celu": lambda alpha=1.0: _elu(alpha, 1.0, 1 / alpha), "softplus": _softplus,
    "leaky_relu": lambda slope=0.01: lambda z: np.where(z > 0, z, slope * z),
    "hardtanh": lambda low=-1.0, high=1.0: lambda z: np.clip(z, low, high),
    "clamp": lambda low=None, high=None: lambda z: np.clip(z, low, high),
    "clamp_min": lambda low: lambda z: np.maximum(z, low), "clamp_max": lambda high: lambda z: np.minimum(z, high),
    "threshold": lambda at, value: lambda z: np.where(z > at, z, value),
    "gt": lambda b: lambda z: (z > b) * 1.0, "lt": lambda b: lambda z: (z < b) * 1.0, "ge": lambda b: lambda z: (z >= b) * 1.0,
    "le": lambda b: lambda z: (z <= b) * 1.0,
}

BINARY = {"add": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "maximum": "maximum", "minimum": "minimum", "pow": "power"}

SAME = {"clone", "contiguous", "detach", "alias", "_to_copy", "lift_fresh", "lift_fresh_copy", "positive"}

# Of parameters, whose entries they leave as they are, elsewhere.
ARRANGING = SAME | {"t", "transpose", "permute", "view", "_unsafe_view", "reshape", "slice", "select", "split", "split_with_sizes", "chunk",
                    "unbind", "unsqueeze", "squeeze", "expand", "index_select", "embedding", "_reshape_alias", "index", "flip", "unfold",
                    "as_strided", "movedim", "narrow", "roll"}


def _mm(a, b):
    return [("contract", (a, b), {"batch": ((), ()), "contracting": ((1,), (0,))})]


def _bmm(a, b):
    return [("contract", (a, b), {"batch": ((0,), (0,)), "contracting": ((2,), (1,))})]


def _matvec(a, b):
    return [("contract", (a, b), {"batch": ((), ()), "contracting": ((a.ndim - 1,), (0,))})]


def _addmm(c, a, b, beta=1, alpha=1):
    if (beta, alpha) != (1, 1):
        return [*_mm(a, b), ("multiply", (FIRST, float(alpha)), {}), ("multiply", (c, float(beta)), {}),
                ("add", (Earlier(1), Earlier(2)), {})]
    return [*_mm(a, b), ("add", (FIRST, c), {})]


def _baddbmm(c, a, b, beta=1, alpha=1):
    steps = [*_bmm(a, b), ("multiply", (FIRST, float(alpha)), {})]
    return [*steps, ("add", (Earlier(1), c), {})] if beta else steps


def _convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    count = weight.ndim - 2
    stride, padding, dilation, output_padding = (list(v) * (count if len(v) == 1 else 1)
                                                 for v in (stride, padding, dilation, output_padding))
    return [("convolution", (x, weight, bias), {"strides": stride, "pads": [padding, padding], "dilations": dilation, "groups": groups,
                                                "transposed": transposed, "output_padding": output_padding})]


def _maps(x, matrices):
    """Matrices along the last dimensions, one behind the other."""
    first, steps = x.ndim - len(matrices), []
    for k, matrix in enumerate(matrices):
        steps.append(("axis_map", (Earlier(len(steps) - 1) if steps else x,), {"dimension": first + k, "matrix": matrix}))
    return steps


def _average_pool(axes):
    def steps(x, window, stride=(), padding=(0,), ceil_mode=False, count_include_pad=True, divisor_override=None):
        window, padding = (list(v) * (axes if len(v) == 1 else 1) for v in (window, padding))
        stride = list(stride) * (axes if len(stride) == 1 else 1) or window
        if divisor_override:
            return refused("an average pooling has a divisor of its own", "leave out divisor_override")
        return _maps(x, [average_windows(x.shape[x.ndim - axes + k], window[k], stride[k], (padding[k],) * 2, count_include_pad, ceil_mode)
                         for k in range(axes)])
    return steps


def _adaptive(x, size):
    return _maps(x, [adaptive_windows(x.shape[x.ndim - len(size) + k], out) for k, out in enumerate(size)])


def _resize(linear):
    def steps(x, size, *rest):
        align, scales = (rest[0], rest[1:]) if linear else (False, rest)
        axes = x.ndim - 2
        return _maps(x, [resized(x.shape[2 + k], size[k], linear, bool(align), scales[k] if k < len(scales) else None)
                         for k in range(axes)])
    return steps


def _pad(mode):
    def steps(x, pad, value=0.0):
        if value:
            return refused("values are padded with another constant than 0", "pad with zeros")
        count = len(pad) // 2
        return _maps(x, [padded(x.shape[x.ndim - count + k], pad[2 * (count - 1 - k)], pad[2 * (count - 1 - k) + 1], mode)
                         for k in range(count)])
    return steps


def _mean(kind):
    def steps(x, dimensions=None, keep=False, **_):
        if isinstance(dimensions, int):
            dimensions = [dimensions]
        dimensions = dimensions or range(x.ndim)
        return [(kind, (x,), {"dimensions": tuple(k % x.ndim for k in dimensions), "keep": keep})]
    return steps


def _variance(power):
    def steps(x, dimensions=None, correction=1, keepdim=False):
        steps = _mean("variance")(x, dimensions, keepdim)
        return steps if power == 1 else [*steps, ("elementwise", (FIRST,), {"function": np.sqrt, "name": "sqrt"})]
    return steps


def _layer_norm(x, shape, weight, bias, epsilon):
    return [("layer_norm", (x, weight, bias), {"dimensions": tuple(range(x.ndim - len(shape), x.ndim)), "epsilon": epsilon})]


def _rms_norm(x, shape, weight, epsilon):
    return [("rms_norm", (x, weight), {"dimensions": tuple(range(x.ndim - len(shape), x.ndim)), "epsilon": epsilon or 1.2e-7})]


def _group_norm(x, weight, bias, n, channels, size, groups, epsilon):
    return [("group_norm", (x, _as_channels(weight, x), _as_channels(bias, x)), {"groups": groups, "epsilon": epsilon})]


def _as_channels(vector, x):
    return None if vector is None else vector.reshape(1, -1, *(1,) * (x.ndim - 2))


def _batch_norm(x, weight, bias, mean, variance, *rest):
    training, epsilon = (rest[0], rest[2]) if isinstance(rest[0], bool) and len(rest) > 2 else (False, rest[1])
    if training or mean is None:
        return refused("batch norm in training makes of an input what depends on all inputs of its batch, so that it has no kernel",
                       "call module.eval(), or use a layer norm or a group norm")
    root = (variance + epsilon).rsqrt()
    steps = []
    for kind, vector in (("subtract", mean), ("multiply", root), ("multiply", weight), ("add", bias)):
        if vector is not None and not (kind in ("subtract", "add") and not vector.any()):
            steps.append((kind, (Earlier(len(steps) - 1) if steps else x, _as_channels(vector, x)), {}))
    return steps


def _flash(q, k, v, dropout=0.0, causal=False, attn_mask=None, scale=None, **_):
    if dropout:
        return refused("attention weights are dropped at random", "call module.eval(), or take attention without dropout")
    return [("attention", (q, k, v, attn_mask), {"causal": causal, "scale": scale or 1 / sqrt(q.shape[-1])})]


def _take(x, dimension=0, begin=None, end=None, step=1):
    return [("slice", (x,), {"dimension": dimension % x.ndim, "indices": np.arange(x.shape[dimension])[begin:end:step]})]


def _select(x, dimension, index):
    shape = [size for k, size in enumerate(x.shape) if k != dimension % x.ndim]
    return [*_take(x, dimension, index % x.shape[dimension], index % x.shape[dimension] + 1),
            ("reshape", (FIRST,), {"shape": tuple(shape)})]


def _squeeze(x, dimensions=None):
    which = range(x.ndim) if dimensions is None else [dimensions] if isinstance(dimensions, int) else dimensions
    gone = {k % x.ndim for k in which if x.shape[k] == 1}
    return [("reshape", (x,), {"shape": tuple(size for k, size in enumerate(x.shape) if k not in gone)})]


def _unsqueeze(x, dimension):
    shape = list(x.shape)
    shape.insert(dimension % (x.ndim + 1), 1)
    return [("reshape", (x,), {"shape": tuple(shape)})]


def _transpose(x, a, b):
    order = list(range(x.ndim))
    order[a], order[b] = order[b], order[a]
    return [("permute", (x,), {"order": tuple(order)})]


def _flip(x, dimensions):
    steps = []
    for k in dimensions:
        steps.append(("axis_map", (Earlier(len(steps) - 1) if steps else x,),
                      {"dimension": k % x.ndim, "matrix": np.eye(x.shape[k])[::-1].copy()}))
    return steps


def _roll(x, shifts, dimensions):
    steps = []
    for shift, k in zip(shifts, dimensions):
        matrix = np.roll(np.eye(x.shape[k]), shift, 0)
        steps.append(("axis_map", (Earlier(len(steps) - 1) if steps else x,), {"dimension": k % x.ndim, "matrix": matrix}))
    return steps


def _masked_fill(x, mask, value):
    return [("where", (mask, value, x), {})]


def _softmax(x, dimension, *_):
    return [("softmax", (x,), {"dimension": dimension % x.ndim})]


def _native_dropout(x, rate, train):
    return [("dropout", (x,), {"rate": rate if train else 0.0})]


def _index_select(x, dimension, index):
    return [("slice", (x,), {"dimension": dimension % x.ndim, "indices": index.numpy()})]


def _max_pool(*_, **__):
    return refused("a maximum over positions has no limit in closed form", "use average pooling (nn.AvgPool2d, strides of convolutions)")


def _repeat(x, repeats):
    shape = (1,) * (len(repeats) - x.ndim) + tuple(x.shape)
    if any(size != 1 and count != 1 for size, count in zip(shape, repeats)):
        return refused("values are repeated along a dimension that they have", "repeat along a new dimension (expand)")
    return [("reshape", (x,), {"shape": shape}), ("expand", (FIRST,), {"shape": tuple(s * r for s, r in zip(shape, repeats))})]


STEPS: dict[str, Callable[..., list[Step]]] = {
    "mm": _mm, "bmm": _bmm, "mv": _matvec, "dot": _matvec, "addmm": _addmm, "baddbmm": _baddbmm, "convolution": _convolution,
    "addmv": lambda c, a, b, beta=1, alpha=1: [*_matvec(a, b), ("add", (FIRST, c), {})],
    "avg_pool1d": _average_pool(1), "avg_pool2d": _average_pool(2), "avg_pool3d": _average_pool(3),
    "_adaptive_avg_pool2d": _adaptive, "_adaptive_avg_pool3d": _adaptive, "adaptive_avg_pool1d": _adaptive,
    "upsample_nearest1d": _resize(False), "upsample_nearest2d": _resize(False), "upsample_nearest3d": _resize(False),
    "upsample_linear1d": _resize(True), "upsample_bilinear2d": _resize(True), "upsample_trilinear3d": _resize(True),
    "constant_pad_nd": _pad("constant"), "reflection_pad1d": _pad("reflect"), "reflection_pad2d": _pad("reflect"),
    "reflection_pad3d": _pad("reflect"), "replication_pad1d": _pad("replicate"), "replication_pad2d": _pad("replicate"),
    "replication_pad3d": _pad("replicate"), "mean": _mean("mean"), "sum": _mean("sum"), "var": _variance(1), "std": _variance(0.5),
    "amax": _mean("max"), "native_layer_norm": _layer_norm, "_fused_rms_norm": _rms_norm, "native_group_norm": _group_norm,
    "native_batch_norm": _batch_norm, "_native_batch_norm_legit_no_training": lambda x, w, b, m, v, mom, eps: _batch_norm(
        x, w, b, m, v, False, mom, eps), "_native_batch_norm_legit": _batch_norm,
    "_batch_norm_with_update": lambda x, *_, **__: _batch_norm(x, None, None, None, None, True, 0, 0),
    "_scaled_dot_product_flash_attention_for_cpu": _flash, "slice": _take, "select": _select, "squeeze": _squeeze, "unsqueeze": _unsqueeze,
    "transpose": _transpose, "t": lambda x: _transpose(x, 0, 1) if x.ndim == 2 else [("reshape", (x,), {"shape": tuple(x.shape)})],
    "permute": lambda x, order: [("permute", (x,), {"order": tuple(k % x.ndim for k in order)})], "flip": _flip, "roll": _roll,
    "expand": lambda x, shape, implicit=False: [("expand", (x,), {"shape": tuple(
        x.shape[k - len(shape)] if size == -1 else size for k, size in enumerate(shape))})],
    "masked_fill": _masked_fill, "where": lambda c, a, b: [("where", (c, a, b), {})], "_softmax": _softmax, "_safe_softmax": _softmax,
    "native_dropout": _native_dropout, "index_select": _index_select, "embedding": lambda w, x, *_, **__: [("embedding", (w, x), {})],
    "cat": lambda parts, dimension=0: [("concat", tuple(parts), {"dimension": dimension % parts[0].ndim})], "repeat": _repeat,
    "max_pool2d_with_indices": _max_pool, "max_pool3d_with_indices": _max_pool, "max_pool1d": _max_pool,
    "max_pool1d_with_indices": _max_pool,
    "_adaptive_max_pool2d": _max_pool, "adaptive_max_pool2d": _max_pool, "adaptive_max_pool1d": _max_pool, "max": _max_pool,
    "_log_softmax": lambda *_: refused("log-softmax couples all channels", "leave it out and take the logits (outputs)"),
    "native_channel_shuffle": lambda x, groups: refused("channels of groups are shuffled", "use one group"),
    "pixel_shuffle": lambda x, factor: refused("channels become positions (pixel shuffle)", "use a transposed convolution"),
    "stack": lambda parts, dimension=0: _stack(parts, dimension), "_prelu_kernel": lambda x, weight: _prelu(x, weight),
    "glu": lambda x, dimension=-1: _glu(x, dimension),
    "linalg_vector_norm": lambda *_, **__: refused("the length of a vector of channels grows with their number", "use an RMS norm"),
}


def _glu(x, dimension=-1):
    half, k = x.shape[dimension] // 2, dimension % x.ndim
    return [("slice", (x,), {"dimension": k, "indices": np.arange(half)}),
            ("slice", (x,), {"dimension": k, "indices": np.arange(half, 2 * half)}),
            ("elementwise", (Earlier(1),), {"function": logistic, "name": "sigmoid"}), ("multiply", (FIRST, Earlier(2)), {})]


def _stack(parts, dimension):
    k = dimension % (parts[0].ndim + 1)
    steps = [("reshape", (part,), {"shape": (*part.shape[:k], 1, *part.shape[k:])}) for part in parts]
    return [*steps, ("concat", tuple(Earlier(j) for j in range(len(parts))), {"dimension": k})]


def _prelu(x, weight):
    slopes = weight.detach().numpy().ravel()
    if np.ptp(slopes) > 0:
        return refused("PReLU has a slope for each channel", "use one slope, or LeakyReLU")
    slope = float(slopes[0])
    return [("elementwise", (x,), {"function": lambda z: np.where(z > 0, z, slope * z), "name": "prelu"})]
