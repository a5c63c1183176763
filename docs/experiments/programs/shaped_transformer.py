"""Shaped transformers (Noci et al., arXiv:2306.17759): stopping times over two parameters, gradients at the paper's width and
depth.

    python shaped_transformer.py stopping|figure4|gradients|depths|steps|times [--threads 1]
    python shaped_transformer.py data --mnist FOLDER [--threads 1]
    python shaped_transformer.py summary|picture

stopping   figure 8: 500 networks at each of 60 residual weights and temperatures; data/shaped_stopping.csv
figure4    figure 4: 2,000 networks at each of 10 residual weights, of 2, 4 and 8 tokens, and largest eigenvalues through the layers of
           5 networks of 4 tokens; data/shaped_figure4.csv and shaped_figure4_paths.csv
gradients  of the second version, at initialisation: width 200 and 150 layers, 128 networks of each kind, and width 64 and 24
           layers, 1,024 networks; data/shaped_gradients.csv
data       the same gradients in networks of width 64 and 24 layers whose tokens are the patches of 4 of MNIST's test images, 64
           networks each; data/shaped_gradients_data.csv
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

from tables import EXPERIMENTS, Table, brief, mean_and_error, rows_of, save, shows
from train_transformers import inputs_of, start_covariance

GAMMAS = tuple(round(0.1 * k, 1) for k in range(1, 11))
TEMPERATURES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
FIGURE4_TOKENS, FIGURE4_NETWORKS = (2, 4, 8), 2000
PATH_GAMMAS, PATHS = (0.1, 0.3, 0.5, 0.7, 1.0), 5
IMAGES, DATA_NETWORKS = 4, 64
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
    def of(name, mask, gamma_squared=None):
        return sde.Network(name, width, gamma_squared, mask=mask)

    for mask in "causal", "full":
        yield f"shaped (gamma^2 = .1) {mask}", of("shaped_transformer", mask, 0.1)
        yield f"shaped (gamma^2 = 1/8) {mask}", of("shaped_transformer", mask, 0.125)
        yield f"unshaped Pre-LN {mask}", of("unshaped_pre_ln", mask)
        yield f"unshaped Post-LN {mask}", of("unshaped_post_ln", mask)


def stopping(threads):
    table = Table("shaped_stopping", ("temperature", "gamma"), ("networks", "median", "median_error", "lower_decile", "upper_decile", "share_that_stay"),
                  "seed 1; attention only; width and depth 200; 4 tokens; V_0 = 100 (.8 I + .2 1 1^T)")
    start = sde.start(tokens=4, variance=100, rho0=0.2)
    for temperature in TEMPERATURES:
        for gamma in GAMMAS:
            if table.lacks(temperature, gamma):
                table.append((temperature, gamma, *stops(gamma, temperature, start, 500, threads)))


def stops(gamma, temperature, start, networks, threads):
    """Networks, median of their stopping times with its error, lower and upper decile, and the share that stays inside."""
    times = sde.stopping_times(sde.Network("shaped_attention", 200, gamma**2, temperature), start, [200], samples=networks, seed=1,
                               threads=threads)[0, 0]
    half = 0.5 / len(times) ** 0.5  # a standard error of the share of times below the median
    below, middle, above, low, high = map(float, np.quantile(times, (0.5 - half, 0.5, 0.5 + half, 0.1, 0.9)))
    return len(times), middle, (above - below) / 2, low, high, float(np.mean(times >= 1))


def figure4(threads):
    what = "seed 1; attention only; width and depth 200; tau_0 = 1; V_0 = 100 (.8 I + .2 1 1^T)"
    table = Table("shaped_figure4", ("tokens", "gamma"), ("networks", "median", "median_error", "lower_decile", "upper_decile", "share_that_stay"), what)
    for tokens in FIGURE4_TOKENS:
        for gamma in GAMMAS:
            if table.lacks(tokens, gamma):
                start = sde.start(tokens=tokens, variance=100, rho0=0.2)
                table.append((tokens, gamma, *stops(gamma, 1, start, FIGURE4_NETWORKS, threads)))
    paths = Table("shaped_figure4_paths", ("gamma",), ("layer", *(f"network_{k}" for k in range(PATHS))),
                  f"{what}; 4 tokens; log10 of the largest eigenvalue of V")
    for gamma in PATH_GAMMAS:
        if paths.lacks(gamma):
            layers = list(range(2, 201, 2))
            found = sde.sample_networks(sde.Network("shaped_attention", 200, gamma**2), sde.start(tokens=4, variance=100, rho0=0.2), layers,
                                        samples=PATHS, seed=1, threads=threads).covariances
            largest = np.log10(np.linalg.eigvalsh(found)[..., -1])
            paths.append(*((gamma, layer, *map(float, row)) for layer, row in zip(layers, largest)))


def gradients(threads):
    table = Table("shaped_gradients", ("size", "network"), ("place", "networks", "squared_gradient", "standard_error"),
                  "seed 1; 6 tokens of correlation .2; gradients of the output matrix, at the input of the tokens")
    start = sde.start(tokens=6, rho0=0.2)
    for size, (width, depth, networks) in SIZES.items():
        for name, network in kinds(width):
            if table.lacks(size, name):
                found = sde.gradients(network, start, depth, samples=networks, seed=1, threads=threads)
                values, errors = found.parameters["output"]
                table.append(*((size, name, place, networks, float(value), float(error)) for place, value, error in zip(
                    PLACES, (found.tokens[0], values[0], values[-1]), (found.tokens_error[0], errors[0], errors[-1]))))


def gradients_on_data(threads, folder):
    """Tokens as train_transformers.py embeds them, in the limit of its width: patches and positions of equal strength."""
    if folder is None:
        raise SystemExit("--mnist: expected the folder with the t10k files")
    width, depth, _ = SIZES["64 x 24"]
    table = Table("shaped_gradients_data", ("network", "image"), ("place", "networks", "mean_correlation", "squared_gradient", "standard_error"),
                  "seeds 1, 2, ... of images; 16 patches of MNIST's test images, in an order of seed 0; gradients of the output matrix, at the input of the tokens")
    for image, x in enumerate(inputs_of("mnist", folder)[0][:IMAGES]):
        start = start_covariance(x)
        correlation = float(start[np.triu_indices(len(start), 1)].mean())
        for name, network in kinds(width):
            if "(gamma^2 = .1)" not in name and table.lacks(name, image):
                found = sde.gradients(network, start, depth, samples=DATA_NETWORKS, seed=image + 1, threads=threads)
                values, errors = found.parameters["output"]
                table.append(*((name, image, place, DATA_NETWORKS, correlation, float(value), float(error)) for place, value, error in zip(
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


def summary_of_figure4():
    yield "| tokens: median / lower decile | " + " | ".join(f"gamma = {gamma:g}" for gamma in GAMMAS) + " |"
    yield "|---|" + "---|" * len(GAMMAS)
    rows = {(int(row["tokens"]), float(row["gamma"])): row for row in rows_of("shaped_figure4")}
    for tokens in FIGURE4_TOKENS:
        cells = []
        for gamma in GAMMAS:
            row = rows[tokens, gamma]
            median, error, decile = (float(row[name]) for name in ("median", "median_error", "lower_decile"))
            cells.append(("1" if median == 1 else f"{median:.3f}".removeprefix("0") + f"({round(1000 * error)})") + " / " +
                         ("1" if decile == 1 else f"{decile:.3f}".removeprefix("0")))
        yield f"| m = {tokens} | {' | '.join(cells)} |"


def of_data(name):
    """{place: (mean over images, standard error)}, from the spread over images, each with networks of its own."""
    found = {}
    for place in PLACES:
        values = [float(row["squared_gradient"]) for row in rows_of("shaped_gradients_data") if (row["network"], row["place"]) == (name, place)]
        found[place] = mean_and_error(values)
    return found


def summary_of_data():
    yield "| network, patches of 4 images | " + " | ".join(PLACES) + " | first over last layer |"
    yield "|---|---|---|---|---|"
    for name in dict.fromkeys(row["network"] for row in rows_of("shaped_gradients_data")):
        found = of_data(name)
        (first, first_error), (last, last_error) = found["first layer"], found["last layer"]
        ratio = first / last
        yield (f"| {name} | " + " | ".join(brief(*found[place]) for place in PLACES) +
               f" | {brief(ratio, ratio * ((first_error / first) ** 2 + (last_error / last) ** 2) ** 0.5)} |")


def draw_pictures():
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    draw_stopping_times(plt)
    draw_depths(plt)
    draw_figure4(plt)


def draw_figure4(plt):
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6))
    for k, gamma in enumerate(PATH_GAMMAS):
        rows = [row for row in rows_of("shaped_figure4_paths") if float(row["gamma"]) == gamma]
        for network in range(PATHS):
            left.plot([int(row["layer"]) for row in rows], [float(row[f"network_{network}"]) for row in rows], color=f"C{k}", lw=0.8,
                      label=f"gamma = {gamma:g}" if network == 0 else None)
    left.axhline(4, color="black", lw=0.8, ls=":")
    left.set(xlabel="layer", ylabel="log10 of the largest eigenvalue", ylim=(-4, 12), title="5 networks of 4 tokens each")
    left.legend(fontsize=7)
    for k, tokens in enumerate(FIGURE4_TOKENS):
        rows = [row for row in rows_of("shaped_figure4") if int(row["tokens"]) == tokens]
        for name, style in ("median", "-"), ("lower_decile", "--"):
            right.plot([float(row["gamma"]) for row in rows], [float(row[name]) for row in rows], style, color=f"C{k}", lw=1,
                       label=f"m = {tokens}, {name.replace('_', ' ')}")
    right.set(xlabel="residual weight gamma", ylabel="stopping time", title="2,000 networks a point")
    right.legend(fontsize=7)
    save(figure, PICTURES / "figure4.png")


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
             "shaped_figure4": summary_of_figure4, "shaped_gradients_data": summary_of_data, "shaped_steps": summary_of_steps,
             "shaped_times": summary_of_times}
COMPUTED = {"stopping": stopping, "figure4": figure4, "gradients": gradients, "depths": depths, "steps": steps, "times": times}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=(*COMPUTED, "data", "summary", "picture"))
    parser.add_argument("--mnist", help="folder with the t10k files")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    if given.what == "data":
        gradients_on_data(given.threads, given.mnist)
    elif not shows(given.what, SUMMARIES, draw_pictures):
        COMPUTED[given.what](given.threads)


if __name__ == "__main__":
    main()
