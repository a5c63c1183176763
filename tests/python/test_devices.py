"""Kernels on a device. PoCL, which scripts/debian-packages.txt installs, is one wherever the tests run."""
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
    network = widelimit.Network([layers.conv([3, 3]), layers.relu(), layers.softplus(), layers.dense(),
                                 layers.global_average_pool(), layers.dense()])
    with pytest.raises(widelimit.Error, match="softplus"):
        widelimit.gram(network, images, device="pocl")
