"""What of the papers is computed here: the tables of docs/experiments/coverage.md, from data/coverage.csv, which is written by hand.

    python coverage.py summary

A row is a figure, a table or an equation of a paper. Its columns: paper; item; by (commands, after semicolons); here and there (sizes);
agrees (a verdict, a colon, and what was found); rows and pictures (paths from docs/experiments, after blanks; a row may stand on a
section of a page); hours (of one core; "rows": the seconds of the rows). breaches() holds a row against what is in the repository."""
import argparse
import contextlib
import importlib
import io
import itertools
import re
import sys
from unittest import mock

from page_structure import ROOT, anchors
from sentences import SETTING
from tables import DATA, EXPERIMENTS, read, rows_of, shows

PAGE = EXPERIMENTS / "coverage.md"
VERDICTS = ("yes", "partly", "no", "open", "nothing")
NUMBER = re.compile(r"(?<![\w.^/-])[+-]?(?:\d{1,3}(?:,\d{3})+|\d*\.\d+|\d+)(?:e-?\d+)?(?![\w.]*\.\d)")


def verdict(row):
    return row["agrees"].partition(":")[0]


def files_of(row):
    """(path, anchor) of its rows."""
    return [(EXPERIMENTS / file, anchor) for file, _, anchor in (name.partition("#") for name in row["rows"].split())]


def seconds_of(path):
    _, columns, rows = read(path)
    return sum(float(row[columns.index("seconds")]) for row in rows) if "seconds" in columns else None


def hours_of(row):
    """As its column says, or the seconds of its rows, to two digits."""
    if row["hours"] != "rows":
        return row["hours"]
    hours = sum(seconds_of(path) for path, _ in files_of(row) if path.suffix == ".csv") / 3600
    return f"{float(f'{hours:.2g}'):g}" if hours >= 0.01 else "below .01"


def link(target):
    path, _, anchor = target.partition("#")
    name = path.rpartition("/")[2].removesuffix(".csv").removesuffix(".md").removesuffix(".png")
    return f"[{name}{': ' + anchor.replace('-', ' ') if anchor else ''}]({target})"


def command_cells(row):
    return "; ".join(f"`{command}`" for command in row["by"].split("; ") if command)


def summary():
    rows = rows_of("coverage")
    yield from counts(rows)
    for paper in dict.fromkeys(row["paper"] for row in rows):
        yield f"| {paper} | by | size here | size there | agrees | rows | picture | hours |"
        yield "|---|---|---|---|---|---|---|---|"
        for row in (row for row in rows if row["paper"] == paper):
            links = [", ".join(map(link, row[name].split())) for name in ("rows", "pictures")]
            cells = (row["item"], command_cells(row), row["here"], row["there"], row["agrees"], *links, hours_of(row))
            yield "|" + "|".join(f" {cell} " if cell else " " for cell in (cell.replace("|", "\\|") for cell in cells)) + "|"


def counts(rows):
    yield "| verdict | " + " | ".join(papers := list(dict.fromkeys(row["paper"] for row in rows))) + " | all |"
    yield "|---|" + "---|" * (len(papers) + 1)
    for name in VERDICTS:
        found = [sum(verdict(row) == name and row["paper"] == paper for row in rows) for paper in papers]
        yield f"| {name} | " + " | ".join(map(str, found)) + f" | {sum(found)} |"


def plain(number):
    """As it is compared: without sign, commas and a zero before the point."""
    text = number.lstrip("+-").replace(",", "")
    return text.removeprefix("0") if re.match(r"0\.\d", text) else text


def numbers_of_page(path):
    return {plain(found[0]) for found in re.finditer(r"(?:\d{1,3}(?:,\d{3})+|\d*\.\d+|\d+)(?:e-?\d+)?", path.read_text())}


def stands_in_rows(number, path):
    """Whether a cell of a file rounds to it, or it is the number of its rows."""
    digits = len(number.partition(".")[2])
    _, _, rows = read(path)
    if number == str(len(rows)):
        return True
    for cell in itertools.chain.from_iterable(rows):
        with contextlib.suppress(ValueError):
            if plain(f"{float(cell):.{digits}f}") == number:
                return True
    return False


def numbers_of(row):
    words = re.sub(r"arXiv:\S+", "", SETTING.sub("*", row["agrees"].partition(":")[2]))
    return [plain(found[0]) for found in NUMBER.finditer(words)]


def number_breaches(row):
    numbers = numbers_of(row)
    if verdict(row) in ("yes", "partly", "no") and not numbers:
        yield "says that it agrees or not without a number"
    if verdict(row) in ("open", "nothing"):
        return
    for number in numbers:
        if not any(number in numbers_of_page(path) if path.suffix == ".md" else stands_in_rows(number, path) for path, _ in files_of(row) if path.exists()):
            yield f"{number} stands neither in its rows nor on its page"


def file_breaches(row):
    for path, anchor in files_of(row):
        if not path.exists():
            yield f"there is no {path.name}"
        elif anchor and anchor not in anchors(path):
            yield f"{path.name} has no heading {anchor}"
    for name in row["pictures"].split():
        if not (EXPERIMENTS / name).exists():
            yield f"there is no picture {name}"
    if not row["rows"] and verdict(row) in ("yes", "partly", "no"):
        yield "has a verdict without rows or a page"
    if row["hours"] == "rows" and not any(path.exists() and path.suffix == ".csv" and seconds_of(path) is not None for path, _ in files_of(row)):
        yield "takes its hours from rows that have none"


def help_of(program):
    """What a program of this folder prints of itself."""
    module, out = importlib.import_module(program), io.StringIO()
    with mock.patch.object(sys, "argv", [f"{program}.py", "--help"]), contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        module.main()
    return out.getvalue()


def command_breaches(row, helps):
    for command in filter(None, row["by"].split("; ")):
        first, *words = command.split()
        if first.endswith(".py"):
            program = first.removesuffix(".py")
            if not (EXPERIMENTS / "programs" / first).exists():
                yield f"there is no program {first}"
                continue
            told = helps.setdefault(program, help_of(program)) if words else ""
            yield from (f"{first} has no {word}" for word in words if re.fullmatch(r"--[a-z-]+|[a-z][a-z0-9-]*", word) and not re.search(rf"{word}\b", told))
        elif first == "widelimit":
            yield from (f"there is no command {' '.join(words)}" for _ in [0] if not is_command(words))
        elif "/" in first:
            yield from (f"there is no {first}" for _ in [0] if not (ROOT / first).exists())
        elif not (ROOT / "examples" / f"{first}.cpp").exists() and not (ROOT / "bench" / f"{first}.cpp").exists():
            yield f"there is no program {first}"


def is_command(words):
    """Whether the sources name the commands, up to an option or a value of the reader's."""
    names = list(itertools.takewhile(lambda word: re.fullmatch(r"[a-z][a-z-]*", word), words))
    theories = (ROOT / "src").glob("*/experiments/*.cpp")
    texts = "\n".join(path.read_text() for path in (*(ROOT / "src" / "cli").rglob("*.cpp"), *theories))
    return bool(names) and all(f'"{name}"' in texts for name in names)


def breaches():
    """(item, what is wrong) of every row."""
    helps = {}
    for row in rows_of("coverage"):
        if verdict(row) not in VERDICTS or not row["agrees"].partition(":")[2].strip():
            yield row["item"], f"expected one of {', '.join(VERDICTS)}, a colon and words, got {row['agrees']!r}"
        for check in (number_breaches, file_breaches, lambda one: command_breaches(one, helps)):
            yield from ((row["item"], what) for what in check(row))


def missing():
    return [f"data/coverage.csv, {item}: {what}" for item, what in breaches()]


SUMMARIES = {"coverage": summary}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["summary"])
    shows(parser.parse_args().what, SUMMARIES)


if __name__ == "__main__":
    main()
