"""The calls of neural-tangents' public programs (docs/neural-tangents.md), on small inputs."""

from functools import partial

import numpy as np
import pytest

import widelimit as nt
from widelimit import stax

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = jax.numpy


@pytest.fixture
def data(random):
    """Training inputs and targets, test inputs; arrays of JAX."""
    x, test = (jnp.asarray(random.normal(size=(n, 6)), jnp.float32) for n in (12, 5))
    return x, jnp.sin(x[:, :2]), test


def network():
    return stax.serial(stax.Dense(512, 1.0, 0.05), stax.Erf(), stax.Dense(2, 1.0, 0.05))


def test_weight_space(data):
    """A network and its linearisation, trained side by side with an optimiser of JAX's."""
    optimizers = pytest.importorskip("jax.example_libraries.optimizers", reason="JAX has no optimizers")
    x, y, test = data
    init_fn, f, _ = network()
    _, params = init_fn(jax.random.PRNGKey(0), (-1, 6))
    f_lin = nt.linearize(f, params)
    opt_init, opt_apply, get_params = optimizers.momentum(0.1, 0.9)
    opt_apply = jax.jit(opt_apply)
    outputs = []
    for function in (f, f_lin):
        step = jax.jit(jax.grad(lambda p: ((function(p, x) - y)**2).mean()))
        state = opt_init(params)
        for k in range(10):
            state = opt_apply(k, step(get_params(state)), state)
        outputs.append(function(get_params(state), test))
    np.testing.assert_allclose(*outputs, atol=0.01)
    assert np.abs(outputs[0] - f(params, test)).max() > 0.2


def test_function_space(data):
    """Training by gradient descent against its prediction by the empirical kernel."""
    x, y, test = data
    init_fn, apply_fn, _ = network()
    apply_fn = jax.jit(apply_fn)
    _, params = init_fn(jax.random.PRNGKey(0), (-1, 6))
    ntk = nt.batch(nt.empirical_ntk_fn(apply_fn, vmap_axes=0), batch_size=4, device_count=0)
    predictor = nt.predict.gradient_descent_mse(ntk(x, None, params), y)
    time, steps = 10.0, 100
    predicted = predictor(time, apply_fn(params, x), apply_fn(params, test), ntk(test, x, params))
    gradient = jax.grad(lambda p: 0.5 * ((apply_fn(p, x) - y)**2).mean())
    trained = jax.lax.fori_loop(0, steps, lambda _, p: jax.tree_util.tree_map(
        lambda array, slope: array - time / steps * slope, p, gradient(p)), params)
    for found, inputs in zip(predicted, (x, test)):
        np.testing.assert_allclose(found, apply_fn(trained, inputs), atol=0.06)
        assert np.abs(found - apply_fn(params, inputs)).max() > 0.2


def test_infinite_networks(data):
    x, y, test = data
    kernel_fn = nt.batch(stax.serial(stax.Dense(1, 2.0, 0.05), stax.Relu(), stax.Dense(1, 2.0, 0.05))[2], device_count=0,
                         batch_size=0)
    predictions = nt.predict.gradient_descent_mse_ensemble(kernel_fn, x, y, diag_reg=1e-3)(x_test=test)
    for prediction in predictions:
        prediction.block_until_ready()
        assert prediction.shape == (5, 2)


def test_sentences_with_masks(random):
    x, test = (jnp.asarray(random.normal(size=(n, 20, 4)), jnp.float32) for n in (6, 4))
    x, test = x.at[0, 12:].set(100.0), test.at[1, 15:].set(100.0)
    kernel_fn = stax.serial(stax.Conv(out_chan=1, filter_shape=(3,), strides=(1,), padding="VALID"), stax.Relu(),
                            stax.GlobalSelfAttention(n_chan_out=1, n_chan_key=1, n_chan_val=1, pos_emb_type="SUM", W_pos_emb_std=1.0,
                                                     pos_emb_decay_fn=lambda d: 1 / (1 + d**2), n_heads=1),
                            stax.Relu(), stax.GlobalAvgPool(), stax.Dense(out_dim=1))[2]
    predict = nt.predict.gradient_descent_mse_ensemble(kernel_fn=kernel_fn, x_train=x, y_train=x[:, 0, :2], diag_reg=1e-6,
                                                       mask_constant=100.0)
    for prediction in predict(x_test=test, get=("nngp", "ntk")):
        assert prediction.block_until_ready().shape == (4, 2) and np.isfinite(prediction).all()


def test_own_nonlinearities(data):
    def nngp_fn(cov12, var1, var2):
        product = jnp.sqrt(var1 * var2)
        return product * jnp.exp(cov12 / product - 1)

    x, _, test = data
    automatic, by_hand = (stax.serial(stax.Dense(1), layer)[2](x, test, "ntk") for layer in (
        stax.Elementwise(nngp_fn=nngp_fn), stax.ExpNormalized()))
    np.testing.assert_allclose(automatic, by_hand, atol=1e-6)
    closed, numerical = (stax.serial(stax.Dense(1), layer, stax.Dense(1))[2](x, test) for layer in (
        stax.Gelu(), stax.ElementwiseNumerical(jax.nn.gelu, deg=25)))
    for name in ("nngp", "ntk"):
        np.testing.assert_allclose(getattr(closed, name), getattr(numerical, name), atol=1e-3)


def test_implementations_agree(random):
    x1, x2 = (jnp.asarray(random.normal(size=(n, 6, 6, 2)), jnp.float32) for n in (2, 3))
    init_fn, f, _ = stax.serial(stax.Conv(4, (3, 3)), stax.Relu(), stax.Conv(4, (3, 3)), stax.Flatten(), stax.Dense(3))
    _, params = init_fn(jax.random.PRNGKey(1), x1.shape)
    kernels = [nt.empirical_ntk_fn(f=f, trace_axes=(), vmap_axes=0, implementation=kind)(x2, x1, params)
               for kind in nt.NtkImplementation]
    for kernel in kernels:
        assert kernel.shape == (3, 2, 3, 3)
        np.testing.assert_array_equal(kernel, kernels[0])


def test_ensembles_of_the_cookbook(data):
    """Many networks at once, by vmap over keys, with a compiled apply_fn."""
    x, y, test = data
    init_fn, apply_fn, _ = network()
    apply_fn = jax.jit(apply_fn)

    def train(key):
        _, params = init_fn(key, (-1, 6))
        gradient = jax.grad(lambda p: 0.5 * ((apply_fn(p, x) - y)**2).mean())
        for _ in range(3):
            params = jax.tree_util.tree_map(lambda array, slope: array - 0.5 * slope, params, gradient(params))
        return apply_fn(params, test)

    keys = jax.random.split(jax.random.PRNGKey(1), 4)
    many = jax.jit(jax.vmap(train))(keys)
    assert many.shape == (4, 5, 2)
    np.testing.assert_allclose(many[2], train(keys[2]), rtol=1e-4, atol=1e-5)


def kernel_of(pairs):
    return nt.Kernel(cov1=jnp.diag(pairs), nngp=pairs, cov2=None, ntk=None, is_gaussian=True, is_reversed=False,
                     diagonal_batch=True, diagonal_spatial=False, shape1=(pairs.shape[0], 32), shape2=(pairs.shape[1], 32),
                     x1_is_x2=True, is_input=True, batch_axis=0, channel_axis=1)


def fixed_point(f, start, threshold):
    """By Newton's method."""
    slope = jax.grad(lambda x: f(x) - x)
    return jax.lax.while_loop(lambda state: jnp.abs(state[0] - state[1]) > threshold,
                              lambda state: (state[0] - (f(state[0]) - state[0]) / slope(state[0]), state[0]), (start, 0.0))[0]


def correlation_map(w_variance, b_variance):
    kernel_fn = stax.serial(stax.Dense(32, jnp.sqrt(w_variance), jnp.sqrt(b_variance)), stax.Erf())[2]
    q = fixed_point(lambda p: kernel_fn(kernel_of(jnp.array([[p]]))).nngp[0, 0], 1.0, 1e-5)
    return lambda c: kernel_fn(kernel_of(q * jnp.array([[1, c], [c, 1]]))).nngp[1, 0] / q


def test_phase_diagram():
    """Fixed points and slopes of a layer of affine map and erf on a grid of variances."""
    def over_the_grid(function):
        return jax.jit(jax.vmap(jax.vmap(function, (0, None)), (None, 0)))

    w, b = jnp.array([0.5, 2.5]), jnp.array([0.05, 0.3])
    slopes = over_the_grid(partial(lambda c, w, b: jax.grad(correlation_map(w, b))(c), 1.0))(w, b)
    fixed = over_the_grid(lambda w, b: fixed_point(correlation_map(w, b), 0.1, 1e-5))(w, b)
    for row in range(2):
        for column in range(2):
            q, c = 1.0, 0.1
            for _ in range(400):
                z = float(w[column]) * q + float(b[row])
                q = 2 / np.pi * np.arcsin(2 * z / (1 + 2 * z))
            z = float(w[column]) * q + float(b[row])
            for _ in range(400):
                c = 2 / np.pi * np.arcsin(2 * (float(w[column]) * q * c + float(b[row])) / (1 + 2 * z)) / q
            np.testing.assert_allclose(slopes[row, column], float(w[column]) * 4 / np.pi / np.sqrt(1 + 4 * z), rtol=1e-4)
            np.testing.assert_allclose(fixed[row, column], c, rtol=1e-3)
