"""Numbers of layers that are being differentiated: W_std and b_std that are traced by JAX, or tensors of PyTorch.

A module keeps such a number as it is; a network is made from the module with values in its place.
"""

import copy
import re
import sys
from dataclasses import fields, is_dataclass, replace

from .._fields import fields_of

_FIELDS = ("W_std", "b_std")


def is_number_of_others(value):
    """Whether a value is a number that is known later, or may change: a tracer of JAX or a tensor of PyTorch."""
    jax, torch = sys.modules.get("jax"), sys.modules.get("torch")
    return (jax is not None and isinstance(value, jax.core.Tracer)) or (torch is not None and isinstance(value, torch.Tensor))


def numbers_of(module):
    """The numbers of a module and its parts, each once."""
    found = []
    for part in _parts(module):
        for name in _FIELDS:
            value = getattr(part, name, None)
            if is_number_of_others(value) and not any(value is other for other in found):
                found.append(value)
    return found


def _parts(module):
    yield module
    for part in module.parts():
        yield from _parts(part)


def with_values(module, numbers, values):
    """The module with values in place of its numbers."""
    if not is_dataclass(module) or not numbers:
        return module
    changes = {}
    for field in fields(module):
        old = getattr(module, field.name)
        new = _replaced(old, numbers, values, field.name in _FIELDS)
        if new is not old:
            changes[field.name] = new
    return replace(module, **changes) if changes else module


def _replaced(old, numbers, values, may_be_number):
    if may_be_number:
        return next((value for number, value in zip(numbers, values) if number is old), old)
    if isinstance(old, tuple) and old and all(hasattr(part, "parts") for part in old):
        parts = tuple(with_values(part, numbers, values) for part in old)
        return old if all(new is part for new, part in zip(parts, old)) else parts
    return with_values(old, numbers, values) if hasattr(old, "parts") else old


def placeholders(count, spread):
    """Different deviations that nobody would choose."""
    return [1.0 + (k + 1) * spread for k in range(count)]


def paths_of(networks, variances):
    """The paths, in a network's file, of the numbers that are the k-th variance, for every k. networks: one for each of
    several choices of variances; a number that equals the k-th variance in all of them follows it."""
    found = None
    for network, chosen in zip(networks, variances):
        places = {}
        for k, layer in enumerate(network.layers):
            written = fields_of(layer)
            if not _calls_functions(written):
                _collect(f"layers[{k}]", written, chosen, places)
        found = places if found is None else {path: k for path, k in places.items() if found.get(path) == k}
    return [[path for path, k in found.items() if k == number] for number in range(len(variances[0]))]


def _calls_functions(value):
    """Whether there is a layer of a user's functions in a layer's fields: with another number it is not read again."""
    if isinstance(value, dict):
        return "python" in value or any(map(_calls_functions, value.values()))
    return isinstance(value, list) and any(map(_calls_functions, value))


def _collect(path, value, variances, places):
    if isinstance(value, dict):
        for name, part in value.items():
            _collect(f"{path}.{name}", part, variances, places)
    elif isinstance(value, list):
        for k, part in enumerate(value):
            _collect(f"{path}[{k}]", part, variances, places)
    elif isinstance(value, float) and value in variances:
        places[path] = variances.index(value)


def with_numbers(layers, paths, values):
    """Objects of network files with values at the paths of numbers, as paths_of() gives them."""
    layers = copy.copy(layers)
    for several, value in zip(paths, values):
        for path in several:
            _set(layers, [int(part) if part.isdigit() else part for part in re.findall(r"\w+", path)[1:]], value)
    return layers


def _set(tree, path, value):
    """Puts a value into a tree, of which the parts on its path are copied."""
    first, *rest = path
    if not rest:
        tree[first] = value
        return
    tree[first] = copy.copy(tree[first])
    _set(tree[first], rest, value)
