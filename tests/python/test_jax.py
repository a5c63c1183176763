"""widelimit.jax: kernels that JAX differentiates and compiles around."""

import inspect

import numpy as np
import pytest
import widelimit
from widelimit import layers, stax
from widelimit._jax import double_precision


@pytest.fixture(scope="module")
def jax():
    return pytest.importorskip("jax", reason="JAX is not installed")


@pytest.fixture(scope="module")
def limit(jax):
    import widelimit.jax

    return widelimit.jax


def fully_connected():
    return widelimit.Network([layers.dense(1.5, 0.1), layers.relu(), layers.dense(2), layers.erf(), layers.dense()])


def images_first():
    return stax.serial(stax.Conv(8, (3,), padding="SAME", dimension_numbers=("NCW", "WIO", "NCW")), stax.Relu(),
                       stax.GlobalAvgPool(channel_axis=1), stax.Dense(1))[2]


def test_kernels_are_those_of_gram(jax, limit, random):
    network, x1, x2 = fully_connected(), *(random.normal(size=(n, 5)).astype(np.float32) for n in (3, 4))
    expected = widelimit.gram(network, x1, x2)
    for gram in (limit.gram, jax.jit(limit.gram, static_argnums=0)):
        found = gram(network, x1, x2)
        assert isinstance(found.ntk, jax.Array) and found.ntk.dtype == np.float32 and found.nngp_error is None
        np.testing.assert_array_equal(found.nngp, expected.nngp)
        np.testing.assert_array_equal(found.ntk, expected.ntk)
    alone = limit.gram(network, x1, kernels="nngp")
    np.testing.assert_array_equal(alone.nngp, widelimit.gram(network, x1).nngp)
    assert alone.ntk is None
    np.testing.assert_array_equal(jax.jit(lambda x: limit.gram_diagonal(network, x).ntk)(x1),
                                  widelimit.gram_diagonal(network, x1).ntk)


def test_double_precision(jax, limit, random):
    network, x = fully_connected(), random.normal(size=(3, 5))
    assert limit.gram(network, x).ntk.dtype == np.float32
    with double_precision():
        found = jax.jit(limit.gram, static_argnums=0)(network, x).ntk
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, widelimit.gram(network, x).ntk)
        mixed = limit.gram(network, x, x.astype(np.float32)).ntk
        assert mixed.dtype == np.float64
        assert limit.gram(network, x.astype(np.float32)).ntk.dtype == np.float32
    assert limit.gram(network, jax.numpy.asarray(x, jax.numpy.bfloat16)).ntk.dtype == np.float32


def test_derivatives_are_those_of_gram_vjp(jax, limit, random):
    network, x1, x2 = fully_connected(), *(random.normal(size=(n, 5)) for n in (3, 4))
    nngp, ntk = random.normal(size=(3, 4)), random.normal(size=(3, 4))

    def value(a, b):
        found = limit.gram(network, a, b)
        return (nngp * found.nngp).sum() + (ntk * found.ntk).sum()

    with double_precision():
        for transformed in (jax.grad(value, argnums=(0, 1)), jax.jit(jax.grad(value, argnums=(0, 1)))):
            for found, expected in zip(transformed(x1, x2), widelimit.gram_vjp(network, x1, x2, nngp=nngp, ntk=ntk)):
                assert found.dtype == np.float64
                np.testing.assert_array_equal(found, expected)
        one = jax.jit(jax.grad(value, argnums=1))(x1, x2)
        np.testing.assert_array_equal(one, widelimit.gram_vjp(network, x1, x2, nngp=nngp, ntk=ntk)[1])


def test_symmetric_kernels_and_diagonals(jax, limit, random):
    network, x = fully_connected(), random.normal(size=(3, 5)).astype(np.float32)
    weights = random.normal(size=(3, 3)).astype(np.float32)
    found = jax.jit(jax.grad(lambda a: (weights * limit.gram(network, a, kernels="ntk").ntk).sum()))(x)
    np.testing.assert_array_equal(found, widelimit.gram_vjp(network, x, ntk=weights))
    found = jax.grad(lambda a: (weights[0] * limit.gram_diagonal(network, a).nngp).sum())(x)
    np.testing.assert_array_equal(found, widelimit.gram_diagonal_vjp(network, x, nngp=weights[0]))


def test_kernel_fn_with_its_channels_anywhere(jax, limit, random):
    kernel_fn, x1, x2 = images_first(), *(random.normal(size=(n, 2, 6)) for n in (2, 3))
    ntk = random.normal(size=(2, 3))
    with double_precision():
        value, (dx1, dx2) = jax.jit(jax.value_and_grad(
            lambda a, b: (ntk * limit.gram(kernel_fn, a, b).ntk).sum(), argnums=(0, 1)))(x1, x2)
        np.testing.assert_allclose(value, (ntk * kernel_fn(x1, x2, "ntk")).sum(), rtol=1e-13)
        for found, expected in zip((dx1, dx2), kernel_fn.vjp(x1, x2, ntk=ntk)):
            np.testing.assert_array_equal(found, expected)
        diagonal = jax.grad(lambda a: limit.gram_diagonal(kernel_fn, a).ntk.sum())(x1)
        expected = kernel_fn.vjp(x1, ntk=np.eye(2))
        np.testing.assert_allclose(diagonal, expected, atol=1e-12)


def test_a_loss_around_kernels_agrees_with_differences(jax, limit, random):
    """Kernel ridge regression, as it stands in papers."""
    jnp, network = jax.numpy, widelimit.Network([layers.dense(1.5, 0.1), layers.erf(), layers.dense()])
    x, y, test, truth = (random.normal(size=shape) for shape in ((4, 3), (4, 2), (5, 3), (5, 2)))

    def loss(points):
        weights = jnp.linalg.solve(limit.gram(network, points).ntk + 0.1 * jnp.eye(4), y)
        mean = limit.gram(network, test, points, "ntk").ntk @ weights
        return ((mean - truth) ** 2).sum() + jnp.log(limit.gram_diagonal(network, points).nngp).sum()

    with double_precision():
        import jax.test_util

        jax.test_util.check_grads(jax.jit(loss), (x,), order=1, modes=["rev"], atol=1e-7, rtol=1e-7)


def test_vmap_makes_a_call_each(jax, limit, random):
    network = fully_connected()
    x1, x2 = (random.normal(size=shape).astype(np.float32) for shape in ((2, 3, 5), (4, 5)))

    def value(a, b):
        return (limit.gram(network, a, b).ntk ** 2).sum()

    for transformed in (jax.vmap(jax.grad(value), (0, None)), jax.jit(jax.vmap(jax.grad(value), (0, None)))):
        np.testing.assert_allclose(transformed(x1, x2), [jax.grad(value)(a, x2) for a in x1], rtol=1e-6)
    jacobian = jax.jacrev(lambda a: limit.gram_diagonal(network, a).ntk)(x1[0])
    assert jacobian.shape == (3, 3, 5) and np.abs(jacobian[0, 1:]).max() == 0 and np.abs(jacobian[0, 0]).min() > 0
    with pytest.raises(ValueError, match=r"x1: expected an array \[n, ..., C\], got one of shape \(5,\)"):
        jax.vmap(lambda row: limit.gram(network, row, x2).ntk)(x1[0])


def test_options(jax, limit, random):
    network = widelimit.Network([layers.conv([3]), layers.relu(), layers.global_average_pool(), layers.dense()])
    x, ntk = random.normal(size=(3, 6, 2)).astype(np.float32), np.ones((3, 3), np.float32)
    found = jax.jit(jax.grad(lambda a: limit.gram(network, a, lengths1=[6, 4, 2], threads=1).ntk.sum()))(x)
    np.testing.assert_array_equal(found, widelimit.gram_vjp(network, x, ntk=ntk, lengths1=[6, 4, 2]))
    kernel_fn = images_first()
    turned = np.moveaxis(x, -1, 1).copy()
    turned[1, :, 4:] = 7
    found = jax.grad(lambda a: limit.gram(kernel_fn, a, mask_constant=7).ntk.sum())(turned)
    np.testing.assert_array_equal(found, kernel_fn.vjp(turned, ntk=ntk, mask_constant=7))


def test_what_a_result_does_not_depend_on_is_not_computed(jax, limit, random):
    x, calls = random.normal(size=(2, 3)).astype(np.float32), []
    kernels = limit.pair_kernels(fully_connected(), "both", {}, x.shape)
    kernels.backward = lambda inputs, cotangents, wanted: calls.append([given is None for given in cotangents]) or [x]
    inputs = limit._inputs(x)
    jax.grad(lambda a: limit._differentiable(kernels, [a]).nngp.sum())(*inputs)
    assert calls == [[False, True]]


@pytest.mark.parametrize("of, wanted", [(0, [True, False]), (1, [False, True]), ((0, 1), [True, True])])
def test_inputs_without_derivatives_are_not_computed(jax, limit, random, of, wanted):
    network, x1, x2 = fully_connected(), *(random.normal(size=(n, 3)).astype(np.float32) for n in (2, 4))
    calls = []
    kernels = limit.pair_kernels(network, "ntk", {}, x1.shape, x2.shape)
    backward = kernels.backward
    kernels.backward = lambda inputs, cotangents, words: calls.append(words) or backward(inputs, cotangents, words)

    def loss(*inputs):
        return limit._differentiable(kernels, list(map(jax.numpy.asarray, inputs))).ntk.sum()

    expected = widelimit.gram_vjp(network, x1, x2, ntk=np.ones((2, 4)))
    for transformed in (jax.grad(loss, argnums=of), jax.jit(jax.grad(loss, argnums=of)), jax.grad(jax.jit(loss), argnums=of)):
        found = transformed(x1, x2)
        for part, part_expected in zip(found if of == (0, 1) else [found], expected if of == (0, 1) else [expected[of]]):
            np.testing.assert_array_equal(part, part_expected)
    assert calls and all(list(call) == wanted for call in calls)


def test_errors(jax, limit, random):
    network, x = fully_connected(), random.normal(size=(3, 5)).astype(np.float32)
    sampled = widelimit.Network([layers.attention(scaling="inverse_sqrt_width"), layers.flatten(), layers.dense()])

    def ntk(a, **options):
        return limit.gram(network, a, **options).ntk.sum()

    def attention(a):
        layer = widelimit.Network([layers.attention(), layers.flatten(), layers.dense()])
        return limit.gram(layer, a).ntk.sum()

    z = random.normal(size=(2, 4, 3)).astype(np.float32)

    for call, error, message in (
            (lambda: jax.jvp(attention, (z,), (z,)), NotImplementedError, "no forward mode .*use reverse mode"),
            (lambda: jax.jvp(jax.jit(attention), (z,), (z,)), TypeError, "forward-mode"),
            (lambda: jax.hessian(attention)(z), NotImplementedError, "kernels: there are no second derivatives.*gram_vjp"),
            (lambda: jax.grad(lambda a: jax.grad(attention)(a).sum())(z), NotImplementedError, "no second derivatives"),
            (lambda: ntk(x, x2=x[:, :4]), ValueError, r"x1 of shape \(3, 5\) and x2 of shape \(3, 4\)"),
            (lambda: ntk(x, precision="double"), TypeError, "unexpected precision; expected graphs1, .*element type"),
            (lambda: ntk(x, kernels="cov1"), ValueError, "kernels: expected 'nngp', 'ntk' or 'both', got 'cov1'"),
            (lambda: ntk(x.astype(complex)), TypeError, "real numbers, got elements of type complex"),
            (lambda: ntk([x[0], x[1]]), TypeError, "x1: expected one array, got a list; pad inputs"),
            (lambda: limit.gram(stax.Dense(3), x), TypeError, "expected a widelimit.Network, or a kernel_fn"),
            (lambda: limit.gram(stax.Relu()[2], random.normal(size=(2, 4, 3))), NotImplementedError, "readout over positions"),
            (lambda: jax.grad(lambda a: limit.gram(sampled, a).ntk.sum())(random.normal(size=(2, 4, 3))),
             widelimit.ArgumentError, "sampled"),
            (lambda: jax.jit(ntk)(np.full((2, 2), np.inf)), getattr(jax.errors, "JaxRuntimeError", RuntimeError), "finite")):
        with pytest.raises(error, match=message):
            np.asarray(call())


def test_integers_count_as_what_numpy_makes_of_them(jax, limit):
    network = widelimit.Network([layers.dense(1.5), layers.relu(), layers.dense()])
    with double_precision():
        assert limit.gram(network, np.arange(6).reshape(2, 3)).nngp.dtype == np.float64
    assert limit.gram(network, np.arange(6).reshape(2, 3)).nngp.dtype == np.float32


CALLED = {
    "convolution": (lambda: stax.serial(stax.Conv(8, (3, 3)), stax.Relu(), stax.Flatten(), stax.Dense(1)), (4, 4, 4, 2)),
    "norm": (lambda: stax.serial(stax.Dense(8), stax.LayerNorm(), stax.Relu(), stax.Dense(1)), (4, 5)),
}


@pytest.mark.parametrize("get", ["nngp", "ntk", ("nngp", "ntk"), None])
@pytest.mark.parametrize("name", CALLED)
def test_compiled_losses_call_back_twice_at_most(name, get, jax, monkeypatch):
    """Once for the kernels and once for their derivatives, however many kernels and batches there are."""
    calls, callback = [], jax.pure_callback

    def counted(function, *given, **options):
        return callback(lambda *arrays: calls.append(1) or function(*arrays), *given, **options)

    # The signature says which options there are.
    counted.__signature__ = inspect.signature(callback)
    monkeypatch.setattr(jax, "pure_callback", counted)
    make, shape = CALLED[name]
    kernel_fn = make()[2]
    x, y = np.random.default_rng(0).normal(size=shape).astype(np.float32), np.ones((4, 1), np.float32)

    def regression(inputs, others=None):
        found = kernel_fn(inputs, others, get)
        kernel = sum(found) if isinstance(get, tuple) else found.ntk if get is None else found
        return (y.T @ jax.numpy.linalg.solve(kernel + 3 * np.eye(4), y))[0, 0]

    for loss in (regression, lambda inputs: regression(inputs, inputs + 1)):
        for function, most in ((loss, 1), (jax.grad(loss), 2), (jax.value_and_grad(loss), 2)):
            compiled = jax.jit(function)
            jax.block_until_ready(compiled(x))
            calls.clear()
            jax.block_until_ready(compiled(x))
            assert 1 <= len(calls) <= most
