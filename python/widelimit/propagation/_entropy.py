"""Entropies of the attention weights of a block in the limit, whose logits are Gaussian."""

from __future__ import annotations

from typing import NamedTuple, Sequence

import numpy as np

from ._plan import Plan
from ._types import Numbers


class AttentionEntropy(NamedTuple):
    """Of a row of attention weights in nats, block by block, [depth]: the mean over rows and draws of the logits, its standard
    error, and the largest that there can be, the mean logarithm of the number of keys that a row sees."""

    entropy: Numbers
    error: Numbers
    uniform: Numbers


def attention_entropy(plans: Sequence[Plan], grams: Numbers, draws: int = 256, seed: int = 0) -> AttentionEntropy:
    """The AttentionEntropy of blocks that read tokens of these Gram matrices, [depth, n, n]."""
    return AttentionEntropy(*np.array([_entropy(plan, gram, draws, seed) for plan, gram in zip(plans, grams)]).T)


def _entropy(plan, gram, draws, seed):
    keys = _read_by_attention(plan, gram)
    queries, seen = np.sqrt(np.diag(keys)), _seen(plan.attention, len(gram))
    values, vectors = np.linalg.eigh(keys * _turned(plan.attention, len(gram)))
    root = vectors * np.sqrt(np.maximum(values, 0))
    logits = np.random.default_rng(seed).standard_normal((draws, len(gram))) @ root.T
    scale = plan.factor("query_key") ** 2 * plan.attention.query_key_std
    rows = _row_entropies(scale * queries[:, None] * logits[:, None, :], seen, plan.attention.soft_cap)
    means = rows.mean(axis=1)
    return means.mean(), means.std(ddof=1) / np.sqrt(draws), np.log(seen.sum(axis=1)).mean()


def _row_entropies(logits, seen, soft_cap):
    """Entropies of softmax over the keys that are seen, of logits [..., n, n]."""
    if soft_cap is not None:
        logits = soft_cap * np.tanh(logits / soft_cap)
    logits = np.where(seen, logits, -np.inf)
    logits = logits - logits.max(axis=-1, keepdims=True)
    weights = np.exp(logits)
    sums = weights.sum(axis=-1)
    return np.log(sums) - (weights * np.where(seen, logits, 0)).sum(axis=-1) / sums


def _read_by_attention(plan, gram):
    """The covariance of the tokens as queries and keys see them."""
    norms = np.diag(gram)
    if plan.placement in ("pre", "both"):
        gram = gram / np.sqrt(np.outer(norms + plan.epsilon, norms + plan.epsilon))
        norms = np.diag(gram)
    return gram / np.sqrt(np.outer(norms, norms)) if plan.attention.normalised else gram


def _seen(attention, n):
    """Which keys [n, n] a row sees."""
    distance = np.arange(n)[:, None] - np.arange(n)
    seen = np.ones((n, n), bool) if attention.window is None else np.abs(distance) < attention.window
    return seen & (distance >= 0) if attention.causal else seen


def _turned(attention, n):
    """What rotary positions multiply the covariance of two keys' logits with, [n, n]."""
    if attention.frequencies is None:
        return np.ones((n, n))
    distance = np.arange(n)[:, None] - np.arange(n)
    return np.cos(distance[..., None] * np.array(attention.frequencies)).mean(axis=-1)
