"""Heat maps of figures 4, 5 and 6 and the scatter of figure 7 of Cowsik et al. (arXiv:2403.02579), from the rows of
signal_propagation.py and of propagation_training: `python propagation_maps.py picture`."""
import argparse

import numpy as np

from tables import EXPERIMENTS, rows_of, shows

PICTURES = EXPERIMENTS / "signal-propagation"
# title, file, what chooses its rows
PANELS = (("figure 4: angle, one block", "angle", {"slice": "alpha sigma_w"}), ("figure 4: angle, one block", "angle", {"slice": "alpha_M alpha_A"}),
          ("figure 5: gradient, 16 blocks", "gradient", {"slice": "alpha sigma_w"}),
          ("figure 5: gradient, 16 blocks", "gradient", {"slice": "alpha_M alpha_A"}),
          ("figure 6: angle, causal", "causal", {"exponent": "angle"}), ("figure 6: gradient, causal", "causal", {"exponent": "gradient"}))


def grid_of(rows, name):
    """x, y and values [y, x] of a column."""
    x, y = (sorted({float(row[axis]) for row in rows}) for axis in ("x", "y"))
    values = np.full((len(y), len(x)), np.nan)
    for row in rows:
        values[y.index(float(row["y"])), x.index(float(row["x"]))] = float(row[name])
    return x, y, values


def heat_maps(plt):
    """Measured growths above, theory below, with one scale; the line is where they vanish."""
    figure, grid = plt.subplots(2, len(PANELS), figsize=(19, 6), layout="constrained")
    for column, (title, name, chosen) in zip(grid.T, PANELS):
        rows = [row for row in rows_of(f"propagation_{name}") if all(row[key] == value for key, value in chosen.items())]
        limit = float(np.nanquantile([abs(float(row["theory"])) for row in rows], 0.95))
        for axes, what in zip(column, ("measured", "theory")):
            x, y, values = grid_of(rows, what)
            image = axes.pcolormesh(x, y, values, cmap="RdBu_r", vmin=-limit, vmax=limit, shading="nearest")
            axes.contour(x, y, values, levels=[0], colors="black", linewidths=0.8)
            axes.set_title(f"{title}: {what}", fontsize=8)
            axes.set_xlabel(rows[0]["slice"].split()[0], fontsize=8)
            axes.set_ylabel(rows[0]["slice"].split()[1], fontsize=8)
        figure.colorbar(image, ax=list(column), shrink=0.8)
    figure.savefig(PICTURES / "heat_maps.png", dpi=75, metadata={"Software": None})


def training(plt):
    """Figure 7: losses over each exponent, over the fitted predictor and over alpha."""
    rows = rows_of("propagation_training")
    figure, grid = plt.subplots(1, 4, figsize=(14, 3.2), sharey=True, layout="constrained")
    for axes, name in zip(grid, ("lambda_a", "lambda_g", "predicted", "alpha")):
        points = axes.scatter([float(row[name]) for row in rows], [float(row["loss"]) for row in rows], c=[float(row["alpha"]) for row in rows], s=12)
        axes.set_xlabel(name)
    grid[0].set_ylabel("loss after training")
    figure.colorbar(points, ax=list(grid), label="alpha")
    figure.savefig(PICTURES / "training.png", dpi=90, metadata={"Software": None})


def draw_pictures():
    import matplotlib
    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    heat_maps(plt)
    training(plt)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["picture"])
    shows(parser.parse_args().what, {}, draw_pictures)


if __name__ == "__main__":
    main()
