"""Tables that stand on files which the programs of examples/ write.

    python example_tables.py keep FOLDER     takes the files of an example's --out FOLDER into docs/experiments/data, with their head
    python example_tables.py summary
"""
import argparse
import json
import pathlib
from typing import NamedTuple

from tables import DATA, EXPERIMENTS, brief, point, processor, rows_of, shows


class Kept(NamedTuple):
    """A file that an example writes, the page that it is for, and its seeds."""

    example: str
    file: str
    page: str
    seeds: str


KEPT = {
    "softmax_samples": Kept("softmax_samples", "softmax_samples.csv", "infinite-attention.md", "seeds 0 to 47 for two tokens, a quarter of them for more"),
    "scale_mixture": Kept("scale_mixture", "scale_mixture.csv", "finite-networks.md", "seed 1"),
    "attention_convergence": Kept("attention_convergence", "attention_convergence.csv", "finite-networks.md", "seed 0"),
    "propagation_trajectory_1": Kept("propagation_figure2", "figure2_sigma_w_1.csv", "signal-propagation.md", "seed 0"),
    "propagation_trajectory_5": Kept("propagation_figure2", "figure2_sigma_w_5.csv", "signal-propagation.md", "seed 0"),
    "propagation_groups": Kept("propagation_figure3", "figure3.csv", "signal-propagation.md", "seed 0"),
    "shaped_correlations": Kept("sde_figure1", "figure1_left.csv", "shaped-transformer.md", "seed 1"),
    "shaped_distances": Kept("sde_figure1", "figure1_ks.csv", "shaped-transformer.md", "seed 1"),
    "shaped_parts": Kept("sde_figure3", "figure3.csv", "shaped-transformer.md", "seed 1"),
}
PAGES = {name: EXPERIMENTS / kept.page for name, kept in KEPT.items()}


def keep(folder):
    run = json.loads((folder / "run.json").read_text())
    example = pathlib.Path(run["command"].split()[0]).name
    for name, kept in KEPT.items():
        file = folder / kept.file
        if kept.example == example and file.exists():
            arguments = [word for word in run["arguments"] if not word.startswith("/")]
            command = " ".join([example, *arguments]).replace(" --out", "").replace("--data", "--data FOLDER")
            (DATA / f"{name}.csv").write_text(f"# {command}; widelimit {run['widelimit']}; {processor()}; {kept.seeds}\n{file.read_text()}")


def numbers_of(name):
    """The rows of a file, numbers as numbers."""
    def read(text):
        try:
            return float(text)
        except ValueError:
            return text

    return [{column: read(text) for column, text in row.items()} for row in rows_of(name)]


def powers(value):
    """Two digits, without a zero before the point or in the exponent."""
    mantissa, _, exponent = f"{value:.1e}".partition("e")
    return point(value, 2) if -2 <= int(exponent) < 0 else f"{value:.2g}" if 0 <= int(exponent) < 2 else f"{mantissa}e{int(exponent)}"


def summary_of_softmax_samples():
    rows = [row for row in rows_of("softmax_samples") if row["tokens"] == "2 tokens"]
    yield "| samples | NNGP error | reported | NTK error | reported |"
    yield "|---|---|---|---|---|"
    for samples in dict.fromkeys(row["samples"] for row in rows):
        cells = [f"{float(row[name]):.1e}" for kernel in ("nngp", "ntk") for row in rows if (row["samples"], row["kernel"]) == (samples, kernel)
                 for name in ("error", "reported standard error")]
        yield f"| {samples} | {' | '.join(cells)} |"


def summary_of_scale_mixture():
    rows = rows_of("scale_mixture")
    yield "| weights | one head, width 8 | 32 | 128 | 4 heads, width 32 | 16 | 64 |"
    yield "|---|---|---|---|---|---|---|"
    for weights in ("softmax", "identity"):
        cells = []
        for row in rows:
            if row["weights"] == weights:
                value, error = float(row["excess kurtosis"]), float(row["standard error"])
                digits = 1 if error >= 0.095 else 2
                cells.append(f"{value:.{digits}f}({round(error * 10**digits)})")
        yield f"| {weights} | {' | '.join(cells)} |"


def summary_of_convergence():
    """Distances of the mean over all draws."""
    rows = numbers_of("attention_convergence")
    draws = max(row["draws"] for row in rows)
    sizes = sorted({row["heads"] for row in rows})
    yield f"| weights | {' | '.join(f'{size:g}' for size in sizes)} |"
    yield "|---|" + "---|" * len(sizes)
    for weights in dict.fromkeys(row["weights"] for row in rows):
        found = {row["heads"]: row["distance"] for row in rows if (row["weights"], row["draws"]) == (weights, draws)}
        yield f"| {weights} | {' | '.join(powers(found[size]) for size in sizes)} |"


def summary_of_trajectory(name):
    def lines():
        yield "| block | q theory | q measured | cosine theory | cosine measured |"
        yield "|---|---|---|---|---|"
        for row in numbers_of(name):
            if row["block"] in (1, 4, 8, 16):
                yield (f"| {row['block']:g} | {point(row['q_theory'], 4)} | {brief(row['q'], row['q_error'])} | {point(row['cosine_theory'], 4)} | "
                       f"{brief(row['cosine'], row['cosine_error'])} |")

    return lines


def summary_of_groups():
    rows = [row for row in numbers_of("propagation_groups") if row["block"] in (2, 4, 8, 16)]
    yield f"| block | {' | '.join(format(row['block'], 'g') for row in rows)} |"
    yield "|---|" + "---|" * len(rows)
    yield f"| theory | {' | '.join(point(row['ratio_theory'], 4) for row in rows)} |"
    yield f"| measured | {' | '.join(brief(row['ratio'], row['ratio_error']) for row in rows)} |"


CURVES = {"shaped": "shaped", "unshaped attention": "unshaped attention, shaped feedforward", "unshaped": "unshaped",
          "unshaped Pre-LN": "unshaped, Pre-LN, same lambda and gamma", "unshaped Pre-LN lambda=gamma=1": "unshaped, Pre-LN, lambda = gamma = 1"}


def summary_of_correlations():
    rows, layers = numbers_of("shaped_correlations"), (1, 5, 10, 25, 50, 100, 150)
    yield f"| network | layer 1 | {' | '.join(map(str, layers[1:]))} |"
    yield "|---|" + "---|" * len(layers)
    for name, shown in CURVES.items():
        found = {row["layer"]: row["mean correlation"] for row in rows if row["network"] == name}
        yield f"| {shown} | {' | '.join(point(found[layer], 3) for layer in layers)} |"


def summary_of_distances():
    yield "| m, quantity and SDE | Kolmogorov-Smirnov distance | p |"
    yield "|---|---|---|"
    for row in numbers_of("shaped_distances"):
        yield f"| {row['observable']} | {point(row['distance'], 4)} | {point(row['p'], 2)} |"


def summary_of_parts():
    rows, layers = numbers_of("shaped_parts"), (10, 50, 150)
    yield "| network | mean abs. correlation, layer 10 / 50 / 150 | median abs. covariance, 10 / 50 / 150 | mean at 150 |"
    yield "|---|---|---|---|"
    for name in dict.fromkeys(row["network"] for row in rows):
        of = {row["layer"]: row for row in rows if row["network"] == name}
        correlations = " / ".join(point(of[layer]["mean |rho|"], 3) for layer in layers)
        medians = " / ".join(powers(of[layer]["median |V12|"]) for layer in layers)
        yield f"| {name} | {correlations} | {medians} | {powers(of[150]['mean |V12|'])} |"


SUMMARIES = {"softmax_samples": summary_of_softmax_samples, "scale_mixture": summary_of_scale_mixture, "attention_convergence": summary_of_convergence,
             "propagation_trajectory_1": summary_of_trajectory("propagation_trajectory_1"),
             "propagation_trajectory_5": summary_of_trajectory("propagation_trajectory_5"), "propagation_groups": summary_of_groups,
             "shaped_correlations": summary_of_correlations, "shaped_distances": summary_of_distances,
             "shaped_parts": summary_of_parts}


def summary():
    for name, lines in SUMMARIES.items():
        if (DATA / f"{name}.csv").exists():
            yield f"{name}:"
            yield from lines()
            yield ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["keep", "summary"])
    parser.add_argument("folder", type=pathlib.Path, nargs="?")
    given = parser.parse_args()
    if not shows(given.what, {"examples": summary}):
        keep(given.folder)


if __name__ == "__main__":
    main()
