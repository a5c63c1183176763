"""Activations of a module of PyTorch, by hooks."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import torch

from ._layer_activations import Activations, gradient_columns


def torch_activations(model: Any, inputs: Any, options: Any, blocks: Any, gradients: bool, attention: bool, directions: int,
                      drawn: np.random.Generator) -> Activations:
    """activations() of a module."""
    blocks = list(blocks) if blocks is not None else blocks_of(model)
    with _hooked(blocks, gradients) as tokens, torch.set_grad_enabled(gradients):
        output = model(*inputs, **options, **({"output_attentions": True} if attention else {}))
    if len(tokens) != len(blocks) + 1:
        raise ValueError(f"blocks: expected {len(blocks)} blocks that are called once each, one after another, got {len(tokens) - 1} calls")
    columns = gradient_columns(_squared_gradients(tokens, directions, drawn)) if gradients else (None, None)
    return Activations([_array(one) for one in tokens], _attention_of(output) if attention else [], *columns)


def blocks_of(model: Any) -> list[Any]:
    """The blocks of a model. ValueError where they are not found."""
    if isinstance(model, torch.nn.TransformerEncoder):
        return list(model.layers)
    depth = getattr(getattr(model, "config", None), "num_hidden_layers", None)
    for module in model.modules():
        if isinstance(module, torch.nn.ModuleList) and len(module) == depth:
            return list(module)
    raise ValueError(f"blocks: expected them for a {type(model).__name__}, in which none were found: activations(model, ..., blocks="
                     "model.layers)")


@contextlib.contextmanager
def _hooked(blocks, gradients):
    """Gives a list that a forward pass fills: the tokens before the first block, and after each."""
    tokens: list[Any] = []

    def before(module, args, named):
        given = args[0] if args else named["hidden_states"]
        # Gradients are those by the first block's tokens, which become leaves.
        given = given.detach().requires_grad_(gradients)
        tokens[:] = [given]
        return ((given, *args[1:]), named) if args else (args, {**named, "hidden_states": given})

    def after(module, args, output):
        tokens.append(output[0] if isinstance(output, (tuple, list)) else output)

    handles = [blocks[0].register_forward_pre_hook(before, with_kwargs=True)]
    handles += [block.register_forward_hook(after) for block in blocks]
    try:
        yield tokens
    finally:
        for handle in handles:
            handle.remove()


def _squared_gradients(tokens, directions, drawn):
    """Of each layer |d<X^l, R> / dX^0|^2 / (tokens width), [directions x sequences], R standard normal."""
    found = []
    for layer in tokens:
        squares = []
        for _ in range(directions):
            direction = torch.as_tensor(drawn.standard_normal(tuple(layer.shape)), dtype=layer.dtype, device=layer.device)
            (gradient,) = torch.autograd.grad(layer, tokens[0], direction, retain_graph=True)
            squares.append(gradient.double().square().mean(dim=(1, 2)).cpu().numpy())
        found.append(np.concatenate(squares))
    return found


def _attention_of(output):
    weights = getattr(output, "attentions", None)
    if not weights or any(one is None for one in weights):
        raise ValueError('attention: expected a model that gives its weights; those of transformers do with attn_implementation="eager"')
    return [_array(one) for one in weights]


def _array(tensor):
    tensor = tensor.detach()
    # NumPy has no bfloat16, whose numbers float32 has.
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).cpu().numpy()
