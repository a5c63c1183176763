"""Tables of head specialisation (Sagitova, Duranthon, Zdeborova, arXiv:2603.03993) over many starts.

    python heads.py features|times|rest [--starts N] [--threads 1]
    python heads.py summary

Appends a row to docs/experiments/data/heads_TABLE.csv as each start ends, and leaves out the starts that the file holds, so
that a run that was stopped goes on where it was.

`summary` prints the tables of docs/experiments/head-specialization.md that stand on these files.

features  figure 3: overlaps of every head at tau = 100, 400 and 4,000 for three Gaussian features
times     figure 6: specialisation times of flows over the size of the start
rest      figures 4 (right and left with H = 3, 5, 7), 9, 10 and 15: losses where flows rest
"""
import argparse
import itertools
import pathlib
import platform
import sys
import time

import numpy as np
import widelimit
from widelimit import heads

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
ACTIVATIONS = ("softmax", "softmaxv", "softmax1", "bayes")


class Table:
    """A file of comma-separated rows, whose first columns say which case a row is of."""

    def __init__(self, name, keys, columns):
        self.path = DATA / f"heads_{name}.csv"
        self.keys = len(keys)
        if not self.path.exists():
            command = "python docs/experiments/programs/heads.py " + " ".join(sys.argv[1:])
            self.path.write_text(f"# {command}; widelimit {widelimit.__version__}; {platform.machine()}; seeds 1, 2, ...\n"
                                 + ",".join((*keys, *columns)) + "\n")
        self.done = {tuple(line.split(",")[:self.keys]) for line in self.path.read_text().splitlines()[2:]}

    def lacks(self, *key):
        return tuple(map(str, key)) not in self.done

    def append(self, *rows):
        with self.path.open("a") as file:
            file.write("".join(",".join(f"{x:.6g}" if isinstance(x, float) else str(x) for x in row) + "\n" for row in rows))


def features(starts, threads):
    table = Table("features", ("activation", "seed"), ("tau", "head", "m0", "m1", "m2", "loss_at_the_end", "standard_error"))
    prior = heads.Prior.gaussian([20, 10.5, 1])
    for seed, activation in itertools.product(range(1, starts + 1), ("softmax", "bayes")):
        if table.lacks(activation, seed):
            (end,) = heads.flow(activation, prior, 5, 8, tau=4000, step=0.4, records=40, stop_gradient=0, samples=30_000,
                                seed=seed, threads=threads)
            rows = []
            for tau in (100, 400, 4000):
                m = end.path.m[np.argmin(abs(end.path.tau - tau))]
                rows += [(activation, seed, tau, head, *map(float, m[head]), end.loss, end.standard_error) for head in range(8)]
            table.append(*rows)


def times(starts, threads):
    table = Table("times", ("activation", "eta", "seed"), ("log_scale", "time"))
    prior = heads.Prior.flip2(2, 2)
    cases = itertools.product(range(1, starts + 1), ("bayes", "softmax"), (0.1, 0.01, 0.001, 1e-4))
    for seed, activation, eta in cases:
        if table.lacks(activation, eta, seed):
            found = heads.specialisation_times(activation, prior, 5, 2, 10_000, [eta], 400.0, starts=1, step=0.25,
                                               samples=20_000, seed=seed, threads=threads)
            table.append((activation, eta, seed, float(found.log_scale[0]), float(found.times[0, 0])))


def rest_cases():
    """(figure, activation, prior's name, prior, tokens, heads)."""
    gaussian, flip, spikes = heads.Prior.gaussian, heads.Prior.flip2, heads.Prior.spikes
    for nu, activation in itertools.product((1, 2, 5, 10), ACTIVATIONS):
        yield "4 right", activation, f"flip2({nu} {nu})", flip(nu, nu), 5, 4
    for nu, activation in itertools.product((1, 5, 10, 20, 40), ACTIVATIONS):
        yield "4 right", activation, f"gaussian({nu} {nu})", gaussian([nu, nu]), 5, 4
    for activation in ACTIVATIONS:
        yield "9", activation, "flip2(2 2)", flip(2, 2), 5, 2
        yield "10", activation, "gaussian(8 2)", gaussian([8, 2]), 5, 4
        yield "15", activation, "gaussian(9 9 9)", gaussian([9, 9, 9]), 5, 4
    for count, activation in itertools.product((3, 5, 7), ACTIVATIONS):
        yield "4 left", activation, "spikes(4 10)", spikes(4, 10), 5, count
        yield "4 left", activation, "gaussian(4 x 10)", gaussian([10] * 4), 5, count


def rest(starts, threads):
    table = Table("rest", ("figure", "activation", "prior", "heads", "seed"),
                  ("loss", "standard_error", "at_rest", "tau", "lowest_curvature", "left_saddles", "relevant_mass", "seconds"))
    cases = itertools.product(range(1, starts + 1), rest_cases())
    for seed, (figure, activation, name, prior, tokens, count) in cases:
        if table.lacks(figure, activation, name, count, seed):
            begin = time.time()
            (end,) = heads.flow(activation, prior, tokens, count, tau=40_000, records=2, step=0.5, samples=20_000, seed=seed,
                                threads=threads)
            mass = heads.judge(activation, end.path.end, prior, tokens, seed=seed, threads=threads).relevant
            table.append((figure, activation, name, count, seed, end.loss, end.standard_error, int(end.converged),
                          float(end.path.tau[-1]), float("nan") if end.curvature is None else end.curvature,
                          len(end.left_saddles), mass, round(time.time() - begin)))


def rows_of(name):
    """The rows of a committed file, as dictionaries of texts."""
    lines = (DATA / f"heads_{name}.csv").read_text().splitlines()[1:]
    return [dict(zip(lines[0].split(","), line.split(","))) for line in lines[1:]]


def summary_of_features():
    """How much of a head lies along its largest component, over all heads longer than .3 of all starts."""
    yield "| activation | tau | starts | heads longer than .3 | largest component: 10 %, median, 90 % | above .95 | starts with all above .9 |"
    yield "|---|---|---|---|---|---|---|"
    rows = rows_of("features")
    for activation, tau in itertools.product(("softmax", "bayes"), ("100", "400", "4000")):
        heads_of = {}
        for row in rows:
            if (row["activation"], row["tau"]) == (activation, tau):
                heads_of.setdefault(row["seed"], []).append([float(row[f"m{f}"]) for f in range(3)])
        shares = []
        for m in map(np.array, heads_of.values()):
            length = np.linalg.norm(m, axis=1)
            shares.append(abs(m[length > 0.3]).max(axis=1) / length[length > 0.3])
        every = np.concatenate(shares)
        low, middle, high = np.quantile(every, (0.1, 0.5, 0.9))
        yield (f"| {activation} | {int(tau):,} | {len(shares)} | {len(every)} of {8 * len(shares)} | {low:.2f}, {middle:.2f}, {high:.2f} | "
               f"{np.mean(every > 0.95):.0%} | {sum(share.min() > 0.9 for share in shares)} |")
    for activation in ("softmax", "bayes"):
        losses = {row["seed"]: float(row["loss_at_the_end"]) for row in rows if row["activation"] == activation}
        values = sorted(losses.values())
        yield f"{activation} at tau = 4,000: loss {np.median(values):.4f}, from {values[0]:.4f} to {values[-1]:.4f} over {len(values)} starts"


def summary_of_times():
    yield "| activation | eta | starts | mean | standard deviation | least | greatest |"
    yield "|---|---|---|---|---|---|---|"
    rows = rows_of("times")
    for activation in ("softmax", "bayes"):
        scales, means = [], []
        for eta in ("0.1", "0.01", "0.001", "0.0001"):
            found = [(float(row["log_scale"]), float(row["time"])) for row in rows if (row["activation"], row["eta"]) == (activation, eta)]
            if not found:
                continue
            times_of = np.array([time for _, time in found])
            yield (f"| {activation} | {eta} | {len(found)} | {np.nanmean(times_of):.1f} | {np.nanstd(times_of, ddof=1):.1f} | "
                   f"{np.nanmin(times_of):.1f} | {np.nanmax(times_of):.1f} |")
            scales.append(found[0][0])
            means.append(times_of.mean())
        if len(scales) > 1:
            yield f"{activation}: slope of the means in ln(sqrt(D) / eta) {np.polyfit(scales, means, 1)[0]:.2f}"


def summary_of_rest():
    yield "| figure | prior | heads | activation | median loss | least | greatest | at rest | relevant mass |"
    yield "|---|---|---|---|---|---|---|---|---|"
    cases = {}
    for row in rows_of("rest"):
        cases.setdefault((row["figure"], row["prior"], row["heads"], row["activation"]), []).append(row)
    for key, rows in sorted(cases.items()):
        losses = sorted(float(row["loss"]) for row in rows)
        yield (f"| {' | '.join(key)} | {np.median(losses):.4f} | {losses[0]:.4f} | {losses[-1]:.4f} | "
               f"{sum(row['at_rest'] == '1' for row in rows)} of {len(rows)} | {np.median([float(row['relevant_mass']) for row in rows]):.3f} |")


def summary():
    for name, lines in ("features", summary_of_features), ("times", summary_of_times), ("rest", summary_of_rest):
        if (DATA / f"heads_{name}.csv").exists():
            print("\n".join(lines()), end="\n\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", choices=("features", "times", "rest", "summary"))
    parser.add_argument("--starts", type=int, default=0, help="seeds 1 to N; 20, 100 and 5 by default")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    DATA.mkdir(parents=True, exist_ok=True)
    {"summary": summary, "features": lambda: features(given.starts or 20, given.threads),
     "times": lambda: times(given.starts or 100, given.threads),
     "rest": lambda: rest(given.starts or 5, given.threads)}[given.table]()


if __name__ == "__main__":
    main()
