"""Arrays and functions of JAX and PyTorch, where these are installed."""

import sys

import numpy as np
import pytest

import widelimit
import widelimit as nt
from widelimit import layers, predict, stax


def kernel_fn():
    return stax.serial(stax.Dense(8, 1.3, 0.2), stax.Erf(), stax.Dense(1))[2]


def test_tensors_of_pytorch(random):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = random.normal(size=(4, 3))
    expected = kernel_fn()(x, None, "ntk")
    tensor = torch.tensor(x, requires_grad=True)
    np.testing.assert_array_equal(kernel_fn()(tensor, None, "ntk").detach(), expected)
    np.testing.assert_array_equal(kernel_fn()(torch.tensor(x.T).T, None, "ntk"), expected)
    assert kernel_fn()(tensor.float(), None, "ntk").dtype == torch.float32
    assert predict.gp_inference(torch.tensor(expected), torch.ones(4, 1), 0.1)("ntk").shape == (4, 1)


def test_arrays_of_jax(random):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    x = random.normal(size=(4, 3)).astype(np.float32)
    expected = kernel_fn()(x, None, "ntk")
    found = kernel_fn()(jax.numpy.asarray(x), None, "ntk")
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == np.float32 and isinstance(found.block_until_ready(), jax.Array)
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
    whole = jax.jit(network[2])(x1, x2)
    assert isinstance(whole, nt.Kernel) and whole.shape1 == network[2](x1, x2).shape1 and not whole.x1_is_x2
    np.testing.assert_allclose(whole.nngp, network[2](x1, x2, "nngp"), rtol=1e-6)
    assert jax.jit(network[2])(x1, x1.copy()).x1_is_x2


def test_apply_fn_in_a_function_that_jax_compiles(random):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    x = random.normal(size=(3, 2, 5, 4)).astype(np.float32)
    init_fn, apply_fn, _ = stax.serial(stax.Conv(8, (2, 2), dimension_numbers=("NCHW", "OIHW", "NCHW")), stax.Relu(),
                                       stax.Flatten(), stax.Dense(3))
    params = init_fn(0, x.shape)[1]
    expected = apply_fn(params, x)
    np.testing.assert_allclose(jax.jit(apply_fn)(params, x), expected, rtol=1e-5)
    np.testing.assert_allclose(jax.jit(lambda p: apply_fn(p, x))(params), expected, rtol=1e-5)
    np.testing.assert_allclose(jax.vmap(lambda row: apply_fn(params, row[None])[0])(x), expected, rtol=1e-5)
    turned = stax.serial(stax.Dense(4, batch_axis=1, channel_axis=0), stax.Index(stax.Slice[:, ::2], 1, 0))
    params = turned[0](0, (2, 5))[1]
    np.testing.assert_allclose(jax.jit(turned[1])(params, x[0, 0, :2]), turned[1](params, x[0, 0, :2]), rtol=1e-5)


def test_what_jax_cannot_transform_says_what_to_use(random):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    x = random.normal(size=(3, 4)).astype(np.float32)
    for transformed, message in (
            (lambda: jax.jit(lambda s: stax.GlobalSelfAttention(3, 1, 1, 1, W_key_std=s)[2](x, None, "nngp"))(2.0),
             "W_key_std: .*outside"),
            (lambda: jax.jit(lambda s: stax.Dense(3, s)[0](0, x.shape)[1])(2.0), "W_std, b_std: .*outside"),
            (lambda: jax.jit(lambda a: widelimit.gram(widelimit.Network([layers.dense()]), a))(x), "outside")):
        with pytest.raises(NotImplementedError, match=message):
            transformed()


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


@pytest.mark.parametrize("package", ["jax", "torch"])
def test_without_a_package_the_error_says_what_to_install(package):
    import subprocess

    code = f"import sys; sys.modules['{package}'] = None; import widelimit.{package}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 1 and f"pip install 'widelimit[{package}]'" in run.stderr


def test_nothing_is_imported_that_is_not_needed():
    assert layers.relu().kind == "relu"
    import subprocess

    loaded = subprocess.run([sys.executable, "-c", "import sys, widelimit; print('jax' in sys.modules, 'torch' in "
                             "sys.modules, 'scipy' in sys.modules)"], capture_output=True, text=True, check=True).stdout
    assert loaded.split() == ["False"] * 3


class Elsewhere:
    """A tensor on a device, as PyTorch has them."""

    def __init__(self, array, place="cuda"):
        self._array, self.device = array, type("Device", (), {"type": place, "__repr__": lambda self: place})()

    def __array__(self, dtype=None, copy=None):
        if self.device.type != "cpu":
            raise TypeError("can't convert a tensor on a device to numpy")
        return np.asarray(self._array, dtype)

    def detach(self):
        return self

    def cpu(self):
        return Elsewhere(self._array, "cpu")


def test_tensors_on_a_device_are_moved_and_said(random):
    x, network = random.normal(size=(4, 3)), nt.Network([layers.dense(), layers.relu(), layers.dense()])
    with pytest.warns(UserWarning, match="a tensor on cuda is copied to the host"):
        found = nt.gram(network, Elsewhere(x))
    np.testing.assert_array_equal(found.ntk, nt.gram(network, x).ntk)


def test_frames_with_numbers_and_truth_values(random):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    x, is_set = random.normal(size=(5, 2)), np.array([True, False, True, True, False])
    frame = pandas.DataFrame({"a": x[:, 0], "b": is_set, "c": x[:, 1].astype(np.float32), "d": np.arange(5)})
    expected = np.stack([x[:, 0], is_set, x[:, 1].astype(np.float32), np.arange(5)], 1)
    network = nt.Network([layers.dense(), layers.relu(), layers.dense()])
    np.testing.assert_array_equal(nt.gram(network, frame).ntk, nt.gram(network, expected).ntk)
    narrow = frame[["b", "c"]]
    assert nt.gram(network, narrow).ntk.dtype == np.float32
    np.testing.assert_array_equal(nt.gram(network, narrow).ntk, nt.gram(network, expected[:, 1:3].astype(np.float32)).ntk)
    np.testing.assert_array_equal(nt.gram(network, frame.convert_dtypes()).ntk, nt.gram(network, expected).ntk)
    with pytest.raises(TypeError, match="columns are numbers or truth values, got 'e'"):
        nt.gram(network, frame.assign(e=list("abcde")))
    fitted = nt.Model.fit(network, frame, frame["a"])
    np.testing.assert_array_equal(fitted.predict(frame[:2]).mean, nt.Model.fit(network, expected, x[:, 0]).predict(expected[:2]).mean)


def test_images_with_channels_first_are_suspected(random):
    import warnings

    network = nt.Network([layers.conv([3, 3]), layers.relu(), layers.global_average_pool(), layers.dense()])
    images = random.normal(size=(2, 3, 8, 8))
    with pytest.warns(UserWarning, match=r"x1: channels are expected last, and shape \(2, 3, 8, 8\) looks like"):
        nt.gram(network, images)
    first = stax.serial(stax.Conv(4, (3, 3), dimension_numbers=("NCHW", "OIHW", "NCHW")), stax.GlobalAvgPool(channel_axis=1))[2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nt.gram(network, np.moveaxis(images, 1, -1))
        first(images, None, "nngp")


def test_predictions_in_batches(random):
    x, other = random.normal(size=(12, 3)), random.normal(size=(7, 3))
    model = nt.Model.fit(nt.Network([layers.dense(), layers.relu(), layers.dense()]), x, (x[:, 0] > 0).astype(int), labels=True)
    whole, told = model.predict(other), []
    found = model.predict(other, batch_size=3, progress=lambda *step: told.append(step))
    assert told == [(3, 7), (6, 7), (7, 7)]
    assert found.law == whole.law
    for name in ("mean", "standard_deviation", "noise_variance", "class_probabilities"):
        assert getattr(found, name).shape == getattr(whole, name).shape
        np.testing.assert_allclose(getattr(found, name), getattr(whole, name), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.predict(other, progress=lambda *step: None).mean, whole.mean, rtol=1e-9)
    with pytest.raises(ValueError, match="batch_size: expected an integer of at least 1, got 0"):
        model.predict(other, batch_size=0)
