"""Film reviews by infinitely wide networks (Hron et al. 2020, arXiv:2006.10540, table 3's protocol).

    python reviews.py FAMILY --data FOLDER --vectors FILE --work FOLDER [--train 3200] [--validation 1600] [--test 1600]
                      [--search 800 400] [--device cpu] [--minutes M] [--estimate]
    python reviews.py summary

FAMILY is gap, gap-fcn, struct, cnn-gap or struct-cnn (one convolution before the attention). Every setting of the family is tried
on the first of the training and validation reviews (--search); for each kernel the one with the most right validation answers is
computed on all, the regulariser is chosen on the validation reviews, the posterior is fitted again to training and validation
reviews together with that regulariser relative to the mean diagonal, and the test reviews are looked at once. FOLDER is aclImdb,
FILE has word vectors in GloVe's text format. Appends to docs/experiments/data/reviews.csv, with a bit a test review (hexadecimal)
that says whether the answer was right.
"""
import argparse
import itertools
import pathlib

import numpy as np
import widelimit

from computing import Computer, Tiles, add_arguments
from tables import EXPERIMENTS, Table, as_bits, from_bits, paired, rows_of, shows

PAGE = EXPERIMENTS / "reviews.md"
SPLITS = ("train", "val", "test")
OPTIONS = {
    "gap": ("imdb-gap", {"norm": (0, 1)}),
    "gap-fcn": ("imdb-gap-fcn", {"depth": (1, 2), "norm": (0, 1), "erf": (0, 1)}),
    "struct": ("imdb-struct", {"attentions": (1, 2), "norm": (0, 1), "dense": (0, 1), "alpha": (0.75, 0.5), "phi": (2.5, 100)}),
    "cnn-gap": ("imdb-cnn-gap", {"depth": (1, 2, 4), "erf": (0, 1)}),
    "struct-cnn": ("imdb-struct", {"depth": (1,), "alpha": (0.75, 0.5), "phi": (2.5, 100)}),
}
SIZES = ("train", "validation", "test")
SIDE = 200
REGULARISERS = np.logspace(-7, 2, 19)
LONGEST = 1000
SEPARATORS = str.maketrans({c: " " for c in '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n'})


def read_vectors(file):
    vectors = {}
    with open(file, encoding="utf-8") as lines:
        for line in lines:
            word, *numbers = line.split(" ")
            vectors[word] = np.array(numbers, np.float32)
    return vectors


def read_reviews(folder, split, vectors, count):
    """Word vectors of the first `count` reviews, each [length, dimension], in an order that mixes the classes, and whether they are
    positive."""
    files = [(file, label) for label in ("neg", "pos") for file in sorted((folder / split / label).glob("*.txt"))]
    order = np.random.default_rng(SPLITS.index(split)).permutation(len(files))
    if count > len(files):
        raise SystemExit(f"{folder / split} has {len(files)} reviews, {count} were asked for")
    reviews, labels = [], []
    for file, label in (files[k] for k in order[:count]):
        words = file.read_text(encoding="utf-8").lower().translate(SEPARATORS).split(" ")
        known = [vectors[word] for word in words if word in vectors][-LONGEST:]
        reviews.append(np.stack(known))
        labels.append(label == "pos")
    return reviews, np.array(labels)


def candidates(family):
    network, options = OPTIONS[family]
    for values in itertools.product(*options.values()):
        yield network, dict(zip(options, values))


def named(candidate):
    return " ".join(f"{name}={value:g}" for name, value in candidate[1].items())


def fitted(square, cross, labels, regulariser):
    """Whether the answers to the rows of `cross` are positive."""
    scale = square.diagonal().mean()
    weights = np.linalg.solve(square.astype(float) / scale + regulariser * np.eye(len(square)), labels - 0.5)
    return cross.astype(float) / scale @ weights > 0


def chosen(square, cross, labels, truth):
    """The regulariser with the most right answers, and how many they are."""
    values, vectors = np.linalg.eigh(square.astype(float) / square.diagonal().mean())
    projected, across = vectors.T @ (labels - 0.5), cross.astype(float) / square.diagonal().mean() @ vectors
    right = [((across @ (projected / (np.maximum(values, 0) + r)) > 0) == truth).sum() for r in REGULARISERS]
    return float(REGULARISERS[int(np.argmax(right))]), int(max(right))


def best_settings(options, computer, train, labels, validation, known):
    """For each kernel: how many validation answers of the search were right, and the setting."""
    few, held = options.search
    name = f"search_{few}_{held}"
    tried = list(candidates(options.family))
    tiles = [Tiles(computer, widelimit.Network.named(*candidate), folder_of(options, computer, candidate, name), train[:few],
                   validation[:held], SIDE) for candidate in tried]
    computer.begin(f"{options.family}, search of {len(tiles)} settings", [(t.network, t.train, t.pairs()) for t in tiles])
    found = [t.compute() for t in tiles]
    return [max(((chosen(square[k], cross[k], labels[:few], known[:held])[1], candidate) for candidate, (square, cross) in zip(tried, found)),
                key=lambda pair: pair[0]) for k in (0, 1)]


def folder_of(options, computer, candidate, what):
    return computer.folder(options.work, f"reviews_{options.vectors.stem}_{candidate[0]}_{named(candidate).replace(' ', '_')}_{what}")


def fill(options):
    computer = Computer(options)
    table = Table("reviews", ("family", "vectors", *SIZES, "kernel"),
                  ("settings", "search_right", "validation_right", "regulariser", "gram_seconds", "test_right", "right_bits"),
                  "order of the reviews: seed 0, 1, 2 of the three sets", computer)
    counts = [getattr(options, size) for size in SIZES]
    case = options.family, options.vectors.name, *counts
    if not any(table.lacks(*case, kernel) for kernel in ("nngp", "ntk")):
        return
    vectors = read_vectors(options.vectors)
    (train, labels), (validation, known), (test, truth) = (
        read_reviews(options.data, split, vectors, count) for split, count in zip(SPLITS, counts))
    best = best_settings(options, computer, train, labels, validation, known)
    n, grams, rows = len(train), {}, []
    both, answers = train + validation, np.concatenate([labels, known])
    tiles = {named(candidate): Tiles(computer, widelimit.Network.named(*candidate), folder_of(options, computer, candidate, "_".join(map(str, counts))),
                                     both, test, SIDE) for _, candidate in best}
    computer.begin(f"{options.family}, all reviews", [(t.network, t.train, t.pairs()) for t in tiles.values()])
    for place, (kernel, (right_in_search, candidate)) in enumerate(zip(("nngp", "ntk"), best)):
        if named(candidate) not in grams:
            begin = computer.clock()
            grams[named(candidate)] = *tiles[named(candidate)].compute(), computer.clock() - begin
        square, cross, seconds = grams[named(candidate)]
        k = square[place]
        regulariser, validated = chosen(k[:n, :n], k[n:, :n], labels, known)
        right = fitted(k, cross[place], answers, regulariser) == truth
        rows.append((*case, kernel, named(candidate), right_in_search, validated, regulariser, float(seconds), int(right.sum()), as_bits(right)))
    table.append(*rows)


def summary():
    yield "| vectors | network | kernel | validation | test | less GAP | Gram, s | chosen |"
    yield "|---|---|---|---|---|---|---|---|"
    rows = rows_of("reviews")
    for row in rows:
        right = from_bits(row)
        same = ("vectors", *SIZES, "kernel")
        pooled = [from_bits(r) for r in rows if r["family"] == "gap" and all(r[name] == row[name] for name in same)]
        compared = "" if row["family"] == "gap" or not pooled else "{:+.2f} ± {:.2f}".format(*paired([right], pooled[:1])[:2])
        yield (f"| {row['vectors']} | {row['family']} | {row['kernel'].upper()} | {100 * int(row['validation_right']) / int(row['validation']):.2f} % | "
               f"{100 * right.mean():.2f} % | {compared} | {float(row['gram_seconds']):.0f} | {row['settings']} |")


SUMMARIES = {"reviews": summary}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("family", choices=(*OPTIONS, "summary"))
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--vectors", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--train", type=int, default=3200)
    parser.add_argument("--validation", type=int, default=1600)
    parser.add_argument("--test", type=int, default=1600)
    parser.add_argument("--search", type=int, nargs=2, default=(800, 400), metavar=("TRAIN", "VALIDATION"))
    add_arguments(parser)
    options = parser.parse_args()
    if shows(options.family, SUMMARIES):
        return
    if None in (options.data, options.vectors, options.work):
        parser.error("--data, --vectors and --work are needed")
    fill(options)


if __name__ == "__main__":
    main()
