"""Sums of values that may have parts in common."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._nodes import CENTRED, GAUSSIAN, OTHER, SHIFTED, Node, make
from ._signals import Signal
from ._trace import refuse


def terminals(node: Node) -> set[Any]:
    """The last weights on every path to a value, through what is linear; values of no weights stand for themselves."""
    if node.kind in ("weights", "attention", "encoding"):
        return {node.key}
    if node.kind in ("sum", "concat", "positions", "map", "index", "shape", "norm", "dropout"):
        found: set[Any] = set()
        return found.union(*(terminals(parent) for parent in node.parents))
    return {id(node)}


def summed(parts: list[tuple[float, Node]], dims: Any, place: str) -> Signal:
    """The sum of factors times nodes. Parts that stand in several of them are taken together, so that what remains shares no
    last weights; ConversionError where that cannot be."""
    terms = _merged(parts)
    while True:
        pair = _overlap(list(terms))
        if pair is None:
            break
        opened = next((node for node in pair if node.kind == "sum"), None)
        if opened is None:
            terms = _maps_merged(terms, pair, place)
            continue
        factor = terms.pop(opened)
        terms = _merged([*((f, n) for n, f in terms.items()),
                         *((factor * scale, parent) for scale, parent in zip(opened.data["scales"], opened.parents))])
    terms = {node: factor for node, factor in terms.items() if factor != 0} or dict(list(terms.items())[:1])
    if len(terms) == 1:
        (node, factor), = terms.items()
        return Signal(node, dims, factor)
    nodes = list(terms)
    if sum(not _ends_in_weights(node) for node in nodes) > 1:
        raise refuse(place, "two parts of the sum carry the input, or what a nonlinearity or product leaves, without weights behind it",
                     "end all but one of them with weights of its own")
    return Signal(make("sum", tuple(nodes), place, law=_law_of_sum({node.law for node in nodes}), scales=tuple(terms.values())), dims)


def _ends_in_weights(node):
    return all(isinstance(key, tuple) for key in terminals(node))


def _law_of_sum(laws):
    for law, allowed in ((GAUSSIAN, {GAUSSIAN}), (CENTRED, {GAUSSIAN, CENTRED}), (SHIFTED, {GAUSSIAN, SHIFTED})):
        if laws <= allowed:
            return law
    return OTHER


def _merged(parts):
    terms: dict[Node, float] = {}
    for factor, node in parts:
        if node.kind == "sum" and len(node.parents) == 1:
            factor, node = factor * node.data["scales"][0], node.parents[0]
        terms[node] = terms.get(node, 0.0) + factor
    return terms


def _overlap(nodes):
    seen: dict[Any, Node] = {}
    for node in nodes:
        for key in terminals(node):
            if key in seen:
                return seen[key], node
            seen[key] = node
    return None


def _maps_merged(terms, pair, place):
    """Two linear maps of the positions of one value as one."""
    (first, base1), (second, base2) = (_as_map(node) for node in pair)
    if base1 is not base2 or pair[0].axes != pair[1].axes:
        raise refuse(place, "the sum's parts share weights or inputs, so that their covariance is not the sum of theirs",
                     "give one of them weights of its own")
    matrix = terms.pop(pair[0]) * first + terms.pop(pair[1]) * second
    terms[make("map", (base1,), place, axes=pair[0].axes, full=matrix)] = 1.0
    return terms


def _as_map(node):
    size = int(np.prod([size for _, size in node.axes]))
    if node.kind == "map":
        full = full_matrix(node)
        inner, base = _as_map(node.parents[0])
        return full @ inner, base
    if node.kind == "sum" and len(node.parents) == 1:
        inner, base = _as_map(node.parents[0])
        return node.data["scales"][0] * inner, base
    return np.eye(size), node


def full_matrix(node: Node) -> np.ndarray:
    """The matrix of a map over all flattened positions."""
    if "full" in node.data:
        return node.data["full"]
    matrix = np.eye(1)
    for axis, size in node.parents[0].axes:
        matrix = np.kron(matrix, node.data["matrices"].get(axis, np.eye(size)))
    return matrix


def multiplied(nodes: list[Node], dims: Any, place: str) -> Signal:
    """The product of nodes of which all but one have weights that no other has."""
    if _overlap(nodes) is not None and not _independent(nodes):
        raise refuse(place, "both factors of the product have the same weights or inputs", "give one of them weights of its own")
    return Signal(make("product", tuple(nodes), place, law=OTHER), dims)


def _independent(nodes):
    """Whether last weights, also behind nonlinearities, belong to one factor each but for one."""
    return len([node for node in nodes if not _has_weights_of_its_own(node, [n for n in nodes if n is not node])]) <= 1


def _has_weights_of_its_own(node, others):
    while node.kind in ("function", "norm", "map", "index", "shape", "dropout"):
        node = node.parents[0]
    if node.kind == "sum" and len(node.parents) > 1:
        return any(_has_weights_of_its_own(parent, others) for parent in node.parents)
    return node.kind in ("weights", "attention") and all(node.key not in _all_keys(other) for other in others)


def _all_keys(node):
    return {node.key} | {key for parent in node.parents for key in _all_keys(parent)} if node.parents else set()

