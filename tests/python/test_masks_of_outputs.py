"""Masks and graphs of networks of finite width, of arrays of any library, and of layers of functions of kernels. Their numbers are
compared with neural-tangents' in test_neural_tangents_questions.py."""

import pickle

import numpy as np
import pytest

import widelimit as nt
from widelimit import stax

jax = pytest.importorskip("jax", reason="JAX is not installed")
pytestmark = pytest.mark.usefixtures("in_double")
NETWORK = stax.serial(stax.Conv(4, (3,), padding="SAME", b_std=0.3), stax.Erf(), stax.GlobalAvgPool(), stax.Dense(2))


@pytest.fixture
def x(random):
    array = random.normal(size=(3, 5, 4))
    array[0, 3:] = array[1] = 10.0
    return array


def test_arrays_of_numpy_are_as_those_of_jax(x):
    init_fn, apply_fn, _ = NETWORK
    params = init_fn(jax.random.PRNGKey(0), x.shape)[1]
    of_numpy = jax.tree_util.tree_map(np.asarray, params)
    for masked in (x, stax.MaskedArray(np.where(x == 10.0, 0.0, x), x == 10.0)):
        given = {} if isinstance(masked, stax.MaskedArray) else {"mask_constant": 10.0}
        found, expected = apply_fn(of_numpy, masked, **given), apply_fn(params, jax.numpy.asarray(x), mask_constant=10.0)
        assert isinstance(found.masked_value, np.ndarray) and found.mask.tolist() == [[False], [True], [False]]
        np.testing.assert_allclose(found.masked_value, expected.masked_value, rtol=1e-12)
    unmasked = pickle.loads(pickle.dumps(stax.unmask_fn(apply_fn)))(of_numpy, x, mask_constant=10.0)
    np.testing.assert_array_equal(unmasked[1], 0.0)
    np.testing.assert_array_equal(unmasked[::2], found.masked_value[::2])
    kernel = nt.empirical_ntk_fn(apply_fn)(x, None, of_numpy, mask_constant=10.0)
    np.testing.assert_allclose(kernel, nt.empirical_ntk_fn(apply_fn)(jax.numpy.asarray(x), None, params, mask_constant=10.0), rtol=1e-10)
    np.testing.assert_array_equal(kernel[1], 0.0)
    mean = nt.monte_carlo_kernel_fn(*NETWORK[:2], 0, 2)(x, None, "nngp", mask_constant=10.0)
    assert mean.shape == (3, 3) and mean[1].tolist() == [0, 0, 0] and mean[0, 0] > 0


def test_several_inputs(x):
    init_fn, apply_fn, _ = stax.serial(stax.parallel(NETWORK, NETWORK), stax.FanInSum())
    params = init_fn(0, (x.shape, x.shape))[1]
    found = apply_fn(params, (x, x[::-1]), mask_constant=10.0)
    parts = [NETWORK[1](own, array, mask_constant=10.0).masked_value for own, array in zip(params[0], (x, x[::-1]))]
    np.testing.assert_allclose(found.masked_value, parts[0] + parts[1], rtol=1e-12)
    assert found.mask.tolist() == [[False], [True], [False]]


def test_derivatives_of_inputs_of_which_nothing_counts_are_zero(x):
    kernel_fn = stax.serial(*[NETWORK])[2]
    weights = np.arange(9.0).reshape(3, 3)
    slope = kernel_fn.vjp(x, ntk=weights, mask_constant=10.0)
    rest = kernel_fn.vjp(x[::2], ntk=weights[::2, ::2], mask_constant=10.0)
    np.testing.assert_array_equal(slope[1], 0.0)
    np.testing.assert_allclose(slope[::2], rest, rtol=1e-12)
    kernel = kernel_fn(x, x[1:2], mask_constant=10.0)
    assert kernel.ntk.tolist() == [[0], [0], [0]] and kernel.cov2.tolist() == [0] and kernel.mask2.tolist() == [[True]]


@stax.layer
@stax.supports_masking(remask_kernel=True)
def Twice():
    return (lambda key, shape: (shape, ())), (lambda params, x, mask=None, **kwargs: 2 * x), lambda k, **kwargs: 2 * k


def test_own_layers_take_masks(x):
    own, known = (stax.serial(stax.Conv(4, (3,), padding="SAME", b_std=0.3), layer, stax.Relu(), stax.GlobalAvgPool())
                  for layer in (Twice(), stax.DotGeneral(rhs=2.0)))
    for get in ("nngp", "cov1"):
        np.testing.assert_allclose(own[2](x, x[:1], get, mask_constant=10.0), known[2](x, x[:1], get, mask_constant=10.0), rtol=1e-10)
    params = known[0](0, x.shape)[1]
    found = Twice()[1]((), stax.MaskedArray(x, x == 10.0))
    np.testing.assert_array_equal(found.masked_value, np.where(x == 10.0, 0.0, 2 * x))
    assert known[1](params, x, mask_constant=10.0).mask.tolist() == [[False], [True], [False]]


def test_graphs_of_finite_width(random):
    x, graphs = random.normal(size=(2, 4, 3)), random.uniform(size=(2, 4, 4))
    init_fn, apply_fn, kernel_fn = stax.serial(stax.Dense(3), stax.Aggregate(), stax.GlobalSumPool())
    params = init_fn(0, x.shape)[1]
    weights = params[0][0]
    np.testing.assert_allclose(apply_fn(params, x, pattern=graphs), np.einsum("nst,nsc,cd->nd", graphs, x, weights) / 3**0.5, rtol=1e-12)
    with pytest.raises(ValueError, match=r"pattern: expected an array of shape \(2, 4, 4\), got \(2, 3, 3\)"):
        apply_fn(params, x, pattern=graphs[:, :3, :3])
    with pytest.raises(ValueError, match="pattern: expected a pair"):
        kernel_fn(x, None, "nngp", pattern=graphs)


def test_what_a_kernel_refuses(x):
    kernel = stax.Conv(4, (3,), padding="SAME")[2](x, None)
    for operation, error, message in ((lambda: kernel[0], NotImplementedError, "the batch: expected a slice"),
                                      (lambda: kernel[:, :, 1:], NotImplementedError, "the channels: expected ':'"),
                                      (lambda: kernel[:, :, :, :], IndexError, "at most 3 axes"),
                                      (lambda: kernel.mask(x == 10.0, None), NotImplementedError, "masks of one channel"),
                                      (lambda: kernel.dot_general(np.ones(4), None, False, (((2,), (0,)), ((), ()))), ValueError,
                                       "other axes than the channels")):
        with pytest.raises(error, match=message):
            operation()
