"""Activations, attention weights and gradients of a model's blocks: by hooks in PyTorch, block by block in JAX."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from .._arrays import whole
from ._layer_activations import Activations
from ._modules import torch_kind


def activations(model: Any, *inputs: Any, blocks: Sequence[Callable[..., Any]] | None = None, gradients: bool = True,
                attention: bool = False, directions: int = 1, seed: int = 0, **options: Any) -> Activations:
    """The Activations of a model's blocks.

    model       a module of PyTorch, which is called with `inputs` and `options` while hooks look at its blocks, in the mode that it is in
                (call model.eval() for one without dropout); or, for JAX, a list of functions, modules of Flax among them, of which each
                takes tokens [sequences, tokens, width] and gives such, and the first reads inputs[0]
    blocks      those of the model; None: the layers of an nn.TransformerEncoder, or of a model of `transformers` the list of as many
                modules as its configuration says
    gradients   whether gradients are measured, which takes a backward pass from each block for each of `directions`
    attention   whether attention weights are asked for: of models of `transformers` with attn_implementation="eager"
    seed        of the random directions

    Blocks must read and give tokens first, as those of `transformers` do. ValueError for models whose blocks are not found, or are not
    called one after another in one forward pass.
    """
    whole(directions, "directions", 1)
    drawn = np.random.default_rng(seed)
    if torch_kind(model) is not None or _is_torch_module(model):
        from ._torch_activations import torch_activations

        return torch_activations(model, inputs, options, blocks, gradients, attention, directions, drawn)
    if isinstance(model, (list, tuple)) and all(callable(block) for block in model) and model:
        if attention or options or blocks is not None or len(inputs) != 1:
            raise TypeError("activations: expected a list of functions and the tokens that the first of them reads, got other arguments "
                            "as well")
        from ._jax_activations import jax_activations

        return jax_activations(model, inputs[0], gradients, directions, drawn)
    raise TypeError(f"model: expected a module of PyTorch, or a list of functions of JAX, got {model!r}")


def _is_torch_module(model):
    return any(one.__module__.startswith("torch.nn") for one in type(model).__mro__)
