"""Pictures of head specialisation, from the rows of heads.py and heads_curves.py: `python heads.py picture`.

Each function draws one file of docs/experiments/head-specialization/, for the figure of arXiv:2603.03993 that its first line names."""
import itertools

import numpy as np

from heads import ACTIVATIONS
from heads_curves import FLOWS, digit_times
from tables import DATA, EXPERIMENTS, rows_of, save

PICTURES = EXPERIMENTS / "head-specialization"


def where(name, **fields):
    return [row for row in rows_of(name) if all(row[key] == str(value) for key, value in fields.items())]


def column(rows, name):
    return np.array([float(row[name]) for row in rows])


def draw_overlaps(axes, rows, dots=False):
    """Both overlaps of every head over tau."""
    for head in sorted({row["head"] for row in rows}, key=int):
        of_head = [row for row in rows if row["head"] == head and float(row["tau"]) > 0]
        for name, style in ("m0", "o" if dots else "-"), ("m1", "x" if dots else "--"):
            axes.plot(column(of_head, "tau"), column(of_head, name), style, color=f"C{int(head) % 10}", lw=1, ms=2.5)


def flows(plt):
    """Figures 2, 12 and 13."""
    figure, grid = plt.subplots(len(FLOWS), 4, figsize=(11, 7), sharex=True, squeeze=False)
    for row, (name, (_, prior, last_times)) in zip(grid, FLOWS.items()):
        for axes, count in zip(row, (2, 4, 5, 8)):
            axes.set_visible(count in last_times)
            draw_overlaps(axes, where("heads_flows", figure=name, heads=count, seed=1))
            axes.set_title(f"{prior.replace(' ', ', ')}, H = {count}", fontsize=8)
            axes.set_xscale("log")
            axes.set_xlabel("tau", fontsize=7)
    figure.suptitle("overlaps with feature 0 (lines) and feature 1 (dashes), a colour a head", fontsize=9)
    save(figure, PICTURES / "flows.png")


def features(plt):
    """Figures 3 and 14."""
    figure, grid = plt.subplots(2, 3, figsize=(10, 6.6), sharex=True, sharey=True, layout="constrained")
    for (activation, tau), axes in zip(itertools.product(("softmax", "bayes"), ("100", "400", "4000")), grid.flat):
        rows = where("heads_features", activation=activation, tau=tau)
        points = axes.scatter(column(rows, "m0"), column(rows, "m1"), c=abs(column(rows, "m2")), s=10, vmin=0, vmax=2, cmap="viridis")
        axes.set_title(f"{activation}, tau = {int(tau):,}", fontsize=9)
        axes.set(xlabel="overlap with feature 0", ylabel="with feature 1")
    figure.colorbar(points, ax=grid, label="absolute overlap with feature 2")
    figure.savefig(PICTURES / "features.png", dpi=110, metadata={"Software": None})


def losses(plt):
    """Figure 4."""
    figure, grid = plt.subplots(1, 4, figsize=(14, 3.6))
    risks = {row["prior"]: float(row["risk"]) for row in rows_of("heads_bayes")}
    cases = (("4 left", ("spikes(4 10)",), "spikes(4, 10)"), ("4 left", ("gaussian(4 x 10)",), "gaussian(10, 10, 10, 10)"),
             ("4 right", [f"flip2({nu} {nu})" for nu in (1, 2, 5, 10)], "flip2(nu, nu)"),
             ("4 right", [f"gaussian({nu} {nu})" for nu in (1, 5, 10, 20, 40)], "gaussian(nu, nu)"))
    for axes, (name, priors, title) in zip(grid, cases):
        rows = [row for row in where("heads_rest", figure=name) if row["prior"] in priors]
        for k, activation in enumerate(ACTIVATIONS):
            found = {}
            for row in rows:
                if row["activation"] == activation:
                    x = int(row["heads"]) if name == "4 left" else float(row["prior"].split("(")[1].split()[0])
                    found.setdefault(x, []).append(float(row["loss"]))
            x = sorted(found)
            axes.plot(x, [np.median(found[at]) for at in x], "o-", ms=3, lw=1, color=f"C{k}", label=activation)
            axes.plot(*zip(*((at, loss) for at in x for loss in found[at])), "_", ms=6, color=f"C{k}")
        if name == "4 left":
            axes.axhline(risks[priors[0]], color="black", ls=":", label="Bayes risk")
        else:
            axes.plot(x, [risks[prior] for prior in priors], color="black", ls=":", label="Bayes risk")
            axes.set_xscale("log")
        axes.set(title=title, xlabel="heads" if name == "4 left" else "nu", ylabel="loss at rest")
    grid[0].legend(fontsize=7)
    save(figure, PICTURES / "losses.png")


def keys(plt):
    """Figure 5: cosines in place of the keys' pixels."""
    kept = list(dict.fromkeys(row["activation"] for row in rows_of("heads_keys")))
    figure, grid = plt.subplots(1, len(kept), figsize=(3 * len(kept), 3.4), squeeze=False, layout="constrained")
    for axes, activation in zip(grid.flat, kept):
        rows = where("heads_keys", activation=activation, seed=1)
        cosines = np.array([[float(row[f"cosine_{digit}"]) for digit in range(10)] for row in rows])
        image = axes.imshow(cosines[np.argsort(cosines.argmax(axis=1), kind="stable")], vmin=-1, vmax=1, cmap="RdBu_r")
        axes.set(title=activation, xlabel="digit", ylabel="head", xticks=range(10))
    figure.colorbar(image, ax=grid, label="cosine with the mean image")
    figure.savefig(PICTURES / "keys.png", dpi=110, metadata={"Software": None})


def times(plt):
    """Figure 6."""
    figure, grid = plt.subplots(1, 2, figsize=(9, 3.6))
    for axes, activation in zip(grid, ("softmax", "bayes")):
        found = {}
        for row in where("heads_times", activation=activation):
            found.setdefault(float(row["log_scale"]), []).append(float(row["time"]))
        axes.errorbar(list(found), [np.mean(values) for values in found.values()], yerr=[np.std(values, ddof=1) for values in found.values()],
                      fmt="o-", ms=4, capsize=3, label="flows, mean and deviation over 100 starts")
        for dimension in sorted({int(row["dimension"]) for row in rows_of("heads_dimensions")}):
            rows = where("heads_dimensions", activation=activation, dimension=dimension)
            axes.plot(column(rows, "log_scale"), column(rows, "time"), "x", ms=5, label=f"SGD, D = {dimension:,}, every start")
        axes.set(title=activation, xlabel="ln(sqrt(D) / eta)", ylabel="specialisation time")
        axes.legend(fontsize=7)
    save(figure, PICTURES / "times.png")


def digits(plt):
    """Figure 7."""
    sizes = [1, *sorted({float(row["eta"]) for row in rows_of("heads_etas")}, reverse=True)] if (DATA / "heads_etas.csv").exists() else [1]
    figure, axes = plt.subplots(figsize=(8, 3.8))
    for k, eta in enumerate(sizes):
        scale, found = digit_times(eta)
        for digit in range(10):
            axes.plot(np.full(len(found), digit + 0.2 * k), found[:, digit] / scale, "_", color=f"C{k}", ms=8,
                      label=f"eta = {eta:g}, {len(found)} starts" if digit == 0 else None)
    axes.set(xlabel="digit", ylabel="time over ln(sqrt(D) / eta)", xticks=range(10))
    axes.legend(fontsize=8)
    save(figure, PICTURES / "digits.png")


def resampling(plt):
    """Figure 8."""
    figure, grid = plt.subplots(1, 2, figsize=(8, 3.2))
    for axes, name in zip(grid, ("m", "S")):
        for k, tau in enumerate(("20", "100")):
            rows = where("heads_resampling", tau=tau)
            axes.hist(column(rows, f"largest_difference_{name}"), bins=np.geomspace(3e-3, 2, 16), color=f"C{k}", alpha=0.6, label=f"to tau = {tau}, {len(rows)} starts")
        axes.set(xscale="log", xlabel=f"largest difference in {name}, kept and fresh samples", ylabel="starts")
        axes.legend(fontsize=7)
    save(figure, PICTURES / "resampling.png")


def sgd(plt):
    """Figures 1, 9 and 10."""
    cases = list(dict.fromkeys((row["figure"], row["activation"]) for row in rows_of("heads_sgd_curves")))
    columns = min(len(cases), 3)
    figure, grid = plt.subplots(-(-len(cases) // columns), columns, figsize=(4.2 * columns, 3.2 * -(-len(cases) // columns)), squeeze=False)
    for axes in grid.flat[len(cases):]:
        axes.set_visible(False)
    for axes, (name, activation) in zip(grid.flat, cases):
        rows = where("heads_sgd_curves", figure=name, activation=activation, seed=1)
        for dynamics in ("flow", "sgd"):
            draw_overlaps(axes, [row for row in rows if row["dynamics"] == dynamics], dynamics == "sgd")
        axes.set_title(f"figure {name}: {activation}; SGD (points) and flow (lines)", fontsize=8)
        axes.set(xlabel="tau", ylabel="overlaps")
    save(figure, PICTURES / "sgd.png")


def cosines(plt):
    """Figure 11."""
    figure, axes = plt.subplots(figsize=(5.5, 3.4))
    for nu1 in dict.fromkeys(row["nu1"] for row in rows_of("heads_cosines")):
        rows = where("heads_cosines", nu1=nu1)
        axes.plot(column(rows, "nu2"), column(rows, "cosine"), "o-", ms=4, label=f"nu1 = {nu1}")
    axes.set(xscale="log", xlabel="nu2", ylabel="cosine of the two heads")
    axes.set_xticks([0.5, 1, 2, 4, 8], ["0.5", "1", "2", "4", "8"])
    axes.minorticks_off()
    axes.legend(fontsize=8)
    save(figure, PICTURES / "cosines.png")


def maps(plt):
    """Figure 15: rows are heads, columns tokens; the first token carries the signal."""
    figure, grid = plt.subplots(4, 6, figsize=(9, 5.4), sharex=True, sharey=True)
    for row, activation in zip(grid, ACTIVATIONS):
        for sequence, axes in enumerate(row):
            rows = where("heads_maps", activation=activation, sequence=sequence)
            axes.imshow([[float(one[f"token_{token}"]) for token in range(5)] for one in rows], vmin=0, vmax=0.25, cmap="Greys")
            axes.set(xticks=range(5), yticks=range(4))
        row[0].set_ylabel(activation)
    save(figure, PICTURES / "maps.png")


def prune(plt):
    """Figure 16."""
    priors = list(dict.fromkeys(row["prior"] for row in rows_of("heads_prune")))
    figure, grid = plt.subplots(1, len(priors), figsize=(4.6 * len(priors), 3.4), squeeze=False)
    for axes, prior in zip(grid.flat, priors):
        for k, activation in enumerate(ACTIVATIONS):
            for row in where("heads_prune", prior=prior, activation=activation):
                axes.plot(range(8), [float(row[f"removed_{count}"]) for count in range(8)], "o-", ms=3, lw=1, color=f"C{k}",
                          label=activation if row["seed"] == "1" else None)
        axes.set(title=prior, xlabel="heads removed", ylabel="loss", yscale="log")
        axes.legend(fontsize=7)
    save(figure, PICTURES / "prune.png")


def bias(plt):
    """Proposition IV.3."""
    figure, axes = plt.subplots(figsize=(5.5, 3.4))
    for activation in ("softmax1", "softmax"):
        rows = where("heads_bias", activation=activation)
        axes.errorbar(column(rows, "length"), column(rows, "loss"), yerr=column(rows, "standard_error"), fmt="o-", ms=4, label=activation)
    rows = [row for row in where("heads_bias", activation="softmax1") if float(row["bayes_risk"]) > 1e-6]
    axes.plot(column(rows, "length"), column(rows, "bayes_risk"), "k:", label="Bayes risk")
    axes.set(yscale="log", xlabel="B", ylabel="loss of two opposite heads")
    axes.legend(fontsize=8)
    save(figure, PICTURES / "bias.png")


# What each picture needs of data/.
DRAWN = {flows: "heads_flows", features: "heads_features", losses: "heads_rest", keys: "heads_keys", times: "heads_times", digits: "heads_digits",
         resampling: "heads_resampling", sgd: "heads_sgd_curves", cosines: "heads_cosines", maps: "heads_maps", prune: "heads_prune", bias: "heads_bias"}


def draw_all():
    import matplotlib
    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    PICTURES.mkdir(exist_ok=True)
    for draw, name in DRAWN.items():
        if (DATA / f"{name}.csv").exists() and rows_of(name):
            draw(plt)
            plt.close("all")
