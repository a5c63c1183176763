"""ONNX's operations as those of _trace."""

from __future__ import annotations

from math import sqrt
from typing import Any, Callable

import numpy as np

from . import functions
from ._aten import UNARY, WITH_PARAMETERS
from ._matrices import average_windows, padded, resized
from ._steps import FIRST, Earlier, Step, refused


class Call:
    """A node with its attributes, and the values of its inputs."""

    def __init__(self, node: Any, values: dict[str, np.ndarray]) -> None:
        from onnx import helper

        self.names, self.values, self.outputs = list(node.input), values, list(node.output)
        self.kind = node.op_type
        self.attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}

    def get(self, name: str, default: Any = None) -> Any:
        value = self.attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    def has(self, k: int) -> bool:
        return len(self.names) > k and self.names[k] != ""

    def value(self, k: int) -> np.ndarray | None:
        return np.asarray(self.values[self.names[k]]) if self.has(k) else None

    def name(self, k: int) -> str | None:
        return self.names[k] if self.has(k) else None

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.values[self.names[0]].shape)

    def numbers(self, attribute: str, k: int, default: Any = None) -> Any:
        """A list that older files have as an attribute, and newer ones as an input."""
        value = self.value(k)
        return self.get(attribute, default) if value is None else [int(number) for number in value.ravel()]

    def arranged(self, shape: tuple[int, ...]) -> np.ndarray:
        """The first input as the operation arranges it."""
        first = self.value(0)
        if self.kind == "Transpose":
            return np.transpose(first, self.get("perm"))
        return np.broadcast_to(first, shape) if self.kind == "Expand" else first.reshape(shape)


def _function(function):
    return lambda call: [("elementwise", (call.name(0),), {"function": function, "name": call.kind})]


def _made(make):
    return lambda call: [("elementwise", (call.name(0),), {"function": make(call), "name": call.kind})]


def _binary(kind):
    return lambda call: [(kind, (call.name(0), call.name(1)), {})]


def _gemm(call):
    a, b = call.name(0), call.name(1)
    contracting = ((0 if call.get("transA", 0) else 1,), (1 if call.get("transB", 0) else 0,))
    steps = [("contract", (a, b), {"batch": ((), ()), "contracting": contracting})]
    if call.get("alpha", 1.0) != 1.0:
        steps.append(("multiply", (FIRST, float(call.get("alpha"))), {}))
    if call.has(2):
        bias = call.name(2) if call.get("beta", 1.0) == 1.0 else call.value(2) * call.get("beta")
        steps.append(("add", (Earlier(len(steps) - 1), bias), {}))
    return steps


def _matmul(call):
    a, b = call.value(0).ndim, call.value(1).ndim
    if b <= 2 or a == 1:
        return [("contract", (call.name(0), call.name(1)), {"batch": ((), ()), "contracting": ((a - 1,), (max(b - 2, 0),))})]
    if a == 2:
        steps = [("contract", (call.name(0), call.name(1)), {"batch": ((), ()), "contracting": ((1,), (b - 2,))})]
        return [*steps, ("permute", (FIRST,), {"order": (*range(1, b - 1), 0, b - 1)})]
    batch = np.broadcast_shapes(call.value(0).shape[:-2], call.value(1).shape[:-2])
    steps, read = [], []
    for k, rank in ((0, a), (1, b)):
        wanted = (*batch, *call.value(k).shape[-2:])
        read.append(call.name(k))
        if call.value(k).shape != wanted:
            steps.append(("expand", (call.name(k),), {"shape": wanted}))
            read[-1] = Earlier(len(steps) - 1)
    over = tuple(range(len(batch)))
    return [*steps, ("contract", tuple(read), {"batch": (over, over), "contracting": ((len(batch) + 1,), (len(batch),))})]


def _conv(call):
    weight = call.value(1)
    axes = weight.ndim - 2
    strides, dilations = (list(call.get(name) or [1] * axes) for name in ("strides", "dilations"))
    pads = list(call.get("pads") or [0] * (2 * axes))
    transposed = call.kind == "ConvTranspose"
    extra = list(call.get("output_padding") or [0] * axes)
    pads = [pads[:axes], pads[axes:]]
    auto = call.get("auto_pad", "NOTSET")
    if auto.startswith("SAME"):
        if transposed:
            return refused("a transposed convolution pads by itself (auto_pad)", "write pads")
        pads = _same(call.shape[2:], weight.shape[2:], strides, dilations, auto == "SAME_UPPER")
    if transposed and call.get("output_shape"):
        return refused("a transposed convolution is given its output's shape", "write pads")
    return [("convolution", (call.name(0), call.name(1), call.name(2)), {
        "strides": strides, "dilations": dilations, "pads": pads, "groups": call.get("group", 1), "transposed": transposed,
        "output_padding": extra})]


def _same(sizes, windows, strides, dilations, more_behind):
    before, behind = [], []
    for size, window, stride, dilation in zip(sizes, windows, strides, dilations):
        total = max((-(-size // stride) - 1) * stride + dilation * (window - 1) + 1 - size, 0)
        small, large = total // 2, total - total // 2
        before.append(small if more_behind else large)
        behind.append(large if more_behind else small)
    return [before, behind]


def _along(call, matrices, first=None):
    """Maps along the last dimensions."""
    first, steps = call.value(0).ndim - len(matrices) if first is None else first, []
    for k, matrix in enumerate(matrices):
        if matrix is not None:
            steps.append(("axis_map", (Earlier(len(steps) - 1) if steps else call.name(0),), {"dimension": first + k, "matrix": matrix}))
    return steps or [("reshape", (call.name(0),), {"shape": call.shape})]


def _average_pool(call):
    window = call.get("kernel_shape")
    axes, sizes = len(window), call.shape[2:]
    strides, pads = list(call.get("strides") or [1] * axes), list(call.get("pads") or [0] * (2 * axes))
    before, behind = pads[:axes], pads[axes:]
    if call.get("auto_pad", "NOTSET").startswith("SAME"):
        before, behind = _same(sizes, window, strides, [1] * axes, call.get("auto_pad") == "SAME_UPPER")
    count = bool(call.get("count_include_pad", 0))
    return _along(call, [average_windows(sizes[k], window[k], strides[k], (before[k], behind[k]), count, bool(call.get("ceil_mode", 0)))
                         for k in range(axes)])


def _global_pool(call):
    return [("mean", (call.name(0),), {"dimensions": tuple(range(2, len(call.shape))), "keep": True})]


def _pad(call):
    pads, mode = call.numbers("pads", 1), call.get("mode", "constant")
    rank = len(call.shape)
    axes = [int(k) % rank for k in call.value(3)] if call.has(3) else list(range(rank))
    filler = call.value(2) if call.has(2) else call.get("value", 0.0)
    if mode == "constant" and np.any(filler):
        return refused("values are padded with another constant than 0", "pad with zeros")
    names = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}
    matrices: list[Any] = [None] * rank
    for j, k in enumerate(axes):
        if pads[j] or pads[len(axes) + j]:
            matrices[k] = padded(call.shape[k], pads[j], pads[len(axes) + j], names[mode])
    return _along(call, matrices, 0)


def _resize(call):
    out = call.values[call.outputs[0]].shape
    mode, place = call.get("mode", "nearest"), call.get("coordinate_transformation_mode", "half_pixel")
    if mode not in ("nearest", "linear") or place not in ("asymmetric", "half_pixel", "align_corners", "pytorch_half_pixel"):
        return refused(f"values are resized by {mode} and {place}", "use nearest or linear interpolation")
    return _along(call, [None if size == new else resized(size, new, mode == "linear", place == "align_corners")
                         for size, new in zip(call.shape, out)], 0)


def _shaped(call):
    return [("reshape", (call.name(0),), {"shape": tuple(call.values[call.outputs[0]].shape)})]


def _transpose(call):
    return [("permute", (call.name(0),), {"order": tuple(call.get("perm") or range(len(call.shape))[::-1])})]


def _expand(call):
    return [("expand", (call.name(0),), {"shape": tuple(call.values[call.outputs[0]].shape)})]


def _slice(call):
    starts, ends = call.numbers("starts", 1), call.numbers("ends", 2)
    axes = call.numbers("axes", 3) or list(range(len(starts)))
    strides = call.numbers("steps", 4) or [1] * len(starts)
    steps = []
    for begin, end, axis, step in zip(starts, ends, axes, strides):
        k = axis % len(call.shape)
        end = None if step < 0 and end < -call.shape[k] else end
        steps.append(("slice", (Earlier(len(steps) - 1) if steps else call.name(0),),
                      {"dimension": k, "indices": np.arange(call.shape[k])[begin:end:step]}))
    return steps


def _split(call):
    k = call.get("axis", 0) % len(call.shape)
    parts, first = [], 0
    for name in call.outputs:
        size = call.values[name].shape[k]
        parts.append([("slice", (call.name(0),), {"dimension": k, "indices": np.arange(first, first + size)})])
        first += size
    return parts


def _gather(call):
    indices, k = call.value(1), call.get("axis", 0)
    if call.values[call.names[0]].dtype.kind == "f" and call.value(1).dtype.kind in "iu" and k == 0 and indices.ndim == 2:
        return [("embedding", (call.name(0), call.name(1)), {})]
    k %= len(call.shape)
    steps = [("slice", (call.name(0),), {"dimension": k, "indices": indices.ravel() % call.shape[k]})]
    return steps if indices.ndim == 1 else [*steps, ("reshape", (FIRST,), {"shape": tuple(call.values[call.outputs[0]].shape)})]


def _reduced(kind):
    def steps(call):
        axes = call.numbers("axes", 1) or list(range(len(call.shape)))
        return [(kind, (call.name(0),), {"dimensions": tuple(k % len(call.shape) for k in axes), "keep": bool(call.get("keepdims", 1))})]
    return steps


def _layer_norm(kind):
    def steps(call):
        rank = len(call.shape)
        dimensions = tuple(range(call.get("axis", -1) % rank, rank))
        return [(kind, (call.name(0), call.name(1), *([call.name(2)] if kind == "layer_norm" else [])),
                 {"dimensions": dimensions, "epsilon": call.get("epsilon", 1e-5)})]
    return steps


def _group_norm(call):
    rank, channels = len(call.shape), call.shape[1]
    gain, shift = (_of_channels(call, k, channels, rank) for k in (1, 2))
    return [("group_norm", (call.name(0), gain, shift), {"groups": call.get("num_groups"), "epsilon": call.get("epsilon", 1e-5)})]


def _of_channels(call, k, channels, rank):
    value = call.value(k)
    return (np.repeat(value, channels // value.size) if value.size != channels else value).reshape(1, -1, *(1,) * (rank - 2))


def _instance_norm(call):
    return [("group_of_norm", (call.name(0),), {"epsilon": call.get("epsilon", 1e-5)})]


def _batch_norm(call):
    if call.get("training_mode", 0):
        return refused("batch norm in training makes of an input what depends on all inputs of its batch", "export the model for inference")
    rank, steps = len(call.shape), []
    gain, shift, mean, variance = (call.value(k).astype(float) for k in (1, 2, 3, 4))
    factor = gain / np.sqrt(variance + call.get("epsilon", 1e-5))
    for kind, vector, neutral in (("multiply", factor, 1.0), ("add", shift - mean * factor, 0.0)):
        if np.any(vector != neutral):
            steps.append((kind, (Earlier(len(steps) - 1) if steps else call.name(0), vector.reshape(1, -1, *(1,) * (rank - 2))), {}))
    return steps or [("reshape", (call.name(0),), {"shape": call.shape})]


def _einsum(call):
    """Products of two tensors without repeated letters in one of them."""
    inputs, _, out = call.get("equation").replace(" ", "").partition("->")
    a, _, b = inputs.partition(",")
    if not out or not b or "." in inputs or any(len(set(part)) != len(part) for part in (a, b)):
        return refused(f"the sum {call.get('equation')!r}", "write it as matrix products")
    batch = [letter for letter in a if letter in b and letter in out]
    over = [letter for letter in a if letter in b and letter not in out]
    order = batch + [x for x in a if x not in b] + [x for x in b if x not in a]
    if set(order) != set(out):
        return refused(f"the sum {call.get('equation')!r}", "write it as matrix products")
    index = [tuple(part.index(x) for x in batch) for part in (a, b)], [tuple(part.index(x) for x in over) for part in (a, b)]
    return [("contract", (call.name(0), call.name(1)), {"batch": tuple(index[0]), "contracting": tuple(index[1])}),
            ("permute", (FIRST,), {"order": tuple(order.index(x) for x in out)})]


def _attention(call):
    if call.value(0).ndim != 4 or any(call.has(k) for k in (4, 5)) or call.get("softcap", 0.0):
        return refused("attention of three dimensions, with a cache, or with a soft cap",
                       "write it with dimensions [n, heads, positions, channels]")
    scale = call.get("scale") or 1 / sqrt(call.shape[-1])
    return [("attention", (call.name(0), call.name(1), call.name(2), call.value(3)),
             {"causal": bool(call.get("is_causal", 0)), "scale": scale})]


def _softmax(call):
    return [("softmax", (call.name(0),), {"dimension": call.get("axis", -1) % len(call.shape)})]


def _clip(call):
    low = call.get("min") if not call.has(1) else float(call.value(1))
    high = call.get("max") if not call.has(2) else float(call.value(2))
    return [("elementwise", (call.name(0),), {"function": lambda z: np.clip(z, low, high), "name": "clip"})]


def _prelu(call):
    slopes = call.value(1)
    if np.ptp(slopes) > 0:
        return refused("PReLU has a slope for each channel", "use one slope, or LeakyReLU")
    slope = float(slopes.ravel()[0])
    return [("elementwise", (call.name(0),), {"function": lambda z: np.where(z > 0, z, slope * z), "name": "prelu"})]


def _concat(call):
    return [("concat", tuple(call.names), {"dimension": call.get("axis") % len(call.shape)})]


def _compared(compare):
    def steps(call):
        other = call.value(1)
        if np.ptp(other) > 0:
            return refused("values of the network are compared", "use a product with a gate")
        number = float(other.ravel()[0])
        return [("elementwise", (call.name(0),), {"function": lambda z: compare(z, number) * 1.0, "name": call.kind})]
    return steps


_MAXIMUM = refused("a maximum over positions has no limit in closed form", "use average pooling")
_UNARY = {"Relu": "relu", "Tanh": "tanh", "Sigmoid": "sigmoid", "Erf": "erf", "Sin": "sin", "Cos": "cos", "Exp": "exp", "Abs": "abs",
          "Neg": "neg",
          "Sqrt": "sqrt", "Reciprocal": "reciprocal", "Mish": "mish", "HardSwish": "hardswish", "Softsign": "softsign", "Sign": "sign",
          "Log": "log", "Sinh": "sinh", "Cosh": "cosh"}

STEPS: dict[str, Callable[[Call], list[Any]]] = {
    **{name: _function(UNARY[known]) for name, known in _UNARY.items()},
    **{name: _binary(kind) for name, kind in {"Add": "add", "Sub": "subtract", "Mul": "multiply", "Div": "divide", "Pow": "power",
                                              "Max": "maximum", "Min": "minimum"}.items()},
    **{name: _compared(compare) for name, compare in {"Greater": np.greater, "Less": np.less, "GreaterOrEqual": np.greater_equal,
                                                      "LessOrEqual": np.less_equal}.items()},
    "Softplus": _made(lambda call: WITH_PARAMETERS["softplus"]()),
    "Gelu": _made(lambda call: WITH_PARAMETERS["gelu"](call.get("approximate", "none"))),
    "LeakyRelu": _made(lambda call: WITH_PARAMETERS["leaky_relu"](call.get("alpha", 0.01))),
    "Elu": _made(lambda call: WITH_PARAMETERS["elu"](call.get("alpha", 1.0))), "Selu": _function(functions.selu),
    "Celu": _made(lambda call: WITH_PARAMETERS["celu"](call.get("alpha", 1.0))),
    "Swish": _made(lambda call: lambda z, a=call.get("alpha", 1.0): z * UNARY["sigmoid"](a * z)),
    "HardSigmoid": _made(lambda call: lambda z, a=call.get("alpha", 0.2), b=call.get("beta", 0.5): np.clip(a * z + b, 0, 1)),
    "Clip": _clip, "PRelu": _prelu, "Gemm": _gemm, "MatMul": _matmul, "Conv": _conv, "ConvTranspose": _conv, "AveragePool": _average_pool,
    "GlobalAveragePool": _global_pool, "Pad": _pad, "Resize": _resize, "Upsample": _resize, "Reshape": _shaped, "Flatten": _shaped,
    "Squeeze": _shaped, "Unsqueeze": _shaped, "Transpose": _transpose, "Expand": _expand, "Slice": _slice, "Split": _split,
    "Gather": _gather,
    "Concat": _concat, "ReduceMean": _reduced("mean"), "ReduceSum": _reduced("sum"), "ReduceMax": _reduced("max"), "Softmax": _softmax,
    "LayerNormalization": _layer_norm("layer_norm"), "RMSNormalization": _layer_norm("rms_norm"), "GroupNormalization": _group_norm,
    "InstanceNormalization": _instance_norm, "BatchNormalization": _batch_norm, "Einsum": _einsum, "Attention": _attention,
    "Where": lambda call: [("where", (call.name(0), call.name(1), call.name(2)), {})], "MaxPool": lambda call: _MAXIMUM,
    "GlobalMaxPool": lambda call: _MAXIMUM, "LogSoftmax": lambda call: refused("log-softmax couples all channels",
                                                                               "take the logits (outputs)"),
    "Sum": lambda call: [("add", (call.name(0), call.name(1)), {})]
    if len(call.names) == 2 else refused("a sum of several", "add two at a time"),
}

__all__ = ["STEPS", "Call", "Step"]
