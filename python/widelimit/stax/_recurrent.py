"""Recurrent layers, which neural-tangents has not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

from .. import layers
from ._activations import nonlinearity
from ._diagonal import NO, Diagonal
from ._module import Module, Simple, WithAxes, check_deviations, variance
from ._structure import Place
from ._triple import Triple, triple
from ._weights import biases_of


@dataclass
class _Recurrent(WithAxes):
    out_dim: int
    activation: Module
    W_std: float
    R_std: float
    b_std: Optional[float]
    is_backward: bool
    batch_axis: int
    channel_axis: int
    in_jax = "recurrent"
    name = "Recurrent"
    parameterization = "ntk"
    diagonal = Diagonal(NO, NO)

    def lower(self, value):
        if len(value.shape) != 1:
            raise ValueError(f"Recurrent: expected sequences, inputs with one axis of positions, got shape {value.full_shape}")
        layer = layers.from_fields(
            "recurrent", weight_variance=variance(self.W_std), recurrent_variance=variance(self.R_std),
            bias_variance=variance(self.b_std), nonlinearity={"layer": self.activation.kind, **self.activation.fields},
            direction="backward" if self.is_backward else "forward")
        return value.then(layer, channels=self.out_dim, places=value.places + (self.out_dim,), is_gaussian=False)

    def parameters(self, value, counter):
        channels = self.apply(value).channels
        weights = Place(counter.take(value.channels, channels))
        shape = [1] * (len(value.shape) + 2)
        shape[value.channel_axis] = channels
        biases = biases_of(self, counter, channels, shape)
        return weights, Place(counter.take(channels, channels)), biases


def Recurrent(out_dim: int, activation: Any = None, W_std: float = 1.0, R_std: float = 1.0, b_std: float | None = None,
              backward: bool = False, batch_axis: int = 0, channel_axis: int = -1) -> Triple:
    """A recurrent cell over sequences [n, time, C], by weights shared over time: h_t = activation(W x_t + R h_{t-1} + b), h_0 = 0.
    It leaves h_t at every position, [n, time, out_dim]; Index reads the last state.

    out_dim     channels of finite networks
    activation  a nonlinearity, such as Erf(); None: Relu()
    W_std, R_std, b_std  standard deviations of the weights of inputs (times 1 / sqrt(C)), of those of the state (times
                1 / sqrt(out_dim)), and of biases; None: no biases
    backward    True: from the last position to the first
    TypeError for an activation that is no nonlinearity, or one of functions; ValueError for inputs without exactly one axis of
    positions. See docs/theory/recurrent.md; Alemohammad et al. 2021 (arXiv:2006.10246).
    """
    check_deviations("Recurrent", W_std=W_std, R_std=R_std, b_std=b_std)
    chosen = nonlinearity("Relu", "relu") if activation is None else activation
    module = getattr(chosen[-1], "module", None) if isinstance(chosen, tuple) else None
    if not isinstance(module, Simple) or not module.kind:
        raise TypeError("Recurrent: activation: expected a nonlinearity such as stax.Relu(), not one of functions, got "
                        f"{activation!r}")
    return triple(_Recurrent(int(out_dim), module, W_std, R_std, b_std, bool(backward), int(batch_axis), int(channel_axis)))
