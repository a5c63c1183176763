"""Columns of frames are found by their names, in Model, the estimators and the program, whatever library the frame is of."""

import os
import pickle
import subprocess

import numpy as np
import pytest

import widelimit
from widelimit import Model, Network

NETWORK = Network.named("fcn", {"axes": 0, "depth": 1})
NAMES = ["b", "a", "is set"]


def of_pandas(columns):
    return pytest.importorskip("pandas", reason="pandas is not installed").DataFrame(columns)


def of_polars(columns):
    return pytest.importorskip("polars", reason="polars is not installed").DataFrame(columns)


def of_pyarrow(columns):
    return pytest.importorskip("pyarrow", reason="pyarrow is not installed").table(columns)


def of_batch(columns):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    return pyarrow.RecordBatch.from_pydict({name: pyarrow.array(column) for name, column in columns.items()})


LIBRARIES = [of_pandas, of_polars, of_pyarrow, of_batch]


@pytest.fixture
def columns(random):
    return {"b": random.normal(size=30), "a": np.arange(30) % 7, "is set": random.normal(size=30) > 0}


def array_of(columns):
    return np.stack([columns[name] for name in NAMES], axis=1).astype(float)


def reordered(columns):
    return {name: columns[name] for name in ("is set", "b", "a")}


@pytest.mark.parametrize("frame", LIBRARIES)
def test_columns_are_found_by_their_names(frame, columns, random, tmp_path):
    x = array_of(columns)
    y = x @ [1, 0.3, 2] + 0.1 * random.normal(size=30)
    by_place, by_name = Model.fit(NETWORK, x, y), Model.fit(NETWORK, frame(columns), y)
    assert by_place.columns == () and by_name.columns == tuple(NAMES)
    by_name.save(tmp_path / "model")
    for model in (by_name, Model.load(tmp_path / "model"), pickle.loads(pickle.dumps(by_name)), by_name.with_amplitude(by_name.amplitude[0])):
        assert model.columns == tuple(NAMES)
        for new in (frame(columns), frame(reordered(columns)), x):
            np.testing.assert_array_equal(model.predict(new).mean, by_place.predict(x).mean)
            np.testing.assert_array_equal(model.predict(new, batch_size=7).mean, by_place.predict(x, batch_size=7).mean)
            np.testing.assert_array_equal(model.mean(new), by_place.mean(x))
            np.testing.assert_array_equal(model.samples(new, 2, seed=3), by_place.with_amplitude(model.amplitude[0]).samples(x, 2, seed=3))
            np.testing.assert_array_equal(model.prior_samples(new, 2, seed=3), by_place.prior_samples(x, 2, seed=3))
            np.testing.assert_array_equal(model.predict_jointly(new).covariance, by_place.predict_jointly(x).covariance)
            assert model.score(new, y) == by_place.score(x, y)
    # Validation data too, under preprocessing and where a network is chosen.
    held = {name: column[::-1].copy() for name, column in columns.items()}
    for options in ({"preprocessing": "channel"}, {"network": "auto"}):
        network = options.pop("network", NETWORK)
        with_names = Model.fit(network, frame(columns), y, validation=(frame(reordered(held)), y[::-1]), criterion="mse", **options)
        np.testing.assert_array_equal(with_names.mean(frame(reordered(held))), Model.fit(network, x, y, validation=(x[::-1].copy(), y[::-1]), criterion="mse", **options)
                                      .mean(x[::-1].copy()))


@pytest.mark.parametrize("frame", LIBRARIES)
def test_other_columns_are_refused(frame, columns):
    x = array_of(columns)
    model = Model.fit(NETWORK, frame(columns), x[:, 0])
    renamed = {{"a": "c"}.get(name, name): column for name, column in columns.items()}
    fewer = {name: column for name, column in columns.items() if name != "b"}
    numbers = {**columns, "is set": columns["is set"].astype(float)}
    for new, message in ((renamed, "x: expected the columns of the training inputs, 'b', 'a', 'is set': there is no 'a' and 'c' is none of them"),
                         (fewer, "there is no 'b'; an array has its columns by their places"),
                         ({**columns, "more": columns["b"], "again": columns["b"]}, "'more', 'again' are none of them"),
                         (numbers, "truth values where the training inputs have them and numbers elsewhere, got the other in 'is set'")):
        for call in (model.predict, model.mean, lambda x: model.score(x, columns["b"]), lambda x: model.samples(x, 1)):
            with pytest.raises(ValueError, match=message):
                call(frame(new))
    with pytest.raises(ValueError, match="validation: expected the columns of the training inputs"):
        Model.fit(NETWORK, frame(columns), x[:, 0], validation=(frame(renamed), x[:, 0]), criterion="mse")
    with pytest.raises(ValueError, match="validation: expected the columns of the training inputs"):
        Model.select(NETWORK, frame(columns), x[:, 0], validation=(frame(renamed), x[:, 0]), criterion="mse")
    with pytest.raises(TypeError, match="columns are numbers or truth values, got 'a'"):
        model.predict(frame({**columns, "a": ["text"] * 30}))
    with pytest.raises(ValueError, match="3"):  # Arrays by their number.
        model.predict(x[:, :2])


@pytest.mark.parametrize("frame", LIBRARIES)
def test_estimators_keep_names(frame, columns):
    pytest.importorskip("sklearn")
    from widelimit.sklearn import WideNetworkClassifier, WideNetworkRegressor
    x = array_of(columns)
    for estimator, y in ((WideNetworkRegressor(NETWORK), x[:, 0]), (WideNetworkClassifier(NETWORK), x[:, 0] > 0)):
        estimator.fit(frame(columns), y)
        assert estimator.model_.columns == tuple(NAMES)
        np.testing.assert_array_equal(estimator.model_.mean(frame(reordered(columns))), estimator.model_.mean(x))
        np.testing.assert_array_equal(estimator.predict(frame(columns)), estimator.fit(x, y).predict(x))
        assert estimator.model_.columns == ()
        with pytest.raises(ValueError, match="[Ff]eature names"):
            estimator.fit(frame(columns), y).predict(frame(reordered(columns)))


def test_the_program_finds_columns_of_models_of_python(columns, random, tmp_path):
    program = os.environ.get("WIDELIMIT_PROGRAM")
    if not program:
        pytest.skip("WIDELIMIT_PROGRAM, the program, is not set")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame, y = pandas.DataFrame(columns), pandas.Series(random.normal(size=30), name="price")
    model = Model.fit(NETWORK, frame, y, precision="double")
    model.save(tmp_path / "model")
    new = frame[["is set", "a", "b"]]
    new.assign(price=y).to_csv(tmp_path / "new.csv", index=False)
    run = lambda file: subprocess.run([program, "predict", "--model", tmp_path / "model", "--csv", file, "--out", tmp_path / "out"],
                                      capture_output=True, text=True)
    done = run(tmp_path / "new.csv")
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(tmp_path / "out/mean.npy"), model.mean(new), rtol=1e-13)
    assert "target_0" in (tmp_path / "out/predictions.csv").read_text().splitlines()[0]
    new.rename(columns={"a": "c"}).to_csv(tmp_path / "other.csv", index=False)
    assert "expected a column 'a' as in the training table" in run(tmp_path / "other.csv").stderr


def test_models_of_the_programs_tables_have_their_names(random, tmp_path):
    program = os.environ.get("WIDELIMIT_PROGRAM")
    if not program:
        pytest.skip("WIDELIMIT_PROGRAM, the program, is not set")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame({"a": random.normal(size=20), "b": random.normal(size=20), "y": random.normal(size=20)})
    for name, table in (("numbers", frame), ("texts", frame.assign(colour=["red", "blue"] * 10))):
        (tmp_path / name).mkdir()
        table.to_csv(tmp_path / name / "train.csv", index=False)
        subprocess.run([program, "fit", "--network", "fcn", "--data", "csv", "--path", tmp_path / name, "--target", "y", "--precision", "double",
                        "--model", tmp_path / f"model of {name}"], check=True, capture_output=True)
    model = Model.load(tmp_path / "model of numbers")
    assert model.columns == ("a", "b")
    np.testing.assert_array_equal(model.mean(frame[["b", "a"]]), model.mean(frame[["a", "b"]].to_numpy()))
    with pytest.raises(ValueError, match="'y' is none of them"):
        model.mean(frame)
    with pytest.raises(ValueError, match="the model reads texts and marks of missing cells in 'colour'.*widelimit predict --csv"):
        Model.load(tmp_path / "model of texts").mean(frame[["a", "b"]].assign(colour="red"))


def test_names_of_arrays_and_names_that_are_none(columns, random):
    pytest.importorskip("sklearn")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    x, y = array_of(columns), random.normal(size=30)
    model = Model.fit(NETWORK, x, y, columns=["p", "q", "r"])
    assert model.columns == ("p", "q", "r")
    np.testing.assert_array_equal(model.mean(pandas.DataFrame(x[:, ::-1], columns=["r", "q", "p"])), model.mean(x))
    with pytest.raises(ValueError, match="columns: expected a name for each channel of inputs"):
        Model.fit(NETWORK, x, y, columns=["p", "q"])
    with pytest.raises(ValueError, match="columns: expected None beside a frame"):
        Model.fit(NETWORK, pandas.DataFrame(columns), y, columns=NAMES)
    with pytest.raises(ValueError, match="different names, got several called 'p'"):
        Model.fit(NETWORK, x, y, columns=["p", "q", "p"])
    with pytest.raises(ValueError, match="different names, got several called 'p'"):
        model.mean(pandas.DataFrame(x, columns=["p", "q", "p"]))
    # Names that are numbers are names.
    numbered = Model.fit(NETWORK, pandas.DataFrame(x), y)
    np.testing.assert_array_equal(numbered.mean(pandas.DataFrame(x)[[2, 0, 1]]), numbered.mean(x))
    from widelimit.sklearn import WideNetworkRegressor
    estimator = WideNetworkRegressor(NETWORK).fit(pandas.DataFrame(x), y)
    assert estimator.model_.columns == ("0", "1", "2")
    np.testing.assert_array_equal(estimator.predict(pandas.DataFrame(x)[[2, 0, 1]]), estimator.predict(x))
    with pytest.raises(ValueError, match="there is no '0', '1', '2' and 'p', 'q', 'r' are none of them"):
        estimator.predict(pandas.DataFrame(x, columns=["p", "q", "r"]))
    with pytest.raises(TypeError, match="columns: expected a sequence of names, got the text 'pqr'"):
        Model.fit(NETWORK, x, y, columns="pqr")
    # A target of the name of a column, and several targets.
    assert Model.fit(NETWORK, pandas.DataFrame(x, columns=["y", "y_", "z"]), y).columns == ("y", "y_", "z")
    assert Model.fit(NETWORK, pandas.DataFrame(columns), pandas.DataFrame({"u": y, "v": y**2})).outputs == 2


@pytest.mark.parametrize("frame", LIBRARIES)
def test_types_and_missing_values(frame, columns):
    """Float stays float, integers and truth values are float64, and missing cells are NaN, which is refused."""
    narrow = frame({"p": columns["b"].astype(np.float32), "q": columns["is set"]})
    assert widelimit.gram(NETWORK, narrow).nngp.dtype == np.float32
    for second in (None, frame(reordered(columns))):
        np.testing.assert_array_equal(widelimit.gram(NETWORK, frame(columns), second).nngp, widelimit.gram(NETWORK, array_of(columns)).nngp)
    with pytest.raises(ValueError, match="x2: expected the columns of x1, 'b', 'a', 'is set': there is no 'b', 'a', 'is set' and 'p', 'q' are none of them"):
        widelimit.gram(NETWORK, frame(columns), narrow)
    kernel_fn = widelimit.stax.serial(widelimit.stax.Dense(5), widelimit.stax.Relu(), widelimit.stax.Dense(1))[2]
    np.testing.assert_array_equal(kernel_fn(frame(columns), frame(reordered(columns)), "ntk"), kernel_fn(array_of(columns), array_of(columns), "ntk"))
    seed = np.ones((30, 30))
    by_name, by_place = (widelimit.gram_vjp(NETWORK, frame(columns), second, nngp=seed)
                         for second in (frame(reordered(columns)), array_of(columns)))
    np.testing.assert_array_equal(by_name, by_place)
    if frame is of_pandas:
        sparse = frame({name: columns[name] for name in "ab"}).astype(pytest.importorskip("pandas").SparseDtype("float"))
        np.testing.assert_array_equal(widelimit.gram(NETWORK, sparse).nngp, widelimit.gram(NETWORK, array_of(columns)[:, [1, 0]]).nngp)
        missing = frame(columns).convert_dtypes()
        missing.loc[3, "a"] = None
    else:
        missing = frame({**columns, "a": [None if k == 3 else k for k in range(30)]})
    with pytest.raises(ValueError, match="NaN|finite"):
        Model.fit(NETWORK, missing, columns["b"])


def test_a_frame_without_rows_yet_is_refused(columns):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    with pytest.raises(TypeError, match="LazyFrame of polars, which has none yet: give its collect"):
        Model.fit(NETWORK, polars.DataFrame(columns).lazy(), columns["b"])
