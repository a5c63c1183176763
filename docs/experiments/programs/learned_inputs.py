"""Ten small tables: what does learning which inputs matter gain, with a network's kernel and with the Laplace kernel?

    python learned_inputs.py compute [SEEDS]
    python learned_inputs.py summary

150 training rows of each table, and up to 500 test rows: small, since each way of learning is checked on thirds of the data and the
effect of what is kept is to be seen. Rows are appended, so that a run that was stopped goes on."""
import sys
import warnings

import decision_tables
import numpy as np
import widelimit
from decision_tables import bundled, network, rare_class, scores_of_model
from sklearn import datasets
from sklearn.model_selection import train_test_split

from tables import EXPERIMENTS, Table, mean_and_error, rows_of, shows

PAGE = EXPERIMENTS / "tables.md"
KERNELS = ("three ReLU layers", "laplace")
ALONE = "defaults"
WAYS = {ALONE: {}, **{way: options for way, options in decision_tables.WAYS.items() if options}}


def interaction(seed):
    """Two of twenty columns matter."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(650, 20))
    return x, (x[:, 0] * x[:, 1] + 0.3 * random.normal(size=len(x)) > 0).astype(int)


def direction(seed):
    """One direction of ten columns, none of which matters more than others."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(650, 10))
    return x, np.sin(2 * x.sum(1) / 10**0.5) + 0.2 * random.normal(size=len(x))


def friedman(make, noise):
    return lambda seed: make(n_samples=650, noise=noise, random_state=seed)


# Name: (rows for a seed, whether the targets are classes).
SETS = {"diabetes": (bundled(datasets.load_diabetes), False), "friedman1": (friedman(datasets.make_friedman1, 1.0), False),
        "friedman2": (friedman(datasets.make_friedman2, 50.0), False), "friedman3": (friedman(datasets.make_friedman3, 0.1), False),
        "direction": (direction, False), "wine": (bundled(datasets.load_wine), True),
        "breast cancer": (bundled(datasets.load_breast_cancer), True), "iris": (bundled(datasets.load_iris), True),
        "5 % positives": (rare_class, True), "interaction": (interaction, True)}


def split(name, seed):
    make, classes = SETS[name]
    x, y = make(seed)
    train = min(150, 2 * len(x) // 3)
    known_x, test_x, known, test = train_test_split(x, y, train_size=train, test_size=min(500, len(x) - train), random_state=seed,
                                                    stratify=y if classes else None)
    mean, deviation = known_x.mean(0), known_x.std(0)
    return (known_x - mean) / deviation, (test_x - mean) / deviation, known, test


def scores(kernel, way, x, test_x, y, test, classes):
    made = network() if kernel != "laplace" else widelimit.Network.named("laplace", {"axes": 0, "length": widelimit.median_distance(x)})
    return scores_of_model(widelimit.Model.fit(made, x, y, labels=classes, threads=1, **WAYS[way]), test_x, test, classes)


def compute(seeds):
    table = Table("learned_inputs", ("set", "seed", "kernel", "method"), ("error", "loss", "kept"), "seeds from 0")
    warnings.simplefilter("ignore")
    for seed in range(seeds):
        for way in WAYS:
            for name, (_, classes) in SETS.items():
                for kernel in KERNELS:
                    if table.lacks(name, seed, kernel, way):
                        found = scores(kernel, way, *split(name, seed), classes)
                        table.append((name, seed, kernel, way, *map(float, found[:2]), found[2]))


def summary():
    """Losses with the defaults, and what each way of learning changes, seed by seed; how often it was kept."""
    rows = rows_of("learned_inputs")
    yield ("| set, kernel | defaults | relevance - defaults | kept | learned features - defaults | kept |")
    yield "|---|---|---|---|---|---|"
    for name in SETS:
        for kernel in KERNELS:
            found = {way: {row["seed"]: row for row in rows if (row["set"], row["kernel"], row["method"]) == (name, kernel, way)}
                     for way in WAYS}
            before = found.pop(ALONE)
            if not before:
                continue
            cells = [f"{np.mean([float(row['loss']) for row in before.values()]):.3f} ({len(before)})"]
            for after in found.values():
                shared = [seed for seed in after if seed in before]
                change = np.array([float(after[seed]["loss"]) - float(before[seed]["loss"]) for seed in shared])
                error = f" ± {mean_and_error(change)[1]:.3f}" if len(change) > 1 else ""
                cells += [f"{change.mean():+.3f}{error}" if shared else "-",
                          f"{sum(int(after[seed]['kept']) for seed in shared)} of {len(shared)}"]
            yield f"| {name}, {kernel} | {' | '.join(cells)} |"


SUMMARIES = {"learned_inputs": summary}


def main():
    if not shows(sys.argv[1], SUMMARIES):
        compute(int(sys.argv[2]) if len(sys.argv) > 2 else 5)


if __name__ == "__main__":
    main()
