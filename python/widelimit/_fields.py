"""Layers made of the fields of network files, and checks of the fields that Python can say better."""

from __future__ import annotations

import json

import numpy as np

from . import _core


def _plain(value):
    """Numbers and arrays of NumPy and of those like it, and layers within layers, as JSON takes them."""
    if hasattr(value, "__array__"):
        return np.asarray(value).tolist()
    if isinstance(value, _core.Layer) and fields_of(value):
        return fields_of(value)
    raise TypeError(f"expected numbers, texts and lists of them, got a {type(value).__name__}"
                    + (" that network files do not know" if isinstance(value, _core.Layer) else ""))


def _check_finite(kind, field, value):
    """That numbers of a field are such as JSON has."""
    for number in value if isinstance(value, (list, tuple)) else [value]:
        if isinstance(number, (float, np.floating)) and not np.isfinite(number):
            raise _core.ArgumentError(f"{kind}: {field}: expected finite numbers, got {value}")


def layer(kind, **fields):
    """The layer that a network file describes; fields that are None are left out."""
    given = {name: value for name, value in fields.items() if value is not None}
    for field, value in given.items():
        _check_finite(kind, field, value)
    try:
        return _core.layer_from_json(json.dumps({"layer": kind, **given}, default=_plain))
    except _core.NetworkError as error:  # A file's words for where it is.
        text = str(error)
        raise _core.NetworkError(kind + text.removeprefix("layers[0]").replace(".", ": ", 1)
                                 if text.startswith("layers[0].") and not text.startswith("layers[0].layer:")
                                 else text.removeprefix("layers[0]: ").removeprefix("layers[0].")) from None


def fields_of(layer):
    """The object of a layer in network files; an empty one for a layer that they do not know."""
    try:
        return json.loads(_core.Network([layer]).to_json())["layers"][0]
    except _core.Error:
        return {}


def sizes(kind, field, values):
    """Sizes along axes, None among them what is left out."""
    if values is None:
        return None
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise TypeError(f"{kind}: {field}: expected a list of integers, one an axis, got {values!r}; write [{values}] for "
                        f"sequences, [{values}, {values}] for images")
    return list(values)


def numbers(kind, field, values):
    """A list of numbers."""
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise TypeError(f"{kind}: {field}: expected a list of numbers, got {values!r}")
    return list(values)


def axes(kind, field, values):
    """Names and numbers of axes."""
    if isinstance(values, (str, int)) or not hasattr(values, "__iter__"):
        raise TypeError(f"{kind}: {field}: expected a list such as ['channels', 'space'], got {values!r}")
    return list(values)
