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
