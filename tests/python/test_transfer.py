"""The first step of gradient descent: sizes in the limit against networks that are written here, and against sampled networks."""

import math

import numpy as np
import pytest

from widelimit import Network, layers, transfer

RNG = np.random.default_rng(0)
X = RNG.standard_normal((5, 7))
# Larger than the outputs at the start, which scatter from network to network.
Y = 5 * RNG.standard_normal(5)
MLP = Network([layers.dense(1.5), layers.relu(), layers.dense(2), layers.tanh(), layers.dense(0.8)])
BIASED = Network([layers.dense(1.2, 0.3), layers.relu(), layers.dense(2, 0.2), layers.relu(), layers.dense(1, 0.1)])


def residual(depth):
    block = layers.sum([], [layers.rms_norm(), layers.dense(1.5), layers.relu(), layers.dense()])
    return Network([layers.dense(), layers.repeat(depth, [block]), layers.dense()])


def step_of_weights(width, parametrisation, seed, rate=1e-5):
    """Mean squares of changes of both hidden preactivations and of outputs, a unit of the rate, of MLP with weights that are drawn and
    trained here: nothing of the package is used."""
    drawn = np.random.default_rng(seed)
    variances, inputs = (1.5, 2.0, 0.8), (7, width, width)
    factors = [math.sqrt(v / n) for v, n in zip(variances, inputs)]
    weights = [drawn.standard_normal((n, m)) for n, m in zip(inputs, (width, width, 1))]
    output_factor, speed = 1.0, 1.0
    if parametrisation == "mup":
        output_factor, speed = width ** -0.5, float(width)
    if parametrisation == "standard":
        weights, factors = [w * f for w, f in zip(weights, factors)], [1.0] * 3

    def forward(w):
        h1 = X @ w[0] * factors[0]
        h2 = np.maximum(h1, 0) @ w[1] * factors[1]
        return h1, h2, output_factor * (np.tanh(h2) @ w[2] * factors[2])[:, 0]

    h1, h2, f = forward(weights)
    chi = (f - Y) / len(Y)
    g2 = output_factor * factors[2] * chi[:, None] * weights[2].T * (1 - np.tanh(h2) ** 2)
    g1 = g2 @ weights[1].T * factors[1] * (h1 > 0)
    gradients = [X.T @ g1 * factors[0], np.maximum(h1, 0).T @ g2 * factors[1], np.tanh(h2).T @ chi[:, None] * output_factor * factors[2]]
    # Rates must not leave the range in which changes are proportional to them.
    rate = rate / (width if parametrisation == "standard" else 1)
    after = forward([w - rate * speed * g for w, g in zip(weights, gradients)])
    return [np.square((b - a) / rate).mean() for a, b in zip((h1, h2, f), after)]


@pytest.mark.parametrize("parametrisation", ["ntk", "standard", "mup"])
def test_sizes_are_those_of_networks_of_growing_width(parametrisation):
    for width, networks in ((64, 32), (256, 32), (1024, 12)):
        squares = np.array([step_of_weights(width, parametrisation, seed) for seed in range(networks)])
        means, deviations = squares.mean(axis=0), squares.std(axis=0, ddof=1) / math.sqrt(networks)
        step = transfer.first_step(MLP, X, Y, parametrisation, width)
        limit = np.square([*(feature.change for feature in step.features), step.output_change])
        assert [feature.layer for feature in step.features] == ["layers[0]", "layers[2]"]
        assert (np.abs(means - limit) < 4 * deviations + 8 / width * limit).all(), (width, means / limit)
        # What the limit says is seen, and not lost in the scatter.
        assert (deviations < 0.2 * limit).all()


def test_features_move_with_muP_and_stand_still_without():
    wide, wider = ({name: transfer.first_step(MLP, X, Y, name, width) for name in ("ntk", "standard", "mup")} for width in (100, 400))
    ratio = {name: wider[name].features[-1].change / wide[name].features[-1].change for name in wide}
    assert ratio["ntk"] == pytest.approx(1 / 2, rel=1e-12)
    # Outputs at the start have a share of 1 / width in the errors.
    assert ratio["mup"] == pytest.approx(1, rel=0.02)
    # Hidden weights learn by the width in the standard parametrisation: 4 / 2, but for the first layer's.
    assert ratio["standard"] == pytest.approx(2, rel=0.1)
    output = {name: wider[name].output_change / wide[name].output_change for name in wide}
    assert output["ntk"] == 1 and output["mup"] == pytest.approx(1, rel=0.02)
    assert output["standard"] == pytest.approx(4, rel=0.1)
    rates = {name: wider[name].largest_rate / wide[name].largest_rate for name in wide}
    assert rates["ntk"] == rates["mup"] == 1 and rates["standard"] == pytest.approx(1 / 4, rel=0.1)
    # At the largest rate of each, features of the standard parametrisation move like those of the NTK's: as 1 / sqrt(width).
    assert rates["standard"] * ratio["standard"] == pytest.approx(1 / 2, rel=0.1)


@pytest.mark.parametrize("parametrisation", transfer.PARAMETRISATIONS)
@pytest.mark.parametrize("network", [BIASED, residual(4)], ids=["biases", "residual"])
def test_sampled_networks_agree(network, parametrisation):
    for width in (64, 512):
        step = transfer.first_step(network, X, Y, parametrisation, width)
        sampled = transfer.sampled_step(network, X, Y, parametrisation, width, networks=16, seed=1)
        limit = np.array([feature.change for feature in step.features])
        assert (np.abs(sampled.changes - limit) < 4 * sampled.change_errors + 6 / width * limit).all(), (width, sampled.changes / limit)
        assert abs(sampled.output_change - step.output_change) < 4 * sampled.output_change_error + 6 / width * step.output_change


def test_depth_scaling_keeps_sizes_and_rates_as_depth_grows():
    def steps(name):
        return [transfer.first_step(residual(depth), X, Y, name, 256) for depth in (4, 16, 64)]

    scaled, plain = steps("depth_mup"), steps("mup")
    for ours in (lambda step: step.features[-1].change, lambda step: step.output_change, lambda step: step.largest_rate):
        values = [ours(step) for step in scaled]
        assert values[2] == pytest.approx(values[1], rel=0.05)
    assert plain[2].largest_rate < plain[1].largest_rate / 2
    # Branches of factor 1: norms grow with every block.
    assert plain[2].features[-1].size > 1.7 * plain[1].features[-1].size
    assert scaled[2].features[-1].size == pytest.approx(scaled[0].features[-1].size, rel=0.05)
    given = transfer.with_depth_scaled(residual(4)).to_json()
    assert given.count('"scale": 0.5') == 4
    assert transfer.with_depth_scaled(MLP).to_json() == MLP.to_json()


def test_the_largest_rate_is_that_of_gradient_descent_of_the_linearised_network():
    step = transfer.first_step(MLP, X, Y, "ntk")
    from widelimit import gram

    tangent = gram(MLP, X, kernels="ntk", precision="double").ntk
    modes = 1 - step.largest_rate / len(Y) * np.linalg.eigvalsh(tangent)
    assert modes.min() == pytest.approx(-1, rel=1e-10)
    # Changes are proportional to the rate.
    twice = transfer.first_step(MLP, X, Y, "ntk", rate=2)
    assert twice.output_change == pytest.approx(2 * step.output_change) and twice.largest_rate == pytest.approx(step.largest_rate)


def test_tables_have_a_row_for_each_parametrisation_width_and_depth():
    text = transfer.table(residual, X, Y, widths=(64, 256), depths=(2, 4))
    rows = text.splitlines()
    assert len(rows) == 1 + 4 * 2 * 2 and rows[0].split() == ["parametrisation", "width", "depth", "features", "outputs", "largest", "rate"]
    assert rows[-1].split()[:3] == ["depth_mup", "256", "4"]


@pytest.mark.parametrize("network, message", [
    (Network([layers.dense(), layers.relu()]), "network: expected a dense layer at the end, the readout, got relu"),
    (Network([layers.dense()]), "network: expected a layer with weights before the readout, got none"),
    (Network([layers.conv([3]), layers.relu(), layers.flatten(), layers.dense()]),
     r"layers\[0\]: expected layers that act on vectors.*conv"),
    (Network([layers.sum([], [layers.dense(), layers.relu(), layers.dropout(0.5), layers.dense()]), layers.dense()]),
     r"layers\[0\].branches\[1\].layers\[2\]: expected layers that act on vectors.*dropout"),
    (Network([layers.sum([], [layers.dense()]), layers.dense()]), "network: expected a dense layer before the first sum"),
    (Network([layers.dense(trainable="none"), layers.relu(), layers.dense()]), r"layers\[0\]: expected dense layers in the NTK"),
])
def test_networks_without_such_steps_are_refused(network, message):
    with pytest.raises(ValueError, match=message):
        transfer.first_step(network, X, Y)
    with pytest.raises(ValueError, match=message):
        transfer.sampled_step(network, X, Y)


def test_arguments_are_named():
    with pytest.raises(ValueError, match="parametrisation: expected one of ntk, standard, mup, depth_mup, got 'adam'"):
        transfer.first_step(MLP, X, Y, "adam")
    with pytest.raises(ValueError, match=r"x: expected inputs \[n, channels\] and as many targets, got shapes \(5, 7\) and \(4,\)"):
        transfer.first_step(MLP, X, Y[:4])
    with pytest.raises((ValueError, TypeError), match="width"):
        transfer.first_step(MLP, X, Y, width=0)
