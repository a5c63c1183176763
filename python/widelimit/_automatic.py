"""Networks where nobody names one."""

from __future__ import annotations

from typing import Any

from ._arrays import whole
from ._core import Network, choose_network
from .layers import dense, relu

AUTOMATIC = "auto"


def default_network(depth: int = 3, weight_variance: float = 2.0, bias_variance: float = 0.01) -> Network:
    """So many hidden ReLU layers, three by default, of these variances, and an output layer of weight variance 1."""
    hidden = [dense(weight_variance, bias_variance), relu()]
    return Network([*hidden * whole(depth, "depth"), dense(1, bias_variance)])


def require_automatic(word: Any, shape: tuple[int, ...], others: bool) -> None:
    """ValueError for another word than 'auto' and for other inputs; others: whether they have lengths, masks or graphs."""
    if word != AUTOMATIC:
        raise ValueError(f"network: expected a Network or {AUTOMATIC!r}, got {word!r}")
    if len(shape) != 2 or others:
        raise ValueError(f"network: {AUTOMATIC!r} is for inputs [n, channels], got shape {shape}; give a Network")


def automatic_network(batch: Any, targets: Any, validation: Any, options: Any) -> tuple[Network, dict[str, Any]]:
    """The network that is chosen for a batch and its targets, and what is said about it; sets the options that go with it.
    validation: targets of validation data, or None."""
    network, chosen, rows, trials = choose_network(batch, targets, validation, options)
    described = [{"network": network, "inputs": inputs, "targets": fitted, "score": score, **({"unsolved": why} if why else {})}
                 for network, inputs, fitted, score, why in trials]
    return network, {**{name: described[chosen][name] for name in ("network", "inputs", "targets")}, "rows": rows,
                     "trials": described}
