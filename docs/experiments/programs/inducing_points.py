"""Tables of kernel-inducing points, by examples/python/kernel_inducing_points.py.

    python inducing_points.py distil|compare --data FOLDER [--threads 1] [--device cpu]
    python inducing_points.py summary

distil    accuracies of training images and of as many distilled ones, for each of CASES; docs/experiments/data/inducing_points.csv
compare   accuracies of more training images, with the NTK; docs/experiments/data/inducing_points_compared.csv
FOLDER has CIFAR-10's binary files. A row is appended as each case ends.
"""
import argparse
import pathlib
import sys

import numpy as np
import widelimit

from tables import EXPERIMENTS, Table, rows_of, shows

sys.path.insert(0, str(EXPERIMENTS.parents[1] / "examples/python"))
import kernel_inducing_points as points  # noqa: E402

PAGE = EXPERIMENTS / "kernel-inducing-points.md"
FULLY_CONNECTED = ("--network", "fcn", "--steps", "1000", "--batch", "1000")
CASES = {"NTK": FULLY_CONNECTED, "NTK; labels learned (`--learn-labels`)": (*FULLY_CONNECTED, "--learn-labels"),
         "NNGP (`--kernel nngp`)": (*FULLY_CONNECTED, "--kernel", "nngp"), "NTK; other images (`--seed 2`)": (*FULLY_CONNECTED, "--seed", "2"),
         "NTK; convolutions": ("--network", "conv", "--steps", "100", "--batch", "250")}
COUNTS = {"fcn": (200, 500, 1000, 2000, 5000, 10_000), "conv": (200, 500, 1000, 2000)}


def distil(given):
    table = Table("inducing_points", ("case",), ("options", "mean", "least", "greatest", "first", "distilled"),
                  "seed 0 unless the options have another; 100 images, five choices of them")
    for name, words in CASES.items():
        if table.lacks(name):
            before, after = points.main([*words, "--data", str(given.data), "--threads", str(given.threads)])
            table.append((name, " ".join(words), *map(float, (np.mean(before), np.min(before), np.max(before), before[0], after))))


def compare(given):
    table = Table("inducing_points_compared", ("network", "images"), ("accuracy",), "no seed: the first images")
    (train, labels), (test, test_labels) = points.read(given.data, None)
    standardised = points.Standardisation(train)
    x, x_test, y = standardised(train), standardised(test), np.eye(10)[labels] - 0.1
    for network, counts in COUNTS.items():
        model = points.Ridge(points.network(network), "ntk", 1e-6, given.threads)
        for count in counts:
            if table.lacks(network, count):
                table.append((network, count, float(points.accuracy(model, x[:count], y[:count], x_test, test_labels))))


def summary_of_distilled():
    yield "| kernel | 100 training images: mean of 5 choices (range) | those at the start | 100 distilled ones | processor time |"
    yield "|---|---|---|---|---|"
    for row in rows_of("inducing_points"):
        mean, least, greatest, first, distilled = (f"{float(row[name]):.3f}" for name in ("mean", "least", "greatest", "first", "distilled"))
        yield f"| {row['case'].replace(';', ',')} | {mean} ({least} to {greatest}) | {first} | **{distilled}** | {float(row['seconds']):.0f} s |"


def summary_of_compared():
    counts = COUNTS["fcn"]
    found = {(row["network"], int(row["images"])): f"{float(row['accuracy']):.3f}" for row in rows_of("inducing_points_compared")}
    yield f"| training images | {' | '.join(f'{count:,}' for count in counts)} |"
    yield "|---|" + "---|" * len(counts)
    for network, name in ("fcn", "fully connected"), ("conv", "convolutional"):
        yield f"| {name} | {' | '.join(found.get((network, count), '') for count in counts)} |"


SUMMARIES = {"inducing_points": summary_of_distilled, "inducing_points_compared": summary_of_compared}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("distil", "compare", "summary"))
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu", help="cpu, gpu, or part of a name as `widelimit devices` prints it [cpu]")
    given = parser.parse_args()
    if shows(given.what, SUMMARIES):
        return
    if given.data is None:
        parser.error("--data is needed to compute")
    with widelimit.device(given.device):
        {"distil": distil, "compare": compare}[given.what](given)


if __name__ == "__main__":
    main()
