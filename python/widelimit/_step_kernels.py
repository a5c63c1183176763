"""Kernels of the first step of gradient descent, at every place of a network of vectors (docs/theory/transfer.md)."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._layer_lists import frozen, network, standard, with_branches
from .finite import FiniteNetwork
from .kernels import gram

Numbers = NDArray[np.float64]

_DRAWS = 4096


class _Point(NamedTuple):
    """A place between two layers: the layers that lead to it, and the whole network with others put in here."""

    before: list[dict[str, Any]]
    with_inserted: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]


class StepKernels:
    """Kernels behind the layers of a network, whose weights of one layer may learn faster than those of another."""

    def __init__(self, given: list[dict[str, Any]], x: Numbers, width: int, trains_weights: bool) -> None:
        self._given, self._x, self._width, self._trains_weights = given, x, width, trains_weights

    def covariance(self, place: int) -> Numbers:
        """The NNGP kernel of the first layers."""
        return self._gram(self._given[:place], "nngp")

    def tangent(self, place: int) -> Numbers:
        """The tangent kernel of the first layers, each with its own rate."""
        return self._tangent(self._given[:place])

    def feature_changes(self, errors: Numbers) -> list[tuple[str, float, float]]:
        """(path, mean square, mean square of the change) of features behind dense layers and sums, the readout excepted. Changes are
        those of a unit rate and of gradients of the output that are 1 / width of what kernels say."""
        found = []
        self._errors = errors
        changes = self._through(self._given[:-1], self._point, np.zeros_like(errors))
        for k, change in enumerate(changes):
            if self._given[k]["layer"] in ("dense", "sum"):
                found.append((f"layers[{k}]", float(np.diag(self.covariance(k + 1)).mean()), max(float(np.diag(change).mean()), 0.0)))
        return found

    def _through(self, layers, point_at, change):
        """E of products of changes of one channel between inputs, behind each of the layers, from that before them."""
        changes = []
        for k, layer in enumerate(layers):
            before, after = point_at(k), point_at(k + 1)
            if layer["layer"] == "dense":
                change = layer.get("weight_variance", 1.0) * change + self._along_gradient(after)
            elif layer["layer"] == "sum":
                change = self._through_sum(layer, before, after, point_at, k, change)
            elif layer["layer"] in ("rms_norm", "layer_norm"):
                norms = np.sqrt(np.diag(self._gram(before.before, "nngp")) + layer.get("epsilon", 1e-12))
                change = change / np.outer(norms, norms)
            else:
                change = self._through_nonlinearity(layer, before, after, change)
            changes.append(change)
        return changes

    def _along_gradient(self, point, backward=None):
        """What the part of a change that is the tangent kernel times the gradient adds."""
        tangent = self._tangent(point.before)
        return tangent @ (self._errors * (self._backward(point) if backward is None else backward)) @ tangent

    def _through_sum(self, layer, before, after, point_at, k, change):
        backward = self._backward(after)
        total = self._along_gradient(after, backward)
        for b, branch in enumerate(layer["branches"]):
            square = branch.get("scale", 1.0) ** 2
            inside = self._branch_points(point_at, k, layer, b)
            behind = self._through(branch["layers"], inside, change)[-1] if branch["layers"] else change
            # All but the part along the gradient behind the sum, which is in `total`.
            total = total + square * (behind - self._along_gradient(inside(len(branch["layers"])), square * backward))
        return total

    def _branch_points(self, point_at, k, layer, b):
        inner = layer["branches"][b]["layers"]

        def point(j):
            def with_inserted(more):
                branches = [dict(one) for one in layer["branches"]]
                branches[b]["layers"] = [*inner[:j], *more, *inner[j:]]
                return self._replaced(point_at, k, {**layer, "branches": branches})

            return _Point([*point_at(k).before, *inner[:j]], with_inserted)

        return point

    def _replaced(self, point_at, k, layer):
        """The whole network with another layer in the place of the k-th of this list."""
        marker = {"layer": "marker"}
        whole = point_at(k).with_inserted([marker])
        return _without_next(whole, marker, layer)

    def _through_nonlinearity(self, layer, before, after, change):
        """Slopes of a unit multiply its change, and the gradient that it passes on; both are those of one Gaussian vector."""
        slopes = self._slopes(layer, self._gram(before.before, "nngp"))
        tangent = self._tangent(before.before)
        passed = self._errors * self._backward(after)
        products = slopes.T @ slopes / len(slopes)
        both = np.zeros_like(change)
        for some in np.array_split(slopes, max(1, len(slopes) * change.size // 2 ** 22)):
            rows = some[:, :, None] * tangent * some[:, None, :]
            both += (rows @ passed @ rows.transpose(0, 2, 1)).sum(axis=0) / len(slopes)
        along = tangent @ (passed * products) @ tangent
        return both + products * (change - along)

    def _slopes(self, layer, covariance):
        """Slopes [draws, n] of the nonlinearity at Gaussian numbers of this covariance."""
        values, vectors = np.linalg.eigh(covariance)
        draws = np.random.default_rng(0).standard_normal((_DRAWS // 2, len(values)))
        units = np.concatenate([draws, -draws]) @ (vectors * np.sqrt(np.maximum(values, 0))).T
        function = FiniteNetwork(network([layer]), (), 1)
        return function.input_jacobian(units.reshape(-1, 1)).reshape(units.shape)

    def _point(self, place):
        return _Point(self._given[:place], lambda more: [*self._given[:place], *more, *self._given[place:]])

    def _tangent(self, given):
        if self._trains_weights:
            given = standard(given, self._x.shape[1], self._width)
        return self._gram(given, "ntk")

    def _backward(self, point):
        """The mean product of gradients of the output by one channel here, between inputs, times the width."""
        # Biases that begin at 0 and are trained add 1 to the tangent kernel here, and nothing to the covariance.
        bias = {"layer": "dense", "weight_variance": 0.0, "parametrisation": "standard", "input_width": 1, "zero_biases": True,
                "trainable": "biases"}
        probe = {"layer": "sum", "branches": [{"layers": []}, {"layers": [bias]}]}
        marker = {"layer": "marker"}
        return self._gram(_with(frozen(point.with_inserted([marker])), marker, probe), "ntk")

    def _gram(self, given, kernel):
        if not given:
            return self._x @ self._x.T / self._x.shape[1] if kernel == "nngp" else np.zeros((len(self._x), len(self._x)))
        found = gram(network(given), self._x, kernels=kernel, precision="double")
        return np.asarray(found.nngp if kernel == "nngp" else found.ntk, float)


def _with(given, marker, layer):
    """The layers with another one in the place of the marker."""
    return [layer if one == marker else with_branches(one, lambda inner: _with(inner, marker, layer)) for one in given]


def _without_next(given, marker, layer):
    """The layers with another one in the place of the marker and of the layer behind it."""
    found = []
    for k, one in enumerate(given):
        if k > 0 and given[k - 1] == marker:
            continue
        found.append(layer if one == marker else with_branches(one, lambda inner: _without_next(inner, marker, layer)))
    return found
