"""Layers with weights, with the gradients that each contributes to the NTK (docs/theory/convert.md)."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from .. import layers
from ._nodes import RAW, Node, WeightRecord
from ._rules import Measured, measured
from ._report import Row
from ._sums import terminals
from ._trace import refuse


class Parametrisation:
    """How variances and learning rates of a module's tensors become fields of layers.

    kind        'standard', 'ntk' or 'mup'
    multiplier  of the width, for 'mup'
    variances   of entries, by the parameter's name, where the user says so
    """

    def __init__(self, kind: str, multiplier: float, variances: dict[str, float], output: Node) -> None:
        self.kind, self.multiplier, self.variances = kind, multiplier, variances
        self._last = terminals(output)
        self.rows: dict[Any, Row] = {}

    def _rate(self, node: Node, of_bias: bool) -> float:
        """The learning rate of a tensor, relative to that of the others."""
        if self.kind != "mup":
            return 1.0
        is_last = node.key in self._last
        if of_bias:
            return 1.0 if is_last else self.multiplier
        is_narrow = node.data.get("each") or node.kind == "encoding" or _reads_inputs(node)
        if is_narrow:
            return 1.0 if is_last else self.multiplier
        return 1 / self.multiplier if is_last else 1.0

    def _measured(self, node: Node, weight: WeightRecord, fans: tuple[int, ...], bias: bool,
                  beside: str | None = None) -> Measured:
        given = self.variances.get(weight.name)
        found = measured(weight.values, fans[0], fans[1:], bias, given, beside)
        if weight.values.size < weight.whole.size and found.rule != "zeros":
            # A part of a tensor (queries of queries, keys and values) is drawn as the whole, unless it differs from it.
            of_all = measured(weight.whole.reshape(-1, weight.values.shape[-1]) if not bias else weight.whole, fans[0], fans[1:], bias,
                              given, beside)
            found = of_all if abs(of_all.measured - found.measured) <= 5 * found.error + 1e-12 else found
        rate = self._rate(node, bias)
        self.rows.setdefault((weight.name, found.variance), Row(node.place, weight.name, fans[0], found, rate, weight.trained))
        return found

    def _variances(self, node: Node) -> tuple[float, float]:
        """Of entries of the weights and of the biases of a layer."""
        weight, bias = node.data["weight"], node.data["bias"]
        positions = int(np.prod(list(node.data.get("filter", {}).values()), dtype=int))
        fan_in = weight.values.shape[1]
        fans = fan_in, len(weight.values) * positions, max(1, weight.whole.size // fan_in) * positions
        found = self._measured(node, weight, fans, False)
        return found.variance, 0.0 if bias is None else self._measured(node, bias, fans, True, found.rule).variance

    def weights(self, node: Node, circular: bool = False) -> list[Any]:
        """A dense layer or a convolution."""
        entry, bias = self._variances(node)
        channels = node.data["fan_channels"]
        options, places = _places(node, circular)
        positions = int(np.prod(options.get("filter", [1]), dtype=int))
        variance = entry * channels * positions
        trained = node.data["weight"].trained
        return self._linear(places, options, variance, channels, self._rate(node, False) if trained else 0.0, bias,
                            self._bias_rate(node), 0.0)

    def _bias_rate(self, node):
        """The learning rate of the biases; None where there are none."""
        bias = node.data["bias"]
        return None if bias is None else self._rate(node, True) if bias.trained else 0.0

    def _linear(self, kind, options, variance, channels, rate, bias, bias_rate, spared, bias_spared=0.0):
        """New weights with K' = w K + b and T' = (rate N - spared) K + (bias_rate - bias_spared) + w T."""
        if self.kind == "ntk":
            trainable = {(True, True): "all", (True, False): "weights", (False, True): "biases", (False, False): "none"}[
                rate > 0, bool(bias_rate)]
            if bias == 0 or bias_rate is None:
                trainable = "all" if rate > 0 else "none"
            return [layers.from_fields(kind, weight_variance=variance, bias_variance=bias, trainable=trainable, **options)]
        gain = rate * channels - spared if rate else 0.0
        if gain < 0:
            raise ValueError("the layer is too narrow for the standard parametrisation")
        plain_bias = bias_rate == 1.0 and bias_spared == 0
        fields = {"weight_variance": variance, **options}
        if gain > 0:
            fields.update(parametrisation="standard", input_width=channels, width_scale=channels / gain)
            if plain_bias:
                fields.update(bias_variance=bias, zero_biases=bias == 0, trainable="all")
            else:
                fields["trainable"] = "weights"
        else:
            fields["trainable"] = "none"
        result = [layers.from_fields(kind, **fields)]
        if bias_rate is not None and not (plain_bias and gain > 0):
            result += self._added(bias, bias_rate - bias_spared)
        return result

    @staticmethod
    def _added(variance, rate, kind="dense", options=None):
        """Biases of this variance whose gradients count `rate` times, added to what there is."""
        if variance == 0 and rate <= 0:
            return []
        return [layers.sum([], Parametrisation._alone(variance, rate, kind, options))]

    @staticmethod
    def _alone(variance, rate, kind="dense", options=None):
        fields = {"weight_variance": 0.0, **(options or {})}
        if rate <= 0:
            return 1.0, [layers.from_fields(kind, bias_variance=variance, trainable="none", **fields)]
        return sqrt(rate), [layers.from_fields(kind, bias_variance=variance / rate, trainable="biases", parametrisation="standard",
                                               input_width=1, width_scale=1.0, zero_biases=variance == 0, **fields)]

    def encoding(self, node: Node) -> list[Any]:
        """Numbers of each position and channel that do not depend on the input."""
        sizes = dict(node.axes)
        varying = [axis for axis, _ in node.data["varying"]]
        kind, options = ("local_conv", {"filter": [1] * len(sizes)}) if varying else ("dense", {})
        if node.data["weight"] is None:
            return self._fixed(node, varying)
        weight = node.data["weight"]
        variance = self._measured(node, weight, (1, 1, 1), True).variance
        rate = self._rate(node, True) if weight.trained else 0.0
        scale, made = self._alone(variance, variance if self.kind == "ntk" else rate, kind, options)
        if len(varying) < len(sizes) and varying:
            made = made + _repeated(node, np.eye(int(np.prod([sizes[axis] for axis in varying]))))
        return made if scale == 1 else [layers.sum((scale, made))]

    @staticmethod
    def _fixed(node, varying):
        rows = node.data["fixed"]
        values, vectors = np.linalg.eigh(rows @ rows.T / rows.shape[1])
        root = vectors * np.sqrt(np.maximum(values, 0))
        if not varying:
            return [layers.dense(weight_variance=0.0, bias_variance=float(root[0, 0] ** 2), trainable="none")]
        made = layers.local_conv([1] * len(node.axes), weight_variance=0.0, bias_variance=1.0, trainable="none")
        return [made, *_repeated(node, root)]

    def attention(self, node: Node) -> list[Any]:
        """Queries, keys, values, softmax and outputs."""
        heads = node.data["heads_node"]
        query, keys, value = (heads.data[name] for name in ("query", "keys", "value"))
        parts = [(*self._variances(part), part) for part in (query, keys, value)]
        (wq, bq), (wk, bk), (wv, bv) = ((entry * part.data["fan_channels"], bias) for entry, bias, part in parts)
        entry, bias = self._variances(node)
        out_channels = node.data["weight"].values.shape[1]
        wo, kappa = entry * out_channels * heads.data["value_scale"] ** 2, float(abs(heads.data["kappa"]))
        options = _attention_options(heads)
        if self.kind == "ntk":
            return [layers.attention("inverse_sqrt_width", query_key_std=kappa * sqrt(wq * wk), output_value_variance=wv * wo,
                                     bias_variance=bias + wo * bv, query_bias_variance=bq / wq if wq else 0.0,
                                     key_bias_variance=bk / wk if wk else 0.0, **options)]
        wq, wk, wv = _pooled((wq, wk, wv), value.data["weight"].values.size)
        bq, bk, bv = _pooled((bq, bk, bv), value.channels)
        if not np.allclose([wq, wk], wv, rtol=1e-6) or not np.allclose([bq, bk], bv, rtol=1e-6):
            raise refuse(node.place, "queries, keys and values have weights or biases of different variances, whose NTK is known in the "
                                     "NTK "
                         "parametrisation alone", "pass parametrisation='ntk', or equal variances=")
        channels, rate = value.data["fan_channels"], self._rate(value, False)
        before = self._linear("dense", {}, wv, channels, rate, bv, self._bias_rate(value), wv, bv)
        attends = layers.attention("inverse_sqrt_width", query_key_std=kappa, output_value_variance=1.0, **options)
        behind = self._linear("dense", {}, wo, out_channels, self._rate(node, False), bias, self._bias_rate(node), wo)
        return [*before, attends, *behind]


def _pooled(variances, count):
    """One variance for all where they differ by no more than measuring them by so many entries allows."""
    mean = sum(variances) / len(variances)
    return (mean,) * len(variances) if np.ptp(variances) <= 6 * mean * sqrt(2 / count) else variances


def _reads_inputs(node):
    return node.parents[0].law == RAW


def _places(node, circular):
    """Fields of the filter, and the kind of layer."""
    filters = node.data.get("filter")
    names = [name for name, _ in node.parents[0].axes]
    if not filters:
        return {}, "dense"
    options = {"filter": [filters.get(axis, 1) for axis in names], "strides": [node.data["strides"].get(axis, 1) for axis in names]}
    dilations = [node.data["dilations"].get(axis, 1) for axis in names]
    pads = [node.data["pads"].get(axis, (0, 0)) for axis in names]
    if any(dilation != 1 for dilation in dilations):
        options["dilations"] = dilations
    if circular:
        options["padding"] = "circular"
    elif np.any(pads):
        options["pads"] = [before for before, _ in pads] + [after for _, after in pads]
    else:
        options["padding"] = "valid"
    return options, "conv"


def _repeated(node, root):
    """A map of positions whose rows are those of `root` [positions of `varying`, r], repeated along the other axes."""
    sizes, varying = [size for _, size in node.axes], dict(node.data["varying"])
    index = np.zeros(sizes, int)
    for k, (axis, size) in enumerate(node.axes):
        if axis in varying:
            index = index * size + np.arange(size).reshape([-1 if j == k else 1 for j in range(len(sizes))])
    matrix = np.zeros((index.size, index.size))
    matrix[:, :root.shape[1]] = root[index.ravel()]
    return [layers.positions_map(matrix, sizes)]


def _attention_options(heads):
    mask, frequencies = heads.data["mask"], heads.data["frequencies"]
    options: dict[str, Any] = {}
    if mask is not None and not mask.all():
        if np.array_equal(mask, np.tril(np.ones_like(mask))):
            options["causal"] = True
        else:
            options["mask"] = mask
    if frequencies is not None:
        options["rotary"] = {"frequencies": frequencies}
    return options
