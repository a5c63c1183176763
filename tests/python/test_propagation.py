"""Signal propagation: the program's bits, shapes, and what is refused."""

import dataclasses
import json
import math
import pickle

import numpy as np
import pytest

import widelimit
from program import column, program_json
from widelimit import propagation

SMALL = propagation.Parameters(tokens=8, sigma_w=2, alpha_A=0.4, alpha_M=0.3, mlp_depth=1)
OPTIONS = ["--tokens", 8, "--sigma-w", 2, "--alpha-A", 0.4, "--alpha-M", 0.3, "--mlp-depth", 1]


def estimate(found):
    return {"value": found.value, "standard_error": found.standard_error}


def test_exponents_are_those_of_the_program():
    for causal in (False, True):
        printed = program_json("propagation", "exponents", *OPTIONS, "--depth", 6, *["--causal"] * causal)
        found = propagation.exponents(SMALL, depth=6, causal=causal)
        for name in set(found._fields) - {"jacobian_q_p", "norm_growth"}:
            assert getattr(found, name) == printed[name], name
        assert found.phase == printed["phase"] and found.norm_growth == 0
        if causal:
            assert found.jacobian_q_p is None and found.mu_delta is None
        else:
            assert found.jacobian_q_p.tolist() == printed["jacobian_q_p"]


def test_scatter_of_a_width_is_that_of_the_program():
    printed = program_json("propagation", "exponents", *OPTIONS, "--depth", 6, "--width", 48)
    found = propagation.width_spread(SMALL, 48, 6)
    assert found.lambda_a == pytest.approx((printed["lambda_a_low"], printed["lambda_a_high"]), rel=1e-14)
    assert found.lambda_g == (printed["lambda_g_low"], printed["lambda_g_high"])
    for name in ("angle_variance", "gradient_variance", "limit_depth"):
        assert getattr(found, name) == printed[name]
    assert propagation.width_spread(dataclasses.replace(SMALL, alpha_A=1), 48).lambda_a is None
    with pytest.raises(widelimit.ArgumentError, match="width_spread: width: expected an integer from 2 to 1073741824, got 1"):
        propagation.width_spread(SMALL, 1)


@pytest.mark.parametrize("causal", [False, True])
def test_trajectories_are_those_of_the_program(causal):
    flags = ["--causal"] * causal
    printed = program_json("propagation", "trajectory", *OPTIONS, "--depth", 5, "--q0", 2, "--c0", 0.3, *flags)
    found = propagation.trajectory(SMALL, 5, 2, 0.3, causal)
    assert found.q.tolist() == column(printed, "q")
    assert found.cosine.tolist() == column(printed, "cosine")
    assert found.cosine_gap.tolist() == column(printed, "gap")


def test_maps_of_states_and_of_gram_matrices_agree():
    block = propagation.BlockMap(SMALL)
    state = propagation.TokenState.from_cosine(1.5, 0.2)
    gram = propagation.start_gram(8, 1.5, 0.2)
    for part in ("attention", "mlp", "block"):
        behind, matrix = getattr(block, part)(state), getattr(block, part)(gram)
        assert matrix.shape == (8, 8)
        assert behind.q == pytest.approx(matrix[0, 0], rel=1e-10)
        assert behind.p == pytest.approx(matrix[0, 1], rel=1e-9)
    one = block.block(state)
    path = block.trajectory(state, 3)
    assert (path.q[1], path.gap[1]) == (one.q, one.gap)
    assert block.trajectory(gram, 3).shape == (4, 8, 8)
    np.testing.assert_allclose(block.trajectory(gram, 3)[:, 0, 0], path.q, rtol=1e-9)
    assert block.block(gram, causal=True)[0, 0] > 0
    with pytest.raises(ValueError, match="causal: expected a Gram matrix"):
        block.block(state, causal=True)


def test_jacobians_agree_with_differences():
    block, state, step = propagation.BlockMap(SMALL), propagation.TokenState(1.5, 1.0), 1e-6
    jacobian = block.jacobian(state)
    for k in range(2):
        ends = []
        for sign in (1, -1):
            moved = list(state)
            moved[k] += sign * step
            ends.append(np.array(block.block(propagation.TokenState(*moved))))
        np.testing.assert_allclose(jacobian[:, k], (ends[0] - ends[1]) / (2 * step), rtol=1e-5)
    np.testing.assert_allclose(jacobian, block.jacobian(block.attention(state), "mlp") @ block.jacobian(state, "attention"))


def test_fixed_points_are_those_of_the_program():
    points = propagation.BlockMap(SMALL).fixed_points()
    printed = program_json("propagation", "trajectory", *OPTIONS, "--depth", 1)["fixed_points"]
    assert [(p.state.q, p.state.cosine, p.largest_eigenvalue, p.stability == "stable") for p in points] == [
        (p["q"], p["cosine"], p["largest_eigenvalue"], p["stable"]) for p in printed]
    behind = propagation.BlockMap(SMALL).block(points[0].state)
    assert behind.q == pytest.approx(points[0].state.q, rel=1e-12)


def test_phase_diagram_and_lines_are_those_of_the_program():
    axes = ["--x", "alpha_M:0.1:0.9:4", "--y", "sigma_w:0.5:4:3", "--tokens", 8, "--alpha-A", 0.4, "--mlp-depth", 1]
    printed = program_json("propagation", "phase", *axes, "--depth", 6)
    asked = []
    found = propagation.phase_diagram(SMALL, ("alpha_M", np.linspace(0.1, 0.9, 4)), ("sigma_w", np.linspace(0.5, 4, 3)),
                                      depth=6, progress=lambda done, total: asked.append((done, total)))
    assert found.lambda_a.shape == found.lambda_g.shape == (3, 4)
    np.testing.assert_allclose(found.lambda_a.ravel(), column(printed, "lambda_a"), rtol=1e-12)
    np.testing.assert_allclose(found.lambda_g.ravel(), column(printed, "lambda_g"), rtol=1e-12)
    assert asked[-1] == (3, 3)
    lines = propagation.critical_lines(SMALL, ("alpha_M", 0.1, 0.9), ("sigma_w", 0.5, 4), depth=6)
    for curves, name in ((lines.angle, "lambda_a_zero"), (lines.gradient, "lambda_g_zero")):
        assert len(curves) == len(printed[name])
        # The program's last value of an axis is rounded.
        for curve, expected in zip(curves, printed[name]):
            np.testing.assert_allclose(curve.points, expected["points"], rtol=1e-12)
        for alpha_M, sigma_w in curves[0].points[::10]:
            on_line = propagation.exponents(dataclasses.replace(SMALL, alpha_M=alpha_M, sigma_w=sigma_w), 6)
            assert abs(on_line.lambda_a if name == "lambda_a_zero" else on_line.lambda_g) < 1e-9
    assert lines.crossings.shape == (0, 2)


def test_critical_initialisations_are_those_of_the_program():
    for free, option in (("strengths_and_gain", "strengths-and-gain"), ("sigma_w", "sigma-w"), ("balanced", "balanced")):
        given = ["--tokens", 8, "--alpha-A", 0.4, "--alpha-M", 0.3, "--mlp-depth", 1, "--depth", 12]
        printed = program_json("propagation", "critical", *given, "--free", option)["critical"]
        found = propagation.critical(dataclasses.replace(SMALL, sigma_w=1), 12, free)
        assert [found.parameters.alpha_A, found.parameters.alpha_M, found.parameters.sigma_w, *found[1:]] == [
            printed[name] for name in ("alpha_A", "alpha_M", "sigma_w", "lambda_a", "lambda_g", "log_gradient_growth")]
    (value,) = propagation.critical_values("angle", "sigma_w", SMALL)
    assert propagation.exponents(dataclasses.replace(SMALL, sigma_w=value)).lambda_a == pytest.approx(0, abs=1e-12)


def test_simulations_are_those_of_the_program():
    drawn = ["--width", 16, "--networks", 4, "--seed", 7]
    options = dict(width=16, networks=4, seed=7)
    printed = program_json("propagation", "simulate", "trajectory", *OPTIONS, "--depth", 3, *drawn)
    found = propagation.simulate_trajectory(SMALL, 3, **options)
    for name in found._fields:
        assert getattr(found, name).tolist() == column(printed, name), name
    printed = program_json("propagation", "simulate", "angle", *OPTIONS, *drawn)
    assert estimate(propagation.simulate_angle(SMALL, **options)) == printed["measured"]
    printed = program_json("propagation", "simulate", "gradient", *OPTIONS, "--depth", 3, "--q0", 1.5, "--c0", 0.1, *drawn)
    found = propagation.simulate_gradient(SMALL, 3, 1.5, 0.1, **options)
    assert {name: estimate(getattr(found, name)) for name in found._fields} == {
        name: printed[name] for name in found._fields}
    printed = program_json("propagation", "simulate", "gradient", "--tokens", 8, "--depth", 3, *drawn)
    found = propagation.simulate_gradient(propagation.Parameters(tokens=8), 3, **options)
    assert estimate(found.log_of_mean) == printed["log_of_mean"]
    printed = program_json("propagation", "simulate", "groups", *OPTIONS, "--depth", 3, *drawn)
    ratio, error = propagation.simulate_groups(SMALL, 3, **options)
    assert ratio.tolist() == column(printed, "ratio") and error.tolist() == column(printed, "ratio_error")
    printed = program_json("propagation", "simulate", "histograms", *OPTIONS, "--depth", 2, *drawn)
    found = propagation.simulate_samples(SMALL, [1, 2], **options)
    np.testing.assert_allclose([samples.squared_norms.mean() for samples in found], column(printed, "q"), rtol=1e-12)
    assert found[0].squared_norms.shape == (4 * 8,) and found[0].cosines.shape == (4 * 8 * 7 // 2,)


def test_simulations_do_not_depend_on_threads():
    one, all_of_them = (propagation.simulate_trajectory(SMALL, 3, width=16, networks=4, threads=threads) for threads in (1, 0))
    for a, b in zip(one, all_of_them):
        np.testing.assert_array_equal(a, b)


def test_the_block_of_parameters_is_that_of_the_program(tmp_path):
    for parameters, options in ((SMALL, OPTIONS), (propagation.Parameters(activation="linear", sigma_out="shared", alpha_M=0),
                                                   ["--activation", "linear", "--sigma-out", "shared", "--alpha-M", 0])):
        for causal in (False, True):
            program_json("propagation", "trajectory", *options, "--block", tmp_path / "block.json", *["--causal"] * causal)
            assert parameters.block(causal) == widelimit.Network.read(tmp_path / "block.json")


def test_blocks_are_propagated_as_by_the_program(tmp_path):
    block = dataclasses.replace(SMALL, sigma_A=0.5).block()
    block.write(tmp_path / "block.json")
    printed = program_json("propagation", "network", tmp_path / "block.json", "--tokens", 4, "--depth", 2, "--q0", 1, "--c0", 0.2,
                           "--gradients", "--networks", 3, "--width", 16, "--heads", 2, "--seed", 5)
    start, told = propagation.start_gram(4, 1, 0.2), []
    found = propagation.propagate(block, start, 2, progress=lambda done, total: told.append(done == total))
    assert found.grams.shape == (3, 4, 4) and told[-1]
    np.testing.assert_array_equal(found.grams[0], start)
    for name in ("q", "q_error", "cosine", "cosine_error", "log_gradient", "log_gradient_error"):
        assert getattr(found, name).tolist() == column(printed, name), name
    known = propagation.block_exponents(block, 4, 2)
    assert known.start_norm == printed["exponents"]["start_norm"]
    for name in ("norm_growth", "lambda_a_log", "lambda_a_log_last_block", "lambda_g"):
        assert estimate(getattr(known, name)) == printed["exponents"][name], name
    assert propagation.collapsed_norm(block, 4) == pytest.approx(known.start_norm)
    check_gradients(propagation.layer_gradients(block, start, 2), printed["layer_gradients"])
    sampled = propagation.sample_block(block, start, 2, width=16, networks=3, heads=2, seed=5)
    assert sampled.tokens.q.tolist() == column(printed, "networks_q")
    assert sampled.tokens.cosine_error.tolist() == column(printed, "networks_cosine_error")
    assert np.isnan(sampled.tokens.log_gradient).all()
    check_gradients(sampled.gradients, printed["networks"]["layer_gradients"])


def check_gradients(found, printed):
    assert len(found) == len(printed) > 3
    for layer, expected in zip(found, printed):
        assert (layer.layer, layer.kind, layer.parameter) == (expected["layer"], expected["kind"], expected.get("parameter", ""))
        assert layer.gradients.tolist() == [block["value"] for block in expected["blocks"]]
        assert layer.errors.tolist() == [block["standard_error"] for block in expected["blocks"]]


def test_activations_are_measured_as_by_the_program(tmp_path, random):
    block = SMALL.block()
    block.write(tmp_path / "block.json")
    arrays = [random.normal(size=(3, 5, 7)) + shift for shift in (0.2, 1, 2)]
    for k, array in enumerate(arrays):
        np.save(tmp_path / f"layer_{k}.npy", array)
    printed = program_json("propagation", "measure", tmp_path, "--network", tmp_path / "block.json")
    found = propagation.measure(arrays, block)
    for name in ("q", "q_error", "q_spread", "largest_share", "largest_token", "cosine", "cosine_error", "product_ratio", "product_ratio_error", "norm_growth",
                 "angle_growth"):
        assert getattr(found, name).tolist() == column(printed, name), name
    assert found.theory.q.tolist() == column(printed, "theory_q")
    assert found.exponents.lambda_g.value == printed["theory_lambda_g"]
    assert (found.mean_norm_growth, found.mean_angle_growth) == (printed["norm_growth"], printed["angle_growth"])
    np.testing.assert_allclose(found.start, np.einsum("sic,sjc->ij", arrays[0], arrays[0]) / 21, rtol=1e-12)
    alone = propagation.measure([array[:1] for array in arrays])
    assert alone.theory is None and np.isnan(alone.q_error).all()
    as_tensor = propagation.measure(np.stack(arrays).astype(np.float32))
    np.testing.assert_allclose(as_tensor.q, found.q, rtol=1e-6)


def test_equal_tokens_have_no_angle(random):
    equal = np.broadcast_to(random.normal(size=(2, 1, 8)), (2, 4, 8))
    open_ = random.normal(size=(2, 4, 8))
    with pytest.warns(RuntimeWarning, match="in 2 of 4 layers 1 - cosine is below 1.6e-30, which rounding makes"):
        found = propagation.measure([open_, open_ + 3, equal, equal])
    assert np.isnan(found.angle_growth[2:]).all() and found.blocks_left_out == 2
    assert found.mean_angle_growth == found.angle_growth[1] < 0


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
def test_angles_of_a_collapsing_network_end_where_rounding_begins(random, dtype):
    weights = [random.normal(size=(64, 64)) / 8 for _ in range(80)]
    exact = tokens = random.normal(size=(1, 8, 64)).astype(dtype).astype(float)

    def block(x, weight, kind):  # attention over equal scores takes away a tenth of what differs
        x = (0.3 * x + 0.7 * x.mean(axis=1, keepdims=True)).astype(kind)
        return (x + 0.5 * np.tanh((x @ weight.astype(kind)).astype(kind))).astype(kind)

    layers, truth = [tokens.astype(dtype)], [exact]
    for weight in weights:
        layers.append(block(layers[-1], weight, dtype))
        truth.append(block(truth[-1], weight, np.longdouble))
    with pytest.warns(RuntimeWarning, match="rounding"):
        found = propagation.measure(layers)
    unit = [x / np.sqrt((x * x).sum(-1, keepdims=True)) for x in truth]
    gaps = np.array([float(((u - u.mean(1, keepdims=True))**2).sum() / 7) for u in unit])
    defined = ~np.isnan(found.angle_growth)
    assert 2 < defined.sum() < 60 and found.blocks_left_out == 81 - defined.sum()
    np.testing.assert_allclose(found.angle_growth[defined][1:], np.diff(np.log(gaps))[defined[1:]], atol=0.3)
    np.testing.assert_allclose(found.mean_angle_growth, np.diff(np.log(gaps))[defined[1:]].mean(), rtol=0.05)
    # Half-precision activations that were widened are no better for it.
    if dtype == np.float16:
        with pytest.warns(RuntimeWarning, match="rounding"):
            widened = propagation.measure([layer.astype(np.float32) for layer in layers])
        np.testing.assert_array_equal(widened.angle_growth, found.angle_growth)


def test_the_mean_cosine_is_that_of_directions(random):
    tokens = random.normal(size=(2, 8, 16)) + 1.5 * random.normal(size=16)
    unit = tokens / np.linalg.norm(tokens, axis=-1, keepdims=True)
    expected = (np.einsum("sic,sjc->s", unit, unit) - 8).mean() / 56
    longer = tokens * np.array([50, *[1] * 7])[:, None]
    for given in (tokens, longer, longer[:, ::-1], 1e3 * longer, 1e-3 * longer):
        np.testing.assert_allclose(propagation.measure([given]).cosine, expected, rtol=1e-12)
    assert propagation.measure([longer]).product_ratio[0] < expected / 2 < propagation.measure([tokens]).product_ratio[0]
    assert propagation.measure([longer]).q_spread[0] > 2 > propagation.measure([tokens]).q_spread[0]


def test_attention_is_measured_as_by_the_program(tmp_path, random):
    scores = random.normal(size=(2, 3, 4, 5, 5))
    scores[..., 4] = -np.inf
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    for k in range(3):
        np.save(tmp_path / f"layer_{k}.npy", random.normal(size=(3, 5, 7)))
    for k in range(2):
        np.save(tmp_path / f"attention_{k}.npy", weights[k])
    np.save(tmp_path / "lengths.npy", np.array([4, 4, 4]))
    printed = program_json("propagation", "measure", tmp_path, "--lengths", tmp_path / "lengths.npy")["attention"]
    found = propagation.measure_attention(weights, lengths=[4, 4, 4])
    assert found.entropy.shape == (2, 4)
    for row in printed:
        place = row["block"], row["head"]
        assert row["entropy"] == {"value": found.entropy[place], "standard_error": found.entropy_error[place]}
        assert row["first_weight"]["value"] == found.first_weight[place]
        assert row["largest_weight"]["value"] == found.largest_weight[place]
    kept = weights[..., :4, :4]
    np.testing.assert_allclose(found.entropy, -(kept * np.log(kept)).sum(-1).mean((1, 3)), rtol=1e-12)
    np.testing.assert_allclose(found.uniform, math.log(4))
    with pytest.raises(widelimit.ArgumentError, match=r"attention\[0\]: token 0 of head 0 in sequence 0: expected weights that sum"):
        propagation.measure_attention(weights, lengths=[3, 4, 4])
    np.testing.assert_allclose(propagation.measure_attention(weights.astype(np.float16), lengths=[4] * 3).entropy, found.entropy,
                               atol=3e-3)


def test_a_sink_is_named(random):
    layer = random.normal(size=(3, 10, 8))
    layer[:, 2] *= 100
    found = propagation.measure([layer])
    assert found.largest_token[0] == 2 and found.largest_share[0] > 0.99


def test_padding_is_left_out(random):
    layers = random.normal(size=(3, 2, 6, 8))
    padded = layers.copy()
    padded[:, :, 4:] = math.nan
    expected = propagation.measure(layers[:, :, :4], SMALL.block())
    for left_out in ({"lengths": [4, 4]}, {"mask": np.arange(6) < 4 * np.ones((2, 1))}):
        found = propagation.measure(padded, SMALL.block(), **left_out)
        for name in ("q", "cosine", "q_spread", "angle_growth", "start"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        np.testing.assert_array_equal(found.theory.cosine, expected.theory.cosine)
    ragged = propagation.measure(padded, lengths=[4, 3])
    assert ragged.start is None and ragged.theory is None
    with pytest.raises(ValueError, match="measure sequences of one length at a time"):
        propagation.measure(padded, SMALL.block(), lengths=[4, 3])
    for wrong in ({"lengths": [4]}, {"lengths": [4, 1]}, {"mask": np.full((2, 6), 2)}, {"mask": np.ones((2, 5), bool)},
                  {"lengths": [4, 4], "mask": np.ones((2, 6), bool)}):
        with pytest.raises(ValueError, match="expected"):
            propagation.measure(padded, **wrong)
    with pytest.raises(ValueError, match=r"layers\[0\]: expected activations \[sequences, tokens, width\], got the shape \(6, 8\)"):
        propagation.measure([layers[0, 0]])


def test_numbers_that_are_none_are_errors_or_counted():
    exponential = propagation.Parameters(sigma_w=2, activation="exp")
    for call in (propagation.exponents, lambda p: propagation.simulate_angle(p, networks=2, width=8)):
        with pytest.raises(widelimit.NumericalError, match="lower sigma_w = 2"):
            call(exponential)
    with pytest.warns(RuntimeWarning, match="no exponents at 2 of 4 points"):
        diagram = propagation.phase_diagram(exponential, ("alpha", [0.3, 0.6]), ("sigma_w", [0.5, 4]))
    assert np.isnan(diagram.lambda_a[1]).all() and np.isfinite(diagram.lambda_g[0]).all()


def test_losses_are_fitted_as_by_the_program(tmp_path, random):
    lambda_a, lambda_g = random.normal(size=(2, 12))
    loss = 0.3 + np.maximum(0.5 * abs(lambda_a), 0.8 * abs(lambda_g)) + 0.01 * random.normal(size=12)
    rows = "".join(f"{a!r},{g!r},{l!r}\n" for a, g, l in zip(lambda_a.tolist(), lambda_g.tolist(), loss.tolist()))
    (tmp_path / "losses.csv").write_text("lambda_a,lambda_g,loss\n" + rows)
    printed = program_json("propagation", "fit", tmp_path / "losses.csv", "--classes", 20, "--bootstrap", 10)
    found = propagation.fit_losses(lambda_a, lambda_g, loss, classes=20, bootstrap=10)
    for name in set(found._fields) - {"predicted"}:
        assert getattr(found, name) == printed[name], name
    assert found.predicted.tolist() == column(printed, "predicted")
    assert found.weight_g == pytest.approx(0.8, abs=0.05)


def test_parameters_are_values():
    assert pickle.loads(pickle.dumps(SMALL)) == SMALL
    with pytest.raises(dataclasses.FrozenInstanceError):
        SMALL.tokens = 9
    again = pickle.loads(pickle.dumps(propagation.BlockMap(SMALL)))
    assert again.block(propagation.TokenState(1, 0.5)) == propagation.BlockMap(SMALL).block(propagation.TokenState(1, 0.5))


@pytest.mark.parametrize("call, error, words", [
    (lambda: propagation.Parameters(tokens=1), widelimit.ArgumentError, "Parameters: tokens: expected an integer from 2 to 1000000000, got 1"),
    (lambda: propagation.Parameters(tokens=2.5), widelimit.ArgumentError, "tokens: expected an integer from 2 to 1000000000, got 2.5"),
    (lambda: propagation.Parameters(sigma_w="big"), widelimit.ArgumentError, r"sigma_w: expected a number in \[0, 1e\+06\], got \"big\""),
    (lambda: propagation.Parameters(sigma_w=math.nan), widelimit.ArgumentError, "sigma_w: expected a number in"),
    (lambda: propagation.Parameters(sigma_out="both"), widelimit.ArgumentError,
     r"sigma_out: expected unit, shared or a number in \[0, 1e\+06\], got \"both\""),
    (lambda: propagation.Parameters(activation="step"), widelimit.ArgumentError, "activation: expected one of abs, .* got \"step\""),
    (lambda: propagation.Parameters(alpha_A=0, alpha_M=0), widelimit.ArgumentError, "alpha_A: expected a strength above 0 of one branch"),
    (lambda: propagation.exponents(SMALL, causal=1), widelimit.ArgumentError, "exponents: causal: expected true or false, got 1"),
    (lambda: propagation.exponents(3), TypeError, "parameters: expected propagation.Parameters, got 3"),
    (lambda: propagation.exponents(SMALL, -1), widelimit.ArgumentError, "depth"),
    (lambda: propagation.trajectory(SMALL, 3, c0=-0.9), widelimit.ArgumentError, "cosine"),
    (lambda: propagation.phase_diagram(SMALL, ("beta", [1, 2])), ValueError, "x: expected one of alpha, .* got 'beta'"),
    (lambda: propagation.critical(SMALL, 8, "all"), widelimit.ArgumentError, "critical: free: expected one of strengths_and_gain, .* got \"all\""),
    (lambda: propagation.critical(SMALL, 8, "sigma_w", tolerance=0.2), widelimit.ArgumentError, "tolerance: has no meaning together with"),
    (lambda: propagation.exponents(propagation.Parameters(skip_A=1, skip_M=1), depth=2.5), widelimit.ArgumentError,
     "depth: expected a whole number of blocks"),
    (lambda: propagation.simulate_groups(SMALL, p_inside=0.1), widelimit.ArgumentError, "p_inside: expected p_across <= p_inside <= q0"),
    (lambda: propagation.start_gram(4, cosine=-0.9), widelimit.ArgumentError, "expected a number from -0.333333 to 1 for 4 tokens"),
    (lambda: propagation.critical_lines(SMALL, ("alpha", 0.5, 0.5)), widelimit.ArgumentError, "expected|must"),
    (lambda: propagation.simulate_gradient(SMALL, 3, c0=0.5), ValueError, "c0: expected q0 as well"),
    (lambda: propagation.simulate_trajectory(SMALL, networks=1), widelimit.ArgumentError, "networks: expected an integer from 2 to 1048576"),
    (lambda: propagation.propagate(SMALL.block(), [[1, 0], [1, 1]]), widelimit.ArgumentError, "symmetric"),
    (lambda: propagation.propagate(SMALL.block(), np.eye(2), progress=3), TypeError, "progress: expected a function"),
    (lambda: propagation.measure([]), ValueError, "layers: expected activations of one layer at least"),
    (lambda: propagation.measure([np.ones((1, 2, 3)), np.ones((1, 2, 4))]), ValueError, r"layers\[1\]: expected activations"),
    (lambda: propagation.measure([np.ones((1, 2, 3)), np.zeros((1, 2, 3))]), widelimit.ArgumentError,
     r"layers\[1\]: token 0 of sequence 0 is 0"),
    (lambda: propagation.measure([np.full((1, 2, 3), math.nan)]), widelimit.ArgumentError, r"layers\[0\]: expected finite"),
    (lambda: propagation.fit_losses([1, 2], [1], [1, 2, 3, 4]), widelimit.ArgumentError, "as many lambda_a and lambda_g"),
])
def test_what_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("options, skips", [(["--skip", 1], (1, 1)), (["--skip-A", 0.9], (0.9, None)),
                                            (["--skip-A", 2, "--skip-M", 0.5], (2, 0.5))])
def test_skip_connections_are_those_of_the_program(options, skips, tmp_path):
    parameters = propagation.Parameters(tokens=16, sigma_w=1.5, skip_A=skips[0], skip_M=skips[1])
    block = tmp_path / "block.json"
    printed = program_json("propagation", "exponents", "--tokens", 16, "--sigma-w", 1.5, "--depth", 8, "--block", block, *options)
    found = propagation.exponents(parameters, depth=8)._asdict()
    shared = [name for name in found if name in printed and name != "jacobian_q_p"]
    assert {"lambda_a", "lambda_g", "one_block_from_1"} <= set(shared)
    assert [found[name] for name in shared] == pytest.approx([printed[name] for name in shared], rel=1e-13)
    assert all(found[name] is None for name in found if name not in printed and name != "norm_growth")
    assert parameters.block().to_json() == widelimit.Network.from_json(block.read_text()).to_json()
    # The recursion of the block itself grows as the closed form says.
    if skips[0] * (skips[1] or 0) == 1:
        exact = propagation.block_exponents(parameters.block(), 16, 8, start_norm=1)
        assert exact.norm_growth.value == pytest.approx(found["norm_growth"], rel=1e-8)


def test_networks_without_a_fixed_norm_start_at_one():
    parameters = propagation.Parameters(tokens=4, skip_A=1, skip_M=1)
    assert propagation.simulate_angle(parameters, width=16, networks=4) == propagation.simulate_angle(parameters, q0=1, width=16, networks=4)
    assert propagation.simulate_gradient(parameters, 2, width=16, networks=4).log_of_mean.value > 0


def test_printed_formulas_are_those_of_the_program():
    parameters = propagation.Parameters(tokens=16, sigma_w=1.5)
    printed = program_json("propagation", "exponents", "--tokens", 16, "--sigma-w", 1.5, "--published")
    found, corrected = propagation.exponents(parameters, published=True), propagation.exponents(parameters)
    assert (found.lambda_a, found.lambda_g) == (printed["lambda_a"], printed["lambda_g"])
    assert found.lambda_a != corrected.lambda_a
    diagram = propagation.phase_diagram(parameters, ("alpha", [0.5, 0.6]), ("sigma_w", [1.5, 2]), published=True)
    assert (diagram.lambda_a[0, 0], diagram.lambda_g[0, 0]) == pytest.approx((found.lambda_a, found.lambda_g), rel=1e-12)
    (line, *_), (other, *_) = (propagation.critical_lines(parameters, published=published).angle for published in (False, True))
    assert line.points.shape != other.points.shape or abs(line.points - other.points).max() > 1e-3
    with pytest.raises(widelimit.ArgumentError, match="published: the printed formulas are for full attention"):
        propagation.exponents(parameters, published=True, causal=True)
    with pytest.raises(widelimit.ArgumentError, match="published: the printed formulas are those of a fixed point"):
        propagation.exponents(propagation.Parameters(skip_A=1, skip_M=1), published=True)


def test_blocks_that_part_equal_tokens_have_no_angles():
    def network_of(layers):
        return widelimit.Network.from_json(json.dumps({"widelimit": 1, "layers": layers}))

    skip = {"layers": []}
    attention = {"layer": "attention", "scaling": "inverse_width", "positions": {"kind": "identity", "in_values": True}}
    for layers in ([{"layer": "dense"}, {"layer": "dropout", "keep": 0.5}], [{"layer": "conv", "filter": [3]}],
                   [{"layer": "sum", "branches": [skip, {"layers": [{"layer": "rms_norm"}, attention]}]}]):
        block = network_of(layers)
        found = propagation.block_exponents(block, 6, depth=4)
        assert found.lambda_a_log is None and found.lambda_a_log_last_block is None and not found.at_fixed_point
        assert found.no_angles.startswith("equal tokens do not stay equal")
        assert propagation.collapsed_norm(block, 6) is None
        run = propagation.propagate(block, propagation.start_gram(6, cosine=1), 4)
        assert run.cosine[1] < 1
        assert found.lambda_g.value == pytest.approx(run.log_gradient[-1] / 4, abs=1e-6)
        assert propagation.measure(np.random.default_rng(0).normal(size=(2, 3, 6, 16)), block).exponents.lambda_a_log is None
    kept = propagation.block_exponents(network_of([{"layer": "dense"}, {"layer": "tanh"}]), 6)
    assert kept.no_angles is None and kept.lambda_a_log.standard_error == 0


def test_attention_is_brought_to_one_over_the_tokens_that_are_kept():
    random = np.random.default_rng(1)
    weights = random.random((3, 2, 5, 5))
    weights /= weights.sum(-1, keepdims=True)
    mask = np.ones((3, 5), int)
    mask[:, 0] = 0
    kept = weights[:, :, 1:, 1:]
    alone = propagation.measure_attention([kept / kept.sum(-1, keepdims=True)])
    for given in (mask, mask.astype(bool), mask.astype(np.uint8)):
        found = propagation.measure_attention([weights], mask=given)
        for name in ("entropy", "entropy_error", "uniform", "first_weight", "largest_weight"):
            np.testing.assert_allclose(getattr(found, name), getattr(alone, name))
        np.testing.assert_allclose(found.kept_weight[0], kept.sum(-1).mean((0, 2)))
        assert not found.rows_left_out.any()
    with pytest.raises(ValueError, match="mask: expected booleans, or integers 0 and 1, got 2"):
        propagation.measure_attention([weights], mask=2 * mask)
    with pytest.raises(TypeError, match="mask: expected an array of bool, or of integers 0 and 1"):
        propagation.measure_attention([weights], mask=mask.astype(float))
