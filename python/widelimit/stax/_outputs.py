"""Outputs of networks of finite width as functions of JAX's arrays alone: whatever JAX does with functions, it does with these.

outputs(module, params, x, value, given): the activations after a module, an array or, where x is one, a MaskedArray (_masks.py);
`value` (_module.py) is the form of those before it, and `given` what came beside the inputs.
"""

from __future__ import annotations

from functools import reduce
from operator import add, mul
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import layers
from .._duals import scalar_function
from .._jax import is_function_of_jax
from ._keys import split
from ._masks import MaskedArray, mask_after, parts_of
from ._structure import Shapes, are_alike
from ._windows import folded, numbers_of, wrapped


class Given(NamedTuple):
    """What comes beside inputs: the key of draws, the graphs of Aggregate layers, and, for a single layer, its inputs' mask."""

    key: Any = None
    pattern: Any = None
    mask: Any = None

    def shared(self, count):
        """The same for several modules, each with a key of its own."""
        return [self._replace(key=key) for key in split(self.key, count)]


def is_of_jax(module):
    """Whether all parts of a module have outputs here."""
    return _knows(module) and all(map(is_of_jax, module.parts()))


def _knows(module):
    return module.in_jax in _OUTPUTS and (module.in_jax not in _CONDITIONS or _CONDITIONS[module.in_jax](module))


def outputs(module, params, x, value, given):
    """See above; the word `in_jax` of a layer says which function of this file is its own."""
    if module.in_jax in _OF_MODULES:
        return _OUTPUTS[module.in_jax](module, params, x, value, given)
    arrays, mask = parts_of(x)
    found = _OUTPUTS[module.in_jax](module, params, arrays, value, given._replace(mask=mask))
    mask = mask_after(module, mask, value)
    return found if mask is None else MaskedArray(found, mask)


def _serial(module, params, x, value, given):
    for part, own, its in zip(module.modules, params, given.shared(len(module.modules))):
        x, value = outputs(part, own, x, value, its), part.apply(value)
    return x


def _repeat(module, params, x, value, given):
    are_stacked = are_alike(module.forms(value, Shapes())[0])
    for k in range(module.times):
        own = jax.tree_util.tree_map(lambda array: array[k], params) if are_stacked else params[k]
        x, value = outputs(module.module, own, x, value, given), module.module.apply(value)
    return x


def _fan_out(module, params, x, value, given):
    return [x] * module.number


def _parallel(module, params, x, value, given):
    module.apply(value)  # Checks the number of branches.
    return [outputs(part, *rest) for part, *rest in zip(module.modules, params, x, value.values, given.shared(len(x)))]


def _fan_in(module, params, x, value, given):
    return reduce(add if module.join is layers.sum else mul, x)


def _concat(module, params, x, value, given):
    return jnp.concatenate(x, module.axis)


def _norms(module, channels):
    """Factors of weights and biases."""
    if str(module.parameterization).lower() == "standard":
        return 1 / module.s[0] ** 0.5, 1.0
    return module.W_std / channels**0.5, module.b_std


def _with_biases(x, biases, factor):
    return x if biases is None or factor is None else x + factor * biases


def _trained(module, params):
    """Weights and biases, of which those that are not trained have no derivatives."""
    return [array if array is None or module.trainable in ("all", part) else lax.stop_gradient(array)
            for array, part in zip(params, ("weights", "biases"))]


def _dense(module, params, x, value, given):
    weights, biases = _trained(module, params)
    norm, factor = _norms(module, value.channels)
    product = jnp.moveaxis(jnp.tensordot(x, weights, (value.channel_axis, 0)), -1, value.channel_axis)
    return _with_biases(norm * product, biases, factor)


def _last(x, value):
    """The same with the batch first and the channels last."""
    return jnp.moveaxis(x, (value.batch_axis, value.channel_axis), (0, -1))


def _convolution(module, params, x, value, given):
    if not module.filter_shape:
        return _dense(module, params, x, value, given)
    weights, biases = _trained(module, params)
    axes = len(value.shape)
    norm, factor = _norms(module, value.channels * int(np.prod(module.filter_shape)))
    behind = module.before_turning(value)
    weights = weights.transpose(np.argsort(module.filter_axes))
    numbers = numbers_of(axes), numbers_of(axes, True), numbers_of(axes)
    x, padding = _last(x, value), module.padding
    if padding == "circular" and module.kind != "conv_transpose":
        x = wrapped(x, (1, *module.filter_shape, 1), (1, *module.strides, 1))
    padding = "VALID" if padding == "circular" else padding.upper()
    if module.kind == "conv":
        found = lax.conv_general_dilated(x, weights, module.strides, padding, dimension_numbers=numbers)
    elif module.kind == "local_conv":
        found = lax.conv_general_dilated_local(x, weights, module.strides, padding, module.filter_shape,
                                               dimension_numbers=numbers)
    else:
        found = lax.conv_transpose(x, weights, module.strides, padding, dimension_numbers=numbers)
        if module.padding == "circular":
            found = folded(found, (len(x), *behind.shape, behind.channels))
    found = jnp.moveaxis(norm * found, (0, -1), (behind.batch_axis, behind.channel_axis))
    return _with_biases(module.turned(found, behind), biases, factor)


def _nonlinearity(module, params, x, value, given):
    return scalar_function(module.kind, module.fields)(x)


def _function(module, params, x, value, given):
    return module.function(x)


def _knows_nonlinearity(module):
    return scalar_function(module.kind, module.fields) is not None


def _knows_function(module):
    return is_function_of_jax(module.function)


def _pool(module, params, x, value, given):
    window, strides = ([1] * x.ndim for _ in range(2))
    for axis, size, stride in zip(value.spatial_axes, module.window, module.strides):
        window[axis], strides[axis] = size, stride
    padding = module.padding
    if padding == "circular":
        x, padding = wrapped(x, window, strides), "valid"

    def summed(array):
        return lax.reduce_window(array, np.zeros((), array.dtype), lax.add, window, strides, padding.upper())

    if module.kind == "sum_pool":
        return summed(x)
    return summed(x) / (summed(jnp.ones_like(x)) if module.normalize_edges else np.prod(window))


def _global_pool(module, params, x, value, given):
    if module.name == "GlobalAvgPool":
        return jnp.squeeze(_mean(x, value.spatial_axes, given.mask), value.spatial_axes)
    return jnp.sum(x, value.spatial_axes)


def _mean(x, axes, mask):
    """The mean over axes, which stay as axes of size 1, of what counts; 0 where nothing does."""
    if mask is None:
        return jnp.mean(x, axes, keepdims=True)
    counts = jnp.broadcast_to(~mask, x.shape)
    return jnp.sum(x, axes, where=counts, keepdims=True) / jnp.maximum(jnp.sum(counts, axes, keepdims=True), 1).astype(x.dtype)


def _flatten(module, params, x, value, given):
    flat = _last(x, value).reshape(x.shape[value.batch_axis], -1)
    return flat if module.batch_axis_out == 0 else flat.T


def _identity(module, params, x, value, given):
    return x


def _dropout(module, params, x, value, given):
    return jnp.where(jax.random.bernoulli(given.key, module.keep, x.shape), x / module.keep, 0)


def _layer_norm(module, params, x, value, given):
    module.apply(value)  # Checks the axes.
    centred = x - _mean(x, module.axes, given.mask)
    return centred / jnp.sqrt(_mean(centred**2, module.axes, given.mask) + module.eps)


def _resize(module, params, x, value, given):
    shape = list(x.shape)
    for axis, size in zip(value.spatial_axes, module.apply(value).shape):
        shape[axis] = size
    return jax.image.resize(x, shape, module.method, module.antialias)


def _index(module, params, x, value, given):
    module.apply(value)  # Checks what the library takes.
    return x[module.index]


def _dot_general(module, params, x, value, given):
    if module.other.ndim == 0:
        return x * float(module.other)
    module.apply(value)
    (ours, theirs), order = module._labels(x.ndim)
    return jnp.einsum(x, ours, jnp.asarray(module.other, x.dtype), theirs, order)


def _attention(module, params, x, value, given):
    queries, keys, values, output, biases, encodings = params
    fields, n = module.fields, x.shape[value.batch_axis]
    if encodings is not None and given.mask is not None:
        encodings = jnp.where(given.mask, jnp.zeros((), encodings.dtype), encodings)
    seen = x if encodings is None else _encoded(module.encodings, x, encodings, value)
    of_values = x if encodings is not None and not module.encodings.in_values else seen
    seen, of_values = (_last(array, value).reshape(n, -1, array.shape[value.channel_axis]) for array in (seen, of_values))
    keys = jnp.einsum("npc,hck->nhpk", seen, keys)
    queries = keys if queries is None else jnp.einsum("npc,hck->nhpk", seen, queries)
    width = keys.shape[-1] if fields["scaling"] == "inverse_width" else keys.shape[-1] ** 0.5
    logits = fields["query_key_std"] / (seen.shape[-1] * width) * jnp.einsum("nhpk,nhqk->nhpq", queries, keys)
    if given.mask is not None:
        logits = jnp.where(_of_keys(given.mask, value), _AT_MASKED[fields["weights"]], logits)
    heads = jnp.einsum("nhpq,nqc,hck->npkh", _LOGITS[fields["weights"]](logits), of_values, values)
    heads = heads.reshape(*heads.shape[:2], -1)
    scale = fields["output_value_variance"] ** 0.5 / (heads.shape[-1] * of_values.shape[-1]) ** 0.5
    found = (scale * heads @ output).reshape(n, *value.shape, -1)
    return _with_biases(jnp.moveaxis(found, (0, -1), (value.batch_axis, value.channel_axis)), biases,
                        fields["bias_variance"] ** 0.5)


def _of_keys(mask, value):
    """Which positions count for nobody, [n, 1, 1, positions]."""
    mask = _last(mask.all(value.channel_axis, keepdims=True), value)
    return jnp.broadcast_to(mask, (len(mask), *value.shape, 1)).reshape(len(mask), 1, 1, -1)


# Logits at masked positions. A softmax of nothing but -inf would be NaN.
_AT_MASKED = {"softmax": -1e20, "identity": 0.0, "relu": 0.0, "abs": 0.0}
_LOGITS = {"softmax": jax.nn.softmax, "identity": lambda logits: logits, "relu": lambda logits: jnp.maximum(logits, 0),
            "abs": jnp.abs}


def _encoded(module, x, encodings, value):
    """Inputs with independent random encodings of their positions, added or beside them."""
    encodings = module.std * encodings
    if module.kind.name == "SUM":
        return x + encodings
    shape = list(x.shape)
    shape[value.channel_axis] = encodings.shape[value.channel_axis]
    return jnp.concatenate([x, jnp.broadcast_to(encodings, shape)], value.channel_axis)


def _knows_attention(module):
    # Of correlated encodings the library takes a root that only it knows.
    return module.fields["weights"] in _LOGITS and (module.encodings is None or module.encodings.decay is None)


def _aggregate(module, params, x, value, given):
    if given.pattern is None:
        return x
    spatial = module.axes_among(len(value.shape))
    last = _last(x, value)
    moved = jnp.moveaxis(last, [1 + axis for axis in spatial], range(1, 1 + len(spatial)))
    nodes = moved.reshape(len(moved), int(np.prod(moved.shape[1:1 + len(spatial)])), -1)
    summed = module.patterns.summed(given.pattern, nodes, tuple(value.shape[axis] for axis in spatial)).reshape(moved.shape)
    back = jnp.moveaxis(summed, range(1, 1 + len(spatial)), [1 + axis for axis in spatial])
    return jnp.moveaxis(back, (0, -1), (value.batch_axis, value.channel_axis))


def _recurrent(module, params, x, value, given):
    weights, of_state, biases = params
    x = _last(x, value)
    into = module.W_std / value.channels**0.5 * x @ weights
    if biases is not None:
        into = _with_biases(into, biases.reshape(-1), module.b_std)
    mask = jnp.zeros((1, 1, 1), bool) if given.mask is None else _last(given.mask.all(value.channel_axis, keepdims=True), value)
    mask = jnp.broadcast_to(mask, (*into.shape[:2], 1))

    def step(state, at):
        into_step, is_left_out = at
        z = into_step + module.R_std / of_state.shape[0] ** 0.5 * state @ of_state
        after = outputs(module.activation, (), z, value, Given())
        return jnp.where(is_left_out, state, after), jnp.where(is_left_out, jnp.zeros((), after.dtype), after)

    first = jnp.zeros(into.shape[:1] + into.shape[2:], into.dtype)
    _, states = lax.scan(step, first, (jnp.moveaxis(into, 1, 0), jnp.moveaxis(mask, 1, 0)), reverse=module.is_backward)
    return jnp.moveaxis(jnp.moveaxis(states, 0, 1), (0, -1), (value.batch_axis, value.channel_axis))


_OUTPUTS = {
    "aggregate": _aggregate,
    "serial": _serial,
    "repeat": _repeat,
    "fan_out": _fan_out,
    "parallel": _parallel,
    "fan_in": _fan_in,
    "concat": _concat,
    "dense": _dense,
    "convolution": _convolution,
    "nonlinearity": _nonlinearity,
    "function": _function,
    "pool": _pool,
    "global_pool": _global_pool,
    "flatten": _flatten,
    "identity": _identity,
    "dropout": _dropout,
    "layer_norm": _layer_norm,
    "resize": _resize,
    "index": _index,
    "dot_general": _dot_general,
    "attention": _attention,
    "recurrent": _recurrent,
}
_OF_MODULES = {"serial", "repeat", "fan_out", "parallel"}  # Those that only hand on what they get.
_CONDITIONS = {"nonlinearity": _knows_nonlinearity, "function": _knows_function, "attention": _knows_attention,
               "recurrent": lambda module: _knows_nonlinearity(module.activation)}
