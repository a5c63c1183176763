"""Compares the pages with the files that they stand on: `python check_pages.py`.

Prints the lines that a file makes and its page lacks, the lines of tables which no file makes, the numbers of sentences that the
files do not have so, figures of sentences that stand on nothing, standard errors of few draws without a quantile of t, and what
coverage.py and page_structure.py find; ends with status 1 if there is any."""
import importlib
import sys

import coverage
import few_draws
import page_structure
import printed
import prose
import sentences
from tables import DATA, EXPERIMENTS, rows_of

PROGRAMS = ("default_criteria", "learning_curves", "small_cifar10", "calibration", "attention_depth", "residual_scale", "hyperparameters",
            "reviews", "shaped_transformer", "shaped_curves", "signal_propagation", "heads", "heads_curves", "finite_moments", "coverage",
            "example_tables", "field", "decision_tables", "learned_inputs", "categories", "inducing_points", "small_intervals",
            "class_probabilities", "trained_transformers")
PAGES = [EXPERIMENTS.parent / "experiments.md", *sorted(EXPERIMENTS.glob("*.md"))]
# Tables without measured numbers: what there is, how it is called, what papers say.
WITHOUT_NUMBERS = ("| subject | page |", "| figures | command | sizes |", "| figure | command | sizes |", "| | program | paper | run here |",
                   "| family | network |", "| record | network | reference |", "| record | command | what is missing |")


def made():
    """(page, file, line) of every line that a file makes, of files that have rows."""
    for program in map(importlib.import_module, PROGRAMS):
        for name, lines in program.SUMMARIES.items():
            page = program.PAGES[name] if hasattr(program, "PAGES") else program.PAGE
            if (DATA / f"{name}.csv").exists() and rows_of(name):
                yield from ((page, f"data/{name}.csv", line) for line in lines())
    for file in printed.files():
        yield from ((printed.page_of(file), f"data/printed/{file.name}", line) for line in printed.lines(file))


def missing():
    """(page, file, line) of every line that a page lacks."""
    lines = {page: page.read_text().splitlines() for page in PAGES}
    for page, name, line in made():
        if line not in lines.setdefault(page, page.read_text().splitlines()):
            yield page.name, name, line


def without_file():
    """(page, line) of every line of a table that no file makes."""
    known = {(page, line) for page, _, line in made()}
    for page in PAGES:
        table = []
        for line in [*page.read_text().splitlines(), ""]:
            if line.startswith("|"):
                table.append(line)
            elif table:
                if table[0] not in WITHOUT_NUMBERS:
                    yield from ((page.name, row) for row in table if (page, row) not in known)
                table = []


def without_rows():
    """(page, figure) of every figure of a sentence that stands on nothing."""
    computed = {}
    for page, words in (*prose.pieces(), *((page, line) for page, _, line in made() if not line.startswith("|"))):
        computed.setdefault(page, []).append(words)
    return sentences.missing(computed)


def main():
    found = [f"{page} lacks of {name}: {line}" for page, name, line in missing()]
    found += [f"{page} has no file for: {line}" for page, line in without_file()]
    found += [f"{page} lacks in a sentence: {piece}" for page, piece in prose.missing()]
    found += [f"{page} has no rows for a figure of a sentence: {figure}" for page, figure in without_rows()]
    found += few_draws.missing()
    found += coverage.missing()
    found += page_structure.missing()
    for line in found:
        print(line)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
