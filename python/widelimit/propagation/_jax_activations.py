"""Activations of blocks that are functions of JAX's arrays."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from ._layer_activations import Activations, gradient_columns


def jax_activations(blocks: Sequence[Callable[[Any], Any]], tokens: Any, gradients: bool, directions: int,
                    drawn: np.random.Generator) -> Activations:
    """activations() of functions that are applied one after another."""
    layers = [jnp.asarray(tokens)]
    for k, block in enumerate(blocks):
        layers.append(_first(block(layers[-1])))
        if layers[-1].shape != layers[0].shape:
            raise ValueError(f"blocks[{k}]: expected tokens of shape {layers[0].shape}, as came, got {layers[-1].shape}")
    columns = gradient_columns(_squared_gradients(blocks, layers, directions, drawn)) if gradients else (None, None)
    return Activations([np.asarray(layer) for layer in layers], [], *columns)


def _squared_gradients(blocks, layers, directions, drawn):
    """As those of PyTorch's modules. Each block's pullback is kept, so that blocks run once more and backward passes end at the start."""
    pullbacks = [jax.vjp(lambda x, block=block: _first(block(x)), layer)[1] for block, layer in zip(blocks, layers)]
    found = []
    for depth in range(len(layers)):
        squares = []
        for _ in range(directions):
            gradient = jnp.asarray(drawn.standard_normal(layers[0].shape), layers[0].dtype)
            for pullback in reversed(pullbacks[:depth]):
                (gradient,) = pullback(gradient)
            squares.append(np.square(np.asarray(gradient, np.float64)).mean(axis=(1, 2)))
        found.append(np.concatenate(squares))
    return found


def _first(output):
    return output[0] if isinstance(output, (tuple, list)) else output
