"""What a transformer's block is made of, and the layers of its limit."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from .. import _core, layers

# What a block's scales are called: factors on standard deviations, except those of branches and skips.
SCALES = ("query_key", "value_output", "mlp_in", "mlp_out", "attention_branch", "mlp_branch", "skip")

# Activations by the names that configurations and PyTorch give them: layer, factor on its input, and on its output.
# The tanh form of GELU is taken as GELU itself: the two differ by less than 5e-4 everywhere.
ACTIVATIONS: dict[str, tuple[str, float, float]] = {
    "relu": ("relu", 1, 1), "gelu": ("gelu", 1, 1), "gelu_new": ("gelu", 1, 1), "gelu_fast": ("gelu", 1, 1),
    "gelu_pytorch_tanh": ("gelu", 1, 1), "gelu_python": ("gelu", 1, 1), "silu": ("silu", 1, 1), "swish": ("silu", 1, 1),
    "tanh": ("tanh", 1, 1), "sigmoid": ("sigmoid", 1, 1), "quick_gelu": ("silu", 1.702, 1 / 1.702), "linear": ("identity", 1, 1)}

# The largest share by which a soft cap may change logits of 4 standard deviations.
MOST_CAP_CHANGE = 0.01


@dataclasses.dataclass(frozen=True)
class Attention:
    """The attention of a block. Variances are those of one weight times the inputs that are summed with it.

    logit_factor       what multiplies query times key besides 1 / sqrt(head_width)
    frequencies        of rotary positions in radians a position, one for each pair of channels; None: no rotary positions
    window             positions closer than this are seen; None: all
    normalised         whether queries and keys are brought to norm 1 by a norm of their own
    soft_cap           logits l become soft_cap tanh(l / soft_cap); None: they stay
    """

    heads: int
    key_value_heads: int
    head_width: int
    causal: bool
    query_variance: float
    key_variance: float
    value_variance: float
    output_variance: float
    logit_factor: float = 1.0
    frequencies: tuple[float, ...] | None = None
    window: int | None = None
    normalised: bool = False
    soft_cap: float | None = None

    @property
    def query_key_std(self) -> float:
        """Standard deviation of the logits of a token of norm 1."""
        # A norm of queries and keys takes the scale of their weights out.
        weights = 1.0 if self.normalised else math.sqrt(self.query_variance * self.key_variance)
        return weights * self.logit_factor

    @property
    def cap_change(self) -> float:
        """By what share the soft cap changes a logit of 4 standard deviations; 0 without one. Layers have no soft cap: blocks are
        refused where this is not small."""
        return 0.0 if self.soft_cap is None else (4 * self.query_key_std / self.soft_cap) ** 2 / 3


@dataclasses.dataclass(frozen=True)
class Mlp:
    """The feed-forward branch: activation(in) or, if gated, activation(gate) times in, followed by out."""

    hidden: int
    activation: str
    gated: bool
    in_variance: float
    out_variance: float
    in_bias_variance: float = 0.0
    out_bias_variance: float = 0.0


@dataclasses.dataclass(frozen=True)
class Plan:
    """One block.

    norm       'layer_norm' or 'rms_norm'
    placement  where norms stand: 'pre' before each branch, 'post' after each sum, 'both' before and after each branch
    parallel   whether both branches read the block's input
    factors    what scales are multiplied with, by the names of SCALES; 1 where there is none
    """

    width: int
    norm: str
    epsilon: float
    placement: str
    parallel: bool
    attention: Attention
    mlp: Mlp
    factors: tuple[tuple[str, float], ...] = ()

    def factor(self, scale: str) -> float:
        """What this scale is multiplied with."""
        return dict(self.factors).get(scale, 1.0)

    def scaled(self, **factors: float) -> Plan:
        """The same block with scales multiplied by these."""
        return dataclasses.replace(self, factors=tuple((name, self.factor(name) * factors.get(name, 1.0)) for name in SCALES))

    def network(self, samples: int) -> _core.Network:
        """The block as layers; softmax is sampled by so many draws."""
        return _core.Network(_block_layers(self, samples))


def _block_layers(plan, samples):
    attention, mlp = [_attention_layer(plan, samples)], _mlp_layers(plan)
    skip = (plan.factor("skip"), [])
    branches = [(plan.factor("attention_branch"), _branch(plan, attention)), (plan.factor("mlp_branch"), _branch(plan, mlp))]
    if plan.parallel:
        return [layers.sum(skip, *branches), *_after_sum(plan)]
    return [layer for branch in branches for layer in (layers.sum(skip, branch), *_after_sum(plan))]


def _norm(plan):
    return getattr(layers, plan.norm)(epsilon=plan.epsilon)


def _branch(plan, inner):
    before = [_norm(plan)] if plan.placement in ("pre", "both") else []
    return [*before, *inner, *([_norm(plan)] if plan.placement == "both" else [])]


def _after_sum(plan):
    return [_norm(plan)] if plan.placement == "post" else []


def _attention_layer(plan, samples):
    attention = plan.attention
    options: dict[str, Any] = {}
    if attention.window is not None:
        options["window"] = attention.window
    if attention.frequencies is not None:
        options["rotary"] = {"frequencies": list(attention.frequencies)}
    return layers.attention(
        "inverse_sqrt_width", query_key_std=plan.factor("query_key") ** 2 * attention.query_key_std,
        output_value_variance=plan.factor("value_output") ** 4 * attention.value_variance * attention.output_variance,
        causal=attention.causal, samples=samples, **options)


def _mlp_layers(plan):
    mlp = plan.mlp
    kind, into, out = ACTIVATIONS[mlp.activation]
    first = plan.factor("mlp_in") ** 2
    second = layers.dense(plan.factor("mlp_out") ** 2 * out ** 2 * mlp.out_variance, mlp.out_bias_variance)
    gate = [layers.dense(first * into ** 2 * mlp.in_variance, into ** 2 * mlp.in_bias_variance), getattr(layers, kind)()]
    if not mlp.gated:
        return [*gate, second]
    return [layers.product(gate, [layers.dense(first * mlp.in_variance, mlp.in_bias_variance)]), second]
