"""Files of rows of what is measured on a device, each row written when it is found: a program that was stopped goes on behind them."""
import csv


class Rows:
    """A file of rows whose first columns are its keys. What had a problem is tried again, and has another row then."""

    def __init__(self, path, keys, columns):
        self.path, self.keys, self.columns = path, keys, (*keys, *columns, "problem")
        self.failed = False
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("w", newline="") as file:
                csv.writer(file, lineterminator="\n").writerow(self.columns)
        self.cut_unfinished()
        with path.open(newline="") as file:
            found = next(csv.reader(file))
        if tuple(found) != self.columns:
            raise SystemExit(f"{path}: expected columns {', '.join(self.columns)}, found {', '.join(found)}")
        self.done = {tuple(row[key] for key in keys) for row in rows_of(path) if not row["problem"]}

    def cut_unfinished(self):
        """A last line without its end is of a program that was killed."""
        text = self.path.read_text()
        if not text.endswith("\n"):
            self.path.write_text(text[:text.rfind("\n") + 1])

    def lacks(self, *key):
        return tuple(map(str, key)) not in self.done

    def append(self, *values, problem=""):
        """A row; without values behind its keys if there was a problem."""
        self.failed |= bool(problem)
        padded = [*values, *[""] * (len(self.columns) - 1 - len(values)), " ".join(problem.split())]
        with self.path.open("a", newline="") as file:
            csv.writer(file, lineterminator="\n").writerow(padded)
        print(self.path.stem, *(f"{value:.4g}" if isinstance(value, float) else value for value in padded if value != ""), flush=True)
        if not problem:
            self.done.add(tuple(map(str, values[:len(self.keys)])))


def rows_of(path):
    """The rows of a file, as dictionaries of texts."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))
