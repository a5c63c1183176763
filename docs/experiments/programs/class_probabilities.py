"""Probabilities of classes: widelimit's defaults beside scikit-learn's logistic regression and Gaussian-process classifier.

    python class_probabilities.py compute [SEEDS]
    python class_probabilities.py summary

For every problem, seed and method: log loss, accuracy, and the mean probability of the last class and its rate, on rows that nothing
was fitted to. Rows are appended, so that a run that was stopped goes on. Needs scikit-learn."""
import sys
import warnings

import numpy as np
import widelimit
from sklearn import datasets
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import LogisticRegression
from widelimit.sklearn import default_network

from tables import EXPERIMENTS, Table, rows_of, shows

PAGE = EXPERIMENTS.parent / "inference.md"
AUTOMATIC = "automatic network"
METHODS = ("defaults", AUTOMATIC, "logistic", "GPC")


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


# Name: (rows for a generator, whether GPC, which takes n^3 for every step of its search, is among the methods).
PROBLEMS = {"no signal, rates .90 / .08 / .02, 400": (without_signal(400), True), "the same, 3,000": (without_signal(3000), False),
            "5 % positives, outside a ring, 400": (few_positives, True), "iris, 100": (bundled(datasets.load_iris, 100), True),
            "wine, 118": (bundled(datasets.load_wine, 118), True), "breast cancer, 380": (bundled(datasets.load_breast_cancer, 380), True),
            "digits, 500": (bundled(datasets.load_digits, 500), False)}


def probabilities_by(method, x, y, test):
    if method in ("defaults", AUTOMATIC):
        network = default_network() if method == "defaults" else "auto"
        return widelimit.Model.fit(network, x, y, labels=True, threads=1).predict(test, threads=1).class_probabilities
    found = LogisticRegression(max_iter=5000) if method == "logistic" else GaussianProcessClassifier(ConstantKernel(1.0) * RBF(3.0))
    return found.fit(x, y).predict_proba(test)


def scores(name, seed, method):
    make, _ = PROBLEMS[name]
    x, y, n = make(np.random.default_rng(seed))
    deviation = x[:n].std(0)
    x = (x - x[:n].mean(0)) / np.where(deviation > 0, deviation, 1)
    probabilities = probabilities_by(method, x[:n], y[:n], x[n:])
    true = probabilities[np.arange(len(y) - n), y[n:]]
    return (-np.log(np.maximum(true, 1e-15)).mean(), (probabilities.argmax(1) == y[n:]).mean(), probabilities[:, -1].mean(),
            (y[n:] == y.max()).mean())


def compute(seeds, methods):
    table = Table("class_probabilities", ("problem", "seed", "method"), ("log_loss", "accuracy", "last_class_probability", "last_class_rate"),
                  "seeds from 0")
    warnings.simplefilter("ignore")
    for method in methods:
        for seed in range(seeds):
            for name, (_, with_process) in PROBLEMS.items():
                if (method != "GPC" or with_process) and table.lacks(name, seed, method):
                    table.append((name, seed, method, *map(float, scores(name, seed, method))))


def summary():
    rows = rows_of("class_probabilities")
    yield (f"| problem, training rows | {' | '.join(f'log loss: {method}' for method in METHODS)} | accuracy, % | "
           f"{AUTOMATIC} | last class, share of its rate | {AUTOMATIC} |")
    yield "|---" * (len(METHODS) + 5) + "|"
    for name in PROBLEMS:
        own = {method: [row for row in rows if (row["problem"], row["method"]) == (name, method)] for method in METHODS}

        def values(method, column):
            return np.array([float(row[column]) for row in own[method]])

        losses = [f"{np.mean(values(method, 'log_loss')):.3f}" if own[method] else "-" for method in METHODS]
        accuracies = [f"{100 * np.mean(values(method, 'accuracy')):.1f}" if own[method] else "-" for method in METHODS[:2]]
        shares = [f"{values(method, 'last_class_probability').sum() / values(method, 'last_class_rate').sum():.2f}" if own[method] else "-"
                  for method in METHODS[:2]]
        yield f"| {name} | {' | '.join(losses)} | {' | '.join(accuracies)} | {' | '.join(shares)} |"


SUMMARIES = {"class_probabilities": summary}


def main():
    if not shows(sys.argv[1], SUMMARIES):
        compute(int(sys.argv[2]) if len(sys.argv) > 2 else 8, sys.argv[3:] or METHODS)


if __name__ == "__main__":
    main()
