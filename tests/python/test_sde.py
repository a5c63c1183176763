"""The covariance SDE: the program's bits, shapes, and what is refused."""

import csv
import dataclasses
import json
import os
import pickle
import subprocess

import numpy as np
import pytest

import widelimit
from widelimit import sde

GAMMA_SQUARED = 0.25
V0 = sde.start(2, 1, 0.2)


@pytest.fixture
def program(tmp_path):
    """Runs a command of `widelimit sde` and gives its folder of results."""
    executable = os.environ.get("WIDELIMIT_PROGRAM")
    if not executable:
        pytest.skip("WIDELIMIT_PROGRAM, the program, is not set")

    def run(command, *flags, **config):
        (tmp_path / "config.json").write_text(json.dumps(config))
        folder = tmp_path / f"{command}{len(list(tmp_path.iterdir()))}"
        subprocess.run([executable, "sde", command, tmp_path / "config.json", "--out", folder, "--no-pictures", *flags],
                       check=True, capture_output=True)
        return folder

    return run


def table(file):
    """Columns of a CSV file by their names."""
    rows = list(csv.reader(line for line in file.read_text().splitlines() if not line.startswith("#")))
    return {name: [row[k] for row in rows[1:]] for k, name in enumerate(rows[0])}


def floats(column):
    return np.array(column, dtype=float)


def check_ensemble(found, folder):
    """Against trajectories.csv and samples.csv: path by path, a row a time."""
    written, ends = table(folder / "trajectories.csv"), table(folder / "samples.csv")
    m = found.covariances.shape[2]
    for a in range(m):
        for b in range(a, m):
            np.testing.assert_array_equal(found.covariances[:, :, a, b].T.ravel(), floats(written[f"V{a}_{b}"]))
            np.testing.assert_array_equal(found.covariances[:, :, b, a], found.covariances[:, :, a, b])
    assert ["running" if running else "stopped" for running in found.running.T.ravel()] == written["paths"]
    assert found.ends.tolist() == ends["end"]
    np.testing.assert_allclose(found.stop_times, floats(ends["stop_time"]), rtol=1e-5)
    assert found.cone_exits.tolist() == [int(count) for count in ends["cone_exits"]]


@pytest.mark.parametrize("model, config, options", [
    (sde.transformer(GAMMA_SQUARED), {"model": "transformer"}, {}),
    (sde.attention(GAMMA_SQUARED, 0.5, heads=2), {"model": "attention", "temperature": 0.5, "heads": 2}, {"upper": 5}),
    (sde.attention(GAMMA_SQUARED, mask="causal"), {"model": "attention", "mask": "causal"}, {"step_control": 0.1}),
    (sde.resnet(GAMMA_SQUARED, 0.5, -2, 4), {"model": "resnet", "c_plus": 0.5, "c_minus": -2, "hidden_ratio": 4}, {"lower": 0.05}),
    (sde.with_finite_width_drift(sde.mlp(), 100), {"model": "mlp", "finite_width_drift": 100}, {"scheme": "euler_maruyama"}),
])
def test_paths_are_those_of_the_program(program, model, config, options):
    config = {**config, "rho0": 0.2, "times": [0.25, 0.5], "paths": 40, "seed": 3, "max_step": 0.05, **options}
    if config["model"] != "mlp":
        config["gamma_squared"] = GAMMA_SQUARED
    folder = program("simulate", "--trajectories", **config)
    found = sde.simulate(model, V0, [0.25, 0.5], paths=40, seed=3, max_step=0.05, **options)
    assert found.covariances.shape == (2, 40, 2, 2)
    check_ensemble(found, folder)


@pytest.mark.parametrize("network, config, options", [
    (sde.Network("shaped_transformer", 24, 0.25, 0.8, 0.5, -1, gamma_squared_feedforward=0.1, hidden_width=48),
     {"gamma_squared": 0.25, "temperature": 0.8, "c_plus": 0.5, "gamma_squared_feedforward": 0.1, "hidden_width": 48}, {}),
    (sde.Network("shaped_attention", 24, 0.25, heads=2, key_width=6, mask="causal"),
     {"gamma_squared": 0.25, "heads": 2, "key_width": 6, "mask": "causal"}, {}),
    (sde.Network("shaped_resnet", 24, 0.25), {"gamma_squared": 0.25}, {"sampling": "explicit_weights"}),
    (sde.Network("unshaped", 24), {"gamma_squared": 1, "lambda": 1}, {"upper": 20}),
    (sde.Network("mlp", 24, c_plus=0.5), {"c_plus": 0.5}, {}),
    (sde.Network("shaped_attention", 24, 0.25, g1=0.5, g2=0), {"gamma_squared": 0.25, "g1": 0.5, "g2": 0}, {}),
    (sde.Network("unshaped_post_ln", 24, 0.5), {"gamma_squared": 0.5}, {}),
])
def test_networks_are_those_of_the_program(program, network, config, options):
    folder = program("network", "--trajectories", network=network.name, width=24, rho0=0.2, layers=[2, 6], samples=30, seed=3,
                     **config, **options)
    found = sde.sample_networks(network, V0, [2, 6], samples=30, seed=3, **options)
    np.testing.assert_allclose(found.times, [2 / 24, 6 / 24])
    check_ensemble(found, folder)


def test_comparisons_are_those_of_the_program(program):
    config = {"width": 64, "gamma_squared": 0.25, "samples": 200, "paths": 150, "seed": 2}
    printed = json.loads((program("compare", network="shaped_transformer", layers=[16, 32], rho0=0.2, **config)
                          / "compare.json").read_text())["kolmogorov_smirnov"]
    found = sde.compare(sde.Network("shaped_transformer", 64, 0.25), V0, [16, 32], samples=200, paths=150, seed=2)
    assert set(found.distances) == {"V00", "V01", "V11", "rho01"}
    for name, distance in found.distances.items():
        assert distance.distance == pytest.approx(printed[name]["distance"], abs=1e-12)
        assert distance.p_value == pytest.approx(printed[name]["p_value"], abs=1e-9)
        assert distance.p_value > 1e-4
    assert found.networks.covariances.shape == (2, 200, 2, 2) and found.limit.covariances.shape == (2, 150, 2, 2)


def test_explosions_are_those_of_the_program(program):
    printed = json.loads((program("explosion", model="attention", gamma_squared=0.25, rho0=-0.9, variance=2, times=[0.5, 1],
                                  paths=200, seed=1) / "explosion.json").read_text())
    v0, model = sde.start(2, 2, -0.9), sde.attention(0.25)
    found = sde.explosion(model, v0, [0.5, 1], paths=200, seed=1)
    for k, row in enumerate(printed["explosion"]):
        assert found.beyond_upper[k] == row["beyond_upper"]
        assert found.probability[k] == row["probability"]
        assert found.interval_95[k].tolist() == row["interval_95"]
        assert 1 - sde.gap_law(model, 1.9, row["time"]).total_mass == row["exact"]
    assert sde.explosion_probability(model, 1.9) == printed["exact_at_any_time"]


def test_laws_are_those_of_the_program(program):
    for model, config, law in ((sde.resnet(0.25), {"model": "resnet"}, lambda time: sde.correlation_law(sde.resnet(0.25), 0.2, time)),
                               (sde.attention(0.25), {"model": "attention"}, lambda time: sde.gap_law(sde.attention(0.25), 0.4, time))):
        written = table(program("law", gamma_squared=0.25, rho0=0.2, times=[0.5, 1], **config) / "law.csv")
        for k, (time, p) in enumerate(zip(floats(written["time"]), floats(written["probability"]))):
            assert law(time).quantile(p) == pytest.approx(float(written["quantile"][k]), rel=1e-11)
    one = law(0.5)
    x = one.quantile([0.2, 0.5, 0.8])
    np.testing.assert_allclose(one.cumulative(x), [0.2, 0.5, 0.8], atol=1e-8)
    step = 1e-4
    np.testing.assert_allclose(one.density(x), (one.cumulative(x + step) - one.cumulative(x - step)) / (2 * step), rtol=1e-4)


def test_late_laws_have_a_chart():
    law = sde.correlation_law(sde.resnet(0.5), 0.2, 3000)
    assert law.quantile(0.5) == 1
    assert law.chart_quantile(0.5) == pytest.approx(1500, rel=0.01)
    early = sde.gap_law(sde.attention(0.25), 0.4, 0.5)
    np.testing.assert_allclose(np.exp(early.chart_quantile([0.1, 0.9])), early.quantile([0.1, 0.9]), rtol=1e-12)


def test_coefficients_make_up_drift_and_diffusion():
    v = np.array([[1.2, 0.3, -0.1], [0.3, 0.9, 0.25], [-0.1, 0.25, 1.5]])
    for mask in ("full", "causal"):
        model, found = sde.attention(0.6, 0.8, mask), sde.coefficients(v, mask)
        np.testing.assert_allclose(model.linear_noise * found.linear + model.attention_noise * found.attention,
                                   sde.diffusion(model, v), rtol=1e-13)
        seen = np.arange(1, 4) if mask == "causal" else np.full(3, 3)
        drift = np.einsum("dw,adbw,a,b->ab", v, found.first_moment, 1 / seen, 1 / seen)
        tilt = found.second_moment @ v / (2 * seen[:, None])
        np.testing.assert_allclose(model.attention_drift * (drift + tilt + tilt.T), sde.drift(model, v), atol=1e-14)


def test_entropies_are_those_of_the_program(program):
    written = table(program("entropy", network="shaped_attention", width=16, gamma_squared=0.25, tokens=3, rho0=0.1, layers=[1, 4],
                            samples=50, seed=6) / "entropy.csv")
    found = sde.entropy(sde.Network("shaped_attention", 16, 0.25), sde.start(3, 1, 0.1), [1, 4], samples=50, seed=6)
    assert found.entropy.shape == (2, 3)
    np.testing.assert_allclose(found.entropy.ravel(), floats(written["entropy"]), rtol=1e-9)
    np.testing.assert_allclose(found.error.ravel(), floats(written["standard_error"]), rtol=1e-2)
    np.testing.assert_allclose(found.expansion.ravel(), floats(written["expansion"]), rtol=1e-9)
    written = table(program("entropy", network="unshaped_pre_ln", width=16, gamma_squared=1, **{"lambda": 1}, tokens=3, rho0=0.1,
                            layers=[1, 4], samples=50, seed=6) / "entropy.csv")
    found = sde.entropy(sde.Network("unshaped_pre_ln", 16), sde.start(3, 1, 0.1), [1, 4], samples=50, seed=6)
    np.testing.assert_allclose(found.entropy.ravel(), floats(written["entropy"]), rtol=1e-9)


def test_gradients_are_those_of_the_program(program):
    printed = json.loads((program("gradients", width=16, depth=4, rho0=0.2, samples=5, seed=2, networks=[
        {"network": "shaped_transformer", "gamma_squared": 0.25}, {"network": "unshaped_pre_ln", "gamma_squared": 0.5}])
        / "gradients.json").read_text())["networks"]
    for network, expected in zip((sde.Network("shaped_transformer", 16, 0.25), sde.Network("unshaped_pre_ln", 16, 0.5)), printed):
        told = []
        found = sde.gradients(network, V0, 4, samples=5, seed=2, progress=lambda done, total: told.append((done, total)))
        assert found.tokens.tolist() == [one["value"] for one in expected["tokens"]]
        assert found.tokens_error.tolist() == [one["standard_error"] for one in expected["tokens"]]
        assert {name: values.tolist() for name, (values, _) in found.parameters.items()} == {
            name: [one["value"] for one in layers] for name, layers in expected["parameters"].items()}
        assert told[-1] == (5, 5)


def test_stopping_times_are_those_of_the_program(program):
    printed = json.loads((program("stopping-time", network="shaped_attention", width=16, rho0=0.2, depth=40, samples=51, seed=1,
                                  gammas=[0.5, 0.9], temperatures=[0.3, 1]) / "stopping_times.json").read_text())["stopping_times"]
    found = sde.stopping_times(sde.Network("shaped_attention", 16, 0.25), V0, [40], gammas=[0.5, 0.9], temperatures=[0.3, 1],
                               samples=51, seed=1)
    assert found.shape == (2, 2, 51)
    medians = [row["quantiles"][1]["time"] for row in printed]
    np.testing.assert_allclose(np.median(found, axis=2).ravel(), medians, rtol=1e-12)


def test_flows_are_those_of_the_program(program):
    written = table(program("flow", model="transformer", gamma_squared=0.25, rho0=0.2, times=[0.1, 0.2]) / "flow.csv")
    found = sde.flow(sde.transformer(0.25), V0, [0.1, 0.2])
    assert found.shape == (2, 2, 2)
    np.testing.assert_array_equal(found[:, 0, 1], floats(written["V0_1"]))
    written = table(program("flow", flow="commuting", shortcut="variance_preserving", rho0=0.2, times=[0.5]) / "flow.csv")
    np.testing.assert_array_equal(sde.commuting_limit(V0, [0.5], "variance_preserving")[:, 0, 1], floats(written["V0_1"]))
    assert sde.commuting_limit(V0, [1])[0, 0, 0] == pytest.approx(np.e)


def test_drift_and_diffusion_are_those_of_short_paths():
    model, v0, step = sde.transformer(0.25), sde.start(3, 1, 0.3), 1e-3
    found = sde.simulate(model, v0, [step], paths=40_000, max_step=step).covariances[0]
    rows, columns = np.triu_indices(3)
    moves = (found - v0)[:, rows, columns]
    covariance = np.cov(moves.T) / step
    expected = sde.diffusion(model, v0)
    assert expected.shape == (6, 6)
    np.testing.assert_allclose(covariance, expected, atol=0.05 * abs(expected).max())
    error = np.sqrt(np.diag(expected) / step / len(moves))
    assert (abs(moves.mean(0) / step - sde.drift(model, v0)[rows, columns]) < 5 * error).all()


def test_models_and_networks_are_values():
    model, network = sde.transformer(0.25, 0.5), sde.Network("shaped_transformer", 32, 0.25, 0.5)
    assert pickle.loads(pickle.dumps(model)) == model and pickle.loads(pickle.dumps(network)) == network
    assert network.limit() == model
    assert sde.stack(sde.attention(0.25, 0.5), sde.resnet(0.25)) == model
    with pytest.raises(dataclasses.FrozenInstanceError):
        network.width = 8


NETWORK = sde.Network("shaped_resnet", 8, 0.25)


# What the program says of the field, after its place.
@pytest.mark.parametrize("call, command, config", [
    (lambda: sde.resnet(1.5), "simulate", {"model": "resnet", "gamma_squared": 1.5}),
    (lambda: sde.resnet(0.5, hidden_ratio=-1), "simulate", {"hidden_ratio": -1}),
    (lambda: sde.attention(0.5, mask="half"), "simulate", {"mask": "half"}),
    (lambda: sde.attention(0.5, heads=1.5), "simulate", {"heads": 1.5}),
    (lambda: sde.attention(0.5, "hot"), "simulate", {"temperature": "hot"}),
    (lambda: sde.start(tokens=0), "simulate", {"tokens": 0}),
    (lambda: sde.start(3, rho0=-0.9), "simulate", {"model": "mlp", "tokens": 3, "rho0": -0.9, "times": [1]}),
    (lambda: sde.simulate(sde.mlp(), V0, [1, 0.5]), "simulate", {"times": [1, 0.5]}),
    (lambda: sde.simulate(sde.mlp(), V0, []), "simulate", {"times": []}),
    (lambda: sde.simulate(sde.mlp(), V0, [1], scheme="heun"), "simulate", {"scheme": "heun"}),
    (lambda: sde.simulate(sde.mlp(), V0, [1], max_step=-0.5), "simulate", {"max_step": -0.5}),
    (lambda: sde.simulate(sde.mlp(), V0, [1], seed=-1), "simulate", {"seed": -1}),
    (lambda: sde.simulate(sde.mlp(), [[1, 2], [2, 1]], [1]), "simulate", {"model": "mlp", "V0": [[1, 2], [2, 1]], "times": [1]}),
    (lambda: sde.simulate(sde.mlp(), [[1, 0], [0, 0]], [1]), "simulate", {"model": "mlp", "V0": [[1, 0], [0, 0]], "times": [1]}),
    (lambda: sde.simulate(sde.mlp(), V0, [1], lower=3, upper=2), "simulate", {"model": "mlp", "times": [1], "lower": 3, "upper": 2}),
    (lambda: sde.simulate(sde.attention(0.25, mask="causal"), V0, [1], scheme="geometric"), "simulate",
     {"model": "attention", "gamma_squared": 0.25, "mask": "causal", "times": [1], "scheme": "geometric"}),
    (lambda: sde.explosion(sde.attention(0.25), V0, [1], upper=10), "explosion", {"upper": 10}),
    (lambda: sde.Network("shaped_lstm", 8, 0.25), "network",
     {"network": "shaped_lstm", "width": 8, "gamma_squared": 0.25, "depth": 1}),
    (lambda: sde.Network("shaped_resnet", 8.5, 0.25), "network", {"width": 8.5}),
    (lambda: sde.Network("shaped_attention", 8, 0.25, heads=3), "network",
     {"network": "shaped_attention", "width": 8, "gamma_squared": 0.25, "heads": 3, "depth": 1}),
    (lambda: sde.Network("mlp", 8, g1=0.5), "network", {"network": "mlp", "width": 8, "g1": 0.5, "depth": 1}),
    (lambda: sde.sample_networks(NETWORK, V0, [3, 2]), "network", {"layers": [3, 2]}),
    (lambda: sde.sample_networks(NETWORK, sde.start(9), [3]), "network",
     {"network": "shaped_resnet", "width": 8, "gamma_squared": 0.25, "tokens": 9, "layers": [3]}),
    (lambda: sde.gradients(NETWORK, V0, 4, samples=1), "gradients", {"samples": 1}),
    (lambda: sde.outputs(sde.simulate(sde.mlp(), V0, [0.1], paths=2), 0), "output", {"model": "mlp", "outputs": 0}),
    (lambda: sde.flow(sde.mlp(), V0, []), "flow", {"times": []}),
    (lambda: sde.commuting_limit(V0, [1], "long"), "flow", {"shortcut": "long"}),
])
def test_what_is_refused_is_said_as_the_program_says_it(call, command, config, tmp_path):
    program = os.environ.get("WIDELIMIT_PROGRAM")
    if not program:
        pytest.skip("WIDELIMIT_PROGRAM, the program, is not set")
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config))
    ran = subprocess.run([program, "sde", command, file, "--out", tmp_path / "out", "--no-pictures"], capture_output=True, text=True)
    assert ran.returncode == 1
    sentence = ran.stderr.strip().removeprefix(f"widelimit: {file}: config.")
    with pytest.raises(widelimit.ArgumentError) as error:
        call()
    function, _, said = str(error.value).partition(": ")
    assert said == sentence and function in dir(sde)


@pytest.mark.parametrize("call, error, words", [
    (lambda: sde.simulate(3, V0, [1]), TypeError, "model: expected sde.Model, got 3"),
    (lambda: sde.simulate(sde.mlp(), V0, [object()]), TypeError, "times: expected numbers, texts and lists of them, got a object"),
    (lambda: sde.simulate(sde.mlp(), V0, [1], max_step=float("nan")), ValueError, "simulate: max_step: expected a number > 0, got nan"),
    (lambda: sde.simulate(sde.mlp(), V0, [1], paths=10**30), ValueError, "simulate: paths: expected an integer from 1 to"),
    (lambda: sde.simulate(sde.mlp(), V0, [1], paths=10**400), ValueError, "simulate: paths: .* got inf"),
    (lambda: sde.simulate(sde.mlp(), V0, [1], scheme="\ud800"), TypeError, "scheme: expected text, got characters without"),
    (lambda: sde.drift(sde.Model(mask=3), V0), ValueError, "Model: mask: expected one of full, causal, got 3"),
    (lambda: sde.Network("shaped_resnet", 8), widelimit.ArgumentError, "Network: gamma_squared: expected this field, got none"),
    (lambda: sde.Network("unshaped", 8).limit(), widelimit.ArgumentError, "shaped"),
    (lambda: sde.entropy(NETWORK, V0, [2]), widelimit.ArgumentError, "attention"),
    (lambda: sde.gap_law(sde.mlp(), 0.4, 1), widelimit.ArgumentError, "attention"),
    (lambda: sde.correlation_law(sde.mlp(), 2, 1), widelimit.ArgumentError, "rho0"),
])
def test_what_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_numbers_of_every_kind_are_taken():
    expected = sde.simulate(sde.mlp(), V0, [0.25, 0.5], paths=3, max_step=0.125).covariances
    for times in (np.array([0.25, 0.5], np.float32), (0.25, np.float64(0.5)), iter([0.25, 0.5])):
        found = sde.simulate(sde.mlp(), V0.tolist(), times, paths=np.int32(3), max_step=np.float32(0.125))
        np.testing.assert_array_equal(found.covariances, expected)
    np.testing.assert_array_equal(sde.simulate(sde.mlp(), V0, [0.5], paths=3, upper=10**20, max_step=0.125).covariances[0], expected[1])
    network = sde.Network("mlp", np.int64(12))
    assert len(sde.sample_networks(network, V0, range(1, 5), samples=2).times) == 4


def test_networks_without_a_reduction_are_drawn_with_their_weights():
    for network, expected in ((sde.Network("unshaped_pre_ln", 12, 0.25), "reduced"),
                              (sde.Network("unshaped_pre_ln", 12, 0.25, heads=2), "explicit_weights"),
                              (sde.Network("unshaped_post_ln", 12, 0.25), "explicit_weights"),
                              (sde.Network("shaped_transformer", 12, 0.25, heads=6), "explicit_weights")):
        assert sde.sample_networks(network, sde.start(3), [1, 2], samples=10).sampling == expected


@pytest.mark.parametrize("of_networks", [False, True])
def test_outputs_are_those_of_the_program(of_networks, tmp_path):
    program = os.environ.get("WIDELIMIT_PROGRAM")
    if not program:
        pytest.skip("WIDELIMIT_PROGRAM, the program, is not set")
    shape = {"network": "shaped_attention", "width": 20, "layers": [5, 10], "samples": 30} if of_networks else {
        "model": "attention", "times": [0.25, 0.5], "paths": 30, "upper": 3}
    config, folder = tmp_path / "config.json", tmp_path / "results"
    config.write_text(json.dumps({**shape, "gamma_squared": 0.5, "seed": 5, "outputs": 2}))
    subprocess.run([program, "sde", "output", config, "--out", folder, "--no-pictures"], check=True, capture_output=True)
    lines = [line for line in (folder / "outputs.csv").read_text().splitlines() if not line.startswith("#")]
    rows = np.array([[float(cell) for cell in line.split(",")] for line in lines[1:]])
    if of_networks:
        ensemble = sde.sample_networks(sde.Network("shaped_attention", 20, 0.5), sde.start(), [5, 10], samples=30, seed=5)
    else:
        ensemble = sde.simulate(sde.attention(0.5), sde.start(), [0.25, 0.5], paths=30, upper=3, seed=5)
    found = sde.outputs(ensemble, 2, seed=5)
    assert np.repeat(found.paths, 2).tolist() == rows[:, 0].tolist()
    np.testing.assert_allclose(found.values.reshape(-1, 2), rows[:, 2:], rtol=1e-9)
    np.testing.assert_allclose(found.kurtosis, json.loads((folder / "output.json").read_text())["kurtosis"], rtol=1e-12)


@pytest.mark.parametrize("name", ["relu_drift", "attention_drift", "linear_noise", "attention_noise", "c_plus", "c_minus"])
def test_a_model_has_finite_coefficients_and_no_negative_noise(name):
    wrong = [np.nan, np.inf, -np.inf] + ([] if name.startswith("c_") else [-1, -5e-324])
    for value in wrong:
        with pytest.raises(widelimit.ArgumentError, match=f"Model: {name} must be"):
            sde.Model(**{name: value})
    with pytest.raises(TypeError, match=f"{name}: expected a number"):
        sde.Model(**{name: "one"})
    with pytest.raises(widelimit.ArgumentError, match="mask"):
        sde.Model(mask="half")


def test_laws_at_nan_are_nan():
    for law, x in ((sde.correlation_law(sde.resnet(0.5), 0.2, 0.3), 0.1), (sde.gap_law(sde.attention(0.125), 0.4, 0.5), 0.4)):
        for function in (law.cumulative, law.density):
            found = function(np.array([x, np.nan, np.inf]))
            assert np.isnan(found).tolist() == [False, True, False] and found[0] > 0
            assert found[2] in (0, law.total_mass)
        for p in (0, 1, np.nan, -1):
            with pytest.raises(widelimit.ArgumentError, match="p must lie"):
                law.quantile(p)


@pytest.mark.parametrize("v", [[[1, 0.5], [0, 1]], [[1, 2], [2, 1]], [[1, 0.5]], [[np.nan]], [[np.inf]]])
def test_what_is_no_covariance_is_refused(v):
    model = sde.attention(0.25)
    for call in (lambda: sde.drift(model, v), lambda: sde.diffusion(model, v), lambda: sde.coefficients(v),
                 lambda: sde.simulate(model, v, [1]), lambda: sde.flow(model, v, [1]), lambda: sde.commuting_limit(v, [1]),
                 lambda: sde.sample_networks(sde.Network("mlp", 8), v, [1])):
        with pytest.raises(widelimit.ArgumentError, match="covariance must be|V0"):
            call()


def test_outputs_have_the_covariances_of_their_networks():
    v = np.array([[2.0, 0.6], [0.6, 1.0]])
    ensemble = sde.Ensemble(np.array([1.0]), v[None, None], np.array(["horizon"]), np.array([1.0]), np.array([1.0]), np.array([0]))
    found = sde.outputs(ensemble, 200_000)
    np.testing.assert_allclose(np.cov(found.values[0].T), v, atol=0.02)
    assert found.kurtosis.tolist() == [3, 3]
    with pytest.raises(widelimit.NumericalError, match="outputs: nothing stayed"):
        sde.outputs(ensemble._replace(ends=np.array(["above"]), stop_times=np.array([0.5])))
