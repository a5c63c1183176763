"""From nodes to the layers of a Network."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import layers
from ._maps import map_layers
from ._nodes import Node, common
from ._parametrisation import Parametrisation
from ._trace import refuse

_MOST_LAYERS = 50_000


class Emission:
    """The layers from the input to a node. Values that several branches use are computed in each."""

    def __init__(self, parametrisation: Parametrisation) -> None:
        self._parametrisation, self._count = parametrisation, 0

    def layers(self, node: Node, begin: int = 1) -> list[Any]:
        """The layers behind the first `begin` nodes of the node's spine."""
        result: list[Any] = []
        spine = node.spine
        k = begin
        while k < len(spine):
            if spine[k].kind in ("map", "index") and len(spine[k].parents) == 1:
                last = k
                while last + 1 < len(spine) and spine[last + 1].kind in ("map", "index") and spine[last + 1].parents[0] is spine[last]:
                    last += 1
                following = spine[last + 1] if last + 1 < len(spine) else None
                made, skipped = map_layers(list(spine[k:last + 1]), following)
                result += made
                k = last + 1
                if skipped:
                    result += self._parametrisation.weights(spine[k], circular=True)
                    k += 1
                continue
            result += self._of(spine[k])
            k += 1
        self._count += len(result)
        if self._count > _MOST_LAYERS:
            raise refuse(node.place, f"the network has more than {_MOST_LAYERS} layers, as values that several branches use are written "
                                     f"in each",
                         "convert a part of the module")
        return result

    def _of(self, node):
        made = getattr(self, "_" + node.kind)(node)
        return made if isinstance(made, list) else [made]

    def _branches(self, node):
        begin = len(common([parent.spine for parent in node.parents]))
        return [self.layers(parent, begin) for parent in node.parents]

    def _weights(self, node):
        return self._parametrisation.weights(node)

    def _attention(self, node):
        return self._parametrisation.attention(node)

    def _encoding(self, node):
        return self._parametrisation.encoding(node)

    @staticmethod
    def _function(node):
        return node.data["layer"]

    @staticmethod
    def _centring(node):
        return []

    @staticmethod
    def _flatten(node):
        return layers.flatten()

    @staticmethod
    def _dropout(node):
        return layers.dropout(keep=node.data["keep"])

    @staticmethod
    def _norm(node):
        names = [name for name, _ in node.parents[0].axes]
        over = [axis for axis in node.data["over"] if axis in names]
        axes = ["channels"] + (["space"] if over and len(over) == len(names) else [names.index(axis) for axis in over])
        return layers.from_fields(node.data["norm"], axes=axes, epsilon=node.data["epsilon"])

    @staticmethod
    def _shape(node):
        sizes = [size for _, size in node.axes]
        if [size for _, size in node.parents[0].axes] == sizes:
            return []
        return layers.positions_map(np.eye(int(np.prod(sizes))), sizes)

    def _sum(self, node):
        branches = self._branches(node)
        return layers.sum(*((scale, branch) for scale, branch in zip(node.data["scales"], branches)))

    def _product(self, node):
        return layers.product(*self._branches(node))

    def _concat(self, node):
        shares = [parent.channels / node.channels for parent in node.parents]
        return layers.concat(*zip(shares, self._branches(node)))

    def _positions(self, node):
        names = [name for name, _ in node.axes]
        return layers.concat_positions(names.index(node.data["axis"]), *self._branches(node))
