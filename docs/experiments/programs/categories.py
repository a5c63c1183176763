"""Coding of categories in tables: root mean squared errors of a Gaussian process with 0/1 indicators and with others.

Numbers are standardised. A column of categories becomes indicators, one a category of the training rows: "standardised" to
variance 1 each; "0/1", as they are; "one column", divided by the root of their total variance, so that together they have that
of a number; or it is "left out". Missing cells are filled by the mean, with a mark coded as the indicators are or without one
("left out"). Writes a CSV row for each table, seed and coding (--out), and prints means with differences from 0/1. Needs
scikit-learn, for its tables.

    python docs/experiments/programs/categories.py --seeds 8 --out docs/experiments/data/categories.csv
"""

import argparse
import csv

import numpy as np
from sklearn import datasets

import widelimit
from widelimit.sklearn import default_network

from tables import EXPERIMENTS, head, mean_and_error, rows_of

TEST = 500
PAGE = EXPERIMENTS.parent / "data.md"
CODINGS = ("0/1", "standardised", "one column", "left out")


def drawn(categories, effect, columns=1, zipf=False, slopes=False, train=200):
    """Five numbers and columns of categories, whose effects on the target are normal numbers, or on a slope."""
    def table(random):
        rows = train + TEST
        x = random.normal(size=(rows, 5))
        rates = 1 / np.arange(1, categories + 1) if zipf else np.ones(categories)
        columns_ = [random.choice(categories, size=rows, p=rates / rates.sum()) for _ in range(columns)]
        effects = [random.normal(size=categories) for _ in range(columns)]
        y = np.sin(x[:, 0]) + 0.5 * x[:, 1] + 0.3 * random.normal(size=rows)
        for column, own in zip(columns_, effects):
            y = y + effect * own[column] * (x[:, 0] if slopes else 1)
        return x, [np.eye(categories)[column] for column in columns_], y, train
    return table


def cut(load, columns, bins, train):
    """A table of scikit-learn in which some columns of numbers are cut into categories."""
    data = load()

    def table(random):
        order = random.permutation(len(data.target))
        x, y = data.data[order].astype(float), data.target[order].astype(float)
        edges = [np.quantile(x[:train, c], np.linspace(0, 1, bins + 1)[1:-1]) for c in columns]
        blocks = [np.eye(bins)[np.searchsorted(edge, x[:, c])] for c, edge in zip(columns, edges)]
        return np.delete(x, columns, axis=1), blocks, y, train
    return table


def with_missing(share, informative):
    def table(random):
        x = random.normal(size=(150 + TEST, 5))
        missing = random.random(x.shape) < share
        y = np.sin(x[:, 0]) + 0.5 * x[:, 1] + 0.3 * random.normal(size=len(x)) + informative * missing[:, 2]
        filled = np.where(missing, np.nanmean(np.where(missing, np.nan, x)[:150], 0), x)
        return filled, [missing[:, [c]].astype(float) for c in range(5)], y, 150
    return table


TABLES = {"2 categories, no effect": drawn(2, 0), "2 categories": drawn(2, 1), "5 categories": drawn(5, 1),
          "20 categories, no effect": drawn(20, 0), "20 categories": drawn(20, 1), "20 categories, some rare": drawn(20, 1, zipf=True),
          "50 categories, no effect": drawn(50, 0), "50 categories, slopes": drawn(50, 1, zipf=True, slopes=True),
          "100 categories, no effect": drawn(100, 0), "100 categories, some rare": drawn(100, 1, zipf=True, train=400),
          "3 columns of 8": drawn(8, 0.7, columns=3), "6 columns of 2": drawn(2, 0.4, columns=6),
          "diabetes, 2 columns in 10": cut(datasets.load_diabetes, [2, 8], 10, 200), "wine, 2 columns in 4": cut(datasets.load_wine, [0, 6], 4, 100),
          "breast cancer, 3 columns in 6": cut(datasets.load_breast_cancer, [0, 1, 7], 6, 200),
          "2 % missing": with_missing(0.02, 0), "10 % missing": with_missing(0.1, 0), "40 % missing": with_missing(0.4, 0),
          "10 % missing, which matters": with_missing(0.1, 1)}


def coded(blocks, train, coding):
    """Indicators of all rows, from the training rows' statistics."""
    if coding == "left out":
        return []
    found = []
    for block in blocks:
        deviation = block[:train].std(0)
        block, deviation = block[:, deviation > 0], deviation[deviation > 0]
        if coding == "standardised":
            block = (block - block[:train].mean(0)) / deviation
        elif coding == "one column":
            block = block / np.sqrt((deviation**2).sum())
        found.append(block)
    return found


def rows(name, seed):
    numbers, blocks, y, train = TABLES[name](np.random.default_rng(seed))
    numbers = (numbers - numbers[:train].mean(0)) / np.where(numbers[:train].std(0) > 0, numbers[:train].std(0), 1)
    for coding in CODINGS:
        x = np.concatenate([numbers, *coded(blocks, train, coding)], axis=1)
        mean = widelimit.Model.fit(default_network(), x[:train], y[:train]).mean(x[train:])[:, 0]
        yield {"table": name, "seed": seed, "coding": coding, "error": np.sqrt(((mean - y[train:])**2).mean())}


def report(found):
    """The table of the page."""
    yield "| table | " + " | ".join(["0 and 1", *CODINGS[1:]]) + " |"
    yield "|---" * (len(CODINGS) + 1) + "|"
    for name in dict.fromkeys(row["table"] for row in found):
        errors = {c: np.array([float(row["error"]) for row in found if (row["table"], row["coding"]) == (name, c)]) for c in CODINGS}
        changes = ("{:+.3f} ± {:.3f}".format(*mean_and_error(errors[coding] - errors["0/1"])) for coding in CODINGS[1:])
        yield f"| {name} | {errors['0/1'].mean():.3f} | {' | '.join(changes)} |"


SUMMARIES = {"categories": lambda: report(rows_of("categories"))}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seeds", type=int, default=8)
    arguments.add_argument("--out", required=True, help="CSV file")
    given = arguments.parse_args()
    found = []
    with open(given.out, "w", newline="", encoding="utf-8") as file:
        file.write(head(f"seeds 0 to {given.seeds - 1}") + "\n")
        writer = csv.DictWriter(file, ["table", "seed", "coding", "error"], lineterminator="\n")
        writer.writeheader()
        for name in TABLES:
            for seed in range(given.seeds):
                for row in rows(name, seed):
                    found.append(row)
                    writer.writerow({**row, "error": f"{row['error']:.6g}"})
                file.flush()
    print("\n".join(report(found)))


if __name__ == "__main__":
    main()
