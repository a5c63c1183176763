"""Windows that move over arrays of JAX."""

import jax.numpy as jnp
import numpy as np
from jax import lax


def numbers_of(axes, is_filter=False):
    """The dimension numbers of a convolution over so many axes, channels last."""
    letters = "DHW"[-axes:] if axes else ""
    return letters + "IO" if is_filter else "N" + letters + "C"


def wrapped(x, window, strides):
    """The array with its other side beyond the edges, as far as windows of zeros' SAME padding reach."""
    return jnp.pad(x, lax.padtype_to_pads(x.shape, window, strides, "SAME"), "wrap")


def folded(x, shape):
    """The way back from wrapped(): what lies beyond an edge is added at the other side."""
    for axis, size in enumerate(shape):
        excess = x.shape[axis] - size
        if excess:
            places = (np.arange(x.shape[axis]) - excess // 2) % size
            x = jnp.moveaxis(jnp.zeros_like(jnp.moveaxis(x, axis, 0)[:size]).at[places].add(jnp.moveaxis(x, axis, 0)), 0, axis)
    return x
