"""Accuracy against depth for ways to end a convolutional network (Hron et al. 2020, arXiv:2006.10540, figure 4), at 8 x 8.

    python attention_depth.py HEAD DEPTH DRAW --data FOLDER --work FOLDER [--threads 1]
    python attention_depth.py summary|picture

HEAD is flatten, gap, lap, vanilla (softmax, 1/width), vanilla-identity or vanilla-relu (1/sqrt(width)), struct or residual.
A draw is a balanced choice of 1,000 training and 1,000 validation images; the 2,000 test images are the same for all. The
regulariser is chosen on the validation images among 19 values from 1e-7 to 100 times the mean diagonal, and the test images
are looked at once. Appends to docs/experiments/data/attention_depth.csv, with a bit a test image (hexadecimal) that says
whether the answer was right, so that heads are compared on the same images.
"""
import argparse
import itertools
import pathlib

import numpy as np
import widelimit
from widelimit import layers

from learning_curves import centred, kept, read_images, reduced
from tables import EXPERIMENTS, Table, as_bits, difference_cell, from_bits, rows_of, save, shows

HEADS = ("flatten", "gap", "lap", "vanilla", "vanilla-identity", "vanilla-relu", "struct", "residual")
DEPTHS = (1, 2, 4, 8)
REGULARISERS = np.logspace(-7, 2, 19)
TRAIN, VALIDATION, TEST, TILE = 1000, 1000, 2000, 500
PAGE = EXPERIMENTS / "infinite-attention.md"
PICTURE = EXPERIMENTS / "infinite-attention" / "attention_depth.png"


def convolutions(depth):
    return [layer for _ in range(depth) for layer in (layers.conv([3, 3], weight_variance=2, bias_variance=0.01), layers.relu())]


def vanilla(**fields):
    return [layers.attention(query_key_std=2, **fields), layers.flatten()]


def network(head, depth, train, threads):
    front = convolutions(depth)
    encodings = {"kind": "structured", "phi": 16}
    if head == "struct":
        probe = widelimit.Network([*front, layers.flatten()])
        variance = float(widelimit.gram_diagonal(probe, train, "nngp", threads=threads).nngp.mean())
        positions = {**encodings, "rho": variance, "input_weight": 0.5, "position_weight": 0.5}
        back = [layers.attention(query_key_std=2, positions=positions), layers.layer_norm(), layers.flatten()]
    elif head == "residual":
        positions = {**encodings, "rho": 1, "input_weight": 0, "position_weight": 1, "scale": "mean_row_sum"}
        back = [layers.sum((0.5**0.5, []), (0.5**0.5, [layers.attention(positions=positions)])), layers.rms_norm(), layers.flatten()]
    else:
        back = {"flatten": [layers.flatten()], "gap": [layers.global_average_pool()],
                "lap": [layers.average_pool([3, 3], [1, 1], "same"), layers.flatten()], "vanilla": vanilla(),
                "vanilla-identity": vanilla(scaling="inverse_sqrt_width", weights="identity"),
                "vanilla-relu": vanilla(scaling="inverse_sqrt_width", weights="relu")}[head]
    return widelimit.Network([*front, *back, layers.dense()])


def standardised(images):
    """Every pixel, less the mean of its channels, over their deviation."""
    x = reduced(images).astype(float)
    deviation = np.sqrt(x.var(axis=-1, keepdims=True) + 1e-8)
    return np.ascontiguousarray((x - x.mean(axis=-1, keepdims=True)) / deviation, np.float32)


def choice(labels, draw):
    """Indices of training and validation images, both balanced."""
    random = np.random.default_rng(draw)
    columns = [random.permutation(np.flatnonzero(labels == label))[:(TRAIN + VALIDATION) // 10] for label in range(10)]
    order = np.stack(columns, axis=1).ravel()
    return order[:TRAIN], order[TRAIN:]


def kernels(of, train, others, work, threads):
    """NNGP and NTK of training images, [2, n, n], and of others with them, [2, m, n], in tiles kept in the work folder."""
    work.mkdir(parents=True, exist_ok=True)
    square = np.stack(kept(work / "train.npz", lambda: widelimit.gram(of, train, threads=threads)[:2]))
    return square, np.concatenate([np.stack(kept(
        work / f"others_{start}.npz", lambda: widelimit.gram(of, others[start:start + TILE], train, threads=threads)[:2]))
        for start in range(0, len(others), TILE)], axis=1)


def answers(square, cross, labels, known):
    """Chosen regulariser, right answers on validation images, and whether each test image was answered right."""
    scale = square.diagonal().mean()
    values, vectors = np.linalg.eigh(square.astype(float) / scale)
    projected = vectors.T @ centred(labels)
    best = None
    for regulariser in REGULARISERS:
        weights = vectors @ (projected / (np.maximum(values, 0) + regulariser)[:, None])
        right = (cross.astype(float) / scale @ weights).argmax(axis=1) == known
        if best is None or right[:VALIDATION].sum() > best[1]:
            best = regulariser, int(right[:VALIDATION].sum()), right[VALIDATION:]
    return best


def fill(options):
    table = Table("attention_depth", ("head", "depth", "draw", "kernel"),
                  ("validation_right", "regulariser", "test_right", "test", "right_bits"), "draws 0, 1, ...")
    if not any(table.lacks(options.head, options.depth, options.draw, kernel) for kernel in ("nngp", "ntk")):
        return
    images, labels = read_images(sorted(options.data.glob("data_batch_*.bin")))
    test, truth = read_images([options.data / "test_batch.bin"])
    chosen, held = choice(labels, options.draw)
    train, others = standardised(images[chosen]), standardised(np.concatenate([images[held], test[:TEST]]))
    known = np.concatenate([labels[held], truth[:TEST]])
    square, cross = kernels(network(options.head, options.depth, train, options.threads), train, others,
                            options.work / f"depth_{options.head}_{options.depth}_{options.draw}", options.threads)
    rows = []
    for kernel, k, c in zip(("nngp", "ntk"), square, cross):
        regulariser, validated, right = answers(k, c, labels[chosen], known)
        rows.append((options.head, options.depth, options.draw, kernel, validated, float(regulariser), int(right.sum()), len(right),
                     as_bits(right)))
    table.append(*rows)


def right_answers():
    """(head, depth, kernel): [draws, test] of whether answers are right; validation answers of the same, summed."""
    right, validated = {}, {}
    for row in rows_of("attention_depth"):
        key = row["head"], int(row["depth"]), row["kernel"]
        right.setdefault(key, {})[int(row["draw"])] = from_bits(row)
        validated[key] = validated.get(key, 0) + int(row["validation_right"])
    best = {}  # vanilla by its best variant on validation images
    for depth, kernel in itertools.product(DEPTHS, ("nngp", "ntk")):
        variants = [key for key in right if key[0].startswith("vanilla") and key[1:] == (depth, kernel)]
        if variants:
            best["vanilla, best", depth, kernel] = right[max(variants, key=validated.get)]
    return {**right, **best}


def summary():
    right = right_answers()
    columns = [(depth, kernel) for kernel in ("nngp", "ntk") for depth in DEPTHS if any(key[1:] == (depth, kernel) for key in right)]
    titles = " | ".join(f"{kernel.upper()}, {depth}" for depth, kernel in columns)
    yield f"| head | draws | {titles} |"
    yield "|---|---|" + "---|" * len(columns)
    for head in (*HEADS, "vanilla, best"):
        found = [right.get((head, *column), {}) for column in columns]
        if any(found):
            cells = (f"{100 * np.mean(list(draws.values())):.1f} %" if draws else "" for draws in found)
            yield f"| {head} | {max(map(len, found))} | {' | '.join(cells)} |"
    yield ""
    yield f"| difference | {titles} |"
    yield "|---|" + "---|" * len(columns)
    for first, second in (("gap", "flatten"), ("lap", "flatten"), ("gap", "lap"), ("vanilla, best", "flatten"), ("struct", "flatten"),
                          ("struct", "gap"), ("struct", "vanilla, best"), ("residual", "gap"), ("residual", "struct")):
        cells = []
        for column in columns:
            cells.append(difference_cell(*(right.get((head, *column), {}) for head in (first, second))))
        if any(cells):
            yield f"| {first} - {second} | {' | '.join(cells)} |"


def draw_picture():
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    right = right_answers()
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True)
    for panel, kernel in zip(axes, ("nngp", "ntk")):
        for head in ("flatten", "gap", "lap", "vanilla, best", "struct", "residual"):
            points = [(depth, 100 * np.mean(list(right[head, depth, kernel].values()))) for depth in DEPTHS
                      if (head, depth, kernel) in right]
            if points:
                panel.plot(*zip(*points), marker="o", markersize=4, label=head)
        panel.set(xscale="log", xlabel="convolutions", title=kernel.upper())
        panel.set_xticks(DEPTHS, [str(depth) for depth in DEPTHS])
        panel.minorticks_off()
        panel.grid(alpha=0.3)
    axes[0].set_ylabel("test accuracy, %")
    axes[1].legend(fontsize=8)
    save(figure, PICTURE)


SUMMARIES = {"attention_depth": summary}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("head", choices=(*HEADS, "summary", "picture"))
    parser.add_argument("depth", type=int, nargs="?")
    parser.add_argument("draw", type=int, nargs="?")
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    if shows(options.head, SUMMARIES, draw_picture):
        return
    if None in (options.depth, options.draw, options.data, options.work):
        parser.error("DEPTH, DRAW, --data and --work are needed to compute kernels")
    fill(options)


if __name__ == "__main__":
    main()
