"""Arrays and functions of JAX and PyTorch, where these are installed."""

import sys

import numpy as np
import pytest

import widelimit
from widelimit import layers, predict, stax


def kernel_fn():
    return stax.serial(stax.Dense(8, 1.3, 0.2), stax.Erf(), stax.Dense(1))[2]


def test_tensors_of_pytorch(random):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = random.normal(size=(4, 3))
    expected = kernel_fn()(x, None, "ntk")
    tensor = torch.tensor(x, requires_grad=True)
    np.testing.assert_array_equal(kernel_fn()(tensor, None, "ntk"), expected)
    np.testing.assert_array_equal(kernel_fn()(torch.tensor(x.T).T, None, "ntk"), expected)
    assert kernel_fn()(tensor.float(), None, "ntk").dtype == np.float32
    assert predict.gp_inference(torch.tensor(expected), torch.ones(4, 1), 0.1)("ntk").shape == (4, 1)


def test_arrays_of_jax(random):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    x = random.normal(size=(4, 3)).astype(np.float32)
    expected = kernel_fn()(x, None, "ntk")
    found = kernel_fn()(jax.numpy.asarray(x), None, "ntk")
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == np.float32 and isinstance(found, np.ndarray)
    narrow = kernel_fn()(jax.numpy.asarray(x, jax.numpy.bfloat16), None, "ntk")
    np.testing.assert_allclose(narrow, expected, atol=0.05)


def test_kernel_fn_in_a_function_that_jax_compiles(random):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    x1, x2 = (random.normal(size=(n, 3, 4, 2)).astype(np.float32) for n in (3, 2))
    for network in (stax.serial(stax.Conv(8, (2, 2)), stax.Relu(), stax.Flatten(), stax.Dense(1)),
                    stax.serial(stax.Conv(8, (2, 2)), stax.Relu())):
        compiled = jax.jit(network[2], static_argnames="get")
        np.testing.assert_allclose(compiled(x1, x2, get="ntk"), network[2](x1, x2, "ntk"), rtol=1e-6)
        both = jax.jit(lambda a: network[2](a, None, ("nngp", "cov1", "cov2")))(x1)
        np.testing.assert_allclose(both.cov1, network[2](x1, None, "cov1"), rtol=1e-6)
        assert both.cov2 is None
    with pytest.raises(NotImplementedError, match="get to be of nngp"):
        jax.jit(network[2])(x1)


def test_functions_of_jax_are_computed_in_double(random):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    jnp, x = jax.numpy, random.normal(size=(4, 3))
    expected = kernel_fn()(x, None, ("nngp", "ntk"))

    def nngp_fn(cov12, var1, var2):
        return jnp.arcsin(2 * cov12 / jnp.sqrt((1 + 2 * var1) * (1 + 2 * var2))) * 2 / jnp.pi

    for layer in (stax.Elementwise(nngp_fn=nngp_fn), stax.Elementwise(jax.scipy.special.erf),
                  stax.ElementwiseNumerical(jax.scipy.special.erf, deg=25)):
        found = stax.serial(stax.Dense(8, 1.3, 0.2), layer, stax.Dense(1))[2](x, None, ("nngp", "ntk"))
        np.testing.assert_allclose(found.nngp, expected.nngp, rtol=1e-9)
        np.testing.assert_allclose(found.ntk, expected.ntk, rtol=1e-7)


def test_gradient_descent_takes_the_derivative_of_jax(random):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    x, y = random.normal(size=(5, 3)), random.normal(size=(5, 2))
    kernel = kernel_fn()(x, None, "ntk")
    flow = predict.gradient_descent(lambda fx, y: 0.5 * jax.numpy.mean((fx - y)**2), kernel, y)
    np.testing.assert_allclose(flow(4.0), predict.gradient_descent_mse(kernel, y)(4.0), rtol=1e-6)


def test_nothing_is_imported_that_is_not_needed():
    assert not hasattr(widelimit, "jax") and layers.relu().kind == "relu"
    import subprocess

    loaded = subprocess.run([sys.executable, "-c", "import sys, widelimit; print('jax' in sys.modules, 'torch' in "
                             "sys.modules, 'scipy' in sys.modules)"], capture_output=True, text=True, check=True).stdout
    assert loaded.split() == ["False"] * 3
