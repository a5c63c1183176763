"""Estimators for scikit-learn."""

import numpy as np
import pytest

pytest.importorskip("sklearn")
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.utils.estimator_checks import check_estimator

import widelimit
from widelimit import NumericalError
from widelimit.sklearn import (NetworkKernel, WideNetworkClassifier, WideNetworkRegressor, default_network)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("options", [{"kernel": "nngp"}, {"kernel": "ntk"}, {"kernel": "ntk", "precision": "float"}])
@pytest.mark.parametrize("kind", [WideNetworkRegressor, WideNetworkClassifier])
def test_estimators_obey_scikit_learns_rules(kind, options):
    failed = [result for result in check_estimator(kind(**options), on_fail=None) if result["status"] == "failed"]
    assert failed == []


def test_candidates_below_the_rounding_errors_are_passed_over(random):
    x = random.normal(size=(300, 1))
    y = np.sin(x[:, 0])
    network = default_network()
    model = WideNetworkRegressor(network, precision="float", regularizer=(1e-12, 1e-2)).fit(x, y)
    assert model.regularizer_ == 1e-2
    np.testing.assert_allclose(model.predict(x[:3]), WideNetworkRegressor(network, precision="float", regularizer=1e-2).fit(x, y).predict(x[:3]), rtol=1e-12)
    with pytest.raises(NumericalError, match="no value of the grid lifts the 300 x 300 Gram matrix above its own errors"):
        WideNetworkRegressor(network, precision="float", regularizer=[1e-12]).fit(x, y)


def test_they_choose_as_model_does(random):
    """Among Model's candidates, by its criterion."""
    x, y = random.normal(size=(30, 2)), random.normal(size=30)
    for estimator, model in ((WideNetworkRegressor().fit(x, y), widelimit.Model.fit("auto", x, y)),
                             (WideNetworkClassifier(kernel="ntk").fit(x, y > 0), widelimit.Model.fit("auto", x, y > 0, labels=True, kind="trained"))):
        found, expected = ([(row["regulariser"], row["loo"]) for row in each.selection.scores] for each in (estimator.model_, model))
        assert found == expected and len(found) == 19 and estimator.regularizer_ == model.selection.best
    assert WideNetworkRegressor().fit(x, y).log_marginal_likelihood_ == widelimit.Model.fit("auto", x, y).log_marginal_likelihood


@pytest.mark.parametrize("regularizer", [(), [], "abc", 0, -1, np.nan, [1e-3, np.inf], [[1e-3]], [None, 1]])
def test_a_regularizer_that_is_none_is_named(random, regularizer):
    x = random.normal(size=(5, 2))
    for kind, y in ((WideNetworkRegressor, x[:, 0]), (WideNetworkClassifier, x[:, 0] > 0)):
        with pytest.raises(ValueError, match="^regularizer: expected a positive, finite number or a sequence of such"):
            kind(regularizer=regularizer).fit(x, y)


def test_equal_targets_are_predicted_everywhere(random):
    x = random.normal(size=(6, 2))
    mean, deviation = WideNetworkRegressor().fit(x[:5], np.full(5, 3.0)).predict(x[5:], return_std=True)
    assert mean[0] == 3 and deviation[0] == 0


def test_outputs_have_deviations_of_their_own(random):
    x, test = random.normal(size=(80, 3)), random.normal(size=(6, 3))
    y = np.stack([np.sin(x[:, 0]) + 0.05 * random.normal(size=80), 500 * random.normal(size=80)], axis=1)
    model = WideNetworkRegressor(default_network()).fit(x, y)
    mean, deviation = model.predict(test, return_std=True)
    alone = WideNetworkRegressor(default_network()).fit(x, y[:, 0])
    alone_mean, alone_deviation = alone.predict(test, return_std=True)
    np.testing.assert_allclose(mean[:, 0], alone_mean, rtol=1e-8)
    np.testing.assert_allclose(deviation[:, 0], alone_deviation, rtol=1e-8)
    assert (deviation[:, 1] > 300).all()
    _, covariance = model.predict(test, return_cov=True)
    assert covariance.shape == (6, 6, 2)
    np.testing.assert_allclose(np.sqrt(np.diagonal(covariance).T), deviation, rtol=1e-8)
    with pytest.raises(RuntimeError, match="return_std or return_cov, got both"):
        model.predict(test, return_std=True, return_cov=True)


def test_the_classifier_is_the_model(random):
    x, test = random.normal(size=(40, 2)), random.normal(size=(6, 2))
    for count in (2, 3):
        y = random.integers(0, count, size=40)
        ours = widelimit.Model.fit("auto", x, y, labels=True, regulariser=0.1)
        theirs = WideNetworkClassifier(regularizer=0.1).fit(x, y)
        np.testing.assert_allclose(theirs.predict_proba(test), ours.predict(test).class_probabilities, atol=1e-9)


def test_a_network_kernel_in_their_regressor(random):
    x, test = random.normal(size=(12, 3)), random.normal(size=(4, 3))
    y = np.sin(x[:, 0])
    theirs = GaussianProcessRegressor(kernel=NetworkKernel(), alpha=0.01, optimizer=None).fit(x, y)
    mean, deviation = theirs.predict(test, return_std=True)
    kernel = NetworkKernel()
    inverse = np.linalg.inv(kernel(x) + 0.01 * np.eye(12))
    np.testing.assert_allclose(mean, kernel(test, x) @ inverse @ y, rtol=1e-8)
    variance = kernel.diag(test) - np.einsum("ij,jk,ik->i", kernel(test, x), inverse, kernel(test, x))
    np.testing.assert_allclose(deviation, np.sqrt(variance), rtol=1e-6)


def test_classes_and_probabilities(random):
    x = random.normal(size=(60, 2))
    y = np.array(["in", "out"])[(np.linalg.norm(x, axis=1) > 1.2).astype(int)]
    model = WideNetworkClassifier().fit(x, y)
    test = random.normal(size=(200, 2))
    expected = np.array(["in", "out"])[(np.linalg.norm(test, axis=1) > 1.2).astype(int)]
    assert model.score(test, expected) > 0.85
    probabilities = model.predict_proba(test)
    np.testing.assert_allclose(probabilities.sum(1), 1)
    assert np.mean(probabilities.max(1)[model.predict(test) != expected]) < np.mean(probabilities.max(1))


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("kernel", ["nngp", "ntk"])
def test_probabilities_agree_with_what_is_predicted(random, count, kernel):
    x = random.normal(size=(80, 2))
    y = random.integers(0, count, size=80)
    model = WideNetworkClassifier(kernel=kernel, regularizer=0.1).fit(x, y)
    test = np.concatenate([x, random.normal(size=(300, 2))])
    probabilities, scores = model.predict_proba(test), model.decision_function(test)
    np.testing.assert_array_equal(model.classes_[probabilities.argmax(1)], model.predict(test))
    if count == 2:
        order = np.argsort(scores)
        assert (np.diff(probabilities[order, 1]) >= 0).all()
    else:
        np.testing.assert_array_equal(probabilities.argsort(1), scores.argsort(1))


def test_probabilities_of_rare_classes_are_their_rates(random):
    x, y = random.normal(size=(300, 3)), np.repeat([0, 1, 2], [270, 24, 6])
    found = WideNetworkClassifier().fit(x, y).predict_proba(random.normal(size=(500, 3))).mean(0)
    np.testing.assert_allclose(found, [0.9, 0.08, 0.02], rtol=0.25)


def test_few_rows_a_class_are_predicted_as_well_as_by_the_largest_mean():
    """Shifts of classes are fitted to labels left out: to a few rows of each of ten classes they would fit chance."""
    from sklearn.datasets import load_digits
    x, y = load_digits(return_X_y=True)
    gained = []
    for seed in range(16):
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = order[:30], order[30:530]
        model = WideNetworkClassifier().fit(x[train], y[train])
        largest_mean = model.classes_[model.model_.mean(x[test]).argmax(1)]
        gained.append((model.predict(x[test]) == y[test]).mean() - (largest_mean == y[test]).mean())
    assert np.mean(gained) >= -0.001


def test_one_row_tells_nothing_and_equal_targets_are_said(random):
    x = random.normal(size=(6, 2))
    with pytest.raises(ValueError, match="expected two rows or more, got 1 sample"):
        WideNetworkRegressor().fit(x[:1], [1.0])
    with pytest.warns(RuntimeWarning, match=r"targets of outputs \[1\] are all equal"):
        model = WideNetworkRegressor().fit(x, np.stack([x[:, 0], np.full(6, 3.0)], 1))
    mean, deviation = model.predict(random.normal(size=(3, 2)), return_std=True)
    np.testing.assert_array_equal((mean[:, 1], deviation[:, 1]), (np.full(3, 3.0), np.zeros(3)))
    assert (deviation[:, 0] > 0).all()


def test_targets_of_any_size_are_predicted_alike(random):
    x, y, test = random.normal(size=(20, 2)), random.normal(size=20), random.normal(size=(4, 2))
    mean, deviation = WideNetworkRegressor().fit(x, y).predict(test, return_std=True)
    for size in (1e-140, 1e140):
        found = WideNetworkRegressor().fit(x, size * y).predict(test, return_std=True)
        np.testing.assert_allclose(found[0] / size, mean, rtol=1e-9)
        np.testing.assert_allclose(found[1] / size, deviation, rtol=1e-9)
    for size in (1e-200, 1e250):  # Whose variances double does not hold.
        with pytest.raises(ValueError, match="whose square leaves the range of double"):
            WideNetworkRegressor().fit(x, size * y)


def test_intervals_of_few_rows_cover(random):
    """95 % intervals of 6 to 10 rows; a fitted amplitude that is taken as known covers 75 to 89 %."""
    inside = []
    for _ in range(60):
        n = random.integers(6, 11)
        x, test = random.normal(size=(n, 2)), random.normal(size=(40, 2))
        truth = lambda x: x[:, 0] + 0.5 * x[:, 1]
        y, seen = truth(x) + 0.3 * random.normal(size=n), truth(test) + 0.3 * random.normal(size=40)
        mean, deviation = WideNetworkRegressor().fit(x, y).predict(test, return_std=True)
        inside.append(np.mean(np.abs(seen - mean) < 1.96 * deviation))
    assert 0.9 < np.mean(inside) < 0.99


def test_known_noise_is_normal(random):
    """Deviations are roots of the variances, where a fitted amplitude makes them those of Student's t."""
    x = random.normal(size=(5, 2))
    y = 10 * np.sin(x[:, 0]) + random.normal(size=5)
    for noise in (np.full(5, 1.0), 1.0):
        found = WideNetworkRegressor(default_network()).fit(x, y, noise_variance=noise)
        expected = widelimit.Model.fit(default_network(), x, y, noise_variance=np.full(5, 1.0)).predict(x)
        np.testing.assert_allclose(found.predict(x, return_std=True)[1], np.sqrt(expected.standard_deviation**2 + 1)[:, 0], rtol=1e-12)
        np.testing.assert_allclose(np.diag(found.predict(x, return_cov=True)[1]), expected.standard_deviation[:, 0]**2 + 1, rtol=1e-8)
        # What the noise is of the kernel.
        assert found.regularizer_ == pytest.approx(1 / (found.model_.amplitude[0] * y.var() * np.diag(widelimit.gram(default_network(), x).nngp).mean()), rel=1e-9)


def test_classes_that_differ_by_capitals_or_blanks_are_a_warning(random):
    x = random.normal(size=(30, 2))
    labels = np.where(x[:, 0] > 0, "yes", np.where(x[:, 1] > 0, "yes ", "no"))
    with pytest.warns(UserWarning, match=r"classes that differ by capitals or blanks only: \['yes', 'yes '\]"):
        WideNetworkClassifier(default_network(), threads=1).fit(x, labels)


def test_depth_and_variances_of_a_kernel_are_searched(random):
    from sklearn.model_selection import GridSearchCV
    x = random.normal(size=(40, 2))
    y = np.sin(2 * x[:, 0]) * x[:, 1]
    kernel = NetworkKernel(depth=1, weight_variance=1.5, bias_variance=0.1)
    expected = widelimit.gram(default_network(1, 1.5, 0.1), x).nngp
    np.testing.assert_array_equal(kernel(x), expected)
    np.testing.assert_array_equal(NetworkKernel(default_network())(x), NetworkKernel()(x))
    grid = {"kernel__depth": [1, 4], "kernel__weight_variance": [1.0, 2.0], "kernel__bias_variance": [0.0, 0.5]}
    found = GridSearchCV(GaussianProcessRegressor(NetworkKernel(), alpha=1e-3), grid, cv=3, error_score="raise").fit(x, y)
    assert len(set(found.cv_results_["mean_test_score"])) == 8
    assert found.best_estimator_.kernel_.get_params()["depth"] == found.best_params_["kernel__depth"]
    with pytest.raises(ValueError, match="depth, weight_variance and bias_variance are those of network=None"):
        NetworkKernel(default_network(), depth=2)(x)
    with pytest.raises(ValueError, match="depth: expected an integer of at least 0"):
        NetworkKernel(depth=-1)(x)


@pytest.mark.parametrize("kind", [WideNetworkRegressor, WideNetworkClassifier])
def test_estimators_take_images(random, kind):
    images, new = random.normal(size=(30, 6, 6, 2)), random.normal(size=(4, 6, 6, 2))
    y = images.mean((1, 2, 3))
    y = y > 0 if kind is WideNetworkClassifier else y
    network = widelimit.Network.named("conv-gap", {"depth": 1})
    model = kind(network, regularizer=0.1).fit(images, y)
    same = widelimit.Model.fit(network, images, y, labels=kind is WideNetworkClassifier, regulariser=0.1)
    if kind is WideNetworkRegressor:
        np.testing.assert_array_equal(model.predict(new), same.mean(new)[:, 0])
    else:
        np.testing.assert_array_equal(model.predict_proba(new), same.predict(new).class_probabilities)
    with pytest.raises(ValueError, match="network: 'auto' is for inputs"):
        kind().fit(images, y)


def test_missing_targets_are_left_out_of_their_own_output(random):
    x, new = random.normal(size=(40, 2)), random.normal(size=(5, 2))
    y = np.stack([np.sin(x[:, 0]), x[:, 1], x[:, 0] * x[:, 1], x[:, 1] ** 2], axis=1) + 0.01 * random.normal(size=(40, 4))
    missing = np.zeros(y.shape, bool)
    missing[3:9, 0] = missing[3:9, 3] = missing[20:, 2] = True
    options, weights = {"network": default_network(1)}, random.uniform(0.5, 2, size=40)
    model = WideNetworkRegressor(**options).fit(x, np.where(missing, np.nan, y), sample_weight=weights)
    for form in ({}, {"return_std": True}, {"return_cov": True}):
        found = model.predict(new, **form)
        for output in range(4):
            there = ~missing[:, output]
            alone = WideNetworkRegressor(**options).fit(x[there], y[there, output], sample_weight=weights[there]).predict(new, **form)
            for one, other in zip(found if form else [found], alone if form else [alone]):
                np.testing.assert_allclose(one[..., output], other, rtol=1e-8, atol=1e-12)
    assert sorted(outputs.tolist() for outputs, _ in model.parts_) == [[0, 3], [1], [2]]
    assert not hasattr(model.fit(x, y), "parts_")
    with pytest.raises(ValueError, match=r"y: expected two targets or more that are not missing \(NaN\) of each output, got fewer of outputs \[1\]"):
        WideNetworkRegressor(**options).fit(x, np.stack([y[:, 0], np.full(40, np.nan)], axis=1))
    with pytest.raises(ValueError, match="NaN"):
        WideNetworkRegressor(**options).fit(x, np.where(missing[:, 0], np.nan, y[:, 0]))
