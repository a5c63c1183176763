"""serial, parallel, repeat and the fans."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from operator import add, and_, mul
from typing import Tuple

import numpy as np

from .. import layers
from .._arrays import whole
from .._caller import caller_of
from ._diagonal import Diagonal, folded
from ._module import Branches, Module, Sequence
from ._triple import Triple, module_of, triple
from ._own import alike
from ._structure import stacked
from ._widths import Joined


@dataclass
class _Parallel(Module):
    modules: Tuple[Module, ...]
    in_jax = "parallel"
    name = "parallel"
    takes_branches = keeps_branches = True

    def lower(self, value):
        if len(value.values) != len(self.modules):
            raise ValueError(f"parallel: expected {len(value.values)} layers, as many as FanOut has branches, got "
                             f"{len(self.modules)}")
        return replace(value, values=tuple(m.apply(v) for m, v in zip(self.modules, value.values)))

    def form(self, value, counter):
        behind = self.apply(value)
        return tuple(module.form(branch, counter)[0] for module, branch in zip(self.modules, value.values)), behind

    def of_kernels(self, walk, kernels):
        """The same of Kernels (_own.py)."""
        if len(kernels) != len(self.modules):
            raise ValueError(f"parallel: expected {len(kernels)} layers, as many as FanOut has branches, got "
                             f"{len(self.modules)}")
        return [walk.behind(module, kernel) for module, kernel in zip(self.modules, kernels)]

    def parts(self):
        return self.modules

    @property
    def is_pointwise(self):
        return all(module.is_pointwise for module in self.modules)

    @property
    def diagonal(self):
        return folded(self.modules, Diagonal.beside)


@dataclass
class _Repeat(Module):
    module: Module
    times: int
    in_jax = "repeat"
    name = "repeat"

    def lower(self, value):
        for _ in range(self.times):
            value = self.module.apply(value)
        return value

    def form(self, value, counter):
        trees, behind = self.forms(value, counter)
        return stacked(trees) if trees else (), behind

    def forms(self, value, counter):
        """The structure of each repetition, and the value after them."""
        trees = []
        for _ in range(self.times):
            tree, value = self.module.form(value, counter)
            trees.append(tree)
        return trees, value

    def parts(self):
        return (self.module,)

    @property
    def is_pointwise(self):
        return self.module.is_pointwise

    @property
    def diagonal(self):
        return self.module.diagonal


@dataclass
class _FanOut(Module):
    number: int
    in_jax = "fan_out"
    name = "FanOut"
    is_pointwise = opens_branches = True

    def lower(self, value):
        return Branches(value, (replace(value, layers=(), places=()),) * self.number)

    def of_kernels(self, walk, kernel):
        return [kernel] * self.number


def _same(name, branches, what, of):
    kinds = {of(value) for value in branches.values}
    if len(kinds) != 1:
        raise ValueError(f"{name}: expected branches of one {what}, got {sorted(kinds, key=str)}")
    return kinds.pop()


class _FanIn(Module):
    takes_branches = True

    def joined(self, branches, layer, is_gaussian, **changes):
        if _same(self.name, branches, "choice of the batch", lambda value: value.rows) != branches.trunk.rows:
            raise NotImplementedError(f"{self.name}: expected Index to choose of the batch outside of branches")
        turned = sum(value.is_reversed for value in branches.values)
        value = replace(branches.values[0], layers=branches.trunk.layers + (layer,), is_gaussian=is_gaussian,
                        is_reversed=2 * turned > len(branches.values), **changes)
        place = Joined(tuple(branch.places for branch in branches.values), value.channels)
        return replace(value, places=branches.trunk.places + (place,))


def _are_gaussian(branches):
    return all(value.is_gaussian for value in branches.values)


@dataclass
class _FanInElementwise(_FanIn):
    name: str
    join: object
    is_pointwise = True
    in_jax = "fan_in"

    def lower(self, branches):
        _same(self.name, branches, "shape", lambda value: (value.full_shape, value.batch_axis, value.channel_axis))
        is_gaussian = _are_gaussian(branches) and (self.join is layers.sum or len(branches.values) == 1)
        return self.joined(branches, self.join(*(list(value.layers) for value in branches.values)), is_gaussian)

    def of_kernels(self, walk, kernels):
        kernels = alike(self.name, kernels)
        are_gaussian = all(kernel.is_gaussian for kernel in kernels)
        if self.join is layers.sum and sum(not kernel.is_gaussian for kernel in kernels) > 1:
            raise NotImplementedError("FanInSum: expected all branches but one to end in new weights")
        fields = {name: _joined(kernels, name, self._sum_of if self.join is layers.sum else self._product_of)
                  for name in ("nngp", "cov1", "cov2")}
        ntk = [kernel.ntk for kernel in kernels]
        if all(array is not None for array in ntk):
            ntk = self._sum_of(ntk) if self.join is layers.sum else self._sum_of(
                [self._product_of([array if k == j else kernel.nngp for k, kernel in enumerate(kernels)])
                 for j, array in enumerate(ntk)])
        return kernels[0].replace(**fields, **joined_masks(kernels), ntk=None if isinstance(ntk, list) else ntk,
                                  is_gaussian=are_gaussian and (self.join is layers.sum or len(kernels) == 1))

    def shape_of(self, shapes):
        """Of outputs, of those of branches (_own.py)."""
        return shapes[0]

    def outputs_of(self, arrays):
        return self._sum_of(arrays) if self.join is layers.sum else self._product_of(arrays)

    @staticmethod
    def _sum_of(arrays):
        return reduce(add, arrays)

    @staticmethod
    def _product_of(arrays):
        return reduce(mul, arrays)


def _diagonal_blocks(arrays, axes):
    """Arrays after one another along each of the axes, with zeros beside them."""
    rows = []
    for k, array in enumerate(arrays):
        for axis in axes[1:]:
            before, after = (sum(other.shape[axis] for other in others) for others in (arrays[:k], arrays[k + 1:]))
            zeros = [array.take(np.zeros(size, int), axis) * 0 for size in (before, after)]
            array = _FanInConcat(axis).outputs_of([zeros[0], array, zeros[1]])
        rows.append(array)
    return _FanInConcat(axes[0]).outputs_of(rows)


def joined_masks(kernels):
    """The masks behind branches: something counts if it does in one of them."""
    found = {}
    for name in ("mask1", "mask2"):
        masks = [mask for kernel in kernels if (mask := getattr(kernel, name)) is not None]
        found[name] = reduce(and_, masks) if masks else None
    return found


def _joined(kernels, name, join):
    arrays = [getattr(kernel, name) for kernel in kernels]
    return None if arrays[0] is None else join(arrays)


@dataclass
class _FanInConcat(_FanIn):
    axis: int
    in_jax = "concat"
    name = "FanInConcat"

    def lower(self, branches):
        first = branches.values[0]
        axes = len(first.shape) + 2
        if not -axes <= self.axis < axes:
            raise ValueError(f"FanInConcat: axis {self.axis}: expected one of {axes} axes")
        axis = self.axis % axes
        if axis == first.batch_axis:
            raise NotImplementedError(f"FanInConcat: axis {axis} is the batch; concatenate inputs instead")
        if axis != first.channel_axis:
            return self._positions(branches, first.spatial_axes.index(axis))
        _same(self.name, branches, "shape", lambda value: value.shape)
        total = sum(value.channels for value in branches.values)
        shares = [(value.channels / total, list(value.layers)) for value in branches.values]
        return self.joined(branches, layers.concat(*shares), False, channels=total)

    @property
    def joins_batch(self):
        return self.axis == 0

    def shape_of(self, shapes):
        sizes = list(shapes[0])
        sizes[self.axis] = sum(shape[self.axis] for shape in shapes)
        return tuple(sizes)

    def outputs_of(self, arrays):
        caller = caller_of(arrays)
        if caller.name == "NumPy":
            return np.concatenate(arrays, self.axis)
        if caller.name == "PyTorch":
            import torch

            return torch.cat(arrays, self.axis)
        import jax.numpy as jnp

        return jnp.concatenate(arrays, self.axis)

    def of_kernels(self, walk, kernels):
        if self.axis % len(kernels[0].shape1) == kernels[0].batch_axis:
            return self._batches(kernels)
        if self.axis % len(kernels[0].shape1) != kernels[0].channel_axis:
            raise NotImplementedError("FanInConcat: expected the axis of the channels, or of the batch, for branches of different inputs "
                                      "and layers of functions of kernels")
        kernels = alike(self.name, kernels)
        channels = [kernel.shape1[kernel.channel_axis] for kernel in kernels]
        shares = [count / sum(channels) for count in channels]
        shapes = {}
        for name in ("shape1", "shape2"):
            sizes = list(getattr(kernels[0], name))
            sizes[kernels[0].channel_axis] = sum(channels)
            shapes[name] = tuple(sizes)
        fields = {name: _joined(kernels, name, lambda arrays: reduce(add, map(mul, shares, arrays)))
                  for name in ("nngp", "ntk", "cov1", "cov2")}
        return kernels[0].replace(**fields, **shapes, **joined_masks(kernels), is_gaussian=False)

    def _batches(self, kernels):
        """Inputs of different branches are uncorrelated: all branches end in weights of their own."""
        if not all(kernel.is_gaussian or kernel.is_input for kernel in kernels):
            raise NotImplementedError("FanInConcat: the batch: expected branches that end in new weights")
        first = kernels[0]
        pairs, variances = (0, 1), (0,) if first.diagonal_batch else (0, 1)
        fields = {name: _joined(kernels, name, lambda arrays, axes=axes: _diagonal_blocks(arrays, axes))
                  for name, axes in (("nngp", pairs), ("ntk", pairs), ("cov1", variances), ("cov2", variances))}
        shapes = {name: self.shape_of([getattr(kernel, name) for kernel in kernels]) for name in ("shape1", "shape2")}
        if any(kernel.mask1 is not None or kernel.mask2 is not None for kernel in kernels):
            raise NotImplementedError("FanInConcat: the batch: expected a readout over positions before inputs with masks are joined")
        return first.replace(**fields, **shapes)

    def _positions(self, branches, axis):
        _same(self.name, branches, "number of channels", lambda value: value.channels)
        shape = list(branches.values[0].shape)
        shape[axis] = sum(value.shape[axis] for value in branches.values)
        layer = layers.concat_positions(axis, *(list(value.layers) for value in branches.values))
        return self.joined(branches, layer, _are_gaussian(branches), shape=tuple(shape))


def serial(*layers: Triple) -> Triple:
    """Layers one after another: (init_fn, apply_fn, kernel_fn) of all of them. TypeError for anything that is not a layer of this
    package, ValueError for none."""
    if not layers:
        raise ValueError("serial: expected at least one layer; Identity() changes nothing")
    return triple(Sequence(tuple(module_of(layer) for layer in layers)))


def parallel(*layers: Triple) -> Triple:
    """One layer for each branch of the FanOut before it. ValueError for another number of layers, once inputs are known."""
    return triple(_Parallel(tuple(module_of(layer) for layer in layers)))


def repeat(layer: Triple, n: int) -> Triple:
    """A layer repeated n >= 0 times, with new weights each time. TypeError for anything that is not a layer, ValueError for other
    numbers."""
    return triple(_Repeat(module_of(layer), whole(n, "repeat: n")))


def FanOut(num: int) -> Triple:
    """num >= 1 copies of the input; parallel() and a fan-in follow. TypeError and ValueError for other numbers."""
    return triple(_FanOut(whole(num, "FanOut: num", 1)))


def FanInSum() -> Triple:
    """The sum of branches, which have one shape (ValueError)."""
    return triple(_FanInElementwise("FanInSum", layers.sum))


def FanInProd() -> Triple:
    """The elementwise product of branches, which have one shape (ValueError)."""
    return triple(_FanInElementwise("FanInProd", layers.product))


def FanInConcat(axis: int = -1) -> Triple:
    """Branches side by side along an axis: the channels, where each branch has its share of them, or a spatial axis.
    NotImplementedError for the batch, ValueError for branches whose other axes differ."""
    return triple(_FanInConcat(int(axis)))
