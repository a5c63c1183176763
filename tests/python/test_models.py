"""Models: fit, predict, sample, save, load, search."""

import pickle
import sys
import types
import warnings

import numpy as np
import pytest

import widelimit
from widelimit import Model, layers


def network():
    return widelimit.Network([layers.dense(2, 0.1), layers.relu(), layers.dense(1, 0.05)])


def problem(random):
    x, test = random.normal(size=(12, 3)), random.normal(size=(5, 3))
    return x, np.stack([np.sin(x[:, 0]), x[:, 1] * x[:, 2]], axis=1), test


def test_predictions_are_those_of_regression(random):
    x, y, test = problem(random)
    model = Model.fit(network(), x, y, noise_variance=0.05, targets_as_they_are=True)
    gram, cross = widelimit.gram(network(), x, kernels="nngp").nngp, widelimit.gram(network(), test, x, "nngp").nngp
    posterior = widelimit.Regression.fit(gram, y, noise_variance=0.05)
    prior = widelimit.gram(network(), test, kernels="nngp").nngp
    found = model.predict(test)
    np.testing.assert_allclose(found.mean, posterior.mean(cross), rtol=1e-10)
    variance = posterior.variance(cross, np.diag(prior).copy())
    np.testing.assert_allclose(found.standard_deviation**2, np.stack([variance, variance], axis=1), rtol=1e-8)
    assert (found.noise_variance == 0.05).all() and found.class_probabilities is None
    np.testing.assert_array_equal(model.mean(test), found.mean)
    joint = model.predict_jointly(test)
    np.testing.assert_allclose(joint.covariance[..., 1], posterior.covariance(cross, prior), rtol=1e-8, atol=1e-12)
    assert model.log_marginal_likelihood == pytest.approx(posterior.log_marginal_likelihood)
    assert len(model) == 12 and model.outputs == 2 and model.kind == "bayesian" and model.network == network()


@pytest.mark.parametrize("kind", ["bayesian", "trained"])
def test_conjugate_gradients_solve_the_equations(random, kind, tmp_path):
    x, test = random.normal(size=(60, 3)), random.normal(size=(7, 3))
    y = np.sin(x[:, :2])
    gram = widelimit.gram(network(), np.concatenate([x, test]))
    nngp, kernel, lam = gram.nngp, gram.nngp if kind == "bayesian" else gram.ntk, 0.05
    weights = np.linalg.solve(kernel[:60, :60] + lam * np.eye(60), kernel[:60])
    mean = weights[:, 60:].T @ y
    own, cross, among = nngp[60:, 60:], nngp[60:, :60], nngp[:60, :60]
    b = weights[:, 60:]
    covariance = own - cross @ b - (0 if kind == "bayesian" else (cross @ b).T - b.T @ among @ b)
    held = random.normal(size=(30, 3))
    fitted = Model.fit(network(), x, y, kind=kind, noise_variance=lam, targets_as_they_are=True, solver="cg", residual=1e-12)
    with widelimit.device("pocl"):
        on_device = Model.fit(network(), x, y, kind=kind, noise_variance=lam, targets_as_they_are=True, solver="cg", residual=1e-12)
        found = on_device.predict(test)
    fitted.save(tmp_path / "model")
    for model in (fitted, on_device, Model.load(tmp_path / "model"), pickle.loads(pickle.dumps(fitted))):
        assert model.solver == "cg" and model.kind == kind
        np.testing.assert_allclose(model.mean(test), mean, rtol=1e-8)
        np.testing.assert_allclose(model.predict(test).mean, mean, rtol=1e-8)
        np.testing.assert_allclose(model.predict(test).standard_deviation[:, 0]**2, np.diag(covariance), rtol=1e-7)
        np.testing.assert_allclose(model.predict_jointly(test).covariance[..., 1], covariance, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-8)
    np.testing.assert_allclose(found.standard_deviation[:, 1]**2, np.diag(covariance), rtol=1e-7)
    with pytest.raises(widelimit.ArgumentError, match="conjugate gradients"):
        fitted.leave_one_out()
    chosen = Model.fit(network(), x, y, kind=kind, validation=(held, np.sin(held[:, :2])), solver="cg", grid=[1e-3, 1e-1])
    direct = Model.fit(network(), x, y, kind=kind, validation=(held, np.sin(held[:, :2])), criterion="mse", grid=[1e-3, 1e-1])
    assert [each.best for each in chosen.selections] == [each.best for each in direct.selections]
    one = Model.select(network(), x, y[:, 0], kind=kind, validation=(held, np.sin(held[:, 0])), solver="cg", grid=[1e-3, 1e-1])
    assert one.best == chosen.selections[0].best
    np.testing.assert_allclose(chosen.predict(test).standard_deviation, direct.predict(test).standard_deviation, rtol=1e-6)


def test_conjugate_gradients_say_what_they_need(random):
    x, y, _ = problem(random)
    with pytest.raises(ValueError, match=r"solver: cg chooses the regulariser on validation data, and there are none: give validation=\(x, y\)"):
        Model.fit(network(), x, y, solver="cg")
    with pytest.raises(ValueError, match='solver: expected one of cholesky, cg, distributed, got "qr"'):
        Model.fit(network(), x, y, solver="qr")
    with pytest.raises(widelimit.ArgumentError, match="cg chooses regularisers by accuracy or mean squared error"):
        Model.fit(network(), x, y, solver="cg", criterion="evidence")
    with pytest.raises(widelimit.ArgumentError, match="networks after training only"):
        Model.fit(network(), x, y, solver="cg", kind="trained", time=2, regulariser=0.1)
    assert Model.fit(network(), x, y, regulariser=0.1).solver == "cholesky"


def test_what_is_left_out_is_predicted_from_the_others(random):
    x, y, _ = problem(random)
    left_out = Model.fit(network(), x, y, noise_variance=0.1, targets_as_they_are=True).leave_one_out()
    others = Model.fit(network(), x[1:], y[1:], noise_variance=0.1, targets_as_they_are=True).predict(x[:1])
    np.testing.assert_allclose(left_out.residuals[0], y[0] - others.mean[0], rtol=1e-8)
    np.testing.assert_allclose(left_out.variances[0], others.standard_deviation[0]**2 + 0.1, rtol=1e-8)
    assert left_out.mean_squared_error == pytest.approx(np.mean(left_out.residuals**2))


def test_samples_have_the_covariance(random):
    x, y, test = problem(random)
    for kind in ("bayesian", "trained"):
        model = Model.fit(network(), x, y, kind=kind, noise_variance=0.1)
        joint, samples = model.predict_jointly(test), model.samples(test, 4000, seed=3)
        assert samples.shape == (4000, 5, 2)
        scale = np.sqrt(joint.covariance.max() / 4000)
        np.testing.assert_allclose(samples.mean(0), joint.mean, atol=5 * scale)
        for output in (0, 1):
            np.testing.assert_allclose(np.cov(samples[:, :, output].T), joint.covariance[..., output],
                                       atol=0.1 * joint.covariance.max())
        prior = model.prior_samples(test, 4000, seed=3)
        expected = (model.amplitude * model.target_scale[1] ** 2)[1] * widelimit.gram(network(), test, kernels="nngp").nngp
        np.testing.assert_allclose(np.cov(prior[:, :, 1].T), expected, atol=0.1 * expected.max())
        np.testing.assert_array_equal(samples[:2], model.samples(test, 2, seed=3))


def test_a_model_comes_back_from_its_folder(random, tmp_path):
    x, y, test = problem(random)
    model = Model.fit(network(), x.astype(np.float32), y, preprocessing="channel", kind="trained")
    model.save(tmp_path / "model")
    same = Model.load(tmp_path / "model")
    np.testing.assert_array_equal(same.predict(test.astype(np.float32)).mean, model.predict(test.astype(np.float32)).mean)
    assert same.preprocessing.kind == "channel" and same.selections == () and same.selection is None and same.kind == "trained"
    with pytest.raises(widelimit.DataError):
        Model.load(tmp_path)


def test_inputs_are_preprocessed_as_the_training_inputs_were(random):
    x, y, test = problem(random)
    x, test = 3 * x + 5, 3 * test + 5
    model = Model.fit(network(), x, y, preprocessing="channel", noise_variance=0.1)

    def standardised(inputs):
        return (inputs - x.mean(0)) / x.std(0)

    by_hand = Model.fit(network(), standardised(x), y, noise_variance=0.1)
    np.testing.assert_allclose(model.predict(test).mean, by_hand.predict(standardised(test)).mean, rtol=1e-9)
    whitened = widelimit.Preprocessing.fit("zca", x, zca_regulariser=0.1)
    given = Model.fit(network(), x, y, preprocessing=whitened, noise_variance=0.1)
    np.testing.assert_allclose(given.mean(test), Model.fit(network(), whitened.apply(x), y, noise_variance=0.1).mean(
        whitened.apply(test)))


def test_classes(random):
    x, _, test = problem(random)
    labels = (x[:, 0] > 0).astype(int) + (x[:, 1] > 0)
    model = Model.fit(network(), x, labels, labels=True, class_names=("a", "b", "c"))
    found = model.predict(test)
    assert found.class_probabilities.shape == (5, 3) and model.class_names == ("a", "b", "c")
    np.testing.assert_allclose(found.class_probabilities.sum(1), 1)
    with pytest.raises(TypeError, match="expected integers or texts"):
        Model.fit(network(), x, labels / 1, labels=True)
    with pytest.raises(ValueError, match=r"class_names: expected 3 names of the labels \[3, 7, 11\], got 2"):
        Model.fit(network(), x, 3 + 4 * labels, labels=True, class_names=("a", "b"))


def test_labels_with_gaps_and_texts_are_the_same_classes(random):
    x, _, test = problem(random)
    for labels in ((x[:, 0] > 0).astype(int), (x[:, 0] > 0).astype(int) + (x[:, 1] > 0)):
        plain = Model.fit(network(), x, labels, labels=True).predict(test)
        assert plain.mean.shape[1] == (1 if labels.max() == 1 else 3)
        for renamed in (5 * labels + 3, labels - 1, np.array(["a", "b", "c"])[labels], 10**12 * labels):
            model = Model.fit(network(), x, renamed, labels=True, validation=(x, renamed))
            np.testing.assert_array_equal(model.predict(test).class_probabilities, plain.class_probabilities)
            assert model.class_names == tuple(str(label) for label in np.unique(renamed))
    with pytest.raises(ValueError, match="validation: label 0 .from 0. is '[0-9]+', which does not occur"):
        Model.fit(network(), x, labels, labels=True, validation=(x, 9 + labels))


def test_numbers_are_fitted_without_their_units(random):
    x, y, test = problem(random)
    plain = Model.fit(network(), x, y).predict(test)
    moved = Model.fit(network(), x, 50 * y + [1000, -1e4]).predict(test)
    np.testing.assert_allclose(moved.mean, 50 * plain.mean + [1000, -1e4], rtol=1e-9)
    np.testing.assert_allclose(moved.standard_deviation, 50 * plain.standard_deviation, rtol=1e-8)
    assert plain.standard_deviation.shape == (5, 2) and plain.noise_variance.shape == (2,)


def test_scikit_learn_with_normalised_targets_agrees(random):
    gaussian_process = pytest.importorskip("sklearn.gaussian_process")
    from widelimit.sklearn import NetworkKernel
    x, y, test = problem(random)
    y = 30 + 4 * y[:, 0]
    noise = 0.01 * np.trace(NetworkKernel(network())(x)) / len(x)
    theirs = gaussian_process.GaussianProcessRegressor(NetworkKernel(network()), alpha=noise, optimizer=None,
                                                       normalize_y=True).fit(x, y)
    model = Model.fit(network(), x, y, regulariser=0.01, amplitude=1.0)
    mean, deviation = theirs.predict(test, return_std=True)
    found = model.predict(test)
    np.testing.assert_allclose(found.mean[:, 0], mean, rtol=1e-8)
    np.testing.assert_allclose(found.standard_deviation[:, 0], deviation, rtol=1e-8)
    np.testing.assert_allclose(model.predict_jointly(test).covariance[..., 0], theirs.predict(test, return_cov=True)[1],
                               rtol=1e-8, atol=1e-8)


def test_the_regulariser_is_the_best_of_the_grid(random):
    x, y, test = problem(random)
    held = random.normal(size=(6, 3))
    y, validation = y[:, 0], (held, np.sin(held[:, 0]))
    for criterion, better in (("loo", min), ("evidence", max), ("mse", min)):
        model = Model.fit(network(), x, y, validation=validation, criterion=criterion, grid=[1e-4, 1e-2, 1.0])
        key = {"loo": "loo", "evidence": "log_marginal_likelihood", "mse": "mse"}[criterion]
        scores = {row["regulariser"]: row[key] for row in model.selection.scores}
        assert model.selection.best == better(scores, key=scores.get), criterion
        alone = Model.select(network(), x, y, validation=validation, criterion=criterion, grid=[1e-4, 1e-2, 1.0])
        assert alone.best == model.selection.best
    with pytest.raises(ValueError, match='criterion: expected one of accuracy, mse, nlpd, evidence, loo, got "best"'):
        Model.fit(network(), x, y, criterion="best")
    with pytest.raises(ValueError, match="got both"):
        Model.fit(network(), x, y, regulariser=0.1, noise_variance=0.1)
    with pytest.raises(ValueError, match="kind: expected one of bayesian, trained"):
        Model.fit(network(), x, y, kind="ntk")


def test_search_finds_the_lowest_score():
    trials = widelimit.search([("a", 0.1, 10, "log"), ("b", -1, 1)], lambda v: np.log(v[0])**2 + (v[1] - 0.3)**2, 60)
    best = min(trials, key=lambda trial: trial.score)
    assert best.score < 1e-2 and abs(best.values[1] - 0.3) < 0.1
    asked = []
    again = widelimit.search([("a", 0.1, 10, "log"), ("b", -1, 1)], lambda v: asked.append(v) or 0.0, 60, known=trials)
    assert asked == [] and again == trials

    def failing(values):
        raise KeyError("of the score")

    with pytest.raises(KeyError, match="of the score"):
        widelimit.search([("a", 0, 1)], failing)
    with pytest.raises(ValueError, match="scale: expected linear, log, integer, got cubic"):
        widelimit.search([("a", 0, 1, "cubic")], lambda v: 0.0)


@pytest.mark.parametrize("preprocessing", ["none", "pixel", "image", "channel", "zca"])
def test_models_with_flips_predict_mirror_images_alike(random, preprocessing):
    x, test, y = random.normal(size=(12, 3, 4, 2)), random.normal(size=(5, 3, 4, 2)), random.normal(size=12)
    convolution = widelimit.Network.named("conv-flatten", {"depth": 1})
    model = Model.fit(convolution, x, y, regulariser=0.1, flip=True, preprocessing=preprocessing)
    assert model.flips
    np.testing.assert_allclose(model.mean(test[:, :, ::-1]), model.mean(test), rtol=1e-9, atol=1e-9)
    if preprocessing == "zca":
        with pytest.raises(widelimit.ArgumentError, match="mirror_images"):
            Model.fit(convolution, x, y, flip=True, preprocessing=widelimit.Preprocessing.fit("zca", x))


def test_inputs_of_another_scale_are_a_warning(random):
    x, y, test = problem(random)
    model = Model.fit(network(), x, y, noise_variance=0.1)
    with pytest.warns(UserWarning, match="x: the numbers of the inputs run from .* those of the training inputs from"):
        model.predict(255 * test)


def test_scores_are_those_of_scikit_learn(random):
    x, y, test = problem(random)
    model = Model.fit(network(), x, y)
    truth = np.stack([np.sin(test[:, 0]), test[:, 1] * test[:, 2]], axis=1)
    predicted = model.mean(test)
    ratios = 1 - ((truth - predicted)**2).sum(0) / ((truth - truth.mean(0))**2).sum(0)
    assert model.score(test, truth) == pytest.approx(ratios.mean())
    words = np.array(["no", "yes"])[(x[:, 0] > 0).astype(int)]
    classes = Model.fit(network(), x, words, labels=True)
    right = np.array(["no", "yes"])[classes.predict(test).class_probabilities.argmax(1)] == np.array(["no", "yes", "no", "no", "yes"])
    assert classes.score(test, ["no", "yes", "no", "no", "yes"]) == pytest.approx(right.mean())
    numbers = Model.fit(network(), x, np.arange(12) % 3 * 10, labels=True)
    expected = (numbers.predict(x).class_probabilities.argmax(1) == np.arange(12) % 3).mean()
    for other in (numbers, pickle.loads(pickle.dumps(numbers))):
        assert other.score(x, np.arange(12) % 3 * 10) == pytest.approx(expected)
    with pytest.raises(ValueError, match=r"score: y: label 5 is none of the model's, \[0, 10, 20\]"):
        numbers.score(x[:1], [5])
    with pytest.raises(ValueError, match=r"score: y: expected targets \(5, 2\), got \(5, 1\)"):
        model.score(test, truth[:, :1])
    with pytest.raises(ValueError, match="score: y: expected targets that differ in every output"):
        model.score(test, np.ones((5, 2)))


def test_a_model_that_was_loaded_knows_the_names_of_classes(random, tmp_path):
    x = random.normal(size=(12, 3))
    words = np.array(["b", "a", "c"] * 4)
    model = Model.fit(network(), x, words, labels=True)
    model.save(tmp_path / "model")
    assert Model.load(tmp_path / "model").score(x, words) == model.score(x, words)


def test_validation_data_may_have_labels_lengths_masks_and_graphs(random):
    sequences = widelimit.Network([layers.conv([3], weight_variance=2), layers.relu(), layers.global_average_pool(),
                                   layers.dense()])
    x, other = random.normal(size=(12, 6, 2)), random.normal(size=(5, 6, 2))
    labels, others = np.array(["a", "b"] * 6), np.array(["b", "a", "a", "b", "a"])
    lengths, short = 3 + np.arange(12) % 4, np.array([3, 6, 4, 5, 6])
    model = Model.fit(sequences, x, labels, labels=True, criterion="accuracy", grid=[0.01, 1.0], lengths=lengths,
                      validation={"x": other, "y": others, "lengths": short})
    rows = {row["regulariser"]: row["accuracy"] for row in model.selection.scores}
    for regulariser, accuracy in rows.items():
        fixed = Model.fit(sequences, x, labels, labels=True, regulariser=regulariser, lengths=lengths)
        means = fixed.mean(other, lengths=short)[:, 0]
        assert ((means > 0) == (others == "b")).mean() == pytest.approx(accuracy)
    chosen = Model.select(sequences, x, labels, labels=True, criterion="accuracy", grid=[0.01, 1.0], lengths=lengths,
                          validation={"x": other, "y": others, "lengths": short})
    assert [row["accuracy"] for row in chosen.scores] == list(rows.values())

    mask, hidden = np.ones((12, 6), bool), np.ones((5, 6), bool)
    mask[::2, 1] = hidden[1:, 4] = False
    masked = Model.fit(sequences, x, labels, labels=True, criterion="nlpd", grid=[0.01, 1.0], mask=mask,
                       validation={"x": other, "y": others, "mask": hidden})
    alone = Model.fit(sequences, x, labels, labels=True, criterion="nlpd", grid=[0.01, 1.0], mask=mask, validation=(other, others))
    assert masked.selection.scores[0]["nlpd"] != alone.selection.scores[0]["nlpd"]

    graphs = widelimit.Network([layers.dense(), layers.relu(), layers.aggregate(), layers.global_sum_pool(), layers.dense()])
    edges, more = (random.integers(0, 2, size=(n, 6, 6)) for n in (12, 5))
    model = Model.fit(graphs, x, labels, labels=True, criterion="accuracy", grid=[0.1, 1.0], graphs=list(edges),
                      validation={"x": other, "y": others, "graphs": list(more)})
    best = model.selection.best
    assert model.score(other, others, graphs=list(more)) == pytest.approx(
        {row["regulariser"]: row["accuracy"] for row in model.selection.scores}[best])
    for wrong in (x, {"x": x}, {"x": x, "y": labels, "length": 3}, (x, labels, lengths)):
        with pytest.raises(TypeError, match=r"validation: expected \(x, y\), or a dictionary"):
            Model.fit(sequences, x, labels, labels=True, validation=wrong)


def test_gram_matrices_are_kept_in_a_folder(random, tmp_path):
    x, y, test = problem(random)
    told = []
    first = Model.fit(network(), x, y, gram_folder=tmp_path / "grams", progress=lambda done, total: told.append((done, total)))
    assert told and told[-1][0] == told[-1][1] and any((tmp_path / "grams").rglob("*.npy"))
    told.clear()
    second = Model.fit(network(), x, y, gram_folder=tmp_path / "grams", progress=lambda done, total: told.append((done, total)))
    assert not told
    np.testing.assert_array_equal(second.mean(test), first.mean(test))
    sequences = widelimit.Network([layers.conv([3]), layers.relu(), layers.flatten(), layers.dense()])
    flipped = Model.fit(sequences, x.reshape(12, 3, 1), y, flip=True, gram_folder=tmp_path / "flips")
    assert flipped.flips and any((tmp_path / "flips").rglob("*.npy"))


def test_progress_is_a_bar_or_a_line(random, capsys, monkeypatch):
    x, y, _ = problem(random)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    expected = widelimit.gram(network(), x).ntk
    np.testing.assert_array_equal(widelimit.gram(network(), x, progress=True).ntk, expected)
    assert capsys.readouterr().err.endswith("s   \n")
    Model.fit(network(), x, y, progress=True)
    assert "pairs: " in capsys.readouterr().err

    class Bar:
        bars = []

        def __init__(self, desc, total):
            self.n, self.total, self.closed = 0, total, False
            self.bars.append(self)

        def update(self, more):
            self.n += more

        def close(self):
            self.closed = True

    monkeypatch.setitem(sys.modules, "tqdm.auto", types.SimpleNamespace(tqdm=Bar))
    monkeypatch.setitem(sys.modules, "tqdm", types.SimpleNamespace(auto=sys.modules["tqdm.auto"]))
    widelimit.gram(network(), x, progress=True)
    (bar,) = Bar.bars
    assert bar.closed and bar.n == bar.total > 0
    widelimit.gram(network(), x, progress=False)
    assert len(Bar.bars) == 1
    with pytest.raises(TypeError, match="progress: expected a function"):
        Model.fit(network(), x, y, progress=3)


def test_notebooks_show_networks_models_and_results(random):
    x, y, test = problem(random)
    branched = widelimit.Network([layers.dense(2), layers.sum([], (0.5, [layers.relu(), layers.dense()])),
                                  layers.repeat(2, [layers.relu(), layers.dense()])], name="a <name>")
    text = branched._repr_html_()
    assert "a &lt;name&gt;" in text and "scale 0.5" in text and "times 2" in text and text.count("relu") == 2 and "skip" in text
    own = widelimit.Network([layers.dense(), layers.elementwise(lambda z: np.tanh(z))])
    assert "<pre>" in own._repr_html_() and "relu" in layers.relu()._repr_html_()
    model = Model.fit(network(), x, (x[:, 0] > 0).astype(int), labels=True, class_names=("low", "high"))
    shown = model._repr_html_()
    assert "low, high" in shown and "weight_variance 2.0" in shown and "chosen" in shown
    prediction = model.predict(np.concatenate([test] * 3))
    assert prediction._repr_html_().count("<tr>") == 11 and "15 rows, 10 of them shown" in prediction._repr_html_()
    gram = widelimit.gram(network(), x)
    assert gram._repr_html_().count("<rect") == 2 * 144 and "12 x 12" in gram._repr_html_()
    assert "residual" in model.leave_one_out()._repr_html_() and "covariance" in model.predict_jointly(test)._repr_html_()
    assert "expected error" in widelimit.calibration(prediction.class_probabilities, [0, 1, 0] * 5)._repr_html_()


@pytest.mark.parametrize("network, shape, channels, words", [
    (widelimit.Network([layers.dense(), layers.relu(), layers.dense()]), (), 100, "vectors of 100 numbers"),
    (widelimit.Network([layers.conv([3]), layers.erf(), layers.flatten(), layers.dense()]), (32,), 100, "sequences of 32 x 100"),
    (widelimit.Network.named("struct"), (32, 32), 3, "images 32 x 32 x 3"),
    (widelimit.Network([layers.conv([2, 2, 2]), layers.erf(), layers.flatten(), layers.dense()]), (8, 8, 8), 3, "volumes 8 x 8 x 8 x 3"),
    (widelimit.Network([layers.dense(), layers.elementwise(np.tanh), layers.dense()]), (), 100, "vectors of 100 numbers")])
def test_networks_show_their_cost(network, shape, channels, words):
    plan = widelimit.explain(network, shape, channels, measure_seconds=0)
    operations = next(line for line in plan.splitlines() if line.startswith("a pair")).removeprefix("a pair").split(",")[0].strip()
    line = f"cost  {operations} a pair of {words} "
    assert line in repr(network) and line in str(network) and line.replace("  ", " ") in network._repr_html_()


def test_networks_that_fit_no_typical_inputs_show_their_layers_alone():
    for kinds in ([layers.conv([3, 3]), layers.relu()], [layers.conv([40]), layers.conv([3, 3])]):
        incomplete = widelimit.Network(kinds)
        assert "conv" in repr(incomplete) and "cost" not in repr(incomplete) + incomplete._repr_html_()
    assert "cost" not in layers.relu()._repr_html_()


def test_a_layer_shows_itself_as_in_a_network():
    assert repr(layers.dense(2)) == "dense  weight_variance=2.0  bias_variance=0.0"
    shown = repr(layers.sum([], [layers.relu(), layers.dense()])).splitlines()
    assert shown[0] == "sum" and shown[1].startswith("branch") and shown[3].strip().startswith("0  relu")


def test_prior_and_posterior_of_one_seed_are_independent(random):
    x, y, test = problem(random)
    model = Model.fit(network(), x, y[:, :1], regulariser=1e8, amplitude=1.0)
    prior, posterior = model.prior_samples(test, 400, seed=3)[:, 0, 0], model.samples(test, 400, seed=3)[:, 0, 0]
    assert abs(np.corrcoef(prior, posterior)[0, 1]) < 0.2


def test_a_trained_model_at_other_times_is_the_one_fitted_for_them(random, tmp_path):
    x, y, test = problem(random)
    several = Model.fit(network(), x, y, kind="trained", time=[0.5, 20])
    assert several.times == (0.5, 20) and several.time == np.inf and Model.fit(network(), x, y, kind="trained", time=2).times == ()
    several.save(tmp_path / "model")
    for model in (several, Model.load(tmp_path / "model")):
        assert model.times == (0.5, 20)
        for time in (*model.times, 3.0, np.inf):
            found, expected = model.at_time(time).predict(test), Model.fit(network(), x, y, kind="trained", time=time).predict(test)
            np.testing.assert_array_equal(found.mean, expected.mean)
            np.testing.assert_array_equal(found.standard_deviation, expected.standard_deviation)
    with pytest.raises(widelimit.ArgumentError, match="time: gradient flow needs the NTK"):
        Model.fit(network(), x, y).at_time(1)
    with pytest.raises(widelimit.ArgumentError, match="time must be 0 or more"):
        several.at_time(-1)


def test_a_model_from_stores_has_the_bits_of_one_from_memory(random, tmp_path):
    x, y, test = problem(random)
    options = {"validation": (test, y[:5]), "criterion": "mse"}
    expected = Model.fit(network(), x, y, **options).predict(test)
    for _ in range(2):
        found = Model.fit(network(), x, y, store=tmp_path / "stores", **options).predict(test)
        np.testing.assert_array_equal(found.mean, expected.mean)
        np.testing.assert_array_equal(found.standard_deviation, expected.standard_deviation)
    assert {each.name for each in (tmp_path / "stores").iterdir()} == {"train", "validation-train"}
    (tmp_path / "stores/train/nngp/c/0/0").write_bytes(b"damage")
    with pytest.warns(RuntimeWarning, match="nngp"):
        Model.fit(network(), x, y, store=tmp_path / "stores", **options)
    with pytest.raises(widelimit.ArgumentError, match="give one of them"):
        Model.fit(network(), x, y, store=tmp_path / "stores", gram_folder=tmp_path / "grams")


def scores_of_pathologists(seed, rows):
    """Nine scores of 1 to 10, of which healthy rows are often equal, and whether the person is ill."""
    random = np.random.default_rng(seed)
    ill = random.random(rows) < 0.35
    mild = np.where(random.random((rows, 9)) < 0.85, 1, random.integers(1, 6, (rows, 9)))
    x = np.where(ill[:, None], random.integers(1, 11, (rows, 9)), mild).astype(float)
    return x, (ill ^ ((x.sum(1) > 14) & (random.random(rows) < 0.06))).astype(int)


def test_rows_that_repeat_do_not_make_the_choice_trust_single_rows():
    from widelimit.sklearn import default_network

    x, y = scores_of_pathologists(0, 1000)
    x = (x - x[:300].mean(0)) / x[:300].std(0)
    repeats = 300 - len(np.unique(x[:300], axis=0))
    assert repeats > 80
    model = Model.fit(default_network(), x[:300], y[:300], labels=True, threads=1)
    assert len(model) == 300
    probabilities = model.predict(x[300:]).class_probabilities
    assert (probabilities.argmax(1) == y[300:]).mean() > 0.95
    assert -np.log(probabilities[np.arange(700), y[300:]]).mean() < 0.15
    others = model.leave_one_out()
    assert others.residuals.shape == (300, 1)


def test_every_row_twice_with_half_its_weight_changes_nothing():
    random = np.random.default_rng(1)
    x, test = random.normal(size=(40, 3)), random.normal(size=(5, 3))
    y = np.sin(2 * x[:, 0]) + 0.3 * random.normal(size=40)
    for targets, options in ((y, {}), (y > 0, {"labels": True})):
        one = Model.fit(network(), x, targets, **options)
        two = Model.fit(network(), np.vstack([x, x]), np.concatenate([targets, targets]), weights=np.full(80, 0.5), **options)
        np.testing.assert_allclose(two.regulariser, one.regulariser, rtol=1e-12)
        np.testing.assert_allclose(two.amplitude, one.amplitude, rtol=1e-9)
        first, second = one.predict(test), two.predict(test)
        np.testing.assert_allclose(second.mean, first.mean, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(second.standard_deviation, first.standard_deviation, rtol=1e-7)
        assert first.law == second.law
        if options:
            np.testing.assert_allclose(second.class_probabilities, first.class_probabilities, atol=1e-6)


def test_groups_are_left_out_together():
    from widelimit.sklearn import WideNetworkClassifier, WideNetworkRegressor

    random = np.random.default_rng(2)
    people = random.normal(size=(20, 3))
    x = np.repeat(people, 6, axis=0) + 0.01 * random.normal(size=(120, 3))
    y = np.repeat(random.normal(size=20), 6) + 0.01 * random.normal(size=120)
    groups = np.repeat([f"person {k}" for k in range(20)], 6)
    alone, together = Model.fit(network(), x, y), Model.fit(network(), x, y, groups=groups)
    # What a person's other rows give away says nothing of a new person.
    assert together.regulariser[0] > 10 * alone.regulariser[0]
    assert together.leave_one_out().mean_squared_error > 2 * alone.leave_one_out().mean_squared_error
    assert WideNetworkRegressor(network()).fit(x, y, groups=groups).regularizer_ == together.regulariser[0]
    found = WideNetworkClassifier(network()).fit(x, y > 0, groups=groups).model_
    assert found.regulariser[0] == Model.fit(network(), x, y > 0, labels=True, groups=groups).regulariser[0]
    with pytest.raises(widelimit.ArgumentError, match="groups: expected one for each of 120 training inputs, got 2"):
        Model.fit(network(), x, y, groups=[1, 2])
    with pytest.raises(widelimit.ArgumentError, match="groups: cg leaves no rows out"):
        Model.fit(network(), x, y, groups=groups, solver="cg", regulariser=0.1)


def _warnings_of(*arguments, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Model.fit(network(), *arguments, threads=1, **options)
    return [str(warning.message) for warning in caught]


def test_what_is_suspicious_about_a_table_is_a_warning_each():
    random = np.random.default_rng(4)
    x = random.normal(size=(40, 3))
    y = x[:, 0] + 0.1 * random.normal(size=40)
    assert _warnings_of(x, y) == []
    raw = x * [1, 1e5, 10]
    assert _warnings_of(raw, y) == [f"x: deviations from {x[:, 0].std():.3g} (column 0 (from 0)) to {raw[:, 1].std():.3g} (column 1 (from 0)), "
                                    "and a network weighs columns by their size: preprocessing='channel' of Model.fit, or StandardScaler, "
                                    "gives all the same"]
    assert _warnings_of(raw, y, preprocessing="channel") == []
    rows = np.column_stack([x, random.permutation(40) + 100])
    said = _warnings_of(rows, y, columns=["a", "b", "c", "row"], preprocessing="channel")
    assert said == ["x: whole numbers that differ in every row, as numbers of rows do: row; if they say nothing else, leave them out"]
    said = _warnings_of(np.column_stack([x, y]), y)
    assert said == ["x: the target itself, in all rows: column 3 (from 0); unless it is known beforehand, leave it out"]
    labels = np.where(y > 0, "yes", np.where(y < -0.5, "YES", "no"))
    codes = np.where(y > 0, 1.0, np.where(y < -0.5, 2.0, 3.0))
    said = _warnings_of(np.column_stack([x, codes]), labels, labels=True)
    assert said == ["y: classes that differ by capitals or blanks only: ['YES', 'yes']; if they are the same, write them so",
                    "x: the target itself, in all rows: column 3 (from 0); unless it is known beforehand, leave it out"]
    # A class more is not told by it.
    assert len(_warnings_of(np.column_stack([x, codes > 1]), labels, labels=True)) == 1
