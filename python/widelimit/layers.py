"""Layers: what networks are made of. There is a function for every kind of network files.

Every function returns a Layer, an immutable value. Inputs are [n, spatial..., C]. K and T are the NNGP and the NTK of two
positions, K' and T' those after the layer; p and q are the variances of the two positions, w and b those of weights and
biases. Variances are >= 0 and finite; a value out of range raises NetworkError, an argument of another kind TypeError, what
does not fit the layers before it NetworkError when a kernel is computed. Nonlinearities have K' = E[phi(u) phi(v)] and
T' = T E[phi'(u) phi'(v)], u and v Gaussian with variances p and q and covariance K, and need Gaussian channels before them.

Sources: docs/theory/kernel-recursion.md, and what each function names; docs/layers.md has all formulas beside each other,
docs/network-format.md the fields of network files.

gated_mlp(), decoder_block(), transformer_block() and cross_attention() return lists of layers: [dense(), *gated_mlp()].

Branch is the type of what sum() and product() take: a list of layers, or (scale, list of layers).
"""

from __future__ import annotations

import copyreg
from typing import Any, Callable, Iterable, Sequence, Tuple, Union

import numpy as np
from numpy.typing import ArrayLike

from . import _core, _kinds, _trace
from ._arrays import check_callable, numbers, real, whole
from ._fields import layer as _layer
from ._fields import sizes as _sizes
from ._html import layer_html, network_html, network_text
from ._jax import in_double
from ._named_functions import description, functions_of
from ._kinds import *  # noqa: F403 - abs, sum and slice below are layers

__all__ = [
    "Branch", "attention", "concat", "concat_positions", "cross_attention", "decoder_block", "elementwise",
    "elementwise_dual", "from_fields", "gated_mlp", "nonlinearity", "pair", "positions_map", "product", "repeat", "sum",
    "transformer_block",
]
__all__ += _kinds.__all__

# Layers one after another, or a factor and these.
Branch = Union[Sequence[_core.Layer], Tuple[float, Sequence[_core.Layer]]]


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


def _layer_of(text, functions=None):
    return _core.Network.from_json(text, functions).layers[0]


def _network_of(text, functions=None):
    return _core.Network.from_json(text, functions)


def _json_of(network):
    """For pickles, which hold functions by their names; layers of functions that have none have no pickles either."""
    try:
        text = network.to_json()
    except _core.Error as error:
        raise TypeError(f"layers made of functions cannot be pickled or copied: {error}") from error
    functions = functions_of(text)
    return (text, functions) if functions else (text,)


copyreg.pickle(_core.Layer, lambda layer: (_layer_of, _json_of(_core.Network([layer]))))
copyreg.pickle(_core.Network, lambda network: (_network_of, _json_of(network)))
_core.Layer._repr_html_ = layer_html
_core.Network._repr_html_ = network_html
_core.Network.__repr__ = network_text


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


def nonlinearity(name: str, **parameters: Any) -> _core.Layer:
    """A nonlinearity of the library by its kind, e.g. nonlinearity('leaky_relu', slope=0.1): the function of that name, with
    its parameters. NetworkError names the kinds that there are, or the parameter."""
    return _layer(name, **parameters)


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

    phi, derivative: functions of NumPy's arrays, or made of JAX's. Without `derivative` it is JAX's, if JAX has been imported,
    reads phi and finds a finite slope; else it is taken from phi by differences, which is slower. They are called thousands
    of times while tables are made, then seldom. Jumps, kinks and cusps of either and of the next two derivatives are looked
    for, up to |z| = 2000; breakpoints: others, and where there are features narrower than a tenth of their distance from 0,
    which the search may miss. Kernels are exact to 1e-10 of the geometric mean of the two inputs' own, also of functions that
    grow, as powers and exponentials, at variances up to 10,000; NumericalError, which names the layer and the variance, where
    they cannot be: where E phi^2 or E phi'^2 is infinite or beyond the range of double, and where phi overflows or oscillates
    too much within the standard deviations, 10 to 52, that count. Steps have the derivative 0. Functions steeper than |z - b|^0.8 towards a place b, as cube
    roots and logarithms, have an NNGP and no NTK. ArgumentError for functions that are rough, that compute in float32 or
    less, or that grow faster than a logarithm towards a place, for a derivative that is not that of phi, and for an NTK that
    there is not.
    """
    check_callable("elementwise: phi", phi)
    if derivative is not None:
        check_callable("elementwise: derivative", derivative)
    places = [float(b) for b in breakpoints]
    by_name = description("elementwise", kind, {"phi": phi, "derivative": derivative}, **({"breakpoints": places} if places else {}))
    digest = _trace.digest(lambda x: (phi(x), None if derivative is None else derivative(x)), (3,))
    if digest is not None:
        phi, derivative = _trace.elementwise(phi, derivative)
    slope = None if derivative is None else _real("elementwise: derivative", derivative)
    return _calling(_core.nonlinearity_from_function, kind, (_real("elementwise: phi", phi), slope), places,
                    f"{digest}{places or ''}" if digest else "", by_name)


def elementwise_dual(nngp: Callable[[Any, Any, Any], Any], derivative: Callable[[Any, Any, Any], Any] | None = None,
                     kind: str = "elementwise_dual") -> _core.Layer:
    """A nonlinearity of which the dual is known: nngp(p, q, c) = E[phi(u) phi(v)] and derivative(p, q, c) =
    E[phi'(u) phi'(v)] of arrays of variances p, q and covariances c. Functions made of JAX's arrays, if JAX has been
    imported, are differentiated by it, and `derivative` may be left out; otherwise there is no NTK without it.

    Both return arrays of the shape of c, float64, else TypeError or ArgumentError once a kernel is computed."""
    check_callable("elementwise_dual: nngp", nngp)
    shapes = ((3,), (3,), (3,))
    by_name = description("elementwise_dual", kind, {"nngp": nngp, "derivative": derivative})
    if derivative is None and _trace.digest(nngp, *shapes):
        derivative = _trace.slope_in_covariance(nngp)
    slope = None if derivative is None else _real("elementwise_dual: derivative", derivative)
    digest = None if derivative is None else _trace.digest(lambda *of: (nngp(*of), derivative(*of)), *shapes)
    slopes = None if digest is None else _trace.dual_slopes("elementwise_dual", nngp, derivative)
    return _calling(_core.nonlinearity_from_dual, kind, (_real("elementwise_dual: nngp", nngp), slope, slopes), digest or "",
                    by_name)


def pair(transform: Callable[[Any, Any, Any, Any], Any], needs_gaussian: bool = False, leaves: str = "not_gaussian",
         kind: str = "pair") -> _core.Layer:
    """A layer that sees the covariances of a pair of inputs as matrices: transform(nngp, ntk, variance1, variance2) of
    [d, d'] arrays and the positions' variances [d] and [d'] returns the new (nngp, ntk), of the same shapes; ntk is None
    where only the NNGP is computed. Exchanging the inputs must transpose the result. If JAX has been imported and the function
    is made of its arrays, kernels of networks with the layer have derivatives, by jax.vjp. For other functions they have none:
    gram_vjp and what calls it raise an ArgumentError that names the layer.

    needs_gaussian: whether channels before the layer must be Gaussian. leaves: what they are after it, 'gaussian', 'as_it_was' or
    'not_gaussian'.
    """
    check_callable("pair: transform", transform)

    def called(*arguments):
        parts = transform(*arguments)
        if not isinstance(parts, (tuple, list)):
            return parts
        return tuple(None if part is None else _real_numbers("pair: transform", part) for part in parts)

    digest = _trace.digest(lambda *of: tuple(transform(*of)), (3, 2), (3, 2), (3,), (2,))
    adjoint = None if digest is None else _trace.pair_adjoint("pair: transform", transform)
    return _calling(_core.pair_from_function, kind, (in_double(called), adjoint), needs_gaussian, leaves, digest or "",
                    description("pair", kind, {"transform": transform}, needs_gaussian=needs_gaussian, leaves=leaves))


def positions_map(matrix: ArrayLike | None = None, shape: Sequence[int] | None = None, *,
                  matrices: Sequence[ArrayLike] | None = None) -> _core.Layer:
    """Any linear map M of positions, every channel alike: K' = M K M'^T, T' = M T M'^T.

    matrix, shape   [out, in] over the flattened positions; shape: that of the positions after the map, one axis if left out
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


def attention(scaling: str = "inverse_width", weights: str | dict[str, Any] = "softmax", query_key_std: float = 1.0,
              output_value_variance: float = 1.0, bias_variance: float = 0.0, *, query_bias_variance: float = 0.0,
              key_bias_variance: float = 0.0, tied: bool | None = None, causal: bool = False, prefix: int = 0,
              window: int | None = None, mask: ArrayLike | None = None, positions: dict[str, Any] | None = None,
              rotary: dict[str, Any] | None = None, alibi: float = 0.0, samples: int | None = None,
              seed: int | None = None) -> _core.Layer:
    """Multi-head self-attention with infinitely many heads, e.g. attention(query_key_std=1.2, causal=True). With 1 / width and
    A the attention weights of either input, K' = ov A K A'^T + b; docs/theory/attention.md has all of them.

    scaling                         of logits by the key width: 'inverse_width' or 'inverse_sqrt_width'
    weights                         'softmax', 'softmax1', 'identity', 'relu' or another nonlinearity's kind, or its
                                    object {'layer': kind, ...}
    query_key_std                   factor >= 0 on the logits
    output_value_variance           ov >= 0 of output times value weights; bias_variance: b >= 0 of the output's biases
    query_bias_variance, key_bias_variance   >= 0
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
    sum over the branches of T of one times K of the others. All but one branch must have weights of their own, whatever follows
    them; errors as of sum()."""
    parts = [_branch("product", k, branch) for k, branch in enumerate(_checked_branches("product", branches))]
    return _keeping(_core.product_of(parts), *(layer for _, inner in parts for layer in inner))


def concat(*branches: tuple[float, Sequence[_core.Layer]] | Sequence[_core.Layer], axis: int | None = None) -> _core.Layer:
    """Channels side by side: branches (share > 0, list of layers), whose shares sum to 1: K' = sum of share K, T' = sum of
    share T. A nonlinearity after it acts on each group of channels. With `axis`, a spatial one, positions are put one after
    the other instead, as concat_positions() does: branches are then lists of layers, without shares."""
    if axis is not None:
        return _positions_along("concat", axis, branches)
    parts = []
    for k, branch in enumerate(_checked_branches("concat", branches)):
        if not isinstance(branch, tuple) or len(branch) != 2 or isinstance(branch[0], (_core.Layer, list, tuple)):
            raise TypeError(f"concat: branch {k}: expected (share, list of layers), as in {_EXAMPLES['concat']}, got {branch!r}")
        parts.append((real(branch[0], f"concat: branch {k}: share"), _layers_in("concat", f"branch {k}", branch[1])))
    return _keeping(_core.concat_of(parts), *(layer for _, inner in parts for layer in inner))


def concat_positions(axis: int, *branches: Sequence[_core.Layer]) -> _core.Layer:
    """Positions of branches, each a list of layers, one after the other along a spatial axis, 0 the first: the blocks of K'
    and T' are those of the branches, 0 between different ones. Conditions as of sum(); sizes may differ along the axis."""
    return _positions_along("concat_positions", axis, branches)


def _positions_along(name, axis, branches):
    axis = whole(axis, f"{name}: axis")
    for k, branch in enumerate(branches):
        if isinstance(branch, tuple) and len(branch) == 2 and not isinstance(branch[0], (_core.Layer, list, tuple)):
            raise TypeError(f"{name}: branch {k}: expected a list of layers, as positions have no shares, got {branch!r}")
    parts = [_layers_in(name, f"branch {k}", branch) for k, branch in enumerate(_checked_branches(name, branches))]
    return _keeping(_core.concat_positions_of(axis, parts), *(layer for inner in parts for layer in inner))


def repeat(times: int, layers: Sequence[_core.Layer]) -> _core.Layer:
    """The layers `times` >= 1 times over, with new weights each time."""
    inner = _layers_in("repeat", "layers", layers)
    return _keeping(_core.repeat_of(whole(times, "repeat: times"), inner), *inner)


def gated_mlp(activation: _core.Layer | None = None, gate_weight_variance: float = 2.0, gate_bias_variance: float = 0.0,
              value_weight_variance: float = 1.0, output_weight_variance: float = 1.0) -> list[_core.Layer]:
    """The layers of a gated layer: output(activation(gate(x)) value(x)), gate, value and output dense layers; *gated_mlp() in
    a list of layers. With G the covariance after the gate's activation and V that of the values the product has K' = G V,
    T' = T_G V + G T_V.

    activation   of the gate: silu() (SwiGLU) if left out; gelu() makes it GEGLU, relu() ReGLU
    variances    >= 0, of the weights of each, and of the biases of the gate
    Source: Shazeer 2020 (arXiv:2002.05202), equation 6."""
    gate = [_kinds.dense(gate_weight_variance, gate_bias_variance), _kinds.silu() if activation is None else activation]
    return [product(gate, [_kinds.dense(value_weight_variance)]), _kinds.dense(output_weight_variance)]


def decoder_block(attention: _core.Layer | None = None, mlp: Sequence[_core.Layer] | None = None, skip_scale: float = 1.0,
                  attention_scale: float = 1.0, mlp_scale: float = 1.0) -> list[_core.Layer]:
    """The layers of a block of a decoder as language models have it, for sequences: y = skip x + a attention(rms_norm(x)),
    then skip y + m mlp(rms_norm(y)); *decoder_block() in a list of layers, after anything.

    attention    causal softmax of scaling 1 / width with 4 rotary frequencies of base 10000 if left out
    mlp          the layers of its branch, gated_mlp() if left out
    skip_scale, attention_scale, mlp_scale   any finite factors
    Source: Touvron et al. 2023 (arXiv:2302.13971), section 2.2."""
    attends = _attention(causal=True, rotary={"base": 10000, "pairs": 4}) if attention is None else attention
    inner = gated_mlp() if mlp is None else _layers_in("decoder_block", "mlp", mlp)
    return [sum((skip_scale, []), (attention_scale, [_kinds.rms_norm(), attends])),
            sum((skip_scale, []), (mlp_scale, [_kinds.rms_norm(), *inner]))]


def transformer_block(attention: _core.Layer | None = None, activation: _core.Layer | None = None, weight_variance: float = 2.0,
                      bias_variance: float = 0.01, output_weight_variance: float = 1.0, skip_scale: float = 1.0,
                      attention_scale: float = 1.0, dense_scale: float = 1.0) -> list[_core.Layer]:
    """The layers of a transformer block with norms before its branches: y = skip x + a attention(layer_norm(x)), then
    skip y + d dense(activation(dense(layer_norm(y)))); *transformer_block() in a list of layers, after Gaussian channels.

    attention    softmax of scaling 1 / width if left out
    activation   relu() if left out
    weight_variance, bias_variance   of the first dense layer; output_weight_variance of the second, which has no bias
    skip_scale, attention_scale, dense_scale   any finite factors
    Source: Vaswani et al. 2017 (arXiv:1706.03762), section 3; norms first: Xiong et al. 2020 (arXiv:2002.04745)."""
    dense = [_kinds.layer_norm(), _kinds.dense(weight_variance, bias_variance), _kinds.relu() if activation is None else activation,
             _kinds.dense(output_weight_variance)]
    attends = _attention() if attention is None else attention
    return [sum((skip_scale, []), (attention_scale, [_kinds.layer_norm(), attends])), sum((skip_scale, []), (dense_scale, dense))]


def cross_attention(sources: int, longest: int, **options: Any) -> list[_core.Layer]:
    """The layers of attention from one sequence to another, as decoders attend to encoders. An input is both sequences, one
    after the other; the targets, all positions but the first `sources`, attend to the sources alone, and are left.

    sources   positions of the source, at least 1
    longest   positions of the longest input, more than `sources`
    options   those of attention() but masks, windows and causality
    The skip connection beside it is slice([sources]). Source: docs/theory/attention.md, section 4.1."""
    sources, longest = whole(sources, "cross_attention: sources"), whole(longest, "cross_attention: longest")
    if sources < 1:
        raise _core.ArgumentError(f"cross_attention: sources must be at least 1, got {sources}")
    if not sources < longest <= 65536:
        raise _core.ArgumentError(f"cross_attention: longest must be in {sources + 1}..65536 (sources and targets), got {longest}")
    given = [name for name in ("mask", "window", "causal", "prefix") if options.get(name)]
    if given:
        raise _core.ArgumentError("cross_attention: expected attention without masks, windows or causality; targets see all "
                                  f"sources; got {given[0]}")
    mask = np.zeros((longest, longest), bool)
    mask[:, :sources] = True
    return [_attention(mask=mask, **options), _kinds.slice([sources])]


# Arguments of blocks are called attention as well.
_attention = attention
