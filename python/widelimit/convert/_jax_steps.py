"""JAX's primitives as operations of _trace. Every function takes the parameters of an equation and its inputs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable

import numpy as np

from ._aten import UNARY
from ._matrices import average_windows, padded
from ._steps import FIRST, Earlier, refused
from ._trace import Constant


def _shape(value):
    return value.values.shape if isinstance(value, Constant) else value.shape


def _permuted(value, order):
    if isinstance(value, Constant):
        parameter = value.parameter and replace(value.parameter, entries=np.transpose(value.parameter.entries, order))
        return Constant(np.transpose(value.values, order), parameter)
    return None


def _dot(given, inputs):
    (over_a, over_b), (batch_a, batch_b) = given["dimension_numbers"]
    return [("contract", tuple(inputs), {"batch": (tuple(batch_a), tuple(batch_b)), "contracting": (tuple(over_a), tuple(over_b))})]


def _conv(given, inputs):
    """Channels are brought behind the batch and back; inputs with zeros between are those of a transposed convolution."""
    x, weight = inputs
    numbers, steps = given["dimension_numbers"], []
    if not isinstance(weight, Constant) or given["batch_group_count"] != 1:
        return refused("a convolution by values of the network", "use attention or a product")
    steps.append(("permute", (x,), {"order": tuple(numbers.lhs_spec)}))
    for k, spread in enumerate(given["lhs_dilation"]):
        size = _shape(x)[numbers.lhs_spec[2 + k]]
        if spread > 1:
            matrix = np.zeros(((size - 1) * spread + 1, size))
            matrix[np.arange(size) * spread, np.arange(size)] = 1
            steps.append(("axis_map", (Earlier(len(steps) - 1),), {"dimension": 2 + k, "matrix": matrix}))
    pads = [list(side) for side in zip(*given["padding"])]
    for k, (before, after) in enumerate(given["padding"]):
        if before < 0 or after < 0:
            return refused("a convolution with negative padding", "cut the inputs")
    steps.append(("convolution", (Earlier(len(steps) - 1), _permuted(weight, numbers.rhs_spec)), {
        "strides": list(given["window_strides"]), "pads": pads or [[], []], "dilations": list(given["rhs_dilation"]),
        "groups": given["feature_group_count"]}))
    return [*steps, ("permute", (Earlier(len(steps) - 1),), {"order": tuple(int(k) for k in np.argsort(numbers.out_spec))})]


def _function(function):
    return lambda given, inputs: [("elementwise", (inputs[0],), {"function": function, "name": "function"})]


def _binary(kind):
    return lambda given, inputs: [(kind, tuple(inputs), {})]


def _integer_power(given, inputs):
    exponent = given["y"]
    return [("power", (inputs[0], float(exponent)), {})]


def _broadcast(given, inputs):
    shape, places = tuple(given["shape"]), given["broadcast_dimensions"]
    before = [1] * len(shape)
    for k, size in zip(places, _shape(inputs[0])):
        before[k] = size
    return [("reshape", (inputs[0],), {"shape": tuple(before)}), ("expand", (FIRST,), {"shape": shape})]


def _reduced(kind):
    def steps(given, inputs):
        return [(kind, (inputs[0],), {"dimensions": tuple(given["axes"]), "keep": False})]
    return steps


def _slice(given, inputs):
    steps = []
    strides = given["strides"] or [1] * len(given["start_indices"])
    for k, (begin, end, step) in enumerate(zip(given["start_indices"], given["limit_indices"], strides)):
        size = _shape(inputs[0])[k]
        if (begin, end, step) != (0, size, 1):
            steps.append(("slice", (Earlier(len(steps) - 1) if steps else inputs[0],),
                          {"dimension": k, "indices": np.arange(size)[begin:end:step]}))
    return steps or [("reshape", (inputs[0],), {"shape": tuple(_shape(inputs[0]))})]


def _split(given, inputs):
    parts, first = [], 0
    for size in given["sizes"]:
        parts.append([("slice", (inputs[0],), {"dimension": given["axis"], "indices": np.arange(first, first + size)})])
        first += size
    return parts


def _mapped(value, matrices):
    steps = []
    for k, matrix in enumerate(matrices):
        if matrix is not None:
            steps.append(("axis_map", (Earlier(len(steps) - 1) if steps else value,), {"dimension": k, "matrix": matrix}))
    return steps or [("reshape", (value,), {"shape": tuple(_shape(value))})]


def _pad(given, inputs):
    if np.any(inputs[1].values):
        return refused("values are padded with another constant than 0", "pad with zeros")
    matrices = []
    for size, (before, after, inside) in zip(_shape(inputs[0]), given["padding_config"]):
        matrix = padded((size - 1) * (inside + 1) + 1, before, after)
        matrices.append(matrix[:, np.arange(size) * (inside + 1)] if (before, after, inside) != (0, 0, 0) else None)
    return _mapped(inputs[0], matrices)


def _window_sum(given, inputs):
    matrices = []
    for k, (size, window) in enumerate(zip(_shape(inputs[0]), given["window_dimensions"])):
        matrix = window * average_windows(size, window, given["window_strides"][k], tuple(given["padding"][k]))
        matrices.append(None if window == 1 and len(matrix) == size else matrix)
    return _mapped(inputs[0], matrices)


def _concatenate(given, inputs):
    return [("concat", tuple(inputs), {"dimension": given["dimension"]})]


def _reversed(given, inputs):
    return _mapped(inputs[0], [np.eye(size)[::-1].copy() if k in given["dimensions"] else None for k, size in enumerate(_shape(inputs[0]))])


def _shaped(given, inputs):
    return [("reshape", (inputs[0],), {"shape": tuple(given["new_sizes"])})]


def _squeeze(given, inputs):
    gone = {k % len(_shape(inputs[0])) for k in given["dimensions"]}
    return [("reshape", (inputs[0],), {"shape": tuple(size for k, size in enumerate(_shape(inputs[0])) if k not in gone)})]


def _select(given, inputs):
    condition, a, b = inputs[:3]
    return [("where", (condition, b, a), {})]


def _compared(compare):
    def steps(given, inputs):
        a, b = inputs
        if a is b:  # Whether it is NaN.
            return [("elementwise", (a,), {"function": lambda z: compare(z, z) * 1.0, "name": "comparison"})]
        if isinstance(b, Constant) and b.values.size and np.ptp(b.values) == 0:
            number = float(b.values.ravel()[0])
            return [("elementwise", (a,), {"function": lambda z: compare(z, number) * 1.0, "name": "comparison"})]
        return refused("two values of the network are compared", "use a product with a gate")
    return steps


_MAXIMUM = refused("a maximum over positions has no limit in closed form", "use average pooling")

STEPS: dict[str, Callable[[dict[str, Any], list[Any]], list[Any]]] = {
    **{name: _function(UNARY[known]) for name, known in {
        "tanh": "tanh", "logistic": "sigmoid", "erf": "erf", "erfc": "erfc", "sin": "sin", "cos": "cos", "exp": "exp", "abs": "abs",
        "neg": "neg",
        "sqrt": "sqrt", "rsqrt": "rsqrt", "square": "square", "sign": "sign", "log": "log", "log1p": "log1p", "expm1": "expm1",
        "sinh": "sinh", "cosh": "cosh", "atan": "atan"}.items()},
    "exp2": _function(np.exp2), **{name: _binary(kind) for name, kind in {
        "add": "add", "add_any": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "max": "maximum", "min": "minimum",
        "pow": "power"}.items()},
    "integer_pow": _integer_power, "dot_general": _dot, "conv_general_dilated": _conv, "broadcast_in_dim": _broadcast, "reshape": _shaped,
    "transpose": lambda given, inputs: [("permute", (inputs[0],), {"order": tuple(given["permutation"])})], "squeeze": _squeeze,
    "reduce_sum": _reduced("sum"), "reduce_max": _reduced("max"), "slice": _slice, "split": _split, "pad": _pad, "rev": _reversed,
    "concatenate": _concatenate, "select_n": _select, "reduce_window_sum": _window_sum, "reduce_window_max": lambda given, inputs: _MAXIMUM,
    "gt": _compared(np.greater), "ge": _compared(np.greater_equal), "lt": _compared(np.less), "le": _compared(np.less_equal),
    "ne": _compared(np.not_equal),
    "eq": _compared(np.equal),
    "gather": lambda given, inputs: refused("values are looked up by indices", "slice by constants; for an embedding of indices pass "
                                                                               "one-hot "
                                            "vectors to nnx.Linear(use_bias=False)"),
    "is_finite": lambda given, inputs: refused("values are tested", "leave the test out"),
}
