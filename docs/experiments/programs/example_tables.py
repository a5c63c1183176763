"""Tables that stand on files which the programs of examples/ write.

    python example_tables.py keep FOLDER     takes the files of an example's --out FOLDER into docs/experiments/data, with their head
    python example_tables.py summary
"""
import argparse
import json
import pathlib

from tables import DATA, EXPERIMENTS, processor, rows_of, shows

PAGES = {"softmax_samples": EXPERIMENTS / "infinite-attention.md", "scale_mixture": EXPERIMENTS / "finite-networks.md"}
SEEDS = {"softmax_samples": "seeds 0 to 47 for two tokens, a quarter of them for more", "scale_mixture": "seed 1"}


def keep(folder):
    run = json.loads((folder / "run.json").read_text())
    for name, seeds in SEEDS.items():
        file = folder / f"{name}.csv"
        if file.exists():
            arguments = [word for word in run["arguments"] if not word.startswith("/")]
            (DATA / file.name).write_text(f"# {' '.join([name, *arguments]).replace(' --out', '')}; widelimit {run['widelimit']}; {processor()}; {seeds}\n"
                                          f"{file.read_text()}")


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


SUMMARIES = {"softmax_samples": summary_of_softmax_samples, "scale_mixture": summary_of_scale_mixture}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["keep", "summary"])
    parser.add_argument("folder", type=pathlib.Path, nargs="?")
    given = parser.parse_args()
    if not shows(given.what, SUMMARIES):
        keep(given.folder)


if __name__ == "__main__":
    main()
