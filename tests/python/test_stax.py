"""The vocabulary of neural-tangents, against numbers that neural-tangents gave (tests/reference/stax)."""

import json
import pathlib
import warnings

import numpy as np
import pytest

import widelimit as nt
from parameter_trees import leaves, mapped
from stax_sources import SOURCES
from widelimit import layers, stax

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


@pytest.mark.parametrize("behind", [
    lambda block: stax.serial(stax.FanOut(2), stax.parallel(block, stax.Dense(4, W_std=0.5)), stax.FanInConcat()),
    lambda block: stax.serial(block, stax.Dense(2, parameterization="standard")),
])
def test_channels_do_not_depend_on_whether_an_elementwise_function_is_known(behind):
    """neural-tangents loses the channels after a block with a function of which it knows nothing but kernels."""
    def block(*fn, **kernel):
        return stax.serial(stax.Dense(5), stax.Elementwise(*fn, **kernel), stax.Dense(9, W_std=1.5))

    def nngp_fn(c, p, q):
        return (p * q + 2 * c * c) / 4 + c

    x = np.random.default_rng(0).normal(size=(3, 3))
    known = behind(block(lambda z: z, nngp_fn=nngp_fn))[2](x, None, ("nngp", "ntk"))
    unknown = behind(block(nngp_fn=nngp_fn))[2](x, None, ("nngp", "ntk"))
    np.testing.assert_array_equal(unknown.nngp, known.nngp)
    np.testing.assert_array_equal(unknown.ntk, known.ntk)


@pytest.mark.parametrize("layers, shape, expected", [
    ([stax.Dense(4)], (2, 3), (2, 4)),
    ([stax.Dense(4)], (-1, 3), (-1, 4)),
    ([stax.Conv(4, (3,)), stax.Flatten()], (2, 5, 3), (2, 12)),
    ([stax.Conv(4, (3,), dimension_numbers=("NCH", "OIH", "NCH")), stax.GlobalAvgPool(channel_axis=1)], (7, 3, 5), (7, 4)),
    ([stax.Dense(4, batch_axis=1, channel_axis=0)], (3, 6), (4, 6)),
    ([stax.Index(stax.Slice[1:4]), stax.Dense(2)], (6, 3), (3, 2)),
])
def test_init_fn_keeps_the_number_of_inputs(layers, shape, expected):
    assert stax.serial(*layers)[0](0, shape)[0] == expected


def test_unshared_weights_have_the_channels_that_they_are_told():
    local = stax.ConvLocal(4, (2,), padding="SAME", parameterization="standard", s=(1, 3))
    init_fn, apply_fn, kernel_fn = stax.serial(local, stax.Flatten())
    x = np.ones((2, 5, 3))
    shape, params = init_fn(0, x.shape)
    assert shape[1:] == (20,) and apply_fn(params, x).shape == kernel_fn(x, None).shape1 == (2, 20)


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
    with pytest.raises(NotImplementedError, match="get: expected nngp, ntk, cov1, cov2, .*, got 'mask1'"):
        kernel_fn(x1, None, "mask1")
    with pytest.raises(NotImplementedError, match="get: expected nngp, ntk, cov1, cov2, .*, got 'ntks'"):
        kernel_fn(x1, None, ("nngp", "NTKs"))
    mixed = kernel_fn(x1, x2, ("NTK", "nnGP"))
    assert mixed._fields == ("ntk", "nngp") and np.array_equal(kernel_fn(x1, x2, "Ntk"), mixed.ntk)


def test_unknown_keywords_are_ignored_with_one_warning(random):
    x, kernel_fn = random.normal(size=(4, 3)), mlp()[2]
    with pytest.warns(UserWarning, match="kernel_fn: trace_axis: there is no such argument, and it is ignored"):
        found = kernel_fn(x, None, "ntk", trace_axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(kernel_fn(x, None, "ntk", trace_axis=2, rng=3), found)


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


def test_layouts_may_change_behind_a_convolution(random):
    images = random.normal(size=(3, 5, 4, 2))

    def network(first, second):
        layers = (stax.Conv(8, (3, 2), padding="SAME", b_std=0.2, dimension_numbers=first), stax.Relu(),
                  stax.Conv(4, (2, 3), dimension_numbers=second), stax.Flatten(), stax.Dense(1))
        return stax.serial(*layers)[2]

    turned = network(("NHWC", "HWIO", "NCHW"), ("NCHW", "WHIO", "NHWC"))
    expected = network(None, ("NHWC", "WHIO", "NHWC"))(images, None, ("nngp", "ntk"))
    found = turned(images, None, ("nngp", "ntk"))
    np.testing.assert_array_equal(found.nngp, expected.nngp)
    np.testing.assert_array_equal(found.ntk, expected.ntk)
    assert stax.Conv(8, (3, 2), dimension_numbers=("NHWC", "HWIO", "CNHW"))[2](images).shape1 == (8, 3, 3, 3)
    with pytest.raises(NotImplementedError, match="outputs whose spatial axes come in the order"):
        stax.ConvLocal(8, (3, 2), dimension_numbers=("NHWC", "HWIO", "NWHC"))


def test_finite_networks_have_these_kernels(random):
    x = random.normal(size=(3, 4))
    init_fn, apply_fn, kernel_fn = mlp()
    shape, params = init_fn(0, (-1, 4))
    assert shape == (-1, 2) and apply_fn(params, x).shape == (3, 2)
    assert sum(leaf.size for leaf in leaves(params)) == 4 * 128 + 128 + 128 * 96 + 96 * 2
    for other in (np.array([0, 1], np.uint32), 7):
        assert not np.array_equal(init_fn(other, (-1, 4))[1][0][0], params[0][0])
    draws = nt.monte_carlo_kernel_fn(init_fn, apply_fn, 1, {200})
    means = next(draws(x, None, ("nngp", "ntk")))
    np.testing.assert_allclose(means.nngp, kernel_fn(x, None, "nngp"), atol=0.12)
    np.testing.assert_allclose(means.ntk, kernel_fn(x, None, "ntk"), atol=0.12)


def test_empirical_ntk_is_the_product_of_differences(random):
    x = random.normal(size=(2, 3))
    init_fn, apply_fn, _ = stax.serial(stax.Dense(5, b_std=0.5), stax.Erf(), stax.Dense(1))
    _, params = init_fn(3, (-1, 3))
    step, gradients = 1e-6, []
    arrays = leaves(params)
    for array in arrays:
        for place in np.ndindex(array.shape):
            sides = []
            for sign in (1, -1):
                array[place] += sign * step
                sides.append(apply_fn(params, x)[:, 0])
                array[place] -= sign * step
            gradients.append((sides[0] - sides[1]) / (2 * step))
    gradients = np.array(gradients)
    np.testing.assert_allclose(nt.empirical_ntk_fn(apply_fn)(x, None, params), gradients.T @ gradients, rtol=1e-7)


@pytest.mark.parametrize("make, message", [
    (lambda: stax.Dense(3, parameterization="mup"), "parameterization"),
    (lambda: stax.serial(stax.Dense(3), stax.Dense(3, batch_axis=1)), "batch_axis=1: expected 0"),
    (lambda: stax.serial(stax.Dense(3), stax.LayerNorm(axis=0)), r"LayerNorm: axis=.*expected the channels \(axis 1\) among the axes"),
    (lambda: stax.serial(stax.Dense(3), stax.ImageResize((-1, 5), "lanczos3")), "ImageResize: method"),
    (lambda: stax.serial(stax.Dense(3), stax.DotGeneral(rhs=np.ones(3), dimension_numbers=(((1,), (0,)), ((), ())))),
     "DotGeneral: .*other axes than the channels"),
    (lambda: stax.Conv(3, (3,), padding="FULL"), "padding"),
    (lambda: stax.serial(stax.Dense(3), stax.FanInSum()), "FanInSum: expected several inputs, got one"),
    (lambda: stax.serial(stax.FanOut(2), stax.Dense(3)), "Dense: expected one input, got 2: parallel"),
    (lambda: stax.serial(stax.FanOut(2), stax.parallel(stax.Dense(3)), stax.FanInSum()), "parallel: expected 2"),
    (lambda: stax.serial(stax.Dense(3), "Relu"), "expected a layer of widelimit.stax"),
    (lambda: stax.Dropout(0.0), "Dropout: rate"),
    (lambda: stax.GlobalSelfAttention(4, 2, 2, 2, attention_mechanism="GELU"), "attention_mechanism"),
    (lambda: stax.layer(lambda: None)(), "layer: expected <lambda> to return"),
    (lambda: nt.experimental.empirical_ntk_fn_tf(None), "TensorFlow"),
])
def test_what_is_wrong_or_missing_says_so(make, message):
    with pytest.raises((ValueError, TypeError, NotImplementedError), match=message):
        made = make()
        made[2](np.ones((2, 4)), None, "nngp")


def test_linearized_networks_are_tangents(random):
    x = random.normal(size=(3, 4))
    init_fn, apply_fn, _ = mlp()
    params = init_fn(0, (-1, 4))[1]
    shift = mapped(lambda array: 1e-4 * random.normal(size=array.shape), params)
    above, below = (mapped(lambda array, part: array + sign * part, params, shift) for sign in (1, -1))
    linear = nt.linearize(apply_fn, params)
    np.testing.assert_array_equal(linear(params, x), apply_fn(params, x))
    difference = apply_fn(above, x) - apply_fn(below, x)
    np.testing.assert_allclose(linear(above, x) - linear(below, x), difference, atol=1e-6)
    np.testing.assert_array_equal(nt.taylor_expand(apply_fn, params, 0)(above, x), apply_fn(params, x))
    vectors = random.normal(size=(3, 2))
    product = nt.empirical_ntk_vp_fn(apply_fn, x, None, params)(vectors)
    np.testing.assert_allclose(nt.empirical_ntk_vp_fn(apply_fn, x, x[:1], params)(vectors[:1]).shape, (3, 2))
    traced = nt.empirical_ntk_fn(apply_fn)(x, None, params)
    rows = [nt.empirical_ntk_vp_fn(apply_fn, x, None, params)(np.eye(3)[:, [j]] * np.eye(2)[k]) for j in range(3)
            for k in range(2)]
    whole = np.stack(rows).reshape(3, 2, 3, 2)
    np.testing.assert_allclose(np.einsum("jkik->ij", whole) / 2, traced, rtol=1e-10)
    np.testing.assert_allclose(np.einsum("jkil,jk->il", whole, vectors), product, rtol=1e-9)


def test_finite_networks_have_the_widths_that_layers_were_given():
    def count(*stax_layers, shape=(-1, 4)):
        return sum(leaf.size for leaf in leaves(stax.serial(*stax_layers)[0](0, shape)[1]))

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


def test_edges_are_adjacency_matrices(random):
    x, edges = random.normal(size=(2, 4, 3)), random.integers(0, 4, size=(2, 6, 2))
    edges[1, 4:] = -1  # Padding.
    dense = np.zeros((2, 4, 4))
    for adjacency, pairs in zip(dense, edges):
        for source, target in pairs[pairs[:, 0] >= 0]:
            adjacency[source, target] += 1

    def kernels(pattern, **options):
        layers = stax.Dense(8, b_std=0.2), stax.Relu(), stax.Aggregate(**options), stax.GlobalSumPool(), stax.Dense(1)
        return stax.serial(*layers)[2](x, None, "ntk", pattern=(pattern, pattern))

    expected = kernels(dense)
    np.testing.assert_array_equal(kernels(edges, implementation="SPARSE"), expected)
    np.testing.assert_array_equal(kernels(dense / 2, to_dense=lambda pattern: 2 * pattern), expected)
    with pytest.raises(ValueError, match=r"pattern: expected integers \[n, edges, 2\]"):
        kernels(dense, implementation="SPARSE")


def test_means_over_positions_that_count_of_unshared_weights(random):
    """Where neural-tangents divides by other numbers (docs/python.md)."""
    x = random.normal(size=(3, 6, 2))
    x[0, 4:] = x[1, 2] = 100.0
    counts = (x[..., 0] != 100.0).sum(1)
    local = stax.ConvLocal(4, (3,), padding="SAME", b_std=0.3)
    found = stax.serial(local, stax.GlobalAvgPool())[2](x, None, "nngp", mask_constant=100.0)
    positions = local[2](x, None, "nngp", mask_constant=100.0, diagonal_spatial=True)
    np.testing.assert_allclose(found, positions.sum(-1) / np.outer(counts, counts), rtol=1e-12)


def test_masks_go_around_the_border_as_values_do(random):
    x = random.normal(size=(2, 6, 2))
    x[0, 5] = 100.0
    transposed = stax.ConvTranspose(4, (3,), padding="CIRCULAR")[2](x, None, "nngp", mask_constant=100.0)
    variances = np.einsum("nnii->ni", transposed)
    np.testing.assert_array_equal(variances != 0, [[False, True, True, True, False, False], [True] * 6])


@pytest.mark.parametrize("power", [0.5, 1, 1.5, 2, 2.0])
def test_decays_of_any_power_are_network_files(power, random):
    def decay(distance):
        return np.exp(-0.3 * distance)

    attention = stax.GlobalSelfAttention(4, 2, 2, 2, pos_emb_type="SUM", pos_emb_p_norm=power, pos_emb_decay_fn=decay)
    x = random.normal(size=(4, 2, 3, 3))
    found = stax.serial(attention, stax.GlobalAvgPool())[2](x, None, "nngp")
    places = np.array([(i, j) for i in range(2) for j in range(3)], float)
    distances = (np.abs(places[:, None] - places[None]) ** power).sum(2)
    for positions in ({"kind": "matrix", "matrix": decay(distances).tolist()},
                      {"kind": "decay", "power": power, "distances": np.unique(distances).tolist(),
                       "values": decay(np.unique(distances)).tolist()}):
        network = nt.Network([layers.attention(positions=positions), layers.global_average_pool()])
        np.testing.assert_allclose(found, nt.gram(network, x).nngp, rtol=1e-10)
        network = nt.Network.from_json(network.to_json())
        np.testing.assert_allclose(found, nt.gram(network, x).nngp, rtol=1e-10)
