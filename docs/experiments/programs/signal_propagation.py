"""Signal propagation in random transformers (Cowsik et al., arXiv:2403.02579): networks against theory, point by point.

    python signal_propagation.py angle|gradient|causal|widths|gaps [--threads 1]
    python signal_propagation.py summary|picture

angle     figure 4: growth of 1 - cosine in one block from norm 1 and cosine .99, both slices, 12 x 12 points, 16 networks a
          point of 256 tokens and 64 channels; data/propagation_angle.csv
gradient  figure 5: growth of the squared gradient over 16 blocks from equal tokens at the fixed point, both slices, 10 x 10
          points, 8 networks a point of the same size; data/propagation_gradient.csv
causal    figure 6: both under a causal mask, first slice, 10 x 10 points of 64 tokens and 64 channels, 32 networks a point
          for angles and 8 for gradients; data/propagation_causal.csv
widths    the gradient of figure 6 at two of its points, in networks of width 32 to 256; data/propagation_widths.csv
gaps      section 4.3: moments of 1 - cosine of one pair of tokens a network and of its logarithm, 4,000 networks of 64
          channels and 16 tokens from cosine .99; data/propagation_gaps.csv
"""
import argparse

import numpy as np
from widelimit import propagation

from tables import DATA, EXPERIMENTS, Table, rows_of, save, shows

SLICES = {"alpha, sigma_w": ((0.02, 0.95), (0.2, 4.0)), "alpha_M, alpha_A": ((0.02, 0.95), (0.02, 0.95))}
KEYS, COLUMNS = ("slice", "x", "y"), ("networks", "theory", "measured", "standard_error")
GAP_CASES = ((0.1, 2.0), (0.5, 1.0), (0.5, 2.0))  # alpha, sigma_w
GAP_NETWORKS = 4000
WIDTHS = ((32, 1024), (64, 512), (128, 256), (256, 64))  # width, networks
WIDTH_CASES = ((0.33, 3.0), (0.54, 4.0))  # alpha, sigma_w
PAGE = EXPERIMENTS / "signal-propagation.md"
PICTURE = EXPERIMENTS / "signal-propagation" / "z_scores.png"


def points(slices, side, tokens):
    """(slice, x, y, parameters), with seeds 1, 2, ... in this order."""
    for name in slices:
        (x_from, x_to), (y_from, y_to) = SLICES[name]
        for y in map(float, np.linspace(y_from, y_to, side)):
            for x in map(float, np.linspace(x_from, x_to, side)):
                alpha_A, alpha_M, sigma_w = (x, x, y) if name == "alpha, sigma_w" else (y, x, 2.0)
                yield name, x, y, propagation.Parameters(tokens=tokens, alpha_A=alpha_A, alpha_M=alpha_M, sigma_w=sigma_w)


def fill(table, slices, side, tokens, measured):
    """Appends the rows of every point that is missing: those of measured(parameters, seed)."""
    for seed, (name, x, y, parameters) in enumerate(points(slices, side, tokens), 1):
        key = (name.replace(", ", " "), x, y)
        if table.lacks(*key):
            table.append(*((*key, *row) for row in measured(parameters, seed)))


def angle(threads):
    def measured(parameters, seed):
        after = propagation.BlockMap(parameters).block(propagation.TokenState.from_cosine(1, 0.99))
        found = propagation.simulate_angle(parameters, q0=1, networks=16, seed=seed, threads=threads)
        yield 16, float(np.log(after.cosine_gap / 0.01)), float(found.value), float(found.standard_error)

    fill(Table("propagation_angle", KEYS, COLUMNS, "seeds 1, 2, ... of points"), SLICES, 12, 256, measured)


def gradient(threads):
    def measured(parameters, seed):
        found = propagation.simulate_gradient(parameters, 16, networks=8, seed=seed, threads=threads).log_of_mean
        yield 8, propagation.exponents(parameters, 16).lambda_g, float(found.value), float(found.standard_error)

    fill(Table("propagation_gradient", KEYS, COLUMNS, "seeds 1, 2, ... of points"), SLICES, 10, 256, measured)


def causal(threads):
    def measured(parameters, seed):
        theory = propagation.exponents(parameters, 16, causal=True)
        found = propagation.simulate_angle(parameters, q0=1, causal=True, networks=32, seed=seed, threads=threads)
        yield "angle", 32, theory.one_block_from_1, float(found.value), float(found.standard_error)
        found = propagation.simulate_gradient(parameters, 16, causal=True, networks=8, seed=seed, threads=threads).log_of_mean
        yield "gradient", 8, theory.lambda_g, float(found.value), float(found.standard_error)

    table = Table("propagation_causal", KEYS, ("exponent", *COLUMNS), "seeds 1, 2, ... of points")
    fill(table, ["alpha, sigma_w"], 10, 64, measured)


def widths(threads):
    table = Table("propagation_widths", ("alpha", "sigma_w", "width"), COLUMNS, "seed 11")
    for alpha, sigma_w in WIDTH_CASES:
        parameters = propagation.Parameters(tokens=64, alpha_A=alpha, alpha_M=alpha, sigma_w=sigma_w)
        theory = propagation.exponents(parameters, 16, causal=True).lambda_g
        for width, networks in WIDTHS:
            if table.lacks(alpha, sigma_w, width):
                found = propagation.simulate_gradient(parameters, 16, causal=True, width=width, networks=networks, seed=11,
                                                      threads=threads).log_of_mean
                table.append((alpha, sigma_w, width, networks, theory, float(found.value), float(found.standard_error)))


def skewness(values):
    deviations = values - values.mean()
    return float((deviations**3).mean() / (deviations**2).mean() ** 1.5)


def excess_kurtosis(values):
    deviations = values - values.mean()
    return float((deviations**4).mean() / (deviations**2).mean() ** 2 - 3)


def spread_over_parts(values, statistic, parts=20):
    """Standard error of a statistic, from its spread over parts of the networks."""
    return float(np.std([statistic(part) for part in np.array_split(values, parts)], ddof=1) / np.sqrt(parts))


def gaps(threads):
    table = Table("propagation_gaps", ("alpha", "sigma_w"), ("blocks", "of", "networks", "mean_log_gap", "deviation_log_gap",
                  "skewness_gap", "skewness_gap_error", "skewness_log_gap", "skewness_log_gap_error", "kurtosis_log_gap",
                  "kurtosis_log_gap_error"), "seed 1")
    for alpha, sigma_w in GAP_CASES:
        if not table.lacks(alpha, sigma_w):
            continue
        parameters = propagation.Parameters(tokens=16, alpha_A=alpha, alpha_M=alpha, sigma_w=sigma_w)
        rows = []
        for sample in propagation.simulate_samples(parameters, [0, 1, 4], c0=0.99, networks=GAP_NETWORKS, seed=1, threads=threads):
            of_network = 1 - sample.cosines.reshape(GAP_NETWORKS, -1)
            for of, gap in ("one pair", of_network[:, 0]), ("mean of a network", of_network.mean(axis=1)):
                log = np.log(gap)
                rows.append((alpha, sigma_w, sample.depth, of, GAP_NETWORKS, float(log.mean()), float(log.std()), skewness(gap),
                             spread_over_parts(gap, skewness), skewness(log), spread_over_parts(log, skewness),
                             excess_kurtosis(log), spread_over_parts(log, excess_kurtosis)))
        table.append(*rows)


def deviations():
    """(figure, networks a point, differences, z) of each figure and slice whose file is there."""
    for figure, name, exponents in ("4", "angle", [None]), ("5", "gradient", [None]), ("6", "causal", ["angle", "gradient"]):
        rows = rows_of(f"propagation_{name}") if (DATA / f"propagation_{name}.csv").exists() else []
        for part in dict.fromkeys(row["slice"] for row in rows):
            for exponent in exponents:
                chosen = [row for row in rows if row["slice"] == part and (exponent is None or row["exponent"] == exponent)]
                difference = np.array([float(row["measured"]) - float(row["theory"]) for row in chosen])
                error = np.array([float(row["standard_error"]) for row in chosen])
                yield f"{figure}, {exponent or part.replace(' ', ', ')}", int(chosen[0]["networks"]), difference, difference / error


def summary_of_z():
    yield ("| figure | points | networks a point | mean difference | largest | mean z | root mean square of z (by chance) | above 2 | "
           "above 3 |")
    yield "|---|---|---|---|---|---|---|---|---|"
    for name, networks, difference, z in deviations():
        chance = np.sqrt((networks - 1) / (networks - 3))
        yield (f"| {name} | {len(z)} | {networks} | {difference.mean():+.4f} | {abs(difference).max():.3f} | {z.mean():+.2f} | "
               f"{np.sqrt((z**2).mean()):.2f} ({chance:.2f}) | {(abs(z) > 2).mean():.0%} | {(abs(z) > 3).mean():.0%} |")


def summary_of_widths():
    yield "| alpha | sigma_w | theory | " + " | ".join(f"width {width}, {networks:,} networks" for width, networks in WIDTHS) + " |"
    yield "|---|---|---|" + "---|" * len(WIDTHS)
    rows = rows_of("propagation_widths")
    for alpha, sigma_w in WIDTH_CASES:
        chosen = [row for row in rows if (float(row["alpha"]), float(row["sigma_w"])) == (alpha, sigma_w)]
        cells = [f"{float(row['measured']) - float(row['theory']):+.4f} ± {float(row['standard_error']):.4f}" for row in chosen]
        yield f"| {alpha} | {sigma_w} | {float(chosen[0]['theory']):.4f} | {' | '.join(cells)} |"


def summary_of_gaps():
    yield ("| alpha | sigma_w | blocks | gap of | skewness of the gap | skewness of its logarithm | excess kurtosis of its logarithm | "
           "deviation of its logarithm |")
    yield "|---|---|---|---|---|---|---|---|"
    for row in rows_of("propagation_gaps"):
        number = {key: float(value) for key, value in row.items() if key not in ("of", "seconds")}
        if number["blocks"] == 0 and row["alpha"] != "0.1":  # the same start in all cases
            continue
        cells = [f"{number[name]:+.2f} ± {number[name + '_error']:.2f}" for name in ("skewness_gap", "skewness_log_gap", "kurtosis_log_gap")]
        yield (f"| {row['alpha']} | {row['sigma_w']} | {row['blocks']} | {row['of']} | {' | '.join(cells)} | "
               f"{number['deviation_log_gap']:.3f} |")


def summary_of_training():
    """Of data/propagation_training.csv, which the example propagation_training writes."""
    rows = rows_of("propagation_training")
    gains = sorted({float(row["sigma_w"]) for row in rows})
    yield "| alpha \\ sigma_w | " + " | ".join(f"{gain:.1f}".removeprefix("0") for gain in gains) + " |"
    yield "|---|" + "---|" * len(gains)
    for alpha in sorted({float(row["alpha"]) for row in rows}):
        losses = {float(row["sigma_w"]): float(row["loss"]) for row in rows if float(row["alpha"]) == alpha}
        yield f"| {alpha:.2f} |".replace("| 0", "| ") + "".join(f" {losses[gain]:.2f} |".replace(" 0.", " .") for gain in gains)


def draw_picture():
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    found = list(deviations())
    figure, axes = plt.subplots(1, len(found), figsize=(13, 2.8), sharey=True)
    grid = np.linspace(-5, 5, 200)
    for panel, (name, networks, _, z) in zip(axes, found):
        panel.hist(np.clip(z, -5, 5), bins=np.linspace(-5, 5, 26), density=True, color="#4c72b0")
        panel.plot(grid, np.exp(-grid**2 / 2) / np.sqrt(2 * np.pi), color="black", lw=1)
        panel.set(title=f"figure {name}\n{networks} networks a point", xlabel="(measured - theory) / standard error")
        panel.title.set_fontsize(9)
        panel.xaxis.label.set_fontsize(8)
    save(figure, PICTURE)


SUMMARIES = {"propagation_angle": summary_of_z, "propagation_widths": summary_of_widths, "propagation_gaps": summary_of_gaps,
             "propagation_training": summary_of_training}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("angle", "gradient", "causal", "widths", "gaps", "summary", "picture"))
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    if not shows(given.what, SUMMARIES, draw_picture):
        {"angle": angle, "gradient": gradient, "causal": causal, "widths": widths, "gaps": gaps}[given.what](given.threads)


if __name__ == "__main__":
    main()
