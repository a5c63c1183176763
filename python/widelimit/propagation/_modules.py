"""From modules of PyTorch to the blocks of their initialisation. PyTorch is not imported: the module brings it."""

from __future__ import annotations

from typing import Any

from ._configurations import Fields, fields_of
from ._plan import ACTIVATIONS, Attention, Mlp, Plan

_NO_BLOCK = {
    "TransformerDecoderLayer": "its second attention reads another sequence; layers.cross_attention() builds such a block",
    "TransformerDecoder": "its layers read another sequence; layers.cross_attention() builds such a block",
    "Transformer": "it has two stacks; give its encoder",
    "MultiheadAttention": "it is a layer, not a block; layers.attention() is its limit"}


def torch_kind(module: Any) -> str | None:
    """The name of the class of torch.nn that an object is of, or is derived from; None for anything else."""
    for one in type(module).__mro__:
        if one.__module__.startswith("torch.nn.modules"):
            return one.__name__
    return None


def configuration_of(module: Any) -> Fields | None:
    """The configuration of a model of `transformers`, or of a part of one; None where there is none."""
    for part in module.modules():
        found = fields_of(part.config) if hasattr(part, "config") else None
        if found is not None:
            return found
    return None


def layer_index_of(module: Any) -> int | None:
    """Which layer of its model a part of a model of `transformers` is; None where it does not say."""
    found = {part.layer_idx for part in module.modules() if isinstance(getattr(part, "layer_idx", None), int)}
    return found.pop() if len(found) == 1 else None


def encoder_plans(module: Any) -> tuple[Plan, ...] | None:
    """The blocks of an nn.TransformerEncoderLayer or nn.TransformerEncoder; None for other modules. ValueError for those that
    cannot be blocks."""
    kind = torch_kind(module)
    if kind in _NO_BLOCK:
        raise ValueError(f"module: expected a block of a transformer, got an nn.{kind}: {_NO_BLOCK[kind]}")
    if kind == "TransformerEncoder":
        return tuple(_encoder_layer(layer) for layer in module.layers)
    return (_encoder_layer(module),) if kind == "TransformerEncoderLayer" else None


def _encoder_layer(layer):
    """Weights as PyTorch draws them: queries, keys and values together by Xavier's rule, 2 / (width + 3 width) a weight; the others
    by Kaiming's with a = sqrt(5), 1 / (3 inputs) a weight and a bias; biases of attention are 0."""
    width, hidden, heads = layer.self_attn.embed_dim, layer.linear1.out_features, layer.self_attn.num_heads
    has_bias = layer.linear1.bias is not None
    return Plan(
        width=width, norm="layer_norm", epsilon=layer.norm1.eps, placement="pre" if layer.norm_first else "post", parallel=False,
        attention=Attention(heads=heads, key_value_heads=heads, head_width=width // heads, causal=False, query_variance=0.5,
                            key_variance=0.5, value_variance=0.5, output_variance=1 / 3),
        mlp=Mlp(hidden, _activation_of(layer), gated=False, in_variance=1 / 3, out_variance=1 / 3,
                in_bias_variance=has_bias / (3 * width), out_bias_variance=has_bias / (3 * hidden)))


def _activation_of(layer):
    given = layer.activation
    name = (given.__name__ if hasattr(given, "__name__") else type(given).__name__).lower()
    if name not in ACTIVATIONS:
        raise ValueError(f"activation: expected one of {', '.join(ACTIVATIONS)}, got {given!r}")
    return name
