"""Layers of which only a part is trained: kernels, empirical kernels, what is refused."""
import jax
import numpy as np
import pytest

import widelimit
from widelimit import layers, stax


@pytest.mark.parametrize("trainable", ["all", "weights", "biases", "none"])
def test_empirical_kernels_have_the_gradients_that_the_limit_has(trainable, in_double):
    x = np.random.default_rng(3).normal(size=(3, 6, 2))
    init_fn, apply_fn, kernel_fn = stax.serial(
        stax.Conv(128, (3,), W_std=1.1, b_std=0.4, trainable=trainable), stax.Relu(), stax.GlobalAvgPool(),
        stax.Dense(8, 1.2, 0.3, trainable=trainable))
    limit = kernel_fn(x, None, ("nngp", "ntk"))
    whole = widelimit.Network([layers.conv([3], padding="valid", weight_variance=1.21, bias_variance=0.16), layers.relu(),
                               layers.global_average_pool(), layers.dense(1.44, 0.09)])
    np.testing.assert_allclose(limit.nngp, widelimit.gram(whole, x).nngp, rtol=1e-13)
    sampled = widelimit.monte_carlo_kernel_fn(init_fn, apply_fn, jax.random.PRNGKey(2), 16)(x, None, "ntk")
    by_jax = widelimit.empirical_ntk_fn(apply_fn)(x, None, init_fn(jax.random.PRNGKey(5), x.shape)[1])
    if trainable == "none":
        assert not np.any(limit.ntk) and not np.any(sampled) and not np.any(by_jax)
        return
    own = np.sqrt(np.outer(np.diag(limit.ntk), np.diag(limit.ntk)))
    assert (np.abs(sampled - limit.ntk) / own).max() < 0.2
    assert (np.abs(np.reshape(by_jax, limit.ntk.shape) - limit.ntk) / own).max() < 0.6


def test_kinds_of_layers_and_what_is_refused():
    x = np.random.default_rng(4).normal(size=(4, 3))
    last = widelimit.Network([layers.dense(2.0, 0.1, trainable="none"), layers.relu(), layers.dense()])
    found = widelimit.gram(last, x)
    np.testing.assert_allclose(found.ntk, found.nngp, rtol=1e-13)
    with pytest.raises(ValueError, match="Dense: trainable: expected one of all, weights, biases, none, got 'bias'"):
        stax.Dense(8, trainable="bias")
    with pytest.raises(widelimit.Error, match="trainable"):
        layers.dense(trainable="bias")
