"""Learning curves of kernels on CIFAR-10 images reduced to 8 x 8, with structure added step by step.

    python learning_curves.py NETWORK --data FOLDER --work FOLDER [--pool 5000] [--test 2000] [--threads 1]
                              [--device cpu] [--minutes M] [--estimate]
    python learning_curves.py summary|picture

NETWORK is a named network: fcn, conv-flatten, conv-gap or struct. Appends rows to docs/experiments/data/learning_curves.csv
as they are found, and leaves out those that it holds. Kernels are computed once, in tiles that are kept in the work folder;
a larger pool goes on from the tiles of a smaller one, and adds the numbers of images that the file lacks. A draw is an order of the first `pool` training images, of which the
first n are used: five draws up to 2,000 images, three of 4,000, one of the whole pool. Images are whitened (ZCA,
regulariser 1 relative to the mean eigenvalue) with the first 10,000 training images, without their labels. The regulariser
is the one of 17 values from 1e-6 to 100 times the mean diagonal at which the leave-one-out density has its maximum; of
more than 125 images the search climbs from the value of the next smaller number of images.
FOLDER holds the binary files of CIFAR-10.
"""
import argparse
import pathlib

import numpy as np
import widelimit
from scipy.linalg import lapack

from computing import Computer, Tiles, add_arguments
from small_cifar10 import read_images, reduced
from tables import EXPERIMENTS, Table, as_bits, difference_cell, from_bits, read, rows_of, save, shows

NETWORKS = {"struct": "attention over positions", "conv-gap": "convolutions, global pooling",
            "conv-flatten": "convolutions, flattened", "fcn": "fully connected"}
SIZES = (125, 250, 500, 1000, 2000, 4000)
DRAWS = {4000: 3}  # of a size below the pool; five of others
REGULARISERS = np.logspace(-6, 2, 17)
PAGE = EXPERIMENTS.parent / "experiments.md"
PICTURE = EXPERIMENTS.parent / "pictures" / "learning_curves.png"


def whitened(train, test):
    rows = train.reshape(len(train), -1).astype(float)
    mean = rows.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(rows.T))
    matrix = (vectors / np.sqrt(values + values.mean())) @ vectors.T
    return [np.ascontiguousarray(((x.reshape(len(x), -1) - mean) @ matrix).reshape(x.shape), np.float32) for x in (train, test)]


def images(folder, test):
    """Training images and their labels, the first `test` test images and theirs, reduced and whitened."""
    train, labels = read_images(sorted(folder.glob("data_batch_*.bin")))
    test_images, truth = read_images([folder / "test_batch.bin"])
    train, test_images = whitened(reduced(train[:10_000], 8), reduced(test_images[:test], 8))
    return train, labels[:10_000], test_images, truth[:test]


def kernels(network, options, computer, train, test):
    """NNGP and NTK of training with training images, and of test with training images: [2, n, n] and [2, t, n]."""
    tiles = Tiles(computer, network, computer.folder(options.work, f"{options.network}_8"), train, test)
    computer.begin(f"{options.network} at 8 x 8", [(network, train, tiles.pairs())])
    return tiles.compute()


class LeaveOneOut:
    """What a kernel [n, n] with a regulariser predicts of each training target without it, in closed form."""

    def __init__(self, square, targets, regulariser):
        self.regulariser = regulariser
        self.factor, failed = lapack.dpotrf(square + regulariser * np.eye(len(square)), lower=1, overwrite_a=1)
        if failed:
            raise ArithmeticError(f"no Cholesky factor with regulariser {regulariser:g}")
        self.weights = lapack.dpotrs(self.factor, targets, lower=1)[0]
        inverse_diagonal = lapack.dpotri(self.factor, lower=1)[0].diagonal()
        self.variance = 1 / inverse_diagonal
        self.residual = self.weights / inverse_diagonal[:, None]
        self.amplitude = (self.residual**2 / self.variance[:, None]).mean()
        variance = self.amplitude * self.variance[:, None]
        self.density = -0.5 * (np.log(2 * np.pi * variance) + self.residual**2 / variance).mean()


def best_leave_one_out(square, targets, start=None):
    """LeaveOneOut of the regulariser with the greatest density: of all, or, from a place `start`, the first maximum uphill.
    Returns it and its place among REGULARISERS."""
    found = {}

    def density(place):
        if not 0 <= place < len(REGULARISERS):
            return -np.inf
        if place not in found:
            found[place] = LeaveOneOut(square, targets, REGULARISERS[place])
        return found[place].density

    if start is None:
        place = max(range(len(REGULARISERS)), key=density)
    else:
        place = start
        while (best := max((place, place - 1, place + 1), key=density)) != place:
            place = best
    return found[place], place


def centred(labels):
    return np.eye(10)[labels] - 0.1


def append_rows(table, options, square, cross, labels, truth):
    _, columns, rows = read(table.path)
    rows = [dict(zip(columns, row)) for row in rows]
    found = {(row["network"], row["kernel"], int(row["draw"]), int(row["train"]), int(row["test"])):
             int(np.argmin(abs(np.log(REGULARISERS / float(row["regulariser"]))))) for row in rows}
    sizes = [size for size in SIZES if size < options.pool] + [options.pool]
    for draw in range(5):
        order = np.random.default_rng(draw).permutation(options.pool)
        places = {}
        for n in sizes:
            if draw >= (1 if n == options.pool else DRAWS.get(n, 5)):
                continue
            chosen = order[:n]
            for name, k, c in zip(("nngp", "ntk"), square, cross):
                key = (options.network, name, draw, n, len(truth))
                if not table.lacks(*key):
                    places[name] = found[key]
                    continue
                part = k[np.ix_(chosen, chosen)].astype(float)
                scale = part.diagonal().mean()
                fit, places[name] = best_leave_one_out(part / scale, centred(labels[chosen]), places.get(name))
                mean = (c[:, chosen].astype(float) / scale) @ fit.weights
                right = mean.argmax(axis=1) == truth
                table.append((*key, options.pool, float(fit.regulariser), float(((mean - centred(truth))**2).mean()), int(right.sum()), as_bits(right)))


def curves(network, kernel):
    """For every number of training images: whether the test images were answered right, {draw: [test]}."""
    points = {}
    for row in rows_of("learning_curves"):
        if (row["network"], row["kernel"]) == (network, kernel):
            points.setdefault(int(row["train"]), {})[row["pool"], row["draw"]] = from_bits(row)
    return dict(sorted(points.items()))


def summary():
    found = {(network, kernel): curves(network, kernel) for network in NETWORKS for kernel in ("nngp", "ntk")}
    found = {key: points for key, points in found.items() if points}
    sizes = sorted(set().union(*found.values()))
    yield f"| network | kernel | {' | '.join(f'{n:,}' for n in sizes)} |"
    yield "|---|---|" + "---|" * len(sizes)
    for (network, kernel), points in found.items():
        cells = []
        for n in sizes:
            values = [right.mean() for right in points.get(n, {}).values()]
            spread = f" ({1000 * np.std(values, ddof=1):.0f})" if len(values) > 1 else ""
            cells.append(f"{np.mean(values):.3f}".lstrip("0") + spread if values else "")
        yield f"| {network}: {NETWORKS[network]} | {kernel.upper()} | {' | '.join(cells)} |"
    yield ""
    yield f"| difference | kernel | {' | '.join(f'{n:,}' for n in sizes)} |"
    yield "|---|---|" + "---|" * len(sizes)
    for first, second in (("struct", "conv-gap"), ("conv-gap", "conv-flatten"), ("conv-flatten", "fcn")):
        for kernel in ("nngp", "ntk"):
            cells = []
            for n in sizes:
                cells.append(difference_cell(*(found.get((network, kernel), {}).get(n, {}) for network in (first, second))))
            if any(cells):
                yield f"| {first} - {second} | {kernel.upper()} | {' | '.join(cells)} |"


def draw_picture():
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    figure, axes = plt.subplots(figsize=(7, 4.2))
    sizes = set()
    for network, name in NETWORKS.items():
        points = {n: [right.mean() for right in draws.values()] for n, draws in curves(network, "ntk").items()}
        sizes |= set(points)
        axes.errorbar(list(points), [np.mean(values) for values in points.values()],
                      [np.std(values, ddof=1) if len(values) > 1 else 0 for values in points.values()], marker="o", markersize=4,
                      capsize=3, label=name)
    axes.set(xscale="log", xlabel="training images", ylabel="accuracy on test images", title="CIFAR-10 at 8 x 8 pixels, infinitely wide networks (NTK)")
    axes.set_xticks(sorted(sizes), labels=[f"{n:,}" for n in sorted(sizes)])
    axes.minorticks_off()
    axes.legend()
    axes.grid(alpha=0.3)
    save(figure, PICTURE)


SUMMARIES = {"learning_curves": summary}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("network", choices=(*NETWORKS, "summary", "picture"))
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--pool", type=int, default=5000)
    parser.add_argument("--test", type=int, default=2000)
    add_arguments(parser)
    options = parser.parse_args()
    if shows(options.network, SUMMARIES, draw_picture):
        return
    if options.data is None or options.work is None:
        parser.error("--data and --work are needed to compute kernels")
    computer = Computer(options)
    table = Table("learning_curves", ("network", "kernel", "draw", "train", "test"),
                  ("pool", "regulariser", "mean_squared_error", "correct", "right_bits"), "draws 0 to 4; kernels apart", computer)
    train, labels, test, truth = images(options.data, options.test)
    square, cross = kernels(widelimit.Network.named(options.network), options, computer, train[:options.pool], test)
    append_rows(table, options, square, cross, labels[:options.pool], truth)


if __name__ == "__main__":
    main()
