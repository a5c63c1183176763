"""Calibration of Gaussian process regression on labels, CIFAR-10 at 8 x 8: how sure predictions are, how sure they may be.

    python calibration.py NETWORK --data FOLDER --work FOLDER [--pool 2500] [--train 2000] [--test 2000] [--draws 5]
                          [--device cpu] [--minutes M] [--estimate]
    python calibration.py summary|picture

NETWORK, images, kernels and their folder are those of learning_curves.py. A draw is an order of the first `pool` training
images, of which the first `train` are used. A kernel (NNGP, or NTK as the kernel of a Gaussian process) has its regulariser
by leave-one-out; each observation's variance is that of the posterior and the noise, times a factor:

    own         1: the kernel as the network has it
    amplitude   the amplitude, in closed form from the training labels left out one by one
    scale       the amplitude over the square of the temperature that leave-one-out finds (Guo et al. 2017), one factor on all
                scores: what models of version 0.2 did; for class probabilities only

Appends to docs/experiments/data/calibration.csv (accuracy, log loss and expected calibration error of the class probabilities,
15 bins, and the negative log density of the test targets per class) and calibration_bins.csv (reliability).
"""
import argparse
import pathlib

import numpy as np
import widelimit
from scipy.linalg import solve_triangular
from scipy.optimize import minimize_scalar

from computing import Computer, add_arguments
from learning_curves import NETWORKS, REGULARISERS, best_leave_one_out, centred, images, kernels
from tables import EXPERIMENTS, Table, rows_of, save, shows

VARIANTS = ("own", "amplitude", "scale")
KEYS = ("network", "kernel", "pool", "draw", "train", "test")
PAGE = EXPERIMENTS.parent / "experiments.md"
PICTURE = EXPERIMENTS.parent / "pictures" / "calibration.png"


def temperature_scale(left_out, variance, labels):
    """The factor on scores under which the labels left out are most likely, each counted as 1 - 1 / (n + 2)."""
    def loss(logarithm):
        logs = np.log(np.maximum(widelimit.class_probabilities(left_out, variance * np.exp(-2 * logarithm)), 1e-300))
        others = 1 / (len(labels) + 2)
        share = others / (logs.shape[1] - 1)
        return -(share * logs.sum(axis=1) + (1 - others - share) * logs[np.arange(len(labels)), labels]).mean()
    return np.exp(minimize_scalar(loss, bounds=(-7, 7), method="bounded").x)


def measured(square, cross, own, labels, truth):
    """Of every variant: (factor, accuracy, log loss, expected calibration error, negative log density, bins)."""
    scale = square.diagonal().mean()
    square, cross, own = square.astype(float) / scale, cross.astype(float) / scale, own.astype(float) / scale
    fit, _ = best_leave_one_out(square, centred(labels), start=len(REGULARISERS) * 2 // 3)
    mean = cross @ fit.weights
    # The factor went into the inverse.
    factor = np.linalg.cholesky(square + fit.regulariser * np.eye(len(square)))
    variance = own - (solve_triangular(factor, cross.T, lower=True) ** 2).sum(axis=0) + fit.regulariser
    left_out = centred(labels) - fit.residual
    factors = {"own": scale, "amplitude": fit.amplitude,
               "scale": fit.amplitude / temperature_scale(left_out, fit.amplitude * fit.variance, labels)**2}
    right = mean.argmax(axis=1) == truth
    for name in VARIANTS:
        spread = factors[name] * variance
        probabilities = widelimit.class_probabilities(mean, spread)
        found = widelimit.calibration(probabilities, truth)
        log_loss = -np.log(np.maximum(probabilities[np.arange(len(truth)), truth], 1e-300)).mean()
        density = 0.5 * (np.log(2 * np.pi * spread)[:, None] + (mean - centred(truth)) ** 2 / spread[:, None]).mean()
        yield name, fit.regulariser, factors[name], right.mean(), log_loss, found.expected_error, density, found.bins


def fill(options):
    computer = Computer(options)
    train, labels, test, truth = images(options.data, options.test)
    network = widelimit.Network.named(options.network)
    pool = options.pool
    square, cross = kernels(network, options, computer, train[:pool], test)
    own = computer.diagonal(network, test)
    about = "draws 0, 1, ...; factor is on a kernel of mean diagonal 1"
    table = Table("calibration", KEYS, ("variant", "regulariser", "factor", "accuracy", "log_loss", "expected_calibration_error",
                                        "negative_log_density"), about, computer)
    bins = Table("calibration_bins", KEYS, ("variant", "lower", "upper", "count", "mean_confidence", "accuracy"), about, computer)
    for draw in range(options.draws):
        chosen = np.random.default_rng(draw).permutation(pool)[:options.train]
        for name, k, c, o in zip(("nngp", "ntk"), square, cross, own):
            key = (options.network, name, pool, draw, options.train, len(truth))
            if table.lacks(*key) and bins.lacks(*key):
                found = list(measured(k[np.ix_(chosen, chosen)], c[:, chosen], o, labels[chosen], truth))
                bins.append(*((*key, variant, b.lower, b.upper, b.count, b.mean_confidence, b.accuracy)
                              for variant, *_, of_variant in found for b in of_variant))
                table.append(*((*key, *map(plain, row[:-1])) for row in found))


def plain(value):
    return value if isinstance(value, str) else float(value)


def of_most_draws(rows, network, kernel, variant):
    """Rows of one case, from the pool with the most of them."""
    mine = [row for row in rows if (row["network"], row["kernel"], row["variant"]) == (network, kernel, variant)]
    pools = [row["pool"] for row in mine]
    return [row for row in mine if row["pool"] == max(pools, key=pools.count)]


def summary():
    yield "| network | kernel | draws | accuracy | variance | log loss | expected calibration error | negative log density of the targets |"
    yield "|---|---|---|---|---|---|---|---|"
    rows = rows_of("calibration")
    for network in NETWORKS:
        for kernel in ("nngp", "ntk"):
            for variant in VARIANTS:
                mine = of_most_draws(rows, network, kernel, variant)
                if mine:
                    cells = [with_spread([float(row[name]) for row in mine])
                             for name in ("accuracy", "log_loss", "expected_calibration_error", "negative_log_density")]
                    if variant == "scale":  # a temperature of the classes, no variance of the targets
                        cells[-1] = ""
                    yield f"| {network} | {kernel.upper()} | {len(mine)} | {cells[0]} | {variant} | {' | '.join(cells[1:])} |"


def with_spread(values):
    """Mean, and in brackets the standard deviation over draws, if there are several."""
    return f"{np.mean(values):.3f}" + (f" ({np.std(values, ddof=1):.3f})" if len(values) > 1 else "")


def draw_picture():
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    rows = rows_of("calibration_bins")
    networks = [name for name in NETWORKS if any(row["network"] == name for row in rows)]
    figure, axes = plt.subplots(1, len(networks), figsize=(3 * len(networks) + 0.5, 3.3), sharey=True)
    for panel, network in zip(np.atleast_1d(axes), networks):
        panel.plot([0, 1], [0, 1], color="black", lw=0.8)
        for variant in VARIANTS:
            bins = {}
            for row in of_most_draws(rows, network, "nngp", variant):
                if int(row["count"]):
                    bins.setdefault(row["lower"], []).append([float(row[name]) for name in ("count", "mean_confidence", "accuracy")])
            points = [np.array(of_bin) for of_bin in bins.values() if np.sum(np.array(of_bin)[:, 0]) >= 50]
            means = np.array([np.average(p[:, 1:], axis=0, weights=p[:, 0]) for p in points])
            errors = [np.sqrt(a * (1 - a) / (p[:, 0].sum() / len(p))) for p, (_, a) in zip(points, means)]
            panel.errorbar(means[:, 0], means[:, 1], errors, marker="o", markersize=3, capsize=2, lw=1, label=variant)
        panel.set(title=f"{network}, NNGP", xlabel="mean confidence", xlim=(0, 1), ylim=(0, 1))
        panel.grid(alpha=0.3)
    np.atleast_1d(axes)[0].set_ylabel("share that is right")
    np.atleast_1d(axes)[0].legend(fontsize=8)
    save(figure, PICTURE)


SUMMARIES = {"calibration": summary}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("network", choices=(*NETWORKS, "summary", "picture"))
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--pool", type=int, default=2500)
    parser.add_argument("--train", type=int, default=2000)
    parser.add_argument("--test", type=int, default=2000)
    parser.add_argument("--draws", type=int, default=5)
    add_arguments(parser)
    options = parser.parse_args()
    if shows(options.network, SUMMARIES, draw_picture):
        return
    if options.data is None or options.work is None:
        parser.error("--data and --work are needed to compute kernels")
    fill(options)


if __name__ == "__main__":
    main()
