"""Accuracy against depth for ways to end a convolutional network (Hron et al. 2020, arXiv:2006.10540, figure 4, table 2).

    python attention_depth.py HEAD DEPTH DRAW --data FOLDER --work FOLDER [--size 8] [--train 1000] [--validation 1000]
                              [--test 2000] [--device cpu] [--minutes M] [--estimate]
    python attention_depth.py summary|picture

HEAD is flatten, gap, lap, vanilla (softmax, 1/width), vanilla-identity or vanilla-relu (1/sqrt(width)), struct, residual (R as in the
paper's formula, of variance 1) or residual-scaled (whose rows of R sum to 1 on average).
A draw is a balanced choice of training and validation images, reduced to SIZE x SIZE pixels; the test images are the same for
all. The regulariser is chosen on the validation images among 19 values from 1e-7 to 100 times the mean diagonal, and the test
images are looked at once. Appends to docs/experiments/data/attention_depth.csv, with a bit a test image (hexadecimal) that says
whether the answer was right, so that heads are compared on the same images. The time is estimated before the kernels are
computed; their tiles are kept in the work folder.
"""
import argparse
import itertools

import numpy as np
import widelimit
from widelimit import layers

from computing import Computer, Tiles, add_arguments, add_image_arguments
from learning_curves import centred
from small_cifar10 import read_images, reduced
from tables import EXPERIMENTS, Table, as_bits, difference_cell, from_bits, paired, rows_of, save, shows, signed, standard_errors

HEADS = ("flatten", "gap", "lap", "vanilla", "vanilla-identity", "vanilla-relu", "struct", "residual", "residual-scaled")
DEPTHS = (1, 2, 4, 8)
REGULARISERS = np.logspace(-7, 2, 19)
SIDES = {8: 500}  # inputs of a tile, by the size of images; 100 for others
KEYS = ("head", "depth", "size", "train", "validation", "test", "draw", "kernel")
SIZES = KEYS[2:6]
COMMITTED = ("8", "1000", "1000", "2000")  # what the picture shows
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
    elif head.startswith("residual"):
        scale = "mean_row_sum" if head == "residual-scaled" else "variance"
        positions = {**encodings, "rho": 1, "input_weight": 0, "position_weight": 1, "scale": scale}
        back = [layers.sum((0.5**0.5, []), (0.5**0.5, [layers.attention(positions=positions)])), layers.rms_norm(), layers.flatten()]
    else:
        back = {"flatten": [layers.flatten()], "gap": [layers.global_average_pool()],
                "lap": [layers.average_pool([3, 3], [1, 1], "same"), layers.flatten()], "vanilla": vanilla(),
                "vanilla-identity": vanilla(scaling="inverse_sqrt_width", weights="identity"),
                "vanilla-relu": vanilla(scaling="inverse_sqrt_width", weights="relu")}[head]
    return widelimit.Network([*front, *back, layers.dense()])


def standardised(images, size):
    """Every pixel, less the mean of its channels, over their deviation."""
    x = reduced(images, size).astype(float)
    deviation = np.sqrt(x.var(axis=-1, keepdims=True) + 1e-8)
    return np.ascontiguousarray((x - x.mean(axis=-1, keepdims=True)) / deviation, np.float32)


def choice(labels, draw, train, validation):
    """Indices of training and validation images, both balanced."""
    random = np.random.default_rng(draw)
    columns = [random.permutation(np.flatnonzero(labels == label))[:(train + validation) // 10] for label in range(10)]
    order = np.stack(columns, axis=1).ravel()
    return order[:train], order[train:]


class Images:
    """Training images of a draw, and validation and test images one after the other; test images from the number first_test on."""

    def __init__(self, options, first_test=0):
        images, labels = read_images(sorted(options.data.glob("data_batch_*.bin")))
        test, truth = read_images([options.data / "test_batch.bin"])
        chosen, held = choice(labels, options.draw, options.train, options.validation)
        test, truth = (all_of[first_test:first_test + options.test] for all_of in (test, truth))
        if len(chosen) < options.train or len(held) < options.validation or len(test) < options.test:
            raise SystemExit(f"{options.data} has {len(labels)} training and {len(test)} test images, too few for what was asked")
        self.train, self.labels = standardised(images[chosen], options.size), labels[chosen]
        self.others = standardised(np.concatenate([images[held], test]), options.size)
        self.known = np.concatenate([labels[held], truth])


def answers(square, cross, labels, known, validation):
    """Chosen regulariser, right answers on validation images, and whether each test image was answered right."""
    scale = square.diagonal().mean()
    values, vectors = np.linalg.eigh(square.astype(float) / scale)
    projected = vectors.T @ centred(labels)
    best = None
    for regulariser in REGULARISERS:
        weights = vectors @ (projected / (np.maximum(values, 0) + regulariser)[:, None])
        right = (cross.astype(float) / scale @ weights).argmax(axis=1) == known
        if best is None or right[:validation].sum() > best[1]:
            best = regulariser, int(right[:validation].sum()), right[validation:]
    return best


def fill(options):
    computer = Computer(options)
    table = Table("attention_depth", KEYS, ("validation_right", "regulariser", "test_right", "right_bits"), "draws 0, 1, ...", computer)
    case = options.head, options.depth, options.size, options.train, options.validation, options.test, options.draw
    if not any(table.lacks(*case, kernel) for kernel in ("nngp", "ntk")):
        return
    data = Images(options)
    name = "depth_" + "_".join(map(str, case))
    tiles = Tiles(computer, network(options.head, options.depth, data.train, options.threads), computer.folder(options.work, name),
                  data.train, data.others, SIDES.get(options.size, 100))
    computer.begin(name, [(tiles.network, tiles.train, tiles.pairs())])
    rows = []
    for kernel, k, c in zip(("nngp", "ntk"), *tiles.compute()):
        regulariser, validated, right = answers(k, c, data.labels, data.known, options.validation)
        rows.append((*case, kernel, validated, float(regulariser), int(right.sum()), as_bits(right)))
    table.append(*rows)


def right_answers(sizes):
    """(head, depth, kernel): {draw: [test]} of whether answers are right, of rows with these sizes; for "vanilla, best" of each draw
    and depth the variant with the most right validation answers."""
    right, validated = {}, {}
    for row in rows_of("attention_depth"):
        if tuple(row[name] for name in SIZES) == sizes:
            key = row["head"], int(row["depth"]), row["kernel"]
            right.setdefault(key, {})[int(row["draw"])] = from_bits(row)
            validated.setdefault(key, {})[int(row["draw"])] = int(row["validation_right"])
    best = {}
    for depth, kernel in itertools.product(DEPTHS, ("nngp", "ntk")):
        variants = {key: draws for key, draws in validated.items() if key[0].startswith("vanilla") and key[1:] == (depth, kernel)}
        for draw in sorted(set().union(*variants.values())):
            chosen = max((key for key in variants if draw in variants[key]), key=lambda key: variants[key][draw])
            best.setdefault(("vanilla, best", depth, kernel), {})[draw] = right[chosen][draw]
    return {**right, **best}


def kinds():
    """The sizes that the file has rows of."""
    return dict.fromkeys(tuple(row[name] for name in SIZES) for row in rows_of("attention_depth"))


DIFFERENCES = (("gap", "flatten"), ("lap", "flatten"), ("gap", "lap"), ("vanilla, best", "flatten"), ("struct", "flatten"),
               ("struct", "gap"), ("struct", "vanilla, best"), ("residual", "gap"), ("residual", "struct"), ("residual-scaled", "gap"), ("residual-scaled", "struct"),
               ("residual", "residual-scaled"))


def summary():
    for sizes in kinds():
        size, train, validation, test = map(int, sizes)
        yield f"Images of {size} x {size} pixels: {train:,} for training, {validation:,} for validation, {test:,} for the test."
        yield ""
        yield from tables_of(right_answers(sizes))
        yield ""
        yield from apart(right_answers(sizes))
        yield ""


def tables_of(right):
    columns = [(depth, kernel) for kernel in ("nngp", "ntk") for depth in DEPTHS if any(key[1:] == (depth, kernel) for key in right)]
    titles = " | ".join(f"{kernel.upper()}, {depth}" for depth, kernel in columns)
    yield f"| head | draws | {titles} |"
    yield "|---|---|" + "---|" * len(columns)
    for head in (*HEADS, "vanilla, best"):
        found = [right.get((head, *column), {}) for column in columns]
        if any(found):
            cells = (f"{100 * np.mean(list(draws.values())):.1f} %" if draws else "" for draws in found)
            counts = sorted({len(draws) for draws in found})
            yield f"| {head} | {' or '.join(map(str, counts))} | {' | '.join(cells)} |"
    yield ""
    yield f"| difference | {titles} |"
    yield "|---|" + "---|" * len(columns)
    for first, second in DIFFERENCES:
        cells = [difference_cell(*(right.get((head, *column), {}) for head in (first, second))) for column in columns]
        if any(cells):
            yield f"| {first} - {second} | {' | '.join(cells)} |"


def apart(right):
    """How far each head lies above flatten: the range over depths and kernels, and in how many of these 0 is outside of the interval."""
    for head in ("gap", "lap", "vanilla, best", "struct", "residual", "residual-scaled"):
        found = []
        for (name, *column), draws in right.items():
            other = right.get(("flatten", *column), {})
            shared = sorted(set(draws) & set(other))
            if name == head and shared:
                found.append(paired([draws[draw] for draw in shared], [other[draw] for draw in shared]))
        if found:
            differences = [difference for difference, _, _ in found]
            above = sum(difference > standard_errors(degrees) * error for difference, error, degrees in found)
            below = sum(difference < -standard_errors(degrees) * error for difference, error, degrees in found)
            yield (f"- {head} less flatten: from {signed(min(differences))} to {signed(max(differences))} in {len(found)} cells; 95 % intervals (t) "
                   f"lie above 0 in {above}, below in {below}")


def draw_picture():
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    right = right_answers(COMMITTED)
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True)
    for panel, kernel in zip(axes, ("nngp", "ntk")):
        for head in ("flatten", "gap", "lap", "vanilla, best", "struct", "residual", "residual-scaled"):
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
    add_image_arguments(parser, 8, train=1000, validation=1000, test=2000)
    add_arguments(parser)
    options = parser.parse_args()
    if shows(options.head, SUMMARIES, draw_picture):
        return
    if None in (options.depth, options.draw, options.data, options.work):
        parser.error("DEPTH, DRAW, --data and --work are needed to compute kernels")
    fill(options)


if __name__ == "__main__":
    main()
