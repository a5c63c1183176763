"""Layers: what networks are made of. There is a function for every kind of network files.

Every function returns a Layer, an immutable value. Inputs are [n, spatial..., C]. K and T are the NNGP and the NTK of two
positions, K' and T' those after the layer; p and q are the variances of the two positions, w and b those of weights and
biases. Variances are >= 0 and finite; a value out of range raises NetworkError, an argument of another kind TypeError, what
does not fit the layers before it NetworkError when a kernel is computed. Nonlinearities have K' = E[phi(u) phi(v)] and
T' = T E[phi'(u) phi'(v)], u and v Gaussian with variances p and q and covariance K, and need Gaussian channels in front.

Sources: docs/theory/kernel-recursion.md, and what each function names; docs/layers.md has all formulas beside each other,
docs/network-format.md the fields of network files.

Branch is the type of what sum() and product() take: a list of layers, or (scale, list of layers).
"""

from __future__ import annotations

import copyreg
import json
from typing import Any, Callable, Iterable, Sequence, Tuple, Union

import numpy as np
from numpy.typing import ArrayLike

from . import _core
from ._arrays import check_callable, numbers, real, whole
from ._html import layer_html, network_html
from ._jax import in_double

__all__ = [
    "Branch", "ab_relu", "abs", "aggregate", "attention", "average_pool", "concat", "concat_positions", "conv",
    "conv_transpose", "cos", "dense", "dropout", "elementwise", "elementwise_dual", "erf", "exp", "exp_normalized", "flatten",
    "from_fields", "gabor", "gaussian", "gelu", "global_average_pool", "global_sum_pool", "hermite", "identity",
    "image_resize", "index", "layer_norm", "leaky_relu", "local_conv", "monomial", "nonlinearity", "pair", "polynomial",
    "positions_map", "product", "rbf", "rectified_monomial", "relu", "repeat", "rms_norm", "sigmoid", "sigmoid_like", "sign",
    "silu", "sin", "slice", "softplus", "sum", "sum_pool", "tanh",
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
    try:
        return _core.layer_from_json(json.dumps({"layer": kind, **given}, default=_plain))
    except _core.NetworkError as error:  # A file's words for where it is.
        text = str(error)
        raise _core.NetworkError(kind + text.removeprefix("layers[0]").replace(".", ": ", 1)
                                 if text.startswith("layers[0].") and not text.startswith("layers[0].layer:")
                                 else text.removeprefix("layers[0]: ").removeprefix("layers[0].")) from None


def _sizes(kind, field, values):
    """Sizes along axes, None among them what is left out."""
    if values is None:
        return None
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise TypeError(f"{kind}: {field}: expected a list of integers, one an axis, got {values!r}; write [{values}] for "
                        f"sequences, [{values}, {values}] for images")
    return list(values)


def _layers_in(name, what, given):
    """Layers in a list. TypeError for anything else."""
    if isinstance(given, _core.Layer):
        raise TypeError(f"{name}: {what}: expected a list of layers, got a Layer; put it into brackets, [layer]")
    if isinstance(given, _core.Network):
        raise TypeError(f"{name}: {what}: expected a list of layers, got a Network; write network.layers")
    if isinstance(given, (str, dict)) or not hasattr(given, "__iter__"):
        raise TypeError(f"{name}: {what}: expected a list of layers, got {given!r}")
    found = list(given)
    for k, layer in enumerate(found):
        if not isinstance(layer, _core.Layer):
            got = f"the function {layer.__name__}; call it" if callable(layer) and hasattr(layer, "__name__") else repr(layer)
            raise TypeError(f"{name}: {what}[{k}]: expected a Layer, got {got}")
    return found


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
_core.Layer._repr_html_ = layer_html
_core.Network._repr_html_ = network_html


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


def dense(weight_variance: float = 1.0, bias_variance: float = 0.0, *, parametrisation: str | None = None,
          input_width: int | None = None, width_scale: float | None = None, zero_biases: bool | None = None) -> _core.Layer:
    """At every position: K' = w K + b, T' = K' + w T. [..., C] becomes [..., width].

    weight_variance, bias_variance   w >= 0 and b >= 0
    parametrisation                  'ntk' (None), or 'standard': T' = (N / s) K + 1 + w T, without the 1 if there are no
                                     biases, with N = input_width, the channels in front, s = width_scale > 0 (1), and
                                     zero_biases: biases that begin at 0 and are trained although b is 0
    Sources: Lee et al. 2018 (arXiv:1711.00165), Jacot et al. 2018 (arXiv:1806.07572); 'standard': Sohl-Dickstein et al. 2020
    (arXiv:2001.07301)."""
    return _layer("dense", weight_variance=weight_variance, bias_variance=bias_variance, parametrisation=parametrisation,
                  input_width=input_width, width_scale=width_scale, zero_biases=zero_biases)


def conv(filter: Sequence[int], strides: Sequence[int] | None = None, padding: str = "same",
         weight_variance: float = 1.0, bias_variance: float = 0.0, *, parametrisation: str | None = None,
         input_width: int | None = None, width_scale: float | None = None, zero_biases: bool | None = None) -> _core.Layer:
    """A convolution: K'[a, c] = (w / F) sum over the filter's F offsets o of K[s a + o, s c + o], plus b; T' = K' + the same
    sum of T.

    filter, strides   one size >= 1 an axis, of one to three axes; strides s, 1 if left out
    padding           'same', 'valid' or 'circular': of n positions along an axis ceil(n / stride) are left, with 'valid'
                      (n - size) // stride + 1. Padded positions count as zeros
    others            as of dense()
    Sources: Novak et al. 2019 (arXiv:1810.05148), Garriga-Alonso et al. 2019 (arXiv:1808.05587)."""
    return _convolution("conv", filter, strides, padding, weight_variance, bias_variance, parametrisation, input_width,
                        width_scale, zero_biases)


def local_conv(filter: Sequence[int], strides: Sequence[int] | None = None, padding: str = "same",
               weight_variance: float = 1.0, bias_variance: float = 0.0, *, parametrisation: str | None = None,
               input_width: int | None = None, width_scale: float | None = None,
               zero_biases: bool | None = None) -> _core.Layer:
    """A convolution whose weights are not shared between positions: K' and T' are those of conv() at equal positions, 0
    elsewhere. Arguments as there. Source: Novak et al. 2019 (arXiv:1810.05148), section 3."""
    return _convolution("local_conv", filter, strides, padding, weight_variance, bias_variance, parametrisation, input_width,
                        width_scale, zero_biases)


def conv_transpose(filter: Sequence[int], strides: Sequence[int] | None = None, padding: str = "same",
                   weight_variance: float = 1.0, bias_variance: float = 0.0, *, parametrisation: str | None = None,
                   input_width: int | None = None, width_scale: float | None = None,
                   zero_biases: bool | None = None) -> _core.Layer:
    """A transposed convolution: every position adds its filter to the positions s a + o, so that sizes grow by the strides;
    K' is conv() of K with positions moved apart by the strides and zeros between them. Arguments as of conv(); borders as in
    jax.lax.conv_transpose. Source: Dumoulin and Visin 2016 (arXiv:1603.07285), chapter 4."""
    return _convolution("conv_transpose", filter, strides, padding, weight_variance, bias_variance, parametrisation,
                        input_width, width_scale, zero_biases)


def _convolution(kind, filter, strides, padding, weight_variance, bias_variance, parametrisation, input_width, width_scale,
                 zero_biases):
    return _layer(kind, filter=_sizes(kind, "filter", filter), strides=_sizes(kind, "strides", strides), padding=padding,
                  weight_variance=weight_variance, bias_variance=bias_variance, parametrisation=parametrisation,
                  input_width=input_width, width_scale=width_scale, zero_biases=zero_biases)


def nonlinearity(name: str, **parameters: Any) -> _core.Layer:
    """A nonlinearity of the library by its kind, e.g. nonlinearity('leaky_relu', slope=0.1): the function of that name, with
    its parameters. NetworkError names the kinds that there are, or the parameter."""
    return _layer(name, **parameters)


def relu() -> _core.Layer:
    """max(x, 0). K' = sqrt(pq) (sin t + (pi - t) cos t) / (2 pi), T' = T (pi - t) / (2 pi), cos t = K / sqrt(pq). Source: Cho
    and Saul 2009, section 2."""
    return _layer("relu")


def leaky_relu(slope: float) -> _core.Layer:
    """x for x >= 0, slope x below; slope finite. Formula as of ab_relu(slope, 1)."""
    return _layer("leaky_relu", slope=slope)


def ab_relu(a: float, b: float) -> _core.Layer:
    """a min(x, 0) + b max(x, 0), a and b finite. With cos t = K / sqrt(pq) and W = (b - a)^2 / (2 pi):
    T' = T D with D = (a^2 + b^2) / 2 - W t, and K' = W sqrt(pq) sin t + D K. Source: Cho and Saul 2009, section 2."""
    return _layer("ab_relu", a=a, b=b)


def abs() -> _core.Layer:
    """|x|. Formula as of ab_relu(-1, 1)."""
    return _layer("abs")


def identity() -> _core.Layer:
    """x: K' = K, T' = T. Gaussian channels in front are none after it; an empty branch of sum() is the skip connection."""
    return _layer("identity")


def sign() -> _core.Layer:
    """sign(x), 0 at 0. K' = (2 / pi) arcsin(K / sqrt(pq)); T' = 0 by convention. Source: Williams 1996, section 3."""
    return _layer("sign")


def gelu() -> _core.Layer:
    """x Phi(x), Phi the standard normal distribution function, not the tanh approximation; closed form. Source: Tsuchida et
    al. 2021 (AAAI), section 3."""
    return _layer("gelu")


def erf(a: float = 1.0, b: float = 1.0, c: float = 0.0, d: float = 0.0) -> _core.Layer:
    """a erf(b x + c) + d, all finite. Of erf(x): K' = (2 / pi) arcsin(2 K / sqrt((1 + 2p)(1 + 2q))),
    T' = (4 / pi) T / sqrt((1 + 2p)(1 + 2q) - 4 K^2). With c an integral over an angle. Source: Williams 1996, section 3."""
    return _layer("erf", a=a, b=b, c=c, d=d)


def sigmoid_like() -> _core.Layer:
    """(erf(x / 2.4020563531719796) + 1) / 2, close to the logistic function; closed form, as of erf()."""
    return _layer("sigmoid_like")


def gabor() -> _core.Layer:
    """exp(-x^2) sin(x), closed form (Gaussian integrals)."""
    return _layer("gabor")


def tanh() -> _core.Layer:
    """tanh(x), by quadrature."""
    return _layer("tanh")


def sigmoid() -> _core.Layer:
    """1 / (1 + exp(-x)), by quadrature."""
    return _layer("sigmoid")


def silu() -> _core.Layer:
    """x / (1 + exp(-x)), also called swish; by quadrature."""
    return _layer("silu")


def softplus() -> _core.Layer:
    """log(1 + exp(x)), by quadrature."""
    return _layer("softplus")


def sin(a: float = 1.0, b: float = 1.0, c: float = 0.0) -> _core.Layer:
    """a sin(b x + c), all finite. K' = (a^2 / 2) exp(-b^2 (p + q) / 2) (exp(b^2 K) - cos(2 c) exp(-b^2 K))."""
    return _layer("sin", a=a, b=b, c=c)


def cos(a: float = 1.0, b: float = 1.0, c: float = 0.0) -> _core.Layer:
    """a cos(b x + c), all finite. K' = (a^2 / 2) exp(-b^2 (p + q) / 2) (exp(b^2 K) + cos(2 c) exp(-b^2 K))."""
    return _layer("cos", a=a, b=b, c=c)


def rbf(gamma: float = 1.0) -> _core.Layer:
    """sqrt(2) sin(sqrt(2 gamma) x + pi / 4), gamma > 0: K' = exp(-gamma (p + q - 2 K)). Source: Rahimi and Recht 2007."""
    return _layer("rbf", gamma=gamma)


def exp(a: float = 1.0, b: float = 1.0) -> _core.Layer:
    """a exp(b x), both finite. K' = a^2 exp(b^2 (p + q + 2 K) / 2), T' = b^2 K' T. NumericalError where it overflows."""
    return _layer("exp", a=a, b=b)


def gaussian(a: float = 1.0, b: float = -1.0) -> _core.Layer:
    """a exp(b x^2), both finite. K' = a^2 / sqrt((1 - 2 b p)(1 - 2 b q) - 4 b^2 K^2). With b > 0 only while variances stay
    below 1 / (4 b), NumericalError beyond."""
    return _layer("gaussian", a=a, b=b)


def exp_normalized(gamma: float = 1.0, shift: float = -1.0) -> _core.Layer:
    """The normalised Gaussian kernel: K' = sqrt(pq) exp(gamma (r + shift)), T' = gamma exp(gamma (r + shift)) T with
    r = K / sqrt(pq); gamma >= 0, shift finite. Source: Shankar et al. 2020 (arXiv:2003.02237), section 3."""
    return _layer("exp_normalized", gamma=gamma, shift=shift)


def monomial(degree: int) -> _core.Layer:
    """x^degree, degree 0 .. 64: a polynomial in p, q and K (Isserlis)."""
    return _layer("monomial", degree=degree)


def rectified_monomial(degree: int) -> _core.Layer:
    """max(x, 0)^degree, degree 0 .. 32: the arc-cosine kernels over 2. Degree 0 is the step, 1 / 2 at 0, with T' = 0 by
    convention; 1 is relu(). Source: Cho and Saul 2009."""
    return _layer("rectified_monomial", degree=degree)


def polynomial(coefficients: Sequence[float]) -> _core.Layer:
    """sum over k of coefficients[k] x^k: 1 to 65 finite numbers, the constant first."""
    return _layer("polynomial", coefficients=_numbers("polynomial", "coefficients", coefficients))


def hermite(degree: int) -> _core.Layer:
    """He_degree(x) / sqrt(degree!), the normalised probabilists' Hermite polynomial, degree 0 .. 64: K' = K^degree where
    p = q = 1. Source: Daniely et al. 2016 (arXiv:1602.05897)."""
    return _layer("hermite", degree=degree)


def _numbers(kind, field, values):
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise TypeError(f"{kind}: {field}: expected a list of numbers, got {values!r}")
    return list(values)


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
    """Averages over windows: K' = mean of K over the pairs of positions of two windows, T' likewise.

    window, strides   one size >= 1 an axis; strides: the window if left out
    padding           'valid', 'same' or 'circular'
    normalize_edges   divide by the positions of a window that are not padding, not by the whole window"""
    return _layer("average_pool", window=_sizes("average_pool", "window", window),
                  strides=_sizes("average_pool", "strides", strides), padding=padding, normalize_edges=normalize_edges)


def sum_pool(window: Sequence[int], strides: Sequence[int] | None = None, padding: str = "valid") -> _core.Layer:
    """Sums over windows: K' = sum of K over the pairs of positions of two windows. Arguments as those of average_pool()."""
    return _layer("sum_pool", window=_sizes("sum_pool", "window", window), strides=_sizes("sum_pool", "strides", strides),
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


def slice(begin: Sequence[int | None] | None = None, end: Sequence[int | None] | None = None,
          step: Sequence[int | None] | None = None) -> _core.Layer:
    """The positions begin, begin + step, ... before end along every axis, one number or None an axis, as Python's
    slices count them; a list that is left out is all None, one of them must be there. K' and T' are the parts of K and T."""
    return _layer("slice", begin=_sizes("slice", "begin", begin), end=_sizes("slice", "end", end),
                  step=_sizes("slice", "step", step))


def index(axis: int, position: int) -> _core.Layer:
    """One position along an axis (0 the first), which is gone after the layer; below 0 from the end. Of sequences: a readout
    of one token."""
    return _layer("index", axis=axis, position=position)


def image_resize(size: Sequence[int], method: str = "linear", antialias: bool = True) -> _core.Layer:
    """Images, sequences or volumes resampled: K' = M K M'^T with the interpolation M, T' likewise.

    size        positions >= 1 along each axis after the layer, -1 to leave it
    method      'linear', 'nearest' or 'cubic' (Keys' kernel with a = -1/2)
    antialias   widens the interpolation where an axis shrinks
    As jax.image.resize."""
    return _layer("image_resize", size=_sizes("image_resize", "size", size), method=method, antialias=antialias)


def positions_map(matrix: ArrayLike | None = None, shape: Sequence[int] | None = None, *,
                  matrices: Sequence[ArrayLike] | None = None) -> _core.Layer:
    """Any linear map M of positions, every channel alike: K' = M K M'^T, T' = M T M'^T.

    matrix, shape   [out, in] over the flattened positions; shape: that of the positions behind, one axis if left out
    matrices        instead: one matrix [out, in] an axis"""
    if (matrix is None) == (matrices is None):
        raise TypeError("positions_map: expected matrix or matrices, got both" if matrix is not None else
                        "positions_map: expected matrix, or matrices, got neither")
    return _layer("positions_map", matrix=None if matrix is None else _matrix("matrix", matrix),
                  shape=_sizes("positions_map", "shape", shape),
                  matrices=None if matrices is None else [_matrix(f"matrices[{k}]", m) for k, m in enumerate(matrices)])


def _matrix(field, values):
    array = numbers(values, name=f"positions_map: {field}")
    if np.ndim(values) != 2:
        raise TypeError(f"positions_map: {field}: expected a matrix [out, in], got an array of shape {np.shape(values)}")
    return array.tolist()


def aggregate(normalise: str = "none", self_loops: bool = False) -> _core.Layer:
    """Every node takes the weighted sum of what stands at the nodes from which edges lead to it: K' = P K P'^T,
    T' = P T P'^T, P the weights of the edges of an input's graph (graphs1 of gram()).

    normalise    'none', 'mean' (divided by the node's degree) or 'symmetric' (by the roots of the degrees of either node,
                 undirected graphs only); degrees that divide must be positive
    self_loops   makes every node its own neighbour
    Source: Du et al. 2019 (arXiv:1905.13192), section 3."""
    return _layer("aggregate", normalise=normalise, self_loops=self_loops)


def layer_norm(axes: Sequence[str | int] = ("channels",), epsilon: float = 1e-12) -> _core.Layer:
    """Layer normalisation: K' = K / sqrt((p + epsilon)(q + epsilon)), the same factor on T; p and q are means over positions
    along axes that are named.

    axes      'channels', or 'channels' and 'space', or 'channels' and spatial axes by number (0, 1, ...)
    epsilon   >= 0, added to the variance
    Stands behind Gaussian channels, or on raw inputs, whose mean is removed exactly."""
    return _layer("layer_norm", axes=_axes("layer_norm", axes), epsilon=epsilon)


def rms_norm(axes: Sequence[str | int] = ("channels",), epsilon: float = 1e-12) -> _core.Layer:
    """Division by the root mean square: formula and arguments as of layer_norm(), after anything."""
    return _layer("rms_norm", axes=_axes("rms_norm", axes), epsilon=epsilon)


def _axes(kind, axes):
    if isinstance(axes, (str, int)) or not hasattr(axes, "__iter__"):
        raise TypeError(f"{kind}: axes: expected a list such as ['channels', 'space'], got {axes!r}")
    return list(axes)


def dropout(keep: float) -> _core.Layer:
    """Keeps a unit with probability `keep` in (0, 1] and divides it by that, while training too: variances of a position with
    itself are divided by keep, other covariances stay."""
    return _layer("dropout", keep=keep)


def attention(scaling: str = "inverse_width", weights: str | dict[str, Any] | None = None, query_key_std: float | None = None,
              output_value_variance: float | None = None, bias_variance: float | None = None, *,
              query_bias_variance: float | None = None, key_bias_variance: float | None = None, tied: bool | None = None,
              causal: bool | None = None, prefix: int | None = None, window: int | None = None,
              mask: ArrayLike | None = None, positions: dict[str, Any] | None = None, rotary: dict[str, Any] | None = None,
              alibi: float | None = None, samples: int | None = None, seed: int | None = None) -> _core.Layer:
    """Multi-head self-attention with infinitely many heads, e.g. attention(query_key_std=1.2, causal=True). With 1 / width and
    A the attention weights of either input, K' = ov A K A'^T + b; docs/theory/attention.md has all of them.

    scaling                         of logits by the key width: 'inverse_width' or 'inverse_sqrt_width'
    weights                         'softmax' (None), 'softmax1', 'identity', 'relu' or another nonlinearity's kind, or its
                                    object {'layer': kind, ...}
    query_key_std                   factor >= 0 on the logits, 1 if left out
    output_value_variance           ov >= 0 of output times value weights, 1; bias_variance: b >= 0 of the output's biases, 0
    query_bias_variance, key_bias_variance   >= 0, 0
    tied                            whether queries and keys share weights; True for 'inverse_width', else False
    causal, prefix, window, mask    which positions see which: not later ones; but all the first so many; closer than so
                                    many; rows of bool
    positions                       random encodings, an object with 'kind': 'identity', 'structured', 'matrix' or 'decay'
                                    (docs/network-format.md); rho is their variance, or with 'scale': 'mean_row_sum' the mean
                                    row sum of R
    rotary, alibi                   {'base': 10000, 'pairs': n}; slope >= 0
    samples, seed                   2048, 0: draws of the logits, for softmax with 'inverse_sqrt_width' only, which has no
                                    closed form: kernels come with standard errors

    NetworkError names the field. Sources: Hron et al. 2020 (arXiv:2006.10540); rotary positions: Su et al. 2021
    (arXiv:2104.09864); ALiBi: Press et al. 2021 (arXiv:2108.12409).
    """
    return _layer("attention", scaling=scaling, weights=weights, query_key_std=query_key_std,
                  output_value_variance=output_value_variance, bias_variance=bias_variance,
                  query_bias_variance=query_bias_variance, key_bias_variance=key_bias_variance, tied=tied, causal=causal,
                  prefix=prefix, window=window, mask=None if mask is None else np.asarray(mask, bool).tolist(),
                  positions=positions, rotary=rotary, alibi=alibi, samples=samples, seed=seed)


def from_fields(kind: str, **fields: Any) -> _core.Layer:
    """Any layer of network files by its kind and fields, e.g. from_fields('image_resize', size=[8, 8]). NetworkError names
    the kinds, or the fields of this one, where there is none of that name."""
    return _layer(kind, **fields)


_EXAMPLES = {"sum": "sum([relu(), dense()], [])", "product": "product([dense()], [relu(), dense()])",
             "concat": "concat((0.5, [dense()]), (0.5, []))", "concat_positions": "concat_positions(0, [dense()], [dense()])"}


def _checked_branches(name, branches):
    """TypeError for one list of all of them."""
    if len(branches) == 1 and isinstance(branches[0], list) and branches[0] and all(
            isinstance(inner, (list, tuple)) for inner in branches[0]):
        raise TypeError(f"{name}: expected branches as arguments, as in {_EXAMPLES[name]}, got one list of "
                        f"{len(branches[0])} branches; write {name}(*branches)")
    return branches


def _branch(name, k, branch):
    """A list of layers, or (scale, list of layers)."""
    scale = 1.0
    if isinstance(branch, tuple) and len(branch) == 2 and not isinstance(branch[0], (_core.Layer, list, tuple)):
        scale, branch = real(branch[0], f"{name}: branch {k}: scale"), branch[1]
    return scale, _layers_in(name, f"branch {k}", branch)


def sum(*branches: Branch) -> _core.Layer:
    """The sum of branches with weights of their own, each a list of layers or (scale, list of layers); [] is the skip
    connection: K' = sum of scale^2 K, T' = sum of scale^2 T. All branches but one must end in new weights, followed by linear
    layers or norms only, and all must leave equal shapes."""
    parts = [_branch("sum", k, branch) for k, branch in enumerate(_checked_branches("sum", branches))]
    return _keeping(_core.sum_of(parts), *(layer for _, inner in parts for layer in inner))


def product(*branches: Branch) -> _core.Layer:
    """The elementwise product of branches, given as in sum(): K' = product of scale^2 K, T' = product of scale^2 times the
    sum over the branches of T of one times K of the others. Conditions as of sum()."""
    parts = [_branch("product", k, branch) for k, branch in enumerate(_checked_branches("product", branches))]
    return _keeping(_core.product_of(parts), *(layer for _, inner in parts for layer in inner))


def concat(*branches: tuple[float, Sequence[_core.Layer]]) -> _core.Layer:
    """Channels side by side: branches (share > 0, list of layers), whose shares sum to 1: K' = sum of share K, T' = sum of
    share T. A nonlinearity after it acts on each group of channels."""
    parts = []
    for k, branch in enumerate(_checked_branches("concat", branches)):
        if not isinstance(branch, tuple) or len(branch) != 2 or isinstance(branch[0], (_core.Layer, list, tuple)):
            raise TypeError(f"concat: branch {k}: expected (share, list of layers), as in {_EXAMPLES['concat']}, got {branch!r}")
        parts.append((real(branch[0], f"concat: branch {k}: share"), _layers_in("concat", f"branch {k}", branch[1])))
    return _keeping(_core.concat_of(parts), *(layer for _, inner in parts for layer in inner))


def concat_positions(axis: int, *branches: Sequence[_core.Layer]) -> _core.Layer:
    """Positions of branches, each a list of layers, one after the other along a spatial axis, 0 the first: the blocks of K'
    and T' are those of the branches, 0 between different ones. Conditions as of sum(); sizes may differ along the axis."""
    axis = whole(axis, "concat_positions: axis")
    parts = [_layers_in("concat_positions", f"branch {k}", branch)
             for k, branch in enumerate(_checked_branches("concat_positions", branches))]
    return _keeping(_core.concat_positions_of(axis, parts), *(layer for inner in parts for layer in inner))


def repeat(times: int, layers: Sequence[_core.Layer]) -> _core.Layer:
    """The layers `times` >= 1 times over, with new weights each time."""
    inner = _layers_in("repeat", "layers", layers)
    return _keeping(_core.repeat_of(whole(times, "repeat: times"), inner), *inner)
