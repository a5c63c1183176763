"""Probabilities of classes: widelimit's default beside scikit-learn's logistic regression and Gaussian-process classifier.

For every problem and seed: log loss, accuracy, and the mean probability of the last class over its rate, on rows that nothing
was fitted to. Writes a CSV row for each (--out), and prints means over the seeds with standard errors. Needs scikit-learn.

    python docs/experiments/programs/class_probabilities.py --seeds 8 --out docs/experiments/data/class_probabilities.csv
"""

import argparse
import csv
import warnings

import numpy as np
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import LogisticRegression

import widelimit
from widelimit.sklearn import default_network

from tables import head

COLUMNS = ["problem", "seed", "method", "log_loss", "accuracy", "last_class_probability", "last_class_rate"]


def bundled(load, train):
    """Rows of a data set of scikit-learn, of which the first `train` in a random order are trained on."""
    data = load()

    def problem(random):
        order = random.permutation(len(data.target))
        return data.data[order].astype(float), data.target[order], train
    return problem


def without_signal(train):
    def problem(random):
        return random.normal(size=(train + 2000, 5)), random.choice(3, size=train + 2000, p=[0.9, 0.08, 0.02]), train
    return problem


def few_positives(random):
    x = random.normal(size=(1400, 4))
    score = (x[:, :2]**2).sum(1) + 0.7 * random.normal(size=1400)
    return x, (score > np.quantile(score, 0.95)).astype(int), 400


# Gaussian-process classification takes n^3 for every step of its search: not for 3,000 rows.
PROBLEMS = {"without signal, 400": (without_signal(400), True), "without signal, 3000": (without_signal(3000), False),
            "5 % positives, a ring": (few_positives, True), "iris": (bundled(datasets.load_iris, 100), True),
            "wine": (bundled(datasets.load_wine, 118), True), "breast cancer": (bundled(datasets.load_breast_cancer, 380), True),
            "digits": (bundled(datasets.load_digits, 500), True)}


def predictions(x, y, test, with_process):
    """(method, probabilities) of the test inputs."""
    model = widelimit.Model.fit(default_network(), x, y, labels=True)
    yield "widelimit", model.predict(test).class_probabilities
    yield "logistic", LogisticRegression(max_iter=5000).fit(x, y).predict_proba(test)
    if with_process:
        yield "GPC", GaussianProcessClassifier(ConstantKernel(1.0) * RBF(3.0)).fit(x, y).predict_proba(test)


def rows(name, seed):
    make, with_process = PROBLEMS[name]
    x, y, n = make(np.random.default_rng(seed))
    deviation = x[:n].std(0)
    x = (x - x[:n].mean(0)) / np.where(deviation > 0, deviation, 1)
    for method, probabilities in predictions(x[:n], y[:n], x[n:], with_process):
        true = probabilities[np.arange(len(y) - n), y[n:]]
        yield {"problem": name, "seed": seed, "method": method, "log_loss": -np.log(np.maximum(true, 1e-15)).mean(),
               "accuracy": (probabilities.argmax(1) == y[n:]).mean(), "last_class_probability": probabilities[:, -1].mean(),
               "last_class_rate": (y[n:] == y.max()).mean()}


def report(found):
    for name in PROBLEMS:
        for method in ("widelimit", "logistic", "GPC"):
            own = [row for row in found if (row["problem"], row["method"]) == (name, method)]
            if not own:
                continue
            losses = np.array([row["log_loss"] for row in own])
            ratio = sum(row["last_class_probability"] for row in own) / sum(row["last_class_rate"] for row in own)
            print(f"{name:22} {method:10} log loss {losses.mean():.3f} ± {losses.std() / np.sqrt(len(own)):.3f}  accuracy "
                  f"{100 * np.mean([row['accuracy'] for row in own]):.1f} %  last class {ratio:.2f} of its rate", flush=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seeds", type=int, default=8)
    arguments.add_argument("--problem", action="append", choices=list(PROBLEMS), help="one or more; all of them otherwise")
    arguments.add_argument("--out", required=True, help="CSV file")
    given = arguments.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    found = []
    with open(given.out, "w", newline="", encoding="utf-8") as file:
        file.write(head(f"seeds 0 to {given.seeds - 1}") + "\n")
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for name in given.problem or PROBLEMS:
            for seed in range(given.seeds):
                for row in rows(name, seed):
                    found.append(row)
                    writer.writerow({key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()})
                file.flush()
    report(found)


if __name__ == "__main__":
    main()
