"""Compares the tables of the pages with the files that they stand on: `python check_pages.py`.

Prints the lines that a file makes and its page lacks, and ends with status 1 if there are any."""
import importlib
import sys

from tables import DATA, rows_of

PROGRAMS = ("default_criteria", "learning_curves", "small_cifar10", "calibration", "attention_depth", "reviews", "hyperparameters",
            "shaped_transformer", "signal_propagation", "heads")


def missing():
    """(page, file, line) of every line that a page lacks, of files that have rows."""
    for program in map(importlib.import_module, PROGRAMS):
        page = program.PAGE.read_text().splitlines()
        for name, lines in program.SUMMARIES.items():
            if (DATA / f"{name}.csv").exists() and rows_of(name):
                yield from ((program.PAGE.name, name, line) for line in lines() if line not in page)


def main():
    found = list(missing())
    for page, name, line in found:
        print(f"{page} lacks of data/{name}.csv: {line}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
