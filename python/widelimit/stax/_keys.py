"""Keys of JAX, for functions that JAX transforms."""

from __future__ import annotations

from operator import index

import jax
import jax.numpy as jnp
import numpy as np


def key_of(key, name="key"):
    """A key of JAX made of one, or of an integer."""
    if isinstance(key, jax.Array):
        return key
    if np.ndim(key) == 0:
        try:
            return jax.random.PRNGKey(index(key) % 2**32)
        except TypeError:
            raise TypeError(f"{name}: expected an integer or a JAX key, got {key!r}") from None
    return jnp.asarray(key, jnp.uint32)


def split(key, count):
    """`count` keys of one, or of None."""
    return [None] * count if key is None else list(jax.random.split(key, count)) if count else []
