"""Layers of functions of kernels, made with stax.layer."""

import numpy as np
import pytest

from parameter_trees import leaves
import widelimit
from widelimit import layers, stax
from widelimit.stax import Bool, Diagonal


@stax.layer
def OwnRelu():
    """max(x, 0) with the arc-cosine kernel written out."""

    def init_fn(key, input_shape):
        return input_shape, ()

    def apply_fn(params, x, **kwargs):
        return x * (x > 0)

    @stax.requires(diagonal_spatial=Diagonal())
    def kernel_fn(k, **kwargs):
        shape = (-1,) + (1,) * (k.nngp.ndim - 1)
        p, q = k.cov1, (k.cov1 if k.cov2 is None else k.cov2)
        roots = (p.reshape(*shape)[:, ...] * q[None])**0.5 if k.nngp.ndim == 2 else (p[:, None] * q[None])**0.5
        c = np.clip(k.nngp / roots, -1, 1)
        angle = np.arccos(c)
        return k.replace(nngp=roots * (np.sin(angle) + (np.pi - angle) * c) / (2 * np.pi),
                         ntk=k.ntk * (np.pi - angle) / (2 * np.pi), cov1=k.cov1 / 2,
                         cov2=None if k.cov2 is None else k.cov2 / 2, is_gaussian=False)

    return init_fn, apply_fn, kernel_fn


@stax.layer
@stax.supports_masking(remask_kernel=False)
def Times(factor):
    def init_fn(key, input_shape):
        return input_shape, ()

    def apply_fn(params, x, **kwargs):
        return factor * x

    return init_fn, apply_fn, lambda k, **kwargs: factor * k


def branched(relu):
    inner = stax.parallel(stax.serial(stax.Dense(6), relu, stax.Dense(5)), stax.Dense(5))
    return stax.serial(stax.Dense(8, 1.3, 0.2), relu, stax.FanOut(2), inner, stax.FanInSum(), relu, stax.Dense(2))


def concatenated(relu):
    inner = stax.parallel(stax.serial(relu, stax.Dense(6)), stax.Dense(2))
    return stax.serial(stax.Dense(8), stax.FanOut(2), inner, stax.FanInConcat(), stax.Dense(2, parameterization="standard"))


def multiplied(relu):
    inner = stax.parallel(stax.serial(relu, stax.Dense(6)), stax.Dense(6))
    return stax.serial(stax.Dense(8), stax.FanOut(2), inner, stax.FanInProd(), stax.Dense(2))


def repeated(relu):
    return stax.serial(stax.Dense(8), stax.repeat(stax.serial(relu, stax.Dense(8, b_std=0.3)), 3))


@pytest.mark.parametrize("network", [branched, concatenated, multiplied, repeated])
@pytest.mark.parametrize("two", [False, True])
def test_an_own_relu_is_that_of_the_library(random, network, two):
    x1, x2 = random.normal(size=(4, 3)), random.normal(size=(5, 3)) if two else None
    found, expected = (network(relu)[2](x1, x2) for relu in (OwnRelu(), stax.Relu()))
    for name in ("nngp", "ntk", "cov1", "cov2"):
        if getattr(expected, name) is None:
            assert getattr(found, name) is None
        else:
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-10)
    for name in ("shape1", "shape2", "is_gaussian", "x1_is_x2", "diagonal_batch"):
        assert getattr(found, name) == getattr(expected, name), name
    np.testing.assert_array_equal(network(OwnRelu())[2](x1, x2, "NTK"), found.ntk)


@pytest.mark.parametrize("network", [branched, concatenated, multiplied])
def test_networks_of_finite_width(random, network):
    x = random.normal(size=(4, 3))
    own, known = network(OwnRelu()), network(stax.Relu())
    shape, params = own[0](0, x.shape)
    assert shape == (4, 2) and sum(a.size for a in leaves(params)) == sum(a.size for a in leaves(known[0](0, x.shape)[1]))
    np.testing.assert_allclose(own[1](params, x), known[1](params, x), rtol=1e-12)


def test_between_positions(random):
    x = random.normal(size=(3, 4, 5, 2))
    own = stax.serial(stax.Conv(4, (3, 3), padding="SAME"), Times(2.0), stax.Relu(), stax.Conv(3, (2, 2)), stax.GlobalAvgPool())
    known = stax.serial(stax.Conv(4, (3, 3), W_std=2.0, padding="SAME"), stax.Relu(), stax.Conv(3, (2, 2)), stax.GlobalAvgPool())
    np.testing.assert_allclose(own[2](x, None, "nngp"), known[2](x, None, "nngp"), rtol=1e-12)
    flat = stax.serial(stax.Conv(4, (3, 3)), Times(2.0), stax.Relu(), stax.Flatten(), stax.Dense(1))[2]
    assert flat(x).nngp.shape == (3, 3)


def test_inputs_are_kernels(random):
    x = random.normal(size=(3, 4))
    found = Times(3.0)[2](x)
    np.testing.assert_allclose(found.nngp, 9 * x @ x.T / 4, rtol=1e-12)
    assert found.is_input and not found.is_gaussian
    np.testing.assert_array_equal(Times(3.0)[2](stax.Dense(2)[2](x), get="nngp"), 9 * stax.Dense(2)[2](x, None, "nngp"))


def test_functions_of_jax(random):
    jax = pytest.importorskip("jax")

    @stax.layer
    def Shift():
        def kernel_fn(k, **kwargs):
            assert isinstance(k.nngp, jax.Array)
            return k.replace(nngp=k.nngp.at[0, 0].add(1.0))

        return (lambda key, shape: (shape, ())), (lambda params, x, **kwargs: x), kernel_fn

    x = jax.numpy.asarray(random.normal(size=(3, 4)), "float32")
    network = stax.serial(stax.Dense(4), Shift(), stax.Dense(1, 2.0))
    found, before = network[2](x, None, "nngp"), stax.serial(stax.Dense(4), stax.Dense(1, 2.0))[2](x, None, "nngp")
    assert isinstance(found, jax.Array) and found.dtype == "float32"
    np.testing.assert_allclose(found - before, np.diag([4.0, 0, 0]), atol=1e-5)
    with pytest.raises(NotImplementedError, match="the network has layers of functions of kernels"):
        jax.jit(lambda a: network[2](a, None, "nngp"))(x)


def test_requirements_are_checked(random):
    @stax.layer
    def NeedsPositions():
        @stax.requires(diagonal_spatial=Diagonal(input=Bool.NO), batch_axis=0, channel_axis=-1)
        def kernel_fn(k, **kwargs):
            return k

        return (lambda key, shape: (shape, ())), (lambda params, x, **kwargs: x), kernel_fn

    @stax.layer
    def NeedsPairs():
        @stax.requires(diagonal_batch=False)
        def kernel_fn(k, **kwargs):
            assert k.cov1.shape[:2] == (3, 3)
            return k

        return (lambda key, shape: (shape, ())), (lambda params, x, **kwargs: x), kernel_fn

    x = random.normal(size=(3, 4, 5, 2))
    assert stax.serial(stax.Conv(2, (2, 2)), NeedsPositions(), stax.Flatten())[2](x).nngp.shape == (3, 3)
    kernel = stax.Conv(2, (2, 2))[2](x, diagonal_spatial=True)
    with pytest.raises(ValueError, match="kernel_fn: diagonal_spatial: expected a Kernel with diagonal_spatial=False"):
        NeedsPositions()[2](kernel)
    with pytest.raises(ValueError, match="kernel_fn: channel_axis: expected 3, got a Kernel with 1"):
        NeedsPositions()[2](stax.Conv(2, (2, 2), dimension_numbers=("NCHW", "OIHW", "NCHW"))[2](x))
    assert stax.serial(stax.Dense(2), NeedsPairs())[2](x[:, 0, 0]).nngp.shape == (3, 3)
    with pytest.raises(NotImplementedError, match="arrays of inputs without a store"):
        Times(2.0)[2](x, store="folder")
    with pytest.raises(TypeError, match="kernel_fn: expected it to return a Kernel, got 3"):
        stax.layer(lambda: (lambda key, shape: (shape, ()), lambda params, x: x, lambda k: 3))()[2](x)


def test_truth_values_of_three():
    no, maybe, yes = Bool.NO, Bool.MAYBE, Bool.YES
    assert (yes & maybe) is maybe and (no & yes) is no
    assert not Diagonal() and Diagonal(yes, maybe) and not Diagonal(no, yes)
    flat, pool = Diagonal(yes, yes), Diagonal(maybe, yes)
    assert Diagonal() >> flat == Diagonal(yes, yes) and Diagonal() >> pool == Diagonal(no, yes)
    assert Diagonal(yes, maybe) >> pool == Diagonal(yes, yes) and (pool << Diagonal()) == Diagonal() >> pool
    assert flat & pool == Diagonal(maybe, yes)


def test_a_pair_layer_without_positions_has_the_derivatives_of_its_function(random):
    pytest.importorskip("jax", reason="JAX is not installed")
    x = random.normal(size=(4, 3))
    cotangent = random.normal(size=(4, 4))
    halved = layers.pair(lambda nngp, ntk, p, q: (nngp / 2, None if ntk is None else ntk / 2), leaves="as_it_was")
    scaled = widelimit.Network([layers.dense(0.5), layers.relu(), layers.dense()])
    own = widelimit.Network([layers.dense(), halved, layers.relu(), layers.dense()])
    ours = widelimit.gram_vjp(own, x, x, nngp=cotangent)
    theirs = widelimit.gram_vjp(scaled, x, x, nngp=cotangent)
    for got, right in zip(ours, theirs):
        np.testing.assert_allclose(got, right, rtol=1e-10)
