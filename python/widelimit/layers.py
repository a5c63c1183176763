"""Layers: what networks are made of.

Every function returns a Layer, an immutable value. Inputs are [n, spatial..., C]; formulas, sources and ranges stand in
docs/layers.md, the fields of network files in docs/network-format.md. Variances are >= 0 and finite; a value out of range
raises NetworkError, what does not fit the layers in front of it does so when a kernel is computed. K and T are the NNGP and
the NTK of two positions, K' and T' those behind the layer.

Branch is the type of what sum() and product() take: a list of layers, or (scale, list of layers).
"""

from __future__ import annotations

import copyreg
import json
from typing import Any, Callable, Iterable, Sequence, Tuple, Union

import numpy as np

from . import _core
from ._arrays import check_callable
from ._jax import in_double

__all__ = [
    "Branch", "attention", "average_pool", "concat", "concat_positions", "conv", "conv_transpose", "dense", "dropout",
    "elementwise", "elementwise_dual", "erf", "flatten", "from_fields", "gelu", "global_average_pool", "global_sum_pool",
    "layer_norm", "leaky_relu", "local_conv", "nonlinearity", "pair", "product", "relu", "repeat", "rms_norm", "sum",
    "sum_pool", "tanh",
]

# Layers one after another, or a factor and these.
Branch = Union[Sequence[_core.Layer], Tuple[float, Sequence[_core.Layer]]]


def _plain(value):
    """Numbers and arrays of NumPy and of those like it, as JSON takes them."""
    if hasattr(value, "__array__"):
        return np.asarray(value).tolist()
    raise TypeError(f"expected numbers, texts and lists of them, got a {type(value).__name__}")


def _check_finite(kind, field, value):
    """That numbers of a field are such as JSON has."""
    for number in value if isinstance(value, (list, tuple)) else [value]:
        if isinstance(number, (float, np.floating)) and not np.isfinite(number):
            raise _core.ArgumentError(f"{kind}: {field}: expected finite numbers, got {value}")


def _layer(kind, **fields):
    """The layer that a network file describes; fields that are None are left out."""
    given = {name: value for name, value in fields.items() if value is not None}
    for field, value in given.items():
        _check_finite(kind, field, value)
    return _core.layer_from_json(json.dumps({"layer": kind, **given}, default=_plain))


def _layer_of(text):
    return _core.Network.from_json(text).layers[0]


def _network_of(text):
    return _core.Network.from_json(text)


def _json_of(network):
    """For pickles; layers of a user's functions have none."""
    try:
        return (network.to_json(),)
    except _core.Error as error:
        raise TypeError(f"layers made of functions cannot be pickled or copied: {error}") from error


copyreg.pickle(_core.Layer, lambda layer: (_layer_of, _json_of(_core.Network([layer]))))
copyreg.pickle(_core.Network, lambda network: (_network_of, _json_of(network)))


def _keeping(layer, *owners):
    """The layer, holding what the layers that it was made of hold: the functions of users' layers."""
    held = tuple(function for owner in owners for function in getattr(owner, "_functions", ()))
    if held:
        layer._functions = held
    return layer


def _calling(make, kind, functions, *options):
    """A layer that calls functions (None among them what there is not), made by the compiled half."""
    held = [None if function is None else _core.HeldFunction(function) for function in functions]
    layer = make(kind, *held, *options)
    layer._functions = tuple(function for function in held if function is not None)
    return layer


def dense(weight_variance: float = 1.0, bias_variance: float = 0.0) -> _core.Layer:
    """At every position: K' = weight_variance K + bias_variance, T' = K' + weight_variance T. [..., C] becomes
    [..., width]."""
    return _layer("dense", weight_variance=weight_variance, bias_variance=bias_variance)


def conv(filter: Sequence[int], strides: Sequence[int] | None = None, padding: str = "same",
         weight_variance: float = 1.0, bias_variance: float = 0.0) -> _core.Layer:
    """A convolution; filter and strides: one size >= 1 an axis, strides 1 if left out; padding: 'same', 'valid' or
    'circular'. K' = weight_variance times the mean of K over the filter's offsets, plus bias_variance. Of n positions along
    an axis ceil(n / stride) are left, with 'valid' (n - size) // stride + 1."""
    return _convolution("conv", filter, strides, padding, weight_variance, bias_variance)


def local_conv(filter: Sequence[int], strides: Sequence[int] | None = None, padding: str = "same",
               weight_variance: float = 1.0, bias_variance: float = 0.0) -> _core.Layer:
    """A convolution whose weights are not shared between positions: K' is that of conv() at equal positions, 0 elsewhere.
    Arguments as there."""
    return _convolution("local_conv", filter, strides, padding, weight_variance, bias_variance)


def conv_transpose(filter: Sequence[int], strides: Sequence[int] | None = None, padding: str = "same",
                   weight_variance: float = 1.0, bias_variance: float = 0.0) -> _core.Layer:
    """A transposed convolution: positions grow by the strides. Arguments as those of conv()."""
    return _convolution("conv_transpose", filter, strides, padding, weight_variance, bias_variance)


def _convolution(kind, filter, strides, padding, weight_variance, bias_variance):
    return _layer(kind, filter=list(filter), strides=None if strides is None else list(strides), padding=padding,
                  weight_variance=weight_variance, bias_variance=bias_variance)


def nonlinearity(name: str, **parameters: Any) -> _core.Layer:
    """A nonlinearity of the library by its kind, e.g. nonlinearity('leaky_relu', slope=0.1).

    Kinds, with their parameters: relu, leaky_relu (slope), ab_relu (a, b), abs, sign, gelu, erf (a, b, c, d), tanh, sigmoid,
    sigmoid_like, softplus, silu, sin and cos (a, b, c), rbf (gamma), exp and gaussian (a, b), exp_normalized (gamma, shift),
    gabor, monomial and rectified_monomial and hermite (degree), polynomial (coefficients). NetworkError names the kinds that
    there are, or the parameter.
    """
    return _layer(name, **parameters)


def relu() -> _core.Layer:
    """max(x, 0)"""
    return _layer("relu")


def leaky_relu(slope: float) -> _core.Layer:
    """x for x >= 0, slope x below; slope finite."""
    return _layer("leaky_relu", slope=slope)


def gelu() -> _core.Layer:
    """x Phi(x), Phi the standard normal distribution function."""
    return _layer("gelu")


def erf(a: float = 1.0, b: float = 1.0, c: float = 0.0, d: float = 0.0) -> _core.Layer:
    """a erf(b x + c) + d"""
    return _layer("erf", a=a, b=b, c=c, d=d)


def tanh() -> _core.Layer:
    """tanh(x), by quadrature."""
    return _layer("tanh")


def _real(name, function):
    """The function, computed in double precision, with a check of what it returns."""
    check_callable(name, function)
    computed = in_double(function)
    return lambda *arguments: _real_numbers(name, computed(*arguments))


def _real_numbers(name, result):
    if type(result) is np.ndarray and result.dtype == np.float64:  # Called often: no detours.
        return result
    array = np.asanyarray(result)
    if result is None or isinstance(array, np.ma.MaskedArray):
        got = "None" if result is None else "a numpy.ma.MaskedArray"
    elif array.dtype.kind not in "fiub" and array.dtype.name != "bfloat16":
        got = f"elements of type {array.dtype}"
    else:
        return np.asarray(array, float)
    raise TypeError(f"{name}: expected the function to return an array of real numbers, got {got}")


def elementwise(phi: Callable[[Any], Any], derivative: Callable[[Any], Any] | None = None,
                breakpoints: Iterable[float] = (), kind: str = "elementwise") -> _core.Layer:
    """A nonlinearity of your own; its dual comes by quadrature.

    phi, derivative: functions of NumPy's arrays, or made of JAX's; without `derivative` it is taken from phi by
    differences. They are called thousands of times while tables are made, then seldom. Jumps, kinks and cusps of either
    and of the next two derivatives are looked for, up to |z| = 2000; breakpoints: others, and where there are features
    narrower than a tenth of their distance from 0, which the search may miss. Steps have the derivative 0. Functions
    steeper than |z - b|^0.8 towards a place b, as cube roots and logarithms, have an NNGP and no NTK. ArgumentError for
    functions that are rough, that compute in float32 or less, or that grow faster than a logarithm towards a place, and
    for an NTK that there is not.
    """
    slope = None if derivative is None else _real("elementwise: derivative", derivative)
    return _calling(_core.nonlinearity_from_function, kind, (_real("elementwise: phi", phi), slope),
                    [float(b) for b in breakpoints])


def elementwise_dual(nngp: Callable[[Any, Any, Any], Any], derivative: Callable[[Any, Any, Any], Any] | None = None,
                     kind: str = "elementwise_dual") -> _core.Layer:
    """A nonlinearity of which the dual is known: nngp(p, q, c) = E[phi(u) phi(v)] and derivative(p, q, c) =
    E[phi'(u) phi'(v)] of arrays of variances p, q and covariances c. Without `derivative` there is no NTK.

    Both return arrays of the shape of c, float64, else TypeError or ArgumentError once a kernel is computed."""
    slope = None if derivative is None else _real("elementwise_dual: derivative", derivative)
    return _calling(_core.nonlinearity_from_dual, kind, (_real("elementwise_dual: nngp", nngp), slope))


def pair(transform: Callable[[Any, Any, Any, Any], Any], needs_gaussian: bool = False, leaves: str = "not_gaussian",
         kind: str = "pair") -> _core.Layer:
    """A layer that sees the covariances of a pair of inputs as matrices: transform(nngp, ntk, variance1, variance2) of
    [d, d'] arrays and the positions' variances [d] and [d'] returns the new (nngp, ntk), of the same shapes; ntk is None
    where only the NNGP is computed. Exchanging the inputs must transpose the result.

    needs_gaussian: whether channels in front must be Gaussian. leaves: what they are behind, 'gaussian', 'as_it_was' or
    'not_gaussian'.
    """
    check_callable("pair: transform", transform)

    def called(*arguments):
        parts = transform(*arguments)
        if not isinstance(parts, (tuple, list)):
            return parts
        return tuple(None if part is None else _real_numbers("pair: transform", part) for part in parts)

    return _calling(_core.pair_from_function, kind, (called,), needs_gaussian, leaves)


def average_pool(window: Sequence[int], strides: Sequence[int] | None = None, padding: str = "valid",
                 normalize_edges: bool | None = None) -> _core.Layer:
    """Averages over windows, one size an axis; strides: the window if left out; padding: 'valid', 'same' or 'circular';
    normalize_edges: over those positions of a window that are not padding."""
    return _layer("average_pool", window=list(window), strides=None if strides is None else list(strides),
                  padding=padding, normalize_edges=normalize_edges)


def sum_pool(window: Sequence[int], strides: Sequence[int] | None = None, padding: str = "valid") -> _core.Layer:
    """Sums over windows; arguments as those of average_pool()."""
    return _layer("sum_pool", window=list(window), strides=None if strides is None else list(strides),
                  padding=padding)


def global_average_pool() -> _core.Layer:
    """The mean over all positions: K' = mean over a, c of K[a, c]. [..., C] becomes [C]."""
    return _layer("global_average_pool")


def global_sum_pool() -> _core.Layer:
    """The sum over all positions: K' = sum over a, c of K[a, c]. [..., C] becomes [C]."""
    return _layer("global_sum_pool")


def flatten() -> _core.Layer:
    """Positions become channels: K' = mean over positions a of K[a, a]. [spatial..., C] becomes [C prod(spatial)]."""
    return _layer("flatten")


def layer_norm(axes: Sequence[str | int] = ("channels",), epsilon: float = 1e-12) -> _core.Layer:
    """Layer normalisation over the axes 'channels', or 'channels' and 'space', or spatial axes by number (0, 1, ...);
    epsilon >= 0 is added to the variance."""
    return _layer("layer_norm", axes=list(axes), epsilon=epsilon)


def rms_norm(axes: Sequence[str | int] = ("channels",), epsilon: float = 1e-12) -> _core.Layer:
    """Division by the root mean square over axes as those of layer_norm(); epsilon >= 0 is added to the mean square."""
    return _layer("rms_norm", axes=list(axes), epsilon=epsilon)


def dropout(keep: float) -> _core.Layer:
    """Keeps a unit with probability `keep` in (0, 1]."""
    return _layer("dropout", keep=keep)


def attention(scaling: str = "inverse_width", **fields: Any) -> _core.Layer:
    """Multi-head self-attention with infinitely many heads, e.g. attention(query_key_std=1.2, causal=True).

    scaling                         of logits by the key width: 'inverse_width' or 'inverse_sqrt_width'
    weights                         'softmax' (default), 'softmax1', 'identity', 'relu' or another nonlinearity's kind
    query_key_std                   factor on the logits, 1 if left out
    output_value_variance           of output times value weights, 1; bias_variance: of the output's biases, 0
    query_bias_variance, key_bias_variance   0
    tied                            whether queries and keys share weights; True for 'inverse_width', else False
    causal, prefix, window, mask    which positions see which: not later ones; but all the first so many; closer than so
                                    many; rows of bool
    positions                       {'kind': 'identity' | 'structured' | 'matrix' | 'decay', ...}: random encodings
    rotary, alibi                   {'base': 10000, 'pairs': n}; slope
    samples, seed                   2048, 0: draws of the logits, for softmax with 'inverse_sqrt_width' only, which has no
                                    closed form: kernels come with standard errors

    Ranges and what each field means: docs/network-format.md. NetworkError names the field.
    """
    return _layer("attention", scaling=scaling, **fields)


def from_fields(kind: str, **fields: Any) -> _core.Layer:
    """Any layer of network files by its kind and fields, e.g. from_fields('image_resize', size=[8, 8]). NetworkError names
    the kinds, or the fields of this one, where there is none of that name."""
    return _layer(kind, **fields)


def _branch(branch):
    """A list of layers, or (scale, list of layers)."""
    if isinstance(branch, tuple) and len(branch) == 2 and isinstance(branch[0], (int, float)):
        return float(branch[0]), list(branch[1])
    return 1.0, list(branch)


def sum(*branches: Branch) -> _core.Layer:
    """The sum of branches, each a list of layers or (scale, list of layers); [] is the skip connection."""
    parts = [_branch(branch) for branch in branches]
    return _keeping(_core.sum_of(parts), *(layer for _, inner in parts for layer in inner))


def product(*branches: Branch) -> _core.Layer:
    """The elementwise product of branches, given as in sum()."""
    parts = [_branch(branch) for branch in branches]
    return _keeping(_core.product_of(parts), *(layer for _, inner in parts for layer in inner))


def concat(*branches: tuple[float, Sequence[_core.Layer]]) -> _core.Layer:
    """Channels side by side: branches (share > 0, list of layers); the shares sum to 1."""
    parts = [(float(share), list(inner)) for share, inner in branches]
    return _keeping(_core.concat_of(parts), *(layer for _, inner in parts for layer in inner))


def concat_positions(axis: int, *branches: Sequence[_core.Layer]) -> _core.Layer:
    """Positions of branches, each a list of layers, one behind the other along a spatial axis, 0 the first."""
    parts = [list(branch) for branch in branches]
    return _keeping(_core.concat_positions_of(axis, parts), *(layer for inner in parts for layer in inner))


def repeat(times: int, layers: Sequence[_core.Layer]) -> _core.Layer:
    """The layers `times` times over, with new weights each time."""
    inner = list(layers)
    return _keeping(_core.repeat_of(times, inner), *inner)
