"""Problems as tables of files and as arrays, and the doors through which they are predicted: the commands gp, fit and predict,
Model, and the estimators. Every door answers with the same dictionary, of what it says."""

import csv
import json
import os
import pathlib
import subprocess
from contextlib import nullcontext
from typing import NamedTuple

import numpy as np
import pytest

import widelimit
from widelimit import Model, Network

NETWORK = {"axes": 0, "depth": 2}
# The normal interval of 95 % in deviations, by which the estimators say their law's interval as one deviation.
NORMAL = 1.959963984540054


class Data(NamedTuple):
    """Rows of numbers a, b, c with a target or two, known noise and weights, of one seed."""

    inputs: np.ndarray
    targets: np.ndarray
    noise: np.ndarray
    weights: np.ndarray


class Problem(NamedTuple):
    """One problem. `options` are words of Model.fit, and those below that say how a door is called."""

    name: str
    targets: str  # numbers, outputs (two of them), two or three (classes)
    options: dict
    rows: int = 40


def data_of(problem, rows, seed):
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, 3))
    images = np.concatenate([x, random.normal(size=(rows, 29))], axis=1).reshape(rows, 4, 4, 2)
    smooth, other = np.sin(2 * x[:, 0]) + x[:, 1] + 0.2 * random.normal(size=rows), x[:, 1] * x[:, 2] + 0.1 * random.normal(size=rows)
    targets = {"numbers": smooth[:, None], "outputs": np.stack([smooth, 100 + 30 * other], axis=1),
               "two": np.where(smooth > 0.3, "yes", "no"),
               "three": np.array(["high", "low", "mid"])[(smooth > -0.6).astype(int) + (smooth > 0.6)]}[problem.targets]
    if "target_transform" in problem.options and not is_classes(problem) and not problem.options.get("zeros"):
        targets = np.exp(targets / 50 if problem.targets == "outputs" else targets)
    if problem.options.get("equal"):
        targets[:, -1] = 3.5
    return Data(images if problem.options.get("images") else x, targets, random.uniform(0.02, 0.3, size=rows), random.uniform(0.3, 4, size=rows))


def is_classes(problem):
    return problem.targets in ("two", "three")


def parts_of(problem):
    """(training, test, validation or None): of every problem other rows. With `counts` a row stands as often as they say."""
    seed = sum(map(ord, problem.name))
    train = data_of(problem, problem.rows, seed)
    if "counts" in problem.options:
        train = Data(*(np.repeat(numbers, counts_of(problem), axis=0) for numbers in train))
    held = data_of(problem, 14, seed + 2) if problem.options.get("validation") else None
    return train, data_of(problem, 6, seed + 1), held


def counts_of(problem):
    return np.arange(problem.rows) % problem.options["counts"]


# The program.

def write_images(problem, folder):
    """x_train.npy, y_train.npy and so on; classes as their numbers."""
    folder.mkdir()
    for name, data in zip(("train", "test", "validation"), parts_of(problem)):
        if data is not None:
            np.save(folder / f"x_{name}.npy", data.inputs)
            np.save(folder / f"y_{name}.npy", np.unique(data.targets, return_inverse=True)[1] if is_classes(problem) else data.targets)


def write_tables(problem, folder):
    """train.csv, test.csv and, where the problem has it, validation.csv; of images arrays."""
    if problem.options.get("images"):
        write_images(problem, folder)
        return
    columns = ["a", "b", "c", "y", *(["z"] if problem.targets == "outputs" else []),
               *[name for name in ("noise", "weights") if problem.options.get(name)]]
    folder.mkdir()
    for name, data in zip(("train", "test", "validation"), parts_of(problem)):
        if data is None:
            continue
        targets = data.targets.reshape(len(data.targets), -1)
        rows = [[*map(repr, map(float, data.inputs[i])), *[str(t) if is_classes(problem) else repr(float(t)) for t in targets[i]],
                 *[repr(float(getattr(data, word)[i])) for word in ("noise", "weights") if problem.options.get(word)]]
                for i in range(len(targets))]
        with open(folder / f"{name}.csv", "w", newline="") as file:
            csv.writer(file).writerows([columns, *rows])


def words_of(problem, folder):
    """What gp and fit are told of the problem, but for its kernel and time."""
    options = problem.options
    words = ["--path", folder, "--quiet", "--threads", "1", "--preprocess", options.get("preprocess", "none"),
             "--precision", options.get("precision", "double")]
    words += (["--network", "conv-gap:depth=1", "--data", "npy"] if options.get("images") else
              ["--network", options.get("network", "fcn:axes=0,depth=2"), "--data", "csv", "--target", "y,z" if problem.targets == "outputs" else "y"])
    for name, option in (("regulariser", "--regulariser"), ("criterion", "--criterion"), ("amplitude", "--amplitude"),
                         ("solver", "--solver"), ("residual", "--residual"), ("learn_features", "--learn-features"),
                         ("target_transform", "--target-transform")):
        if name in options:
            words += [option, options[name]]
    words += ["--candidates", ",".join(map(str, options["grid"]))] if "grid" in options else []
    words += [word for name, word in (("as_they_are", "--targets-as-they-are"), ("refit", "--refit"), ("relevance", "--relevance"),
                                      ("diagonal", "--diagonal"), ("flip", "--flip")) if options.get(name)]
    words += ["--noise-variance", "noise"] if options.get("noise") else []
    words += ["--weight", "weights"] if options.get("weights") else []
    words += ["--device", "pocl"] if options.get("source") == "device" else []
    return words


def run(*arguments, ranks=1):
    program = os.environ.get("WIDELIMIT_PROGRAM")
    if not program:
        pytest.skip("WIDELIMIT_PROGRAM, the program, is not set")
    command = [program]
    if ranks > 1:
        mpi = pathlib.Path(program).with_name("widelimit-mpi")
        if not mpi.exists():
            pytest.skip("widelimit-mpi is not built")
        command = ["mpirun", "-n", str(ranks), "--bind-to", "none", "--oversubscribe", "--allow-run-as-root", str(mpi)]
    done = subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise Refused(done.stderr)
    return done.stdout


class Refused(Exception):
    """What the program says on standard error."""


def source_words(problem, folder):
    return {"kept": ["--gram", folder / "kept"], "store": ["--store", folder / "store"]}.get(problem.options.get("source"), [])


def answer_of_table(problem, file, kernel):
    """What predictions.csv says, whose columns begin with the kernel's name."""
    with open(file, newline="") as lines:
        rows = list(csv.DictReader(lines))
    said = {}
    for word, name in (("mean", "mean"), ("observation", "deviation"), ("lower_95", "lower"), ("upper_95", "upper"),
                       ("probability_", "probabilities")):
        columns = [column for column in rows[0] if column.startswith(f"{kernel}_{word}")]
        if columns and not (is_classes(problem) and word == "mean"):
            said[name] = np.array([[float(row[column]) for column in columns] for row in rows])
    return said


def by_gp(problem, folder):
    """A dictionary for each kernel and time that the problem has."""
    options, kernel = problem.options, problem.options.get("kernel", "nngp")
    write_tables(problem, folder / "data")
    words = [*words_of(problem, folder / "data"), "--kernel", kernel, *source_words(problem, folder)]
    times = np.atleast_1d(options["time"]).tolist() if "time" in options else []
    words += ["--time", ",".join(map(str, times))] if times else []
    # A second run reads what the first one has kept.
    for out in ("first", "second") if source_words(problem, folder) else ("only",):
        run("gp", *words, "--out", folder / out, "--no-report", "--no-pictures", ranks=2 if options.get("solver") == "distributed" else 1)
    results = {result["files"]: result for result in json.loads((folder / out / "results.json").read_text())["results"]}
    wanted = [f"ntk_time{k}" for k in range(len(times))] or (["nngp", "ntk"] if kernel == "both" else [kernel])
    said = []
    for name in wanted:
        result = results[name]
        said.append({"regulariser": result["regulariser"], "amplitude": result["amplitude"],
                     "mean": np.load(folder / out / f"mean_{name}.npy"),
                     **answer_of_table(problem, folder / out / "predictions.csv", name)})
        if problem.options.get("regulariser") or problem.options.get("noise"):
            del said[-1]["regulariser"]
    return said


def fit_by_program(problem, folder):
    """The folder of the model, and what fit says."""
    write_tables(problem, folder / "data")
    options = problem.options
    words = [*words_of(problem, folder / "data"), "--kernel", options.get("kernel", "nngp"), *source_words(problem, folder)]
    words += ["--time", ",".join(map(str, np.atleast_1d(options["time"]).tolist()))] if "time" in options else []
    words += ["--out", folder / "fitted"]
    for _ in range(2 if options.get("source") in ("kept", "store") else 1):
        printed = json.loads(run("fit", *words, "--model", folder / "model", "--json"))
    said = {"amplitude": printed["amplitude"]}
    if printed["regularisers"]:
        said["regulariser"] = printed["regularisers"]
    return said


def predictions_of(problem, folder, *inputs):
    device = ["--device", "pocl"] if problem.options.get("source") == "device" else []
    run("predict", "--model", folder / "model", *inputs, "--out", folder / "predicted", "--threads", "1", *device)
    return answers_of_folder(problem, folder / "predicted")


def answers_of_folder(problem, folder):
    """What predict and fit --out write: of several times those, else the model's own."""
    times = problem.options.get("time")
    names = [f"ntk_time{k}" for k in range(len(times))] if isinstance(times, list) else [problem.options.get("kernel", "nngp")]
    return [{**answer_of_table(problem, folder / "predictions.csv", name),
             "mean": np.load(folder / f"mean{'_' + name if len(names) > 1 else ''}.npy")} for name in names]


def by_fit(problem, folder):
    new = ["--x", folder / "data/x_test.npy"] if problem.options.get("images") else ["--csv", folder / "data/test.csv"]
    said = fit_by_program(problem, folder)
    predicted, written = predictions_of(problem, folder, *new), answers_of_folder(problem, folder / "fitted")
    for one, other in zip(predicted, written):
        compare(one, other, problem)
    return [{**said, **one} for one in predicted]


def by_fit_then_model(problem, folder):
    """fit, whose folder Python loads."""
    said = fit_by_program(problem, folder)
    with on_device(problem):
        model = Model.load(folder / "model", threads=1)
        return [{**said, **answer_of_model(each, problem)} for each in [model.at_time(time) for time in model.times] or [model]]


# Python.

def on_device(problem):
    return widelimit.device("pocl") if problem.options.get("source") == "device" else nullcontext()


def network_of(problem):
    if problem.options.get("images"):
        return Network.named("conv-gap", {"depth": 1})
    return "auto" if problem.options.get("network") == "auto" else Network.named("fcn", NETWORK)


def fitted_model(problem, folder, time=None):
    options, (train, _, held) = problem.options, parts_of(problem)
    arguments = {name: options[name] for name in ("regulariser", "criterion", "amplitude", "solver", "residual", "learn_features", "grid",
                                                  "refit", "relevance", "diagonal", "flip", "target_transform") if name in options}
    if arguments.get("solver") == "distributed":
        del arguments["solver"]
    if options.get("kernel") == "ntk":
        arguments["kind"] = "trained"
    if time is not None:
        arguments["time"] = time
    if options.get("noise"):
        arguments["noise_variance"] = train.noise
    if options.get("weights"):
        arguments["weights"] = train.weights
    if held is not None:
        arguments["validation"] = (held.inputs, held.targets)
    with on_device(problem):
        model = None
        for _ in range(2 if options.get("source") in ("kept", "store") else 1):
            model = Model.fit(network_of(problem), train.inputs, train.targets, labels=is_classes(problem), threads=1,
                              precision=options.get("precision", "double"), preprocessing=options.get("preprocess", "none"),
                              targets_as_they_are=options.get("as_they_are", False),
                              gram_folder=folder / "kept" if options.get("source") == "kept" else None,
                              store=folder / "store" if options.get("source") == "store" else None, **arguments)
    return model


def answer_of_model(model, problem):
    found = model.predict(parts_of(problem)[1].inputs, threads=1)
    said = {"amplitude": model.amplitude, "mean": found.mean}
    if model.selections:
        said["regulariser"] = [each.best for each in model.selections]
    said["deviation"] = np.sqrt(found.observation_variance)
    if is_classes(problem):  # Which share their variances.
        return {**said, "deviation": said["deviation"][:, :1], "probabilities": found.class_probabilities}
    lower, upper = found.intervals(0.95)
    return {**said, "lower": lower, "upper": upper}


def by_model(problem, folder):
    options = problem.options
    if options.get("kernel") == "both":
        each = [problem._replace(options={**options, "kernel": kernel}) for kernel in ("nngp", "ntk")]
        return [said for one in each for said in by_model(one, folder)]
    times = np.atleast_1d(options["time"]).tolist() if "time" in options else [None]
    with on_device(problem):
        return [answer_of_model(fitted_model(problem, folder, time), problem) for time in times]


def by_saved_model(problem, folder):
    """Model, whose folder the program predicts with."""
    model = fitted_model(problem, folder, problem.options.get("time"))
    model.save(folder / "model")
    np.save(folder / "x.npy", parts_of(problem)[1].inputs)
    return predictions_of(problem, folder, "--x", folder / "x.npy")


def by_estimator(problem, folder):
    from widelimit.sklearn import WideNetworkClassifier, WideNetworkRegressor
    options, (train, test, _) = problem.options, parts_of(problem)
    kind = WideNetworkClassifier if is_classes(problem) else WideNetworkRegressor
    arguments = {name: options[name] for name in ("kernel", "relevance", "learn_features", "target_transform") if name in options}
    if "grid" in options or "regulariser" in options:
        arguments["regularizer"] = options.get("grid", options.get("regulariser"))
    rows = {}
    if options.get("noise"):
        rows["noise_variance"] = train.noise
    if options.get("weights"):
        rows["sample_weight"] = train.weights
    if "counts" in options:  # As weights of rows that stand once.
        train = data_of(problem, problem.rows, sum(map(ord, problem.name)))
        rows["sample_weight"] = counts_of(problem)
    targets = train.targets[:, 0] if problem.targets == "numbers" else train.targets
    with on_device(problem):
        found = kind(network_of(problem), precision=options.get("precision", "double"), threads=1, **arguments).fit(train.inputs, targets, **rows)
        said = {} if "noise" in options or "regulariser" in options else {"regulariser": found.regularizer_}
        if is_classes(problem):
            return [{**said, "probabilities": found.predict_proba(test.inputs)}]
        mean, deviation = found.predict(test.inputs, return_std=True)
    columns = (len(test.inputs), -1)
    return [{**said, "mean": mean.reshape(columns), "interval": deviation.reshape(columns)}]


ALL_DOORS = {"Model": by_model, "gp": by_gp, "fit": by_fit, "estimator": by_estimator}
DOORS = {"gp": by_gp, "fit": by_fit, "fit, loaded by Model": by_fit_then_model, "Model, loaded by predict": by_saved_model,
         "estimator": by_estimator}


def compare(said, expected, problem):
    """Every number that both doors say."""
    if "interval" in said:  # Half of the interval of 95 %, in deviations of a normal distribution.
        expected = {**expected, "interval": (expected["upper"] - expected["lower"]) / (2 * NORMAL)}
    common = [name for name in said if name in expected]
    assert ("probabilities" if is_classes(problem) else "mean") in common
    for name in common:
        one, other = np.asarray(said[name], float), np.asarray(expected[name], float)
        if name in ("regulariser", "amplitude"):
            one, other = np.broadcast_arrays(one.ravel(), other.ravel())
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10 * np.abs(other).max(), err_msg=f"{problem.name}: {name}")
