"""Film reviews by infinitely wide networks without convolutions (Hron et al. 2020, arXiv:2006.10540, table 3's protocol).

    python reviews.py FAMILY --data FOLDER --vectors FILE [--threads 1]
    python reviews.py summary

FAMILY is gap, gap-fcn or struct. Every setting of the family is tried on 800 training and 400 validation reviews; for each
kernel the one with the most right validation answers is computed on all 3,200 and 1,600, the regulariser is chosen on the
validation reviews, the posterior is fitted again to training and validation reviews together with that regulariser relative
to the mean diagonal, and the 1,600 test reviews are looked at once. FOLDER is aclImdb, FILE has word vectors in GloVe's text
format. Appends to docs/experiments/data/reviews.csv, with a bit a test review (hexadecimal) that says whether the answer was
right.
"""
import argparse
import itertools
import pathlib

import numpy as np
import widelimit

from tables import EXPERIMENTS, Table, as_bits, from_bits, paired, processor_seconds, rows_of, shows

PAGE = EXPERIMENTS / "reviews.md"
SPLITS = ("train", "val", "test")
OPTIONS = {
    "gap": ("imdb-gap", {"norm": (0, 1)}),
    "gap-fcn": ("imdb-gap-fcn", {"depth": (1, 2), "norm": (0, 1), "erf": (0, 1)}),
    "struct": ("imdb-struct", {"attentions": (1, 2), "norm": (0, 1), "dense": (0, 1), "alpha": (0.75, 0.5), "phi": (2.5, 100)}),
}
REGULARISERS = np.logspace(-7, 2, 19)
SEARCH = 800, 400
LONGEST = 1000
SEPARATORS = str.maketrans({c: " " for c in '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n'})


def read_vectors(file):
    vectors = {}
    with open(file, encoding="utf-8") as lines:
        for line in lines:
            word, *numbers = line.split(" ")
            vectors[word] = np.array(numbers, np.float32)
    return vectors


def read_reviews(folder, split, vectors):
    """Word vectors of reviews, each [length, dimension], in an order that mixes the classes, and whether they are positive."""
    files = [(file, label) for label in ("neg", "pos") for file in sorted((folder / split / label).glob("*.txt"))]
    order = np.random.default_rng(SPLITS.index(split)).permutation(len(files))
    reviews, labels = [], []
    for file, label in (files[k] for k in order):
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


def fill(family, folder, vectors_file, threads):
    table = Table("reviews", ("family", "vectors", "kernel"),
                  ("settings", "search_right", "validation_right", "validation", "regulariser", "gram_seconds", "test_right", "test", "right_bits"),
                  "order of the reviews: seed 0, 1, 2 of the three sets")
    if not any(table.lacks(family, vectors_file.name, kernel) for kernel in ("nngp", "ntk")):
        return
    vectors = read_vectors(vectors_file)
    (train, labels), (validation, known), (test, truth) = (read_reviews(folder, split, vectors) for split in SPLITS)
    searched = [(candidate, widelimit.gram(widelimit.Network.named(*candidate), train[:SEARCH[0]] + validation[:SEARCH[1]],
                                           train[:SEARCH[0]], threads=threads)) for candidate in candidates(family)]
    best = {}
    for kernel in ("nngp", "ntk"):
        found = [(chosen(k[:SEARCH[0]], k[SEARCH[0]:], labels[:SEARCH[0]], known[:SEARCH[1]])[1], candidate)
                 for candidate, of in searched for k in [getattr(of, kernel)]]
        best[kernel] = max(found, key=lambda pair: pair[0])
    n, grams, rows = len(train), {}, []
    both, answers = train + validation, np.concatenate([labels, known])
    for kernel, (right_in_search, candidate) in best.items():
        if named(candidate) not in grams:
            begin, network = processor_seconds(), widelimit.Network.named(*candidate)
            square = widelimit.gram(network, both, threads=threads)
            grams[named(candidate)] = square, widelimit.gram(network, test, both, threads=threads), processor_seconds() - begin
        square, cross, seconds = grams[named(candidate)]
        k = getattr(square, kernel)
        regulariser, validated = chosen(k[:n, :n], k[n:, :n], labels, known)
        right = fitted(k, getattr(cross, kernel), answers, regulariser) == truth
        rows.append((family, vectors_file.name, kernel, named(candidate), right_in_search, validated, len(known), regulariser, float(seconds),
                     int(right.sum()), len(right), as_bits(right)))
    table.append(*rows)


def summary():
    yield "| vectors | network | kernel | validation | test | less GAP | Gram, s | chosen |"
    yield "|---|---|---|---|---|---|---|---|"
    rows = rows_of("reviews")
    for row in rows:
        right = from_bits(row)
        pooled = next(from_bits(r) for r in rows if (r["family"], r["vectors"], r["kernel"]) == ("gap", row["vectors"], row["kernel"]))
        difference, error = paired([right], [pooled])
        compared = "" if row["family"] == "gap" else f"{difference:+.2f} ± {error:.2f}"
        yield (f"| {row['vectors']} | {row['family']} | {row['kernel'].upper()} | {100 * int(row['validation_right']) / int(row['validation']):.2f} % | "
               f"{100 * right.mean():.2f} % | {compared} | {float(row['gram_seconds']):.0f} | {row['settings']} |")


SUMMARIES = {"reviews": summary}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("family", choices=(*OPTIONS, "summary"))
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--vectors", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    if shows(given.family, SUMMARIES):
        return
    if given.data is None or given.vectors is None:
        parser.error("--data and --vectors are needed")
    fill(given.family, given.data, given.vectors, given.threads)


if __name__ == "__main__":
    main()
