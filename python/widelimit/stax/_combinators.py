"""serial, parallel, repeat and the fans."""

from dataclasses import dataclass, replace
from typing import Tuple

from .. import layers
from ._module import Branches, Module
from ._triple import module_of, triple
from ._widths import Joined


@dataclass
class _Serial(Module):
    modules: Tuple[Module, ...]
    name = "serial"

    def apply(self, value):
        for module in self.modules:
            value = module.apply(value)
        return value

    lower = apply

    def parts(self):
        return self.modules


@dataclass
class _Parallel(Module):
    modules: Tuple[Module, ...]
    name = "parallel"
    takes_branches = True

    def lower(self, value):
        if len(value.values) != len(self.modules):
            raise ValueError(f"parallel: expected {len(value.values)} layers, as many as FanOut has branches, got "
                             f"{len(self.modules)}")
        return replace(value, values=tuple(m.apply(v) for m, v in zip(self.modules, value.values)))

    def parts(self):
        return self.modules


@dataclass
class _Repeat(Module):
    module: Module
    times: int
    name = "repeat"

    def lower(self, value):
        for _ in range(self.times):
            value = self.module.apply(value)
        return value

    def parts(self):
        return (self.module,)


@dataclass
class _FanOut(Module):
    number: int
    name = "FanOut"

    def lower(self, value):
        return Branches(value, (replace(value, layers=(), places=()),) * self.number)


def _same(name, branches, what, of):
    kinds = {of(value) for value in branches.values}
    if len(kinds) != 1:
        raise ValueError(f"{name}: expected branches of one {what}, got {sorted(kinds, key=str)}")
    return kinds.pop()


class _FanIn(Module):
    takes_branches = True

    def joined(self, branches, layer, **changes):
        value = replace(branches.values[0], layers=branches.trunk.layers + (layer,), **changes)
        place = Joined(tuple(branch.places for branch in branches.values), value.channels)
        return replace(value, places=branches.trunk.places + (place,))


@dataclass
class _FanInElementwise(_FanIn):
    name: str
    join: object

    def lower(self, branches):
        _same(self.name, branches, "shape", lambda value: value.full_shape)
        return self.joined(branches, self.join(*(list(value.layers) for value in branches.values)))


@dataclass
class _FanInConcat(_FanIn):
    axis: int
    name = "FanInConcat"

    def lower(self, branches):
        first = branches.values[0]
        axes = len(first.shape) + 2
        if not -axes <= self.axis < axes:
            raise ValueError(f"FanInConcat: axis {self.axis}: expected one of {axes} axes")
        axis = self.axis % axes
        if axis == 0:
            raise NotImplementedError("FanInConcat: axis 0 is the batch; concatenate inputs instead")
        if axis != first.channel_axis:
            return self._positions(branches, axis - 1 - (axis > first.channel_axis))
        _same(self.name, branches, "shape", lambda value: value.shape)
        total = sum(value.channels for value in branches.values)
        shares = [(value.channels / total, list(value.layers)) for value in branches.values]
        return self.joined(branches, layers.concat(*shares), channels=total)

    def _positions(self, branches, axis):
        _same(self.name, branches, "number of channels", lambda value: value.channels)
        shape = list(branches.values[0].shape)
        shape[axis] = sum(value.shape[axis] for value in branches.values)
        layer = layers.concat_positions(axis, *(list(value.layers) for value in branches.values))
        return self.joined(branches, layer, shape=tuple(shape))


def serial(*stax_layers):
    """Layers one after another."""
    return triple(_Serial(tuple(module_of(layer) for layer in stax_layers)))


def parallel(*stax_layers):
    """One layer for each branch of FanOut."""
    return triple(_Parallel(tuple(module_of(layer) for layer in stax_layers)))


def repeat(layer, n):
    """A layer n times over, with new weights each time."""
    if n < 1:
        raise ValueError(f"repeat: n: expected at least 1, got {n}")
    return triple(_Repeat(module_of(layer), int(n)))


def FanOut(num):
    """The input, num times; parallel() and a fan-in follow."""
    if num < 1:
        raise ValueError(f"FanOut: num: expected at least 1, got {num}")
    return triple(_FanOut(int(num)))


def FanInSum():
    """The sum of branches."""
    return triple(_FanInElementwise("FanInSum", layers.sum))


def FanInProd():
    """The elementwise product of branches."""
    return triple(_FanInElementwise("FanInProd", layers.product))


def FanInConcat(axis=-1):
    """Branches side by side along an axis: the channels, each branch with its share of them, or a spatial one."""
    return triple(_FanInConcat(int(axis)))
