"""Default preprocessing of colour images by size and number: CIFAR-10, NNGP of a fully connected network (and of two
convolutions at 8 x 8), accuracy on 1,200 test images with the best regulariser of four on 700 others.

    python docs/experiments/programs/whitening.py --data FOLDER --out docs/experiments/data/whitening.csv

FOLDER holds data_batch_1.bin and data_batch_2.bin. Ten minutes on one core.
"""

import argparse
import csv
import pathlib

import numpy as np
from scipy.linalg import cho_factor, cho_solve

import widelimit
from widelimit import layers

from tables import head

HIDDEN = [layers.dense(2, 0.01), layers.relu()]
CONVOLUTION = [layers.conv([3, 3], weight_variance=2, bias_variance=0.01), layers.relu()]
NETWORKS = {"fcn": widelimit.Network([*HIDDEN, *HIDDEN, layers.dense(1, 0.01)]),
            "conv-flatten": widelimit.Network([*CONVOLUTION, *CONVOLUTION, layers.flatten(), layers.dense()])}
CASES = [(8, "fcn", n, 3) for n in (100, 300, 1000, 3000)] + [(8, "conv-flatten", n, 3) for n in (100, 300, 1000)]
CASES += [(16, "fcn", n, 2) for n in (100, 300, 1000, 3000)] + [(32, "fcn", n, 2) for n in (150, 1000, 3000)]
PREPROCESSINGS = {"image": ("image", 1.0), "channel": ("channel", 1.0), "zca 1": ("zca", 1.0), "zca 10": ("zca", 10.0)}


def images(folder):
    rows = np.concatenate([np.fromfile(folder / f"data_batch_{k}.bin", np.uint8) for k in (1, 2)]).reshape(-1, 3073)
    return rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1).astype(np.float32) / 255, rows[:, 0].astype(int)


def kernel(name, x, other=None):
    flat = (lambda a: a.reshape(len(a), -1)) if name == "fcn" else (lambda a: a)
    return widelimit.gram(NETWORKS[name], flat(x), None if other is None else flat(other), kernels="nngp").nngp.astype(float)


def accuracy(name, parts, labels):
    """Of the last part, with the regulariser that is best on the second."""
    square, seen, test = kernel(name, parts[0]), kernel(name, parts[1], parts[0]), kernel(name, parts[2], parts[0])
    targets, found = np.eye(10)[labels[0]] - 0.1, []
    for regulariser in (1e-3, 1e-2, 0.1, 0.5):
        shifted = square + regulariser * square.diagonal().mean() * np.eye(len(square))
        weights = cho_solve(cho_factor(shifted, lower=True), targets)
        found.append([((cross @ weights).argmax(1) == truth).mean() for cross, truth in ((seen, labels[1]), (test, labels[2]))])
    return max(found)[1]


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--data", type=pathlib.Path, required=True)
    arguments.add_argument("--out", required=True, help="CSV file")
    given = arguments.parse_args()
    x, y = images(given.data)
    with open(given.out, "w", newline="", encoding="utf-8") as file:
        file.write(head("draws 0, 1, ...") + "\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["size", "network", "images", "draw", "preprocessing", "accuracy"])
        for size, network, n, draws in CASES:
            small = x.reshape(len(x), size, 32 // size, size, 32 // size, 3).mean((2, 4))
            for draw in range(draws):
                order = np.random.default_rng(draw).permutation(len(x))
                places = np.split(order[:n + 1900], [n, n + 700])
                for title, (kind, regulariser) in PREPROCESSINGS.items():
                    fitted = widelimit.Preprocessing.fit(kind, small[places[0]], zca_regulariser=regulariser)
                    found = accuracy(network, [fitted.apply(small[p]) for p in places], [y[p] for p in places])
                    writer.writerow([size, network, n, draw, title, f"{found:.4f}"])
                    file.flush()


if __name__ == "__main__":
    main()
