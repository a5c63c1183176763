"""Recurrent layers of stax and layers: kernels, finite networks, gradients."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import widelimit
from widelimit import layers, stax


@pytest.fixture
def sequences():
    return np.random.default_rng(4).normal(size=(4, 5, 3))


def network(backward=False, readout=None):
    return stax.serial(stax.Recurrent(24, stax.Erf(), 0.9, 1.1, 0.3, backward=backward),
                       stax.GlobalAvgPool() if readout is None else readout, stax.Dense(2, 1.2))


@pytest.mark.parametrize("backward", [False, True])
def test_kernels_are_those_of_layers(sequences, backward):
    _, _, kernel_fn = network(backward)
    other = widelimit.Network([
        layers.recurrent(0.9**2, 1.1**2, 0.3**2, nonlinearity={"layer": "erf"}, direction="backward" if backward else "forward"),
        layers.global_average_pool(), layers.dense(1.2**2)])
    found, expected = kernel_fn(sequences, None, ("nngp", "ntk")), widelimit.gram(other, sequences)
    np.testing.assert_allclose(found.nngp, expected.nngp, rtol=1e-13)
    np.testing.assert_allclose(found.ntk, expected.ntk, rtol=1e-13)


@pytest.mark.parametrize("backward", [False, True])
def test_outputs_by_jax_are_those_of_a_loop(sequences, backward):
    init_fn, apply_fn, _ = network(backward, stax.Index((slice(None), 0 if backward else -1)))
    _, params = init_fn(jax.random.PRNGKey(1), sequences.shape)
    (weights, of_state, biases), _, (last, _) = params
    state = np.zeros((4, 24))
    for t in reversed(range(5)) if backward else range(5):
        z = 0.9 / 3**0.5 * sequences[:, t] @ weights + 1.1 / 24**0.5 * state @ of_state + 0.3 * np.reshape(biases, -1)
        state = np.array(jax.scipy.special.erf(z))
    for found in apply_fn(params, sequences), jax.jit(apply_fn)(params, sequences):
        np.testing.assert_allclose(found, 1.2 / 24**0.5 * state @ last, rtol=2e-5, atol=2e-6)


def test_sampled_networks_have_the_kernels_as_their_limit(sequences):
    init_fn, apply_fn, kernel_fn = stax.serial(stax.Recurrent(128, stax.Relu(), 1.0, 1.2, 0.2), stax.GlobalAvgPool(), stax.Dense(16))
    limit = kernel_fn(sequences, None, ("nngp", "ntk"))
    sampled = widelimit.monte_carlo_kernel_fn(init_fn, apply_fn, jax.random.PRNGKey(2), 32)(sequences, None, ("nngp", "ntk"))
    for found, expected in (sampled.nngp, limit.nngp), (sampled.ntk, limit.ntk):
        own = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
        assert np.abs((found - expected) / own).max() < 0.25
        assert np.abs(np.mean((found - expected) / own)) < 0.16


def test_gradients_of_kernels(sequences, in_double):
    _, _, kernel_fn = network()

    def loss(x):
        return jnp.sum(jnp.sin(kernel_fn(x, None, "ntk")))

    gradient = jax.grad(loss)(sequences)
    step = np.zeros_like(sequences)
    step[1, 2, 0] = 1e-5
    difference = (loss(sequences + step) - loss(sequences - step)) / 2e-5
    assert abs(gradient[1, 2, 0] - difference) < 1e-6 * abs(difference)


def test_derivatives_by_padded_sequences_have_the_shape_of_the_array(sequences):
    network = widelimit.Network([layers.recurrent(nonlinearity=layers.erf()), layers.global_average_pool(), layers.dense()])
    assert network.layers[0] == layers.recurrent(nonlinearity="erf")
    ones, lengths = np.ones((4, 4)), [2, 3, 1, 3]
    found = widelimit.gram_vjp(network, sequences, ntk=ones, lengths1=lengths)
    assert found.shape == sequences.shape and not found[:, 3:].any() and found[1, 2].any()
    both = widelimit.gram_vjp(network, sequences, sequences[:, :4], ntk=ones, lengths1=lengths, lengths2=lengths)
    assert [each.shape for each in both] == [(4, 5, 3), (4, 4, 3)]
    assert widelimit.gram_diagonal_vjp(network, sequences, ntk=np.ones(4), lengths=lengths).shape == sequences.shape


def test_what_is_no_recurrent_layer_is_refused():
    with pytest.raises(widelimit.Error, match="recurrent: nonlinearity: expected a nonlinearity such as relu, got the layer matern"):
        layers.recurrent(nonlinearity="matern")
    with pytest.raises(TypeError, match="expected a nonlinearity such as stax.Relu"):
        stax.Recurrent(8, jnp.tanh)
    with pytest.raises(TypeError, match="expected a nonlinearity such as stax.Relu"):
        stax.Recurrent(8, stax.Dense(3))
    with pytest.raises(ValueError, match="expected sequences, inputs with one axis of positions"):
        stax.Recurrent(8)[0](jax.random.PRNGKey(0), (2, 4, 4, 3))
