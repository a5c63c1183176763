"""A transformer's blocks, from its configuration or module, for the theory of signal propagation."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

from .. import _core
from .._arrays import real, whole
from ._configurations import fields_of, plans_of
from ._modules import configuration_of, encoder_plans, layer_index_of, torch_kind
from ._plan import SCALES, Plan


@dataclasses.dataclass(frozen=True)
class Block:
    """The blocks of a transformer as its configuration or module says, at their initialisation. Immutable.

    name        of the model type or of the module's class
    plans       what each block is made of, [depth]: width, norms, attention, mlp
    start_norm  squared norm over width of the tokens that the first block reads
    samples     draws of the logits by which softmax is computed

    The limit has the variances of the weights at the widths of the configuration, and infinitely many heads and channels. Queries
    that share keys and values (grouped queries) have the same limit as others. Dropout is left out, as in evaluation; the tanh form
    of GELU is taken as GELU, from which it differs by less than 5e-4; soft caps of logits are left out where they change logits of 4
    standard deviations by less than 1 %, and refused elsewhere.
    """

    name: str
    plans: tuple[Plan, ...]
    start_norm: float = 1.0
    samples: int = 256

    @property
    def depth(self) -> int:
        """The number of blocks."""
        return len(self.plans)

    @property
    def is_repeated(self) -> bool:
        """Whether all blocks are alike."""
        return len(set(self.plans)) == 1

    @property
    def network(self) -> _core.Network:
        """The block that is repeated, for propagate() and the others. ValueError where blocks differ; `networks` has them all."""
        if not self.is_repeated:
            raise ValueError(f"network: expected blocks that are alike, got {len(set(self.plans))} kinds in {self.depth} blocks; take "
                             "one of `networks`, or layer(k).network")
        return self.plans[0].network(self.samples)

    @property
    def networks(self) -> list[_core.Network]:
        """One Network for each block, [depth]."""
        known = {plan: plan.network(self.samples) for plan in set(self.plans)}
        return [known[plan] for plan in self.plans]

    def layer(self, index: int) -> Block:
        """The same depth, with all blocks like this one."""
        if not 0 <= whole(index, "index") < self.depth:
            raise IndexError(f"index: expected a block from 0 to {self.depth - 1}, got {index}")
        return dataclasses.replace(self, plans=(self.plans[index],) * self.depth)

    def repeated(self, depth: int) -> Block:
        """The blocks again and again from the first one on, `depth` of them."""
        plans = itertools.islice(itertools.cycle(self.plans), whole(depth, "depth", 1))
        return dataclasses.replace(self, plans=tuple(plans))

    def scaled(self, **factors: float) -> Block:
        """The same with scales multiplied in every block. `query_key` and `value_output` multiply the standard deviations of those
        weights (of both of a pair), `mlp_in` and `mlp_out` those of the MLP's, `attention_branch`, `mlp_branch` and `skip` what is
        summed. With a norm of queries and keys, `query_key` is the gain of these norms."""
        for name, factor in factors.items():
            if name not in SCALES:
                raise TypeError(f"scaled: expected factors of {', '.join(SCALES)}, got {name!r}")
            if real(factor, name) < 0:
                raise ValueError(f"{name}: expected a factor of at least 0, got {factor}")
        return dataclasses.replace(self, plans=tuple(plan.scaled(**factors) for plan in self.plans))

    def __str__(self) -> str:
        return "\n".join([f"{self.name}: {self.depth} blocks of width {self.plans[0].width}", *_described(self.plans)])


def _described(plans):
    """A line for each kind of blocks."""
    for plan in dict.fromkeys(plans):
        attention, mlp = plan.attention, plan.mlp
        words = [f"{plan.norm} ({plan.placement})", f"{attention.heads} heads of {attention.head_width}"]
        if attention.key_value_heads != attention.heads:
            words.append(f"{attention.key_value_heads} of keys and values")
        words += [word for word, holds in (
            ("causal", attention.causal), (f"window {attention.window}", attention.window), ("rotary", attention.frequencies),
            ("normalised queries and keys", attention.normalised), 
            (f"soft cap {attention.soft_cap or 0:g} left out, {attention.cap_change:.2%} of logits", attention.soft_cap),
            ("parallel branches", plan.parallel)) if holds]
        words.append(f"{'gated ' if mlp.gated else ''}{mlp.activation} of {mlp.hidden}")
        count = sum(one == plan for one in plans)
        yield f"  {count} x {', '.join(words)}" if count != len(plans) else f"  {', '.join(words)}"


def block_from(source: Any, *, depth: int | None = None, samples: int = 256) -> Block:
    """The Block of a transformer.

    source   a configuration of `transformers`, its dict, or the path of a config.json or of its folder, which need neither
             `transformers` nor PyTorch; a model or a layer of one; or an nn.TransformerEncoder or nn.TransformerEncoderLayer
    depth    number of blocks; None: what the source says, and 1 for an nn.TransformerEncoderLayer
    samples  draws of the logits by which softmax is computed, at least 1

    Known model types: gpt2, llama, mistral, qwen2, qwen3, gemma, gemma2, gemma3_text, gpt_neox, vit, bert. Weights have the
    variances of their initialisation (initializer_range, GPT-2's last weights of branches divided by sqrt(2 depth), PyTorch's rules
    of Xavier and Kaiming), whatever their values are now. ValueError names what is not known: a model type, an activation, a kind of
    rotary positions, a field that makes another block, mixtures of experts.
    """
    block = dataclasses.replace(_block_from(source), samples=whole(samples, "samples", 1))
    return block if depth is None else block.repeated(depth)


def _block_from(source):
    fields = fields_of(source)
    if fields is not None:
        return Block(*plans_of(fields))
    if torch_kind(source) is None:
        raise TypeError(f"source: expected a configuration, the path of a config.json, or a module of PyTorch, got {source!r}")
    plans = encoder_plans(source)
    if plans is not None:
        return Block(type(source).__name__, plans)
    fields = configuration_of(source)
    if fields is None:
        raise ValueError(f"source: expected a model of transformers, an nn.TransformerEncoder or an nn.TransformerEncoderLayer, got a "
                         f"{type(source).__name__}, which has no configuration; build its block of layers")
    block = Block(*plans_of(fields))
    index = layer_index_of(source)
    return block if index is None else block.layer(index)
