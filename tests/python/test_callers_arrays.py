"""Arrays of whoever calls: JAX's in give JAX's, PyTorch's give PyTorch's, with derivatives where somebody takes them."""

import numpy as np
import pytest

import widelimit as nt
from parameter_trees import mapped
from widelimit import predict, stax
from widelimit._jax import double_precision


@pytest.fixture(params=["jax", "torch"])
def library(request):
    """(conversion of an array, its class) of each library."""
    package = pytest.importorskip(request.param)
    return (package.numpy.asarray, package.Array) if request.param == "jax" else (package.tensor, package.Tensor)


def network():
    return stax.serial(stax.Dense(8, 1.3, 0.2), stax.Erf(), stax.Dense(2))


def leaves(value):
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in leaves(part)]
    return [value]


def check(found, expected, kind, tolerance=1e-4):
    """The numbers are the same, the arrays of `kind` and float32 as those that came in."""
    assert len(leaves(found)) == len(leaves(expected))
    for one, other in zip(leaves(found), leaves(expected)):
        assert isinstance(one, kind) and str(one.dtype).endswith("float32")
        assert isinstance(other, (np.ndarray, float))
        np.testing.assert_allclose(np.asarray(one), other, rtol=tolerance, atol=tolerance)


def test_functions_give_what_they_get(random, library):
    convert, kind = library
    x, test, y = (random.normal(size=shape).astype(np.float32) for shape in ((5, 3), (2, 3), (5, 2)))
    init_fn, apply_fn, kernel_fn = network()
    params, weights = mapped(np.float32, init_fn(0, x.shape)[1]), np.ones((2, 5), np.float32)
    kernels, cross = kernel_fn(x, None, ("nngp", "ntk")), kernel_fn(test, x, ("nngp", "ntk"))
    prior = kernel_fn(test, None, "nngp")

    def results(a):
        """Of everything, with arrays made by `a`."""
        k, c = type(kernels)(*map(a, kernels)), type(cross)(*map(a, cross))
        flow, ensemble = predict.gradient_descent_mse(k.ntk, a(y)), predict.gradient_descent_mse_ensemble(kernel_fn, a(x), a(y))
        yield kernel_fn(a(test), a(x), ("nngp", "ntk"))
        yield kernel_fn(a(test), a(x)).cov2
        yield stax.Relu()[2](kernel_fn(a(x))).nngp
        yield kernel_fn.vjp(a(test), a(x), ntk=a(weights))
        yield apply_fn(mapped(a, params), a(x))
        yield predict.gp_inference(k, a(y), 0.1)(None, c, a(prior))
        yield flow(None, 0.0, 0.0, c.ntk)
        yield flow(a(np.float32([1, 2])))
        yield ensemble(None, a(test), "ntk", compute_cov=True)
        yield ensemble(2.0, a(test), ("nngp", "ntk"))
        yield predict.gradient_descent(lambda fx, y: ((fx - y)**2).mean() / 2, k.ntk, a(y))(1.0)
        yield predict.max_learning_rate(k.ntk)
        yield nt.empirical_ntk_fn(apply_fn)(a(x), None, mapped(a, params))
        yield nt.empirical_kernel_fn(apply_fn)(a(x), a(test), ("ntk", "nngp"), mapped(a, params))
        yield nt.monte_carlo_kernel_fn(init_fn, apply_fn, 1, 2)(a(x), None, "nngp")
        yield nt.linearize(apply_fn, mapped(a, params))(mapped(a, params), a(x))
        yield nt.empirical_ntk_vp_fn(apply_fn, a(x), None, mapped(a, params))(a(y))

    for found, expected in zip(results(convert), results(lambda array: array)):
        check(found, expected, kind)


def test_arrays_of_two_libraries_are_an_error():
    jax, torch = pytest.importorskip("jax"), pytest.importorskip("torch")
    with pytest.raises(TypeError, match="expected arrays of at most one library other than NumPy, got some of JAX and some of PyTorch"):
        network()[2](jax.numpy.ones((2, 3)), torch.ones(2, 3), "ntk")


def test_what_numpy_brings_stays(random):
    pytest.importorskip("jax")
    x = random.normal(size=(3, 2))
    kernel = network()[2](x)
    assert isinstance(kernel.ntk, np.ndarray) and kernel.ntk.dtype == np.float64
    assert type(predict.max_learning_rate(kernel.ntk)) is np.float64


def test_keys_of_jax_give_parameters_of_jax():
    jax = pytest.importorskip("jax")
    assert isinstance(network()[0](jax.random.PRNGKey(0), (-1, 3))[1][0][0], jax.Array)
    assert isinstance(network()[0](0, (-1, 3))[1][0][0], np.ndarray)


def test_kernels_of_jax_are_trees():
    jax = pytest.importorskip("jax")
    kernel = network()[2](jax.numpy.ones((2, 3)))
    doubled = jax.tree_util.tree_map(lambda a: 2 * a, kernel)
    np.testing.assert_array_equal(doubled.ntk, 2 * kernel.ntk)
    behind = stax.serial(stax.Relu(), stax.Dense(1))[2]
    np.testing.assert_allclose(jax.jit(lambda k: behind(k, get="ntk"))(kernel), behind(kernel, get="ntk"), rtol=1e-6)


def differences(function, *numbers):
    """Central differences of a function of NumPy's arrays by each of them."""
    result = []
    for k, x in enumerate(numbers):
        slope = np.empty_like(x)
        for at in np.ndindex(x.shape):
            values = []
            for step in (1e-5, -1e-5):
                moved = [np.array(other) for other in numbers]
                moved[k][at] += step
                values.append(float(function(*moved)))
            slope[at] = (values[0] - values[1]) / 2e-5
        result.append(slope)
    return result


def losses(random):
    """Functions of arrays, and these."""
    x1, x2 = random.normal(size=(3, 4)), random.normal(size=(2, 4))
    images = random.normal(size=(2, 5, 3))
    init_fn, apply_fn, kernel_fn = network()
    params = init_fn(0, x1.shape)[1]
    conv = stax.serial(stax.Conv(8, (3,), padding="SAME"), stax.Erf(), stax.GlobalAvgPool(), stax.Dense(1))
    conv_params = conv[0](0, images.shape)[1]

    def of_numbers(w_std, b_std):
        layer = stax.serial(stax.Dense(8, w_std, b_std), stax.Erf())
        return stax.serial(layer, stax.FanOut(2), stax.parallel(stax.Dense(8, w_std), layer), stax.FanInSum(), stax.repeat(
            layer, 2), stax.Dense(1))[2]

    yield lambda a, b: (kernel_fn(a, b, "ntk")**3).sum() + kernel_fn(a, b).cov2.sum(), x1, x2
    yield lambda a: (kernel_fn(a).cov1**2).sum() + (kernel_fn(a, None, "nngp")**2).sum(), x1
    yield lambda a: (kernel_fn(a, diagonal_batch=False).cov1**2).sum(), x1
    yield lambda a: (conv[2](a, None, "ntk")**2).sum(), images
    yield lambda s, b: (of_numbers(s, b)(x1, None, "ntk")**2).sum(), np.array(1.2), np.array(0.3)
    yield lambda s, b, a: sum(k.sum() for k in of_numbers(s, b)(a, x2, ("nngp", "cov1"))), np.array(1.2), np.array(0.3), x1
    yield lambda w, a: (apply_fn([(w, params[0][1]), *params[1:]], a)**2).sum(), params[0][0], x1
    yield lambda w, a: (conv[1]([*conv_params[:3], (w, None)], a)**3).sum(), conv_params[3][0], images


def squares(value):
    """Of all numbers of predictions together."""
    return sum((leaf**2).sum() for leaf in leaves(value))


def predictions(random):
    """Functions of arrays that predict, and these."""
    x, test, y = random.normal(size=(4, 3)), random.normal(size=(2, 3)), random.normal(size=(4, 2))
    kernel_fn = stax.serial(stax.Dense(8, 1.3, 0.2), stax.Erf(), stax.Dense(1))[2]
    wide, several = random.normal(size=(4, 5)), np.array([0.5, 3.0])

    def ensemble(a, targets=y, **options):
        return predict.gradient_descent_mse_ensemble(kernel_fn, a, targets, diag_reg=0.1, **options)

    fixed = ensemble(x)
    yield lambda b: squares(fixed(None, b, "ntk", True)), test
    yield lambda b: squares(fixed(several, b, ("nngp", "ntk"), True)), test
    yield lambda a, b: squares(ensemble(a)(None, b, ("nngp", "ntk"), True)), x, test
    yield lambda a, b, t: squares(ensemble(a)(t, b, ("nngp", "ntk"), True)), x, test, np.array(2.0)
    yield lambda a, t: squares(ensemble(a)(t, None, ("nngp", "ntk"), True)), x, several
    yield lambda targets: squares(ensemble(x, targets)(2.0, test, "ntk")), y
    yield lambda a: squares(predict.gp_inference(a @ a.T, y, 0.1)("nngp", (a @ a.T)[:2], (a @ a.T)[:2, :2])), wide
    yield lambda r: squares(predict.gp_inference(wide @ wide.T, y, r)("ntk", (wide @ wide.T)[:2])), np.array(0.1)
    yield lambda a, t, f: squares(predict.gradient_descent_mse(a @ a.T, y)(t, f, 0.5, (a @ a.T)[:2])), wide, several, y
    yield lambda a: squares(predict.gradient_descent_mse(a @ a.T, y)(3.0, 0.0, 0.0, (a @ a.T)[:2])), np.eye(4)  # Equal eigenvalues.
    yield lambda a: squares(predict.gradient_descent_mse(a @ a.T, y)(3.0, 0.0, 0.0, (a @ a.T)[:2])), wide[:, :2]  # Some are 0.
    yield lambda a: squares((predict.max_learning_rate(a @ a.T),)), wide


@pytest.mark.parametrize("number", range(12))
def test_derivatives_of_predictions_by_jax(random, number):
    jax = pytest.importorskip("jax")
    function, *numbers = list(predictions(random))[number]
    with double_precision():
        every = tuple(range(len(numbers)))
        arrays = [jax.numpy.asarray(x) for x in numbers]
        for transformed in (jax.grad(function, every), jax.jit(jax.grad(function, every))):
            for found, expected in zip(transformed(*arrays), differences(function, *numbers)):
                np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(jax.jit(function)(*arrays), function(*numbers), rtol=1e-9)


@pytest.mark.parametrize("number", range(12))
def test_derivatives_of_predictions_by_pytorch(random, number):
    torch = pytest.importorskip("torch")
    function, *numbers = list(predictions(random))[number]
    tensors = [torch.tensor(x, requires_grad=True) for x in numbers]
    function(*tensors).backward()
    for tensor, expected in zip(tensors, differences(function, *numbers)):
        np.testing.assert_allclose(tensor.grad, expected, rtol=1e-6, atol=1e-7)


def test_predictions_have_second_derivatives_where_kernels_do_not_matter(random):
    jax, y = pytest.importorskip("jax"), random.normal(size=(4, 1))
    kernel = random.normal(size=(4, 6))
    kernel = kernel @ kernel.T
    with double_precision():
        found = jax.hessian(lambda f: squares(predict.gradient_descent_mse(kernel, y)(2.0, f)))(jax.numpy.zeros((4, 1)))
    assert np.abs(found).max() > 0


def test_what_is_kept_does_not_outlive_a_transformation(random):
    """An ensemble of live inputs, called within functions of their own."""
    jax = pytest.importorskip("jax")
    x, y = random.normal(size=(4, 3)).astype(np.float32), np.ones((4, 1), np.float32)

    def loss(a):
        ensemble = predict.gradient_descent_mse_ensemble(network()[2], a, y, diag_reg=0.1)
        first, second = (jax.jit(lambda b: ensemble(x_test=b, get="ntk").sum()) for _ in range(2))
        return first(a[:2]) + second(a[2:])

    fixed = predict.gradient_descent_mse_ensemble(network()[2], x, y, diag_reg=0.1)
    expected = fixed(x_test=x, get="ntk").sum()
    np.testing.assert_allclose(jax.jit(loss)(x), expected, rtol=1e-4)
    assert np.isfinite(jax.grad(loss)(x)).all()
    inside = predict.gradient_descent_mse_ensemble(network()[2], jax.numpy.asarray(x), y, diag_reg=0.1)
    for _ in range(2):
        np.testing.assert_allclose(jax.jit(lambda b: inside(x_test=b, get="ntk").sum())(x), expected, rtol=1e-4)
    np.testing.assert_allclose(inside(x_test=x, get="ntk").sum(), expected, rtol=1e-5)


@pytest.mark.parametrize("number", range(8))
def test_derivatives_of_jax(random, number):
    jax = pytest.importorskip("jax")
    function, *numbers = list(losses(random))[number]
    with double_precision():
        every = tuple(range(len(numbers)))
        arrays = [jax.numpy.asarray(x) for x in numbers]
        for transformed in (jax.grad(function, every), jax.jit(jax.grad(function, every)), jax.grad(jax.jit(function), every)):
            for found, expected in zip(transformed(*arrays), differences(function, *numbers)):
                np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("number", range(8))
def test_derivatives_of_pytorch(random, number):
    torch = pytest.importorskip("torch")
    function, *numbers = list(losses(random))[number]
    tensors = [torch.tensor(x, requires_grad=True) for x in numbers]

    function(*tensors).backward()
    for tensor, expected in zip(tensors, differences(function, *numbers)):
        np.testing.assert_allclose(tensor.grad, expected, rtol=1e-6, atol=1e-7)


def test_parameters_of_pytorch_may_move(random):
    torch = pytest.importorskip("torch")
    x, std = random.normal(size=(3, 2)), torch.nn.Parameter(torch.tensor(1.5, dtype=torch.float64))
    kernel_fn = stax.serial(stax.Dense(4, std), stax.Relu(), stax.Dense(1))[2]
    kernel_fn(x, None, "ntk").sum().backward()
    with torch.no_grad():
        std -= 0.5
        expected = stax.serial(stax.Dense(4), stax.Relu(), stax.Dense(1))[2](x, None, "ntk")
        np.testing.assert_allclose(kernel_fn(x, None, "ntk"), expected, rtol=1e-12)


def test_numbers_of_layers_that_files_do_not_know(random):
    jax, x = pytest.importorskip("jax"), random.normal(size=(3, 2)).astype(np.float32)

    def loss(std):
        own = stax.Elementwise(np.tanh)
        branches = stax.FanOut(2), stax.parallel(stax.serial(own, stax.Dense(4, std)), stax.Dense(4)), stax.FanInSum()
        return stax.serial(stax.Dense(3), *branches, stax.Dense(1))[2](x, None, "nngp").sum()

    with pytest.raises(NotImplementedError, match="by W_std and b_std: expected layers that network files know"):
        jax.grad(loss)(1.5)
