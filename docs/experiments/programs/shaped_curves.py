"""Curves of shaped transformers (Noci et al., arXiv:2306.17759) beside their limits, whose rows shaped_transformer.py has no table for.

    python shaped_curves.py resnet|attention|outputs|commuting|explosion|layers [--threads 1]
    python shaped_curves.py summary|picture

Appends rows to docs/experiments/data/shaped_TABLE.csv case by case, and leaves out the cases that the file holds.

resnet     figure 2: 8,192 shaped ResNets and paths at each of 12 residual weights, beside the exact distribution, and densities
attention  figures 1 right and 7: densities of the correlation, 32,768 networks and paths, 2 and 4 tokens
outputs    equation 21: outputs of networks and of the SDE, and their kurtosis
commuting  section 3: ReLU ResNets with gamma = 1 / sqrt(depth) at several widths and depths, beside their common limit
explosion  definition 4.1: share of paths that have exploded, beside the exact probability
layers     figure 2 of the second version: squared gradients of values and queries in every tenth of 150 layers
"""

import numpy as np
from scipy.optimize import brentq
from scipy.stats import ks_2samp, kstest
from widelimit import sde

from shaped_transformer import kinds, quantile_and_error
from tables import EXPERIMENTS, Table, brief, mean_and_error, point, rows_of, run, save

PAGE = EXPERIMENTS / "shaped-transformer.md"
PICTURES = EXPERIMENTS / "shaped-transformer"
RHO0, BINS = 0.2, np.linspace(-1, 1, 41)
RESNET = {"width": 300, "depth": 100, "networks": 8192}
GAMMAS = (*(round(0.1 * k, 1) for k in range(1, 11)), 0.25, round(0.5**0.5, 4))
DRAWN = (0.1, 0.25, 0.5, round(0.5**0.5, 4), 1.0)
COMMUTING = ((50, 50), (50, 200), (200, 50), (200, 200))  # width, depth
EXPLOSION = (0.25, 0.5, 1.0, 2.0)


def density(values):
    return np.histogram(values, BINS)[0] / len(values) / (BINS[1] - BINS[0])


def densities():
    return Table("shaped_densities", ("figure", "case"), ("rho", "networks", "sde", "exact"),
                 "seeds 1, 2, ... of cases; densities of the correlation over bins of width .05, by their middles; exact: the mean over the bin")


def resnet(threads):
    """Another seed at each weight, so that weights are independent."""
    table = Table("shaped_resnet", ("gamma",), ("exact", "sde", "sde_error", "networks", "networks_error", "distance", "p"),
                  "seeds 1, 2, ... of weights; 95 % quantiles of |rho|; n = 300, d = 100, c = (0, -1); 8,192 networks and paths; distance of the "
                  "networks to the exact distribution")
    bins, time = densities(), RESNET["depth"] / RESNET["width"]
    for seed, gamma in enumerate(GAMMAS, 1):
        if table.lacks(gamma):
            network = sde.Network("shaped_resnet", RESNET["width"], gamma**2)
            law = sde.correlation_law(network.limit(), RHO0, time)
            options = dict(seed=seed, threads=threads)
            networks = sde.sample_networks(network, sde.start(), [RESNET["depth"]], samples=RESNET["networks"], **options).correlations[0, :, 0, 1]
            paths = sde.simulate(network.limit(), sde.start(), [time], paths=RESNET["networks"], **options).correlations[0, :, 0, 1]
            exact = brentq(lambda x: law.cumulative(x) - law.cumulative(-x) - 0.95, 1e-6, 1 - 1e-12)
            found = kstest(networks, law.cumulative)
            table.append((gamma, exact, *quantile_and_error(abs(paths), 0.95), *quantile_and_error(abs(networks), 0.95), float(found.statistic),
                          float(found.pvalue)))
            if gamma in DRAWN and bins.lacks("2", f"gamma = {gamma:g}"):
                mean = np.diff(law.cumulative(BINS)) / np.diff(BINS)
                bins.append(*(("2", f"gamma = {gamma:g}", *map(float, row))
                              for row in zip((BINS[1:] + BINS[:-1]) / 2, density(networks), density(paths), mean)))


def attention(threads):
    bins, network = densities(), sde.Network("shaped_attention", 200, 0.125)
    for seed, tokens in ((1, 2), (2, 4)):
        if bins.lacks("1 right", f"m = {tokens}"):
            found = sde.compare(network, sde.start(tokens=tokens), [150], samples=32_768, seed=seed, threads=threads)
            first, second = (ensemble.correlations[-1, ensemble.running[-1], 0, 1] for ensemble in (found.networks, found.limit))
            bins.append(*(("1 right", f"m = {tokens}", *map(float, row), float("nan"))
                          for row in zip((BINS[1:] + BINS[:-1]) / 2, density(first), density(second))))


def outputs(threads):
    table = Table("shaped_outputs", ("gamma_squared",), ("kurtosis_networks", "networks_error", "kurtosis_sde", "sde_error", "distance", "p"),
                  "seeds 1, 2, ... of networks, 101, 102, ... of the SDE; shaped transformer, n = 200, d = 150, two tokens, 4,096 networks and paths, one output each; "
                  "kurtosis 3 E V^2 / (E V)^2 of the first token")
    for seed, gamma_squared in enumerate((0.02, 0.05, 0.125), 1):
        if table.lacks(gamma_squared):
            network = sde.Network("shaped_transformer", 200, gamma_squared)
            networks = sde.sample_networks(network, sde.start(), [150], samples=4096, seed=seed, upper=1e4, threads=threads)
            paths = sde.simulate(network.limit(), sde.start(), [0.75], paths=4096, seed=100 + seed, threads=threads)
            drawn = [sde.outputs(ensemble, seed=seed) for ensemble in (networks, paths)]
            kurtosis = [kurtosis_and_error(ensemble.covariances[-1, ensemble.running[-1], 0, 0]) for ensemble in (networks, paths)]
            found = ks_2samp(*(one.values[:, 0, 0] for one in drawn))
            table.append((gamma_squared, *kurtosis[0], *kurtosis[1], float(found.statistic), float(found.pvalue)))


def kurtosis_and_error(variances, parts=20):
    """Of outputs with these variances, with the standard error over parts of the ensemble."""
    return (float(3 * (variances**2).mean() / variances.mean() ** 2),
            float(mean_and_error([3 * (part**2).mean() / part.mean() ** 2 for part in np.array_split(variances, parts)])[1]))


def commuting(threads):
    """Slopes of 1 and 0: c_minus = -sqrt(n)."""
    table = Table("shaped_commuting", ("width", "depth"), ("time", "networks", "correlation", "standard_error", "limit"),
                  "seed 1; two tokens of correlation .2; ReLU ResNet, gamma^2 = 1 / depth, lambda^2 = 1 - gamma^2; 2,048 networks")
    times = np.array([0.25, 0.5, 0.75, 1.0])
    limit = sde.commuting_limit(sde.start(), times, "variance_preserving")
    for width, depth in COMMUTING:
        if table.lacks(width, depth):
            network = sde.Network("shaped_resnet", width, 1 / depth, c_minus=-(width**0.5))
            layers = [round(time * depth) for time in times]
            found = sde.sample_networks(network, sde.start(), layers, samples=2048, seed=1, threads=threads).correlations[..., 0, 1]
            table.append(*((width, depth, float(time), len(values), *map(float, mean_and_error(values)), float(v[0, 1] / v[0, 0]))
                           for time, values, v in zip(times, found, limit)))


def explosion(threads):
    table = Table("shaped_explosion", ("time",), ("paths", "exploded", "lower_95", "upper_95", "exact"),
                  "seed 1; two tokens, attention only, gamma^2 = 1/8, tau_0 = 1/4; 4,096 paths")
    model = sde.attention(0.125, 0.25)
    if table.lacks(EXPLOSION[0]):
        found = sde.explosion(model, sde.start(), EXPLOSION, paths=4096, seed=1, threads=threads)
        gap = float(np.array([1, -1]) @ sde.start() @ np.array([1, -1]) / 4)
        table.append(*((time, 4096, float(share), *map(float, interval), 1 - sde.gap_law(model, gap, time).total_mass)
                       for time, share, interval in zip(EXPLOSION, found.probability, found.interval_95)))


def layers(threads):
    table = Table("shaped_layers", ("network",), ("layer", "networks", "value", "value_error", "query", "query_error"),
                  "seed 1; 6 tokens of correlation .2; width 200, 150 layers; squared gradients over m n")
    for name, network in kinds(200):
        if "(gamma^2 = .1)" not in name and table.lacks(name):
            found = sde.gradients(network, sde.start(tokens=6), 150, samples=64, seed=1, threads=threads).parameters
            rows = zip(*found["value"], *found["query"])
            table.append(*((name, layer, 64, *map(float, row)) for layer, row in enumerate(rows, 1) if layer == 1 or layer % 10 == 0))


def estimate(row, name, error=None):
    return brief(float(row[name]), float(row[error or f"{name}_error"]))


def summary_of_resnet():
    rows = sorted(rows_of("shaped_resnet"), key=lambda row: float(row["gamma"]))
    yield "| gamma | exact | SDE, sampled | networks | distance | p |"
    yield "|---|---|---|---|---|---|"
    for row in rows:
        yield (f"| {float(row['gamma']):g} | {point(float(row['exact']), 4)} | {estimate(row, 'sde')} | {estimate(row, 'networks')} | "
               f"{point(float(row['distance']), 4)} | {point(float(row['p']), 2)} |")


def summary_of_densities():
    yield "| figure | case | networks at the start's .2 | SDE there | exact there | largest difference of networks and SDE over the bins |"
    yield "|---|---|---|---|---|---|"
    for (figure, case), rows in cases_of("shaped_densities", "figure", "case").items():
        networks, paths, exact = (np.array([float(row[name]) for row in rows]) for name in ("networks", "sde", "exact"))
        at = int(np.argmin([abs(float(row["rho"]) - RHO0 - 0.025) for row in rows]))
        cells = [f"{values[at]:.3f}" for values in (networks, paths)] + ["" if np.isnan(exact[at]) else f"{exact[at]:.3f}"]
        yield f"| {figure} | {case} | {' | '.join(cells)} | {abs(networks - paths).max():.3f} |"


def cases_of(name, *keys):
    found = {}
    for row in rows_of(name):
        found.setdefault(tuple(row[key] for key in keys), []).append(row)
    return found


def summary_of_outputs():
    yield "| gamma^2 | kurtosis of outputs, networks | SDE | distance of the outputs | p |"
    yield "|---|---|---|---|---|"
    for row in rows_of("shaped_outputs"):
        yield (f"| {row['gamma_squared']} | {estimate(row, 'kurtosis_networks', 'networks_error')} | {estimate(row, 'kurtosis_sde', 'sde_error')} | "
               f"{point(float(row['distance']), 4)} | {point(float(row['p']), 2)} |")


def summary_of_commuting():
    yield "| width | depth | " + " | ".join(f"layer / depth = {time}" for time in (0.25, 0.5, 0.75, 1)) + " |"
    yield "|---|---|---|---|---|---|"
    cases = cases_of("shaped_commuting", "width", "depth")
    for (width, depth), rows in cases.items():
        yield f"| {width} | {depth} | " + " | ".join(estimate(row, "correlation", "standard_error") for row in rows) + " |"
    yield "| limit | | " + " | ".join(point(float(row["limit"]), 4) for row in rows) + " |"


def summary_of_explosion():
    rows = rows_of("shaped_explosion")
    yield "| time | " + " | ".join(row["time"] for row in rows) + " |"
    yield "|---|" + "---|" * len(rows)
    yield "| share of paths | " + " | ".join(point(float(row["exploded"]), 4) for row in rows) + " |"
    yield "| its 95 % interval | " + " | ".join(f"{point(float(row['lower_95']), 4)} to {point(float(row['upper_95']), 4)}" for row in rows) + " |"
    yield "| exact | " + " | ".join(point(float(row["exact"]), 4) for row in rows) + " |"


def small(row, name):
    """With a power of ten, as squared gradients fall by many."""
    return f"{float(row[name]):.1e}({float(row[f'{name}_error']):.0e})"


def summary_of_layers():
    yield "| network | values, layer 1 | layer 150 | queries, layer 1 | 50 | 150 |"
    yield "|---|---|---|---|---|---|"
    for (name,), rows in cases_of("shaped_layers", "network").items():
        at = {int(row["layer"]): row for row in rows}
        cells = [small(at[layer], "value") for layer in (1, 150)] + [small(at[layer], "query") for layer in (1, 50, 150)]
        yield f"| {name} | {' | '.join(cells)} |"


def draw_densities(plt):
    cases = cases_of("shaped_densities", "figure", "case")
    figure, grid = plt.subplots(2, -(-len(cases) // 2), figsize=(13, 5.6), squeeze=False)
    for axes in grid.flat[len(cases):]:
        axes.set_visible(False)
    for axes, ((name, case), rows) in zip(grid.flat, cases.items()):
        columns = {key: np.array([float(row[key]) for row in rows]) for key in ("rho", "networks", "sde", "exact")}
        axes.stairs(columns["networks"], BINS, label="networks", color="C0")
        axes.plot(columns["rho"], columns["sde"], "x", ms=4, color="C1", label="SDE")
        if not np.isnan(columns["exact"]).any():
            axes.plot(columns["rho"], columns["exact"], "k-", lw=0.8, label="exact")
        axes.set(title=f"figure {name}, {case}", xlabel="correlation", ylabel="density")
        axes.legend(fontsize=7)
    save(figure, PICTURES / "densities.png")


def draw_commuting(plt):
    figure, axes = plt.subplots(figsize=(5.5, 3.4))
    for k, ((width, depth), rows) in enumerate(cases_of("shaped_commuting", "width", "depth").items()):
        time, value, error, limit = (np.array([float(row[key]) for row in rows]) for key in ("time", "correlation", "standard_error", "limit"))
        axes.errorbar(time + 0.01 * k, value, yerr=error, fmt="o", ms=3, capsize=2, label=f"width {width}, depth {depth}")
    axes.plot(time, limit, "k-", lw=0.8, label="limit")
    axes.set(xlabel="layer / depth", ylabel="mean correlation")
    axes.legend(fontsize=7)
    save(figure, PICTURES / "commuting.png")


def draw_layers(plt):
    figure, grid = plt.subplots(1, 2, figsize=(10, 3.6))
    for axes, name in zip(grid, ("value", "query")):
        for k, ((network,), rows) in enumerate(cases_of("shaped_layers", "network").items()):
            axes.plot([int(row["layer"]) for row in rows], [max(float(row[name]), 1e-34) for row in rows], "--" if "causal" in network else "-",
                      color=f"C{k % 3}", lw=1, label=network)
        axes.set(yscale="log", xlabel="layer", ylabel=f"squared gradient by {name} weights")
    grid[0].legend(fontsize=6)
    save(figure, PICTURES / "layers.png")


def draw_parts(plt):
    """Figure 3, of sde_figure3."""
    figure, grid = plt.subplots(1, 2, figsize=(10, 3.6))
    for (network,), rows in cases_of("shaped_parts", "network").items():
        layer = [int(row["layer"]) for row in rows]
        grid[0].plot(layer, [float(row["mean |rho|"]) for row in rows], lw=1, label=network)
        grid[1].plot(layer, [float(row["median |V12|"]) for row in rows], lw=1)
    grid[0].set(xlabel="layer", ylabel="mean absolute correlation")
    grid[1].set(xlabel="layer", ylabel="median absolute covariance", yscale="log")
    grid[0].legend(fontsize=6)
    save(figure, PICTURES / "parts.png")


def draw_pictures():
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    for draw in (draw_densities, draw_commuting, draw_layers, draw_parts):
        draw(plt)


SUMMARIES = {"shaped_resnet": summary_of_resnet, "shaped_densities": summary_of_densities, "shaped_outputs": summary_of_outputs,
             "shaped_commuting": summary_of_commuting, "shaped_explosion": summary_of_explosion, "shaped_layers": summary_of_layers}
COMPUTED = {"resnet": resnet, "attention": attention, "outputs": outputs, "commuting": commuting, "explosion": explosion, "layers": layers}


def main():
    run(__doc__, COMPUTED, SUMMARIES, draw_pictures)


if __name__ == "__main__":
    main()
