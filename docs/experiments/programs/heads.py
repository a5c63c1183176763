"""Tables of head specialisation (Sagitova, Duranthon, Zdeborova, arXiv:2603.03993) over many starts.

    python heads.py features|times|rest|bayes [--starts N] [--threads 1]
    python heads.py resampling|digits|sgd|figures|dimensions [--starts N] [--threads 1] [--program widelimit] [--mnist FOLDER]
    python heads.py summary|picture

Appends a row to docs/experiments/data/heads_TABLE.csv as each start ends, and leaves out the starts that the file holds, so
that a run that was stopped goes on where it was.

`summary` prints the tables of docs/experiments/head-specialization.md that stand on these files, `picture` draws (heads_pictures.py).

features  figure 3: overlaps of every head at tau = 100, 400 and 4,000 for three Gaussian features
times     figure 6: specialisation times of flows over the size of the start
rest      figures 4, 9, 10 and 15: losses where flows rest; --heads N: the cases of so many heads only
bayes     Bayes risks of the priors of figure 4, from 400,000 draws
resampling  figure 8: flows on samples that are kept, and on new ones at every step, to tau = 20, and a quarter of the starts to 100
digits    figure 7: times at which digits are specialised on, SGD on MNIST's test images
sgd       figure 1: SGD at D = 10,000 beside the flow from its start, to tau = 40
figures   figures 9 and 10 at D = 2,000: SGD beside the flow from its start, to tau = 40 and 30
dimensions  figure 6 as SGD: specialisation times at three D, over the size of the start
"""
import argparse
import csv
import itertools
import json
import pathlib
import subprocess
import tempfile

import numpy as np
from widelimit import heads

from tables import DATA, EXPERIMENTS, Table, brief, mean_and_error, rows_of

PAGE = EXPERIMENTS / "head-specialization.md"
ACTIVATIONS = ("softmax", "softmaxv", "softmax1", "bayes")


def features(starts, threads):
    table = Table("heads_features", ("activation", "seed"), ("tau", "head", "m0", "m1", "m2", "loss_at_the_end", "standard_error"),
                  "seeds 1, 2, ...")
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
    table = Table("heads_times", ("activation", "eta", "seed"), ("log_scale", "time"), "seeds 1, 2, ...")
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
    for count, activation in itertools.product((3, 5, 7, 1, 2, 4), ACTIVATIONS):
        yield "4 left", activation, "spikes(4 10)", spikes(4, 10), 5, count
        yield "4 left", activation, "gaussian(4 x 10)", gaussian([10] * 4), 5, count


def rest(starts, threads, only=None):
    """With `only`, the cases of so many heads."""
    table = Table("heads_rest", ("figure", "activation", "prior", "heads", "seed"),
                  ("loss", "standard_error", "at_rest", "tau", "lowest_curvature", "left_saddles", "relevant_mass"),
                  "seeds 1, 2, ...")
    cases = itertools.product(range(1, starts + 1), (case for case in rest_cases() if only in (None, case[-1])))
    for seed, (figure, activation, name, prior, tokens, count) in cases:
        if table.lacks(figure, activation, name, count, seed):
            (end,) = heads.flow(activation, prior, tokens, count, tau=40_000, records=2, step=0.5, samples=20_000, seed=seed,
                                threads=threads)
            mass = heads.judge(activation, end.path.end, prior, tokens, seed=seed, threads=threads).relevant
            table.append((figure, activation, name, count, seed, end.loss, end.standard_error, int(end.converged),
                          float(end.path.tau[-1]), float("nan") if end.curvature is None else end.curvature,
                          len(end.left_saddles), mass))


def bayes(threads):
    table = Table("heads_bayes", ("prior",), ("draws", "risk", "standard_error"), "seed 1; five tokens")
    for name, prior in {name: prior for figure, _, name, prior, _, _ in rest_cases() if figure.startswith("4")}.items():
        if table.lacks(name):
            found = heads.bayes_risk(prior, 5, samples=400_000, seed=1, threads=threads)
            table.append((name, 400_000, float(found.value), float(found.standard_error)))


def run(program, command, configuration, threads):
    """What `widelimit heads COMMAND` makes of a configuration: the object that it prints, and the rows of its table."""
    with tempfile.TemporaryDirectory() as folder:
        file, out = pathlib.Path(folder, "configuration.json"), pathlib.Path(folder, "out.csv")
        file.write_text(json.dumps(configuration))
        done = subprocess.run([program, "heads", command, str(file), "--json", "--threads", str(threads), "--out", str(out)], check=True,
                              capture_output=True, text=True)
        with out.open() as lines:
            return json.loads(done.stdout), list(csv.DictReader(line for line in lines if not line.startswith("#")))


FLIP2 = {"kind": "flip2", "nu1": 2, "nu2": 2}


def resampling(given):
    table = Table("heads_resampling", ("tau", "seed"), ("largest_difference_m", "largest_difference_S"), "seeds 1, 2, ...")
    starts = given.starts or 20
    for tau, seed in ((tau, seed) for tau, count in ((20, starts), (100, starts // 4)) for seed in range(1, count + 1)):
        if table.lacks(tau, seed):
            found, _ = run(given.program, "resampling", {"activation": "softmax", "prior": FLIP2, "tokens": 8, "heads": 2, "samples": 20000,
                                                         "tau": tau, "stop_gradient": 0, "starts": 1, "seed": seed}, given.threads)
            table.append((tau, seed, found["largest_difference_m"], found["largest_difference_S"]))


def sgd(given):
    table = Table("heads_sgd", ("seed",), ("largest_difference_m", "largest_difference_S"), "seeds 1, 2, ...")
    for seed in range(1, (given.starts or 5) + 1):
        if table.lacks(seed):
            found, _ = run(given.program, "compare", {"activation": "softmax", "prior": FLIP2, "tokens": 10, "heads": 2, "dimension": 10000,
                                                      "samples": 100000, "tau": 40, "starts": 1, "seed": seed}, given.threads)
            table.append((seed, found["largest_difference_m"], found["largest_difference_S"]))


def figures(given):
    table = Table("heads_figures", ("figure", "activation", "seed"), ("largest_difference_m", "largest_difference_S"),
                  "seeds 1, 2, ...; D = N_b = 2,000; flows on 20,000 samples, closed under the symmetries")
    cases = {"9": (FLIP2, 2, 40), "10": ({"kind": "gaussian", "variances": [8, 2]}, 4, 30)}
    for seed, figure, activation in itertools.product(range(1, (given.starts or 5) + 1), cases, ACTIVATIONS):
        if table.lacks(figure, activation, seed):
            prior, count, tau = cases[figure]
            found, _ = run(given.program, "compare", {"activation": activation, "prior": prior, "tokens": 5, "heads": count, "dimension": 2000,
                                                      "samples": 20000, "symmetry": "closed", "tau": tau, "starts": 1, "seed": seed}, given.threads)
            table.append((figure, activation, seed, found["largest_difference_m"], found["largest_difference_S"]))


DIMENSIONS, SGD_ETAS = (300, 1000, 3000), (0.1, 0.01)


def dimensions(given):
    table = Table("heads_dimensions", ("activation", "dimension", "eta", "seed"), ("log_scale", "time"),
                  "seeds 1, 2, ...; SGD in Gram form; flip2(2, 2); L = 5; H = 2; N_b = D; gamma = .02")
    cases = itertools.product(("bayes", "softmax"), range(1, (given.starts or 5) + 1), SGD_ETAS, DIMENSIONS)
    for activation, seed, eta, dimension in cases:
        if table.lacks(activation, dimension, eta, seed):
            _, (row,) = run(given.program, "phase-transition", {"activation": activation, "prior": FLIP2, "tokens": 5, "heads": 2, "dynamics": "sgd",
                                                                "dimensions": [dimension], "etas": [eta], "starts": 1, "tau": 400, "seed": seed},
                            given.threads)
            table.append((activation, dimension, eta, seed, float(row["log_scale"]), float(row["specialisation_time"])))


def digits(given):
    table = Table("heads_digits", ("seed",), (*(f"time_{digit}" for digit in range(10)), "log_scale"),
                  "seeds 1, 2, ...; MNIST's test images")
    for seed in range(1, (given.starts or 20) + 1):
        if table.lacks(seed):
            _, (row,) = run(given.program, "digit-times", {"activation": "softmax", "mnist": str(given.mnist), "etas": [1], "starts": 1,
                                                           "tau": 1500, "seed": seed}, given.threads)
            table.append((seed, *(float(row[f"digit_time_{digit}"]) for digit in range(10)), float(row["log_scale"])))


def summary_of_features():
    """How much of a head lies along its largest component, over all heads longer than .3 of all starts."""
    yield "| activation | tau | starts | heads longer than .3 | largest component: 10 %, median, 90 % | above .95 | starts with all above .9 |"
    yield "|---|---|---|---|---|---|---|"
    rows = rows_of("heads_features")
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
    rows = rows_of("heads_times")
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


def summary_of_rest(starts=5):
    """Cases with at least so many starts; fewer decide nothing."""
    cases = {}
    for row in rows_of("heads_rest"):
        cases.setdefault((row["figure"], row["prior"], row["heads"], row["activation"]), []).append(row)
    cases = {key: rows for key, rows in sorted(cases.items()) if len(rows) >= starts}
    if cases:
        yield "| figure | prior | heads | activation | median loss | least | greatest | at rest | relevant mass |"
        yield "|---|---|---|---|---|---|---|---|---|"
    for key, rows in cases.items():
        losses = sorted(float(row["loss"]) for row in rows)
        yield (f"| {' | '.join(key)} | {np.median(losses):.4f} | {losses[0]:.4f} | {losses[-1]:.4f} | "
               f"{sum(row['at_rest'] == '1' for row in rows)} of {len(rows)} | {np.median([float(row['relevant_mass']) for row in rows]):.3f} |")


def summary_of_bayes():
    """Figure 4, right: median losses of flows at rest, beside the Bayes risk."""
    yield "| figure 4 right: prior | softmax | softmax-v | softmax-1 | bayes | Bayes risk |"
    yield "|---|---|---|---|---|---|"
    risks, losses = {row["prior"]: (float(row["risk"]), float(row["standard_error"])) for row in rows_of("heads_bayes")}, {}
    for row in rows_of("heads_rest"):
        if row["figure"] == "4 right":
            losses.setdefault(row["prior"], {}).setdefault(row["activation"], []).append(float(row["loss"]))
    for prior, of in losses.items():
        yield f"| {prior} | {' | '.join(f'{np.median(of[activation]):.4f}' for activation in ACTIVATIONS)} | {brief(*risks[prior])} |"
    for prior in ("spikes(4 10)", "gaussian(4 x 10)"):
        yield f"The Bayes risk of {prior} is {brief(*risks[prior])}."


def ranges(rows, name):
    values = sorted(float(row[name]) for row in rows)
    return f"{np.median(values):.4f} ({values[0]:.4f} to {values[-1]:.4f})"


def summary_of_resampling():
    yield "| tau | starts | largest difference in m: median (range) | in S |"
    yield "|---|---|---|---|"
    for tau in ("20", "100"):
        rows = [row for row in rows_of("heads_resampling") if row["tau"] == tau]
        if rows:
            yield f"| {tau} | {len(rows)} | {ranges(rows, 'largest_difference_m')} | {ranges(rows, 'largest_difference_S')} |"


def summary_of_sgd():
    rows = rows_of("heads_sgd")
    yield (f"Over {len(rows)} starts the largest difference between SGD and flow is {ranges(rows, 'largest_difference_m')} in m and "
           f"{ranges(rows, 'largest_difference_S')} in S (median and range).")


def summary_of_figures():
    yield "| figure | activation | starts | largest difference in m: median (range) | in S |"
    yield "|---|---|---|---|---|"
    rows = rows_of("heads_figures")
    for figure, activation in itertools.product(("9", "10"), ACTIVATIONS):
        found = [row for row in rows if (row["figure"], row["activation"]) == (figure, activation)]
        if found:
            yield f"| {figure} | {activation} | {len(found)} | {ranges(found, 'largest_difference_m')} | {ranges(found, 'largest_difference_S')} |"


def times_of_dimensions(activation):
    """{(D, eta): (log_scale, times)}, of cells with a start at least."""
    found = {}
    for row in rows_of("heads_dimensions"):
        if row["activation"] == activation:
            key = int(row["dimension"]), float(row["eta"])
            found.setdefault(key, (float(row["log_scale"]), []))[1].append(float(row["time"]))
    return dict(sorted(found.items()))


def slope_of_dimensions(activation):
    """Of all times in ln(sqrt(D) / eta), with its standard error."""
    pairs = np.array([(scale, time) for scale, times in times_of_dimensions(activation).values() for time in times])
    (slope, _), covariance = np.polyfit(*pairs.T, 1, cov=True)
    return slope, covariance[0, 0] ** 0.5


def summary_of_dimensions():
    yield "| activation | D | eta | starts | mean time | standard error | over ln(sqrt(D) / eta) |"
    yield "|---|---|---|---|---|---|---|"
    for activation in ("bayes", "softmax"):
        for (dimension, eta), (scale, times) in times_of_dimensions(activation).items():
            if len(times) > 2:
                mean, error = mean_and_error(times)
                yield (f"| {activation} | {dimension:,} | {eta:g} | {len(times)} | {mean:.1f} | {error:.1f} | {mean / scale:.2f} ± {error / scale:.2f} |")
    for activation in ("bayes", "softmax"):
        if len(times_of_dimensions(activation)) > 2:
            yield "{}: slope of all times in ln(sqrt(D) / eta) {:.1f} ± {:.1f}".format(activation, *slope_of_dimensions(activation))


def summary_of_digits():
    """Times of every digit, and how often it comes before the others."""
    rows = rows_of("heads_digits")
    found = np.array([[float(row[f"time_{digit}"]) for digit in range(10)] for row in rows])
    place = np.where(np.isnan(found), np.inf, found).argsort(axis=1).argsort(axis=1) + 1
    yield "| digit | starts that reach it | time: median (range) | its place among the ten: median (range) |"
    yield "|---|---|---|---|"
    for digit in range(10):
        reached, places = found[:, digit][~np.isnan(found[:, digit])], place[:, digit]
        yield (f"| {digit} | {len(reached)} of {len(found)} | {np.median(reached):.0f} ({reached.min():.0f} to {reached.max():.0f}) | "
               f"{np.median(places):g} ({places.min()} to {places.max()}) |")


SUMMARIES = {"heads_features": summary_of_features, "heads_times": summary_of_times, "heads_rest": summary_of_rest,
             "heads_resampling": summary_of_resampling, "heads_digits": summary_of_digits, "heads_sgd": summary_of_sgd, "heads_bayes": summary_of_bayes,
             "heads_figures": summary_of_figures, "heads_dimensions": summary_of_dimensions}


def picture():
    from heads_pictures import draw_all
    draw_all()


def summary():
    for name, lines in SUMMARIES.items():
        if (DATA / f"{name}.csv").exists():
            print("\n".join(lines()), end="\n\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", choices=("features", "times", "rest", "bayes", "resampling", "digits", "sgd", "figures", "dimensions", "summary", "picture"))
    parser.add_argument("--starts", type=int, default=0, help="seeds 1 to N; 20, 100, 5, 20, 20, 5, 5 and 5 by default")
    parser.add_argument("--program", default="widelimit")
    parser.add_argument("--mnist", type=pathlib.Path)
    parser.add_argument("--heads", type=int, help="of rest: only the cases of so many heads")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    DATA.mkdir(parents=True, exist_ok=True)
    {"summary": summary, "picture": picture, "features": lambda: features(given.starts or 20, given.threads),
     "times": lambda: times(given.starts or 100, given.threads),
     "rest": lambda: rest(given.starts or 5, given.threads, given.heads), "bayes": lambda: bayes(given.threads), "resampling": lambda: resampling(given),
     "digits": lambda: digits(given), "sgd": lambda: sgd(given), "figures": lambda: figures(given), "dimensions": lambda: dimensions(given)}[given.table]()


if __name__ == "__main__":
    main()
