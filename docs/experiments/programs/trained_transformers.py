"""What data/trained_transformers.csv says, which train_transformers.py writes: do exponents at initialisation foretell losses?

    python trained_transformers.py summary
    python trained_transformers.py theory [--mnist FOLDER] [--cifar10 FOLDER] [--reviews FOLDER]

Predictions are out of sample, beside baselines: a fifth of the initialisations is left out at a time with all their seeds, or one of the
depths. Predictors see hyperparameters, exponents of the limit, theories of the tokens' correlation, or what one network shows before it
is trained; all are cut to [0, ln of the classes].

`theory` appends to data/trained_theory.csv what theories say of initialisations that have rows: the mean correlation of two tokens behind
the last block, from the tokens of 4 inputs, with a standard error over samples, and the share of paths that exploded
    cowsik              the annealed map of blocks from the mean correlation of the inputs' tokens
    shaped, shaped_start  256 paths of the covariance SDE an input
    unshaped, post_ln   64 networks of width and depth an input, drawn without JAX
    pre_ln              the same at alpha = .7071, where skip connection and branch have factor 1; nothing elsewhere
"""
import argparse
import functools

import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from widelimit import propagation, sde

from tables import DATA, EXPERIMENTS, Table, mean_and_error, rows_of, shows
from train_transformers import inputs_of, is_shaped, start_covariance

NAME, THEORY = "trained_transformers", "trained_theory"
PAGE = EXPERIMENTS / "signal-propagation.md"
CLASSES = {"copy": 16, "mnist": 10, "cifar10": 10, "reviews": 2}
POINT = ("alpha", "sigma_w", "depth", "width")
FOLDS, SEEDS, STEPS = 5, 3, "150"  # predictions are of networks that learned for so many steps
OTHER_KINDS = ("shaped", "unshaped", "pre_ln", "post_ln")
INPUTS, PATHS, SAMPLES = 4, 256, 64


def correlations(covariances):
    """Mean correlation of two tokens of each path, [paths, m, m]."""
    norm = np.sqrt(np.einsum("pii->pi", covariances))
    first, second = np.triu_indices(covariances.shape[1], 1)
    return (covariances / norm[:, :, None] / norm[:, None])[:, first, second].mean(axis=1)


def of_paths(found):
    """(correlations of the paths that ran up to the end, share of those that did not) of an ensemble."""
    return correlations(found.covariances[-1][found.ends == "horizon"]), float(np.mean(found.ends != "horizon"))


def theory_of(kind, alpha, sigma_w, depth, width, starts, causal):
    """(correlation, its standard error, share of exploded paths), or None where there is no theory."""
    mask = "causal" if causal else "full"
    if kind == "cowsik":
        tokens = starts[0].shape[0]
        network = propagation.Parameters(tokens=tokens, alpha_A=alpha, alpha_M=alpha, sigma_w=sigma_w)
        start = float(np.mean([correlations(v[None]) for v in starts]))
        return 1 - float(propagation.trajectory(network, depth, q0=1, c0=start, causal=causal).gap[-1]), 0.0, 0.0
    if is_shaped(kind):
        model = sde.transformer(alpha**2, mask=mask)
        found = [of_paths(sde.simulate(model, v, [depth / width], paths=PATHS, seed=1, threads=1)) for v in starts]
    elif kind != "pre_ln" or round(alpha, 4) == 0.7071:
        network = sde.Network(f"unshaped_{kind}".removesuffix("_unshaped"), width, None if kind == "pre_ln" else alpha**2, mask=mask)
        found = [of_paths(sde.sample_networks(network, v, [depth], samples=SAMPLES, seed=1, threads=1)) for v in starts]
    else:
        return None
    values = np.concatenate([path for path, _ in found])
    return float(values.mean()), float(values.std(ddof=1) / len(values) ** 0.5), float(np.mean([share for _, share in found]))


def theory(folders):
    table = Table(THEORY, ("task", "kind", *POINT), ("correlation", "standard_error", "share_exploded"), "seed 1")
    for task in CLASSES:
        rows = [row for row in rows_of(NAME) if row["task"] == task]
        if not rows or (task != "copy" and folders[task] is None):
            continue
        starts = [start_covariance(x) for x in inputs_of(task, folders[task])[0][:INPUTS]]
        for kind, *point in sorted({(row["kind"], *(float(row[key]) for key in POINT)) for row in rows}):
            if table.lacks(task, kind, *point):
                found = theory_of(kind, *point[:2], *map(int, point[2:]), starts, task == "copy")
                if found:
                    table.append((task, kind, *point, *found))


@functools.cache
def theories():
    """{(task, kind, *POINT): correlation}."""
    rows = rows_of(THEORY) if (DATA / f"{THEORY}.csv").exists() else []
    return {(row["task"], row["kind"], *(float(row[key]) for key in POINT)): float(row["correlation"]) for row in rows}


class Networks:
    """The networks of one task and some kinds of blocks whose initialisations have at least SEEDS seeds."""

    def __init__(self, task, kinds=("cowsik",)):
        found = [row for row in rows_of(NAME) if row["kind"] in kinds and row["task"] == task and row["steps"] == STEPS]
        names = [(row["kind"], *(float(row[key]) for key in POINT)) for row in found]
        for row, name in zip(found, names):
            row["correlation"] = theories().get((task, *name), float("nan"))
            row |= {f"is_{kind}": float(row["kind"] == kind) for kind in kinds}
        self.task, self.kinds = task, kinds
        self.rows = [row for row, name in zip(found, names) if names.count(name) >= SEEDS]
        self.classes = CLASSES[task]
        self.loss = np.minimum(self.column("loss"), np.log(self.classes))
        self.points = np.unique([[kinds.index(row["kind"]), *(float(row[key]) for key in POINT)] for row in self.rows], axis=0,
                                return_inverse=True)[1]
        self.count = self.points.max() + 1

    def column(self, name):
        return np.array([float(row[name]) for row in self.rows])

    def columns(self, *names):
        return np.stack([self.column(name) for name in names], axis=1)

    def folds(self):
        """Of each network, the same for all seeds of an initialisation."""
        return (np.random.default_rng(1).permutation(self.count) % FOLDS)[self.points]

    def out_of_sample(self, fit, folds):
        """Losses of all networks by fit(others) -> predictor(rows), each without its fold."""
        found = np.empty(len(self.loss))
        for fold in np.unique(folds):
            away = folds == fold
            found[away] = fit(~away)(away)
        return np.clip(found, 0, np.log(self.classes))

    def quadratic(self, *names):
        """A polynomial of degree 2 of columns by ridge regression, whose penalty the rows choose by leaving out one at a time."""
        values = self.columns(*names)

        def fit(rows):
            line = make_pipeline(PolynomialFeatures(2, include_bias=False), StandardScaler(), RidgeCV(np.logspace(-3, 2, 11)))
            line.fit(values[rows], self.loss[rows])
            return lambda others: line.predict(values[others])

        return fit

    def paper(self, a, g):
        """The paper's predictor, min(bias + max(weight_a |a|, weight_g |g|), ln of the classes)."""
        def fit(rows):
            found = propagation.fit_losses(a[rows], g[rows], self.loss[rows], classes=self.classes, bootstrap=2)
            return lambda others: found.bias + np.maximum(found.weight_a * abs(a[others]), found.weight_g * abs(g[others]))

        return fit

    def predictors(self):
        """(name, fit) of the exponents' predictor, variants, and baselines."""
        exponents, depth = (self.column("lambda_a"), self.column("lambda_g")), self.column("depth")
        yield "both exponents, the paper's form", self.paper(*exponents)
        yield "both exponents times depth, the paper's form", self.paper(*(part * depth for part in exponents))
        yield "growths in the network itself before training, the paper's form", self.paper(self.column("log_gap_before"),
                                                                                             self.column("log_gradient_before"))
        yield "both exponents, quadratic", self.quadratic("lambda_a", "lambda_g")
        if np.isfinite(self.column("correlation")).all():
            yield "correlation of tokens behind the last block by the theory, quadratic", self.quadratic("correlation")
        yield "both exponents and depth, quadratic", self.quadratic("lambda_a", "lambda_g", "depth")
        yield "entropy of the attention before training, quadratic", self.quadratic("entropy_before")
        yield "alpha alone, quadratic", self.quadratic("alpha")
        yield "depth alone, quadratic", self.quadratic("depth")
        yield "alpha and depth, quadratic", self.quadratic("alpha", "depth")
        yield "alpha, sigma_w and depth, quadratic", self.quadratic("alpha", "sigma_w", "depth")
        yield "the mean loss", lambda rows: lambda others: np.full(others.sum(), self.loss[rows].mean())

    def predictors_of_kinds(self):
        """The same for several kinds of blocks together, of which most have no exponents."""
        yield "growths in the network itself before training, quadratic", self.quadratic("log_gap_before", "log_gradient_before")
        yield "entropy of the attention before training, quadratic", self.quadratic("entropy_before")
        if np.isfinite(self.column("correlation")).all():
            yield "correlation of tokens behind the last block by the theory, quadratic", self.quadratic("correlation")
            yield "correlation by the theory and alpha, quadratic", self.quadratic("correlation", "alpha")
        kinds = [f"is_{kind}" for kind in self.kinds]
        yield "alpha alone, quadratic", self.quadratic("alpha")
        yield "depth alone, quadratic", self.quadratic("depth")
        yield "alpha and depth, quadratic", self.quadratic("alpha", "depth")
        yield "kind alone", self.quadratic(*kinds)
        yield "kind, alpha and depth, quadratic", self.quadratic(*kinds, "alpha", "depth")
        yield "the mean loss", lambda rows: lambda others: np.full(others.sum(), self.loss[rows].mean())

    def of_other_seeds(self):
        """The mean loss of the other seeds of an initialisation: what no predictor of initialisations does better than, about."""
        found = np.empty(len(self.loss))
        for k, point in enumerate(self.points):
            others = self.points == point
            others[k] = False
            found[k] = self.loss[others].mean()
        return found

    def per_point(self, values):
        """Means over the seeds of each initialisation."""
        return np.bincount(self.points, values) / np.bincount(self.points)


@functools.cache
def squared_errors(task, kinds=("cowsik",)):
    """{predictor: (squared errors without initialisations and, of at least 3 depths, without depths)}, means over seeds of each
    initialisation."""
    networks = Networks(task, kinds)

    def of(found):
        return networks.per_point((found - networks.loss) ** 2)

    depths = networks.column("depth")
    splits = (networks.folds(), depths) if len(set(depths)) > 2 else (networks.folds(),)
    predictors = networks.predictors() if kinds == ("cowsik",) else networks.predictors_of_kinds()
    errors = {name: tuple(of(networks.out_of_sample(fit, split)) for split in splits) for name, fit in predictors}
    errors["the other seeds of the same initialisation"] = (of(networks.of_other_seeds()),) * len(splits)
    return errors


def difference(errors, reference):
    """Of squared errors to those of another predictor, with a standard error over initialisations."""
    value, error = mean_and_error(errors - reference)
    return f"{value:+.3f} ± {error:.3f}"


def summary_of_predictors(task, kinds=("cowsik",)):
    networks, errors = Networks(task, kinds), squared_errors(task, kinds)
    first = next(iter(errors.values()))
    what, reference = (task, "that of the exponents") if kinds == ("cowsik",) else (f"{task}, {', '.join(kinds)}", "that of the growths")
    yield (f"| {what}: {len(networks.loss)} networks, {networks.count} initialisations | error | squared error less {reference} |" +
           " error at a depth left out | the same difference |" * (len(first) > 1))
    yield "|---|---|---|" + "---|---|" * (len(first) > 1)
    for name, splits in errors.items():
        cells = [cell for values, reference in zip(splits, first)
                 for cell in (f"{np.sqrt(values.mean()):.2f}", "" if values is reference else difference(values, reference))]
        yield f"| {name} | {' | '.join(cells)} |"


def summary_of_losses(task):
    """Of the deepest networks, means over seeds."""
    networks = Networks(task)
    alpha, gain, depth = (networks.column(name) for name in POINT[:3])
    deepest = depth == depth.max()
    gains = sorted(set(gain))
    yield f"| {task}, {depth.max():.0f} blocks: alpha \\ sigma_w | " + " | ".join(f"{value:g}" for value in gains) + " |"
    yield "|---|" + "---|" * len(gains)
    for row in sorted(set(alpha[deepest])):
        chosen = [networks.loss[deepest & (alpha == row) & (gain == value)] for value in gains]
        yield f"| {row:g} | " + " | ".join("{:.2f} ± {:.2f}".format(*mean_and_error(losses)) if len(losses) else "" for losses in chosen) + " |"


def summary_of_kinds():
    """Losses and entropies of the other blocks, and of those of Cowsik et al. at the same sizes."""
    found = [row for row in rows_of(NAME) if row["kind"] != "cowsik"]
    yield ("| task, blocks, steps | kind | alpha | networks | loss | accuracy | entropy of the attention before training | halfway | after | "
           "ln of the growth of gaps before training | of squared gradients | correlation by the theory |")
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|"
    names = ("loss", "accuracy", "entropy_before", "entropy_halfway", "entropy_after", "log_gap_before", "log_gradient_before")
    def key_of(row):
        return row["task"], int(row["depth"]), int(row["steps"]), row["kind"], row["alpha"]

    for key in sorted(set(map(key_of, found))):
        chosen = [row for row in found if key_of(row) == key]
        if len(chosen) >= SEEDS:
            cells = ["{:.2f} ± {:.2f}".format(*mean_and_error(np.array([float(row[name]) for row in chosen]))) for name in names]
            correlation = theories().get((key[0], key[3], *(float(chosen[0][name]) for name in POINT)))
            cells.append("" if correlation is None else f"{correlation:.2f}")
            yield f"| {key[0]}, {key[1]}, {key[2]} | {key[3]} | {key[4]} | {len(chosen)} | {' | '.join(cells)} |"


def tasks(kinds=("cowsik",), least=2 * FOLDS * SEEDS):
    """Those with enough networks to leave some out."""
    found = [row["task"] for row in rows_of(NAME) if row["kind"] in kinds and row["steps"] == STEPS]
    return [task for task in CLASSES if found.count(task) >= least]


def summary():
    enough = tasks()
    for task in tasks(least=SEEDS):
        yield from summary_of_losses(task)
        yield ""
        if task in enough:
            yield from summary_of_predictors(task)
            yield ""
    for task in tasks(OTHER_KINDS):
        yield from summary_of_predictors(task, OTHER_KINDS)
        yield ""
    if any(row["kind"] != "cowsik" for row in rows_of(NAME)):
        yield from summary_of_kinds()


SUMMARIES = {NAME: summary}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["summary", "theory"])
    for task in sorted(set(CLASSES) - {"copy"}):
        parser.add_argument(f"--{task}", help="folder of its files")
    given = parser.parse_args()
    if not shows(given.what, SUMMARIES):
        theory({"copy": None} | {task: getattr(given, task) for task in set(CLASSES) - {"copy"}})


if __name__ == "__main__":
    main()
