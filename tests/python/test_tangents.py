"""Functions of the package neural_tangents itself: what they are asked for, and what they give."""

import numpy as np
import pytest

import widelimit as nt
from widelimit.stax import _finite
from parameter_trees import mapped
from widelimit import stax


@pytest.fixture
def network():
    return stax.serial(stax.Dense(16), stax.Relu(), stax.Dense(2))


def kernel_functions(network):
    """(x, get) of the empirical kernel and of the mean of several."""
    init_fn, apply_fn, _ = network
    params = init_fn(0, (-1, 3))[1]
    empirical = nt.empirical_kernel_fn(apply_fn)
    return (lambda x, get: empirical(x, None, get, params)), nt.monte_carlo_kernel_fn(init_fn, apply_fn, 1, 3)


@pytest.mark.parametrize("kind", [0, 1])
def test_get_gives_these_names_in_their_order(random, network, kind):
    x = random.normal(size=(4, 3))
    one = kernel_functions(network)[kind]
    kernels = (lambda get: one(x, get)) if kind == 0 else (lambda get: one(x, None, get))
    whole = kernels(None)
    assert whole._fields == ("nngp", "ntk")
    turned = kernels(("ntk", "nngp"))
    assert turned._fields == ("ntk", "nngp")
    np.testing.assert_array_equal(turned[0], whole.ntk)
    assert kernels(["ntk"])._fields == ("ntk",)
    assert isinstance(kernels("nngp"), np.ndarray)
    for wrong in ("cov1", ("ntk", "cov1"), 3, ()):
        with pytest.raises(ValueError, match="get: expected 'nngp', 'ntk', a tuple of them or None, got"):
            kernels(wrong)


def test_numbers_of_samples(network):
    x = np.ones((2, 3))
    for wrong in (0, -2, [], [3, 0]):
        with pytest.raises(ValueError, match="n_samples: expected at least 1"):
            nt.monte_carlo_kernel_fn(*network[:2], 1, wrong)
    with pytest.raises(TypeError, match="n_samples: expected an integer"):
        nt.monte_carlo_kernel_fn(*network[:2], 1, 2.5)
    means = list(nt.monte_carlo_kernel_fn(*network[:2], 1, {3, 1})(x, None, ("ntk",)))
    assert [mean._fields for mean in means] == [("ntk",)] * 2
    np.testing.assert_array_equal(means[1].ntk, nt.monte_carlo_kernel_fn(*network[:2], 1, 3)(x, None, "ntk"))


@pytest.fixture
def dropping():
    return stax.serial(stax.Dense(64), stax.Relu(), stax.Dropout(0.5), stax.Dense(48))


@pytest.mark.parametrize("get", ["nngp", "ntk"])
def test_the_mean_of_kernels_knows_dropout(random, dropping, get):
    x = random.normal(size=(3, 4))
    expected = dropping[2](x, None, get)
    mean = nt.monte_carlo_kernel_fn(*dropping[:2], 1, 300)(x, None, get)
    # Without what dropout adds to it, the diagonal would be half as large.
    np.testing.assert_allclose(mean.diagonal(), expected.diagonal(), rtol=0.1)
    np.testing.assert_allclose(mean, expected, atol=0.1 * np.abs(expected).max())


def test_keys_reach_apply_fn(random, dropping):
    x, other = random.normal(size=(3, 4)), random.normal(size=(2, 4))
    init_fn, apply_fn, _ = dropping
    params = init_fn(0, x.shape)[1]
    outputs = apply_fn(params, x, rng=5)
    assert not np.array_equal(outputs, apply_fn(params, x, rng=6))
    empirical = nt.empirical_kernel_fn(apply_fn)
    one = empirical(x, None, "nngp", params, rng=5)
    np.testing.assert_allclose(one, outputs @ outputs.T / 48, rtol=1e-12)
    # Equal batches are one, as for neural-tangents.
    np.testing.assert_array_equal(empirical(x, x.copy(), "nngp", params, rng=5), one)
    np.testing.assert_allclose(nt.empirical_nngp_fn(apply_fn)(x, other, params, rng=5)[:, 0],
                               outputs @ apply_fn(params, np.concatenate([x, other]), rng=5)[3] / 48, rtol=1e-12)
    moved = mapped(lambda array: array + random.normal(size=array.shape) * 1e-6, params)
    for f_lin in (nt.linearize(apply_fn, params), nt.taylor_expand(apply_fn, params, 1)):
        np.testing.assert_allclose(f_lin(moved, x, rng=5), apply_fn(moved, x, rng=5), rtol=1e-6)
    ntk = nt.empirical_ntk_fn(apply_fn)
    vectors = random.normal(size=(2, 48))
    whole = np.einsum("aop,bqp,bq->ao", *apply_fn.__self__.sides(params, x, other, "ntk", 5), vectors)
    np.testing.assert_allclose(nt.empirical_ntk_vp_fn(apply_fn, x, other, params, rng=5)(vectors), whole, rtol=1e-12)
    traced = np.einsum("aop,bop->ab", *apply_fn.__self__.sides(params, x, other, "ntk", 5)) / 48
    np.testing.assert_allclose(ntk(x, other, params, rng=5), traced, rtol=1e-10)


def test_dropout_needs_a_key(random, dropping):
    x = random.normal(size=(2, 4))
    init_fn, apply_fn, _ = dropping
    params = init_fn(0, x.shape)[1]
    for call in (lambda: apply_fn(params, x), lambda: nt.empirical_ntk_fn(apply_fn)(x, None, params),
                 lambda: nt.linearize(apply_fn, params)(params, x)):
        with pytest.raises(ValueError, match="rng: expected a key"):
            call()
    test = stax.serial(stax.Dense(4), stax.Dropout(0.5, "test"), stax.Dense(1))
    assert test[1](test[0](0, x.shape)[1], x).shape == (2, 1)


def test_arguments_are_used_or_refused(network):
    x = np.ones((2, 3))
    init_fn, apply_fn, _ = network
    params = init_fn(0, x.shape)[1]
    calls = (lambda **kwargs: apply_fn(params, x, **kwargs),
             lambda **kwargs: nt.empirical_kernel_fn(apply_fn)(x, None, None, params, **kwargs),
             lambda **kwargs: nt.empirical_nngp_fn(apply_fn)(x, None, params, **kwargs),
             lambda **kwargs: nt.empirical_ntk_fn(apply_fn)(x, None, params, **kwargs),
             lambda **kwargs: nt.empirical_ntk_vp_fn(apply_fn, x, None, params, **kwargs),
             lambda **kwargs: nt.monte_carlo_kernel_fn(init_fn, apply_fn, 1, 2)(x, None, None, **kwargs),
             lambda **kwargs: nt.linearize(apply_fn, params)(params, x, **kwargs),
             lambda **kwargs: nt.taylor_expand(apply_fn, params, 0)(params, x, **kwargs))
    _finite._IGNORED.discard("rgn")
    with pytest.warns(UserWarning, match="apply_fn: rgn: there is no such argument, and it is ignored"):
        calls[0](rgn=3)
    for call in calls:
        call(mask_constant=None, pattern=None)
        call(rgn=3)  # Says so once.
    with pytest.raises(ValueError, match="params"):
        nt.empirical_ntk_fn(apply_fn)(x, None, params[:1], mask_constant=0.0)
    with pytest.raises(NotImplementedError, match="rng: expected one key"):
        calls[1](rng=(1, 2))
    with pytest.raises(TypeError, match="rng: expected none"):
        calls[5](rng=1)
