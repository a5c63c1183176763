"""Functions of one's own: steps, cusps, single precision; what is said of them."""

import time

import numpy as np
import pytest

import widelimit
from widelimit import layers, stax


def kernel_of(layer, x, kernels):
    return widelimit.gram(widelimit.Network([layers.dense(2, 0.1), layer, layers.dense()]), x, kernels=kernels)


@pytest.mark.parametrize("phi,closed", [(np.sign, layers.nonlinearity("sign")),
                                        (lambda z: np.heaviside(z, 0.5), layers.nonlinearity("rectified_monomial", degree=0)),
                                        (lambda z: (z > 0) * np.float32(1), layers.nonlinearity("rectified_monomial", degree=0))])
def test_steps_without_a_derivative_are_those_of_the_library(random, phi, closed):
    x = random.normal(size=(6, 4))
    for kernels in ("nngp", "both"):
        ours, theirs = (kernel_of(layer, x, kernels) for layer in (layers.elementwise(phi), closed))
        np.testing.assert_allclose(ours.nngp, theirs.nngp, rtol=1e-9)
    np.testing.assert_allclose(ours.ntk, theirs.ntk, rtol=1e-9)


def test_many_steps(random):
    kernels = kernel_of(layers.elementwise(np.floor), random.normal(size=(4, 3)), "both")
    with_slope = kernel_of(layers.elementwise(np.floor, np.zeros_like), random.normal(size=(4, 3)), "both")
    assert np.isfinite(kernels.ntk).all() and kernels.nngp.shape == with_slope.nngp.shape


def test_a_cube_root_has_an_nngp_and_no_ntk(random):
    x = random.normal(size=(5, 3))
    found = kernel_of(layers.elementwise(np.cbrt), x, "nngp").nngp
    variances = 2 * (x**2).mean(1) + 0.1
    # With u of variance p, E |u|^(2/3) = (2 p)^(1/3) Gamma(5/6) / sqrt(pi)
    np.testing.assert_allclose(np.diag(found), np.cbrt(2 * variances) * 1.1287870299081260 / np.sqrt(np.pi), rtol=1e-9)
    with pytest.raises(widelimit.ArgumentError, match=r"layers\[1\] \(elementwise\): elementwise: the NTK needs E phi'\^2"):
        kernel_of(layers.elementwise(np.cbrt), x, "both")
    kernel_fn = stax.serial(stax.Dense(1), stax.ElementwiseNumerical(np.cbrt, deg=20))[2]
    assert np.isfinite(kernel_fn(x, None, "nngp")).all()


def test_a_dual_without_a_derivative_names_its_layer(random):
    network = widelimit.Network([layers.dense(), layers.elementwise_dual(lambda p, q, c: np.array(c))])  # JAX cannot read it.
    with pytest.raises(widelimit.ArgumentError, match=r"layers\[1\] \(elementwise_dual\): the NTK needs"):
        widelimit.gram(network, random.normal(size=(3, 2)))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_single_precision_is_refused_at_once(dtype):
    begin = time.perf_counter()
    for phi, slope in ((lambda z: np.tanh(z.astype(dtype)), None), (lambda z: np.maximum(z.astype(dtype), 0), None),
                       (np.tanh, lambda z: 1 - np.tanh(z.astype(dtype))**2)):
        with pytest.raises(widelimit.ArgumentError, match="numbers of float32: expected a function that computes in double"):
            layers.elementwise(phi, slope)
    assert time.perf_counter() - begin < 2


def test_noise_is_refused_soon():
    begin = time.perf_counter()
    with pytest.raises(widelimit.ArgumentError, match="elementwise: phi or its derivative is too rough for quadrature"):
        layers.elementwise(lambda z: np.tanh(z) + 0.3 * z + np.tanh(z.astype(np.float32)))
    assert time.perf_counter() - begin < 10


def test_errors_have_the_names_of_python():
    with pytest.raises(widelimit.ArgumentError, match=r"^elementwise: breakpoints\[0\] must be a finite number"):
        layers.elementwise(np.tanh, breakpoints=[np.nan])
    with pytest.raises(widelimit.ArgumentError, match="^own: the derivative, given or taken by differences, is not that"):
        layers.elementwise(np.tanh, np.tanh, kind="own")
    with pytest.raises(widelimit.ArgumentError, match=r"no such field; layers\[0\] has bias_variance, weight_variance"):
        widelimit.gram_jvp(widelimit.Network([layers.dense(2, 1)]), np.eye(2), direction={"layers[0].weights": 1})


def test_sizes_that_are_none_are_said():
    network = widelimit.Network([layers.dense(), layers.relu(), layers.dense()])
    with pytest.raises(TypeError, match="^widths: expected a sequence of integers, got a ndarray of something else"):
        widelimit.check_limit(network, np.ones((3, 2)))
    with pytest.raises(TypeError, match="^shape: expected a sequence of integers"):
        widelimit.explain(network, [2.5], 3)


def test_functions_that_grow_are_exact_or_refused():
    for phi, slope, closed, variances in ((np.exp, np.exp, layers.exp(), (1e-6, 4, 25, 100)),
                                          (lambda z: z**20, lambda z: 20 * z**19, layers.monomial(20), (1e-3, 1, 100)),
                                          (lambda z: np.exp(.4 * z * z), lambda z: .8 * z * np.exp(.4 * z * z), layers.gaussian(1, .4), (.1, .5))):
        for variance in variances:
            x = np.sqrt(variance) * np.array([[1.0], [0.5]])
            for layer in (layers.elementwise(phi), layers.elementwise(phi, slope)):
                ours, theirs = (widelimit.gram(widelimit.Network([layers.dense(), one]), x) for one in (layer, closed))
                np.testing.assert_allclose(ours.nngp, theirs.nngp, rtol=1e-9)
                np.testing.assert_allclose(ours.ntk, theirs.ntk, rtol=1e-8)
    for phi, variance in ((lambda z: np.exp(z**2), 0.3), (lambda z: np.exp(z**3), 1e-6), (np.exp, 1e4)):
        with pytest.raises(widelimit.NumericalError, match=r"input 0 of x: layers\[1\] \(elementwise\): elementwise: .*variance"):
            widelimit.gram(widelimit.Network([layers.dense(), layers.elementwise(phi)]), [[np.sqrt(variance)]], kernels="nngp")


@pytest.mark.parametrize("wave", [np.cos, lambda z: np.sin(3 * z), lambda z: z * np.sin(z), lambda z: np.sin(20 * z),
                                  lambda z: np.sin(z) + np.abs(z - 0.5)])
def test_functions_that_oscillate_are_called_seldom(wave):
    """Each call of a function of JAX's arrays costs as much as thousands of its values."""
    calls = []

    def counted(z):
        calls.append(np.shape(z))
        return wave(z)

    layers.elementwise(counted)
    assert len(calls) < 4000


@pytest.mark.parametrize("wave, closed", [(np.cos, layers.cos()), (lambda z: np.sin(2 * z), layers.sin(a=1.0, b=2.0))])
def test_functions_that_oscillate_are_exact(random, wave, closed):
    x = 3 * random.normal(size=(4, 3))
    found, expected = (kernel_of(layer, x, "both") for layer in (layers.elementwise(wave), closed))
    np.testing.assert_allclose(found.nngp, expected.nngp, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.ntk, expected.ntk, rtol=1e-9, atol=1e-11)
