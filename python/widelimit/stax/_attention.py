"""GlobalSelfAttention."""

from dataclasses import dataclass
from typing import Any, Optional

from .. import layers
from ._module import Module, check_batch_axis, check_channel_axis, variance
from ._triple import triple


@dataclass
class _Attention(Module):
    n_chan_out: int
    fields: dict
    encodings: Optional["_Encodings"]
    channel_axis: int
    name = "GlobalSelfAttention"

    def lower(self, value):
        check_channel_axis(self.name, value, self.channel_axis)
        fields = dict(self.fields)
        if self.encodings is not None:
            fields["positions"] = self.encodings.fields(value)
        return value.then(layers.attention(**fields), channels=self.n_chan_out,
                          places=value.places + (self.n_chan_out,))


@dataclass
class _Encodings:
    """Positional encodings with covariance decay(sum over axes of |i - j|^power)."""

    kind: str
    power: int
    decay: Any
    channels: Optional[int]
    std: float
    in_values: bool

    def fields(self, value):
        input_weight, position_weight = 1.0, self.std**2
        if self.kind == "CONCAT":
            channels = value.channels if self.channels is None else self.channels
            input_weight = value.channels / (value.channels + channels)
            position_weight *= channels / (value.channels + channels)
        return {**self._covariance(value), "input_weight": input_weight, "position_weight": position_weight,
                "in_values": self.in_values}

    def _covariance(self, value):
        if self.decay is None:
            return {"kind": "identity"}
        largest = sum((size - 1)**self.power for size in value.shape)
        return {"kind": "decay", "power": self.power, "values": [float(self.decay(float(r)))
                                                                for r in range(largest + 1)]}


def _encodings(kind, power, decay, channels, std, in_values):
    if kind == "NONE":
        return None
    if kind not in ("SUM", "CONCAT"):
        raise ValueError(f"GlobalSelfAttention: pos_emb_type: expected 'NONE', 'SUM' or 'CONCAT', got {kind!r}")
    if power != int(power) or power < 1:
        raise NotImplementedError(f"GlobalSelfAttention: pos_emb_p_norm: expected an integer of at least 1, got {power}")
    return _Encodings(kind, int(power), decay, channels, float(std), bool(in_values))


def GlobalSelfAttention(n_chan_out, n_chan_key, n_chan_val, n_heads, linear_scaling=True, W_key_std=1.0,
                        W_value_std=1.0, W_query_std=1.0, W_out_std=1.0, b_std=None, attention_mechanism="SOFTMAX",
                        pos_emb_type="NONE", pos_emb_p_norm=2, pos_emb_decay_fn=None, n_chan_pos_emb=None,
                        W_pos_emb_std=1.0, val_pos_emb=False, batch_axis=0, channel_axis=-1):
    """Multi-head self-attention, with logits scaled by 1/width (linear_scaling) or 1/sqrt(width)."""
    check_batch_axis("GlobalSelfAttention", batch_axis)
    mechanism = str(attention_mechanism).upper()
    known = {"SOFTMAX": "softmax", "IDENTITY": "identity", "RELU": "relu", "ABS": "abs"}
    if mechanism not in known:
        raise ValueError(f"GlobalSelfAttention: attention_mechanism: expected {', '.join(known)}, got "
                         f"{attention_mechanism!r}")
    fields = {"scaling": "inverse_width" if linear_scaling else "inverse_sqrt_width", "weights": known[mechanism],
              "query_key_std": float(W_key_std * W_query_std),
              "output_value_variance": float(W_out_std * W_value_std)**2, "bias_variance": variance(b_std)}
    encodings = _encodings(str(pos_emb_type).upper(), pos_emb_p_norm, pos_emb_decay_fn, n_chan_pos_emb, W_pos_emb_std,
                           val_pos_emb)
    return triple(_Attention(int(n_chan_out), fields, encodings, channel_axis))
