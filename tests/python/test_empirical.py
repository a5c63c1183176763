"""Empirical kernels and expansions of any function of JAX, and axes of outputs."""

import numpy as np
import pytest

import widelimit as nt
from parameter_trees import leaves
from widelimit import stax
from widelimit._jax import double_precision

jax = pytest.importorskip("jax")
jnp = jax.numpy


@pytest.fixture
def network(random):
    """(apply_fn of this package, the same written for JAX, parameters, x1, x2)."""
    init_fn, apply_fn, _ = stax.serial(stax.Dense(9, 1.3, 0.2), stax.Erf(), stax.Dense(3))

    def by_hand(params, x, **kwargs):
        (w, b), _, (v, _) = params
        return jax.scipy.special.erf(1.3 / np.sqrt(4) * x @ w + 0.2 * b) @ v / 3

    return apply_fn, by_hand, init_fn(0, (2, 4))[1], random.normal(size=(5, 4)), random.normal(size=(2, 4))


@pytest.fixture(autouse=True)
def in_double():
    with double_precision():
        yield


@pytest.mark.parametrize("two", [False, True])
@pytest.mark.parametrize("axes", [{}, {"trace_axes": ()}, {"trace_axes": (), "diagonal_axes": (-1,)}, {"trace_axes": (1,)}])
def test_kernels_of_a_function_are_those_of_the_network(network, two, axes):
    apply_fn, by_hand, params, x1, x2 = network
    x2 = x2 if two else None
    for name in ("nngp", "NTK"):
        found, expected = (nt.empirical_kernel_fn(f, **axes)(x1, x2, name, params) for f in (by_hand, apply_fn))
        assert found.shape == (5, 2 if two else 5) + {"trace_axes": (3, 3), "diagonal_axes": (3,)}.get(
            list(axes)[-1] if axes and axes["trace_axes"] == () else "", ())
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13)
    both = nt.empirical_kernel_fn(by_hand, **axes)(x1, x2, None, params)
    np.testing.assert_allclose(both.ntk, nt.empirical_ntk_fn(by_hand, **axes)(x1, x2, params), rtol=1e-12)
    np.testing.assert_allclose(both.nngp, nt.empirical_nngp_fn(by_hand, **axes)(x1, x2, params), rtol=1e-12)


def test_axes_belong_together(network):
    apply_fn, _, params, x1, _ = network
    whole, some, traced = (nt.empirical_ntk_fn(apply_fn, **axes)(x1, None, params) for axes in (
        {"trace_axes": ()}, {"trace_axes": (), "diagonal_axes": (-1,)}, {}))
    np.testing.assert_allclose(np.einsum("abkk->abk", whole), some, rtol=1e-12)
    np.testing.assert_allclose(some.mean(-1), traced, rtol=1e-12)
    inputs = nt.empirical_ntk_fn(apply_fn, trace_axes=(), diagonal_axes=(0,))(x1, None, params)
    np.testing.assert_allclose(inputs, np.einsum("aakl->akl", whole), rtol=1e-12)
    for axes, message in (({"trace_axes": (2,)}, "trace_axes: expected axes of outputs with 2 axes"),
                          ({"diagonal_axes": (-1,)}, "trace_axes, diagonal_axes: expected different axes")):
        with pytest.raises(ValueError, match=message):
            nt.empirical_ntk_fn(apply_fn, **axes)(x1, None, params)


def test_axes_of_images(random):
    """Outputs with positions, in the order of neural-tangents."""
    def f(params, x):
        return jnp.einsum("nhc,co->nho", x, params["w"]) + params["b"]

    x, params = random.normal(size=(2, 5, 3)), {"w": random.normal(size=(3, 4)), "b": random.normal(size=4)}
    found = nt.empirical_ntk_fn(f)(x, None, params)
    np.testing.assert_allclose(found, np.einsum("ahc,bkc->abhk", x, x) + 1, rtol=1e-10)
    assert nt.empirical_ntk_fn(f, trace_axes=(-1,), diagonal_axes=(1,))(x, None, params).shape == (2, 2, 5)


def test_products_with_vectors(network, random):
    apply_fn, by_hand, params, x1, x2 = network
    vectors = random.normal(size=(2, 3))
    found, expected = (nt.empirical_ntk_vp_fn(f, x1, x2, params)(vectors) for f in (by_hand, apply_fn))
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_expansions(network):
    apply_fn, by_hand, params, x1, _ = network
    moved = jax.tree_util.tree_map(lambda array: array * 1.1, params)
    np.testing.assert_allclose(nt.linearize(by_hand, params)(moved, x1), nt.linearize(apply_fn, params)(moved, x1), rtol=1e-10)
    errors = []
    for scale in (1e-2, 5e-3):
        shifted = jax.tree_util.tree_map(lambda array: array * (1 + scale), params)
        errors.append([np.abs(nt.taylor_expand(by_hand, params, degree)(shifted, x1) - by_hand(shifted, x1)).max()
                       for degree in range(4)])
    np.testing.assert_allclose(np.log2(np.divide(*errors)), [1, 2, 3, 4], atol=0.2)
    square = nt.taylor_expand(lambda p, x: (x @ p)**2, np.ones(4), 2)
    np.testing.assert_allclose(square(np.arange(4.0), x1), (x1 @ np.arange(4.0))**2, rtol=1e-12)
    with pytest.raises(ValueError, match="taylor_expand: degree: expected an integer of at least 0, got -1"):
        nt.taylor_expand(by_hand, params, -1)


def test_means_over_networks_of_jax():
    x = jnp.asarray(np.random.default_rng(1).normal(size=(3, 4)))

    def init_fn(key, shape):
        first, second = jax.random.split(key)
        return (*shape[:-1], 1), (jax.random.normal(first, (shape[-1], 512)), jax.random.normal(second, (512, 1)))

    def apply_fn(params, x, **kwargs):
        return jnp.maximum(x @ params[0] / 2, 0) @ params[1] / np.sqrt(512)

    means = list(nt.monte_carlo_kernel_fn(init_fn, apply_fn, jax.random.PRNGKey(0), {10, 200})(x, None, ("nngp", "ntk")))
    expected = stax.serial(stax.Dense(1), stax.Relu(), stax.Dense(1))[2](x, None, ("nngp", "ntk"))
    assert len(means) == 2
    np.testing.assert_allclose(means[1].ntk, expected.ntk, atol=0.15)
    np.testing.assert_allclose(means[1].nngp, expected.nngp, atol=0.2)


def test_pairs_of_arguments_are_for_the_two_batches(network):
    _, by_hand, params, x1, x2 = network

    def scaled(params, x, factor=1.0, rng=None):
        return factor * by_hand(params, x)

    found = nt.empirical_nngp_fn(scaled)(x1, x2, params, factor=(2.0, 3.0))
    np.testing.assert_allclose(found, 6 * nt.empirical_nngp_fn(by_hand)(x1, x2, params), rtol=1e-12)


def test_functions_around_apply_fn(network):
    apply_fn, _, params, x1, _ = network
    found = nt.empirical_ntk_fn(lambda p, x: apply_fn(p, x))(jnp.asarray(x1), None, jax.tree_util.tree_map(jnp.asarray, params))
    np.testing.assert_allclose(found, nt.empirical_ntk_fn(apply_fn)(x1, None, params), rtol=1e-10)
    assert len(leaves(params)) == 3
    with pytest.raises(TypeError, match="f: expected a function"):
        nt.empirical_ntk_fn(3)


def test_outputs_of_no_numbers_have_kernels_of_none():
    jnp = pytest.importorskip("jax.numpy", reason="JAX is not installed")
    kernel_fn = nt.empirical_ntk_fn(lambda params, x: (x @ params)[:, :0], trace_axes=())
    assert kernel_fn(jnp.ones((3, 4)), None, jnp.ones((4, 2))).shape == (3, 3, 0, 0)
