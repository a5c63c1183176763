"""Arrays of nothing: what they mean, or an error that says what was expected."""

import numpy as np
import pytest
import widelimit

pytest.importorskip("sklearn")

from widelimit import Model, Network, layers
from widelimit.sklearn import WideNetworkClassifier


def network():
    return Network([layers.dense(2, 0.1), layers.relu(), layers.dense(1, 0.05)])


def test_nothing_in_the_place_of_numbers_is_told():
    x, none = np.random.default_rng(6).normal(size=(6, 3)), np.zeros((0, 3))
    numbers_model, classes = Model.fit(network(), x, x[:, 0]), Model.fit(network(), x, [0, 1, 2] * 2, labels=True)
    for failing, message in (
            (lambda: Model.fit(network(), none, []), "y: expected a target or more"),
            (lambda: Model.fit(network(), x, []), "y: expected a target or more"),
            (lambda: Model.fit(network(), [], []), "x: expected inputs \\[n, channels\\].*an empty array"),
            (lambda: Model.fit(network(), x, [], labels=True), "y: expected a label for each input"),
            (lambda: Model.fit(network(), x, x[:, 0], weights=[]), "weights: expected a number for each input"),
            (lambda: Model.fit(network(), x, x[:, 0], noise_variance=[]), "noise_variance: expected a number for each input"),
            (lambda: Model.fit(network(), x, x[:, 0], validation=(none, []), criterion="mse"), "validation: expected a target"),
            (lambda: numbers_model.predict([]), "x: expected inputs"),
            (lambda: numbers_model.score(none, []), "score: x: expected an input or more"),
            (lambda: classes.score(none, []), "score: x: expected an input or more"),
            (lambda: classes.score(x, []), "y: expected a label for each input"),
            (lambda: widelimit.predict.gp_inference(np.zeros((0, 0)), np.zeros((0, 1))), "y_train: expected a target or more"),
            (lambda: widelimit.calibration(np.zeros((0, 2)), []), "labels: expected a label or more")):
        with pytest.raises(ValueError, match=message):
            failing()
    assert numbers_model.samples(none, 2).shape == numbers_model.prior_samples(none, 2).shape == (2, 0, 1)
    assert classes.predict(none).class_probabilities.shape == (0, 3)
    with pytest.raises(ValueError, match="the labels of one-hot rows are np.argmax"):
        WideNetworkClassifier().fit(x, np.eye(3, dtype=int)[[0, 1, 2] * 2])
