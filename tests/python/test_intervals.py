"""Intervals of predictions: Student's t distribution where the amplitude was fitted."""

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("sklearn")

from widelimit import ArgumentError, Model, Network, layers
from widelimit.sklearn import WideNetworkRegressor, default_network


def network():
    return Network([layers.dense(2, 0.1), layers.relu(), layers.dense(1, 0.05)])


def test_observations_of_few_rows_have_students_distribution():
    x = np.random.default_rng(3).normal(size=(12, 2))
    y, test = np.stack([x[:, 0] + x[:, 1]**2, np.sin(x[:, 0])], 1), x[:3] + 0.1
    model = Model.fit(network(), x, y)
    found = model.predict(test)
    assert found.law.degrees_of_freedom == 11 and found.law.scale == pytest.approx(np.sqrt(12 / 11))
    deviations = np.sqrt(found.standard_deviation**2 + found.noise_variance)
    low, high = found.intervals(0.9)
    expected = stats.t.ppf(0.95, 11) * np.sqrt(12 / 11) * deviations
    np.testing.assert_allclose(high - found.mean, expected, rtol=1e-12)
    np.testing.assert_allclose(found.mean - low, expected, rtol=1e-12)
    assert Model.fit(network(), x, y, targets_as_they_are=True).predict(test).law == (12, 1, False)
    for given in (Model.fit(network(), x, y, amplitude=2.0), model.with_amplitude(2.0), Model.fit(network(), x, y, noise_variance=0.1)):
        assert given.predict(test).law == (np.inf, 1, False)
        np.testing.assert_allclose(given.predict(test).law.half_width(0.95), stats.norm.ppf(0.975), rtol=1e-12)
    assert model.predict(test, batch_size=2).law == found.law
    with pytest.raises(ArgumentError, match="a probability between 0 and 1"):
        found.intervals(1)


def test_the_estimators_intervals_are_those_of_the_model():
    x = np.random.default_rng(4).normal(size=(10, 2))
    y = x[:, 0] - x[:, 1]**2
    theirs = WideNetworkRegressor(default_network(), regularizer=1e-2).fit(x, y)
    mean, deviation = theirs.predict(x + 0.2, return_std=True)
    ours = Model.fit(default_network(), x, y, regulariser=1e-2).predict(x + 0.2)
    np.testing.assert_allclose(mean + 1.959963984540054 * deviation, ours.intervals(0.95)[1][:, 0], rtol=1e-9)


def test_densities_and_intervals_of_logarithms_are_those_of_scipy():
    random = np.random.default_rng(5)
    x = random.normal(size=(30, 2))
    y = np.exp(np.stack([5 + x[:, 0] + 0.2 * random.normal(size=30), x[:, 1]**2], 1))
    found = Model.fit(network(), x[:24], y[:24], target_transform="log").predict(x[24:])
    logs = Model.fit(network(), x[:24], np.log(y[:24])).predict(x[24:])
    law = stats.t(logs.law.degrees_of_freedom, loc=logs.mean, scale=logs.law.scale * np.sqrt(logs.standard_deviation**2 + logs.noise_variance))
    assert found.law.of_logarithms and found.law[:2] == logs.law[:2]
    np.testing.assert_allclose(found.log_density(y[24:]), law.logpdf(np.log(y[24:])) - np.log(y[24:]), rtol=1e-10)
    np.testing.assert_allclose(found.intervals(0.8), np.exp([law.ppf(0.1), law.ppf(0.9)]), rtol=1e-10)
    np.testing.assert_allclose(logs.log_density(np.log(y[24:])), law.logpdf(np.log(y[24:])), rtol=1e-10)
    np.testing.assert_allclose(logs.observation_variance, logs.standard_deviation**2 + logs.noise_variance, rtol=1e-14)
    assert (found.log_density(np.zeros_like(y[24:])) == -np.inf).all()
    with pytest.raises(ArgumentError, match=r"y: expected observations of shape \(6, 2\), got \(3,\)"):
        found.log_density(np.ones(3))


def test_validation_targets_without_logarithms_keep_auto_from_them():
    random = np.random.default_rng(6)
    x = random.normal(size=(60, 2))
    y = np.exp(3 * x[:, 0] + 0.3 * random.normal(size=60))
    held = (x[:5], np.array([1.0, 2.0, 0.0, 1.0, 3.0]))
    assert Model.fit("auto", x, y).automatic["targets"] == "logarithms"
    assert Model.fit("auto", x, y, validation=held).automatic["targets"] == "as they are"
    with pytest.raises(ArgumentError, match="validation target 2 .* is 0"):
        Model.fit("auto", x, y, validation=held, target_transform="log")


def test_the_estimators_deviations_of_logarithms_are_of_their_intervals():
    random = np.random.default_rng(7)
    x = random.normal(size=(40, 2))
    y = np.exp(x[:, 0] + 0.3 * random.normal(size=40))
    theirs = WideNetworkRegressor(default_network(), target_transform="log").fit(x, y)
    mean, deviation = theirs.predict(x[:5], return_std=True)
    found = theirs.model_.predict(x[:5])
    np.testing.assert_allclose(mean, found.mean[:, 0])
    low, high = found.intervals(0.95)
    np.testing.assert_allclose(deviation, (high - low)[:, 0] / (2 * stats.norm.ppf(0.975)), rtol=1e-12)
    assert theirs.get_params()["target_transform"] == "log" and theirs.predict(x[:5]).min() > 0
