"""Functions of the package neural_tangents itself: what they are asked for, and what they give."""

import numpy as np
import pytest

import widelimit as nt
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
