"""Shaped transformers (Noci et al., arXiv:2306.17759): stopping times over two parameters, gradients at the paper's width and
depth.

    python shaped_transformer.py stopping|gradients|depths|steps|times [--threads 1]
    python shaped_transformer.py summary|picture

stopping   figure 8: 500 networks at each of 60 residual weights and temperatures; data/shaped_stopping.csv
gradients  of the second version, at initialisation: width 200 and 150 layers, 128 networks of each kind, and width 64 and 24
           layers, 1,024 networks; data/shaped_gradients.csv
depths     figure 1 left: mean correlation of two tokens through 150 layers of width 200, 1,024 networks a curve, of Post-LN, which
           is drawn with its weights, 64; data/shaped_depths.csv
steps      how many paths of three tokens stop, and where the others are, by the size of the steps; data/shaped_steps.csv
times      processor time of a step of the SDE and of a layer, by the number of tokens; data/shaped_times.csv
"""
import argparse
import itertools
import time

import numpy as np
from widelimit import sde

from tables import EXPERIMENTS, Table, brief, rows_of, save, shows

GAMMAS = tuple(round(0.1 * k, 1) for k in range(1, 11))
TEMPERATURES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
SIZES = {"200 x 150": (200, 150, 128), "64 x 24": (64, 24, 1024)}  # width, layers, networks
PLACES = ("at the input", "first layer", "last layer")
PAGE = EXPERIMENTS / "shaped-transformer.md"
PICTURES = EXPERIMENTS / "shaped-transformer"
LAYERS = (1, 5, 10, 25, 50, 100, 150)
CURVES = {"shaped": (sde.Network("shaped_transformer", 200, 0.125), 1024), "unshaped": (sde.Network("unshaped", 200, 0.125), 1024),
          "unshaped Pre-LN, same lambda and gamma": (sde.Network("unshaped_pre_ln", 200, 0.125), 1024),
          "unshaped Pre-LN, lambda = gamma = 1": (sde.Network("unshaped_pre_ln", 200), 1024),
          "unshaped Post-LN, lambda = gamma = 1": (sde.Network("unshaped_post_ln", 200), 64)}
STEPS = {"fixed, 0.01": (400_000, {"step_control": 0}), "`step_control` 0.02 (default)": (400_000, {"step_control": 0.02}),
         "`step_control` 0.005": (400_000, {"step_control": 0.005})}
TOKENS = (1, 2, 3, 4, 8, 16, 32)
SCHEMES = {"geometric step": "geometric", "Euler-Maruyama step": "euler_maruyama", "Euler-Maruyama with dense root": "euler_maruyama_dense"}
BLOCKS = {"attention layer": sde.Network("shaped_attention", 200, 0.125), "feedforward layer": sde.Network("shaped_resnet", 300, 0.125)}


def kinds(width):
    def of(name, causal, gamma_squared=None):
        return sde.Network(name, width, gamma_squared, causal=causal)

    for mask, causal in ("causal", True), ("full", False):
        yield f"shaped (gamma^2 = .1) {mask}", of("shaped_transformer", causal, 0.1)
        yield f"unshaped Pre-LN {mask}", of("unshaped_pre_ln", causal)
        yield f"unshaped Post-LN {mask}", of("unshaped_post_ln", causal)


def stopping(threads):
    table = Table("shaped_stopping", ("temperature", "gamma"), ("networks", "median", "median_error", "lower_decile", "upper_decile", "share_that_stay"),
                  "seed 1; attention only; width and depth 200; 4 tokens; V_0 = 100 (.8 I + .2 1 1^T)")
    start = sde.start(tokens=4, variance=100, rho0=0.2)
    for temperature in TEMPERATURES:
        for gamma in GAMMAS:
            if table.lacks(temperature, gamma):
                times = sde.stopping_times(sde.Network("shaped_attention", 200, gamma**2, temperature), start, [200], samples=500,
                                           seed=1, threads=threads)[0, 0]
                half = 0.5 / len(times) ** 0.5  # a standard error of the share of times below the median
                below, middle, above, low, high = map(float, np.quantile(times, (0.5 - half, 0.5, 0.5 + half, 0.1, 0.9)))
                table.append((temperature, gamma, len(times), middle, (above - below) / 2, low, high, float(np.mean(times >= 1))))


def gradients(threads):
    table = Table("shaped_gradients", ("size", "network"), ("place", "networks", "squared_gradient", "standard_error"),
                  "seed 1; 6 tokens of correlation .2; gradients of the output matrix, at the input of the tokens")
    start = sde.start(tokens=6, rho0=0.2)
    for size, (width, depth, networks) in SIZES.items():
        for name, network in kinds(width):
            if table.lacks(size, name):
                found = sde.gradients(network, start, depth, networks=networks, seed=1, threads=threads)
                values, errors = found.parameters["output"]
                table.append(*((size, name, place, networks, float(value), float(error)) for place, value, error in zip(
                    PLACES, (found.tokens[0], values[0], values[-1]), (found.tokens_error[0], errors[0], errors[-1]))))


def depths(threads):
    table = Table("shaped_depths", ("network",), ("layer", "networks", "correlation", "standard_error"),
                  "seed 1; two tokens of correlation .2; width 200; gamma^2 = 1/8 where it is not 1")
    for name, (network, networks) in CURVES.items():
        if table.lacks(name):
            layers = sorted({*LAYERS, *range(10, 151, 10)})
            found = sde.sample_networks(network, sde.start(), layers, samples=networks, seed=1, threads=threads).correlations[..., 0, 1]
            table.append(*((name, layer, networks, float(values.mean()), float(values.std(ddof=1) / networks**0.5))
                           for layer, values in zip(layers, found)))


def quantile_and_error(values, q):
    """With the standard error that the counts below it have."""
    half = (q * (1 - q) / len(values)) ** 0.5
    below, middle, above = np.quantile(values, (q - half, q, q + half))
    return float(middle), float((above - below) / 2)


def steps(threads):
    table = Table("shaped_steps", ("steps",), ("paths", "stopped", "stopped_error", "median", "median_error", "quantile_95", "quantile_95_error",
                  "largest_eigenvalue_of_stopped"), "seed 0; three tokens of a shaped transformer to time .4; correlation of the first and the last")
    model = sde.transformer(gamma_squared=0.3, temperature=0.9, c_plus=0.5, c_minus=-0.8)
    start = np.array([[1.3, 0.4, -0.2], [0.4, 0.8, 0.1], [-0.2, 0.1, 1.6]])
    for name, (paths, options) in STEPS.items():
        if table.lacks(name.replace(",", ";")):
            found = sde.simulate(model, start, [0.4], paths=paths, threads=threads, **options)
            stopped = found.ends != "horizon"
            share, rho = float(stopped.mean()), found.correlations[-1, ~stopped, 0, 2]
            largest = np.linalg.eigvalsh(found.covariances[-1, stopped])[:, -1]
            table.append((name.replace(",", ";"), paths, share, (share * (1 - share) / paths) ** 0.5, *quantile_and_error(rho, 0.5),
                          *quantile_and_error(rho, 0.95), float(np.median(largest))))


def times(threads):
    """As many paths as take a tenth of a second or more."""
    table = Table("shaped_times", ("what", "tokens"), ("paths", "steps", "microseconds"),
                  "seed 0; processor time of one thread; shaped transformer (SDE), attention of width 200, feedforward of width 300")
    model, count = sde.transformer(gamma_squared=0.125), 100
    for what, tokens in itertools.product((*SCHEMES, *BLOCKS), TOKENS):
        if what == "Euler-Maruyama with dense root" and tokens > 8 or not table.lacks(what, tokens):
            continue
        start, paths, seconds = sde.start(tokens=tokens), 32, 0.0
        while seconds < 0.1:
            paths *= 2
            begin = time.process_time()
            if what in SCHEMES:
                sde.simulate(model, start, [0.01 * count], paths=paths, step_control=0, scheme=SCHEMES[what], threads=1)
            else:
                sde.sample_networks(BLOCKS[what], start, [count], samples=paths, threads=1)
            seconds = time.process_time() - begin
        table.append((what, tokens, paths, count, 1e6 * seconds / paths / count))


def summary_of_steps():
    yield "| steps | paths | stopped | median of the others | 95 % quantile | largest eigenvalue in the last state inside, median of the stopped |"
    yield "|---|---|---|---|---|---|"
    for row in rows_of("shaped_steps"):
        number = {name: float(value) for name, value in row.items() if name != "steps"}
        cells = (brief(number[name], number[f"{name}_error"]) for name in ("median", "quantile_95"))
        yield (f"| {row['steps'].replace(';', ',')} | {int(number['paths']):,} | {brief(100 * number['stopped'], 100 * number['stopped_error'])} % | "
               f"{' | '.join(cells)} | {number['largest_eigenvalue_of_stopped']:.0f} |")


def summary_of_times():
    found = {(row["what"], int(row["tokens"])): float(row["microseconds"]) for row in rows_of("shaped_times")}
    yield f"| m | {' | '.join(map(str, TOKENS))} |"
    yield "|---|" + "---|" * len(TOKENS)
    for what in (*SCHEMES, *BLOCKS):
        cells = (f"{found[what, tokens]:.2g}".removeprefix("0") if (what, tokens) in found else "" for tokens in TOKENS)
        yield f"| {what}, us | " + " | ".join(f"{float(cell):.0f}" if "e" in cell else cell for cell in cells) + " |"


def summary_of_depths():
    yield "| network | networks | layer 1 | " + " | ".join(map(str, LAYERS[1:])) + " |"
    yield "|---|---|" + "---|" * len(LAYERS)
    rows = rows_of("shaped_depths")
    for name in dict.fromkeys(row["network"] for row in rows):
        of_layer = {int(row["layer"]): row for row in rows if row["network"] == name}
        cells = (f"{float(of_layer[layer]['correlation']):.3f} ± {float(of_layer[layer]['standard_error']):.3f}" for layer in LAYERS)
        yield f"| {name} | {int(of_layer[1]['networks']):,} | {' | '.join(cells)} |"


def summary_of_stopping():
    rows = rows_of("shaped_stopping")
    found = {(row["temperature"], row["gamma"]): row for row in rows}
    yield "| tau_0 \\ gamma | " + " | ".join(f"{gamma:g}" for gamma in GAMMAS) + " |"
    yield "|---|" + "---|" * len(GAMMAS)
    for temperature in TEMPERATURES:
        cells = []
        for gamma in GAMMAS:
            row = found[f"{temperature:g}", f"{gamma:g}"]
            error = round(1000 * float(row["median_error"]))
            cells.append("stays" if row["median"] == "1" else f"{float(row['median']):.3f}".removeprefix("0") + f"({error})")
        yield f"| {temperature:g} | {' | '.join(cells)} |"


def summary_of_gradients():
    yield "| width x layers | network | networks | " + " | ".join(PLACES) + " |"
    yield "|---|---|---|---|---|---|"
    rows = rows_of("shaped_gradients")
    for size, network in dict.fromkeys((row["size"], row["network"]) for row in rows):
        of_kind = {row["place"]: row for row in rows if (row["size"], row["network"]) == (size, network)}
        cells = (brief(float(of_kind[place]["squared_gradient"]), float(of_kind[place]["standard_error"])) for place in PLACES)
        yield f"| {size} | {network} | {int(of_kind[PLACES[0]]['networks']):,} | {' | '.join(cells)} |"


def draw_pictures():
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    draw_stopping_times(plt)
    draw_depths(plt)


def draw_depths(plt):
    rows, (figure, axes) = rows_of("shaped_depths"), plt.subplots(figsize=(7, 3.6))
    for name in CURVES:
        columns = [[float(row[key]) for row in rows if row["network"] == name] for key in ("layer", "correlation", "standard_error")]
        axes.errorbar(*columns[:2], yerr=columns[2], label=name, lw=1)
    axes.set(xlabel="layer", ylabel="mean correlation", ylim=(0, 1.03))
    axes.legend(fontsize=7)
    save(figure, PICTURES / "depths.png")


def draw_stopping_times(plt):
    rows = rows_of("shaped_stopping")
    median = np.array([float(row["median"]) for row in rows]).reshape(len(TEMPERATURES), len(GAMMAS))
    figure, axes = plt.subplots(figsize=(7, 3.6))
    image = axes.imshow(np.log10(median), origin="lower", aspect="auto", cmap="viridis")
    axes.set_xticks(range(len(GAMMAS)), [f"{gamma:g}" for gamma in GAMMAS])
    axes.set_yticks(range(len(TEMPERATURES)), [f"{temperature:g}" for temperature in TEMPERATURES])
    axes.set(xlabel="residual weight gamma", ylabel="temperature tau_0", title="Median stopping time, 4 tokens, 500 networks a point")
    for row, column in np.ndindex(*median.shape):
        axes.text(column, row, f"{median[row, column]:.2g}".removeprefix("0"), ha="center", va="center", fontsize=7,
                  color="white" if median[row, column] < 0.3 else "black")
    figure.colorbar(image, label="log10 of the median of d* / n")
    save(figure, PICTURES / "stopping_times.png")


SUMMARIES = {"shaped_stopping": summary_of_stopping, "shaped_gradients": summary_of_gradients, "shaped_depths": summary_of_depths,
             "shaped_steps": summary_of_steps, "shaped_times": summary_of_times}
COMPUTED = {"stopping": stopping, "gradients": gradients, "depths": depths, "steps": steps, "times": times}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=(*COMPUTED, "summary", "picture"))
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    if not shows(given.what, SUMMARIES, draw_pictures):
        COMPUTED[given.what](given.threads)


if __name__ == "__main__":
    main()
