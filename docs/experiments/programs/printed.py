"""Tables of the pages as their programs printed and rounded them, in data/printed: the rows behind these numbers were not kept.

    python printed.py summary

The first line of a file has the command, version and seeds, and the page; the second the columns, as the page has them.
"""
import argparse
import re

from tables import DATA, EXPERIMENTS, read, shows


def files():
    return sorted(file for file in (DATA / "printed").glob("*.csv") if file.name != "sentences.csv")


def page_of(file):
    first, _, _ = read(file)
    return EXPERIMENTS / re.search(r" for ([\w-]+\.md): ", first)[1]


def lines(file):
    """The table of a file as its page has it."""
    _, columns, rows = read(file)
    shown = ["|".join(["", *(f" {cell} " if cell else " " for cell in (text.replace("|", "\\|") for text in row)), ""])
             for row in (columns, *rows)]
    return [shown[0], "|" + "---|" * len(columns), *shown[1:]]


def summary():
    for file in files():
        yield f"{file.name}, {page_of(file).name}:"
        yield ""
        yield from lines(file)
        yield ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["summary"])
    shows(parser.parse_args().what, {"printed": summary})


if __name__ == "__main__":
    main()
