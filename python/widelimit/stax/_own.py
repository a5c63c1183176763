"""Layers of functions of kernels, made with stax.layer, and networks with such layers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property, wraps
from typing import Any, Callable, Tuple, TypeVar

import numpy as np

from .._jax import double_precision
from ._diagonal import Diagonal as _Needs
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


def layer(layer_fn: _Function) -> _Function:
    """A decorator of functions that return (init_fn, apply_fn, kernel_fn): they then return a layer for serial(), parallel()
    and repeat().

    init_fn(key, input_shape)       (shape of outputs, parameters)
    apply_fn(params, x, **kwargs)   outputs of the layer of finite width
    kernel_fn(kernel, **kwargs)     the Kernel after the layer from the Kernel before it (see Kernel.replace()), a function of
                                    NumPy's arrays, or of JAX's if inputs are; computed in double precision
    Kernels of such networks are computed layer by layer with all their pairs in memory; they have neither masks nor
    derivatives (NotImplementedError). TypeError for anything that is not such a triple."""

    @wraps(layer_fn)
    def made(*args: Any, **kwargs: Any) -> Any:
        from ._kernel_fn import KernelFunction
        from ._triple import triple

        found = layer_fn(*args, **kwargs)
        functions = found[:3] if isinstance(found, tuple) and len(found) in (3, 4) else ()
        if len(functions) != 3 or not all(callable(function) for function in functions):
            raise TypeError(f"layer: expected {layer_fn.__name__} to return (init_fn, apply_fn, kernel_fn), got {found!r}")
        if isinstance(functions[2], KernelFunction):
            return functions
        return triple(Own(layer_fn.__name__, *functions))

    return made  # type: ignore[return-value]


def supports_masking(remask_kernel: bool) -> Callable[[_Function], _Function]:
    """A decorator for functions that layer() decorates, which returns them unchanged. Networks with layers of functions of
    kernels take no masks."""
    return lambda layer_fn: layer_fn


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
        from ._kernel import Kernel

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
        end = _end_of_branches(modules, k)
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


def _end_of_branches(modules, k):
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


class OwnFunctions:
    """init_fn and apply_fn of a network with layers of functions of kernels: those of its pieces, one after the other."""

    def __init__(self, module):
        self.module = module

    def __reduce__(self):
        return OwnFunctions, (self.module,)

    @cached_property
    def _pieces(self):
        """(functions, how many entries of the list of parameters are theirs; None: theirs is one)."""
        parts = self.module.modules if isinstance(self.module, Sequence) else (self.module,)
        return [_piece(piece) for piece in pieces(parts)]

    def init_fn(self, key: Any, input_shape: Any) -> Any:
        shape, params = tuple(input_shape), []
        for k, (functions, count) in enumerate(self._pieces):
            shape, found = functions.init_fn(_key(key, k, len(self._pieces)), shape)
            params.extend(found if count is not None else [found])
        return shape, params if isinstance(self.module, Sequence) else params[0]

    def apply_fn(self, params: Any, x: Any, rng: Any = None, **kwargs: Any) -> Any:
        given, place = list(params) if isinstance(self.module, Sequence) else [params], 0
        for k, (functions, count) in enumerate(self._pieces):
            own = given[place:place + count] if count is not None else given[place]
            place += 1 if count is None else count
            x = functions.apply_fn(own, x, **(kwargs if rng is None else {**kwargs, "rng": _key(rng, k, len(self._pieces))}))
        return x


def _piece(piece):
    from ._finite import FiniteFunctions

    if isinstance(piece, Own):
        return piece, None
    if piece.opens_branches or piece.takes_branches:
        return _Branched(piece), None
    if not has_own(piece):
        return FiniteFunctions(piece), len(piece.modules)
    if not isinstance(piece, Sequence):
        raise NotImplementedError(f"{piece.name}: networks of finite width: expected layers of functions of kernels outside "
                                  "of repetitions")
    return OwnFunctions(piece), None


class _Branched:
    """A FanOut, parallel or a fan-in, which has several inputs or outputs."""

    def __init__(self, module):
        self._module = module
        if module.keeps_branches:
            self._branches = [OwnFunctions(branch) if has_own(branch) else _of_one(branch) for branch in module.modules]

    def init_fn(self, key, shapes):
        if self._module.opens_branches:
            return [shapes] * self._module.number, ()
        if not self._module.keeps_branches:
            return self._module.shape_of(shapes), ()
        found = [branch.init_fn(_key(key, k, len(self._branches)), shape)
                 for k, (branch, shape) in enumerate(zip(self._branches, shapes))]
        return [shape for shape, _ in found], tuple(params for _, params in found)

    def apply_fn(self, params, x, rng=None, **kwargs):
        if self._module.opens_branches:
            return [x] * self._module.number
        if not self._module.keeps_branches:
            return self._module.outputs_of(x)
        given = [kwargs if rng is None else {**kwargs, "rng": _key(rng, k, len(x))} for k in range(len(x))]
        return [branch.apply_fn(own, one, **options) for branch, own, one, options in zip(self._branches, params, x, given)]


def _of_one(module):
    from ._finite import FiniteFunctions

    return FiniteFunctions(module)


def _key(key, k, count):
    """One of several keys that a key makes."""
    from .._jax import is_of_jax
    from ._finite import seed_of

    if count == 1:
        return key
    if is_of_jax(key):
        import jax

        return jax.random.split(key, count)[k]
    return seed_of(np.array([seed_of(key), k]))
