"""Files of numbers that pages stand on: rows are appended as they are found, so that a run that was stopped goes on."""
import argparse
import csv
import io
import os
import pathlib
import platform
import re
import sys

import numpy as np
import widelimit
from scipy.stats import t as student

EXPERIMENTS = pathlib.Path(__file__).resolve().parents[1]
DATA = EXPERIMENTS / "data"
ORIGIN = ("version", "machine")  # the last columns of a file whose rows are of several machines


def processor():
    name = platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as lines:
            names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
        name = " ".join([names[0] if names else "", name]).strip()
    return f"{name} with {os.cpu_count()} threads"


def processor_seconds():
    """Of this process and of the programs that it ran."""
    return sum(os.times()[:4])


def read(path):
    """First line, names of the columns and rows of a file."""
    with path.open(newline="") as lines:
        first = next(lines).rstrip("\n")
        columns, *rows = csv.reader(lines)
    return first, columns, rows


def as_line(values):
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow([text(value) for value in values])
    return line.getvalue()


def head(seeds, origin=None):
    """What the first line of a file says: the command, where its rows come from (this version and machine), and its seeds."""
    origin = origin or f"; widelimit {widelimit.__version__}; {processor()}"
    what = " ".join(word for word in sys.argv[1:2] if not word.startswith("-"))
    command = f"python docs/experiments/programs/{pathlib.Path(sys.argv[0]).name} {what}".strip()
    return f"# {command}{origin}; {seeds}"


class Table:
    """A file of comma-separated rows in data/, or in the folder of a computer. Its first line has the command, version, machine, seeds
    and where times stand; the first columns, its keys, say which case a row is of. With a computer, version and machine are the last
    columns of every row. Without columns of seconds and of these, files stay so: rows of another version are named in the first line."""

    def __init__(self, name, keys, columns, seeds, computer=None):
        self.path = (DATA if computer is None else computer.out) / f"{name}.csv"
        self.keys = len(keys)
        self.clock = processor_seconds if computer is None else computer.clock
        self.origin = f"{widelimit.__version__}" + (f" on {computer.machine}" if computer and computer.on_device else "")
        self.last = (widelimit.__version__, computer.machine) if computer else ()
        self.begin = self.clock()
        header = [*keys, *columns, "seconds", *(ORIGIN if computer else ())]
        if not self.path.exists():
            origin = "; version of widelimit and machine: columns" if computer else f"; widelimit {self.origin}; {processor()}"
            times = "processor time of a row; on a device, of the clock" if computer else "processor time of a row"
            self.path.write_text(f"{head(seeds, origin)}; seconds are {times}\n{as_line(header)}")
        first, found, rows = read(self.path)
        self.timed = "seconds" in found
        self.last = self.last if found[-2:] == list(ORIGIN) else ()
        expected = [name for name in header if (name != "seconds" or self.timed) and (name not in ORIGIN or self.last)]
        if found != expected:
            raise ValueError(f"{self.path}: expected columns {', '.join(expected)}, found {', '.join(found)}")
        named = re.sub(r"^(widelimit|from row \d+ on) ", "", first.split("; ")[1].split(", ")[-1])
        self.new_origin = len(rows) + 1 if not self.last and named != self.origin else None
        self.done = {tuple(row[:self.keys]) for row in rows}

    def lacks(self, *key):
        """Whether no row is of this case; from here on its time counts."""
        self.begin = self.clock()
        return tuple(map(text, key)) not in self.done

    def append(self, *rows):
        """Rows of one case, with the time since lacks(), which they share."""
        seconds = [round((self.clock() - self.begin) / len(rows), 2)] if self.timed else []
        if self.new_origin is not None:
            first, rest = self.path.read_text().split("\n", 1)
            command, version, *others = first.split("; ")
            version += f", from row {self.new_origin} on {self.origin}"
            self.path.write_text("; ".join((command, version, *others)) + "\n" + rest)
            self.new_origin = None
        with self.path.open("a") as file:
            file.write("".join(as_line((*row, *seconds, *self.last)) for row in rows))
        self.done |= {tuple(map(text, row[:self.keys])) for row in rows}


def text(value):
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def rows_of(name):
    """The rows of a committed file, as dictionaries of texts."""
    _, columns, rows = read(DATA / f"{name}.csv")
    return [dict(zip(columns, row)) for row in rows]


def as_bits(right):
    """Which answers are right, as hexadecimal text."""
    return np.packbits(right).tobytes().hex()


def from_bits(row):
    """1 for each right answer of a row with columns right_bits and test, else 0."""
    return np.unpackbits(np.frombuffer(bytes.fromhex(row["right_bits"]), np.uint8))[:int(row["test"])].astype(float)


def standard_errors(degrees, level=0.95):
    """How many standard errors an interval of this probability reaches to either side, by Student's t distribution: of n draws
    there are n - 1 degrees of freedom."""
    return float(student.ppf(0.5 + level / 2, degrees))


def mean_and_error(values):
    """Over draws, seeds, initialisations or whatever the values are of."""
    values = np.asarray(values)
    return values.mean(), values.std(ddof=1) / len(values) ** 0.5


def paired(first, second):
    """Percentage points by which the first answers are right more often than the second, both [draws, inputs] on the same inputs,
    and a standard error: over inputs and, with several draws, over these as well, added, which rather overstates it; and its degrees
    of freedom, by Satterthwaite's formula."""
    difference = 100 * (np.asarray(first) - np.asarray(second))
    parts = [(difference.mean(axis=0).var(ddof=1) / difference.shape[1], difference.shape[1] - 1)]
    if len(difference) > 1:
        parts.append((difference.mean(axis=1).var(ddof=1) / len(difference), len(difference) - 1))
    variance = sum(part for part, _ in parts)
    degrees = variance**2 / sum(part**2 / n for part, n in parts) if variance > 0 else 1.0
    return difference.mean(), variance**0.5, degrees


def welch(first, second):
    """Difference of two means, its standard error and degrees of freedom, of values that are drawn apart."""
    parts = [np.var(values, ddof=1) / len(values) for values in (first, second)]
    degrees = sum(parts) ** 2 / sum(part**2 / (len(values) - 1) for part, values in zip(parts, (first, second)))
    return np.mean(first) - np.mean(second), sum(parts) ** 0.5, degrees


def signed(value):
    """With one digit after the point, and no -0.0."""
    return f"{round(float(value), 1) + 0.0:+.1f}"


def difference_cell(first, second):
    """paired() of two {draw: right answers}, over the draws that both have, as a cell of a table; empty without any."""
    shared = sorted(set(first) & set(second))
    if not shared:
        return ""
    difference, error, _ = paired([first[draw] for draw in shared], [second[draw] for draw in shared])
    return f"{signed(difference)} ± {error:.1f}"


def shows(what, summaries, draw_picture=None):
    """Does what the words "summary" and "picture" ask of every program: prints the tables, or draws. False for other words."""
    if what == "summary":
        for lines in summaries.values():
            print("\n".join(lines()), end="\n\n")
    elif what == "picture":
        draw_picture()
    return what in ("summary", "picture")


def run(documentation, computed, summaries, draw_picture):
    """The command line of a program whose computations take the number of threads alone."""
    parser = argparse.ArgumentParser(description=documentation.splitlines()[0])
    parser.add_argument("what", choices=(*computed, "summary", "picture"))
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    if not shows(given.what, summaries, draw_picture):
        computed[given.what](given.threads)


def point(value, digits):
    """As the pages write numbers below 1."""
    return f"{value:.{digits}f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.{digits}f}"


def brief(value, error):
    """A number with the standard error of its last digits in brackets, as .1234(12)."""
    digits = 0
    while error * 10**digits < 9.5 and digits < 8:
        digits += 1
    return f"{point(value, digits)}({round(error * 10**digits)})"


def save(figure, path):
    """A picture without the date, so that it changes only when the numbers do."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    figure.savefig(path, dpi=130, metadata={"Software": None})
