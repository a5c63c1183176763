"""init_fn and apply_fn of networks with layers of functions of kernels."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from .._jax import is_of_jax
from ._finite import FiniteFunctions, seed_of
from ._masks import joined
from ._module import Sequence
from ._own import Own, has_own, pieces


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
            self._branches = [OwnFunctions(branch) if has_own(branch) else FiniteFunctions(branch) for branch in module.modules]

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
            return joined(self._module, x)
        given = [kwargs if rng is None else {**kwargs, "rng": _key(rng, k, len(x))} for k in range(len(x))]
        return [branch.apply_fn(own, one, **options) for branch, own, one, options in zip(self._branches, params, x, given)]


def _key(key, k, count):
    """One of several keys that a key makes."""
    if count == 1:
        return key
    if is_of_jax(key):
        import jax

        return jax.random.split(key, count)[k]
    return seed_of(np.array([seed_of(key), k]))
