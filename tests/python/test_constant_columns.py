"""Columns that all training inputs have in common change no prediction, and are said."""

import pickle
import warnings

import numpy as np
import pytest

import widelimit
from widelimit import Model, Network

NETWORK = Network.named("fcn", {"axes": 0, "depth": 1})
NEW = "constant in the training data: new values there change no prediction"


def with_constants(x):
    """The same inputs with two columns of one number each, in places 1 and 4."""
    return np.insert(np.insert(x, 1, 5.0, axis=1), 4, -0.25, axis=1)


@pytest.fixture
def data(random):
    x = random.normal(size=(60, 3))
    return x, np.stack([np.sin(x[:, 0]) + 0.1 * x[:, 1], x[:, 2] ** 2], axis=1), random.normal(size=(7, 3))


def fitted(x, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Model.fit(options.pop("network", NETWORK), x, y, **options)


@pytest.mark.parametrize("options", [{}, {"kind": "trained"}, {"preprocessing": "channel"}, {"network": "auto"}, {"relevance": True},
                                     {"learn_features": 1}, {"relevance": True, "network": "auto"}, {"solver": "cg", "regulariser": 0.1}],
                         ids=lambda options: " ".join(map(str, options)) or "none")
def test_a_model_is_the_one_without_them(data, tmp_path, options):
    x, y, new = data
    without, model = fitted(x, y, **options), fitted(with_constants(x), y, **options)
    other = with_constants(new)
    other[:, 1] = 5000
    model.save(tmp_path / "model")
    for one in (model, Model.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_allclose(one.mean(with_constants(new)), without.mean(new), rtol=0, atol=1e-10)
        with pytest.warns(UserWarning, match=f"x: column 1 is {NEW}"):
            found = one.predict(other)
        expected = without.predict(new)
        np.testing.assert_allclose(found.mean, expected.mean, rtol=0, atol=1e-10)
        np.testing.assert_allclose(found.standard_deviation, expected.standard_deviation, rtol=0, atol=1e-10)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            one.predict(with_constants(new))
    if options.get("relevance"):
        scales = np.asarray(model.learned["factors"])
        assert scales.shape == (5,) and scales[1] == scales[4] == 0
        np.testing.assert_allclose(np.delete(scales, [1, 4]), without.learned["factors"], rtol=1e-10)
    if options.get("learn_features"):
        assert model.feature_map is None or model.feature_map.shape in ((5,), (5, 5))


def test_what_is_left_out_is_said_once(data):
    x, y, _ = data
    with pytest.warns(UserWarning, match="^x: columns 1, 4 are constant in the training data and left out$") as said:
        model = Model.fit(NETWORK, with_constants(x), y)
    assert len(said) == 1
    np.testing.assert_array_equal(model.feature_map, [1, 0, 1, 1, 0])


def test_they_are_left_out_of_validation_selection_and_groups_of_channels(data):
    x, y, new = data
    validation, options = (new, y[:7]), {"criterion": "mse"}
    without = fitted(x, y, validation=validation, **options)
    model = fitted(with_constants(x), y, validation=(with_constants(new), y[:7]), **options)
    assert model.regulariser == pytest.approx(without.regulariser, rel=1e-12)
    chosen = [Model.select(NETWORK, inputs, y[:, :1]).scores for inputs in (x, with_constants(x))]
    assert [row["loo"] for row in chosen[1]] == pytest.approx([row["loo"] for row in chosen[0]], rel=1e-10)
    groups = fitted(x, y, relevance=True, channel_groups=[0, 1, 1]).learned["factors"]
    found = fitted(with_constants(x), y, relevance=True, channel_groups=[1, 0, 2, 2, 3]).learned["factors"]
    np.testing.assert_allclose(np.delete(found, [1, 4]), groups, rtol=1e-10)


def test_inputs_of_which_nothing_varies_stay_as_they_are(data):
    _, y, _ = data
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = Model.fit(NETWORK, np.ones((60, 3)), y, regulariser=0.1, amplitude=1.0)
    assert model.feature_map is None


def test_a_frame_says_their_names(data):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    x, y, new = data
    frame = pandas.DataFrame(with_constants(x), columns=["a", "unit", "b", "c", "site"])
    with pytest.warns(UserWarning, match="columns 'unit', 'site' are constant in the training data and left out"):
        model = Model.fit(NETWORK, frame, y)
    other = pandas.DataFrame(with_constants(new), columns=frame.columns)
    other["site"] = 7.0
    with pytest.warns(UserWarning, match=f"x: column 'site' is {NEW}"):
        found = model.mean(other[["site", "c", "b", "unit", "a"]])
    np.testing.assert_allclose(found, fitted(x, y).mean(new), rtol=0, atol=1e-10)


@pytest.mark.parametrize("kernel", ["nngp", "ntk"])
def test_estimators_are_those_without_them(data, kernel):
    pytest.importorskip("sklearn")
    from widelimit.sklearn import WideNetworkClassifier, WideNetworkRegressor
    x, y, new = data
    with pytest.warns(UserWarning, match="columns 1, 4 are constant in the training data and left out"):
        model = WideNetworkRegressor(kernel=kernel).fit(with_constants(x), y)
    without = WideNetworkRegressor(kernel=kernel).fit(x, y)
    for one, other in zip(model.predict(with_constants(new), return_std=True), without.predict(new, return_std=True)):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-10)
    with pytest.warns(UserWarning, match="are constant"):
        classes = WideNetworkClassifier(kernel=kernel).fit(with_constants(x), y[:, 0] > 0)
    np.testing.assert_allclose(classes.predict_proba(with_constants(new)),
                               WideNetworkClassifier(kernel=kernel).fit(x, y[:, 0] > 0).predict_proba(new), rtol=0, atol=1e-10)


def test_new_inputs_have_as_many_columns_as_the_training_inputs(data):
    x, y, new = data
    model = fitted(with_constants(x), y)
    for other in (new, new[:, :1]):
        with pytest.raises(widelimit.ArgumentError, match="expected inputs of 5 channels, got"):
            model.mean(other)
