"""GlobalSelfAttention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Optional

import numpy as np

from .. import layers
from .._jax import in_double
from ._diagonal import NO, Diagonal
from ._enums import AttentionMechanism, PositionalEmbedding, choice
from ._module import WithAxes, check_deviations, variance
from ._structure import Place, Shapes
from ._triple import Triple, triple


@dataclass
class _Attention(WithAxes):
    n_chan_out: int
    n_heads: int
    n_chan_key: int
    n_chan_val: int
    fields: dict
    encodings: Optional["_Encodings"]
    has_biases: bool
    batch_axis: int
    channel_axis: int
    in_jax = "attention"
    name = "GlobalSelfAttention"
    diagonal = Diagonal(NO, NO)

    def lower(self, value):
        fields = dict(self.fields)
        if self.encodings is not None:
            fields["positions"] = self.encodings.fields(value)
        attention = [layers.attention(**fields)] if value.shape else self._of_vectors(fields)
        return value.then(*attention, channels=self.n_chan_out, places=value.places + (self.n_chan_out,), is_gaussian=True)

    def _of_vectors(self, fields):
        """A vector attends to itself alone, with a weight that its variance says, or 1 (softmax)."""
        encodings = fields.get("positions", {})
        of_input, of_place = encodings.get("input_weight", 1.0), encodings.get("position_weight", 0.0)
        of_values = (of_input, of_place) if encodings.get("in_values") else (1.0, 0.0)
        made = []
        if fields["weights"] != "softmax":
            if fields["scaling"] != "inverse_width":
                raise NotImplementedError("GlobalSelfAttention: expected positions for linear_scaling=False without SOFTMAX: give "
                                          "vectors one, x[:, None]")
            square = fields["query_key_std"] ** 2

            def weight(p, q):
                return square * (of_input * p + of_place)[:, None] * (of_input * q + of_place)

            made.append(_of_pairs(lambda p, q: of_values[0] * weight(p, q), lambda p, q: of_values[1] * weight(p, q)))
        elif of_values[1] != 0:
            made.append(_of_pairs(lambda p, q: of_values[0], lambda p, q: of_values[1]))
        return [*made, layers.dense(fields["output_value_variance"]), layers.dense(1.0, fields["bias_variance"])]

    @property
    def asks_for_jax(self):
        """Whether networks of finite width are not the library's, of which values have as many channels as keys, and encodings as
        many as inputs."""
        is_wider = self.encodings is not None and self.encodings.kind == PositionalEmbedding.CONCAT
        return is_wider or self.n_chan_val != self.n_chan_key

    def parameters(self, value, counter):
        """(queries, None where they are the keys, keys, values, output, biases, encodings), as neural-tangents has them."""
        channels, axes = value.channels, len(value.shape) + 2
        heads, width = (self.n_heads, self.n_chan_key) if isinstance(counter, Shapes) else counter.heads
        values_width = self.n_chan_val if isinstance(counter, Shapes) else width
        seen, of_values = self.channels_of(channels)

        def in_heads(channels, width):
            return Place(counter.take(channels, heads, width).swapaxes(0, 1))

        encodings = None
        if self.encodings is not None:
            numbers = counter.take(1, *value.shape, seen - channels if seen > channels else channels)
            encodings = Place(np.moveaxis(numbers, (0, axes - 1), (value.batch_axis, value.channel_axis)))
        queries = in_heads(seen, width) if self.fields["scaling"] == "inverse_sqrt_width" else None
        keys, values = in_heads(seen, width), in_heads(of_values, values_width)
        output = Place(counter.take(heads, values_width, self.n_chan_out).swapaxes(0, 1).reshape(-1, self.n_chan_out))
        shape = [1] * axes
        shape[value.channel_axis] = self.n_chan_out
        if not self.has_biases:
            return queries, keys, values, output, None, encodings
        has_effect = self.fields["bias_variance"] != 0
        biases = counter.take(self.n_chan_out).reshape(shape) if has_effect else np.zeros(shape, int)
        return queries, keys, values, output, Place(biases, has_effect), encodings


    def channels_of(self, channels):
        """Of what queries and keys see, and of what values see."""
        if self.encodings is None or self.encodings.kind != PositionalEmbedding.CONCAT:
            return channels, channels
        wider = channels + (channels if self.encodings.channels is None else self.encodings.channels)
        return wider, wider if self.encodings.in_values else channels


def _of_pairs(slope, constant):
    """A layer that multiplies covariances by slope(p, q), and adds constant(p, q), of parameters that are trained."""
    def transform(nngp, ntk, p, q):
        return slope(p, q) * nngp + constant(p, q), None if ntk is None else slope(p, q) * ntk + constant(p, q)

    return layers.pair(transform)


@dataclass
class _Encodings:
    """Positional encodings with covariance decay(sum over axes of |i - j|^power)."""

    kind: PositionalEmbedding
    power: float
    decay: Any
    channels: Optional[int]
    std: float
    in_values: bool

    def fields(self, value):
        input_weight, position_weight = 1.0, self.std**2
        if self.kind == PositionalEmbedding.CONCAT:
            channels = value.channels if self.channels is None else self.channels
            input_weight = value.channels / (value.channels + channels)
            position_weight *= channels / (value.channels + channels)
        return {**self._covariance(value), "input_weight": input_weight, "position_weight": position_weight,
                "in_values": self.in_values}

    def _covariance(self, value):
        if self.decay is None:
            return {"kind": "identity"}
        distances = self._distances(value.shape)
        if not 0 < self.power < np.inf:
            return {"kind": "matrix", "matrix": self._decayed(distances).tolist()}
        whole = self.power == int(self.power)
        places = np.arange(distances.max(initial=0) + 1) if whole else np.unique(distances)
        decay = {"kind": "decay", "power": self.power, "values": self._decayed(places).tolist()}
        return decay if whole else {**decay, "distances": places.tolist()}

    def _distances(self, shape):
        distances = np.zeros((1, 1))
        for size in shape:
            along = np.abs(np.subtract.outer(np.arange(size), np.arange(size))) ** self.power
            blocks = distances[:, None, :, None] + along[None, :, None, :]
            distances = blocks.reshape(len(distances) * size, -1)
        return distances

    def _decayed(self, distances):
        decay = in_double(self.decay)
        different, places = np.unique(distances, return_inverse=True)
        return np.array([float(decay(r)) for r in different])[places].reshape(distances.shape)


def _encodings(kind, power, decay, channels, std, in_values):
    if kind == PositionalEmbedding.NONE:
        return None
    return _Encodings(kind, float(power), decay, channels, float(std), bool(in_values))


def GlobalSelfAttention(n_chan_out: int, n_chan_key: int, n_chan_val: int, n_heads: int, linear_scaling: bool = True,
                        W_key_std: float = 1.0, W_value_std: float = 1.0, W_query_std: float = 1.0,
                        W_out_std: float = 1.0, b_std: float | None = None,
                        attention_mechanism: AttentionMechanism | str = "SOFTMAX",
                        pos_emb_type: PositionalEmbedding | str = "NONE", pos_emb_p_norm: float = 2,
                        pos_emb_decay_fn: Callable[[float], float] | None = None, n_chan_pos_emb: int | None = None,
                        W_pos_emb_std: float = 1.0, val_pos_emb: bool = False, batch_axis: int = 0,
                        channel_axis: int = -1) -> Triple:
    """Multi-head self-attention with infinitely many heads: [n, spatial..., C] becomes [n, spatial..., n_chan_out].

    linear_scaling       logits are scaled by 1 / n_chan_key (the default), else by 1 / sqrt(n_chan_key)
    W_*_std, b_std       standard deviations of weights, and of the output's biases; None: none
    attention_mechanism  'SOFTMAX', 'IDENTITY', 'ABS' or 'RELU'
    pos_emb_type         'NONE', 'SUM' or 'CONCAT': random encodings of positions with deviation W_pos_emb_std and the covariance
                         pos_emb_decay_fn(sum over axes of |i - j|^pos_emb_p_norm); None: independent encodings
    val_pos_emb          whether the values see them too
    n_chan_key, n_chan_val, n_heads, n_chan_pos_emb   of finite networks; kernels use the last one for 'CONCAT'. Those with
                         values of another width than keys, with 'CONCAT', with attention layers of different sizes, and for vectors
                         are computed by JAX
    With linear_scaling=False and 'SOFTMAX' there is no closed form: kernels are means over 2,048 draws, the same in each
    call, with errors of about 0.1 to 1 %; widelimit.gram() of widelimit.layers.attention gives standard errors,
    and accepts more draws.
    ValueError for deviations that are not finite and unknown words.
    """
    check_deviations("GlobalSelfAttention", W_key_std=W_key_std, W_value_std=W_value_std, W_query_std=W_query_std,
                     W_out_std=W_out_std, b_std=b_std, W_pos_emb_std=W_pos_emb_std)
    weights = choice("GlobalSelfAttention: attention_mechanism", AttentionMechanism, attention_mechanism)
    fields = {"scaling": "inverse_width" if linear_scaling else "inverse_sqrt_width", "weights": weights.name.lower(),
              "query_key_std": float(W_key_std * W_query_std),
              "output_value_variance": float(W_out_std * W_value_std)**2, "bias_variance": variance(b_std)}
    kind = choice("GlobalSelfAttention: pos_emb_type", PositionalEmbedding, pos_emb_type)
    encodings = _encodings(kind, pos_emb_p_norm, pos_emb_decay_fn, n_chan_pos_emb, W_pos_emb_std, val_pos_emb)
    return triple(_Attention(int(n_chan_out), int(n_heads), int(n_chan_key), int(n_chan_val), fields, encodings, b_std is not None,
                             int(batch_axis), int(channel_axis)))
