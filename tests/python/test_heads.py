"""Head specialisation: the program's bits, shapes, and what is refused."""

import json
import os
import pickle
import subprocess

import numpy as np
import pytest

import widelimit
from program import column, program_file
from widelimit import heads

SPIKES = {"kind": "spikes", "features": 2, "nu": 10}
PRIOR = heads.Prior.spikes(2, 10)
FLIP = heads.Prior.flip2(10, 10)
IMAGES = heads.ImageTask(np.ones((2, 3)), [0, 1])


def experiment(tmp_path, name, **fields):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"prior": SPIKES, **fields}))
    return program_file(tmp_path, "heads", name, config)


def path_row(path, k):
    """A row of the program's tables."""
    return [path.tau[k], path.loss[k], *path.m[k].ravel(), *path.S[k].ravel(), *path.b[k], *path.v[k]]


@pytest.mark.parametrize("more", [{}, {"tau": 3, "records": 6}, {"stepper": "runge_kutta4", "tau": 2, "symmetry": "closed"}])
def test_flows_are_those_of_the_program(tmp_path, more):
    fields = {"activation": "softmax1", "tokens": 3, "heads": 2, "step": 0.5, "starts": 2, "samples": 2000,
              "fresh_samples": 3000, "stop_gradient": 0.05, **more}
    printed = experiment(tmp_path, "flow", **fields)
    found = heads.flow(fields.pop("activation"), PRIOR, fields.pop("tokens"), fields.pop("heads"), **fields)
    assert len(found) == 2
    rows = [[k, *path_row(one.path, i)] for k, one in enumerate(found) for i in range(len(one.path.tau))]
    assert rows == printed["rows"]
    for one, expected in zip(found, printed["starts"]):
        assert (one.seed, one.loss, one.standard_error, one.converged) == (
            expected["seed"], expected["loss"], expected["loss_standard_error"], expected["converged"])
    path = found[0].path
    assert path.m.shape[1:] == path.r.shape[1:] == (2, 2) and path.v.shape[1] == 1
    np.testing.assert_allclose(path.r @ path.r.transpose(0, 2, 1), path.S, atol=1e-12)


def test_a_flow_goes_on_where_one_ended():
    options = dict(step=0.5, samples=2000, fresh_samples=2000, stop_gradient=0)
    (whole,) = heads.flow("softmax", PRIOR, 3, 2, tau=4, **options)
    (half,) = heads.flow("softmax", PRIOR, 3, 2, tau=2, **options)
    (rest,) = heads.flow("softmax", PRIOR, 3, 2, tau=2, start=half.path.end, **options)
    np.testing.assert_allclose(rest.path.m[-1], whole.path.m[-1], rtol=1e-12)


def test_pruning_is_that_of_the_program(tmp_path):
    fields = {"activation": "bayes", "tokens": 3, "heads": 3, "step": 0.5, "starts": 1, "samples": 2000, "fresh_samples": 3000,
              "tau": 4}
    printed = experiment(tmp_path, "prune", **fields)
    (trained,) = heads.flow("bayes", PRIOR, 3, 3, tau=4, step=0.5, samples=2000, fresh_samples=3000)
    found = heads.prune("bayes", trained.path.end, PRIOR, 3, fresh_samples=3000)
    assert found.losses.tolist() == column(printed, "loss")
    assert found.removed == column(printed, "head")[1:]
    judged = heads.judge("bayes", trained.path.end, PRIOR, 3, fresh_samples=3000)
    assert judged.loss == (trained.loss, trained.standard_error)
    assert judged.gradient.m.shape == (3, 2)
    assert judged.relevant + judged.other == pytest.approx(1)
    assert judged.loss.value >= heads.bayes_risk(PRIOR, 3, 20_000).value - 0.02


def test_sgd_is_that_of_the_program(tmp_path):
    for more in ({}, {"form": "vector", "batch": 20, "planted_m": [[1, 0.5], [0, 1]]}):
        fields = {"activation": "softmaxv", "tokens": 3, "heads": 2, "dimension": 40, "tau": 1, "records": 5, "gamma": 0.05,
                  "seed": 3, **more}
        printed = experiment(tmp_path, "sgd", **fields)
        del fields["activation"]
        path = heads.sgd("softmaxv", PRIOR, **fields)
        assert [path_row(path, k) for k in range(len(path.tau))] == printed["rows"]
        assert path.p.shape[1:] == path.q.shape[1:] == (2, 2)


def test_comparisons_are_those_of_the_program(tmp_path):
    fields = {"tokens": 3, "heads": 2, "dimension": 200, "tau": 1, "records": 5, "gamma": 0.1, "samples": 1000}
    printed = experiment(tmp_path, "compare", activation="softmax", **fields)
    found = heads.compare("softmax", PRIOR, **fields)
    assert found.sgd.loss.tolist() == column(printed, "loss_sgd")
    assert found.flow.loss.tolist() == column(printed, "loss_flow")
    assert found.flow.m[:, 0, 1].tolist() == column(printed, "m_flow_01")
    assert found.largest_difference_m == printed["largest_difference_m"]
    assert found.largest_difference_S == printed["largest_difference_S"]


def test_times_are_those_of_the_program(tmp_path):
    fields = {"tokens": 3, "heads": 2, "dimension": 1000, "etas": [1, 0.1], "tau": 30, "samples": 2000, "step": 0.5, "delta": 0.5}
    printed = experiment(tmp_path, "phase-transition", activation="softmax", **fields)
    told = []
    found = heads.specialisation_times("softmax", PRIOR, **fields, progress=lambda done, total: told.append((done, total)))
    assert found.times.shape == found.ends.shape == (2, 2) and told[-1] == (4, 4)
    expected = np.array(column(printed, "specialisation_time"), dtype=float)
    np.testing.assert_array_equal(found.times.ravel(), expected)
    assert {end: int((found.ends == end).sum()) for end in ("specialised", "rest", "tau")} == printed["ends"]
    np.testing.assert_allclose(np.repeat(found.log_scale, 2), column(printed, "log_scale"), rtol=1e-14)
    printed = experiment(tmp_path, "feature-times", activation="softmax", **fields)
    found = heads.specialisation_times("softmax", PRIOR, **fields, features=True)
    assert found.times.shape == (2, 2, 2)
    np.testing.assert_array_equal(found.times[..., 1].ravel(), np.array(column(printed, "feature_time_1"), dtype=float))


def test_times_of_sgd_are_those_of_the_program(tmp_path):
    fields = {"tokens": 3, "heads": 2, "dimension": 60, "etas": [0.5, 0.1], "tau": 50, "gamma": 0.25, "batch": 120, "starts": 3,
              "dynamics": "sgd", "seed": 3}
    printed = experiment(tmp_path, "phase-transition", activation="bayes", **fields)
    found = heads.specialisation_times("bayes", PRIOR, **fields)
    expected = np.array(column(printed, "specialisation_time"), dtype=float).reshape(2, 3)
    assert not np.isnan(expected).any()
    np.testing.assert_array_equal(found.times, expected)
    assert (found.ends == "specialised").all()
    for k, row in enumerate(printed["times"]):
        assert (found.mean[k], found.variance[k]) == pytest.approx((row["mean"], row["variance"]), rel=1e-12)
    assert found.slope == pytest.approx(printed["slope"], rel=1e-10)


def test_slopes_leave_out_what_was_not_reached():
    times = np.array([[1.0, 2.0], [3.0, 5.0], [np.nan, 4.0]])
    found = heads.SpecialisationTimes(np.array([1.0, 2.0, 3.0]), times, np.full((3, 2), "tau"))
    assert found.slope == pytest.approx(2.5) and np.isnan(found.mean).tolist() == [False, False, True]
    assert np.isnan(heads.SpecialisationTimes(np.array([1.0]), times[:1], np.full((1, 2), "tau")).slope)
    by_feature = found._replace(times=np.stack([times, 2 * times], axis=2))
    np.testing.assert_allclose(by_feature.slope, [2.5, 5])


def test_resampling_is_that_of_the_program(tmp_path):
    fields = {"activation": "softmax1", "tokens": 3, "heads": 2, "tau": 2, "step": 0.5, "samples": 500, "records": 4, "starts": 2,
              "seed": 3}
    printed = experiment(tmp_path, "resampling", **fields)
    found = heads.resampling(fields.pop("activation"), PRIOR, **fields)
    rows = [[k, one.kept.tau[i], one.kept.loss[i], one.fresh.loss[i], *one.kept.m[i].ravel(), *one.fresh.m[i].ravel()]
            for k, one in enumerate(found) for i in range(len(one.kept.tau))]
    assert rows == printed["rows"]
    for one, expected in zip(found, printed["starts"], strict=True):
        assert (one.seed, one.converged, one.largest_difference_m, one.largest_difference_S) == tuple(
            expected[name] for name in ("seed", "converged", "largest_difference_m", "largest_difference_S"))
    assert found[0].largest_difference_m > 0


def mnist_folder(folder, images, labels):
    """A folder with test images as the program reads them."""
    folder.mkdir()
    sizes = np.array(images.shape, ">i4").tobytes()
    (folder / "t10k-images-idx3-ubyte").write_bytes(bytes([0, 0, 8, 3]) + sizes + images.tobytes())
    (folder / "t10k-labels-idx1-ubyte").write_bytes(bytes([0, 0, 8, 1]) + sizes[:4] + labels.tobytes())
    return str(folder)


def test_digits_are_those_of_the_program(tmp_path, random):
    images, labels = random.integers(0, 256, (20, 28, 28)).astype(np.uint8), (np.arange(20) % 3).astype(np.uint8)
    common = {"activation": "softmax1", "heads": 2, "tokens": 3, "gamma": 0.25, "batch": 16, "seed": 3}
    from_files = {"mnist": mnist_folder(tmp_path / "mnist", images, labels), "images": 20, "amplitude": 0.2}
    task = heads.ImageTask(images, labels, 0.2)
    assert task.dimension == 784 and task.class_means.shape == (3, 784)
    config = tmp_path / "digits.json"
    fields = {**common, "tau": 1, "eta": 0.5, "fresh_samples": 50, "risk_samples": 60}
    config.write_text(json.dumps({**fields, **from_files}))
    printed = program_file(tmp_path, "heads", "digits", config)
    found = heads.digits(fields.pop("activation"), task, **fields)
    assert [[k, found.b[k], float(found.cosines[k].argmax()), found.cosines[k].max(), *found.k[k]] for k in range(2)] == printed["rows"]
    assert (*found.loss, *found.bayes_risk) == tuple(printed[name] for name in (
        "loss", "loss_standard_error", "bayes_risk", "bayes_risk_standard_error"))
    fields = {**common, "tau": 2, "etas": [1, 0.5], "starts": 2, "delta": 0.4}
    config.write_text(json.dumps({**fields, **from_files}))
    printed = program_file(tmp_path, "heads", "digit-times", config)
    times = heads.digit_times(fields.pop("activation"), task, **fields)
    assert times.times.shape == (2, 2, 3)
    for label in range(3):
        np.testing.assert_array_equal(times.times[..., label].ravel(), np.array(column(printed, f"digit_time_{label}"), dtype=float))


def test_attention_to_fresh_sequences_is_that_of_the_program(tmp_path):
    fields = {"activation": "softmax1", "tokens": 3, "heads": 2, "tau": 2, "step": 0.5, "samples": 1000, "fresh_samples": 1500,
              "starts": 1, "seed": 4}
    printed = experiment(tmp_path, "attention", sequences=2, **fields)
    (trained,) = heads.flow(fields.pop("activation"), PRIOR, **fields)
    chi_star, xi = heads.fresh_sequences(PRIOR, 3, 2, 2, fresh_samples=1500, seed=4)
    assert chi_star.shape == (2, 3, 2) and xi.shape == (2, 3, 2)
    weights = [heads.attention_map("softmax1", trained.path.end, *sequence) for sequence in zip(chi_star, xi)]
    assert np.array(weights).ravel().tolist() == column(printed, "weight")


def test_bayes_risks_are_those_of_the_program(tmp_path):
    printed = experiment(tmp_path, "bayes", tokens=3, samples=10_000, seed=4)
    assert heads.bayes_risk(PRIOR, 3, 10_000, 4) == (printed["bayes_risk"], printed["standard_error"])


def test_bayes_optimal_heads_reach_the_bayes_risk():
    best = heads.bayes_optimal_heads(FLIP, 2)
    judged = heads.judge("bayes", best, FLIP, 3, fresh_samples=50_000)
    risk = heads.bayes_risk(FLIP, 3, 50_000)
    assert abs(judged.loss.value - risk.value) < 4 * np.hypot(judged.loss.standard_error, risk.standard_error)
    assert abs(judged.gradient.m).max() < 0.01


def test_posterior_and_attention_of_the_best_heads_agree(random):
    best, chi_star, xi = heads.bayes_optimal_heads(FLIP, 2), random.normal(size=(4, 2)), random.normal(size=(4, 2))
    posterior = heads.bayes_posterior(FLIP, chi_star)
    attention = heads.attention_map("bayes", best, chi_star, xi)
    assert attention.shape == (2, 4) and posterior.sum() == pytest.approx(1)
    np.testing.assert_allclose(attention.sum(0), posterior, rtol=1e-10)
    np.testing.assert_allclose(heads.bayes_posterior(FLIP, chi_star, np.eye(2)), posterior, rtol=1e-12)


def test_hessians_are_those_of_the_program(tmp_path):
    for name in ("softmax", "softmax1"):
        printed = experiment(tmp_path, "hessian", activation=name, tokens=4, heads=3)
        found = heads.hessian(name, 4, 3)
        assert found._asdict() == {field: printed[field] for field in found._fields}
        for (eigenvalue, split, common) in printed["rows"]:
            assert heads.escape_rates(found, 3, eigenvalue) == (split, common)
    (tmp_path / "flip.json").write_text(json.dumps({"prior": {"kind": "flip2", "nu1": 10, "nu2": 10}, "activation": "bayes",
                                                    "tokens": 2, "heads": 2, "seed": 2}))
    printed = program_file(tmp_path, "heads", "hessian", tmp_path / "flip.json")
    sampled = heads.split_rate("bayes", 2, 2, 10, 10, seed=2)
    # The program scales the estimate; the last bit of the product is another.
    assert sampled == pytest.approx((printed["saddle_split_rate"], printed["saddle_split_rate_standard_error"]), rel=1e-14)
    exact = heads.split_rate("bayes", 2, 2, 10, 10, samples=None)
    assert abs(sampled.value - exact.value) < 4 * sampled.standard_error


def test_priors():
    assert FLIP.features == 2 and FLIP.kind == "discrete"
    np.testing.assert_allclose(FLIP.mean, [np.sqrt(10), 0])
    for prior in (FLIP, PRIOR, heads.Prior.gaussian([1, 2, 3]), heads.Prior.discrete([[0, 1], [1, 0]], [0.25, 0.75])):
        again = pickle.loads(pickle.dumps(prior))
        assert again.kind == prior.kind
        np.testing.assert_array_equal(again.covariance, prior.covariance)
        assert heads.bayes_risk(again, 2, 1000) == heads.bayes_risk(prior, 2, 1000)


def test_threads_change_nothing():
    one, both = (heads.flow("softmax", PRIOR, 3, 2, tau=2, step=0.5, samples=3000, fresh_samples=2000, threads=threads)[0]
                 for threads in (1, 2))
    np.testing.assert_array_equal(one.path.m, both.path.m)
    assert one.loss == both.loss


# What the program says of the field, after its place.
@pytest.mark.parametrize("call, name, fields", [
    (lambda: heads.flow("relu", PRIOR, 3, 2), "flow", {"activation": "relu"}),
    (lambda: heads.flow("softmax", PRIOR, 0, 2, tau=1), "flow", {"tokens": 0}),
    (lambda: heads.flow("softmax", PRIOR, 3, 2, tau=1, stepper="leapfrog"), "flow", {"stepper": "leapfrog"}),
    (lambda: heads.flow("softmax", PRIOR, 3, 2, tau=1, step=0.3), "flow",
     {"activation": "softmax", "tokens": 3, "heads": 2, "tau": 1, "step": 0.3}),
    (lambda: heads.flow("softmax", PRIOR, 3, 2, leave_saddles=1), "flow", {"leave_saddles": 1}),
    (lambda: heads.flow("softmax", PRIOR, 3, 2, stepper="runge_kutta4", batch_noise=0.5), "flow",
     {"activation": "softmax", "tokens": 3, "heads": 2, "stepper": "runge_kutta4", "batch_noise": 0.5}),
    (lambda: heads.prune("softmax", heads.noise_start("softmax", 2, 2), PRIOR, 3, normaliser="some"), "prune", {"normaliser": "some"}),
    (lambda: heads.judge("softmax", heads.noise_start("softmax", 2, 2), PRIOR, 3, fresh_samples=0), "flow", {"fresh_samples": 0}),
    (lambda: heads.fresh_sequences(PRIOR, 3, 2, 0), "attention", {"sequences": 0}),
    (lambda: heads.sgd("softmax", PRIOR, 3, 2, 4, 1), "sgd",
     {"activation": "softmax", "tokens": 3, "heads": 2, "dimension": 4, "tau": 1}),
    (lambda: heads.sgd("softmax", PRIOR, 3, 2, 100, 1, gamma=0), "sgd", {"gamma": 0}),
    (lambda: heads.sgd("softmax", PRIOR, 3, 2, 100, 1, gamma=3), "sgd",
     {"activation": "softmax", "tokens": 3, "heads": 2, "dimension": 100, "tau": 1, "gamma": 3}),
    (lambda: heads.sgd("softmax", PRIOR, 3, 2, 100, 1, planted_m=[[1, 2]]), "sgd",
     {"activation": "softmax", "tokens": 3, "heads": 2, "dimension": 100, "tau": 1, "planted_m": [[1, 2]]}),
    (lambda: heads.compare("softmax", PRIOR, 3, 2, 100, 1, step=0.3, samples=100), "compare",
     {"activation": "softmax", "tokens": 3, "heads": 2, "dimension": 100, "tau": 1, "step": 0.3, "samples": 100}),
    (lambda: heads.specialisation_times("softmax", PRIOR, 3, 2, 100, [1, 1], 1), "phase-transition", {"etas": [1, 1]}),
    (lambda: heads.specialisation_times("softmax", PRIOR, 3, 2, 100, [1], 1, dynamics="sgd", step=0.2), "phase-transition",
     {"activation": "softmax", "tokens": 3, "heads": 2, "dimension": 100, "etas": [1], "tau": 1, "dynamics": "sgd", "step": 0.2}),
    (lambda: heads.specialisation_times("softmax", PRIOR, 3, 2, 100, [1], 1, batch=3), "phase-transition",
     {"activation": "softmax", "tokens": 3, "heads": 2, "dimension": 100, "etas": [1], "tau": 1, "batch": 3}),
    (lambda: heads.specialisation_times("softmax", PRIOR, 3, 2, 100, [1], 1, features=True, starts=0), "feature-times", {"starts": 0}),
    (lambda: heads.resampling("softmax", PRIOR, 3, 2, eta=-1), "resampling", {"eta": -1}),
    (lambda: heads.ImageTask(np.ones((2, 3)), [0, 1], -1), "digits", {"amplitude": -1}),
    (lambda: heads.digits("softmax", IMAGES, 1, risk_samples=1), "digits", {"risk_samples": 1}),
    (lambda: heads.digit_times("softmax", IMAGES, [1], 1, delta=-1), "digit-times", {"delta": -1}),
    (lambda: heads.bayes_risk(PRIOR, 3, 0), "bayes", {"samples": 0}),
    (lambda: heads.hessian("softmax", 1, 2), "hessian", {"tokens": 1}),
    (lambda: heads.split_rate("relu", 3, 2, 1, 1), "hessian", {"activation": "relu"}),
])
def test_what_is_refused_is_said_as_the_program_says_it(call, name, fields, tmp_path):
    program = os.environ.get("WIDELIMIT_PROGRAM")
    if not program:
        pytest.skip("WIDELIMIT_PROGRAM, the program, is not set")
    file = tmp_path / "config.json"
    file.write_text(json.dumps({**({} if name.startswith("digit") else {"prior": SPIKES}), **fields}))
    ran = subprocess.run([program, "heads", name, file], capture_output=True, text=True)
    assert ran.returncode == 1
    sentence = ran.stderr.strip().removeprefix(f"widelimit: {file}: config.")
    with pytest.raises(widelimit.ArgumentError) as error:
        call()
    function, _, said = str(error.value).partition(": ")
    assert said == sentence and function in dir(heads)


@pytest.mark.parametrize("call, error, words", [
    (lambda: heads.flow("softmax", PRIOR, 3, 2, tau=1, start=heads.noise_start("softmax", 2, 3), samples=100, fresh_samples=100),
     widelimit.ArgumentError, "m"),
    (lambda: heads.flow("softmax", PRIOR, 3, 2, start=heads.noise_start("softmax", 2, 2), eta=2), widelimit.ArgumentError,
     "flow: eta: has no meaning together with start"),
    (lambda: heads.Prior.spikes(2, -1), widelimit.ArgumentError, "-1"),
    (lambda: heads.Prior.gaussian("wide"), TypeError, "variances"),
    (lambda: heads.specialisation_times("softmax", PRIOR, 3, 2, 100, [1], 1, dynamics="sgd", features=True), ValueError,
     "features: times of single features are those of flows"),
    (lambda: heads.ImageTask(np.ones((2, 3)), [0, 2]), widelimit.ArgumentError, "ImageTask: class 1 has no image"),
    (lambda: heads.ImageTask(np.ones(3), [0]), ValueError, "images: expected .N, pixels. or .N, height, width."),
    (lambda: heads.digits("softmax", np.ones((2, 3)), 1), TypeError, "task: expected heads.ImageTask"),
    (lambda: heads.fresh_sequences(PRIOR, 3, 2, 11, fresh_samples=10), widelimit.ArgumentError,
     "sequences: expected at most 10, fresh_samples"),
    (lambda: heads.bayes_optimal_heads(heads.Prior.gaussian([1, 1]), 2), widelimit.ArgumentError, "bayes_optimal_heads"),
    (lambda: heads.split_rate("softmax1", 3, 2, 1, 1), widelimit.ArgumentError, "softmax1"),
    (lambda: heads.bayes_risk(PRIOR, 3, progress=1), TypeError, "progress: expected a function"),
    (lambda: heads.bayes_risk(PRIOR, 3, samples=1), widelimit.ArgumentError, "bayes_risk: samples: expected an integer from 2"),
    (lambda: heads.judge("softmax", heads.noise_start("softmax", 2, 2), PRIOR, 3, fresh_samples=1), widelimit.ArgumentError,
     "judge: fresh_samples: expected an integer from 2"),
    (lambda: heads.flow("softmax", PRIOR, 3, 2, tau=1, samples=10, fresh_samples=1), widelimit.ArgumentError,
     "flow: fresh_samples: expected an integer from 2"),
    (lambda: heads.flow("softmax", PRIOR, 3, 2, tau=1, start=heads.noise_start("softmax", 3, 2)), widelimit.ArgumentError,
     "flow: start: m must be 2 x 2, got 3 x 2"),
    (lambda: heads.flow("softmax", "flip2", 3, 2), TypeError, "prior: expected heads.Prior, such as .*, got 'flip2'"),
    (lambda: heads.flow("softmax", PRIOR, 3, 2, tau=1, start=heads.noise_start("softmax", 2, 2)._replace(b=[1, 0])),
     widelimit.ArgumentError, "flow: start: b has no effect with the activation softmax: expected 0, got 1"),
    (lambda: heads.judge("bayes", heads.noise_start("bayes", 2, 2)._replace(v=[2]), PRIOR, 3), widelimit.ArgumentError,
     "judge: parameters: v has no effect with the activation bayes: expected 1, got 2"),
    (lambda: heads.judge("softmax", heads.noise_start("softmax", 2, 3), PRIOR, 3), widelimit.ArgumentError,
     "judge: parameters: m must be 2 x 2, got 2 x 3"),
    (lambda: heads.prune("softmax", ("a", 1, 2, 3), PRIOR, 3), TypeError, "parameters.m: expected an array of real numbers"),
    (lambda: heads.hessian("softmax", 3, 2, b=1), widelimit.ArgumentError, "hessian: b: has no effect with the activation softmax"),
    (lambda: heads.bayes_posterior(PRIOR, np.ones((3, 2)), [[1, 2], [0, 1]]), widelimit.ArgumentError,
     "bayes_posterior: spike_gram must be symmetric, got 0 at .1, 0. and 2 at .0, 1."),
    (lambda: heads.bayes_posterior(PRIOR, np.ones((3, 2)), [[1, 2], [2, 1]]), widelimit.ArgumentError,
     "bayes_posterior: spike_gram must be positive semidefinite"),
    (lambda: heads.bayes_posterior(PRIOR, np.ones((3, 2)), np.eye(3)), widelimit.ArgumentError, "spike_gram must be 2 x 2, got 3 x 3"),
    (lambda: heads.noise_start("softmax", 2, 10 ** 12), widelimit.ArgumentError, "noise_start: features: .* takes .* of memory"),
    (lambda: heads.Prior.spikes(10 ** 9, 1), widelimit.ArgumentError, "features: .* takes .* of memory"),
    (lambda: heads.Prior.spikes(1.5, 1), TypeError, "features: expected an integer, got 1.5"),
    (lambda: heads.Prior.flip2("two", 1), TypeError, "nu1: expected a number, got 'two'"),
    (lambda: heads.Prior.flip2(1, float("nan")), widelimit.ArgumentError, "nu2"),
    (lambda: heads.Prior.gaussian([1, -1]), widelimit.ArgumentError, r"variances\[1\]"),
])
def test_what_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("tau", [0.1, 1, 3, 7, 12, 25])
def test_sgd_and_flow_are_recorded_together(tau):
    found = heads.compare("softmax", FLIP, 3, 2, 30, tau, samples=20, batch=4)
    np.testing.assert_allclose(found.sgd.tau, found.flow.tau, atol=1e-9)
    assert found.sgd.tau[-1] == pytest.approx(tau)


def test_steps_that_leave_the_flow_are_an_error():
    prior = heads.Prior.spikes(4, 10)
    with pytest.raises(widelimit.NumericalError, match=r"step \d+: take a smaller step than 50; the largest that is stable"):
        heads.flow("softmax1", prior, 5, 4, tau=500, step=50, samples=1000, fresh_samples=1000)
    with pytest.raises(widelimit.ArgumentError, match="a single head has no other to differ from"):
        heads.specialisation_times("softmax", heads.Prior.flip2(2, 2), 3, 1, 100, [1], 1, samples=100)
    with pytest.raises(widelimit.NumericalError, match="bayes_posterior: the log odds of token 1"):
        heads.bayes_posterior(heads.Prior.flip2(2, 2), [[0, 0], [1e308, 1e308]])
    with pytest.raises(widelimit.ArgumentError, match="chi must be finite"):
        start = heads.noise_start("softmax", 2, 2)
        heads.attention_map("softmax", start._replace(m=start.m + 1e300), np.full((3, 2), 1e300), np.zeros((3, 2)))
