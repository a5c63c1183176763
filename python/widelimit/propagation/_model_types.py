"""The model types of Hugging Face whose blocks are known: what their configurations call things, and what their code fixes.

Written from the definitions and initialisations of `transformers` 4.40 to 5.0; defaults are those of its configuration classes.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Mapping

_NAMES = {"width": "hidden_size", "depth": "num_hidden_layers", "heads": "num_attention_heads", "hidden": "intermediate_size"}


@dataclasses.dataclass(frozen=True)
class ModelType:
    """How the configurations of one model type are read. Pairs are (field, its default); `activation` is read from the first of its
    fields that is set.

    placement      of norms, as in Plan; start: what the first block reads, as in _configurations.start_norm()
    residual       whether the last weights of branches are drawn with 1 / sqrt(2 depth) of the others' deviation
    head_width     default of head_dim; None: width / heads
    windows        which layers have the window: 'all', 'even' ones, or all but every so many ('5:1')
    only           fields that must have these values, because others make another block
    """

    norm: str
    epsilon: tuple[str, float]
    activation: tuple[str, ...]
    causal: bool
    gated: bool
    start: str
    names: Mapping[str, str] = dataclasses.field(default_factory=lambda: dict(_NAMES))
    placement: str = "pre"
    parallel: tuple[str, bool] | None = None
    residual: bool = False
    rotary_base: tuple[str, float] | None = None
    rotary_share: tuple[str, float] = ("partial_rotary_factor", 1.0)
    head_width: int | None = None
    normalised: bool = False
    window: tuple[str, int | None] | None = None
    windows: str = "all"
    window_switch: tuple[str, bool] | None = None
    sliding_base: tuple[str, float] | None = None
    logit_scale: tuple[str, float] | None = None
    soft_cap: tuple[str, float | None] | None = None
    only: Mapping[str, Any] = dataclasses.field(default_factory=dict)


_LLAMA = ModelType(
    norm="rms_norm", epsilon=("rms_norm_eps", 1e-6), activation=("hidden_act", "silu"), causal=True, gated=True, start="tokens",
    rotary_base=("rope_theta", 10000.0))
_GEMMA = dataclasses.replace(
    _LLAMA, activation=("hidden_activation", "hidden_act", "gelu_pytorch_tanh"), start="scaled tokens", head_width=256)
_GEMMA2 = dataclasses.replace(
    _GEMMA, placement="both", window=("sliding_window", 4096), windows="even", logit_scale=("query_pre_attn_scalar", 256.0),
    soft_cap=("attn_logit_softcapping", 50.0))

MODEL_TYPES: dict[str, ModelType] = {
    "gpt2": ModelType(
        norm="layer_norm", epsilon=("layer_norm_epsilon", 1e-5), activation=("activation_function", "gelu_new"), causal=True,
        gated=False, start="tokens and positions", residual=True,
        names={"width": "n_embd", "depth": "n_layer", "heads": "n_head", "hidden": "n_inner"}),
    "llama": _LLAMA,
    "mistral": dataclasses.replace(_LLAMA, window=("sliding_window", 4096)),
    "qwen2": dataclasses.replace(_LLAMA, window=("sliding_window", 4096), window_switch=("use_sliding_window", False)),
    "qwen3": dataclasses.replace(_LLAMA, window=("sliding_window", 4096), window_switch=("use_sliding_window", False), head_width=128,
                                 normalised=True),
    "gemma": _GEMMA,
    "gemma2": _GEMMA2,
    "gemma3_text": dataclasses.replace(
        _GEMMA2, windows="5:1", normalised=True, soft_cap=("attn_logit_softcapping", None), rotary_base=("rope_theta", 1e6),
        sliding_base=("rope_local_base_freq", 10000.0)),
    "gpt_neox": ModelType(
        norm="layer_norm", epsilon=("layer_norm_eps", 1e-5), activation=("hidden_act", "gelu"), causal=True, gated=False,
        start="tokens", parallel=("use_parallel_residual", True), rotary_base=("rotary_emb_base", 10000.0),
        rotary_share=("rotary_pct", 0.25)),
    "vit": ModelType(
        norm="layer_norm", epsilon=("layer_norm_eps", 1e-12), activation=("hidden_act", "gelu"), causal=False, gated=False,
        start="patches"),
    "bert": ModelType(
        norm="layer_norm", epsilon=("layer_norm_eps", 1e-12), activation=("hidden_act", "gelu"), causal=False, gated=False,
        start="normed", placement="post", only={"is_decoder": False, "position_embedding_type": "absolute"}),
}

# Fields that make another block in any model type, unless they have these values.
ONLY: dict[str, Any] = {"add_cross_attention": False, "is_cross_attention": False, "residual_multiplier": 1.0, "attention_multiplier": None,
                        "scale_depth": None, "parallel_attn": False, "alibi": False, "use_bidirectional_attention": False}

_EXPERTS = ("a mixture of experts sends each token to the experts that a router scores highest: tokens that share an expert share its "
            "weights and others do not, which no sum of branches says; give the configuration of a dense model, or build the "
            "block of layers with the expert as its MLP, which is what one token sees")
_EXPERT_FIELDS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")


def model_type_of(read: Callable[[str, Any], Any]) -> ModelType:
    """The row of a configuration whose fields `read(name, default)` gives. ValueError for other model types, for mixtures of
    experts, and for fields that make another block."""
    name = read("model_type", None)
    for field in _EXPERT_FIELDS:
        if (read(field, None) or 0) > 1:
            raise ValueError(f"{field}: expected a block without experts, got {read(field, None)}: {_EXPERTS}")
    if name not in MODEL_TYPES:
        raise ValueError(f"model_type: expected one of {', '.join(MODEL_TYPES)}, got {name!r}; build the block of layers (layers.sum, "
                         "layers.attention, ...), or give the configuration of a model of the same kind")
    row = MODEL_TYPES[name]
    for field, value in {**ONLY, **row.only}.items():
        if (found := read(field, value)) not in (value, None):
            raise ValueError(f"{field}: expected {value!r}, got {found!r}, which makes another block than that of {name}")
    return row
