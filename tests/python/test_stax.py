"""The vocabulary of neural-tangents, against numbers that neural-tangents gave (tests/reference/stax)."""

import json
import pathlib

import numpy as np
import pytest

import widelimit as nt
from stax_sources import SOURCES
from widelimit import stax

REFERENCE = pathlib.Path(__file__).parent.parent / "reference" / "stax"
TOLERANCES = {case["case"]: case["tolerance"] for case in json.loads((REFERENCE / "index.json").read_text())}


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_kernels_are_those_of_neural_tangents(name):
    def load(part):
        file = REFERENCE / name / f"{part}.npy"
        return np.load(file) if file.exists() else None

    mask_constant = 100.0 if name.startswith("mask-") else None
    kernels = SOURCES[name]()[2](load("x1"), load("x2"), ("nngp", "ntk"), mask_constant=mask_constant)
    for kernel in ("nngp", "ntk"):
        expected = load(kernel)
        if expected is not None:
            error = np.linalg.norm(getattr(kernels, kernel) - expected) / np.linalg.norm(expected)
            assert error <= TOLERANCES[name], kernel


def test_every_reference_case_has_a_source():
    assert set(SOURCES) == set(TOLERANCES)


def mlp():
    return stax.serial(stax.Dense(128, W_std=1.5, b_std=0.1), stax.Relu(), stax.Dense(96), stax.Erf(), stax.Dense(2))


def test_what_get_gives(random):
    x1, x2 = random.normal(size=(4, 3)), random.normal(size=(2, 3))
    kernel_fn = mlp()[2]
    both = kernel_fn(x1, x2, ("ntk", "nngp"))
    assert both._fields == ("ntk", "nngp")
    np.testing.assert_array_equal(both.ntk, kernel_fn(x1, x2, "ntk"))
    whole = kernel_fn(x1, x2)
    np.testing.assert_array_equal(whole.nngp, both.nngp)
    np.testing.assert_allclose(whole.cov1, np.diag(kernel_fn(x1, None, "nngp")))
    np.testing.assert_allclose(whole.cov2, np.diag(kernel_fn(x2, None, "nngp")))
    assert whole.shape1 == (4, 2) and whole.shape2 == (2, 2) and not whole.x1_is_x2
    assert kernel_fn(x1).cov2 is None
    assert nt.batch(kernel_fn, 2)(x1, None, "ntk").shape == (4, 4)
    with pytest.raises(NotImplementedError, match="get: expected nngp, ntk, cov1, cov2, got 'kernel'"):
        kernel_fn(x1, None, "kernel")
    with pytest.raises(TypeError, match="unknown arguments"):
        kernel_fn(x1, None, "ntk", trace_axis=1)


def test_channels_may_come_first(random):
    images = random.normal(size=(3, 2, 5, 4))

    def network(**layout):
        axis = {"channel_axis": 1} if layout else {}
        return stax.serial(stax.Conv(8, (3, 3), padding="SAME", **layout),
                           stax.LayerNorm(1 if axis else -1, **axis), stax.Relu(), stax.AvgPool((2, 2), **axis),
                           stax.GlobalAvgPool(**axis), stax.Dense(1))[2]

    first = network(dimension_numbers=("NCHW", "OIHW", "NCHW"))(images, None, "ntk")
    last = network()(np.moveaxis(images, 1, -1), None, "ntk")
    np.testing.assert_array_equal(first, last)


def test_finite_networks_have_these_kernels(random):
    x = random.normal(size=(3, 4))
    init_fn, apply_fn, kernel_fn = mlp()
    shape, params = init_fn(0, (-1, 4))
    assert shape == (-1, 2) and apply_fn(params, x).shape == (3, 2)
    assert params[0].size == 4 * 128 + 128 + 128 * 96 + 96 * 2
    for other in (np.array([0, 1], np.uint32), 7):
        assert not np.array_equal(init_fn(other, (-1, 4))[1][0], params[0])
    draws = nt.monte_carlo_kernel_fn(init_fn, apply_fn, 1, {200})
    means = next(draws(x, None, ("nngp", "ntk")))
    np.testing.assert_allclose(means.nngp, kernel_fn(x, None, "nngp"), atol=0.12)
    np.testing.assert_allclose(means.ntk, kernel_fn(x, None, "ntk"), atol=0.12)


def test_empirical_ntk_is_the_product_of_differences(random):
    x = random.normal(size=(2, 3))
    init_fn, apply_fn, _ = stax.serial(stax.Dense(5, b_std=0.5), stax.Erf(), stax.Dense(1))
    _, params = init_fn(3, (-1, 3))
    step, gradients = 1e-6, []
    for k in range(params[0].size):
        above, below = params[0].copy(), params[0].copy()
        above[k] += step
        below[k] -= step
        gradients.append((apply_fn([above], x) - apply_fn([below], x))[:, 0] / (2 * step))
    gradients = np.array(gradients)
    np.testing.assert_allclose(nt.empirical_ntk_fn(apply_fn)(x, None, params), gradients.T @ gradients, rtol=1e-7)


@pytest.mark.parametrize("make, message", [
    (lambda: stax.Dense(3, parameterization="mup"), "parameterization"),
    (lambda: stax.Dense(3, batch_axis=1), "batch_axis"),
    (lambda: stax.Conv(3, (3,), padding="FULL"), "padding"),
    (lambda: stax.serial(stax.Dense(3), stax.FanInSum()), "FanInSum: expected branches"),
    (lambda: stax.serial(stax.FanOut(2), stax.Dense(3)), "Dense: expected one input, got the branches of FanOut"),
    (lambda: stax.serial(stax.FanOut(2), stax.parallel(stax.Dense(3)), stax.FanInSum()), "parallel: expected 2"),
    (lambda: stax.serial(stax.Dense(3), "Relu"), "expected a layer of widelimit.stax"),
    (lambda: stax.Dropout(0.0), "Dropout: rate"),
    (lambda: stax.GlobalSelfAttention(4, 2, 2, 2, attention_mechanism="GELU"), "attention_mechanism"),
    (lambda: stax.layer(lambda: None), "elementwise"),
])
def test_what_is_wrong_or_missing_says_so(make, message):
    with pytest.raises((ValueError, TypeError, NotImplementedError), match=message):
        made = make()
        made[2](np.ones((2, 4)), None, "nngp")


def test_every_public_name_of_neural_tangents_is_here():
    names = """ABRelu Abs Aggregate AvgPool Conv ConvLocal ConvTranspose Cos Dense DotGeneral Dropout Elementwise
        ElementwiseNumerical Erf Exp ExpNormalized FanInConcat FanInProd FanInSum FanOut Flatten Gabor Gaussian Gelu
        GlobalAvgPool GlobalSelfAttention GlobalSumPool Hermite Identity ImageResize Index LayerNorm LeakyRelu Monomial
        Polynomial Rbf RectifiedMonomial Relu Sigmoid_like Sign Sin Slice SumPool layer parallel repeat requires serial
        supports_masking unmask_fn""".split()
    assert [name for name in names if not hasattr(stax, name)] == []
    functions = """batch empirical_kernel_fn empirical_nngp_fn empirical_ntk_fn linearize monte_carlo_kernel_fn
        taylor_expand""".split()
    assert [name for name in functions if not hasattr(nt, name)] == []


def test_finite_networks_have_the_widths_that_layers_were_given():
    def count(*stax_layers, shape=(-1, 4)):
        return stax.serial(*stax_layers)[0](0, shape)[1][0].size

    def branches(*inner):
        return stax.FanOut(len(inner)), stax.parallel(*inner), stax.FanInSum()

    two = stax.serial(stax.Dense(7), stax.Relu(), stax.Dense(5))
    assert count(two, *branches(two, stax.serial(stax.Dense(9), stax.Relu(), stax.Dense(5))), stax.Dense(3)) == (
        4 * 7 + 7 * 5 + 5 * 7 + 7 * 5 + 5 * 9 + 9 * 5 + 5 * 3)
    assert count(two, *branches(stax.Identity(), two), stax.Dense(3)) == 4 * 7 + 7 * 5 + 5 * 7 + 7 * 5 + 5 * 3
    assert count(two, *branches(stax.Identity(), two)) == 4 * 7 + 7 * 5 + 5 * 7 + 7 * 5
    concat = stax.FanOut(2), stax.parallel(stax.Dense(6), stax.Dense(2)), stax.FanInConcat()
    assert count(*concat, stax.Dense(3)) == 4 * 6 + 4 * 2 + 8 * 3
    assert count(stax.repeat(stax.serial(stax.Dense(6), stax.Relu()), 3), stax.Dense(1)) == 4 * 6 + 6 * 6 * 2 + 6
    assert count(stax.Conv(8, (3,), padding="SAME"), stax.Relu(), stax.Conv(6, (2,)), stax.Flatten(), stax.Dense(2),
                 shape=(-1, 5, 3)) == 3 * 3 * 8 + 8 * 2 * 6 + 4 * 6 * 2
    assert count(stax.Conv(8, (3,), padding="SAME"), stax.Flatten(), shape=(-1, 5, 3)) == 3 * 3 * 8
