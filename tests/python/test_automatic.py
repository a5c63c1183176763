"""Networks that the evidence chooses."""

import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn")

from widelimit import Model, Network
from widelimit.sklearn import WideNetworkClassifier, WideNetworkRegressor, default_network


def test_the_evidence_chooses_a_network():
    random = np.random.default_rng(5)
    x = random.normal(size=(60, 2))
    smooth, rough = np.sin(2 * x[:, 0]) + x[:, 1]**2, np.abs(x[:, 0]) + np.maximum(x[:, 1], 0) - 2 * np.abs(x.sum(1))
    for y in (smooth, rough):
        chosen = Model.fit("auto", x, y)
        evidences = []
        distances = np.sqrt(((x[:, None] - x)**2).mean(2)[np.triu_indices(60, 1)])
        for factor in (None, 1, 2, 4):
            named = default_network() if factor is None else Network.named(
                "rbf", {"axes": 0, "length": factor * float(np.sort(distances)[len(distances) // 2])})
            evidences.append(Model.fit(named, x, y).log_marginal_likelihood)
        assert chosen.log_marginal_likelihood == pytest.approx(max(evidences), rel=1e-9)
        estimator = WideNetworkRegressor("auto").fit(x, y)
        assert estimator.log_marginal_likelihood_ >= WideNetworkRegressor().fit(x, y).log_marginal_likelihood_
        assert estimator.score(x, y) > 0.9
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(estimator)).predict(x), estimator.predict(x))
    assert WideNetworkClassifier("auto").fit(x, smooth > 0.5).score(x, smooth > 0.5) > 0.9
    assert len(Model.fit("auto", x, smooth > 0.5, labels=True, preprocessing="channel").class_names) == 2
    for failing, message in ((lambda: Model.fit("best", x, smooth), "network: expected a Network or 'auto', got 'best'"),
                             (lambda: Model.fit("auto", x.reshape(-1, 2, 1), smooth), "'auto' is for inputs \\[n, channels\\]"),
                             (lambda: Model.fit("auto", x, smooth, kind="trained"), "compares evidences"),
                             (lambda: Model.fit("auto", x, smooth, solver="cg", regulariser=0.1), "compares evidences, which solver='cg'"),
                             (lambda: WideNetworkRegressor("best").fit(x, smooth), "network: expected a Network or 'auto'")):
        with pytest.raises(ValueError, match=message):
            failing()
