"""The picture of a Report, by matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np

# Column of the theory, title, and whether the axis is logarithmic.
_PANELS = (("q", "squared norm / width", True), ("gap", "1 - cosine", True), ("ln_gradient", "ln squared gradient", False),
           ("entropy", "entropy of attention (nats)", False))


def report_figure(report: Any, path: Any) -> Any:
    """A figure with a panel for each of the four, theory as lines and the model as points."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plot: expected matplotlib, which draws it: pip install matplotlib; columns() has the numbers") from error
    columns = report.columns()
    columns["gap"] = 1 - columns["cosine"]
    if "cosine_measured" in columns:
        columns["gap_measured"] = 1 - columns["cosine_measured"]
    figure = Figure(figsize=(9, 6), layout="constrained")
    for axes, (name, title, is_logarithmic) in zip(figure.subplots(2, 2).flat, _PANELS):
        blocks = np.arange(len(columns[name]))
        axes.plot(blocks, columns[name], label="theory")
        if f"{name}_measured" in columns:
            axes.plot(blocks, columns[f"{name}_measured"], "o", fillstyle="none", label="model")
        if name == "entropy":
            axes.plot(blocks, columns["uniform"], ":", label="uniform")
        axes.set(title=title, xlabel="block", yscale="log" if is_logarithmic else "linear")
        axes.legend()
    figure.suptitle(f"{report.block.name}, {len(report.tokens.q) - 1} blocks, {report.tokens.grams.shape[1]} tokens")
    if path is not None:
        figure.savefig(path)
    return figure
