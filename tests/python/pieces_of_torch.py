"""Small modules, each with one piece that from_torch converts: name: (build(width), shape of an input, options)."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class Of(nn.Module):
    """A forward function with submodules."""

    def __init__(self, forward, **modules):
        super().__init__()
        for name, module in modules.items():
            if isinstance(module, nn.Module):
                setattr(self, name, module)
            elif isinstance(module, nn.Parameter):
                self.register_parameter(name, module)
            elif isinstance(module, torch.Tensor):
                self.register_buffer(name, module)
            else:
                setattr(self, name, module)
        self._forward = forward

    def forward(self, x):
        return self._forward(self, x)


def function(phi):
    return lambda w: nn.Sequential(nn.Linear(5, w), Of(lambda s, x: phi(x)), nn.Linear(w, 8))


def module(make):
    return lambda w: nn.Sequential(nn.Linear(5, w), make(), nn.Linear(w, 8))


def on_sequence(*layers, readout=None):
    """A dense layer on [n, 5, 4], layers, a readout over positions."""
    def build(w):
        return nn.Sequential(nn.Linear(4, w), *(layer(w) for layer in layers), Of(readout or (lambda s, x: x.mean(1))), nn.Linear(w, 8))
    return build


def on_image(*layers, first=None):
    """A convolution of images [n, 3, 6, 6], layers, and global average pooling."""
    def build(w):
        begin = first(w) if first else nn.Conv2d(3, w, 3, padding=1)
        return nn.Sequential(begin, *(layer(w) for layer in layers), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LazyLinear(8))
    return lambda w: _materialised(build(w), (2, 3, 6, 6))


def _materialised(built, shape):
    built(torch.zeros(shape, dtype=torch.get_default_dtype()))
    return built


def heads_of(w):
    return max(2, math.isqrt(w))


def attention(**options):
    """Attention by nn.MultiheadAttention, with as many heads as channels a head."""
    def make(w):
        mask = options.get("mask")
        return Of(lambda s, x: s.mha(x, x, x, attn_mask=mask, need_weights=options.get("need_weights", False))[0],
                  mha=nn.MultiheadAttention(w, heads_of(w), batch_first=True, bias=options.get("bias", True)))
    return make


def sdpa(causal=False, mask=None, kv_groups=1, rotary=None):
    """Attention by scaled_dot_product_attention; queries are larger than at the start, so that it attends to something."""
    def make(w):
        h = heads_of(w)
        d = w // h
        kv = h // kv_groups

        def forward(s, x):
            b, t, _ = x.shape
            q, k, v = s.q(x).view(b, t, h, d), s.k(x).view(b, t, kv, d), s.v(x).view(b, t, kv, d)
            q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
            if rotary:
                q, k = rotary(q), rotary(k)
            if kv_groups > 1:
                k, v = (a[:, :, None].expand(b, kv, kv_groups, t, d).reshape(b, h, t, d) for a in (k, v))
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
            return s.o(y.transpose(1, 2).reshape(b, t, w))

        made = Of(forward, q=nn.Linear(w, w, bias=False), k=nn.Linear(w, kv * d, bias=False), v=nn.Linear(w, kv * d, bias=False),
                  o=nn.Linear(w, w))
        for layer in (made.q, made.k, made.v):
            nn.init.normal_(layer.weight, std=1.5 / w**0.5)
        return made
    return make


def rotate_half(q):
    """As Llama writes it: halves of the channels."""
    t, d = q.shape[-2:]
    angle = torch.arange(t, dtype=q.dtype)[:, None] * 10.0 ** (-torch.arange(0, d, 2, dtype=q.dtype) / d)
    angle = torch.cat([angle, angle], -1)
    half = torch.cat([-q[..., d // 2:], q[..., :d // 2]], -1)
    return q * angle.cos() + half * angle.sin()


def rotate_pairs(q):
    """As GPT-J writes it: neighbours."""
    t, d = q.shape[-2:]
    angle = torch.arange(t, dtype=q.dtype)[:, None] * 10.0 ** (-torch.arange(0, d, 2, dtype=q.dtype) / d)
    angle = angle.repeat_interleave(2, -1)
    turned = torch.stack([-q[..., 1::2], q[..., ::2]], -1).flatten(-2)
    return q * angle.cos() + turned * angle.sin()


class RMSNorm(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(w))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class LayerNorm(nn.Module):
    """Written out, over the channels of images."""

    def __init__(self, w):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(w)), nn.Parameter(torch.zeros(w))

    def forward(self, x):
        mean = x.mean(1, keepdim=True)
        variance = (x - mean).pow(2).mean(1, keepdim=True)
        return self.weight[:, None, None] * (x - mean) / torch.sqrt(variance + 1e-6) + self.bias[:, None, None]


def residual(scale=1.0, inner=None):
    def make(w):
        return Of(lambda s, x: x + scale * s.out(F.relu(s.into(x))), into=nn.Linear(w, 2 * w), out=nn.Linear(2 * w, w))
    return make


def gated(w):
    return Of(lambda s, x: s.out(F.silu(s.gate(x)) * s.value(x)), gate=nn.Linear(w, w, bias=False), value=nn.Linear(w, w, bias=False),
              out=nn.Linear(w, w, bias=False))


def glu(w):
    return Of(lambda s, x: s.out(F.glu(s.both(x), -1)), both=nn.Linear(w, 2 * w), out=nn.Linear(w, w))


def parallel(w):
    return Of(lambda s, x: x + s.a(s.norm(x)) + s.out(F.gelu(s.into(s.norm(x)))), norm=nn.LayerNorm(w), a=attention()(w),
              into=nn.Linear(w, w), out=nn.Linear(w, w))


def concatenated(w):
    return Of(lambda s, x: F.relu(s.out(torch.cat([x, F.relu(s.a(x))], 1))), a=nn.Conv2d(w, w // 2, 3, padding=1),
              out=nn.Conv2d(w + w // 2, w, 1))


def squeeze_excite(w):
    return Of(lambda s, x: s.out(x * torch.sigmoid(s.b(F.relu(s.a(x.mean((2, 3), keepdim=True)))))), a=nn.Conv2d(w, w // 2, 1),
              b=nn.Conv2d(w // 2, w, 1), out=nn.Conv2d(w, w, 1))


def relu(w):
    return nn.ReLU()


def conv(*arguments, **options):
    return lambda w: nn.Conv2d(w, w, *arguments, **options)


def token(w):
    """A learned token before the sequence, encodings of positions, and the token's value."""
    return Of(lambda s, x: torch.cat([s.cls.expand(len(x), -1, -1), x], 1) + s.pos, cls=nn.Parameter(torch.randn(1, 1, w) * 0.5),
              pos=nn.Parameter(torch.randn(1, 6, w) * 0.2))


def sinusoids(t, w):
    place, rate = torch.arange(t)[:, None], torch.exp(-torch.arange(0, w, 2) * (math.log(100.0) / w))
    return torch.cat([torch.sin(place * rate), torch.cos(place * rate)], 1)


WINDOW = (torch.arange(5)[:, None] - torch.arange(5)).abs() < 2
CAUSAL = torch.triu(torch.full((5, 5), -math.inf), 1)
VECTOR, SEQUENCE, IMAGE = (5,), (5, 4), (3, 6, 6)

FUNCTIONS = {name: (function(phi), VECTOR, {}) for name, phi in {
    "relu": F.relu, "gelu": F.gelu, "gelu tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu, "tanh": torch.tanh,
    "sigmoid": torch.sigmoid, "softplus": F.softplus, "elu": F.elu, "selu": F.selu, "leaky": lambda x: F.leaky_relu(x, 0.2),
    "erf": torch.erf,
    "sin": torch.sin, "relu6": F.relu6, "hardswish": F.hardswish, "mish": F.mish, "abs": torch.abs, "square": lambda x: x * x,
    "gelu by hand": lambda x: 0.5 * x * (1 + torch.erf(x / 2**0.5)), "quick gelu": lambda x: x * torch.sigmoid(1.702 * x),
    "squared relu": lambda x: F.relu(x) ** 2, "scaled tanh": lambda x: 2 * torch.tanh(0.7 * x), "shifted": lambda x: torch.tanh(x + 0.5),
    "own": lambda x: torch.tanh(x) * torch.exp(-x * x), "x + relu": lambda x: x + F.relu(x),
}.items()}

PIECES = {
    "flatten": (lambda w: nn.Sequential(nn.Conv2d(3, w, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(w * 36, 8)), IMAGE, {}),
    "conv1d": (lambda w: nn.Sequential(nn.Conv1d(4, w, 3, padding=1), nn.ReLU(), nn.Conv1d(w, w, 3, stride=2), nn.ReLU(), nn.Flatten(),
                                       nn.Linear(w * 2, 8)), (4, 5), {"layout": "first"}),
    "conv3d": (lambda w: nn.Sequential(nn.Conv3d(2, w, 2), nn.ReLU(), nn.Conv3d(w, w, 2, padding=1), nn.ReLU(), nn.AdaptiveAvgPool3d(1),
                                       nn.Flatten(), nn.Linear(w, 8)), (2, 3, 3, 3), {}),
    "stride and dilation": (on_image(relu, conv(3, stride=2, padding=1), relu, conv(3, dilation=2, padding=2)), IMAGE, {}),
    "circular": (on_image(relu, conv(3, padding=1, padding_mode="circular"), relu), IMAGE, {}),
    "reflect": (on_image(relu, conv(3, padding=1, padding_mode="reflect"), relu), IMAGE, {}),
    "same": (on_image(relu, conv((2, 3), padding="same"), relu), IMAGE, {}),
    "depthwise": (on_image(relu, lambda w: nn.Conv2d(w, w, 3, padding=1, groups=w), lambda w: LayerNorm(w), conv(1), relu), IMAGE, {}),
    "grouped": (on_image(relu, conv(3, padding=1, groups=2), relu), IMAGE, {}),
    "transposed": (on_image(relu, lambda w: nn.ConvTranspose2d(w, w, 3, stride=2, padding=1, output_padding=1), relu), IMAGE, {}),
    "average pool": (on_image(relu, lambda w: nn.AvgPool2d(2), conv(2), relu), IMAGE, {}),
    "padded pool": (on_image(relu, lambda w: nn.AvgPool2d(3, 2, 1), conv(2), relu), IMAGE, {}),
    "adaptive pool": (on_image(relu, lambda w: nn.AdaptiveAvgPool2d(4), conv(3), relu), IMAGE, {}),
    "upsample": (on_image(relu, lambda w: nn.AvgPool2d(2), lambda w: nn.Upsample(scale_factor=2, mode="bilinear"), conv(3), relu), IMAGE,
                 {}),
    "concat": (on_image(relu, concatenated), IMAGE, {}),
    "squeeze-excite": (on_image(relu, conv(1), squeeze_excite, relu), IMAGE, {}),
    "group norm": (on_image(lambda w: nn.GroupNorm(1, w), relu, conv(3), lambda w: nn.GroupNorm(1, w), relu), IMAGE, {}),
    "batch norm eval": (on_image(lambda w: nn.BatchNorm2d(w).eval(), relu), IMAGE, {}),
    "layer norm by hand": (on_image(lambda w: LayerNorm(w), relu), IMAGE, {}),
    "layer norm": (on_sequence(nn.LayerNorm, relu, lambda w: nn.Linear(w, w), nn.LayerNorm), SEQUENCE, {}),
    "rms norm": (on_sequence(relu, nn.RMSNorm, lambda w: nn.Linear(w, w), relu), SEQUENCE, {}),
    "rms norm by hand": (on_sequence(relu, RMSNorm, lambda w: nn.Linear(w, w), relu), SEQUENCE, {}),
    "residual": (on_sequence(residual(), residual(0.5), relu), SEQUENCE, {}),
    "swiglu": (on_sequence(gated, relu), SEQUENCE, {}),
    "glu": (on_sequence(glu, relu), SEQUENCE, {}),
    "last token": (on_sequence(relu, readout=lambda s, x: x[:, -1]), SEQUENCE, {}),
    "token and encodings": (on_sequence(token, attention(), relu, readout=lambda s, x: x[:, 0]), SEQUENCE, {}),
    "sinusoids": (on_sequence(lambda w: Of(lambda s, x: x + s.table, table=sinusoids(5, w)), lambda w: nn.Linear(w, w), relu), SEQUENCE,
                  {}),
    "graph": (lambda w: Of(lambda s, x: s.out(F.relu(s.b(s.a @ F.relu(s.c(s.a @ x)))).mean(1)),
                           a=torch.rand(5, 5, generator=torch.Generator(
        ).manual_seed(1), dtype=torch.double) / 2, c=nn.Linear(4, w), b=nn.Linear(w, w), out=nn.Linear(w, 8)), SEQUENCE, {}),
    "multihead attention": (on_sequence(attention(), relu), SEQUENCE, {}),
    "attention with weights": (on_sequence(attention(need_weights=True, bias=False), relu), SEQUENCE, {}),
    "causal": (on_sequence(attention(mask=CAUSAL), relu), SEQUENCE, {}),
    "sdpa": (on_sequence(sdpa(), relu), SEQUENCE, {}),
    "sdpa causal": (on_sequence(sdpa(causal=True), relu), SEQUENCE, {}),
    "sdpa window": (on_sequence(sdpa(mask=WINDOW), relu), SEQUENCE, {}),
    "grouped queries": (on_sequence(sdpa(kv_groups=2), relu), SEQUENCE, {}),
    "rotary halves": (on_sequence(sdpa(rotary=rotate_half), relu), SEQUENCE, {}),
    "rotary pairs": (on_sequence(sdpa(rotary=rotate_pairs, causal=True), relu), SEQUENCE, {}),
    "parallel block": (on_sequence(parallel, nn.LayerNorm), SEQUENCE, {}),
    "patches": (lambda w: Of(lambda s, x: s.out(F.relu(s.into(x.view(-1, 3, 3, 2, 3, 2).permute(0, 2, 4, 1, 3, 5).reshape(-1, 9,
                                                                                                                          12))).mean(1)),
                             into=nn.Linear(12, w), out=nn.Linear(w, 8)), IMAGE, {}),
}
ATTENDING = {"multihead attention", "attention with weights", "causal", "sdpa", "sdpa causal", "sdpa window", "grouped queries",
             "rotary halves",
             "rotary pairs", "parallel block", "token and encodings"}
