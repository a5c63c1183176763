"""Modules as other people write them: name: (build(width), shape of an input, options, and the error's text where there is no
limit). Widths are those of hidden channels; attention has as many heads as channels a head."""

import math

import torch
import torch.nn.functional as F
from pieces_of_torch import LayerNorm, RMSNorm, heads_of, rotate_half, sinusoids
from torch import nn


class BasicBlock(nn.Module):
    """ResNet's, with group norm and a strided shortcut."""

    def __init__(self, c, stride=1):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(c, c, 3, stride, 1, bias=False), nn.GroupNorm(1, c)
        self.conv2, self.norm2 = nn.Conv2d(c, c, 3, 1, 1, bias=False), nn.GroupNorm(1, c)
        self.shortcut = nn.Sequential(nn.Conv2d(c, c, 1, stride, bias=False), nn.GroupNorm(1, c)) if stride > 1 else nn.Identity()

    def forward(self, x):
        out = F.relu(self.norm1(self.conv1(x)), inplace=True)
        out = self.norm2(self.conv2(out))
        out += self.shortcut(x)
        return F.relu(out)


class ResNet(nn.Module):
    """A block without and one with a stride. norm: 'batch' is the published one."""

    def __init__(self, c, blocks):
        super().__init__()
        self.stem, self.blocks = nn.Conv2d(3, c, 3, padding=1), nn.Sequential(*blocks)
        self.pool, self.fc = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(c, 8)

    def forward(self, x):
        return self.fc(torch.flatten(self.pool(self.blocks(self.stem(x))), 1))


class PreActivation(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a, self.b = nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(c, c, 3, padding=1)
        self.n1, self.n2 = nn.BatchNorm2d(c), nn.BatchNorm2d(c)

    def forward(self, x):
        return x + self.b(F.relu(self.n2(self.a(F.relu(self.n1(x))))))


class ConvNeXtBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.dwconv, self.norm = nn.Conv2d(c, c, 7, padding=3, groups=c), nn.LayerNorm(c, eps=1e-6)
        self.pwconv1, self.act, self.pwconv2 = nn.Linear(c, 4 * c), nn.GELU(), nn.Linear(4 * c, c)
        self.gamma = nn.Parameter(0.5 * torch.ones(c))

    def forward(self, x):
        y = self.norm(self.dwconv(x).permute(0, 2, 3, 1))
        y = self.gamma * self.pwconv2(self.act(self.pwconv1(y)))
        return x + y.permute(0, 3, 1, 2)


class ConvNeXt(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, c, 2, 2), LayerNorm(c)
        self.stages, self.last, self.head = nn.Sequential(ConvNeXtBlock(c), ConvNeXtBlock(c)), nn.LayerNorm(c), nn.Linear(c, 8)

    def forward(self, x):
        return self.head(self.last(self.stages(self.norm(self.stem(x))).mean([-2, -1])))


class UNet(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.down1, self.down2 = self.twice(3, c), self.twice(c, 2 * c)
        self.pool, self.up, self.last = nn.AvgPool2d(2), nn.ConvTranspose2d(2 * c, c, 2, 2), self.twice(2 * c, c)
        self.out = nn.Conv2d(c, 4, 1)

    @staticmethod
    def twice(a, b):
        return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(b, b, 3, padding=1), nn.ReLU(inplace=True))

    def forward(self, x):
        first = self.down1(x)
        second = self.up(self.down2(self.pool(first)))
        return self.out(self.last(torch.cat([first, second], dim=1))).mean((2, 3))


class DenseNet(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.stem, self.out = nn.Conv2d(3, c, 3, padding=1), nn.Linear(3 * c, 8)
        self.layers = nn.ModuleList(nn.Conv2d((k + 1) * c, c, 3, padding=1) for k in range(2))

    def forward(self, x):
        features = [self.stem(x)]
        for layer in self.layers:
            features.append(layer(F.relu(torch.cat(features, 1))))
        return self.out(F.adaptive_avg_pool2d(F.relu(torch.cat(features, 1)), 1).flatten(1))


class MobileNetBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.stem, self.expand, self.depth = nn.Conv2d(3, c, 3, 2, 1), nn.Conv2d(c, 2 * c, 1), nn.Conv2d(2 * c, 2 * c, 3, 1, 1,
                                                                                                         groups=2 * c)
        self.project, self.out = nn.Conv2d(2 * c, c, 1), nn.Linear(c, 8)

    def forward(self, x):
        x = self.stem(x)
        x = x + self.project(F.relu6(self.depth(F.relu6(self.expand(x)))))
        return self.out(x.mean((2, 3)))


class MLPMixer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embed, self.norm = nn.Conv2d(3, c, 2, 2), nn.LayerNorm(c)
        self.token1, self.token2, self.head = nn.Linear(9, 16), nn.Linear(16, 9), nn.Linear(c, 8)

    def forward(self, x):
        x = self.embed(x).flatten(2).transpose(1, 2)
        x = x + self.token2(F.gelu(self.token1(self.norm(x).transpose(1, 2)))).transpose(1, 2)
        return self.head(x.mean(1))


class PoolFormer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embed, self.n1, self.n2 = nn.Conv2d(3, c, 2, 2), nn.GroupNorm(1, c), nn.GroupNorm(1, c)
        self.pool = nn.AvgPool2d(3, 1, 1, count_include_pad=False)
        self.mlp, self.head = nn.Sequential(nn.Conv2d(c, 2 * c, 1), nn.GELU(), nn.Conv2d(2 * c, c, 1)), nn.Linear(c, 8)

    def forward(self, x):
        x = self.embed(x)
        y = self.n1(x)
        x = self.mlp(self.n2(self.pool(y) - y)) + x
        return self.head(x.mean((2, 3)))


class ViT(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.patch, self.cls = nn.Conv2d(3, c, 3, 3), nn.Parameter(torch.randn(1, 1, c) * 0.5)
        self.pos = nn.Parameter(torch.randn(1, 5, c) * 0.5)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(c, heads_of(c), 2 * c, 0.0, F.gelu, batch_first=True,
                                                                        norm_first=True), 1,
                                             enable_nested_tensor=False)
        self.norm, self.head = nn.LayerNorm(c), nn.Linear(c, 8)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls.expand(x.shape[0], -1, -1), x), dim=1) + self.pos
        return self.head(self.norm(self.encoder(x))[:, 0])


class CausalSelfAttention(nn.Module):
    """nanoGPT's, written out."""

    def __init__(self, c, length):
        super().__init__()
        self.heads, self.attn, self.proj = heads_of(c), nn.Linear(c, 3 * c), nn.Linear(c, c)
        self.register_buffer("mask", torch.tril(torch.ones(length, length)).view(1, 1, length, length))

    def forward(self, x):
        b, t, c = x.size()
        q, k, v = (a.view(b, t, self.heads, c // self.heads).transpose(1, 2) for a in self.attn(x).split(c, dim=2))
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = F.softmax(att.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf")), dim=-1)
        return self.proj((att @ v).transpose(1, 2).contiguous().view(b, t, c))


class GPT(nn.Module):
    def __init__(self, c, tied=False):
        super().__init__()
        self.wte, self.wpe = nn.Linear(6, c, bias=False), nn.Embedding(4, c)
        self.ln1, self.attn, self.ln2 = nn.LayerNorm(c), CausalSelfAttention(c, 4), nn.LayerNorm(c)
        self.mlp, self.ln = nn.Sequential(nn.Linear(c, 4 * c), nn.GELU(approximate="tanh"), nn.Linear(4 * c, c)), nn.LayerNorm(c)
        self.head = nn.Linear(c, 6, bias=False)
        for layer in self.modules():
            if isinstance(layer, (nn.Linear, nn.Embedding)):
                nn.init.normal_(layer.weight, std=0.5 if isinstance(layer, nn.Embedding) else 0.2)
        if tied:
            self.tied = True

    def forward(self, x):
        x = self.wte(x) + self.wpe(torch.arange(x.shape[1]))
        x = x + self.attn(self.ln1(x))
        x = x + self.mlp(self.ln2(x))
        x = self.ln(x)
        if hasattr(self, "tied"):
            return (x @ self.wte.weight).mean(1)
        return self.head(x).mean(1)


class Llama(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads = heads_of(c)
        self.embed, self.n1, self.n2, self.n = nn.Linear(6, c, bias=False), RMSNorm(c), RMSNorm(c), RMSNorm(c)
        self.q, self.k, self.v, self.o = (nn.Linear(c, c, bias=False) for _ in range(4))
        self.gate, self.up, self.down = nn.Linear(c, 2 * c, bias=False), nn.Linear(c, 2 * c, bias=False), nn.Linear(2 * c, c, bias=False)
        self.head = nn.Linear(c, 8, bias=False)

    def forward(self, x):
        x = self.embed(x)
        b, t, c = x.shape
        y = self.n1(x)
        q, k, v = (layer(y).view(b, t, self.heads, -1).transpose(1, 2) for layer in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(rotate_half(q), rotate_half(k), v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, c))
        y = self.n2(x)
        x = x + self.down(F.silu(self.gate(y)) * self.up(y))
        return self.head(self.n(x)[:, -1])


class PostNorm(nn.Module):
    """Attention is all you need: sinusoids, norms behind the sums."""

    def __init__(self, c):
        super().__init__()
        self.embed, self.layer, self.out = nn.Linear(4, c), nn.TransformerEncoderLayer(c, heads_of(c), 2 * c, 0.0,
                                                                                       batch_first=True), nn.Linear(c, 8)
        self.register_buffer("pe", sinusoids(5, c)[None])

    def forward(self, x):
        return self.out(self.layer(self.embed(x) * 2 + self.pe[:, :x.size(1)]).mean(1))


class GraphConvolution(nn.Module):
    """Kipf's, with the adjacency as a buffer."""

    def __init__(self, c):
        super().__init__()
        a = torch.eye(5) + torch.diag(torch.ones(4), 1) + torch.diag(torch.ones(4), -1)
        d = a.sum(1).rsqrt()
        self.register_buffer("a", d[:, None] * a * d)
        self.w1, self.w2, self.out = nn.Linear(4, c, bias=False), nn.Linear(c, c, bias=False), nn.Linear(c, 8)

    def forward(self, x):
        x = F.relu(torch.matmul(self.a, self.w1(x)))
        return self.out(F.relu(self.a @ self.w2(x)).sum(1))


class WaveNet(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.stem, self.out = nn.Conv1d(4, c, 1), nn.Linear(c, 8)
        self.filters, self.gates = (nn.ModuleList(nn.Conv1d(c, c, 2, dilation=2**k) for k in range(2)) for _ in range(2))
        self.skips = nn.ModuleList(nn.Conv1d(c, c, 1) for _ in range(2))

    def forward(self, x):
        x, total = self.stem(x), 0
        for k, (f, g, s) in enumerate(zip(self.filters, self.gates, self.skips)):
            y = F.pad(x, (2**k, 0))
            y = s(torch.tanh(f(y)) * torch.sigmoid(g(y)))
            total, x = total + y, x + y
        return self.out(F.relu(total).mean(-1))


class Highway(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a, self.h, self.t, self.out = nn.Linear(5, c), nn.Linear(c, c), nn.Linear(c, c), nn.Linear(c, 8)

    def forward(self, x):
        x = self.a(x)
        gate = torch.sigmoid(self.t(x))
        return self.out(gate * F.relu(self.h(x)) + (1 - gate) * x)


class LongSkip(nn.Module):
    """EDSR's: residual blocks between which the first features go round."""

    def __init__(self, c):
        super().__init__()
        self.head, self.out = nn.Conv2d(3, c, 3, padding=1), nn.Linear(c, 8)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Conv2d(c, c, 3, padding=1), nn.ReLU(), nn.Conv2d(c, c, 3, padding=1))
                                    for _ in range(2))

    def forward(self, x):
        first = x = self.head(x)
        for block in self.blocks:
            x = x + 0.5 * block(x)
        return self.out(F.relu(first + x).mean((2, 3)))


class SIREN(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(2, c), nn.Linear(c, c), nn.Linear(c, 8)

    def forward(self, x):
        return self.c(torch.sin(1.5 * self.b(torch.sin(3.0 * self.a(x)))))


class ReZero(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a, self.out = nn.Linear(5, c), nn.Linear(c, 8)
        self.layers = nn.ModuleList(nn.Linear(c, c) for _ in range(3))
        self.scales = nn.ParameterList(nn.Parameter(torch.tensor(0.3)) for _ in range(3))

    def forward(self, x):
        x = self.a(x)
        for layer, scale in zip(self.layers, self.scales):
            x = x + scale * layer(F.elu(x))
        return self.out(torch.tanh(x))


class DeepSets(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(4, c), nn.ELU(), nn.Linear(c, c), nn.ELU())
        self.rho = nn.Sequential(nn.Linear(c, c), nn.ELU(), nn.Linear(c, 8))

    def forward(self, x):
        return self.rho(self.phi(x).mean(dim=1))


def vgg(pool):
    return lambda c: nn.Sequential(nn.Conv2d(3, c, 3, padding=1), nn.ReLU(True), pool(2, 2), nn.Conv2d(c, c, 3, padding=1), nn.ReLU(True),
                                   nn.Flatten(), nn.Linear(9 * c, c), nn.ReLU(True), nn.Dropout(), nn.Linear(c, 8))


class Sharing(nn.Module):
    """ALBERT's: one block, used twice."""

    def __init__(self, c):
        super().__init__()
        self.a, self.block, self.out = nn.Linear(5, c), nn.Sequential(nn.Linear(c, c), nn.ReLU()), nn.Linear(c, 8)

    def forward(self, x):
        return self.out(self.block(self.block(self.a(x))))


class LSTM(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.lstm, self.out = nn.LSTM(4, c, batch_first=True), nn.Linear(c, 8)

    def forward(self, x):
        return self.out(self.lstm(x)[0][:, -1])


class BERT(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.words, self.norm, self.out = nn.Embedding(11, c), nn.LayerNorm(c), nn.Linear(c, 2)

    def forward(self, x):
        return self.out(torch.tanh(self.norm(self.words(x)).mean(1)))


IMAGE, SEQUENCE, VECTOR = (3, 6, 6), (5, 4), (5,)
ATTENDING = {"ViT", "GPT", "Llama", "transformer with norms behind"}

ZOO = {
    "ResNet with group norm": (lambda c: ResNet(c, [BasicBlock(c), BasicBlock(c, 2)]), IMAGE, None),
    "ResNet before activation, evaluated": (lambda c: ResNet(c, [PreActivation(c), nn.ReLU()]).eval(), IMAGE, None),
    "VGG with average pooling": (vgg(nn.AvgPool2d), IMAGE, None),
    "ConvNeXt": (ConvNeXt, IMAGE, None), "U-Net": (UNet, IMAGE, None), "DenseNet": (DenseNet, IMAGE, None),
    "PoolFormer": (PoolFormer, IMAGE, None), "long skip": (LongSkip, IMAGE, None), "ViT": (ViT, IMAGE, None), "GPT": (GPT, (4, 6), None),
    "Llama": (Llama, (4, 6), None), "transformer with norms behind": (PostNorm, SEQUENCE, None), "GCN": (GraphConvolution, SEQUENCE, None),
    "WaveNet": (WaveNet, (4, 5), None), "SIREN": (SIREN, (2,), None), "ReZero": (ReZero, VECTOR, None),
    "deep sets": (DeepSets, SEQUENCE, None),
    "VGG": (vgg(nn.MaxPool2d), IMAGE, r"module\.2: a maximum over positions has no limit.*average pooling"),
    "ResNet in training": (lambda c: ResNet(c, [PreActivation(c)]).train(), IMAGE,
                           r"module\.blocks\.0\.n1: batch norm in training.*module\.eval"),
    "MLP-Mixer": (MLPMixer, IMAGE, r"module\.token1: learned weights mix positions.*use attention"),
    "MobileNet": (MobileNetBlock, IMAGE, r"module: a nonlinearity needs Gaussian channels.*module\.depth"),
    "highway": (Highway, VECTOR, r"module: two parts of the sum.*weights of its own"),
    "shared block": (Sharing, VECTOR, r"module\.block\.0: the parameter block\.0\.weight is used at two places.*untie"),
    "GPT, tied": (lambda c: GPT(c, True), (4, 6), r"the parameter wte\.weight is used at two places"),
    "LSTM": (LSTM, SEQUENCE, r"module\.lstm: a recurrent layer.*layers\.recurrent"),
    "BERT": (BERT, "indices", r"module\.words: an embedding of indices.*one_hot=True"),
}
