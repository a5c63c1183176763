"""What notebooks show for networks, models and results: tables and diagrams in HTML without scripts."""

from __future__ import annotations

import json
from html import escape
from typing import Any, Iterable

import numpy as np

from . import _core

_BOX = "border:1px solid #8aa;border-radius:4px;padding:2px 8px;margin:2px;display:inline-block;background:#f4f8f8;color:#123"
_BRANCH = "border-left:3px solid #8aa;padding-left:6px;margin:2px 10px;display:inline-block;vertical-align:top"


def table(head: Iterable[str], rows: Iterable[Iterable[Any]], note: str = "") -> str:
    """A table; texts unchanged, numbers with five digits."""
    heads = "".join(f"<th>{escape(str(cell))}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    tail = f"<p>{escape(note)}</p>" if note else ""
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{tail}"


def _cell(cell):
    if isinstance(cell, (float, np.floating)):
        return f"{cell:.5g}"
    return escape(str(cell))


# Inputs of which the cost of a network is shown: shape, channels, and words for a pair of them. The first that fit are taken.
_TYPICAL = (((), 100, "vectors of 100 numbers"), ((32,), 100, "sequences of 32 x 100"), ((32, 32), 3, "images 32 x 32 x 3"),
            ((8, 8, 8), 3, "volumes 8 x 8 x 8 x 3"))
_layers_as_text = _core.Network.__repr__


def network_cost(network: _core.Network) -> str:
    """What the kernels of a pair of typical inputs cost, in a line; empty for networks that none of them fit."""
    for shape, channels, words in _TYPICAL:
        try:
            plan = _core.explain(network, list(shape), channels, "both", "float", 0.0)
        except _core.Error:
            continue
        for line in plan.splitlines():
            if line.startswith("a pair "):
                return f"{line.removeprefix('a pair').split(',')[0].strip()} a pair of {words} (widelimit.explain tells others)"
    return ""


def network_text(network: _core.Network) -> str:
    """The layers from the inputs on, and the cost."""
    text, cost = _layers_as_text(network), network_cost(network)
    return text.rstrip("\n") + f"\ncost  {cost}\n" if cost else text


def network_html(network: _core.Network) -> str:
    """The layers from the inputs down, with branches side by side, and the cost."""
    cost = network_cost(network)
    return _diagram(network) + (f"<small>cost {escape(cost)}</small>" if cost else "")


def _diagram(network):
    try:
        layers = json.loads(network.to_json())["layers"]
    except _core.Error:  # Layers of functions have no file.
        return f"<pre>{escape(_layers_as_text(network))}</pre>"
    name = f"<b>{escape(network.name)}</b><br>" if network.name else ""
    return f"<div>{name}{_sequence(layers)}</div>"


def _sequence(layers):
    return "<div style='margin-left:6px'>↓</div>".join(f"<div>{_layer(layer)}</div>" for layer in layers) or (
        f"<span style='{_BOX}'>skip</span>")


def _layer(layer):
    inside = {"branches", "layers"} & set(layer)
    fields = ", ".join(f"{name} {_short(value)}" for name, value in layer.items() if name not in {"layer", *inside})
    text = f"<b>{escape(layer['layer'])}</b>" + (f" <small>{escape(fields)}</small>" if fields else "")
    box = f"<span style='{_BOX}'>{text}</span>"
    if "layers" in inside:
        return box + f"<div style='{_BRANCH}'>{_sequence(layer['layers'])}</div>"
    if "branches" not in inside:
        return box
    branches = []
    for branch in layer["branches"]:
        weights = ", ".join(f"{name} {_short(value)}" for name, value in branch.items() if name != "layers" and value != 1)
        branches.append(f"<div style='{_BRANCH}'><small>{escape(weights)}</small>{_sequence(branch['layers'])}</div>")
    return "<div>" + "".join(branches) + f"</div>{box}"


def _short(value):
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:36]} ..."


def rows_html(arrays: dict[str, Any], limit: int = 10) -> str:
    """A table of the first rows of arrays [n] or [n, k], side by side."""
    count = max((len(array) for array in arrays.values()), default=0)
    head, columns = [""], []
    for name, array in arrays.items():
        array = np.asarray(array)
        matrix = array.reshape(len(array), -1)
        for k in range(min(matrix.shape[1], 12)):
            head.append(name if matrix.shape[1] == 1 else f"{name} {k}")
            columns.append(matrix[:, k])
    rows = [[str(i), *(column[i] for column in columns)] for i in range(min(count, limit))]
    return table(head, rows, f"{count} rows, {limit} of them shown" if count > limit else "")


def matrix_html(matrices: dict[str, Any]) -> str:
    """Size, range and a picture of each matrix; None for those that do not exist."""
    parts = []
    for name, matrix in matrices.items():
        if matrix is None:
            continue
        matrix = np.asarray(matrix, float)
        facts = [name, " x ".join(map(str, matrix.shape)), *((matrix.min(), matrix.mean(), matrix.max()) if matrix.size else
                                                             ("", "", ""))]
        picture = _picture(matrix) if matrix.ndim == 2 and matrix.size else ""
        parts.append(table(["", "shape", "least", "mean", "greatest"], [facts]) + picture)
    return "".join(parts)


def _picture(matrix, most=32):
    """At most this many rows and columns, each a mean over several."""
    rows, columns = (np.array_split(np.arange(size), min(size, most)) for size in matrix.shape)
    means = np.array([[matrix[np.ix_(some, others)].mean() for others in columns] for some in rows])
    low, high = means.min(), means.max()
    shades = np.zeros_like(means) if high == low else (means - low) / (high - low)
    cells = "".join(f"<rect x='{6 * j}' y='{6 * i}' width='6' height='6' fill='rgb({_colour(shade)})'/>"
                    for i, row in enumerate(shades) for j, shade in enumerate(row))
    return f"<svg width='{6 * means.shape[1]}' height='{6 * means.shape[0]}'>{cells}</svg>"


def _colour(shade):
    """A colour from dark blue to yellow."""
    ends = np.array([(30, 40, 110), (60, 150, 140), (250, 230, 80)], float)
    place = 2 * shade
    k = min(int(place), 1)
    return ",".join(str(int(c)) for c in ends[k] + (place - k) * (ends[k + 1] - ends[k]))


def layer_html(layer: _core.Layer) -> str:
    """A diagram of a single layer."""
    return _diagram(_core.Network([layer]))
