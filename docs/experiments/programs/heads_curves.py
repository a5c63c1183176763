"""Curves and maps of head specialisation (Sagitova, Duranthon, Zdeborova, arXiv:2603.03993), whose rows heads.py has no table for.

    python heads_curves.py flows|sgd|cosines|maps|bias|prune [--starts N] [--threads 1]
    python heads_curves.py keys|etas --mnist FOLDER [--starts N] [--threads 1]
    python heads_curves.py summary          (pictures: heads.py picture)

Appends rows to docs/experiments/data/heads_TABLE.csv case by case, and leaves out the cases that the file holds.

flows    figures 2, 12 and 13: overlaps and losses along flows with 2, 4, 5 and 8 heads
sgd      figures 1, 9 and 10: SGD at D = 10,000 and the flow from its start, at the same times
cosines  figure 11: cosine of two softmax heads over the strengths of both features
maps     figure 15: attention maps of single sequences, of heads at tau = 2,000
bias     proposition IV.3: losses of two opposite heads with the bias B^(3/2), over their length B
prune    figure 16: losses of eight heads at rest after 0 to 7 removals
keys     figure 5: SGD on MNIST's test images; losses, and cosines of every head with every digit's mean image
etas     figure 7 with smaller starts: times at which digits are specialised on
"""
import argparse
import itertools
import pathlib

import numpy as np
from widelimit import heads

from heads import ACTIVATIONS
from tables import DATA, EXPERIMENTS, Table, brief, rows_of, shows

PAGE = EXPERIMENTS / "head-specialization.md"
FLIP2, GAUSSIAN82, GAUSSIAN22 = heads.Prior.flip2(2, 2), heads.Prior.gaussian([8, 2]), heads.Prior.gaussian([2, 2])
# figure: prior, its name, {heads: last time}
FLOWS = {"2a and 12": (FLIP2, "flip2(2 2)", {2: 800, 4: 800, 5: 800, 8: 3000}),
         "2b and 13 bottom": (GAUSSIAN82, "gaussian(8 2)", {2: 3000, 4: 3000, 5: 3000, 8: 3000}),
         "13 top": (GAUSSIAN22, "gaussian(2 2)", {2: 800, 5: 800, 8: 800})}
# figure: prior, tokens, heads, last time, activations, number and symmetry of the flow's samples
SGD = {"1": (FLIP2, 10, 2, 40, ("softmax",), 100_000, "plain"), "9": (FLIP2, 5, 2, 40, ACTIVATIONS, 20_000, "closed"),
       "10": (GAUSSIAN82, 5, 4, 30, ACTIVATIONS, 20_000, "closed")}
STRENGTHS = (0.5, 2, 8), (0.5, 1, 2, 4, 8)
PRUNED = {"spikes(4 10)": heads.Prior.spikes(4, 10), "gaussian(4 x 10)": heads.Prior.gaussian([10] * 4)}
ETAS = (0.3, 0.1)
LENGTHS = (1, 1.5, 2, 3, 4, 6, 8, 12, 16)


def at_growing_times(tau, count=40):
    """Indices of about so many records whose logarithms are even, with the first and the last."""
    positive = tau[tau > 0]
    wanted = np.geomspace(positive[0], positive[-1], count)
    return sorted({0, *(int(np.argmin(abs(tau - time))) for time in wanted)})


def flows(given):
    table = Table("heads_flows", ("figure", "prior", "heads", "seed"), ("tau", "head", "m0", "m1", "training_loss", "loss_at_the_end", "standard_error"),
                  "seeds 1, 2, ...; softmax; L = 4; 30,000 samples; step .4")
    for seed, figure in itertools.product(range(1, (given.starts or 1) + 1), FLOWS):
        prior, name, last_times = FLOWS[figure]
        for count, last in last_times.items():
            if table.lacks(figure, name, count, seed):
                (end,) = heads.flow("softmax", prior, 4, count, tau=last, step=0.4, records=int(last / 0.8), stop_gradient=0, samples=30_000,
                                    seed=seed, threads=given.threads)
                path = end.path
                table.append(*((figure, name, count, seed, float(path.tau[k]), head, *map(float, path.m[k, head]), float(path.loss[k]), end.loss,
                                end.standard_error) for k in at_growing_times(path.tau) for head in range(count)))


def sgd(given):
    table = Table("heads_sgd_curves", ("figure", "activation", "seed"), ("dynamics", "tau", "head", "m0", "m1", "largest_difference_m", "largest_difference_S"),
                  "seeds 1, 2, ...; D = N_b = 10,000; gamma = .02; flow: 100,000 samples, figures 9 and 10 20,000 closed ones, step .1")
    for seed, figure in itertools.product(range(1, (given.starts or 1) + 1), SGD):
        prior, tokens, count, last, activations, samples, symmetry = SGD[figure]
        for activation in activations:
            if table.lacks(figure, activation, seed):
                found = heads.compare(activation, prior, tokens, count, 10_000, last, samples=samples, symmetry=symmetry, seed=seed,
                                      threads=given.threads)
                times = range(0, len(found.sgd.tau), max(1, len(found.sgd.tau) // 25))
                differences = found.largest_difference_m, found.largest_difference_S
                table.append(*((figure, activation, seed, name, float(path.tau[k]), head, *map(float, path.m[k, head]), *differences)
                               for name, path in (("sgd", found.sgd), ("flow", found.flow)) for k in times for head in range(count)))


def cosines(given):
    table = Table("heads_cosines", ("nu1", "nu2", "seed"), ("cosine", "loss", "standard_error"),
                  "seeds 1, 2, ...; softmax; flip2; L = 4; H = 2; tau = 2,000; 30,000 samples; step .4")
    for seed, nu1, nu2 in itertools.product(range(1, (given.starts or 1) + 1), *STRENGTHS):
        if table.lacks(nu1, nu2, seed):
            (end,) = heads.flow("softmax", heads.Prior.flip2(nu1, nu2), 4, 2, tau=2000, step=0.4, records=2, stop_gradient=0, samples=30_000,
                                seed=seed, threads=given.threads)
            gram = end.path.S[-1] + end.path.m[-1] @ end.path.m[-1].T
            table.append((nu1, nu2, seed, float(gram[0, 1] / (gram[0, 0] * gram[1, 1]) ** 0.5), end.loss, end.standard_error))


def maps(given):
    table = Table("heads_maps", ("activation", "seed"), ("sequence", "head", *(f"token_{token}" for token in range(5)), "relevant_mass", "other_mass"),
                  "seed 1; gaussian(9, 9, 9); L = 5; H = 4; flows to tau = 2,000 of 20,000 samples, step .5; token 0 carries the signal")
    prior = heads.Prior.gaussian([9, 9, 9])
    for activation in ACTIVATIONS:
        if table.lacks(activation, 1):
            (end,) = heads.flow(activation, prior, 5, 4, tau=2000, step=0.5, records=2, samples=20_000, seed=1, threads=given.threads)
            judged = heads.judge(activation, end.path.end, prior, 5, seed=1, threads=given.threads)
            sequences = zip(*heads.fresh_sequences(prior, 5, 4, 6, seed=1))
            table.append(*((activation, 1, sequence, head, *map(float, weights), judged.relevant, judged.other)
                           for sequence, tokens in enumerate(sequences)
                           for head, weights in enumerate(heads.attention_map(activation, end.path.end, *tokens))))


def bias(given):
    table = Table("heads_bias", ("length", "activation"), ("loss", "standard_error", "bayes_risk", "bayes_risk_error"),
                  "seed 1; theta = B or -B; L = 5; two heads at m = B and -B, r = 0; softmax1: b = B^(3/2), v = 2; 200,000 samples")
    for length in LENGTHS:
        prior = heads.Prior.discrete([[length], [-length]], [0.5, 0.5])
        for activation in ("softmax1", "softmax"):
            if table.lacks(length, activation):
                b, v = (length**1.5, 2.0) if activation == "softmax1" else (0.0, 1.0)
                start = heads.HeadParameters(np.array([[length], [-length]]), np.zeros((2, 2)), np.full(2, b), np.array([v]))
                loss = heads.judge(activation, start, prior, 5, threads=given.threads).loss
                risk = heads.bayes_risk(prior, 5, samples=200_000, threads=given.threads)
                table.append((length, activation, *map(float, loss), *map(float, risk)))


def prune(given):
    table = Table("heads_prune", ("prior", "activation", "seed"), ("at_rest", *(f"removed_{count}" for count in range(8))),
                  "seeds 1, 2, ...; L = 5; H = 8; flows to rest or tau = 40,000 of 20,000 samples, step .5; losses on 200,000 fresh samples")
    for seed, (name, prior), activation in itertools.product(range(1, (given.starts or 1) + 1), PRUNED.items(), reversed(ACTIVATIONS)):
        if table.lacks(name, activation, seed):
            (end,) = heads.flow(activation, prior, 5, 8, tau=40_000, records=2, step=0.5, samples=20_000, seed=seed, threads=given.threads)
            losses = heads.prune(activation, end.path.end, prior, 5, seed=seed, threads=given.threads).losses
            table.append((name, activation, seed, int(end.converged), *map(float, losses)))


def digits_of(folder):
    """MNIST's test images and labels, the whole file of each."""
    if folder is None:
        raise SystemExit("--mnist: expected the folder with the t10k files")
    images, labels = (np.fromfile(folder / f"t10k-{name}-ubyte", np.uint8) for name in ("images-idx3", "labels-idx1"))
    return heads.ImageTask(images[16:].reshape(-1, 28, 28), labels[8:])


def keys(given):
    table = Table("heads_keys", ("activation", "seed"), ("head", *(f"cosine_{digit}" for digit in range(10)), "loss", "standard_error", "bayes_risk",
                  "bayes_risk_error"), "seeds 1, 2, ...; MNIST's test images; nu = .3; L = 5; H = 10; N_b = 784; gamma = .5; 6,000 steps")
    task = digits_of(given.mnist)
    for seed, activation in itertools.product(range(1, (given.starts or 1) + 1), ACTIVATIONS):
        if table.lacks(activation, seed):
            found = heads.digits(activation, task, 3000, gamma=0.5, seed=seed, threads=given.threads)
            table.append(*((activation, seed, head, *map(float, cosines), *map(float, found.loss), *map(float, found.bayes_risk))
                           for head, cosines in enumerate(found.cosines)))


def etas(given):
    table = Table("heads_etas", ("eta", "seed"), (*(f"time_{digit}" for digit in range(10)), "log_scale"),
                  "seeds 1, 2, ...; MNIST's test images; softmax; nu = .3; L = 5; H = 10; N_b = 784; gamma = .25; to tau = 2,500")
    task = digits_of(given.mnist)
    for seed, eta in itertools.product(range(1, (given.starts or 5) + 1), ETAS):
        if table.lacks(eta, seed):
            found = heads.digit_times("softmax", task, [eta], 2500, starts=1, seed=seed, threads=given.threads)
            table.append((eta, seed, *map(float, found.times[0, 0]), float(found.log_scale[0])))


def last_rows(name, keys):
    """{case: rows of its last time}, in the order of the file."""
    found = {}
    for row in rows_of(name):
        found.setdefault(tuple(row[key] for key in keys), []).append(row)
    return {case: [row for row in rows if row["tau"] == rows[-1]["tau"]] for case, rows in found.items()}


def estimate(row, name="loss", error="standard_error"):
    return brief(float(row[name]), float(row[error]))


def summary_of_flows():
    yield "| figure | prior | heads | to tau | loss | overlaps of the heads with both features at the end |"
    yield "|---|---|---|---|---|---|"
    for (figure, prior, count, seed), rows in last_rows("heads_flows", ("figure", "prior", "heads", "seed")).items():
        overlaps = sorted(((float(row["m0"]), float(row["m1"])) for row in rows), reverse=True)
        yield (f"| {figure} | {prior} | {count} | {float(rows[0]['tau']):,.0f} | {estimate(rows[0], 'loss_at_the_end')} | "
               f"{', '.join(f'({first:.1f} {second:.1f})'.replace('-0.0', '0.0') for first, second in overlaps)} |")


def summary_of_sgd():
    yield "| figure | activation | starts | largest difference in m | in S |"
    yield "|---|---|---|---|---|"
    found = {}
    for (figure, activation, _), (row, *_) in last_rows("heads_sgd_curves", ("figure", "activation", "seed")).items():
        found.setdefault((figure, activation), []).append(row)
    for (figure, activation), rows in found.items():
        cells = (", ".join(f"{float(row[name]):.4f}" for row in rows) for name in ("largest_difference_m", "largest_difference_S"))
        yield f"| {figure} | {activation} | {len(rows)} | {' | '.join(cells)} |"


def summary_of_cosines():
    yield "| cosine of the two heads | " + " | ".join(f"nu2 = {nu2:g}" for nu2 in STRENGTHS[1]) + " |"
    yield "|---|" + "---|" * len(STRENGTHS[1])
    for nu1 in STRENGTHS[0]:
        rows = [row for row in rows_of("heads_cosines") if float(row["nu1"]) == nu1]
        yield f"| nu1 = {nu1:g} | " + " | ".join(f"{float(row['cosine']):.2f}" for row in rows) + " |"


def summary_of_maps():
    yield "| activation | mean weight of the relevant token | of all others together |"
    yield "|---|---|---|"
    for activation in ACTIVATIONS:
        row = next(row for row in rows_of("heads_maps") if row["activation"] == activation)
        yield f"| {activation} | {float(row['relevant_mass']):.3f} | {float(row['other_mass']):.3f} |"


def summary_of_bias():
    yield "| B | " + " | ".join(f"{length:g}" for length in LENGTHS) + " |"
    yield "|---|" + "---|" * len(LENGTHS)
    rows = {(float(row["length"]), row["activation"]): row for row in rows_of("heads_bias")}
    for activation in ("softmax1", "softmax"):
        yield f"| {activation} | " + " | ".join(estimate(rows[length, activation]) for length in LENGTHS) + " |"
    risks = (rows[length, "softmax1"] for length in LENGTHS)
    yield "| Bayes risk | " + " | ".join("below 1e-6" if float(row["bayes_risk"]) < 1e-6 else estimate(row, "bayes_risk", "bayes_risk_error") for row in risks) + " |"


def summary_of_prune():
    yield "| figure 16: prior | activation | starts | at rest | " + " | ".join(map(str, range(8))) + " |"
    yield "|---|---|---|---|" + "---|" * 8
    found = {}
    for row in rows_of("heads_prune"):
        found.setdefault((row["prior"], row["activation"]), []).append(row)
    for (prior, activation), rows in found.items():
        losses = (np.median([float(row[f"removed_{count}"]) for row in rows]) for count in range(8))
        yield (f"| {prior} | {activation} | {len(rows)} | {sum(row['at_rest'] == '1' for row in rows)} | " + " | ".join(f"{loss:.3f}" for loss in losses) + " |")


def summary_of_keys():
    yield "| activation | starts | loss | Bayes risk | best cosine of a head with a digit: median (range) | digits that are the best of a head |"
    yield "|---|---|---|---|---|---|"
    for activation in dict.fromkeys(row["activation"] for row in rows_of("heads_keys")):
        rows = [row for row in rows_of("heads_keys") if row["activation"] == activation]
        cosines = np.array([[float(row[f"cosine_{digit}"]) for digit in range(10)] for row in rows])
        best = cosines.max(axis=1)
        yield (f"| {activation} | {len(rows) // 10} | {estimate(rows[0])} | {estimate(rows[0], 'bayes_risk', 'bayes_risk_error')} | "
               f"{np.median(best):.2f} ({best.min():.2f} to {best.max():.2f}) | {len(set(cosines.argmax(axis=1)))} of 10 |")


def digit_times(eta):
    """ln(sqrt(D) / eta) and times [starts, 10] of a size of the start; those of 1 are heads.py's."""
    rows = rows_of("heads_digits") if eta == 1 else [row for row in rows_of("heads_etas") if float(row["eta"]) == eta]
    return float(rows[0]["log_scale"]), np.array([[float(row[f"time_{digit}"]) for digit in range(10)] for row in rows])


def summary_of_etas():
    yield "| eta | ln(sqrt(D) / eta) | starts | mean time over digits and starts | over ln(sqrt(D) / eta) | deviation over starts, mean over digits | over the mean |"
    yield "|---|---|---|---|---|---|---|"
    for eta in (1, *ETAS):
        scale, times = digit_times(eta)
        deviation = times.std(axis=0, ddof=1).mean()
        yield (f"| {eta:g} | {scale:.2f} | {len(times)} | {times.mean():.0f} | {times.mean() / scale:.0f} | {deviation:.0f} | "
               f"{deviation / times.mean():.2f} |")


SUMMARIES = {"heads_flows": summary_of_flows, "heads_sgd_curves": summary_of_sgd, "heads_cosines": summary_of_cosines, "heads_maps": summary_of_maps,
             "heads_bias": summary_of_bias, "heads_prune": summary_of_prune, "heads_keys": summary_of_keys, "heads_etas": summary_of_etas}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    computed = {"flows": flows, "sgd": sgd, "cosines": cosines, "maps": maps, "bias": bias, "prune": prune, "keys": keys, "etas": etas}
    parser.add_argument("what", choices=(*computed, "summary"))
    parser.add_argument("--starts", type=int, default=0, help="seeds 1 to N [1]")
    parser.add_argument("--mnist", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    if not shows(given.what, {name: lines for name, lines in SUMMARIES.items() if (DATA / f"{name}.csv").exists()}):
        computed[given.what](given)


if __name__ == "__main__":
    main()
