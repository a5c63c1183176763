"""Do intervals hold what they say, where few rows fit the amplitude of the kernel?

    python small_intervals.py compute [DRAWS]
    python small_intervals.py summary

Draws of a few training rows from four problems, each with 200 test rows: the shares of test targets in the central intervals of 50, 90
and 95 %, by the normal distribution of the fitted amplitude, and by Student's t distribution, the amplitude integrated out. The
network is that of the estimators, with all its defaults. Rows are appended, so that a run that was stopped goes on."""
import sys

import numpy as np
import widelimit
from decision_tables import network
from sklearn import datasets
from widelimit.models import ObservationLaw

from tables import EXPERIMENTS, Table, rows_of, shows

PAGE = EXPERIMENTS / "tables.md"
ROWS = (8, 12, 20, 50)
LEVELS = (50, 90, 95)
TEST = 200
LAWS = ("normal", "student")


def curve(random):
    """A sine of one column, with noise of a tenth of its variance."""
    x = random.normal(size=(max(ROWS) + TEST, 1))
    return x, np.sin(2 * x[:, 0]) + 0.2 * random.normal(size=len(x))


def line(random):
    """A linear function of three columns, with as much noise."""
    x = random.normal(size=(max(ROWS) + TEST, 3))
    return x, x @ [1.0, -1.0, 0.5] + 1.5 * random.normal(size=len(x))


def friedman(random):
    return datasets.make_friedman1(n_samples=max(ROWS) + TEST, noise=1.0, random_state=int(random.integers(2**31)))


def diabetes(random):
    x, y = datasets.load_diabetes(return_X_y=True)
    order = random.permutation(len(y))[:max(ROWS) + TEST]
    return x[order], y[order]


SETS = {"sine of one column": curve, "linear, three columns": line, "friedman1": friedman, "diabetes": diabetes}


def coverages(x, y, count):
    """{(law, level): share} of the last TEST rows, by a model of the first `count`."""
    varies = np.ptp(x[:count], axis=0) > 0
    x = (x[:, varies] - x[:count, varies].mean(0)) / x[:count, varies].std(0)
    found = widelimit.Model.fit(network(), x[:count], y[:count], threads=1).predict(x[-TEST:], threads=1)
    shares = {}
    for name, law in zip(LAWS, (ObservationLaw(), found.law)):
        for level in LEVELS:
            low, high = found._replace(law=law).intervals(level / 100)
            shares[name, level] = np.mean((low[:, 0] <= y[-TEST:]) & (y[-TEST:] <= high[:, 0]))
    return shares


def compute(draws):
    cells = [(name, level) for name in LAWS for level in LEVELS]
    table = Table("small_intervals", ("set", "rows", "draws"), [f"{name}_{level}" for name, level in cells], "draws from 0")
    for name, make in SETS.items():
        for count in ROWS:
            if not table.lacks(name, count, draws):
                continue
            found = [coverages(*make(np.random.default_rng(draw)), count) for draw in range(draws)]
            table.append((name, count, draws, *(float(np.mean([shares[cell] for shares in found])) for cell in cells)))


def summary():
    heads = [f"{level} %: {'normal' if law == 'normal' else 't'}" for level in LEVELS for law in LAWS]
    yield f"| set | training rows | {' | '.join(heads)} |"
    yield "|---" * (2 + len(heads)) + "|"
    for row in rows_of("small_intervals"):
        shares = [f"{100 * float(row[f'{law}_{level}']):.1f}" for level in LEVELS for law in LAWS]
        yield f"| {row['set']} | {row['rows']} | {' | '.join(shares)} |"


SUMMARIES = {"small_intervals": summary}


def main():
    if not shows(sys.argv[1], SUMMARIES):
        compute(int(sys.argv[2]) if len(sys.argv) > 2 else 200)


if __name__ == "__main__":
    main()
