"""Layers of a user's functions that JAX reads: derivatives, and digests that tell them apart."""

import gc
import pickle
import subprocess
import sys
import weakref

import numpy as np
import pytest

import widelimit
from widelimit import layers
from widelimit._jax import double_precision

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")


def mixing(nngp, ntk, left, right):
    """Each position gets half the mean of all, and is scaled by the variances."""
    factor = 1 / jnp.sqrt((1 + left[:, None]) * (1 + right[None, :]))
    both = [None if k is None else (0.5 * k + 0.5 * jnp.mean(k)) * factor for k in (nngp, ntk)]
    return tuple(both)


def erf_dual(p, q, c):
    return 2 / jnp.pi * jnp.arcsin(2 * c / jnp.sqrt((1 + 2 * p) * (1 + 2 * q)))


def sequences(layer):
    return widelimit.Network([layers.conv([3]), layer, layers.conv([2]), layers.erf(), layers.global_average_pool(), layers.dense()])


def dense(layer):
    return widelimit.Network([layers.dense(1.5), layer, layers.dense(2), layer, layers.dense()])


@pytest.fixture
def x():
    return np.random.default_rng(3).normal(size=(3, 5, 2))


def check_vjp(network, x, kernel):
    """gram_vjp against differences."""
    weights = np.random.default_rng(4).normal(size=(len(x), len(x)))
    gradient = widelimit.gram_vjp(network, x, **{kernel: weights})
    direction = np.random.default_rng(5).normal(size=x.shape)

    def at(step):
        return np.sum(weights * getattr(widelimit.gram(network, x + step * direction), kernel))

    expected = (at(1e-5) - at(-1e-5)) / 2e-5
    assert np.sum(gradient * direction) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("kernel", ["nngp", "ntk"])
def test_a_pair_layer_of_jax_has_derivatives(x, kernel):
    check_vjp(sequences(layers.pair(mixing)), x, kernel)


@pytest.mark.parametrize("kernel", ["nngp", "ntk"])
def test_a_dual_of_jax_has_an_ntk_and_derivatives(x, kernel):
    own, built_in = dense(layers.elementwise_dual(erf_dual)), dense(layers.erf())
    flat = x.reshape(3, -1)
    for name in ("nngp", "ntk"):
        assert np.allclose(getattr(widelimit.gram(own, flat), name), getattr(widelimit.gram(built_in, flat), name), rtol=1e-12)
    check_vjp(own, flat, kernel)


def test_what_jax_cannot_read_has_no_derivatives_as_before(x):
    layer = layers.pair(lambda nngp, ntk, p, q: (np.tanh(nngp), None if ntk is None else np.array(ntk)))
    with pytest.raises(widelimit.ArgumentError, match="pair"):
        widelimit.gram_vjp(sequences(layer), x, nngp=np.ones((3, 3)))


def tanh_and_slope():
    return layers.elementwise(lambda z: np.tanh(z) + 0.3 * z, lambda z: 1.3 - np.tanh(z)**2)


@pytest.mark.parametrize("kernel", ["nngp", "ntk"])
def test_one_expression_of_jax_has_its_slope_and_derivatives(x, kernel):
    flat = x.reshape(3, -1)
    own, both = dense(layers.elementwise(lambda z: jnp.tanh(z) + 0.3 * z)), dense(tanh_and_slope())
    found, expected = (getattr(widelimit.gram(network, flat), kernel) for network in (own, both))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    check_vjp(own, flat, kernel)
    weights = np.arange(9.0).reshape(3, 3)
    expected = widelimit.gram_vjp(both, flat, **{kernel: weights})
    np.testing.assert_allclose(widelimit.gram_vjp(own, flat, **{kernel: weights}), expected, rtol=1e-11)
    from widelimit.jax import gram

    with double_precision():
        found = jax.jit(jax.grad(lambda inputs: jnp.sum(weights * getattr(gram(own, inputs), kernel))))(jnp.asarray(flat))
    np.testing.assert_allclose(found, expected, rtol=1e-11)


def test_models_learn_features_through_one_expression():
    x = np.random.default_rng(6).normal(size=(15, 3))
    networks = (widelimit.Network([layers.dense(), layer, layers.dense()])
                for layer in (layers.elementwise(lambda z: jnp.tanh(z) + 0.3 * z), tanh_and_slope()))
    found, expected = (widelimit.Model.fit(network, x, np.sin(2 * x[:, 0]), learn_features=1).learned for network in networks)
    assert found["score"] == pytest.approx(expected["score"], rel=1e-6)


def ntk(layer, x):
    return widelimit.gram(widelimit.Network([layers.dense(1.5, 0.1), layer, layers.dense()]), x).ntk


def test_steps_and_kinks_of_jax(x):
    flat = x.reshape(3, -1)
    for phi, closed in ((jax.nn.relu, layers.relu()), (lambda z: z > 0, layers.nonlinearity("rectified_monomial", degree=0)),
                        (jnp.sign, layers.nonlinearity("sign")), (lambda z: 2 * z, layers.nonlinearity("leaky_relu", slope=1.0))):
        expected = ntk(closed, flat) * (4 if phi(1.0) == 2 else 1)
        np.testing.assert_allclose(ntk(layers.elementwise(phi), flat), expected, rtol=1e-9)


def test_differences_stand_in_for_slopes_that_are_not_finite(x):
    """The root that is not chosen has a slope that is not a number."""
    layer = layers.elementwise(lambda z: jnp.where(z > 0, jnp.sqrt(1 + 2 * z) - 1, z))
    safe = layers.elementwise(lambda z: np.where(z > 0, np.sqrt(1 + 2 * np.abs(z)) - 1, z),
                              lambda z: np.where(z > 0, 1 / np.sqrt(1 + 2 * np.abs(z)), 1))
    flat = x.reshape(3, -1)
    np.testing.assert_allclose(ntk(layer, flat), ntk(safe, flat), rtol=1e-8)


def test_a_slope_that_is_another_functions_is_said():
    surrogate = jax.custom_jvp(jnp.tanh)
    surrogate.defjvp(lambda primals, tangents: (jnp.tanh(primals[0]), tangents[0]))
    with pytest.raises(widelimit.ArgumentError, match="the derivative, given or taken by differences, is not that"):
        layers.elementwise(surrogate)
    with pytest.raises(widelimit.ArgumentError, match="numbers of float32: expected a function that computes in double"):
        layers.elementwise(lambda z: jnp.tanh(z.astype(jnp.float32)))
    with pytest.raises(TypeError, match="elementwise: phi: expected the function to return an array of real numbers, got .*complex"):
        layers.elementwise(lambda z: jnp.tanh(z) + 1j)


def test_cycles_through_compiled_functions_are_freed(x):
    class Holder:
        def __init__(self):
            self.scale = 1.5
            self.layer = layers.elementwise(self.phi)

        def phi(self, z):
            return self.scale * jnp.tanh(z)

    holder = Holder()
    ntk(holder.layer, x.reshape(3, -1))
    seen = weakref.ref(holder)
    del holder
    gc.collect()
    assert seen() is None


def test_models_that_no_file_can_hold_say_so(x, tmp_path):
    model = widelimit.Model.fit(sequences(layers.pair(lambda *of: mixing(*of))), x, np.arange(3.0), regulariser=0.1)
    for call, error in ((lambda: model.save(tmp_path / "m"), widelimit.NetworkError), (lambda: pickle.dumps(model), widelimit.NetworkError),
                        (lambda: pickle.dumps(model.network), TypeError)):
        with pytest.raises(error, match=r"layers\[1\] \(pair\): cannot be written, .*keep the code that makes the network$") as told:
            call()
        assert "()" not in str(told.value)
    assert not (tmp_path / "m").exists()


def test_stores_take_layers_of_jax_and_tell_them_apart(x, tmp_path):
    expected = widelimit.gram(sequences(layers.pair(mixing)), x, store=tmp_path / "a")
    again = widelimit.gram(sequences(layers.pair(mixing)), x, store=tmp_path / "a")
    assert np.array_equal(again.nngp, expected.nngp)
    with pytest.raises(widelimit.DataError):
        widelimit.gram(sequences(layers.pair(lambda *of: tuple(2 * k for k in mixing(*of)))), x, store=tmp_path / "a")
    table = np.ones(5)
    for factor in (1, 2):
        # Arrays that a function was made with tell it apart too.
        layer = layers.elementwise_dual(lambda p, q, c, held=jnp.asarray(factor * table[:1]): erf_dual(p, q, c) * held)
        assert layer != layers.elementwise_dual(erf_dual)
    with pytest.raises(widelimit.Error, match="of your own"):
        widelimit.gram(sequences(layers.pair(lambda k, t, p, q: (np.array(k), t))), x, store=tmp_path / "b")


def test_digests_are_the_same_in_another_process():
    code = ("import jax, jax.numpy as jnp; from widelimit import layers\n"
            "print(layers.elementwise_dual(lambda p, q, c: jax.nn.relu(c) + jnp.sqrt(p * q)))")
    first, second = (subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout for _ in "ab")
    assert first == second and "formula" in first
