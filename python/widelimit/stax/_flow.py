"""Networks of several inputs or outputs, which are lists, nested as parallel() nests them.

Every output is a network of one of the inputs, until a fan-in joins networks of different ones: from there on there is a Kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Tuple

import numpy as np

from .._jax import is_of_jax
from ._finite import FiniteFunctions, seed_of
from ._kernel import Kernel
from ._masks import joined, masked
from ._module import Module, Sequence
from ._own import end_of_branches


def is_plain(module: Module) -> bool:
    """Whether a module makes one output of one input."""
    if module.opens_branches or module.takes_branches:
        return False
    if not isinstance(module, Sequence):
        return all(map(is_plain, module.parts()))
    return all(not isinstance(piece, Module) or is_plain(piece) for piece in _pieces(module.modules))


def _pieces(modules):
    """The modules of a sequence in their order, with those from a FanOut to its fan-in in a list."""
    k = 0
    while k < len(modules):
        end = end_of_branches(modules, k)
        group = list(modules[k:end])
        is_closed = end - k > 1 and not group[-1].keeps_branches and not group[-1].joins_batch
        if is_closed and all(is_plain(part) for one in group for part in one.parts()):
            yield group
        else:
            yield from group
        k = end


def _check(module, value, count=None):
    """Checks that a value is a list where a module takes one."""
    if isinstance(value, (list, tuple)) != module.takes_branches:
        raise ValueError(f"{module.name}: expected {'several inputs' if module.takes_branches else 'one input'}, got "
                         f"{'several' if isinstance(value, (list, tuple)) else 'one'}")
    if module.keeps_branches and len(value) != len(module.modules):
        raise ValueError(f"parallel: expected as many inputs as layers, {len(module.modules)}, got {len(value)}")


@dataclass(frozen=True)
class _Line:
    """A network of one input."""

    x1: Any
    x2: Any
    modules: Tuple[Module, ...] = ()


class FlowKernels:
    """kernels(module, x1, x2, get): those of one input, as kernel_fn of the module computes them; behind(module, kernel)."""

    def __init__(self, kernels: Any, behind: Any) -> None:
        self._kernels, self._behind = kernels, behind

    def __call__(self, module: Module, x1: Any, x2: Any, get: Any) -> Any:
        return self._given(self._applied(module, self._lines(x1, x2)), get)

    def _lines(self, x1, x2):
        if isinstance(x1, Kernel):
            if x2 is not None:
                raise ValueError("kernel_fn: expected no x2 together with a Kernel, which is of both batches")
            return x1
        if not isinstance(x1, (list, tuple)):
            return _Line(x1, x2)
        if x2 is not None and (not isinstance(x2, (list, tuple)) or len(x2) != len(x1)):
            raise ValueError(f"kernel_fn: x2: expected {len(x1)} inputs, as x1 has, got {len(x2) if isinstance(x2, (list, tuple)) else 'one'}")
        return [self._lines(*pair) for pair in zip(x1, [None] * len(x1) if x2 is None else x2)]

    def _applied(self, module, flow):
        if isinstance(module, Sequence):
            for piece in _pieces(module.modules):
                flow = self._applied(piece, flow) if isinstance(piece, Module) else self._plainly(Sequence(tuple(piece)), flow)
            return flow
        if module.opens_branches:
            _check(module, flow)
            return [flow] * module.number
        if module.keeps_branches:
            _check(module, flow)
            return [self._applied(*pair) for pair in zip(module.modules, flow)]
        if module.takes_branches:
            _check(module, flow)
            return module.of_kernels(None, [self._kernel_to_join(module, one) for one in flow])
        if not is_plain(module):
            for _ in range(module.times):
                flow = self._applied(module.module, flow)
            return flow
        return self._plainly(module, flow)

    def _plainly(self, module, flow):
        if isinstance(flow, list):
            raise ValueError(f"{module.name}: expected one input, got {len(flow)}: parallel() takes several, and a fan-in joins them")
        return self._behind(module, flow) if isinstance(flow, Kernel) else _Line(flow.x1, flow.x2, (*flow.modules, module))

    def _kernel_to_join(self, module, flow):
        if isinstance(flow, list):
            raise ValueError(f"{module.name}: expected single outputs of branches, got several of one")
        return self._given(flow, None)

    def _given(self, flow, get):
        if isinstance(flow, list):
            return [self._given(one, get) for one in flow]
        if isinstance(flow, Kernel):
            return self._behind(Sequence(()), flow, get)
        return self._kernels(Sequence(flow.modules), flow.x1, flow.x2, get)


class FlowFunctions:
    """init_fn and apply_fn of such networks, with parameters nested and drawn as those of networks of one input."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._plain: dict[int, FiniteFunctions] = {}

    def __reduce__(self) -> Tuple[Any, ...]:
        return FlowFunctions, (self.module,)

    def init_fn(self, key: Any, input_shape: Any) -> Any:
        """(shapes of outputs, parameters) for the shapes of inputs."""
        shape, params = self._drawn(self.module, key, _shape_of(input_shape))
        return _in_tuples(shape), params

    def apply_fn(self, params: Any, x: Any, rng: Any = None, **kwargs: Any) -> Any:
        """Outputs of a network of finite width; rng: a key for the draws of dropout."""
        x = masked(x, kwargs.pop("mask_constant", None))  # Layers behind must not take their own outputs for masked ones.
        return self._outputs(self.module, params, x, rng, kwargs)

    def _functions(self, module):
        return self._plain.setdefault(id(module), FiniteFunctions(module))

    def _drawn(self, module, key, shape):
        if is_plain(module):
            _check(module, None if not isinstance(shape, list) else shape)
            return self._functions(module).init_fn(key, shape)
        if isinstance(module, Sequence):
            params = []
            for part in module.modules:
                key, own = _split(key, 2)
                shape, found = self._drawn(part, own, shape)
                params.append(found)
            return shape, params
        _check(module, shape if isinstance(shape, list) else None)
        if module.opens_branches:
            return [shape] * module.number, ()
        if module.keeps_branches:
            keys = _split(key, len(shape))
            found = [self._drawn(*branch) for branch in zip(module.modules, keys, shape)]
            return [one for one, _ in found], tuple(params for _, params in found)
        if module.takes_branches:
            return module.shape_of(shape), ()
        params = []
        for _ in range(module.times):
            key, own = _split(key, 2)
            shape, found = self._drawn(module.module, own, shape)
            params.append(found)
        return shape, params

    def _outputs(self, module, params, x, key, kwargs):
        if is_plain(module):
            _check(module, x)
            return self._functions(module).apply_fn(params, x, key, **kwargs)
        if isinstance(module, Sequence):
            for part, own, own_key in zip(module.modules, params, _split(key, len(module.modules))):
                x = self._outputs(part, own, x, own_key, kwargs)
            return x
        _check(module, x)
        if module.opens_branches:
            return [x] * module.number
        if module.keeps_branches:
            return type(x)([self._outputs(*branch, kwargs) for branch in zip(module.modules, params, x, _split(key, len(x)))])
        if module.takes_branches:
            return joined(module, x)
        for own in params:
            x = self._outputs(module.module, own, x, key, kwargs)
        return x


def _shape_of(shape):
    """A shape as a tuple, or those of several inputs in lists."""
    if any(isinstance(part, (list, tuple)) for part in shape):
        return [_shape_of(part) for part in shape]
    return tuple(shape)


def _in_tuples(shape):
    return tuple(map(_in_tuples, shape)) if isinstance(shape, list) else shape


def _split(key, count):
    if key is None:
        return [None] * count
    if is_of_jax(key):
        import jax

        return list(jax.random.split(key, count))
    return [seed_of(np.array([seed_of(key), k])) for k in range(count)]
