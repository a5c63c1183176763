"""A network of finite width, for inputs of one form, as functions of JAX's arrays alone."""

from __future__ import annotations

import jax.numpy as jnp

from .._jax import with_any_ranks
from ._drawn import drawn
from ._keys import key_of
from ._masks import MaskedArray, masked
from ._outputs import Given, outputs
from ._request import counted
from ._structure import Shapes, check_parameters


class JaxNetwork:
    """first: the value before the network (_module.py); heads: of attention, as Shapes takes them."""

    def __init__(self, module, first, heads):
        self._module, self._first, self._heads = module, first, heads
        self._tree, self._behind = module.form(first, Shapes(heads))

    def drawn(self, key, input_shape):
        """(shape of outputs, parameters): that of neural-tangents' init_fn, with its draws."""
        inputs = int(input_shape[self._first.batch_axis])
        count = inputs if inputs == -1 else counted(inputs, self._behind.rows)
        shape = tuple(count if size == -1 else size for size in self._behind.full_shape)
        return shape, drawn(self._module, key_of(key), self._first, Shapes(self._heads))

    @with_any_ranks
    def outputs(self, params, x, key, mask_constant=None, pattern=None):
        """Outputs in the layout of the layers; a MaskedArray for inputs with a mask_constant, or with a mask. ValueError for parameters
        of another structure or other shapes."""
        check_parameters(self._tree, params)
        x = masked(_real(x), mask_constant)
        return outputs(self._module, params, x, self._first, Given(None if key is None else key_of(key, "rng"), pattern))


def _real(x):
    """Inputs as real numbers."""
    if isinstance(x, MaskedArray):
        return MaskedArray(_real(x.masked_value), jnp.asarray(x.mask))
    x = jnp.asarray(x)
    return x if jnp.issubdtype(x.dtype, jnp.inexact) else x.astype(jnp.result_type(float))
