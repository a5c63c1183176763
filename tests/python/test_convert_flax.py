"""widelimit.from_flax: modules of NNX against their outputs over fresh initialisations, extrapolated from two widths in 1/width."""

import numpy as np
import pytest
import widelimit

nnx = pytest.importorskip("flax.nnx", reason="Flax is not installed (torch's environment has it)")
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402


class MLP(nnx.Module):
    def __init__(self, w, rngs):
        self.a, self.norm = nnx.Linear(5, w, rngs=rngs), nnx.LayerNorm(w, rngs=rngs)
        self.b, self.c = nnx.Linear(w, w, rngs=rngs), nnx.Linear(w, 8, rngs=rngs)

    def __call__(self, x):
        return self.c(nnx.gelu(self.b(nnx.silu(self.norm(self.a(x))))))


class CNN(nnx.Module):
    def __init__(self, w, rngs):
        self.a, self.b = nnx.Conv(3, w, (3, 3), rngs=rngs), nnx.Conv(w, w, (3, 3), strides=2, rngs=rngs)
        self.norm, self.up = nnx.GroupNorm(w, num_groups=1, rngs=rngs), nnx.ConvTranspose(w, w, (3, 3), strides=(2, 2), rngs=rngs)
        self.c = nnx.Linear(w, 8, rngs=rngs)

    def __call__(self, x):
        x = nnx.avg_pool(nnx.relu(self.a(x)), (2, 2))
        x = nnx.elu(self.norm(self.b(x)))
        return self.c(nnx.softplus(self.up(x)).mean((1, 2)))


class Transformer(nnx.Module):
    def __init__(self, w, rngs):
        heads = max(2, int(w**0.5))
        self.embed, self.n1, self.n2 = nnx.Linear(4, w, rngs=rngs), nnx.RMSNorm(w, rngs=rngs), nnx.LayerNorm(w, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(heads, w, decode=False, rngs=rngs)
        self.into, self.out, self.head = nnx.Linear(w, 2 * w, rngs=rngs), nnx.Linear(2 * w, w, rngs=rngs), nnx.Linear(w, 8, rngs=rngs)
        self.encodings = nnx.Param(0.5 * jax.random.normal(rngs.params(), (5, w)))

    def __call__(self, x):
        x = self.embed(x) + self.encodings[...]
        x = x + self.attention(self.n1(x), mask=jnp.tril(jnp.ones((5, 5)))[None, None])
        x = x + self.out(nnx.gelu(self.into(self.n2(x)), approximate=True))
        return self.head(x[:, -1])


@pytest.mark.parametrize("module, shape, width, factor", [(MLP, (5,), 24, 2), (CNN, (8, 8, 3), 16, 2), (Transformer, (5, 4), 16, 4)])
def test_modules_agree_with_their_limits(module, shape, width, factor):
    x, results = np.random.default_rng(0).normal(size=(3, *shape)).astype(np.float32), []
    for size in (width, factor * width):
        network = widelimit.from_flax(module(size, nnx.Rngs(1000)), x, layout="last")
        limit = widelimit.gram(network, network.inputs(x).astype(float), kernels="nngp")
        drawn = jax.jit(lambda key: module(size, nnx.Rngs(key))(x))
        outputs = np.array([drawn(key) for key in jax.random.split(jax.random.key(1), 100)], float)
        products = outputs @ outputs.transpose(0, 2, 1) / outputs.shape[2]
        sampled = 0 if limit.nngp_error is None else limit.nngp_error
        results.append((products.mean(0) - limit.nngp, np.hypot(products.std(0) / 100**0.5, sampled)))
    (low, low_error), (high, high_error) = results
    deviation = np.abs(factor * high - low) / np.hypot(factor * high_error, low_error)
    assert deviation.max() < 4, deviation


def test_flax_and_pytorch_have_one_limit():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    found = widelimit.from_flax(MLP(128, nnx.Rngs(0)), x)
    layers = [torch.nn.Linear(5, 128), torch.nn.LayerNorm(128, 1e-6), torch.nn.SiLU(), torch.nn.Linear(128, 128), torch.nn.GELU("tanh"),
              torch.nn.Linear(128, 8)]
    for layer in layers[::3] + layers[5:]:
        torch.nn.init.zeros_(layer.bias)
    variances = {"0.weight": 1 / 5, "3.weight": 1 / 128, "5.weight": 1 / 128}
    same = widelimit.from_torch(torch.nn.Sequential(*layers), torch.tensor(x), variances=variances)
    given = {"a.kernel": 1 / 5, "b.kernel": 1 / 128, "c.kernel": 1 / 128}
    found = widelimit.from_flax(MLP(128, nnx.Rngs(0)), x, variances=given)
    np.testing.assert_allclose(widelimit.gram(found, x).ntk, widelimit.gram(same, x).ntk, rtol=1e-4)


def test_modules_without_a_limit_say_why():
    class Pool(nnx.Module):
        def __init__(self, rngs):
            self.a, self.b = nnx.Conv(3, 8, (3, 3), rngs=rngs), nnx.Linear(8, 2, rngs=rngs)

        def __call__(self, x):
            return self.b(nnx.max_pool(self.a(x), (2, 2)).mean((1, 2)))

    class Words(nnx.Module):
        def __init__(self, rngs):
            self.words, self.b = nnx.Embed(7, 8, rngs=rngs), nnx.Linear(8, 2, rngs=rngs)

        def __call__(self, x):
            return self.b(self.words(x).mean(1))

    x = np.zeros((2, 4, 4, 3), np.float32)
    with pytest.raises(widelimit.convert.ConversionError, match="module.a: a maximum over positions has no limit"):
        widelimit.from_flax(Pool(nnx.Rngs(0)), x)
    with pytest.raises(widelimit.convert.ConversionError, match="one-hot vectors|looked up"):
        widelimit.from_flax(Words(nnx.Rngs(0)), np.zeros((2, 3), int))
