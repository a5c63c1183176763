"""Layers of functions of kernels, and what they do with kernels."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import wraps
from typing import Any, Callable, Tuple, TypeVar

import numpy as np

from .._jax import double_precision
from ._diagonal import Diagonal as _Needs
from ._kernel import Kernel
from ._module import Module, Sequence

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Bool(IntEnum):
    """Three truth values; & is the smaller one."""

    NO = 0
    MAYBE = 1
    YES = 2

    def __and__(self, other: int) -> Bool:  # type: ignore[override]
        return Bool(min(self, other))

    __rand__ = __and__


@dataclass(frozen=True)
class Diagonal:
    """For requires(diagonal_spatial=...): may the kernel before a layer hold only variances of positions (`input`), and
    may that after it (`output`)? MAYBE: if all others are 0. a >> b has the demands of b(a(x)), a & b those of both
    side by side."""

    input: Bool = Bool.YES
    output: Bool = Bool.NO

    def __rshift__(self, other: Diagonal) -> Diagonal:
        found = _Needs(self.input, self.output).then(_Needs(other.input, other.output))
        return Diagonal(Bool(found.before), Bool(found.behind))

    def __lshift__(self, other: Diagonal) -> Diagonal:
        return other >> self

    def __and__(self, other: Diagonal) -> Diagonal:
        return Diagonal(Bool(self.input & other.input), Bool(self.output & other.output))

    __rand__ = __and__

    def __bool__(self) -> bool:
        return bool(_Needs(self.input, self.output))


_KNOWN = ("batch_axis", "channel_axis", "diagonal_batch", "diagonal_spatial")


def requires(**static_reqs: Any) -> Callable[[_Function], _Function]:
    """A decorator for the kernel_fn of a layer that is made with layer(): its demands on the kernel that it gets.

    diagonal_spatial           a Diagonal, or whether variances of positions are enough
    diagonal_batch             False: it needs the covariances among the inputs of a batch
    batch_axis, channel_axis   where they must be
    ValueError for kernels that do not meet them. Other names change nothing."""

    def decorate(kernel_fn: _Function) -> _Function:
        @wraps(kernel_fn)
        def checked(k: Any, **kwargs: Any) -> Any:
            _check(static_reqs, k, getattr(kernel_fn, "__name__", "kernel_fn"))
            return kernel_fn(k, **kwargs)

        checked.requirements = dict(static_reqs)  # type: ignore[attr-defined]
        return checked  # type: ignore[return-value]

    return decorate


def _check(requirements, k, name):
    for what in _KNOWN:
        wanted = requirements.get(what)
        if wanted is None or not hasattr(k, what):
            continue
        found = getattr(k, what)
        if what.endswith("_axis"):
            if wanted % len(k.shape1) != found:
                raise ValueError(f"{name}: {what}: expected {wanted % len(k.shape1)}, got a Kernel with {found}")
        elif found and (wanted is False or (isinstance(wanted, Diagonal) and wanted.input == Bool.NO)):
            raise ValueError(f"{name}: {what}: expected a Kernel with {what}=False")


@dataclass
class Own(Module):
    """A layer of functions of kernels."""

    name: str
    init_fn: Any
    apply_fn: Any
    kernel_fn: Any

    @property
    def requirements(self):
        return getattr(self.kernel_fn, "requirements", {})

    @property
    def told_axes(self):
        if "batch_axis" not in self.requirements:
            return None
        return self.requirements["batch_axis"], self.requirements.get("channel_axis")

    @property
    def diagonal(self):
        needs = self.requirements.get("diagonal_spatial")
        if needs is None or isinstance(needs, Diagonal):
            return None if needs is None else _Needs(int(needs.input), int(needs.output))
        return _Needs(int(Bool.YES if needs else Bool.NO), int(Bool.NO))

    def lower(self, value):
        raise NotImplementedError(f"{self.name}: a layer of functions of kernels has no derivatives, and no place in files")

    def behind(self, kernel, caller, options):
        """The Kernel after the layer."""
        with double_precision():
            found = self.kernel_fn(caller.give(kernel), **options)
        if not isinstance(found, Kernel):
            raise TypeError(f"{self.name}: kernel_fn: expected it to return a Kernel, got {found!r}")
        shapes = {name: tuple(self.init_fn(np.zeros(2, np.uint32), getattr(kernel, name))[0]) for name in ("shape1", "shape2")}
        return found.replace(**shapes)


def has_own(module: Module) -> bool:
    """Whether a module is, or holds, a layer of functions of kernels."""
    return isinstance(module, Own) or any(has_own(part) for part in module.parts())


def pieces(modules: Tuple[Module, ...]) -> Any:
    """Modules one after the other, in as few pieces as possible: those in a row without functions of kernels, with all
    modules between a FanOut and its fan-in."""
    run: list[Module] = []
    k = 0
    while k < len(modules):
        end = end_of_branches(modules, k)
        if any(has_own(module) for module in modules[k:end]):
            if run:
                yield Sequence(tuple(run))
            run = []
            yield from modules[k:end]
        else:
            run.extend(modules[k:end])
        k = end
    if run:
        yield Sequence(tuple(run))


def end_of_branches(modules: Any, k: int) -> int:
    """The end of a module, or, for a FanOut, that of its fan-in."""
    if not modules[k].opens_branches:
        return k + 1
    end = k + 1
    while end < len(modules) and modules[end].takes_branches:
        end += 1
        if not modules[end - 1].keeps_branches:
            break
    return end


class OfKernels:
    """A network with layers of functions of kernels, applied to a Kernel. step(module, kernel) is the Kernel after a module
    without such layers."""

    def __init__(self, caller, options, step):
        self._caller, self._options, self._step = caller, options, step

    def behind(self, module, kernel):
        """The Kernel after a module, or those of its branches."""
        if isinstance(module, Own):
            return module.behind(kernel, self._caller, self._options)
        if isinstance(kernel, list) != module.takes_branches:
            raise ValueError(f"{module.name}: expected {'branches, after FanOut' if module.takes_branches else 'one input'}")
        if module.opens_branches or module.takes_branches:
            return module.of_kernels(self, kernel)
        if not has_own(module):
            return self._step(module, kernel)
        if isinstance(module, Sequence):
            for piece in pieces(module.modules):
                kernel = self.behind(piece, kernel)
            return kernel
        for _ in range(module.times):
            kernel = self.behind(module.module, kernel)
        return kernel


def alike(name, kernels):
    """Kernels of branches, with spatial axes in one order. ValueError for different shapes."""
    kernels = [kernel if kernel.is_reversed == kernels[0].is_reversed else kernel.reverse() for kernel in kernels]
    shapes = {tuple(np.shape(kernel.nngp)) for kernel in kernels}
    if len(shapes) != 1:
        raise ValueError(f"{name}: expected branches of one shape, got kernels of shapes {sorted(shapes)}")
    return kernels
