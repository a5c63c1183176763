"""Learning curves of kernels on CIFAR-10 images reduced to 8 x 8, with structure added step by step.

    python learning_curves.py NETWORK --data FOLDER --work FOLDER [--train 10000] [--test 2000] [--draws 5] [--threads 1]

NETWORK is a named network: fcn, conv-flatten, conv-gap or struct. Appends rows to docs/experiments/data/learning_curves.csv
and draws docs/pictures/learning_curves.png from all that the file holds. The kernels of all training images are computed
once, in blocks that are kept in the work folder. A draw is an order of the training images, of which the first n are used.
Images are whitened (ZCA, regulariser 1 relative to the mean eigenvalue) with the first 10,000 training images, without their
labels. The regulariser is chosen by leave-one-out among 17 values from 1e-6 to 100.
FOLDER holds the binary files of CIFAR-10.
"""
import argparse
import pathlib
import platform
import sys

import numpy as np
import widelimit

from small_cifar10 import kept, read_images

SIZES = (125, 250, 500, 1000, 2000, 4000, 8000, 10_000)
BLOCK = 250
OUT = pathlib.Path(__file__).parents[1] / "data" / "learning_curves.csv"
PICTURE = pathlib.Path(__file__).parents[2] / "pictures" / "learning_curves.png"
HEADER = "network,kernel,draw,train,test,regulariser,correct,accuracy,mean_squared_error\n"


def reduced(images):
    """[n, 32, 32, 3] to [n, 8, 8, 3], by means of 4 x 4 pixels."""
    return images.reshape(-1, 8, 4, 8, 4, 3).mean(axis=(2, 4))


def whitened(train, test):
    rows = train.reshape(len(train), -1).astype(float)
    mean = rows.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(rows.T))
    matrix = (vectors / np.sqrt(values + values.mean())) @ vectors.T
    return [np.ascontiguousarray(((x.reshape(len(x), -1) - mean) @ matrix).reshape(x.shape), np.float32) for x in (train, test)]


def kernels(network, train, test, work, threads):
    """NNGP and NTK of training with training images, and of test with training images: [2, n, n] and [2, t, n]."""
    def rows_of(name, x):
        def compute(start):
            return lambda: widelimit.gram(network, x[start:start + BLOCK], train, threads=threads)[:2]
        blocks = [np.stack(kept(work / f"{name}_{len(train)}_{start}.npz", compute(start))) for start in range(0, len(x), BLOCK)]
        return np.concatenate(blocks, axis=1)
    return rows_of("train", train), rows_of("test", test)


def predictions(square, cross, targets):
    """Means at the test inputs, and the regulariser, with the regulariser whose leave-one-out density is greatest."""
    scale = square.diagonal().mean()
    values, vectors = np.linalg.eigh(square.astype(float) / scale)
    projected, best = vectors.T @ targets, None
    for regulariser in np.logspace(-6, 2, 17):
        inverse = 1 / (np.maximum(values, 0) + regulariser)
        inverse_diagonal = (vectors**2) @ inverse
        residual = (vectors @ (inverse[:, None] * projected)) / inverse_diagonal[:, None]
        variance = 1 / inverse_diagonal
        amplitude = (residual**2 / variance[:, None]).mean()
        density = -0.5 * (np.log(amplitude * variance)[:, None] + residual**2 / (amplitude * variance)[:, None]).mean()
        if best is None or density > best[0]:
            best = density, regulariser, vectors @ (inverse[:, None] * projected)
    return (cross.astype(float) / scale) @ best[2], best[1]


def append_rows(options, square, cross, labels, truth):
    known = set(line.rsplit(",", 4)[0] for line in OUT.read_text().splitlines()) if OUT.exists() else set()
    with OUT.open("a") as out:
        if not known:
            out.write(f"# python docs/experiments/programs/learning_curves.py NETWORK ...; widelimit {widelimit.__version__}; "
                      f"{platform.machine()}\n{HEADER}")
        for draw in range(options.draws):
            order = np.random.default_rng(draw).permutation(len(labels))
            for n in (size for size in SIZES if size <= len(labels)):
                chosen = order[:n]
                for name, k, c in zip(("nngp", "ntk"), square, cross):
                    key = f"{options.network},{name},{draw},{n},{len(truth)}"
                    if key in known:
                        continue
                    targets = np.eye(10)[labels[chosen]] - 0.1
                    mean, regulariser = predictions(k[np.ix_(chosen, chosen)], c[:, chosen], targets)
                    right = int((mean.argmax(axis=1) == truth).sum())
                    mse = ((mean - (np.eye(10)[truth] - 0.1))**2).mean()
                    out.write(f"{key},{regulariser:.3g},{right},{right / len(truth):.4f},{mse:.5f}\n")
                    out.flush()


def draw_picture():
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    rows = [line.split(",") for line in OUT.read_text().splitlines()[2:]]
    figure, axes = plt.subplots(figsize=(7, 4.2))
    names = {"struct": "attention over positions", "conv-gap": "convolutions, global pooling", "conv-flatten": "convolutions, flattened",
             "fcn": "fully connected"}
    for network, name in names.items():
        points = {}
        for row in rows:
            if row[0] == network and row[1] == "ntk":
                points.setdefault(int(row[3]), []).append(float(row[7]))
        if points:
            sizes = sorted(points)
            mean = [np.mean(points[n]) for n in sizes]
            axes.errorbar(sizes, mean, [np.std(points[n]) for n in sizes], marker="o", markersize=4, capsize=3, label=name)
    axes.set(xscale="log", xlabel="training images", ylabel="accuracy on test images", title="CIFAR-10 at 8 x 8 pixels, infinitely wide networks (NTK)")
    axes.set_xticks([n for n in SIZES if n <= max(int(row[3]) for row in rows)], labels=[f"{n:,}" for n in SIZES if n <= max(int(row[3]) for row in rows)])
    axes.minorticks_off()
    axes.legend()
    axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=130)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("network", choices=("fcn", "conv-flatten", "conv-gap", "struct", "picture"))
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--train", type=int, default=10_000)
    parser.add_argument("--test", type=int, default=2000)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    if options.network != "picture":
        if options.data is None or options.work is None:
            sys.exit("learning_curves.py: --data and --work are needed to compute kernels")
        train, labels = read_images(sorted(options.data.glob("data_batch_*.bin")))
        test, truth = read_images([options.data / "test_batch.bin"])
        train, test = whitened(reduced(train[:10_000]), reduced(test[:options.test]))
        work = options.work / f"{options.network}_8"
        work.mkdir(parents=True, exist_ok=True)
        square, cross = kernels(widelimit.Network.named(options.network), train[:options.train], test, work, options.threads)
        append_rows(options, square, cross, labels[:options.train], truth[:options.test])
    draw_picture()


if __name__ == "__main__":
    main()
