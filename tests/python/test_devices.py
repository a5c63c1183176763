"""Kernels on a device. PoCL, which scripts/debian-packages.txt installs, is one wherever the tests run."""
import multiprocessing
from functools import partial

import numpy as np
import pytest

import widelimit
from widelimit import layers

NETWORK = widelimit.Network([layers.conv([3, 3], weight_variance=2), layers.relu(), layers.conv([2, 3], strides=[2, 1]),
                             layers.erf(), layers.global_average_pool(), layers.dense()])


@pytest.fixture
def images():
    return np.random.default_rng(3).normal(size=(5, 6, 5, 2))


def test_devices_are_listed():
    assert any("portable computing" in found.platform.lower() and found.is_available for found in widelimit.devices())


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-12), (np.float32, 3e-6)])
def test_device_agrees_with_the_cpu(images, dtype, tolerance):
    exact, other = widelimit.gram(NETWORK, images), widelimit.gram(NETWORK, images.astype(dtype), device="pocl")
    for right, kernel in (exact.nngp, other.nngp), (exact.ntk, other.ntk):
        own = np.sqrt(np.outer(np.diag(right), np.diag(right)))
        assert np.abs(kernel - right).max() > 0 or dtype == np.float64
        assert (np.abs(kernel - right) / own).max() < tolerance


def test_block_chooses_for_what_is_called_in_it(images):
    labels = np.array([0, 1, 0, 1, 1])
    on_cpu = widelimit.Model.fit(NETWORK, images, labels, labels=True, regulariser=1e-3)
    with widelimit.device("pocl"):
        assert np.array_equal(widelimit.gram(NETWORK, images).ntk, widelimit.gram(NETWORK, images, device="pocl").ntk)
        model = widelimit.Model.fit(NETWORK, images, labels, labels=True, regulariser=1e-3)
        mean = model.mean(images)
        assert np.array_equal(widelimit.gram(NETWORK, images, device="cpu").ntk, widelimit.gram(NETWORK, images, device="cpu").ntk)
    assert np.allclose(mean, on_cpu.mean(images), rtol=1e-9, atol=1e-9)
    assert np.array_equal(widelimit.gram(NETWORK, images).ntk, widelimit.gram(NETWORK, images, device="cpu").ntk)


def test_a_device_that_is_not_there_is_an_error(images):
    with pytest.raises(widelimit.Error, match="no such device"):
        widelimit.gram(NETWORK, images, device="no such device")
    with pytest.raises(TypeError, match="device"):
        widelimit.gram(NETWORK, images, device=1)
    # An empty text, as of a variable of the environment, is not the CPU.
    with pytest.raises(ValueError, match="device: expected 'cpu', 'gpu' or a name, got an empty text"):
        widelimit.gram(NETWORK, images, device="")


def test_a_layer_that_a_device_lacks_is_named(images):
    network = widelimit.Network([layers.conv([3, 3]), layers.relu(), layers.conv([3, 3]), layers.gaussian(b=0.01),
                                 layers.dense(), layers.global_average_pool(), layers.dense()])
    with pytest.raises(widelimit.Error, match="gaussian"):
        widelimit.gram(network, images, device="pocl")


def test_functions_of_python_are_computed_on_devices(images):
    network = widelimit.Network([layers.conv([3, 3]), layers.elementwise(np.arctan, lambda z: 1 / (1 + z * z)),
                                 layers.conv([3, 3]), layers.silu(),
                                 layers.global_average_pool(), layers.dense()])
    computed, exact = (widelimit.gram(network, images.astype(float), device=name) for name in ("pocl", "cpu"))
    np.testing.assert_allclose(computed.nngp, exact.nngp, rtol=1e-12)
    np.testing.assert_allclose(computed.ntk, exact.ntk, rtol=1e-12)


VECTORS = widelimit.Network([layers.dense(1.5, 0.1), layers.erf(), layers.dense(), layers.relu(), layers.dense()])


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-13), (np.float32, 3e-6)])
def test_derivatives_of_vectors_on_a_device(dtype, tolerance):
    rng = np.random.default_rng(5)
    x1, x2 = rng.normal(size=(20, 7)).astype(np.float32), rng.normal(size=(12, 7)).astype(np.float32)
    weights = {"nngp": rng.normal(size=(20, 12)), "ntk": rng.normal(size=(20, 12))}
    exact = widelimit.gram_vjp(VECTORS, x1.astype(float), x2.astype(float), **weights)
    found = widelimit.gram_vjp(VECTORS, x1.astype(dtype), x2.astype(dtype), **weights, device="pocl")
    with widelimit.device("pocl"):
        block = widelimit.gram_vjp(VECTORS, x1.astype(dtype), x2.astype(dtype), **weights)
    on_cpu = widelimit.gram_vjp(VECTORS, x1.astype(dtype), x2.astype(dtype), **weights, device="cpu")
    for right, there, within, here in zip(exact, found, block, on_cpu):
        assert np.abs(there - right).max() < tolerance * np.abs(right).max()
        assert np.array_equal(there, within)
        assert not np.array_equal(there, here)


def test_derivatives_with_positions_stay_on_the_cpu_within_a_block(images):
    weight = np.ones((5, 5))
    with pytest.raises(widelimit.Error, match="positions, whose derivatives are computed on the CPU"):
        widelimit.gram_vjp(NETWORK, images, ntk=weight, device="pocl")
    with widelimit.device("pocl"):
        assert np.array_equal(widelimit.gram_vjp(NETWORK, images, ntk=weight),
                              widelimit.gram_vjp(NETWORK, images, ntk=weight, device="cpu"))
    with pytest.raises(widelimit.Error, match="no such device"):
        widelimit.gram_vjp(VECTORS, np.ones((2, 7)), ntk=np.ones((2, 2)), device="no such device")


def used_after_fork(call):
    """What a forked process says of call(), which must not wait for threads of this one."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply_async(told, (call,)).get(60)


def told(call):
    try:
        return f"no error: {call()}"
    except widelimit.Error as error:
        return str(error)


def listed():
    return len(widelimit.devices())


def opened():
    with widelimit.device("pocl"):
        return None


def computed(device="pocl"):
    return float(widelimit.gram(NETWORK, np.ones((2, 6, 5, 2)), device=device).ntk[0, 0])


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning", "ignore:.*fork:RuntimeWarning")
def test_a_forked_process_is_told_to_use_spawn():
    assert computed() > 0
    for call in (listed, opened, computed):
        message = used_after_fork(call)
        assert "this process was forked from one that had opened the devices" in message
        assert 'multiprocessing.get_context("spawn")' in message
    assert used_after_fork(partial(computed, "cpu")) == f"no error: {computed('cpu')}"


def test_a_parameter_that_float_cannot_hold_is_an_error_of_its_layer(images):
    network = widelimit.Network([layers.conv([3, 3]), layers.rms_norm(epsilon=1e39), layers.flatten()])
    with pytest.raises(widelimit.Error, match=r"layers\[1\] \(rms_norm\): the constant 1e\+39, .* beyond the range of float"):
        widelimit.gram(network, images.astype(np.float32), device="pocl")
    assert np.isfinite(widelimit.gram(network, images, device="pocl").nngp).all()
