"""kernel_fn(batch_axis=, channel_axis=): honoured, or an error, at every door that takes them."""

import numpy as np
import pytest

import widelimit as nt
from widelimit import predict, stax

AXES = [(0, -1), (1, 0), (-1, 0), (0, 1), (1, -1), (2, 1), (-2, -3)]
ARRAYS = ("nngp", "ntk", "cov1", "cov2")


def of_positions():
    """Layers that were told no axes."""
    return stax.serial(stax.Identity(), stax.Dropout(0.8))[2]


def own():
    @stax.layer
    def doubled():
        return (lambda key, shape: (shape, ())), (lambda params, x, **kwargs: 2**.5 * x), (lambda kernel, **kwargs: 2 * kernel)

    return stax.serial(stax.Identity(), doubled())[2]


@pytest.fixture
def random():
    return np.random.default_rng(11)


def moved(array, axes):
    return None if array is None else np.moveaxis(array, (0, -1), axes)


def assert_equal(found, expected):
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("network", [of_positions, own])
def test_axes_of_a_call_are_those_of_the_inputs(random, axes, network):
    x1, x2 = random.normal(size=(4, 3, 5)), random.normal(size=(2, 3, 5))
    given = dict(zip(("batch_axis", "channel_axis"), axes))
    for pair in ((x1, x2), (x1, None)):
        found, expected = network()(*(moved(x, axes) for x in pair), **given), network()(*pair)
        assert_equal(found, expected)
        assert (found.batch_axis, found.channel_axis) == tuple(axis % 3 for axis in axes)
        assert found.shape1 == moved(x1, axes).shape


def test_one_of_both_axes_is_enough(random):
    x, kernel_fn = random.normal(size=(4, 6)), of_positions()
    assert_equal(kernel_fn(x.T, batch_axis=1), kernel_fn(x))
    images = random.normal(size=(4, 3, 2))
    assert_equal(kernel_fn(np.moveaxis(images, -1, 1), channel_axis=1), kernel_fn(images))


def test_axes_pass_every_door(random):
    x, y, test = random.normal(size=(5, 4)), random.normal(size=(5, 1)), random.normal(size=(3, 4))
    given, kernel_fn = {"batch_axis": 1, "channel_axis": 0}, of_positions()
    np.testing.assert_array_equal(nt.batch(kernel_fn, 2)(x.T, None, "ntk", **given), kernel_fn(x, None, "ntk"))
    # A Kernel keeps its axes, and a call may repeat them.
    assert_equal(kernel_fn(kernel_fn(x.T, **given), **given), kernel_fn(kernel_fn(x)))
    weights = random.normal(size=(5, 5))
    np.testing.assert_array_equal(kernel_fn.vjp(x.T, nngp=weights, **given), kernel_fn.vjp(x, nngp=weights).T)
    at_ends = [predict.gradient_descent_mse_ensemble(kernel_fn, data, y, diag_reg=1e-3, **options)(x_test=tests, get="nngp")
               for data, tests, options in ((x, test, {}), (x.T, test.T, given))]
    np.testing.assert_array_equal(*at_ends)


def test_axes_hold_where_jax_transforms(random):
    jax = pytest.importorskip("jax")
    x, given, kernel_fn = jax.numpy.asarray(random.normal(size=(4, 3)), "float32"), {"batch_axis": 1}, of_positions()
    total = jax.grad(lambda array, options: kernel_fn(array, None, "nngp", **options).sum(), 0)
    np.testing.assert_allclose(total(x.T, given), total(x, {}).T, rtol=1e-5)
    np.testing.assert_allclose(jax.jit(lambda array: kernel_fn(array, None, "ntk", **given))(x.T), kernel_fn(x, None, "ntk"),
                               rtol=1e-6)


@pytest.mark.parametrize("layers, shape, given, message", [
    ([stax.Dense(2)], (4, 3), {"batch_axis": 1, "channel_axis": 0}, "Dense: batch_axis=0: expected 1, where it is in shape"),
    ([stax.Relu(), stax.Dense(2, batch_axis=1, channel_axis=0)], (4, 3), {"batch_axis": 0, "channel_axis": 1},
     "Dense: batch_axis=1: expected 0"),
    ([stax.Conv(2, (3,)), stax.GlobalAvgPool()], (4, 5, 3), {"channel_axis": 1}, "Conv.*expected"),
    ([stax.Flatten()], (4, 5, 3), {"batch_axis": 1}, "Flatten: batch_axis=0: expected 1"),
    ([stax.Relu()], (4, 3), {"batch_axis": 2}, r"kernel_fn: batch_axis: expected one of 2 axes, from -2 to 1, got 2"),
    ([stax.Relu()], (4, 3), {"channel_axis": -3}, "kernel_fn: channel_axis: expected an integer of at least -2, got -3"),
    ([stax.Relu()], (4, 3), {"batch_axis": 1, "channel_axis": -1}, "batch_axis, channel_axis: expected different axes"),
])
def test_axes_that_cannot_be_honoured_are_errors(random, layers, shape, given, message):
    x, kernel_fn = random.normal(size=shape), stax.serial(*layers)[2]
    with pytest.raises(ValueError, match=message):
        kernel_fn(x, None, "nngp", **given)
    with pytest.raises(ValueError, match=message):
        kernel_fn.vjp(x, nngp=np.ones((len(x), len(x))), **given)


@pytest.mark.parametrize("axis", [0.5, "0", (0,)])
def test_axes_are_integers(random, axis):
    with pytest.raises(TypeError, match="kernel_fn: batch_axis: expected an integer, got"):
        of_positions()(random.normal(size=(4, 3)), batch_axis=axis)


def test_a_kernel_that_says_otherwise_is_an_error(random):
    kernel_fn = of_positions()
    for kernel in (kernel_fn(random.normal(size=(4, 3))), kernel_fn(random.normal(size=(4, 3))).replace()):
        assert_equal(kernel_fn(kernel, batch_axis=0, channel_axis=-1), kernel_fn(kernel))
        for given in ({"batch_axis": 1}, {"channel_axis": 0}):
            with pytest.raises(ValueError, match="kernel_fn: .*_axis=[01]: got a Kernel that has it at [01], of shape"):
                kernel_fn(kernel, **given)


def test_networks_of_finite_width_ignore_axes_and_say_so_once(random):
    x, (init_fn, apply_fn, _) = random.normal(size=(4, 3)), stax.serial(stax.Dense(5), stax.Relu(), stax.Dense(2))
    params = init_fn(0, x.shape)[1]
    with pytest.warns(UserWarning, match="apply_fn: axis_of_calls: there is no such argument, and it is ignored"):
        apply_fn(params, x, axis_of_calls=0)
    for call in (lambda **given: apply_fn(params, x, **given),
                 lambda **given: nt.monte_carlo_kernel_fn(init_fn, apply_fn, 0, 2)(x, None, "ntk", **given),
                 lambda **given: nt.empirical_kernel_fn(apply_fn)(x, None, "ntk", params, **given),
                 lambda **given: nt.linearize(apply_fn, params)(params, x, **given)):
        assert np.array_equal(call(axis_of_calls=0), call())
