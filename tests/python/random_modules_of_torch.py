"""Random modules that have a limit: module_of(seed) gives build(width), the shape of an input, and whether it attends."""

import random

import torch
import torch.nn.functional as F
from pieces_of_torch import Of, attention, gated, heads_of, parallel, residual
from torch import nn

FUNCTIONS = [nn.ReLU, nn.GELU, nn.Tanh, nn.SiLU, nn.ELU, nn.LeakyReLU, nn.Softplus]


def _of_vectors(choice, depth):
    """Linear layers, functions, residual branches, norms and gates; layers behind a function are linear."""
    makers = [lambda w: nn.Linear(4, w)]
    for _ in range(depth):
        function = choice.choice(FUNCTIONS)
        makers += choice.choice([
            [lambda w, f=function: f(), lambda w: nn.Linear(w, w)],
            [lambda w, f=function: Of(lambda s, x: x + 0.7 * s.b(s.f(s.a(x))), a=nn.Linear(w, w), b=nn.Linear(w, w, bias=False), f=f())],
            [lambda w: nn.LayerNorm(w), lambda w, f=function: f(), lambda w: nn.Linear(w, 2 * w), lambda w: nn.Linear(2 * w, w)],
            [lambda w, f=function: f(), lambda w: nn.RMSNorm(w), lambda w: nn.Linear(w, w)],
            [gated],
            [lambda w, f=function: Of(lambda s, x: s.c(torch.cat([s.a(x), F.relu(s.b(x))], -1)), a=nn.Linear(w, w // 2), b=nn.Linear(w, w),
                                      c=nn.Linear(w + w // 2, w))],
        ])
    return makers


def _of_images(choice, depth):
    makers = [lambda w: nn.Conv2d(2, w, 3, padding=1)]
    for _ in range(depth):
        function, size, stride = choice.choice(FUNCTIONS), choice.choice([1, 2, 3]), choice.choice([1, 1, 2])
        mode = choice.choice(["zeros", "circular"])
        makers += choice.choice([
            [lambda w, f=function: f(), lambda w, k=size, s=stride, m=mode: nn.Conv2d(w, w, k, s, padding=k // 2, padding_mode=m)],
            [lambda w, f=function: Of(lambda s, x: s.a(x) + s.c(s.f(s.b(x))), a=nn.Conv2d(w, w, 1), b=nn.Conv2d(w, w, 3, padding=1),
                                      c=nn.Conv2d(w, w, 3, padding=1), f=f())],
            [lambda w: nn.GroupNorm(1, w), lambda w, f=function: f(), lambda w: nn.Conv2d(w, w, 3, padding=1, bias=False)],
            [lambda w, f=function: f(), lambda w: nn.AvgPool2d(2, 1), lambda w: nn.Conv2d(w, w, 2, padding=1)],
        ])
    return makers


def _of_sequences(choice, depth):
    makers = [lambda w: nn.Linear(4, w)]
    for _ in range(depth):
        makers += choice.choice([[residual(0.5)], [attention()], [nn.LayerNorm, attention()], [parallel], [residual(), nn.LayerNorm],
                                 [lambda w: nn.TransformerEncoderLayer(w, heads_of(w), 2 * w, 0.0, "gelu", batch_first=True,
                                                                       norm_first=True)],
                                 [lambda w: nn.TransformerEncoderLayer(w, heads_of(w), w, 0.0, batch_first=True)]])
    return makers


def module_of(seed):
    choice = random.Random(seed)
    kind = choice.choice(["vectors", "vectors", "images", "images", "sequences"])
    makers = {"vectors": _of_vectors, "images": _of_images, "sequences": _of_sequences}[kind](choice, choice.randint(1, 3))
    function, flat = choice.choice(FUNCTIONS), choice.random() < 0.5

    def build(w):
        inner = nn.Sequential(*(make(w) for make in makers), function() if kind != "sequences" else nn.Linear(w, w))
        if kind == "vectors":
            return nn.Sequential(inner, nn.Linear(w, 8))
        if kind == "sequences":
            return nn.Sequential(inner, Of(lambda s, x: x[:, 0] if flat else x.mean(1)), nn.Linear(w, 8))
        size = inner(torch.zeros(1, 2, 5, 5)).shape[2:]
        head = [nn.Flatten(), nn.Linear(w * size[0] * size[1], 8)] if flat else [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(w, 8)]
        return nn.Sequential(inner, *head)

    return build, {"vectors": (4,), "images": (2, 5, 5), "sequences": (4, 4)}[kind], kind == "sequences"
