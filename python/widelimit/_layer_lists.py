"""Networks as lists of the objects of network files, of which other networks are made."""

from __future__ import annotations

import copy
import json
from typing import Any, Callable, Dict, Iterator, List, Tuple

from . import _core

Objects = List[Dict[str, Any]]


def network(given: Objects) -> _core.Network:
    """The Network of these layers."""
    return _core.Network.from_json(json.dumps({"widelimit": 1, "layers": given}))


def unrolled(network: _core.Network) -> Objects:
    """The objects of a network's layers, repetitions written out, in branches too."""
    return _written_out(json.loads(network.to_json())["layers"])


def _written_out(given):
    found = []
    for layer in given:
        times, inner = (layer["times"], _written_out(layer["layers"])) if layer["layer"] == "repeat" else (1, [layer])
        if "branches" in layer:
            inner = [{**layer, "branches": [{**branch, "layers": _written_out(branch["layers"])} for branch in layer["branches"]]}]
        for _ in range(times):
            found += copy.deepcopy(inner)
    return found


def all_layers(given: Objects, prefix: str = "") -> Iterator[Tuple[str, Dict[str, Any]]]:
    """(path, object) of every layer, those in branches too."""
    for k, layer in enumerate(given):
        path = f"{prefix}layers[{k}]"
        yield path, layer
        for b, branch in enumerate(layer.get("branches", ())):
            yield from all_layers(branch["layers"], f"{path}.branches[{b}].")


def mapped(given: Objects, change: Callable[[Dict[str, Any], bool], Dict[str, Any]], reads_inputs: bool = True) -> Objects:
    """The layers with every dense one changed, in branches too, in the order in which they act. `change` is told whether a layer is the
    first one, which reads the inputs; sums come behind it."""
    found = []
    for layer in given:
        if layer["layer"] == "dense":
            layer, reads_inputs = change(layer, reads_inputs), False
        elif "branches" in layer:
            layer = with_branches(layer, lambda inner: mapped(inner, change, reads_inputs))
        found.append(layer)
    return found


def with_branches(layer: Dict[str, Any], change: Callable[[Objects], Objects]) -> Dict[str, Any]:
    """A layer with the layers of each of its branches changed; layers without branches stay."""
    if "branches" not in layer:
        return layer
    return {**layer, "branches": [{**branch, "layers": change(branch["layers"])} for branch in layer["branches"]]}


def frozen(given: Objects) -> Objects:
    """The layers, of which none is trained."""
    return mapped(given, lambda layer, first: {**layer, "trainable": "none"})


def standard(given: Objects, channels: int, width: int) -> Objects:
    """The layers whose weights themselves are trained, of inputs with so many channels and layers of this width."""
    return mapped(given, lambda layer, first: {**layer, "parametrisation": "standard", "input_width": channels if first else width})
