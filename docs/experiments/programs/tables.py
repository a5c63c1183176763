"""Files of numbers that pages stand on: rows are appended as they are found, so that a run that was stopped goes on."""
import os
import pathlib
import platform
import sys

import numpy as np
import widelimit

EXPERIMENTS = pathlib.Path(__file__).resolve().parents[1]
DATA = EXPERIMENTS / "data"


def machine():
    processor = platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as lines:
            names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
        processor = " ".join([names[0] if names else "", processor]).strip()
    return f"{processor} with {os.cpu_count()} threads"


def processor_seconds():
    """Of this process and of the programs that it ran."""
    return sum(os.times()[:4])


class Table:
    """A file of comma-separated rows in data/. Its first line has the command, version, machine, seeds and where times stand;
    the first columns, its keys, say which case a row is of. Files without a column of seconds stay so. Rows that another version
    appends are named in the first line."""

    def __init__(self, name, keys, columns, seeds):
        self.path = DATA / f"{name}.csv"
        self.keys = len(keys)
        self.begin = processor_seconds()
        if not self.path.exists():
            command = f"python docs/experiments/programs/{pathlib.Path(sys.argv[0]).name} {' '.join(sys.argv[1:2])}".strip()
            self.path.write_text(f"# {command}; widelimit {widelimit.__version__}; {machine()}; {seeds}; seconds are processor "
                                 f"time of a row\n{','.join((*keys, *columns, 'seconds'))}\n")
        first, header, *rows = self.path.read_text().splitlines()
        self.new_version = len(rows) + 1 if first.split("; ")[1].split()[-1] != widelimit.__version__ else None
        self.timed = header == ",".join((*keys, *columns, "seconds"))
        self.done = {tuple(row.split(",")[:self.keys]) for row in rows}

    def lacks(self, *key):
        """Whether no row is of this case; from here on its time counts."""
        self.begin = processor_seconds()
        return tuple(map(text, key)) not in self.done

    def append(self, *rows):
        """Rows of one case, with the processor time since lacks(), which they share."""
        seconds = [round((processor_seconds() - self.begin) / len(rows), 2)] if self.timed else []
        if self.new_version is not None:
            first, rest = self.path.read_text().split("\n", 1)
            command, version, *others = first.split("; ")
            version += f", from row {self.new_version} on {widelimit.__version__}"
            self.path.write_text("; ".join((command, version, *others)) + "\n" + rest)
            self.new_version = None
        with self.path.open("a") as file:
            file.write("".join(",".join(map(text, (*row, *seconds))) + "\n" for row in rows))


def text(value):
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def rows_of(name):
    """The rows of a committed file, as dictionaries of texts."""
    lines = (DATA / f"{name}.csv").read_text().splitlines()[1:]
    return [dict(zip(lines[0].split(","), line.split(","))) for line in lines[1:]]


def as_bits(right):
    """Which answers are right, as hexadecimal text."""
    return np.packbits(right).tobytes().hex()


def from_bits(row):
    """1 for each right answer of a row with columns right_bits and test, else 0."""
    return np.unpackbits(np.frombuffer(bytes.fromhex(row["right_bits"]), np.uint8))[:int(row["test"])].astype(float)


def paired(first, second):
    """Percentage points by which the first answers are right more often than the second, both [draws, inputs] on the same inputs,
    and a standard error: over inputs and, with several draws, over these as well, added, which rather overstates it."""
    difference = 100 * (np.asarray(first) - np.asarray(second))
    variance = difference.mean(axis=0).var(ddof=1) / difference.shape[1]
    if len(difference) > 1:
        variance += difference.mean(axis=1).var(ddof=1) / len(difference)
    return difference.mean(), variance**0.5


def difference_cell(first, second):
    """paired() of two {draw: right answers}, over the draws that both have, as a cell of a table; empty without any."""
    shared = sorted(set(first) & set(second))
    if not shared:
        return ""
    return "{:+.1f} ± {:.1f}".format(*paired([first[draw] for draw in shared], [second[draw] for draw in shared]))


def shows(what, summaries, draw_picture=None):
    """Does what the words "summary" and "picture" ask of every program: prints the tables, or draws. False for other words."""
    if what == "summary":
        for lines in summaries.values():
            print("\n".join(lines()), end="\n\n")
    elif what == "picture":
        draw_picture()
    return what in ("summary", "picture")


def brief(value, error):
    """A number with the standard error of its last digits in brackets, as .1234(12)."""
    digits = 0
    while error * 10**digits < 9.5 and digits < 8:
        digits += 1
    shown = f"{value:.{digits}f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.{digits}f}"
    return f"{shown}({round(error * 10**digits)})"


def save(figure, path):
    """A picture without the date, so that it changes only when the numbers do."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    figure.savefig(path, dpi=130, metadata={"Software": None})
