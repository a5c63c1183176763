"""Which inputs matter, known noise and weights of rows, from Python."""

import numpy as np
import pytest
import widelimit
from widelimit import layers


@pytest.fixture
def table():
    random = np.random.default_rng(0)
    x = random.normal(size=(90, 6))
    return x, 10 + 3 * np.sin(2 * x[:, 0]) + 2 * x[:, 1] + 0.2 * random.normal(size=90)


NETWORK = widelimit.Network([layers.dense(2, 0.1), layers.relu(), layers.dense(1, 0.1)])
RADIAL = widelimit.Network([layers.dense(), layers.rbf(0.5)])


def test_relevance_finds_columns_that_matter(table):
    x, y = table
    model = widelimit.Model.fit(NETWORK, x[:60], y[:60], relevance=True)
    plain = widelimit.Model.fit(NETWORK, x[:60], y[:60])
    assert model.learned["kept"] and model.learned["score"] < model.learned["score_without"]
    scales = model.feature_map
    assert scales.shape == (6,) and scales[:2].min() > 3 * scales[2:].max()
    errors = [np.mean((each.mean(x[60:])[:, 0] - y[60:]) ** 2) for each in (model, plain)]
    assert errors[0] < 0.7 * errors[1]
    assert plain.feature_map is None and plain.learned is None


def gaussian(squares):
    """exp(-s / 2), and its slope."""
    kernel = np.exp(-0.5 * squares)
    return kernel, -0.5 * kernel


def laplace(squares):
    """exp(-sqrt(s)), and its slope, which counts as 0 at 0."""
    kernel, roots = np.exp(-np.sqrt(squares)), np.sqrt(np.where(squares > 0, squares, 1))
    return kernel, np.where(squares > 0, -0.5 * kernel / roots, 0)


def numpy_features(x, y, rounds, kernel_of):
    """Recursive feature machines (Radhakrishnan et al. 2024, algorithm 1) of a kernel of squared distances, with regularisers by
    leave-one-out: the metric of every round."""
    count, channels = x.shape
    metric = np.eye(channels)
    for _ in range(rounds):
        yield metric
        differences = x[:, None] - x
        kernel, slopes = kernel_of(np.einsum("ijk,kl,ijl->ij", differences, metric, differences) / channels)
        best = (np.inf, None)
        for eps in 10 ** np.linspace(-7, 2, 19):
            try:
                inverse = np.linalg.inv(kernel + eps * np.eye(count))
                weights = inverse @ y
                amplitude = y @ weights / count
                variances = amplitude / np.diag(inverse)
                residuals = weights / np.diag(inverse)
            except np.linalg.LinAlgError:
                continue
            score = np.mean(0.5 * np.log(2 * np.pi * variances) + 0.5 * residuals**2 / variances)
            if score < best[0]:
                best = (score, weights)
        gradients = 2 * np.einsum("j,ij,ijk->ik", best[1], slopes, differences) @ metric / channels
        metric = gradients.T @ gradients
        metric /= np.diag(metric).mean()
    yield metric


@pytest.mark.parametrize("network, kernel_of", [(RADIAL, gaussian), (widelimit.Network.named("laplace", {"axes": 0, "length": 1}), laplace)])
def test_learned_features_are_those_of_numpy(table, network, kernel_of):
    x, y = table[0][:50, :4], table[1][:50]
    y = (y - y.mean()) / y.std()
    from widelimit import _core
    from widelimit._arrays import batch
    compared = 0
    for rounds in (1, 2, 3):
        _, factors, _, facts = _core.learn_inputs(network, batch(x, np.float64, "x"), np.ascontiguousarray(y[:, None]), False, "nngp", rounds, True, [], False, 0)
        if np.argmin(facts["course"][1:]) + 1 != rounds:
            continue
        compared += 1
        assert np.allclose(factors @ factors.T, list(numpy_features(x, y, rounds, kernel_of))[rounds], atol=1e-6)
    assert compared > 0


def test_weights_of_two_are_two_rows(table):
    x, y = table[0][:30], table[1][:30]
    weights = np.where(np.arange(30) < 3, 2.0, 1.0)
    weighted = widelimit.Model.fit(NETWORK, x, y - 10, noise_variance=0.3, weights=weights, targets_as_they_are=True)
    repeated = widelimit.Model.fit(NETWORK, np.r_[x, x[:3]], np.r_[y, y[:3]] - 10, noise_variance=0.3, targets_as_they_are=True)
    new = table[0][30:40]
    assert np.allclose(weighted.mean(new), repeated.mean(new), rtol=1e-8)


def test_known_noise_is_that_of_numpy(table):
    x, y = table[0][:30], table[1][:30]
    noise = np.linspace(0.01, 2, 30)
    model = widelimit.Model.fit(NETWORK, x, y, noise_variance=noise)
    amplitude = model.amplitude[0] * y.var()
    new = table[0][30:40]
    kernel = amplitude * widelimit.gram(NETWORK, x).nngp + np.diag(noise)
    expected = y.mean() + amplitude * widelimit.gram(NETWORK, new, x).nngp @ np.linalg.solve(kernel, y - y.mean())
    assert np.allclose(model.mean(new)[:, 0], expected, rtol=1e-8)
    with pytest.raises(widelimit.ArgumentError, match="noise variances for each of 30 training inputs, got 29"):
        widelimit.Model.fit(NETWORK, x, y, noise_variance=noise[1:])


def test_estimators_learn_and_weigh(table):
    pytest.importorskip("sklearn")
    import pickle

    from widelimit.sklearn import WideNetworkClassifier, WideNetworkRegressor
    x, y = table
    learned = WideNetworkRegressor(NETWORK, relevance=True).fit(x[:60], y[:60])
    assert learned.learned_["kept"] and learned.feature_map_.shape == (6,)
    assert learned.score(x[60:], y[60:]) > WideNetworkRegressor(NETWORK).fit(x[:60], y[:60]).score(x[60:], y[60:])
    assert np.array_equal(pickle.loads(pickle.dumps(learned)).predict(x), learned.predict(x))
    features = WideNetworkRegressor(NETWORK, learn_features=3).fit(x[:60], y[:60])
    assert features.feature_map_ is None or features.feature_map_.shape == (6, 6)
    classes = WideNetworkClassifier(NETWORK, relevance=True).fit(x[:60], y[:60] > 10)
    assert classes.score(x[60:], y[60:] > 10) > 0.7
    # An almost infinite weight pins the prediction to its row.
    weights = np.where(np.arange(60) == 7, 1e6, 1.0)
    pinned = WideNetworkRegressor(NETWORK, regularizer=1e-3).fit(x[:60], y[:60] + 5 * (np.arange(60) == 7), sample_weight=weights)
    assert pinned.predict(x[7:8])[0] == pytest.approx(y[7] + 5, abs=0.1)
    with pytest.raises(ValueError, match="both"):
        WideNetworkRegressor(NETWORK, relevance=True, learn_features=2).fit(x, y)


def test_estimators_count_rows_by_their_weight(table):
    """A row of weight k is k rows, and one of weight 0 none: means, deviations, evidence and the regularizer."""
    pytest.importorskip("sklearn")
    from widelimit.sklearn import WideNetworkRegressor
    x, y = table[0][:40], table[1][:40]
    weights = np.arange(40) % 3
    counted = WideNetworkRegressor(NETWORK).fit(x, y, sample_weight=weights)
    repeated = WideNetworkRegressor(NETWORK).fit(np.repeat(x, weights, axis=0), np.repeat(y, weights))
    assert counted.regularizer_ == repeated.regularizer_
    assert counted.log_marginal_likelihood_ == pytest.approx(repeated.log_marginal_likelihood_, rel=1e-9)
    for found, expected in zip(counted.predict(table[0][40:], return_std=True), repeated.predict(table[0][40:], return_std=True)):
        assert np.allclose(found, expected, rtol=1e-7)


def test_estimators_know_noise(table):
    """As Model does; and pickled."""
    pytest.importorskip("sklearn")
    import pickle

    from widelimit.sklearn import WideNetworkRegressor
    x, y, noise = table[0][:40], table[1][:40], np.linspace(0.01, 2, 40)
    y = np.stack([y, y**2], axis=1)
    found, model = WideNetworkRegressor(NETWORK).fit(x, y, noise_variance=noise), widelimit.Model.fit(NETWORK, x, y, noise_variance=noise)
    assert np.array_equal(found.predict(table[0][40:]), model.mean(table[0][40:]))
    assert np.array_equal(found.model_.amplitude, model.amplitude)
    assert np.array_equal(pickle.loads(pickle.dumps(found)).predict(x), found.predict(x))
    with pytest.raises(ValueError, match="noise variances for each of 40 training inputs, got 39"):
        WideNetworkRegressor(NETWORK).fit(x, y, noise_variance=noise[1:])
    with pytest.raises(ValueError, match="got both"):
        WideNetworkRegressor(NETWORK).fit(x, y, noise_variance=noise, sample_weight=noise)


def test_classes_of_weighted_rows_are_calibrated_by_single_observations(table):
    """By numpy: each row left out, and an observation there whose noise is that of weight 1. The estimator has the same."""
    pytest.importorskip("sklearn")
    from widelimit.sklearn import WideNetworkClassifier
    x, labels, new = table[0][:40], (table[1][:40] > 10).astype(int), table[0][40:50]
    weights = 0.5 + np.random.default_rng(3).random(40) * 3
    model = widelimit.Model.fit(NETWORK, x, labels, labels=True, weights=weights, regulariser=0.3)
    kernel, targets = widelimit.gram(NETWORK, x).nngp, labels - 0.5
    noise, amplitude = 0.3 * np.mean(weights * np.diag(kernel)), model.amplitude[0]
    mean, variances = np.empty((40, 1)), np.empty(40)
    for i in range(40):
        others = np.arange(40) != i
        solved = np.linalg.solve(kernel[np.ix_(others, others)] + np.diag(noise / weights[others]),
                                 np.stack([targets[others], kernel[others, i]], axis=1))
        mean[i] = kernel[i, others] @ solved[:, 0]
        variances[i] = amplitude * (kernel[i, i] - kernel[i, others] @ solved[:, 1] + noise)
    calibration = widelimit.fit_class_calibration(mean, variances, labels)
    found = model.predict(new)
    expected = calibration.probabilities(found.mean, found.standard_deviation[:, 0]**2 + found.noise_variance[0])
    assert np.allclose(found.class_probabilities, expected, atol=1e-6)
    estimator = WideNetworkClassifier(NETWORK, regularizer=0.3).fit(x, labels, sample_weight=weights)
    assert np.array_equal(estimator.predict_proba(new), found.class_probabilities)
