"""Seven tables beside scikit-learn: how good are predictions where people begin, with the defaults of all?

    python decision_tables.py others [SEEDS [SET]]    # scikit-learn's methods
    python decision_tables.py ours [SEEDS [SET]]      # widelimit: three layers of ReLUs as they are, relevance, learned features, auto
    python decision_tables.py summary

For every set, seed and method: the share of wrong classes or the root mean squared error, and the log loss or the negative log
density of a test observation; methods without probabilities have none. Every method sees the same rows, with columns of mean 0
and deviation 1. Rows are appended, so that a run that was stopped goes on."""
import sys
import warnings

import numpy as np
import widelimit
from sklearn import datasets
from sklearn.ensemble import (HistGradientBoostingClassifier, HistGradientBoostingRegressor, RandomForestClassifier,
                              RandomForestRegressor)
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.svm import SVC, SVR
from widelimit import layers

from tables import EXPERIMENTS, Table, mean_and_error, rows_of, shows

PAGE = EXPERIMENTS / "tables.md"
WAYS = {"fcn": {}, "relevance": {"relevance": True}, "learned features": {"learn_features": 4}}
AUTOMATIC = "auto"
OURS = (*WAYS, AUTOMATIC)


def rare_class(seed):
    random = np.random.default_rng(seed)
    x = random.normal(size=(2400, 6))
    score = 1.5 * x[:, 0] - 1.2 * x[:, 1] + x[:, 2] * x[:, 3] + 0.8 * random.normal(size=len(x))
    return x, (score > np.quantile(score, 0.95)).astype(int)


def friedman(seed):
    return datasets.make_friedman1(n_samples=1500, noise=1.0, random_state=seed)


def bundled(load):
    return lambda seed: load(return_X_y=True)


# Name: (rows for a seed, training rows, whether the targets are classes).
SETS = {"diabetes": (bundled(datasets.load_diabetes), 295, False), "friedman1": (friedman, 500, False),
        "wine": (bundled(datasets.load_wine), 118, True), "breast cancer": (bundled(datasets.load_breast_cancer), 380, True),
        "digits": (bundled(datasets.load_digits), 300, True), "iris": (bundled(datasets.load_iris), 100, True),
        "5 % positives": (rare_class, 400, True)}


def split(name, seed):
    make, train, classes = SETS[name]
    x, y = make(seed)
    known_x, test_x, known, test = train_test_split(x, y, train_size=train, random_state=seed, stratify=y if classes else None)
    mean, deviation = known_x.mean(0), known_x.std(0)
    deviation = np.where(deviation > 0, deviation, 1)
    return (known_x - mean) / deviation, (test_x - mean) / deviation, known, test


def log_density(y, mean, deviation):
    return np.mean(0.5 * np.log(2 * np.pi * deviation**2) + 0.5 * ((y - mean) / deviation) ** 2)


def log_loss(y, classes, probabilities):
    return -np.mean(np.log(np.maximum(probabilities[np.arange(len(y)), np.searchsorted(classes, y)], 1e-15)))


def lengths(x):
    return RBF(np.ones(x.shape[1]), (1e-2, 1e4))


def others(x, classes):
    """Scikit-learn's methods with their defaults; kernels have the choices that people make for them."""
    if not classes:
        gpr = GaussianProcessRegressor(ConstantKernel() * RBF(x.shape[1]**0.5, (1e-2, 1e4)) + WhiteKernel(), normalize_y=True)
        ard = GaussianProcessRegressor(ConstantKernel() * lengths(x) + WhiteKernel(), normalize_y=True)
        svr = GridSearchCV(SVR(), {"C": [1, 10, 100, 1000]})
        return {"GPR": gpr, "GPR, a length a column": ard, "SVR": svr, "linear": BayesianRidge(),
                "forest": RandomForestRegressor(random_state=0), "boosting": HistGradientBoostingRegressor(random_state=0)}
    return {"GPC": GaussianProcessClassifier(ConstantKernel() * RBF(x.shape[1]**0.5, (1e-2, 1e4)), random_state=0),
            "SVC": GridSearchCV(SVC(), {"C": [0.1, 1, 10, 100]}), "logistic": LogisticRegression(max_iter=10_000),
            "forest": RandomForestClassifier(random_state=0), "boosting": HistGradientBoostingClassifier(random_state=0)}


def scores_of_other(method, x, test_x, y, test, classes):
    method.fit(x, y)
    if classes:
        loss = log_loss(test, method.classes_, method.predict_proba(test_x)) if hasattr(method, "predict_proba") else np.nan
        return np.mean(method.predict(test_x) != test), loss
    if isinstance(method, (GaussianProcessRegressor, BayesianRidge)):
        mean, deviation = method.predict(test_x, return_std=True)
        return np.mean((mean - test) ** 2) ** 0.5, log_density(test, mean, deviation)
    return np.mean((method.predict(test_x) - test) ** 2) ** 0.5, np.nan


def network():
    """Three hidden layers of ReLUs."""
    hidden = [layers.dense(2, 0.01), layers.relu()]
    return widelimit.Network([*hidden, *hidden, *hidden, layers.dense(1, 0.01)])


def scores_of_model(model, test_x, test, classes):
    """Its error and loss, and whether it kept what it learned of the inputs."""
    found = model.predict(test_x, threads=1)
    kept = int(model.learned["kept"]) if model.learned else ""
    if classes:
        names = np.array([int(name) for name in model.class_names])
        probabilities = found.class_probabilities
        return np.mean(names[probabilities.argmax(1)] != test), log_loss(test, names, probabilities), kept
    return np.mean((found.mean[:, 0] - test) ** 2) ** 0.5, -np.mean(found.log_density(test)), kept


def scores_of_ours(which, x, test_x, y, test, classes):
    made, options = ("auto", {}) if which == AUTOMATIC else (network(), WAYS[which])
    return scores_of_model(widelimit.Model.fit(made, x, y, labels=classes, threads=1, **options), test_x, test, classes)


def compute(whose, seeds, wanted):
    table = Table("decision_tables", ("set", "seed", "method"), ("error", "loss", "kept"), "seeds from 0")
    warnings.simplefilter("ignore")
    # What costs little comes first.
    for only in OURS if whose == "ours" else (None,):
        for seed in range(seeds):
            for name, (_, _, classes) in SETS.items():
                if wanted not in (None, name):
                    continue
                x, test_x, y, test = split(name, seed)
                methods = dict.fromkeys([only]) if only else others(x, classes)
                for method, estimator in methods.items():
                    key = method.replace(",", ":")
                    if not table.lacks(name, seed, key):
                        continue
                    found = (scores_of_ours(method, x, test_x, y, test, classes) if only else
                             (*scores_of_other(estimator, x, test_x, y, test, classes), ""))
                    table.append((name, seed, key, *map(float, found[:2]), found[2]))


def summary_of(column):
    """Means over seeds, whose number stands in brackets, with standard errors; the best of those with all seeds in bold."""
    rows = rows_of("decision_tables")
    for classes in (False, True):
        names = [name for name, (_, _, kind) in SETS.items() if kind == classes]
        methods = list(dict.fromkeys(row["method"] for row in rows if row["set"] in names and row[column] != "nan"))
        methods = [method for method in OURS if method in methods] + [method for method in methods if method not in OURS]
        yield f"| set | {' | '.join(methods)} |"
        yield "|---" * (len(methods) + 1) + "|"
        for name in names:
            found = {method: np.array([float(row[column]) for row in rows if (row["set"], row["method"]) == (name, method)])
                     for method in methods}
            most = max(len(values) for values in found.values())
            best = min(np.mean(values) for values in found.values() if len(values) == most)
            cells = []
            for values in found.values():
                mean = np.mean(values) if len(values) else np.nan
                error = f" ± {mean_and_error(values)[1]:.2g}" if len(values) > 1 else ""
                cell = "-" if not len(values) else f"{mean:.4g}{error} ({len(values)})"
                cells.append(f"**{cell}**" if mean == best and len(values) == most else cell)
            yield f"| {name} | {' | '.join(cells)} |"
        yield ""


def differences():
    """Where we lose: the best of ours and of the others, of methods with all seeds, and their difference seed by seed."""
    rows = rows_of("decision_tables")
    yield "| set | measure | best of ours | best of the others | ours - others |"
    yield "|---|---|---|---|---|"
    drawn = [name for name in SETS if any(row["set"] == name and row["method"] in OURS for row in rows)]
    for name in drawn:
        for column, measure in (("error", "RMSE or share wrong"), ("loss", "NLPD or log loss")):
            found = {}
            for row in rows:
                if row["set"] == name and row[column] != "nan":
                    found.setdefault(row["method"], {})[row["seed"]] = float(row[column])
            most = max(len(values) for values in found.values())
            means = {method: np.mean(list(values.values())) for method, values in found.items() if len(values) == most}
            ours = min((method for method in means if method in OURS), key=means.get)
            other = min((method for method in means if method not in OURS), key=means.get)
            change = np.array([found[ours][seed] - found[other][seed] for seed in found[ours] if seed in found[other]])
            difference = round(change.mean(), 12) + 0.0  # Equal shares differ by their rounding.
            yield (f"| {name} | {measure} | {ours} {means[ours]:.4g} | {other} {means[other]:.4g} | "
                   f"{difference:+.3g} ± {mean_and_error(change)[1]:.2g} |")


def automatic():
    """What the choice of a network changes, seed by seed."""
    rows = rows_of("decision_tables")
    yield "| set | loss | RMSE or share wrong |"
    yield "|---|---|---|"
    for name in SETS:
        found = {method: {row["seed"]: row for row in rows if (row["set"], row["method"]) == (name, method)}
                 for method in ("fcn", AUTOMATIC)}
        shared = [seed for seed in found[AUTOMATIC] if seed in found["fcn"]]
        changes = [np.array([float(found[AUTOMATIC][seed][column]) - float(found["fcn"][seed][column]) for seed in shared])
                   for column in ("loss", "error")]
        cells = ["{:+.4f} ± {:.4f}".format(*mean_and_error(change)) for change in changes if len(change) > 1]
        if cells:
            yield f"| {name} | {' | '.join(cells)} |"


def summary():
    yield from summary_of("error")
    yield from summary_of("loss")
    yield from differences()
    yield ""
    yield from automatic()


SUMMARIES = {"decision_tables": summary}


def main():
    what = sys.argv[1]
    if not shows(what, SUMMARIES):
        compute(what, int(sys.argv[2]) if len(sys.argv) > 2 else 10, sys.argv[3] if len(sys.argv) > 3 else None)


if __name__ == "__main__":
    main()
