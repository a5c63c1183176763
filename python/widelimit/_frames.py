"""Frames of pandas, polars and PyArrow: one array of their columns, and columns that are found by their names."""

from __future__ import annotations

import json
import sys
from typing import NamedTuple

import numpy as np

_FRAMES = {"pandas": ("DataFrame",), "polars": ("DataFrame", "LazyFrame"), "pyarrow": ("Table", "RecordBatch")}


def is_frame(array):
    """Whether this is a frame, whose columns have names and may have several types. Imports nothing."""
    kinds = [getattr(sys.modules[library], kind) for library, kinds in _FRAMES.items() if library in sys.modules
             for kind in kinds if hasattr(sys.modules[library], kind)]
    return isinstance(array, tuple(kinds))


def names_of(frame):
    """The names of the columns as texts."""
    if hasattr(frame, "collect_schema") and not hasattr(frame, "to_numpy"):
        raise TypeError("expected a frame with its rows, got a LazyFrame of polars, which has none yet: give its collect()")
    return [str(name) for name in getattr(frame, "column_names", None) or frame.columns]


def as_table(x):
    """Record batches of PyArrow as tables, whose names scikit-learn reads; all else as it is."""
    pyarrow = sys.modules.get("pyarrow")
    return pyarrow.Table.from_batches([x]) if pyarrow is not None and isinstance(x, pyarrow.RecordBatch) else x


def array_of(frame, name, order=None):
    """Columns of numbers and truth values, all or those of these places, in the type that holds them all, missing values as NaN.
    TypeError for others."""
    return _joined([_column(frame, place) for place in (range(len(names_of(frame))) if order is None else order)], len(frame), name)


class _Column(NamedTuple):
    name: str
    kind: str  # "b" for truth values, "f", "i" and "u" for numbers, else "O".
    type: object
    numbers: np.ndarray


def _column(frame, place):
    """A column as numbers of its own type; of others an empty array."""
    name = names_of(frame)[place]
    if hasattr(frame, "iloc"):
        column = frame.iloc[:, place]
        type, kind = column.dtype, getattr(column.dtype, "kind", "O")
        # Columns that know missing values, and sparse ones, have such.
        plain = getattr(type, "numpy_dtype", getattr(type, "subtype", type))
        if kind in "fiub":
            column = column.to_numpy(dtype=float if kind in "iub" and column.hasnans else plain, na_value=np.nan)
    elif hasattr(frame, "to_series"):
        column = frame.to_series(place)
        type = column.dtype
        kind = "b" if type == sys.modules["polars"].Boolean else "f" if type.is_float() else "i" if type.is_integer() else "O"
        column = column.cast(sys.modules["polars"].UInt8).to_numpy() if kind == "b" else column.to_numpy()
    else:
        import pyarrow
        column = frame.column(place)
        type, types = column.type, pyarrow.types
        kind = "b" if types.is_boolean(type) else "f" if types.is_floating(type) else "i" if types.is_integer(type) else "O"
        if kind == "b":
            column = column.cast("uint8")
        # Tables have their columns in chunks, which take no argument.
        column = column.to_numpy() if isinstance(column, pyarrow.ChunkedArray) else column.to_numpy(zero_copy_only=False)
    return _Column(name, kind, type, np.asarray(column) if kind in "fiub" else np.empty(0))


def _joined(columns, rows, name):
    other = [f"{column.name!r} ({column.type})" for column in columns if column.kind not in "fiub"]
    if other:
        raise TypeError(f"{name}: expected a frame whose columns are numbers or truth values, got {', '.join(other[:5])}")
    numeric = [column.numbers.dtype for column in columns if column.kind != "b"]
    common = np.result_type(*numeric) if numeric else np.dtype(float)
    array = np.empty((rows, len(columns)), common if common.kind == "f" else float)
    for place, column in enumerate(columns):
        array[:, place] = column.numbers
    return array


def _listed(names):
    return ", ".join(map(repr, names[:10])) + (f" and {len(names) - 10} more" if len(names) > 10 else "")


class Columns(NamedTuple):
    """The columns of a model's inputs: names, and which of them are truth values; `categories` are those names of which a table
    of the program had texts, that are several numbers each, or marks of missing cells; `constant` are columns that are no inputs
    since all training rows have the same there."""

    names: tuple[str, ...] = ()
    truth_values: tuple[bool, ...] = ()
    categories: tuple[str, ...] = ()
    constant: tuple[str, ...] = ()

    @classmethod
    def of(cls, x, names=None):
        """Those of a frame, or of an array [n, channels] the given names (or Columns); none of an array without. ValueError for
        names that are not different, and for another number of them."""
        if isinstance(names, Columns):
            return names
        if is_frame(x):
            if names is not None:
                raise ValueError("columns: expected None beside a frame, whose columns have names")
            names, empty = names_of(x), x.slice(0, 0) if hasattr(x, "slice") else x[:0]
            truth = [_column(empty, place).kind == "b" for place in range(len(names))]
        elif names is None:
            return cls()
        else:
            if isinstance(names, str):
                raise TypeError(f"columns: expected a sequence of names, got the text {names!r}")
            names = [str(name) for name in names]
            shape, truth = np.shape(x), [False] * len(names)
            if len(shape) != 2 or shape[1] != len(names):
                raise ValueError(f"columns: expected a name for each channel of inputs [n, channels], got {len(names)} names and shape {shape}")
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"x: expected columns of different names, got several called {_listed(twice)}")
        return cls(tuple(names), tuple(truth))

    @classmethod
    def read(cls, preparation):
        """Of the text that a model keeps about the preparation of its inputs."""
        columns = json.loads(preparation).get("table", {}).get("columns", [])
        constant = tuple(column["name"] for column in columns if "constant" in column)
        columns = [column for column in columns if "constant" not in column]
        return cls(tuple(column["name"] for column in columns), tuple(column.get("truth_values", False) for column in columns),
                   tuple(column["name"] for column in columns if column["categories"] or column.get("marks_missing")), constant)

    def preparation(self, y, constant):
        """The text that a model keeps, in the form of the program's tables, so that `widelimit predict --csv` finds them too;
        constant: ConstantChannels."""
        kept = {"constant_channels": {str(place): value for place, value in constant.values.items()}} if constant.values else {}
        if not self.names:
            return json.dumps(kept)
        columns = [{"name": name, "categories": [], **({"truth_values": True} if is_truth else {})}
                   for name, is_truth in zip(self.names, self.truth_values)]
        return json.dumps({"table": {"target": self._targets(y), "ignored": [], "columns": columns}, **kept})

    def _targets(self, y):
        """Names of the targets, which the columns do not have."""
        if is_frame(y):
            names = names_of(y)
        elif isinstance(getattr(y, "name", None), str):
            names = [y.name]
        else:
            shape = np.shape(y)
            names = ["y"] if len(shape) < 2 or shape[1] == 1 else [f"y{k}" for k in range(shape[1])]
        while set(names) & set(self.names):
            names = [name + "_" for name in names]
        return names[0] if len(names) == 1 else names

    def matched(self, x, name, others="the training inputs"):
        """A frame as the array of these columns, which are those of `others`, found by their names; all else as it is. ValueError
        that names the columns which are missing, are none of these, or are truth values where these are not, or the other way
        round."""
        if not is_frame(x):
            return x
        if not self.names:
            return array_of(x, name)
        if self.categories:
            raise ValueError(f"{name}: the model reads texts and marks of missing cells in {_listed(self.categories)}, which it makes "
                             "several numbers of: predict tables with `widelimit predict --csv`, or give an array of all its numbers")
        given = Columns.of(x)
        missing = [column for column in self.names if column not in given.names]
        unknown = [column for column in given.names if column not in (*self.names, *self.constant)]
        if missing or unknown:
            parts = [*([f"there is no {_listed(missing)}"] if missing else []),
                     *([f"{_listed(unknown)} {'is' if len(unknown) == 1 else 'are'} none of them"] if unknown else [])]
            raise ValueError(f"{name}: expected the columns of {others}, {_listed(self.names)}: {' and '.join(parts)}; "
                             "an array has its columns by their places")
        order = [given.names.index(column) for column in self.names]
        odd = [column for column, place, is_truth in zip(self.names, order, self.truth_values) if given.truth_values[place] != is_truth]
        if odd:
            raise ValueError(f"{name}: expected truth values where {others} have them and numbers elsewhere, got the other in {_listed(odd)}")
        return array_of(x, name, order)


class ConstantChannels(NamedTuple):
    """Channels that all training inputs [n, channels] have in common, of which there are others: the place and value of each.
    Predictions do not depend on them, as if they were no inputs."""

    values: dict[int, float] = {}

    @classmethod
    def of(cls, x):
        """Those of an array of two or more inputs; none of all else."""
        if x.ndim != 2 or len(x) < 2 or x.shape[1] < 2:
            return cls()
        places = np.flatnonzero((x == x[0]).all(0))
        return cls({} if len(places) == x.shape[1] else {int(place): float(x[0, place]) for place in places})

    @classmethod
    def read(cls, preparation):
        """Of the text that a model keeps about the preparation of its inputs."""
        return cls({int(place): value for place, value in json.loads(preparation).get("constant_channels", {}).items()})

    def note(self, columns):
        """What is said about them at a fit."""
        return f"x: {self._named(self.values, columns)} constant in the training data and left out"

    def new_values(self, x, columns):
        """What is said about inputs that have other values there; an empty text if none have, and for other arrays than of inputs."""
        if x.ndim != 2 or x.shape[1] <= max(self.values):
            return ""
        new = [place for place, value in self.values.items() if not np.isclose(x[:, place], value, rtol=1e-6, atol=0).all()]
        if not new:
            return ""
        return f"x: {self._named(new, columns)} constant in the training data: new values there change no prediction"

    def all_channels(self, factors):
        """Factors of the other channels, [C'] or [C', C'], as those of all, [C] or [C, C], which are 0 for these."""
        if not self.values or factors is None:
            return factors
        size = len(factors) + len(self.values)
        others = [place for place in range(size) if place not in self.values]
        found = np.zeros((size,) * factors.ndim)
        found[np.ix_(*[others] * factors.ndim)] = factors
        return found

    @staticmethod
    def _named(places, columns):
        shown = _listed([columns.names[place] if columns.names else place for place in places])
        return f"columns {shown} are" if len(places) > 1 else f"column {shown} is"


def beside(x1, x2):
    """x2 with the columns of x1 in their order, if both are frames."""
    return Columns.of(x1).matched(x2, "x2", "x1") if is_frame(x1) and is_frame(x2) else x2
