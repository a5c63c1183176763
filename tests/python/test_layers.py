"""Functions of layers: one for every kind of network files, and wrong calls in the words of Python."""

import inspect
import json
import re

import numpy as np
import pytest

import widelimit
from widelimit import layers

# Kinds with branches or layers inside are made of lists of these.
MADE_OF_LAYERS = {"sum", "product", "concat", "repeat"}
# Fields that make a layer, of the kinds that need some.
EXAMPLES = {kind["name"]: kind["example"] for kind in json.loads(widelimit._core.layer_kinds())}


def kinds():
    with pytest.raises(widelimit.NetworkError) as found:
        layers.from_fields("no_such_kind")
    # Layers of functions of Python are made by those functions, of which files have the names.
    return [kind for kind in re.search("known are (.*)", str(found.value))[1].split(", ") if kind != "python"]


def test_there_is_a_function_for_every_kind():
    found = kinds()
    assert len(found) > 45 and {"dense", "softplus", "positions_map"} <= set(found)
    for kind in found:
        function = getattr(layers, kind)
        assert kind in layers.__all__ and len(function.__doc__) > 10
        if kind not in MADE_OF_LAYERS:
            assert function(**EXAMPLES[kind]).kind == kind


@pytest.mark.parametrize("kind", sorted(set(kinds()) - MADE_OF_LAYERS))
def test_arguments_are_the_fields_of_files(kind):
    """A field that there is not is an unknown one; one of another kind of value is not."""
    names = list(inspect.signature(getattr(layers, kind)).parameters)
    layer = getattr(layers, kind)(**EXAMPLES[kind])
    written = json.loads(widelimit.Network([layer]).to_json())["layers"][0]
    assert set(written) - {"layer", "frequencies"} <= set(names)
    for name in names:
        with pytest.raises(widelimit.NetworkError) as error:
            layers.from_fields(kind, **{name: {"neither": "this"}})
        assert "unknown field" not in str(error.value) or "neither" in str(error.value), name


def test_closed_forms_of_the_help(random):
    """Formulas of the docstrings, at a pair of positions."""
    x = random.normal(size=(2, 3))
    front = widelimit.gram(widelimit.Network([layers.dense(1.3, 0.2)]), x)
    (p, k), (_, q) = front.nngp
    t = front.ntk[0, 1]
    angle = np.arccos(k / np.sqrt(p * q))
    root = np.sqrt((1 + 2 * p) * (1 + 2 * q))
    a, b = -0.3, 0.8
    width, slope = (b - a)**2 / (2 * np.pi), (a**2 + b**2) / 2 - (b - a)**2 / (2 * np.pi) * angle
    decay, both = np.exp(-4 * (p + q) / 2) / 2, (np.exp(4 * k), np.cos(1.4) * np.exp(-4 * k))
    for layer, nngp, ntk in (
            (layers.relu(), np.sqrt(p * q) * (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / (2 * np.pi),
             t * (np.pi - angle) / (2 * np.pi)),
            (layers.ab_relu(a, b), width * np.sqrt(p * q) * np.sin(angle) + slope * k, t * slope),
            (layers.sign(), 2 / np.pi * np.arcsin(k / np.sqrt(p * q)), 0),
            (layers.erf(), 2 / np.pi * np.arcsin(2 * k / root), 4 / np.pi * t / np.sqrt(root**2 - 4 * k**2)),
            (layers.sin(1, 2, 0.7), decay * (both[0] - both[1]), None),
            (layers.cos(1, 2, 0.7), decay * (both[0] + both[1]), None),
            (layers.rbf(0.4), np.exp(-0.4 * (p + q - 2 * k)), None),
            (layers.exp(0.5, 0.6), 0.25 * np.exp(0.36 * (p + q + 2 * k) / 2),
             t * 0.36 * 0.25 * np.exp(0.36 * (p + q + 2 * k) / 2)),
            (layers.gaussian(1.5, -0.4), 2.25 / np.sqrt((1 + 0.8 * p) * (1 + 0.8 * q) - 0.64 * k**2), None),
            (layers.exp_normalized(0.7, -1), np.sqrt(p * q) * np.exp(0.7 * (k / np.sqrt(p * q) - 1)),
             t * 0.7 * np.exp(0.7 * (k / np.sqrt(p * q) - 1))),
            (layers.matern(0.5, 0.7), np.exp(-np.sqrt(p + q - 2 * k) / 0.7), 0),
            (layers.matern(1.5, 2.0), (1 + np.sqrt(3 * (p + q - 2 * k)) / 2) * np.exp(-np.sqrt(3 * (p + q - 2 * k)) / 2), 0),
            (layers.identity(), k, t)):
        found = widelimit.gram(widelimit.Network([layers.dense(1.3, 0.2), layer]), x)
        np.testing.assert_allclose(found.nngp[0, 1], nngp, rtol=1e-12, err_msg=layer.kind)
        if ntk is not None:
            np.testing.assert_allclose(found.ntk[0, 1], ntk, rtol=1e-12, atol=1e-15, err_msg=layer.kind)


def test_the_standard_parametrisation(random):
    x = random.normal(size=(3, 4))
    front = widelimit.gram(widelimit.Network([layers.dense(1.5)]), x)
    found = widelimit.gram(widelimit.Network([layers.dense(1.5), layers.dense(
        2, 0.1, parametrisation="standard", input_width=64, width_scale=2)]), x)
    np.testing.assert_allclose(found.ntk, 32 * front.nngp + 1 + 2 * front.ntk, rtol=1e-12)


def test_maps_of_positions(random):
    x, matrix = random.normal(size=(2, 5, 3)), random.normal(size=(4, 5))
    found = widelimit.position_covariances(widelimit.Network([layers.dense(), layers.positions_map(matrix)]), x).nngp
    before = widelimit.position_covariances(widelimit.Network([layers.dense()]), x).nngp
    np.testing.assert_allclose(found, np.einsum("ai,nmij,bj->nmab", matrix, before, matrix), rtol=1e-12)
    for layer, chosen in ((layers.slice([1], [5], [2]), [1, 3]), (layers.slice(begin=[-2]), [3, 4])):
        part = widelimit.position_covariances(widelimit.Network([layers.dense(), layer]), x).nngp
        np.testing.assert_allclose(part, before[:, :, chosen][..., chosen], rtol=1e-12)
    one = widelimit.gram(widelimit.Network([layers.dense(), layers.index(0, -1)]), x).nngp
    np.testing.assert_allclose(one, before[:, :, 4, 4], rtol=1e-12)


def of_file(*described):
    return widelimit.Network.from_json(json.dumps({"widelimit": 1, "layers": described})).layers


GATED = [{"layer": "product", "branches": [{"layers": [{"layer": "dense", "weight_variance": 2}, {"layer": "silu"}]},
                                           {"layers": [{"layer": "dense"}]}]}, {"layer": "dense"}]


def test_gated_layers_are_those_of_files():
    assert layers.gated_mlp() == of_file(*GATED)
    product, output = layers.gated_mlp(layers.gelu(), 1.5, 0.1, 0.8, 0.7)
    assert output == layers.dense(0.7)
    assert product == layers.product([layers.dense(1.5, 0.1), layers.gelu()], [layers.dense(0.8)])


def test_blocks_of_decoders_are_those_of_files_and_of_the_named_network():
    attention = {"layer": "attention", "scaling": "inverse_width", "causal": True, "rotary": {"base": 10000, "pairs": 4}}
    skip = {"scale": 0.8, "layers": []}
    assert layers.decoder_block(skip_scale=0.8, attention_scale=0.5, mlp_scale=0.6) == of_file(
        {"layer": "sum", "branches": [skip, {"scale": 0.5, "layers": [{"layer": "rms_norm"}, attention]}]},
        {"layer": "sum", "branches": [skip, {"scale": 0.6, "layers": [{"layer": "rms_norm"}, *GATED]}]})
    named = widelimit.Network.named("decoder", {"depth": 2}).layers
    assert layers.repeat(2, layers.decoder_block()) in named


def test_blocks_of_transformers_are_those_of_files():
    attention = {"layer": "attention", "scaling": "inverse_width", "query_key_std": 1.2}
    dense = [{"layer": "layer_norm"}, {"layer": "dense", "weight_variance": 1.7, "bias_variance": 0.3}, {"layer": "erf"},
             {"layer": "dense", "weight_variance": 0.9}]
    assert layers.transformer_block(layers.attention(query_key_std=1.2), layers.erf(), 1.7, 0.3, 0.9, 0.8, 0.6, 0.5) == of_file(
        {"layer": "sum", "branches": [{"scale": 0.8, "layers": []}, {"scale": 0.6, "layers": [{"layer": "layer_norm"}, attention]}]},
        {"layer": "sum", "branches": [{"scale": 0.8, "layers": []}, {"scale": 0.5, "layers": dense}]})


def test_cross_attention_is_that_of_files():
    mask = [[True, True, False, False]] * 4
    assert layers.cross_attention(2, 4, query_key_std=0.7) == of_file(
        {"layer": "attention", "scaling": "inverse_width", "query_key_std": 0.7, "mask": mask}, {"layer": "slice", "begin": [2]})


@pytest.mark.parametrize("call, error, message", [
    (lambda: layers.cross_attention(0, 4), widelimit.ArgumentError, "cross_attention: sources must be at least 1, got 0"),
    (lambda: layers.cross_attention(4, 4), widelimit.ArgumentError, "longest must be in 5..65536"),
    (lambda: layers.cross_attention(2, 4, causal=True), widelimit.ArgumentError, "without masks, windows or causality.*got causal"),
    (lambda: layers.decoder_block(mlp=layers.dense()), TypeError, "decoder_block: mlp: expected a list of layers"),
    (lambda: layers.sum([[layers.relu()], [layers.dense()]]), TypeError,
     r"sum: expected branches as arguments, as in sum\(.*got one list of 2 branches; write sum\(\*branches\)"),
    (lambda: layers.product([[layers.relu()]]), TypeError, "product: expected branches as arguments"),
    (lambda: layers.sum(layers.relu()), TypeError, r"sum: branch 0: expected a list of layers, got a Layer; .*\[layer\]"),
    (lambda: layers.sum([], 3), TypeError, "sum: branch 1: expected a list of layers, got 3"),
    (lambda: layers.sum([layers.relu]), TypeError, r"sum: branch 0\[0\]: expected a Layer, got the function relu; call it"),
    (lambda: layers.sum(("a", [])), TypeError, "sum: branch 0: scale: expected a number, got 'a'"),
    (lambda: layers.sum([], widelimit.Network([layers.relu()])), TypeError, "branch 1: .*got a Network; write network.layers"),
    (lambda: layers.concat([layers.dense()], [layers.dense()]), TypeError, r"concat: branch 0: expected \(share, list of layers\)"),
    (lambda: layers.concat((0.5, layers.dense()), (0.5, [])), TypeError, "concat: branch 0: expected a list of layers, got a Layer"),
    (lambda: layers.concat_positions([layers.dense()], [layers.dense()]), TypeError, "concat_positions: axis: expected an integer"),
    (lambda: layers.repeat([layers.relu()], 3), TypeError, "repeat: layers: expected a list of layers, got 3"),
    (lambda: layers.repeat(2, layers.relu()), TypeError, "repeat: layers: expected a list of layers, got a Layer"),
    (lambda: layers.conv(3), TypeError, r"conv: filter: expected a list of integers, .*got 3; write \[3\] for sequences, \[3, 3\]"),
    (lambda: layers.average_pool(2), TypeError, "average_pool: window: expected a list of integers"),
    (lambda: layers.conv([3.5]), widelimit.NetworkError, r"^conv: filter: expected a list of integers, got \[3.5\]"),
    (lambda: layers.dense("a"), widelimit.NetworkError, '^dense: weight_variance: expected a number, got "a"'),
    (lambda: layers.dense(-1), widelimit.NetworkError, "^dense"),
    (lambda: layers.layer_norm("channels"), TypeError, r"layer_norm: axes: expected a list such as \['channels', 'space'\]"),
    (lambda: layers.polynomial(2), TypeError, "polynomial: coefficients: expected a list of numbers, got 2"),
    (lambda: layers.positions_map(), TypeError, "positions_map: expected matrix, or matrices, got neither"),
    (lambda: layers.positions_map([1, 2]), TypeError, r"positions_map: matrix: expected a matrix \[out, in\]"),
    (lambda: widelimit.Network(layers.dense()), TypeError, r"Network: layers: expected a list of layers, got a Layer; .*\[layer\]"),
    (lambda: widelimit.Network([layers.relu]), TypeError, r"Network: layers\[0\]: expected a Layer, got the function relu; call it"),
    (lambda: widelimit.Network([layers.dense(), [layers.relu()]]), TypeError, r"Network: layers\[1\]: expected a Layer, got a list"),
    (lambda: widelimit.Network(3), TypeError, "Network: layers: expected a list of layers, got an int"),
    (lambda: widelimit.gram([layers.dense()], np.eye(2)), TypeError, r"network: expected a widelimit.Network, got a list; write Network\("),
    (lambda: widelimit.gram(widelimit.stax.Dense(3), np.eye(2)), TypeError, "network: .*got a layer of widelimit.stax, whose kernel_fn"),
    (lambda: widelimit.explain(3, (), 2), TypeError, "network: expected a widelimit.Network, got 3"),
    (lambda: widelimit.FiniteNetwork([layers.dense()], (), 2), TypeError, "network: expected a widelimit.Network, got a list"),
    (lambda: widelimit.Model.fit(np.eye(3), widelimit.Network([layers.dense()]), [1, 2, 3]), TypeError,
     "network: expected a widelimit.Network, got a numpy.ndarray; arguments are network, x, y"),
    (lambda: widelimit.check_limit(layers.relu()), TypeError, r"network: expected a widelimit.Network, got a Layer; write Network\(\["),
])
def test_wrong_calls_say_what_to_write(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_factors_may_end_in_nonlinearities_behind_weights_of_their_own():
    # Second moments of independent factors multiply, whatever their means.
    one, other = [layers.dense(2, 0.1), layers.relu()], [layers.dense(1.5, 0.2), layers.erf()]
    x = np.random.default_rng(3).normal(size=(5, 4))
    found = widelimit.gram(widelimit.Network([layers.product((1, one), (0.5, other))]), x)
    first, second = (widelimit.gram(widelimit.Network(factor), x) for factor in (one, other))
    np.testing.assert_allclose(found.nngp, 0.25 * first.nngp * second.nngp, rtol=1e-12)
    np.testing.assert_allclose(found.ntk, 0.25 * (first.ntk * second.nngp + first.nngp * second.ntk), rtol=1e-12)
    behind = widelimit.Network([layers.dense(), layers.relu(), layers.product((1, one), (0.5, other)), layers.dense(1, 0.1)])
    passed, table = widelimit.check_limit(behind, widths=(32, 64, 128), draws=48, shapes=((),))
    assert passed, table
    # The mean of such a product is not 0: it may be one summand of a sum, and a nonlinearity wants weights behind it.
    widelimit.Network([layers.sum((1, [layers.product((1, one), (1, other))]), (1, [layers.dense()])), layers.dense()])
    with pytest.raises(widelimit.NetworkError, match="branches 0 and 1"):
        layers_of_two = [layers.product((1, one), (1, other))]
        widelimit.gram(widelimit.Network([layers.sum((1, layers_of_two), (1, layers_of_two))]), x)
    with pytest.raises(widelimit.NetworkError, match="weights of their own"):
        widelimit.gram(widelimit.Network([layers.product((1, []), (1, []))]), x)
