"""What people should know of a table before they believe what comes of it."""

from __future__ import annotations

import warnings

import numpy as np

from ._arrays import is_ragged, numbers

# Fewer rows agree, or differ, by chance.
_FEWEST_ROWS = 10
# Deviations further apart than this leave the smaller columns without a say.
_MOST_APART = 100


def warn_of_table(x, y, columns, classes, raw):
    """Warns of inputs [n, channels]: deviations far apart where they are raw, columns of identifiers, and columns that are the
    target. columns: their names, or nothing; classes: whether y are labels."""
    shape = getattr(x, "shape", None)
    if is_ragged(x) or getattr(x, "is_cuda", False) or len(np.shape(x) if shape is None else shape) != 2:
        return
    x = numbers(x, name="x")
    if len(x) < _FEWEST_ROWS:
        return
    said = [_of_units(x, columns) if raw else "", _of_identifiers(x, columns),
            _of_copies(x, np.asarray(y) if classes else numbers(y, name="y"), columns, classes)]
    for text in filter(None, said):
        warnings.warn(f"x: {text}", UserWarning, stacklevel=3)


def warn_of_alike_classes(labels, stacklevel=3):
    """Warns of texts that are the same but for capitals and blanks around them; labels: the different ones."""
    if np.asarray(labels).dtype.kind not in "OU" or not all(isinstance(label, str) for label in labels):
        return
    plain = [label.strip().lower() for label in labels]
    alike = [str(label) for label, text in zip(labels, plain) if plain.count(text) > 1]
    if alike:
        warnings.warn(f"y: classes that differ by capitals or blanks only: {alike[:20]}; if they are the same, write them so",
                      UserWarning, stacklevel=stacklevel)


def _named(columns, places):
    return ", ".join(str(columns[place]) if columns else f"column {place} (from 0)" for place in places[:20])


def _of_units(x, columns):
    deviations = x.std(axis=0)
    varying = np.flatnonzero(np.ptp(x, axis=0) > 0)
    if not varying.size:
        return ""
    least, most = varying[deviations[varying].argmin()], varying[deviations[varying].argmax()]
    if not deviations[most] > _MOST_APART * deviations[least]:
        return ""
    return (f"deviations from {deviations[least]:.3g} ({_named(columns, [least])}) to {deviations[most]:.3g} "
            f"({_named(columns, [most])}), and a network weighs columns by their size: preprocessing='channel' of Model.fit, or "
            "StandardScaler, gives all the same")


def _of_identifiers(x, columns):
    if x.shape[1] < 2:
        return ""
    whole = np.flatnonzero((x == np.floor(x)).all(axis=0))
    places = [place for place in whole if len(np.unique(x[:, place])) == len(x)]
    return (f"whole numbers that differ in every row, as numbers of rows do: {_named(columns, places)}; if they say nothing else, "
            "leave them out") if places else ""


def _of_copies(x, y, columns, classes):
    if len(y) != len(x):
        return ""
    if classes:
        places = _of_classes(x, y)
    else:
        y = y.reshape(len(y), -1)
        places = np.flatnonzero([any(np.array_equal(x[:, place], target) for target in y.T) for place in range(x.shape[1])])
    places = [place for place in places if np.ptp(x[:, place]) > 0]
    return (f"the target itself, in all rows: {_named(columns, places)}; unless it is known beforehand, leave it out") if places else ""


def _of_classes(x, labels):
    """Columns with a number of its own for each class."""
    if labels.ndim != 1:
        return []
    different, first, place = np.unique(labels, return_index=True, return_inverse=True)
    same = np.flatnonzero((x == x[first][place]).all(axis=0))
    return [column for column in same if len(np.unique(x[first, column])) == len(different)]
