"""Networks that are chosen by targets left out."""

import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn")

from widelimit import Model
from widelimit.sklearn import WideNetworkClassifier, WideNetworkRegressor, default_network


def test_targets_left_out_choose_a_network(tmp_path):
    random = np.random.default_rng(5)
    x = random.normal(size=(80, 3))
    smooth, line = np.sin(2 * x[:, 0]) + x[:, 1]**2 + 0.05 * random.normal(size=80), x @ [1, -2, 0.5] + 0.1 * random.normal(size=80)
    model = Model.fit("auto", x, smooth)
    found = model.automatic
    scores = [trial["score"] for trial in found["trials"]]
    assert len(scores) == 18 and found["rows"] == 80 and found["network"].startswith("rbf")
    chosen = min(found["trials"], key=lambda trial: trial["score"])
    assert (found["network"], found["inputs"]) == (chosen["network"], chosen["inputs"])
    assert Model.fit("auto", x, line).automatic["inputs"] == "clipped"
    assert Model.fit(default_network(), x, line).automatic is None
    # The tails are those of the targets left out, and the folder and pickles have all of it.
    model.save(tmp_path / "model")
    for same in (Model.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(same.predict(100 * x).mean, model.predict(100 * x).mean)
        assert same.law == model.law
    # Beyond the range of the training inputs predictions stay what they are at its end.
    np.testing.assert_array_equal(model.predict(100 * x.max(0)[None]).mean, model.predict(x.max(0)[None]).mean)
    estimators = WideNetworkRegressor().fit(x, smooth), WideNetworkRegressor("auto").fit(x, smooth)
    for estimator in estimators:
        assert estimator.automatic_ == found
        np.testing.assert_array_equal(estimator.predict(x), model.predict(x).mean[:, 0])
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(estimator)).predict(x), estimator.predict(x))
    assert WideNetworkClassifier().fit(x, smooth > 0.5).score(x, smooth > 0.5) > 0.9
    assert len(Model.fit("auto", x, smooth > 0.5, labels=True, preprocessing="channel").class_names) == 2
    # What solves, and which kernel predicts, are free: the choice is one of its own.
    assert len(Model.fit("auto", x, line, solver="cg", regulariser=0.1).automatic["trials"]) == 18
    assert Model.fit("auto", x, line, kind="trained").automatic["trials"]
    assert "fewer than 30" in Model.fit("auto", x[:3], smooth[:3]).automatic["trials"][0]["unsolved"]
    for failing, message in ((lambda: Model.fit("best", x, smooth), "network: expected a Network or 'auto', got 'best'"),
                             (lambda: Model.fit("auto", x.reshape(-1, 3, 1), smooth), "'auto' is for inputs \\[n, channels\\]"),
                             (lambda: WideNetworkRegressor("best").fit(x, smooth), "network: expected a Network or 'auto'")):
        with pytest.raises(ValueError, match=message):
            failing()
