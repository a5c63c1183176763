"""Signal propagation in random transformers (Cowsik et al., arXiv:2403.02579): networks against theory, point by point.

    python signal_propagation.py angle|gradient|causal|widths|contexts|long|gaps|normality [--threads 1]
    python signal_propagation.py annealing|one-block|paper [--threads 1]
    python signal_propagation.py summary|picture

angle     figure 4: growth of 1 - cosine in one block from norm 1 and cosine .99, both slices, 12 x 12 points, 16 networks a
          point of 256 tokens and 64 channels; data/propagation_angle.csv
gradient  figure 5: growth of the squared gradient over 16 blocks from equal tokens at the fixed point, both slices, 10 x 10
          points, 8 networks a point of the same size; data/propagation_gradient.csv
causal    figure 6: both under a causal mask, first slice, 10 x 10 points of 64 tokens and 64 channels, 32 networks a point
          for angles and 8 for gradients; data/propagation_causal.csv
widths    the gradient of figure 6 at two of its points, in networks of width 32 to 256; data/propagation_widths.csv
contexts  figure 6 beyond 64 tokens: where causal exponents vanish, up to 131,072 tokens; data/propagation_contexts.csv
long      networks of 256 and 1,024 tokens under a causal mask against these exponents; data/propagation_long.csv
gaps      section 4.3: moments of 1 - cosine of one pair of tokens a network and of its logarithm, 4,000 networks of 64
          channels and 16 tokens from cosine .99; data/propagation_gaps.csv
normality  the same, in one case to 16 blocks: tests of Shapiro and Wilk and of D'Agostino and Pearson whether logarithms of gaps are normal, and
          how often they reject samples that are not, 200 of each kind; data/propagation_normality.csv and ..._power.csv
annealing  squared norms where scores are too large for the annealed average; data/propagation_annealing.csv
one-block  growth of the angle in one block of width 256 at seven points; data/propagation_one_block.csv
paper     critical points that the paper names; data/propagation_paper.csv
"""
import functools

import numpy as np
from scipy import stats
from scipy.optimize import brentq
from widelimit import propagation

from tables import DATA, EXPERIMENTS, Table, brief, point, rows_of, run, save

SLICES = {"alpha, sigma_w": ((0.02, 0.95), (0.2, 4.0)), "alpha_M, alpha_A": ((0.02, 0.95), (0.02, 0.95))}
KEYS, COLUMNS = ("slice", "x", "y"), ("networks", "theory", "measured", "standard_error")
GAP_CASES = ((0.1, 2.0), (0.5, 1.0), (0.5, 2.0))  # alpha, sigma_w
GAP_NETWORKS = 4000
TEST_DEPTHS = {(0.1, 2.0): (1, 4), (0.5, 1.0): (1, 4), (0.5, 2.0): (1, 4, 16)}
WIDTHS = ((32, 1024), (64, 512), (128, 256), (256, 64))  # width, networks
WIDTH_CASES = ((0.33, 3.0), (0.54, 4.0))  # alpha, sigma_w
CONTEXTS, CONTEXT_ALPHAS = (64, 256, 1024, 8192, 131072), (0.1, 0.3, 0.5, 0.7)
LONG_CASES = ((0.3, 2.0, 256, 64, 256), (0.3, 2.0, 256, 128, 128), (0.3, 2.0, 1024, 64, 64), (0.5, 2.0, 256, 64, 256), (0.5, 2.0, 1024, 64, 32))
POWER_SAMPLES, LEVEL = 200, 0.05
ONE_BLOCK_CASES = ((0.5, 0.5, 2.25, "unit"), (0.3, 0.3, 1.0, "unit"), (0.8, 0.4, 3.0, "unit"), (0.4, 0.8, 3.0, "unit"), (0.9, 0.9, 0.5, "unit"),
                   (0.5, 0.5, 2.25, "shared"), (0.8, 0.4, 3.0, "shared"))  # alpha_A, alpha_M, sigma_w, sigma_out
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


def zero(exponent):
    """The gain at which a causal exponent, a function of the gain, vanishes; nan where it does not."""
    low, high = 0.05, 12.0
    return float(brentq(exponent, low, high, xtol=1e-7)) if exponent(low) < 0 < exponent(high) else float("nan")


def contexts(_):
    table = Table("propagation_contexts", ("tokens", "alpha"), ("angle_of_one_block", "angle", "gradient"),
                  "no seed: gains sigma_w at which exponents vanish; 16 blocks where not one")
    for tokens in CONTEXTS:
        for alpha in CONTEXT_ALPHAS:
            if table.lacks(tokens, alpha):
                def found(name):
                    return zero(lambda gain: getattr(propagation.exponents(propagation.Parameters(
                        tokens=tokens, alpha_A=alpha, alpha_M=alpha, sigma_w=gain), 16, causal=True), name))

                table.append((tokens, alpha, found("one_block_from_1"), found("lambda_a_log"), found("lambda_g")))


def long(threads):
    table = Table("propagation_long", ("alpha", "sigma_w", "tokens", "width"), ("exponent", *COLUMNS), "seed 11")
    for alpha, sigma_w, tokens, width, networks in LONG_CASES:
        if table.lacks(alpha, sigma_w, tokens, width):
            parameters = propagation.Parameters(tokens=tokens, alpha_A=alpha, alpha_M=alpha, sigma_w=sigma_w)
            theory = propagation.exponents(parameters, 16, causal=True)
            angle = propagation.simulate_angle(parameters, q0=1, c0=0.999, causal=True, width=width, networks=4 * networks, seed=11, threads=threads)
            gradient = propagation.simulate_gradient(parameters, 16, causal=True, width=width, networks=networks, seed=11,
                                                     threads=threads).log_of_mean
            key = (alpha, sigma_w, tokens, width)
            table.append((*key, "angle", 4 * networks, theory.one_block_from_1, float(angle.value), float(angle.standard_error)),
                         (*key, "gradient", networks, theory.lambda_g, float(gradient.value), float(gradient.standard_error)))


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


def normality(threads):
    table = Table("propagation_normality", ("alpha", "sigma_w"), ("blocks", "of", "networks", "deviation_log_gap", "shapiro_wilk", "shapiro_wilk_p",
                  "dagostino_pearson", "dagostino_pearson_p"), "seed 1")
    for (alpha, sigma_w), blocks in TEST_DEPTHS.items():
        if table.lacks(alpha, sigma_w):
            parameters = propagation.Parameters(tokens=16, alpha_A=alpha, alpha_M=alpha, sigma_w=sigma_w)
            rows = []
            for sample in propagation.simulate_samples(parameters, list(blocks), c0=0.99, networks=GAP_NETWORKS, seed=1, threads=threads):
                of_network = 1 - sample.cosines.reshape(GAP_NETWORKS, -1)
                for of, gap in ("one pair", of_network[:, 0]), ("mean of a network", of_network.mean(axis=1)):
                    log = np.log(gap)
                    tests = (float(value) for test in (stats.shapiro(log), stats.normaltest(log)) for value in (test.statistic, test.pvalue))
                    rows.append((alpha, sigma_w, sample.depth, of, GAP_NETWORKS, float(log.std()), *tests))
            table.append(*rows)
    power()


def alternatives():
    """(name, distribution) of samples that are not normal, from nearly normal ones on: skewed, or with heavy tails."""
    for value in (0.0, 0.05, 0.1, 0.15, 0.2):
        # Of a logarithm of a chi-square variable of k degrees of freedom the skewness is about -sqrt(2 / k).
        yield "skewness", value, (lambda size, random, k=2 / value**2: np.log(random.chisquare(k, size))) if value else (
            lambda size, random: random.normal(size=size))
    for value in (0.1, 0.2, 0.4):
        yield "excess kurtosis", value, lambda size, random, k=4 + 6 / value: random.standard_t(k, size)


def power():
    """How often the tests reject samples of as many numbers as there are networks, at a level of one test and of all of them."""
    tests = 2 * sum(map(len, TEST_DEPTHS.values()))
    table = Table("propagation_normality_power", ("shape", "value"), ("numbers", "samples", "shapiro_wilk", "dagostino_pearson",
                  "shapiro_wilk_of_all", "dagostino_pearson_of_all"), f"seed 1; level {LEVEL}, of all {LEVEL} / {tests}")
    for shape, value, draw in alternatives():
        if table.lacks(shape, value):
            random = np.random.default_rng(1)
            found = np.array([[test(numbers).pvalue for test in (stats.shapiro, stats.normaltest)]
                              for numbers in (draw(GAP_NETWORKS, random) for _ in range(POWER_SAMPLES))])
            shares = [float((found[:, test] < level).mean()) for level in (LEVEL, LEVEL / tests) for test in (0, 1)]
            table.append((shape, value, GAP_NETWORKS, POWER_SAMPLES, *shares))


def annealing(threads):
    table = Table("propagation_annealing", ("block",), ("annealed", "network", "measured", "standard_error"), "seed 0; 60 networks of width 256")
    if not all(table.lacks(block) for block in (1, 2)):
        return
    parameters = propagation.Parameters(tokens=16, sigma_A=4)
    annealed = propagation.trajectory(parameters, 2).q
    network = propagation.propagate(parameters.block(), propagation.start_gram(16), 2, threads=threads).q
    found = propagation.simulate_trajectory(parameters, 2, width=256, networks=60, threads=threads)
    table.append(*((block, *(float(values[block]) for values in (annealed, network, found.q, found.q_error))) for block in (1, 2)))


def one_block(threads):
    table = Table("propagation_one_block", ("alpha_A", "alpha_M", "sigma_w", "sigma_out", "start"), ("q0", "map", "measured", "standard_error"),
                  "seed 0; 64 tokens, width 256, 64 networks, cosine .99")
    for (alpha_A, alpha_M, sigma_w, sigma_out), start in ((case, start) for case in ONE_BLOCK_CASES for start in ("1", "q_*")):
        if table.lacks(alpha_A, alpha_M, sigma_w, sigma_out, start):
            parameters = propagation.Parameters(tokens=64, alpha_A=alpha_A, alpha_M=alpha_M, sigma_w=sigma_w, sigma_out=sigma_out)
            q0 = 1.0 if start == "1" else propagation.exponents(parameters).q_star
            after = propagation.BlockMap(parameters).block(propagation.TokenState.from_cosine(q0, 0.99))
            found = propagation.simulate_angle(parameters, q0=q0, width=256, networks=64, threads=threads)
            table.append((alpha_A, alpha_M, sigma_w, sigma_out, start, float(q0), float(np.log(after.cosine_gap / 0.01)), float(found.value),
                          float(found.standard_error)))


def first_root(function, grid):
    """The first root between two points of a grid; NaN without one."""
    values = [function(x) for x in grid]
    pairs = (k for k in range(len(grid) - 1) if values[k] * values[k + 1] <= 0)
    return next((brentq(function, grid[k], grid[k + 1]) for k in pairs), float("nan"))


def kink(published, gain, depth=16):
    """Where lambda_g = 0 has its kink: contrasts and mean of the tokens carry equal gradients, (1 + r)^depth = n - 1. With a gain,
    (alpha_M, alpha_A), else (alpha, sigma_w)."""
    def at(strength, other):
        alpha_M, sigma_w = (other, gain) if gain else (strength, other)
        return propagation.Parameters(alpha_A=strength, alpha_M=alpha_M, sigma_w=sigma_w)

    grid = np.linspace(0.02, 0.98, 97) if gain else np.linspace(0.1, 6, 119)

    def on_line(strength):
        return first_root(lambda other: propagation.exponents(at(strength, other), depth, published=published).lambda_g, grid)

    def difference(strength):
        parameters = at(strength, on_line(strength))
        r = strength**2 / (1 - strength**2) / propagation.exponents(parameters, depth).q_star
        return depth * np.log1p(r) - np.log(parameters.tokens - 1)

    strength = brentq(difference, 0.4, 0.55)
    return (on_line(strength), strength) if gain else (strength, on_line(strength))


def paper(threads):
    table = Table("propagation_paper", ("quantity",), ("first", "second"), "no seed: theory; 256 tokens, 16 blocks")
    critical = functools.partial(propagation.critical_values, "angle", "sigma_w")
    third, small = ({"alpha_A": alpha, "alpha_M": alpha} for alpha in (8**-0.5, 1e-5))
    quantities = {
        "lambda_a = 0 at alpha = 8^-1/2: sigma_w, unit and shared gain":
            lambda: [critical(propagation.Parameters(**third, sigma_out=gain))[0] for gain in ("unit", "shared")],
        "kink: alpha, sigma_w": lambda: kink(False, None), "kink as published: alpha, sigma_w": lambda: kink(True, None),
        "kink at sigma_w = 2: alpha_M, alpha_A": lambda: kink(False, 2.0), "kink as published at sigma_w = 2: alpha_M, alpha_A": lambda: kink(True, 2.0),
        "plateau of lambda_g at alpha = .9 and sigma_w = .05, and -ln(256) / 16":
            lambda: (propagation.exponents(propagation.Parameters(alpha_A=0.9, alpha_M=0.9, sigma_w=0.05)).lambda_g, -np.log(256) / 16),
        "lambda_a = 0 at alpha = 1e-5: sigma_w": lambda: (critical(propagation.Parameters(**small))[0], float("nan")),
    }
    for name, values in quantities.items():
        name = name.replace(",", ";")
        if table.lacks(name):
            table.append((name, *map(float, values())))


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


def summary_of_contexts():
    yield "| tokens | zero of | " + " | ".join(f"alpha = {alpha:g}" for alpha in CONTEXT_ALPHAS) + " |"
    yield "|---|---|" + "---|" * len(CONTEXT_ALPHAS)
    rows = {(int(row["tokens"]), float(row["alpha"])): row for row in rows_of("propagation_contexts")}
    names = {"angle_of_one_block": "the angle in one block", "angle": "the angle over 16 blocks", "gradient": "the gradient over 16 blocks"}
    for tokens in CONTEXTS:
        for column, words in names.items():
            cells = (float(rows[tokens, alpha][column]) for alpha in CONTEXT_ALPHAS)
            yield f"| {tokens:,} | {words} | " + " | ".join("none" if np.isnan(cell) else f"{cell:.3f}" for cell in cells) + " |"
    yield ""
    yield from summary_of_zeros()


def summary_of_long():
    yield "| alpha | sigma_w | tokens | width | exponent | networks | theory | measured less theory |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in rows_of("propagation_long"):
        difference = float(row["measured"]) - float(row["theory"])
        yield (f"| {row['alpha']} | {row['sigma_w']} | {int(row['tokens']):,} | {row['width']} | {row['exponent']} | {row['networks']} | "
               f"{float(row['theory']):+.4f} | {difference:+.4f} ± {float(row['standard_error']):.4f} |")


def p_value(value):
    return f"{value:.2f}" if value >= 0.01 else f"{value:.0e}".replace("e-0", "e-")


def rejected(rows):
    """Whether each p-value is below LEVEL among all of them, by the rule of Holm."""
    p = np.array([float(row["shapiro_wilk_p"]) for row in rows])
    order, found = np.argsort(p), np.zeros(len(p), bool)
    for place, k in enumerate(order):
        if p[k] > LEVEL / (len(p) - place):
            break
        found[k] = True
    return found


def summary_of_normality():
    yield ("| alpha | sigma_w | blocks | logarithm of the gap of | its deviation | W of Shapiro and Wilk | p | p of D'Agostino and Pearson | "
           "rejected among all |")
    yield "|---|---|---|---|---|---|---|---|---|"
    rows = rows_of("propagation_normality")
    for row, no in zip(rows, rejected(rows)):
        number = {key: float(value) for key, value in row.items() if key != "of"}
        yield (f"| {row['alpha']} | {row['sigma_w']} | {row['blocks']} | {row['of']} | {number['deviation_log_gap']:.3f} | "
               f"{number['shapiro_wilk']:.4f} | {p_value(number['shapiro_wilk_p'])} | {p_value(number['dagostino_pearson_p'])} | {'yes' if no else 'no'} |")


def summary_of_power():
    yield "| samples with | Shapiro and Wilk reject | D'Agostino and Pearson | Shapiro and Wilk at the level of all tests |"
    yield "|---|---|---|---|"
    for row in rows_of("propagation_normality_power"):
        shares = (f"{float(row[name]):.0%}" for name in ("shapiro_wilk", "dagostino_pearson", "shapiro_wilk_of_all"))
        words = "none: normal samples" if row["value"] == "0" else f"{row['shape']} {row['value']}"
        yield f"| {words} | {' | '.join(shares)} |"


def summary_of_training():
    """Of data/propagation_training.csv, which the example propagation_training writes."""
    rows = rows_of("propagation_training")
    gains = sorted({float(row["sigma_w"]) for row in rows})
    yield "| alpha \\ sigma_w | " + " | ".join(f"{gain:.1f}".removeprefix("0") for gain in gains) + " |"
    yield "|---|" + "---|" * len(gains)
    for alpha in sorted({float(row["alpha"]) for row in rows}):
        losses = {float(row["sigma_w"]): float(row["loss"]) for row in rows if float(row["alpha"]) == alpha}
        yield f"| {alpha:.2f} |".replace("| 0", "| ") + "".join(f" {losses[gain]:.2f} |".replace(" 0.", " .") for gain in gains)


def summary_of_annealing():
    yield "| block | annealed | `network` | 60 networks of width 256 |"
    yield "|---|---|---|---|"
    for row in rows_of("propagation_annealing"):
        measured = brief(float(row["measured"]), float(row["standard_error"]))
        yield f"| {row['block']} | {point(float(row['annealed']), 4)} | {point(float(row['network']), 4)} | {measured} |"


def summary_of_one_block():
    yield "| (alpha_A, alpha_M, sigma_w) | from 1: measured | map | from q_*: measured | map |"
    yield "|---|---|---|---|---|"
    rows = rows_of("propagation_one_block")
    for first, second in zip(rows[::2], rows[1::2]):
        case = ", ".join(f"{float(first[name]):g}".removeprefix("0") for name in ("alpha_A", "alpha_M", "sigma_w"))
        cells = (f"{brief(float(row['measured']), float(row['standard_error']))} | {point(float(row['map']), 3)}" for row in (first, second))
        yield f"| ({case}){' shared' if first['sigma_out'] == 'shared' else ''} | {' | '.join(cells)} |"


def summary_of_zeros():
    """Of figure 6 itself, whose networks have 64 tokens."""
    rows = [row for row in rows_of("propagation_contexts") if row["tokens"] == "64"]
    yield f"| alpha | {' | '.join(row['alpha'].removeprefix('0') for row in rows)} |"
    yield "|---|" + "---|" * len(rows)
    for name, column in ("angle growth of one block", "angle_of_one_block"), ("gradient exponent, 16 blocks", "gradient"):
        yield f"| {name} | {' | '.join(point(float(row[column]), 3) for row in rows)} |"


def summary_of_paper():
    found = {row["quantity"]: [float(row[name]) for name in ("first", "second")] for row in rows_of("propagation_paper")}
    (unit, shared), kinks, published, second, second_published, (plateau, exact), (small, _) = found.values()

    def pair(values):
        return f"({point(values[0], 4)}, {point(values[1], 4)})"

    yield "| | paper | here |"
    yield "|---|---|---|"
    yield f"| lambda_a = 0 at alpha = 8^-1/2 | sigma_w about 2 | {unit:.4f} (unit), {shared:.4f} (shared gain) |"
    yield f"| kink of lambda_g = 0, (alpha, sigma_w) | (.5, 2.25) | {pair(kinks)}; {pair(published)} with the formula as printed |"
    yield f"| kink, (alpha_M, alpha_A) at sigma_w = 2 | (.6, .5) | {pair(second)}; {pair(second_published)} as printed |"
    yield f"| plateau of lambda_g at alpha = .9, sigma_w = .05 | | {point(plateau, 4)}; -ln(256) / 16 = {point(exact, 4)} |"
    yield f"| lambda_a = 0 as alpha goes to 0 (1e-5) | meets lambda_g = 0 | sigma_w = {small:.4f} |"


def draw_pictures():
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    draw_z_scores(plt)
    draw_contexts(plt)


def draw_contexts(plt):
    rows, (figure, panels) = rows_of("propagation_contexts"), plt.subplots(1, 2, figsize=(9, 3.2), sharey=True)
    for panel, column, title in zip(panels, ("angle", "gradient"), ("angles over 16 blocks", "gradients over 16 blocks")):
        for alpha in CONTEXT_ALPHAS:
            values = [(int(row["tokens"]), float(row[column])) for row in rows if float(row["alpha"]) == alpha]
            panel.plot(*zip(*values), marker="o", ms=3, lw=1, label=f"alpha = {alpha:g}")
        panel.set(xscale="log", xlabel="tokens", title=f"causal mask: {title} vanish")
        panel.title.set_fontsize(9)
    panels[0].set_ylabel("gain sigma_w")
    panels[0].legend(fontsize=7)
    save(figure, PICTURE.with_name("contexts.png"))


def draw_z_scores(plt):
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


SUMMARIES = {"propagation_angle": summary_of_z, "propagation_widths": summary_of_widths, "propagation_contexts": summary_of_contexts,
             "propagation_long": summary_of_long, "propagation_gaps": summary_of_gaps, "propagation_normality": summary_of_normality,
             "propagation_normality_power": summary_of_power, "propagation_training": summary_of_training,
             "propagation_annealing": summary_of_annealing, "propagation_one_block": summary_of_one_block,
             "propagation_paper": summary_of_paper}
COMPUTED = {"angle": angle, "gradient": gradient, "causal": causal, "widths": widths, "contexts": contexts, "long": long, "gaps": gaps,
            "normality": normality, "annealing": annealing, "one-block": one_block, "paper": paper}


def main():
    run(__doc__, COMPUTED, SUMMARIES, draw_pictures)


if __name__ == "__main__":
    main()
