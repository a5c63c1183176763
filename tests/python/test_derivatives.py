"""Derivatives of kernels by inputs, against differences of kernels."""

import numpy as np
import pytest
import widelimit
from widelimit import layers, stax


def differences(function, x, step=1e-4):
    """Of fourth order, entry by entry."""
    gradient = np.empty(x.shape)
    for entry in np.ndindex(x.shape):
        def at(shift):
            moved = x.copy()
            moved[entry] += shift
            return function(moved)
        near, far = (at(step) - at(-step)) / (2 * step), (at(2 * step) - at(-2 * step)) / (4 * step)
        gradient[entry] = (4 * near - far) / 3
    return gradient


@pytest.fixture
def random():
    return np.random.default_rng(1)


def test_both_inputs(random):
    network = widelimit.Network([layers.dense(1.5, 0.1), layers.relu(), layers.dense(2), layers.erf(), layers.dense()])
    x1, x2 = random.normal(size=(2, 3)), random.normal(size=(3, 3))
    nngp, ntk = random.normal(size=(2, 3)), random.normal(size=(2, 3))

    def value(a, b):
        kernels = widelimit.gram(network, a, b)
        return (nngp * kernels.nngp).sum() + (ntk * kernels.ntk).sum()

    dx1, dx2 = widelimit.gram_vjp(network, x1, x2, nngp=nngp, ntk=ntk)
    np.testing.assert_allclose(dx1, differences(lambda x: value(x, x2), x1), atol=1e-8)
    np.testing.assert_allclose(dx2, differences(lambda x: value(x1, x), x2), atol=1e-8)
    assert dx1.dtype == np.float64
    narrow = widelimit.gram_vjp(network, x1.astype(np.float32), x2.astype(np.float32), nngp=nngp, ntk=ntk)[0]
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, dx1, atol=1e-4)


@pytest.mark.parametrize("equal", [False, True])
def test_one_of_two_inputs(random, equal):
    network = widelimit.Network([layers.conv((3,)), layers.relu(), layers.global_average_pool(), layers.dense()])
    _, _, kernel_fn = stax.serial(stax.Conv(8, (3,), padding="SAME"), stax.Relu(), stax.GlobalAvgPool(), stax.Dense(1))
    x1 = random.normal(size=(3, 4, 2))
    x2 = x1.copy() if equal else random.normal(size=(3, 4, 2))
    nngp, ntk = random.normal(size=(3, 3)), random.normal(size=(3, 3))
    for vjp in (lambda **options: widelimit.gram_vjp(network, x1, x2, nngp=nngp, ntk=ntk, **options),
                lambda **options: kernel_fn.vjp(x1, x2, nngp, ntk, **options)):
        both, first, second = vjp(), vjp(wanted="x1"), vjp(wanted="x2")
        assert first[1] is None and second[0] is None
        np.testing.assert_array_equal(first[0], both[0])
        np.testing.assert_array_equal(second[1], both[1])
        with pytest.raises(ValueError, match="wanted: expected 'both', 'x1' or 'x2', got 'x3'"):
            vjp(wanted="x3")
    for alone in (lambda: widelimit.gram_vjp(network, x1, ntk=ntk, wanted="x1"), lambda: kernel_fn.vjp(x1, ntk=ntk, wanted="x2")):
        with pytest.raises(ValueError, match="wanted: expected 'both' without x2"):
            alone()


def test_one_batch_and_the_diagonal(random):
    network = widelimit.Network([layers.conv((3,), weight_variance=1.5), layers.relu(), layers.global_average_pool()])
    x = random.normal(size=(3, 4, 2))
    weights, diagonal = random.normal(size=(3, 3)), random.normal(size=3)
    symmetric = widelimit.gram_vjp(network, x, ntk=weights)
    np.testing.assert_allclose(symmetric, differences(lambda a: (weights * widelimit.gram(network, a).ntk).sum(), x),
                               atol=1e-8)
    own = widelimit.gram_diagonal_vjp(network, x, nngp=diagonal)
    np.testing.assert_allclose(
        own, differences(lambda a: (diagonal * widelimit.gram_diagonal(network, a).nngp).sum(), x), atol=1e-8)


def test_kernel_fn(random):
    _, _, kernel_fn = stax.serial(stax.Conv(8, (3, 3), padding="SAME"), stax.Relu(), stax.GlobalAvgPool(), stax.Dense(1))
    x1, x2 = random.normal(size=(2, 3, 4, 2)), random.normal(size=(2, 3, 4, 2))
    ntk = random.normal(size=(2, 2))
    dx1, dx2 = kernel_fn.vjp(x1, x2, ntk=ntk)
    np.testing.assert_allclose(dx1, differences(lambda x: (ntk * kernel_fn(x, x2, "ntk")).sum(), x1), atol=1e-8)
    np.testing.assert_allclose(dx2, differences(lambda x: (ntk * kernel_fn(x1, x, "ntk")).sum(), x2), atol=1e-8)
    assert kernel_fn.vjp(x1, ntk=ntk).shape == x1.shape


def test_channels_first(random):
    layers_of = (lambda numbers: (stax.Conv(8, (3,), padding="SAME", dimension_numbers=numbers), stax.Relu(),
                                  stax.GlobalAvgPool(channel_axis=numbers[0].index("C")), stax.Dense(1)))
    last = stax.serial(*layers_of(("NWC", "WIO", "NWC")))[2]
    first = stax.serial(*layers_of(("NCW", "WIO", "NCW")))[2]
    x, ntk = random.normal(size=(2, 5, 3)), random.normal(size=(2, 2))
    np.testing.assert_allclose(np.moveaxis(first.vjp(np.moveaxis(x, -1, 1), ntk=ntk), 1, -1), last.vjp(x, ntk=ntk),
                               atol=1e-12)


def test_errors(random):
    network = widelimit.Network([layers.dense(), layers.relu(), layers.dense()])
    x = random.normal(size=(2, 3))
    with pytest.raises(widelimit.ArgumentError, match="cotangents of the nngp, the ntk or both must be given"):
        widelimit.gram_vjp(network, x)
    with pytest.raises(ValueError, match=r"nngp: expected a matrix \[n1, n2\] of cotangents, got an array of shape \(2,\)"):
        widelimit.gram_vjp(network, x, nngp=np.ones(2))
    with pytest.raises(widelimit.ArgumentError, match=r"the cotangents of the ntk must be \[2, 2\], got \[3, 2\]"):
        widelimit.gram_vjp(network, x, x, ntk=np.ones((3, 2)))
    with pytest.raises(NotImplementedError, match="readout over positions"):
        stax.serial(stax.Dense(4), stax.Relu())[2].vjp(random.normal(size=(2, 3, 2)), ntk=np.ones((2, 2)))


def test_channels_that_are_masked_alone_have_derivative_0(random):
    kernel_fn = stax.serial(stax.Dense(8), stax.Relu(), stax.Dense(1))[2]
    x = random.normal(size=(3, 4))
    x[0, 1] = 7
    gradient = kernel_fn.vjp(x, ntk=random.normal(size=(3, 3)), mask_constant=7)
    assert gradient[0, 1] == 0 and gradient[0, 0] != 0


KINKED = {
    "relu": (lambda z: np.maximum(z, 0), lambda z: (z > 0) * 1.0, (0,)),
    "hard tanh": (lambda z: np.clip(z, -1, 1), lambda z: (np.abs(z) < 1) * 1.0, (-1, 1)),
    "elu": (lambda z: np.where(z > 0, z, np.expm1(np.minimum(z, 0))), lambda z: np.where(z > 0, 1, np.exp(np.minimum(z, 0))),
            (0,)),
    "shrinkage": (lambda z: np.sign(z) * np.maximum(np.abs(z) - 0.3, 0), lambda z: (np.abs(z) > 0.3) * 1.0, (-0.3, 0.3)),
}


def kernels_and_derivatives(own, x1, x2, ntk):
    network = widelimit.Network([layers.dense(1.4, 0.2), own, layers.dense(), own, layers.dense()])
    return network, widelimit.gram(network, x1, x2)[:2], widelimit.gram_vjp(network, x1, x2, ntk=ntk)


@pytest.mark.parametrize("name", KINKED)
def test_kinks_that_nobody_declared(random, name):
    """With a derivative of theirs and without: of the two layers in a network, derivatives take seconds each."""
    phi, slope, places = KINKED[name]
    inputs = random.normal(size=(2, 4)), random.normal(size=(2, 4)), random.normal(size=(2, 2))
    _, kernels, derivatives = kernels_and_derivatives(layers.elementwise(phi, slope, breakpoints=places), *inputs)
    for given in ((phi, slope), (phi,)):
        found, ours, exact = kernels_and_derivatives(layers.elementwise(*given), *inputs)
        for one, other in zip(ours, kernels):
            np.testing.assert_allclose(one, other, rtol=1e-8)
        for one, other in zip(exact, derivatives):
            np.testing.assert_allclose(one, other, atol=1e-6)
        check_by_differences(found, *inputs, exact[0])


def check_by_differences(found, x1, x2, ntk, exact):
    by_differences = differences(lambda x: (ntk * widelimit.gram(found, x, x2).ntk).sum(), x1, 1e-3)
    np.testing.assert_allclose(exact, by_differences, atol=1e-5)


@pytest.mark.parametrize("equal", [lambda x: x, lambda x: x.copy(), lambda x: x + 1e-14])
@pytest.mark.parametrize("get", ["nngp", "ntk"])
def test_equal_batches_are_one_batch(random, get, equal):
    kernel_fn = stax.serial(stax.Dense(4, 0.8, 0.2), stax.Erf(), stax.Dropout(0.5), stax.Dense(1))[2]
    x, weights = random.normal(size=(3, 4)), random.normal(size=(3, 3))
    np.testing.assert_allclose(kernel_fn(x, equal(x), get), kernel_fn(x, None, get), rtol=1e-12)
    first, second = kernel_fn.vjp(x, equal(x), **{get: weights})
    np.testing.assert_allclose(first + second, kernel_fn.vjp(x, **{get: weights}), atol=1e-12)
    # Of pairs off the diagonal each side has its own, of those on it a half.
    pairs = weights - np.diag(weights.diagonal())
    apart, _ = kernel_fn.vjp(x, x + 1e-9, **{get: pairs})
    own = kernel_fn.vjp(x, **{get: np.diag(weights.diagonal())})
    np.testing.assert_allclose(first, apart + own / 2, atol=1e-7)


def test_a_dual_that_is_not_finite_names_its_layer(random):
    wrong = layers.elementwise_dual(lambda p, q, c: p * q + c, lambda p, q, c: np.where(c > -1e9, np.nan, 1.0))
    x = random.normal(size=(2, 3))
    for front in ([], [layers.conv([2]), layers.relu()]):
        network = widelimit.Network([*front, layers.dense(), wrong, *(() if not front else (layers.flatten(),)), layers.dense()])
        inputs = random.normal(size=(2, 3, 2)) if front else x
        with pytest.raises(widelimit.NumericalError, match=rf"layers\[{len(front) + 1}\] \(elementwise_dual\).*not finite"):
            widelimit.gram_vjp(network, inputs, nngp=np.ones((2, 2)))
    huge = widelimit.Network([layers.dense(1e300), layers.dense()])
    with pytest.raises(widelimit.NumericalError, match="gram_vjp: the derivative by input 0 of x1 is"):
        widelimit.gram_vjp(huge, x, x, nngp=np.full((2, 2), 1e300))


def test_inputs_that_are_none(random):
    kernel_fn = stax.serial(stax.Dense(4), stax.Relu(), stax.Dense(1))[2]
    with pytest.raises(TypeError, match="x1: expected an array of inputs, got None"):
        kernel_fn.vjp(None, ntk=np.ones((2, 2)))
    with pytest.raises(TypeError, match="x1: expected an array of inputs, got a Kernel"):
        kernel_fn.vjp(kernel_fn(random.normal(size=(2, 3))), ntk=np.ones((2, 2)))


def test_stored_kernels_keep_their_way_back(random, tmp_path):
    kernel_fn = stax.serial(stax.Dense(4), stax.Relu(), stax.Dense(1))[2]
    stored = widelimit.batch(kernel_fn, store=tmp_path / "store")
    x, ntk = random.normal(size=(2, 3)), random.normal(size=(2, 2))
    np.testing.assert_array_equal(stored.vjp(x, ntk=ntk), kernel_fn.vjp(x, ntk=ntk))
    np.testing.assert_array_equal(stored(x, None, "ntk"), kernel_fn(x, None, "ntk"))
    assert (tmp_path / "store" / "zarr.json").exists()
    with pytest.raises(TypeError, match="batch: store: expected a kernel_fn of widelimit.stax"):
        widelimit.batch(lambda x1, x2: 0, store=tmp_path)


def test_help_knows_all_names():
    import pydoc
    assert "GlobalAvgPool" in pydoc.plain(pydoc.render_doc(stax))
    assert "True where an output does not count" in pydoc.plain(pydoc.render_doc(stax.MaskedArray))


def test_numbers_of_a_network(random):
    network = widelimit.Network([layers.dense(1.5, 0.1), layers.relu(), layers.dense(2)])
    x, z = random.normal(size=(5, 3)), random.normal(size=(2, 3))
    kernels = widelimit.gram(network, x, z)
    second, first = widelimit.gram_gradient(network, x, z, numbers=["layers[2].weight_variance", "layers[0].bias_variance"])
    np.testing.assert_allclose(second.nngp, kernels.nngp / 2, rtol=1e-10)
    both = widelimit.gram_jvp(network, x, z, direction={"layers[2].weight_variance": 3, "layers[0].bias_variance": -1})
    np.testing.assert_allclose(both.ntk, 3 * second.ntk - first.ntk, rtol=1e-9, atol=1e-9)
    assert widelimit.gram_jvp(network, x, direction={"layers[2].weight_variance": 1}, kernels="nngp").ntk is None
    with pytest.raises(ValueError, match=r"'layers\[2\].slope': the network has no such field"):
        widelimit.gram_gradient(network, x, numbers=["layers[2].slope"])
    with pytest.raises(TypeError, match="expected a sequence of paths"):
        widelimit.gram_gradient(network, x, numbers="layers[2].slope")


def test_evidence_by_numbers_of_a_network(random):
    x, y = random.normal(size=(20, 3)), random.normal(size=(20, 1))
    paths = ["layers[0].weight_variance", "layers[0].bias_variance"]

    def fitted(weight, bias):
        network = widelimit.Network([layers.dense(weight, bias), layers.erf(), layers.dense(2)])
        return network, widelimit.Regression.fit(widelimit.gram(network, x).nngp, y, regulariser=0.1)

    network, regression = fitted(1.5, 0.3)
    gradient = [kernel.nngp for kernel in widelimit.gram_gradient(network, x, numbers=paths, kernels="nngp")]
    evidence = regression.score_derivatives(gradient)[:, 0]
    step = 1e-4
    expected = [(fitted(1.5 + step, 0.3)[1].log_marginal_likelihood - fitted(1.5 - step, 0.3)[1].log_marginal_likelihood),
                (fitted(1.5, 0.3 + step)[1].log_marginal_likelihood - fitted(1.5, 0.3 - step)[1].log_marginal_likelihood)]
    np.testing.assert_allclose(evidence, np.array(expected) / (2 * step), rtol=1e-6)
    by_evidence, by_density = regression.score_cotangents()
    np.testing.assert_allclose(widelimit.gram_number_vjp(network, x, numbers=paths, nngp=by_evidence), evidence, rtol=1e-9)
    np.testing.assert_allclose(widelimit.gram_number_vjp(network, x, numbers=paths, nngp=by_density),
                               regression.score_derivatives(gradient)[:, 1], rtol=1e-8)
    z = random.normal(size=(4, 3))
    weights = random.normal(size=(20, 4))
    of_ntk = widelimit.gram_number_vjp(network, x, z, numbers=paths[:1], ntk=weights)
    np.testing.assert_allclose(of_ntk, [(weights * widelimit.gram_gradient(network, x, z, numbers=paths[:1])[0].ntk).sum()],
                               rtol=1e-7)
    with pytest.raises(TypeError, match="expected a sequence of paths"):
        widelimit.gram_number_vjp(network, x, numbers=paths[0], nngp=by_evidence)
    with pytest.raises(ValueError, match="cotangents of the nngp, the ntk or both must be given"):
        widelimit.gram_number_vjp(network, x, numbers=paths)


def test_all_that_is_public_says_what_it_is():
    import widelimit.experimental
    import widelimit.predict
    for module in (widelimit, layers, stax, widelimit.predict, widelimit.experimental):
        for name in module.__all__:
            value = getattr(module, name)
            if name not in ("Branch", "__version__"):  # A type of two others; a string.
                assert type(value).__doc__ if not callable(value) else value.__doc__, f"{module.__name__}.{name}"
    assert "Slice[" in type(stax.Slice).__doc__ and "Branch" in layers.__doc__
    assert not hasattr(widelimit.experimental, "missing")
