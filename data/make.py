#!/usr/bin/env python3
"""make.py [FOLDER]: writes the inputs of this folder again, into FOLDER or here.

Each input is drawn by Python's own generator from a seed of its own, so that every run writes the same bytes; nothing
but Python's standard library is needed. README.md beside this file says what each input is and which command reads it.
"""

import array
import csv
import json
import math
import pathlib
import random
import struct
import sys


def write_npy(path, shape, values, kind):
    """One array in C order; kind is 'f' (float32), 'q' (int64) or 'B' (uint8; with kind '?' booleans)."""
    names = {"f": "<f4", "q": "<i8", "B": "|u1", "?": "|b1"}
    assert len(values) == math.prod(shape)
    header = f"{{'descr': '{names[kind]}', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    numbers = array.array("B" if kind == "?" else kind, values)
    if sys.byteorder == "big":
        numbers.byteswap()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + numbers.tobytes())


def write_json(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1) + "\n")


def write_text(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


# Images: stripes that lie, stand or climb, of any place and colour; ten classes have four widths, three have one.

def brightness(label, row, column, period, phase):
    along = (row, column, row + column)[label % 3]
    return 0.5 + 0.45 * math.sin(2 * math.pi * (along / period + phase))


def stripes(rng, label, size, channels):
    """One image [size, size, channels] from 0 to 1."""
    period, phase = size * (0.4, 0.25, 0.6, 0.9)[label // 3] * rng.uniform(0.9, 1.1), rng.random()
    colour = [rng.uniform(0.4, 1) for _ in range(channels)]
    return [min(1, max(0, shade * brightness(label, row, column, period, phase) + rng.gauss(0, 0.03)))
            for row in range(size) for column in range(size) for shade in colour]


def image_set(rng, count, size, channels, classes=3):
    labels = [i % classes for i in range(count)]
    return [stripes(rng, label, size, channels) for label in labels], labels


def write_image_arrays(folder, rng):
    images, labels = image_set(rng, 20, 8, 3)
    write_npy(folder / "x.npy", (20, 8, 8, 3), sum(images, []), "f")
    write_npy(folder / "y.npy", (20,), labels, "q")


def write_cifar10(folder, rng):
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in (("data_batch_1.bin", 30), ("test_batch.bin", 10)):
        images, labels = image_set(rng, count, 32, 3, classes=10)
        records = [bytes([label]) + bytes(round(255 * image[3 * i + c]) for c in range(3) for i in range(1024))
                   for image, label in zip(images, labels)]
        (folder / name).write_bytes(b"".join(records))


def write_mnist(folder, rng):
    folder.mkdir(parents=True, exist_ok=True)
    images, labels = image_set(rng, 40, 28, 1, classes=10)
    pixels = bytes(round(255 * value) for image in images for value in image)
    (folder / "t10k-images-idx3-ubyte").write_bytes(struct.pack(">4i", 2051, 40, 28, 28) + pixels)
    (folder / "t10k-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 2049, 40) + bytes(labels))


# Sequences of different lengths in one array; behind its end a sequence holds NaN, which nothing may read.

def write_sequences(folder, rng, count=12, longest=10, channels=4):
    lengths = [rng.randint(3, longest) for _ in range(count)]
    lengths[0] = longest
    values = [rng.gauss(0, 1) if position < length else math.nan
              for length in lengths for position in range(longest) for _ in range(channels)]
    mask = [position < length and position != 1 for length in lengths for position in range(longest)]
    write_npy(folder / "x.npy", (count, longest, channels), values, "f")
    write_npy(folder / "lengths.npy", (count,), lengths, "q")
    write_npy(folder / "mask.npy", (count, longest), mask, "?")


# Reviews and vectors of their words.

PRAISE = ["moving", "clever", "warm", "brilliant", "funny", "gripping"]
BLAME = ["dull", "clumsy", "cold", "tedious", "stale", "noisy"]
SUBJECTS = ["the plot", "the cast", "the camera", "the music", "the ending", "the dialogue"]
OTHERS = ["the", "a", "was", "and", "not", "very", "plot", "cast", "camera", "music", "ending", "dialogue"]


def opinion(rng, is_praise):
    negated = rng.random() < 0.3
    word = rng.choice(PRAISE if is_praise != negated else BLAME)
    return f"{rng.choice(SUBJECTS)} was {'not very ' if negated else ''}{word}"


def review(rng, is_praise):
    parts = [opinion(rng, is_praise if rng.random() < 0.85 else not is_praise) for _ in range(rng.randint(3, 6))]
    return " and ".join(parts).capitalize() + ".\n"


def word_vector(rng, word):
    """A line of vectors.txt: the first number tells praise from blame, the others tell words apart."""
    numbers = [(word in PRAISE) - (word in BLAME)] + [rng.gauss(0, 0.5) for _ in range(7)]
    return f"{word} " + " ".join(f"{number:.3f}" for number in numbers) + "\n"


def write_reviews(folder, rng):
    for part, count in (("train", 20), ("test", 10)):
        for i in range(count):
            kind, rating = ("pos", 9) if i % 2 else ("neg", 2)
            write_text(folder / part / kind / f"{i}_{rating}.txt", review(rng, kind == "pos"))
    write_text(folder / "vectors.txt", "".join(word_vector(rng, word) for word in PRAISE + BLAME + OTHERS))


# Graphs: rings (class 0) and trees (class 1), edges in both directions.

def ring_or_tree(rng, nodes, is_tree):
    edges = [(rng.randrange(i) if is_tree else i - 1, i) for i in range(1, nodes)]
    if not is_tree:
        edges.append((nodes - 1, 0))
    return [(1.0, rng.gauss(0, 0.2)) for _ in range(nodes)], edges + [(b, a) for a, b in edges]


def write_graphs(folder, rng, count):
    features, edges, offsets, labels = [], [], [0], []
    for i in range(count):
        nodes, links = ring_or_tree(rng, 5 + rng.randrange(6), i % 2 == 1)
        edges += [end + offsets[-1] for link in links for end in link]
        features += [number for node in nodes for number in node]
        offsets.append(offsets[-1] + len(nodes))
        labels.append(i % 2)
    write_npy(folder / "node_features.npy", (offsets[-1], 2), features, "f")
    write_npy(folder / "graph_offsets.npy", (count + 1,), offsets, "q")
    write_npy(folder / "edges.npy", (len(edges) // 2, 2), edges, "q")
    write_npy(folder / "labels.npy", (count,), labels, "q")


# Tables.

def write_table(path, rng, first, count, with_target):
    with path.open("w", newline="") as stream:
        table = csv.writer(stream, lineterminator="\n")
        table.writerow(["plant", "length", "width", "soil"] + ["kind"] * with_target)
        for i in range(first, first + count):
            kind = i % 2
            row = [f"plant {i}", f"{rng.gauss(5 + kind, 0.5):.2f}", f"{rng.gauss(3 - kind, 0.5):.2f}",
                   ("sand", "clay")[rng.random() < 0.5 + 0.3 * kind]]
            table.writerow(row + [("iris", "lily")[kind]] * with_target)


def write_losses(path, rng):
    """What widelimit propagation fit reads: losses that grow with both exponents, and noise."""
    with path.open("w", newline="") as stream:
        table = csv.writer(stream, lineterminator="\n")
        table.writerow(["lambda_a", "lambda_g", "loss"])
        for _ in range(24):
            angle, gradient = rng.uniform(-0.4, 0.2), rng.uniform(-0.3, 0.3)
            loss = 0.5 + max(-3 * angle, 2 * abs(gradient), 0) + abs(rng.gauss(0, 0.02))
            table.writerow([f"{angle:.4f}", f"{gradient:.4f}", f"{loss:.4f}"])


def write_activations(folder, rng, layers=4, sequences=3, tokens=5, width=16):
    """Tokens that come closer from layer to layer, as widelimit propagation measure reads them."""
    for layer in range(layers):
        values = []
        for _ in range(sequences):
            shared = [rng.gauss(0, 1) for _ in range(width)]
            a = layer / layers
            values += [math.sqrt(a) * s + math.sqrt(1 - a) * rng.gauss(0, 1) for _ in range(tokens) for s in shared]
        write_npy(folder / f"layer_{layer}.npy", (sequences, tokens, width), values, "f")


# Networks and configurations.

DENSE, RELU, FLATTEN, NORM = ({"layer": kind} for kind in ("dense", "relu", "flatten", "rms_norm"))
ATTENTION = {"layer": "attention", "scaling": "inverse_width"}
CONV = {"layer": "conv", "filter": [3, 3], "weight_variance": 2, "bias_variance": 0.01}
WORDS = {"layer": "conv", "filter": [3], "weight_variance": 2, "bias_variance": 0.01}
HIDDEN = {"layer": "dense", "weight_variance": 2, "bias_variance": 0.01}
SKIP = {"scale": 0.8, "layers": []}


def branch(*layers):
    return {"layer": "sum", "branches": [SKIP, {"scale": 0.6, "layers": list(layers)}]}


NETWORKS = {
    "images": [CONV, RELU, CONV, RELU, ATTENTION, FLATTEN, DENSE],
    "sequences": [WORDS, RELU, ATTENTION, {"layer": "global_average_pool"}, DENSE],
    "vectors": [HIDDEN, RELU, HIDDEN, RELU, DENSE],
    "graphs": [{"layer": "aggregate", "normalise": "mean", "self_loops": True}, HIDDEN, RELU,
               {"layer": "global_sum_pool"}, DENSE],
    "block": [branch(NORM, ATTENTION), branch(NORM, HIDDEN, RELU, DENSE)],
}

TWO_TOKENS = {"model": "transformer", "gamma_squared": 0.125, "rho0": 0.2, "horizon": 0.25, "paths": 200}
SHAPED = {"network": "shaped_transformer", "gamma_squared": 0.125, "width": 32, "depth": 8, "samples": 100}
SDE = {
    "simulate": {**TWO_TOKENS, "points": 5},
    "network": {**SHAPED, "points": 8},
    "compare": {**SHAPED, "paths": 200, "points": 4},
    "coefficients": {"model": "transformer", "gamma_squared": 0.125,
                     "V0": [[1.2, 0.3, -0.1], [0.3, 0.9, 0.25], [-0.1, 0.25, 1.5]]},
    "stopping-time": {"network": "shaped_attention", "gammas": [0.1, 0.5], "temperatures": [1, 4], "width": 32,
                      "depth": 32, "tokens": 4, "variance": 100, "samples": 20},
    "output": TWO_TOKENS,
    "entropy": {**SHAPED, "points": 8},
    "explosion": {**TWO_TOKENS, "model": "attention", "horizon": 2, "temperature": 0.25, "points": 4},
    "law": {"model": "attention", "gamma_squared": 0.125, "rho0": 0.2, "times": [0.25, 0.5, 1]},
    "flow": {"flow": "commuting", "rho0": 0.2, "times": [0.25, 0.5, 1]},
    "gradients": {"width": 16, "depth": 6, "samples": 20,
                  "networks": [{"network": "shaped_transformer", "gamma_squared": 0.1},
                               {"network": "unshaped_pre_ln", "gamma": 1, "lambda": 1}]},
}

MODEL = {"prior": {"kind": "flip2", "nu1": 2, "nu2": 2}, "tokens": 5, "activation": "bayes", "heads": 2}
SHORT = {**MODEL, "tau": 10, "samples": 1000}
FLOW = {**SHORT, "fresh_samples": 2000, "records": 20}
TIMES = {**SHORT, "dimension": 100, "etas": [0.1, 0.01]}
HEADS = {
    "flow": FLOW,
    "sgd": {**MODEL, "dimension": 20, "tau": 2, "records": 10},
    "compare": {**SHORT, "dimension": 20, "tau": 2, "records": 10},
    "bayes": {"prior": MODEL["prior"], "tokens": 5, "samples": 10000},
    "hessian": MODEL,
    "prune": {**FLOW, "starts": 2},
    "attention": {"prior": {"kind": "gaussian", "variances": [9, 9, 9]}, "tokens": 5, "activation": "softmax1", "heads": 4,
                  "tau": 200, "step": 0.5, "samples": 2000, "fresh_samples": 2000, "starts": 3},
    "phase-transition": TIMES,
    "feature-times": TIMES,
    "digits": {"activation": "bayes", "images": 300, "heads": 5, "batch": 100, "gamma": 0.5, "tau": 400,
               "fresh_samples": 1000, "risk_samples": 1000},
    "digit-times": {"activation": "softmax", "mnist": "data/mnist", "images": 40, "heads": 2, "batch": 50,
                    "amplitude": 2, "etas": [1, 0.1], "tau": 5, "starts": 1},
    "resampling": {**SHORT, "tau": 2, "records": 10},
}


def erf_moments(variance, correlation):
    """E erf(z)^2 and E erf(z) erf(z') of Gaussians, in closed form (Williams 1997)."""
    def mean(covariance):
        return 2 / math.pi * math.asin(2 * covariance / (1 + 2 * variance))
    return {"E_phi2": mean(variance), "E_phi_phi": mean(variance * correlation)}


def reference_cases():
    cases = [{"id": f"erf, variance {v}", "function": "gaussian_moments", "rel_tol": 1e-12, "abs_tol": 0,
              "inputs": {"activation": "erf", "variance": v, "one_minus_correlation": 0.5},
              "expected": erf_moments(v, 0.5)} for v in (0.5, 1.0, 4.0)]
    return {"subject": "signal-propagation", "cases": cases}


def write_configurations(folder):
    for name, layers in NETWORKS.items():
        write_json(folder / "networks" / f"{name}.json", {"widelimit": 1, "name": name, "layers": layers})
    for kind, configurations in (("sde", SDE), ("heads", HEADS)):
        for name, configuration in configurations.items():
            write_json(folder / kind / f"{name}.json", configuration)
    write_json(folder / "reference.json", reference_cases())


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    write_image_arrays(folder / "images", random.Random("images"))
    write_cifar10(folder / "cifar10", random.Random("cifar10"))
    write_mnist(folder / "mnist", random.Random("mnist"))
    write_sequences(folder / "sequences", random.Random("sequences"))
    write_reviews(folder / "reviews", random.Random("reviews"))
    for part, count in (("train", 20), ("validation", 10), ("test", 10)):
        write_graphs(folder / "graphs" / part, random.Random(part), count)
    write_table(folder / "flowers.csv", random.Random("flowers"), 1, 60, True)
    write_table(folder / "new-flowers.csv", random.Random("new flowers"), 61, 6, False)
    write_losses(folder / "losses.csv", random.Random("losses"))
    write_activations(folder / "activations", random.Random("activations"))
    write_configurations(folder)


if __name__ == "__main__":
    main()
