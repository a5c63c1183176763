"""Kernels of networks whose layers all have formulas, as functions of JAX's arrays that have derivatives of any order and in
either mode. They hold all pairs of positions, and are what forward mode and second derivatives are computed by.

Layers are the objects of network files; a dual in place of one (_duals.py) is a nonlinearity.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from math import prod
from operator import mul
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np

from ._duals import Dual, dual_of
from ._fields import fields_of


@dataclass(frozen=True)
class Covariances:
    """Of two batches with d positions: nngp and ntk [n1, n2, d, d], ntk None where there is none; cov1 and cov2 [n, d, d], or
    [n, n, d, d] with pairs of inputs. shape: the sizes of the axes of positions. is_one: whether both are one batch, which may be
    known later."""

    nngp: Any
    ntk: Any
    cov1: Any
    cov2: Any
    shape: tuple[int, ...]
    is_one: Any

    def mapped(self, change: Callable[[Any], Any], **others: Any) -> Covariances:
        """The same with every array changed by a linear function."""
        return replace(self, nngp=change(self.nngp), ntk=None if self.ntk is None else change(self.ntk),
                       cov1=change(self.cov1), cov2=change(self.cov2), **others)

    def with_slopes(self, change: Callable[[Any, Any, Any], tuple[Any, Any]]) -> Covariances:
        """After change(p, q, c) -> (value, slope) of variances and covariances."""
        left, right = (_variances(cov) for cov in (self.cov1, self.cov2))
        p, q = left[:, None, :, None], right[None, :, None, :]
        value, slope = change(p, q, self._snapped(p))
        return replace(self, nngp=value, ntk=None if self.ntk is None else self.ntk * slope,
                       cov1=_own(change, left, self.cov1), cov2=_own(change, right, self.cov2))

    def _snapped(self, variances):
        """nngp, in one batch with the variances of inputs themselves to the last bit: compiled apart from each other they
        differ by roundings, of which functions with a kink take the root."""
        n1, n2, count = self.nngp.shape[:3]
        if self.is_one is False or n1 != n2:
            return self.nngp
        gap = jax.lax.stop_gradient(variances - self.nngp)
        is_rounding = abs(gap) <= 64 * jnp.finfo(gap.dtype).eps * abs(variances)
        is_self = jnp.eye(n1, dtype=bool)[:, :, None, None] & jnp.eye(count, dtype=bool) & is_rounding & self.is_one
        return self.nngp + jnp.where(is_self, gap, 0)


def _variances(cov):
    """Of positions, [n, d]."""
    of_inputs = cov if cov.ndim == 3 else jnp.moveaxis(jnp.diagonal(cov), -1, 0)
    return jnp.diagonal(of_inputs, axis1=1, axis2=2)


def _own(change, variances, cov):
    if cov.ndim == 3:
        return change(variances[:, :, None], variances[:, None, :], cov)[0]
    return change(variances[:, None, :, None], variances[None, :, None, :], cov)[0]


Step = Callable[[Covariances], Covariances]


def of_inputs(x1: Any, x2: Any | None, has_ntk: bool, has_pairs: bool, is_one: Any = False) -> Covariances:
    """Of inputs [n, ..., C]; has_pairs: whether cov1 and cov2 have pairs of inputs; is_one: whether x2 counts as x1."""
    shape, channels = x1.shape[1:-1], x1.shape[-1]
    x1, x2 = (None if x is None else x.reshape(len(x), -1, channels) for x in (x1, x2))

    def between(a, b):
        return jnp.einsum("aic,bjc->abij", a, b) / channels

    def own(a, pairs=None):
        pairs = between(a, a) if pairs is None and has_pairs else pairs
        if has_pairs:
            return pairs
        return jnp.einsum("aic,ajc->aij", a, a) / channels if pairs is None else jnp.moveaxis(jnp.diagonal(pairs), -1, 0)

    nngp = between(x1, x1 if x2 is None else x2)
    # One batch: the variances are the diagonal itself, so that inputs are multiples of themselves to the last bit.
    cov1 = own(x1, nngp if x2 is None else None)
    return Covariances(nngp, jnp.zeros_like(nngp) if has_ntk else None, cov1, cov1 if x2 is None else own(x2), shape,
                       x2 is None or is_one)


def descriptions(layers: Any) -> list[Any] | None:
    """What step_of() takes, for layers of the library; None unless all of them have formulas."""
    found = [getattr(layer, "_dual", None) or fields_of(layer) for layer in layers]
    return found if all(map(_has_formula, found)) else None


def _has_formula(layer):
    if callable(layer):
        return True
    branches = layer.get("branches", ())
    inner = [part for branch in branches for part in (branch["layers"] if isinstance(branch, dict) else branch)]
    kind = layer.get("layer")
    is_known = kind in _STEPS or (kind is not None and dual_of(kind, _fields(layer)) is not None)
    if kind == "layer_norm":
        is_known = layer.get("axes", ["channels"]) == ["channels"]
    return is_known and all(map(_has_formula, [*inner, *(layer.get("layers", ()) if kind == "repeat" else ())]))


def _fields(layer):
    return {name: value for name, value in layer.items() if name != "layer"}


def step_of(layers: list[Any]) -> Step:
    """The function of a sequence of layers."""
    steps = [_step(layer) for layer in layers]
    return lambda covariances: reduce(lambda value, step: step(value), steps, covariances)


def _step(layer):
    if callable(layer):
        return lambda covariances: covariances.with_slopes(layer)
    made = _STEPS.get(layer["layer"])
    if made is not None:
        return made(_fields(layer))
    dual: Dual | None = dual_of(layer["layer"], _fields(layer))
    assert dual is not None
    return lambda covariances: covariances.with_slopes(dual)


def _with_weights(fields, spread, taps=1):
    """New weights, after spread(array), the mean over what a weight reads."""
    weight, bias = fields.get("weight_variance", 1.0), fields.get("bias_variance", 0.0)
    is_standard = fields.get("parametrisation", "ntk") == "standard"

    def step(before, shape):
        means = before.mapped(spread, shape=shape)
        after = replace(means, nngp=weight * means.nngp + bias, cov1=weight * means.cov1 + bias, cov2=weight * means.cov2 + bias)
        if before.ntk is None:
            return after
        own = after.nngp
        if is_standard:
            has_biases = fields.get("zero_biases", False) or fields.get("bias_variance", 0.0) != 0
            own = fields["input_width"] * taps / fields.get("width_scale", 1.0) * means.nngp + (1.0 if has_biases else 0.0)
        return replace(after, ntk=weight * means.ntk + own)

    return step


def _dense(fields):
    step = _with_weights(fields, lambda array: array)
    return lambda before: step(before, before.shape)


def _places(sizes, window, fields):
    """For every place of a window, the position that it reads at every position after it, -1 for none: [taps, d']; and the
    sizes after it."""
    ones = [1] * len(window)
    padding, pads = fields.get("padding", "same"), fields.get("pads")
    reads, behind = [], []
    for axis, (size, width, stride, dilation) in enumerate(zip(sizes, window, fields.get("strides") or ones,
                                                               fields.get("dilations") or ones)):
        reach = dilation * (width - 1) + 1
        if pads:
            before = pads[axis]
            count = (size + before + pads[axis - len(window)] - reach) // stride + 1
        else:
            count = (size - reach) // stride + 1 if padding == "valid" else -(-size // stride)
            before = 0 if padding == "valid" else max((count - 1) * stride + reach - size, 0) // 2
        read = np.arange(count) * stride - before + dilation * np.arange(width)[:, None]
        reads.append(read % size if padding == "circular" else np.where((read >= 0) & (read < size), read, -1))
        behind.append(count)
    flat = []
    for taps in product(*(range(width) for width in window)):
        along = np.meshgrid(*(read[tap] for read, tap in zip(reads, taps)), indexing="ij")
        place = reduce(lambda found, part: found * part[1] + part[0], zip(along, sizes), 0)
        flat.append(np.where(reduce(np.logical_or, [part < 0 for part in along]), -1, place).ravel())
    return np.array(flat), tuple(behind)


def _window(fields, name, before):
    return _places(before.shape, fields[name], fields)


def _conv(fields):
    def step(before):
        places, shape = _window(fields, "filter", before)

        def spread(array):
            total = 0.0
            for place in places:
                there = jnp.asarray((place >= 0)[:, None] & (place >= 0))
                total = total + jnp.where(there, array[..., place[:, None], place], 0)
            return total / len(places)

        return _with_weights(fields, spread, len(places))(before, shape)

    return step


def _linear_map(matrix_of):
    """K' = M K M^T, of a matrix and the sizes after it."""
    def step(before):
        matrix, shape = matrix_of(before)
        return before.mapped(lambda array: jnp.einsum("oi,...ij,pj->...op", matrix, array, matrix), shape=shape)

    return step


def _pool(is_mean):
    def make(fields):
        def matrix_of(before):
            places, shape = _window(fields, "window", before)
            matrix = np.zeros((places.shape[1], prod(before.shape)))
            for place in places:
                np.add.at(matrix, (np.flatnonzero(place >= 0), place[place >= 0]), 1.0)
            counts = matrix.sum(1, keepdims=True) if fields.get("normalize_edges") else len(places)
            return matrix / counts if is_mean else matrix, shape

        return _linear_map(matrix_of)

    return make


def _global_pool(is_mean):
    def matrix_of(before):
        count = prod(before.shape)
        return np.full((1, count), 1.0 / count if is_mean else 1.0), ()

    return lambda fields: _linear_map(matrix_of)


def _flatten(fields):
    return lambda before: before.mapped(lambda array: jnp.trace(array, axis1=-2, axis2=-1)[..., None, None] / array.shape[-1],
                                        shape=())


def _layer_norm(fields):
    epsilon = fields.get("epsilon", 0.0)

    def factor(p, q, c):
        found = 1 / jnp.sqrt((p + epsilon) * (q + epsilon))
        return c * found, found

    return lambda before: before.with_slopes(factor)


def _dropout(fields):
    keep = fields["keep"]

    def step(before):
        def own(cov):
            count = cov.shape[-1]
            scale = jnp.where(jnp.eye(count, dtype=bool), 1 / keep, 1)
            if cov.ndim == 4:
                scale = jnp.where(jnp.eye(len(cov), dtype=bool)[:, :, None, None], scale, 1)
            return cov * scale

        n1, n2, count = before.nngp.shape[:3]
        is_self = jnp.eye(n1, n2, dtype=bool)[:, :, None, None] & jnp.eye(count, dtype=bool) & before.is_one
        scale = jnp.where(is_self, 1 / keep, 1)
        return replace(before, nngp=before.nngp * scale, ntk=None if before.ntk is None else before.ntk * scale,
                       cov1=own(before.cov1), cov2=own(before.cov2))

    return step


def _branches(fields, weight_of):
    return [(weight_of(branch), step_of(branch["layers"])) for branch in fields["branches"]]


def _weighted_sum(weight_of):
    def make(fields):
        branches = _branches(fields, weight_of)

        def step(before):
            found = [(weight, branch(before)) for weight, branch in branches]

            def total(name):
                arrays = [getattr(after, name) for _, after in found]
                return None if arrays[0] is None else sum(weight * array for (weight, _), array in zip(found, arrays))

            return replace(found[0][1], **{name: total(name) for name in ("nngp", "ntk", "cov1", "cov2")})

        return step

    return make


def _product(fields):
    branches = _branches(fields, lambda branch: branch.get("scale", 1.0) ** 2)

    def step(before):
        found = [branch(before).mapped(lambda array, w=weight: w * array) for weight, branch in branches]

        def whole(name, but=None):
            return reduce(mul, [getattr(after, "ntk" if k == but else name) for k, after in enumerate(found)])

        ntk = None if before.ntk is None else sum(whole("nngp", k) for k in range(len(found)))
        return replace(found[0], nngp=whole("nngp"), ntk=ntk, cov1=whole("cov1"), cov2=whole("cov2"))

    return step


def _repeat(fields):
    step = step_of(fields["layers"])
    return lambda before: reduce(lambda value, _: step(value), range(fields["times"]), before)


_STEPS: dict[str, Callable[[dict[str, Any]], Step]] = {
    "dense": _dense, "conv": _conv, "average_pool": _pool(True), "sum_pool": _pool(False),
    "global_average_pool": _global_pool(True), "global_sum_pool": _global_pool(False), "flatten": _flatten,
    "layer_norm": _layer_norm, "dropout": _dropout, "product": _product, "repeat": _repeat,
    "sum": _weighted_sum(lambda branch: branch.get("scale", 1.0) ** 2),
    "concat": _weighted_sum(lambda branch: branch["share"]),
}
