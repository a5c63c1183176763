"""Parameters of networks of finite width drawn by JAX, from keys split as neural-tangents splits them.

drawn(module, key, value, shapes): the parameters of a module, nested as _structure.py says, after a value (_module.py);
shapes: a Shapes with the number of attention heads.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import random



def drawn(module, key, value, shapes):
    """See above."""
    own = _DRAWN.get(module.in_jax)
    return () if own is None else own(module, key, value, shapes)


def _serial(module, key, value, shapes):
    found = []
    for part in module.modules:
        key, own = random.split(key)
        found.append(drawn(part, own, value, shapes))
        value = part.apply(value)
    return found


def _parallel(module, key, value, shapes):
    module.apply(value)  # Checks the number of branches.
    keys = random.split(key, len(module.modules))
    return tuple(drawn(*branch, shapes) for branch in zip(module.modules, keys, value.values))


def _repeat(module, key, value, shapes):
    found = []
    for _ in range(module.times):
        key, own = random.split(key)
        found.append(drawn(module.module, own, value, shapes))
        value = module.module.apply(value)
    if not found:
        return ()
    forms = [jax.tree_util.tree_map(jnp.shape, one) for one in found]
    return found if any(form != forms[0] for form in forms) else jax.tree_util.tree_map(
        lambda *arrays: jnp.stack(arrays), *found)


def _pair(module, key, value, shapes, scale):
    """(weights, biases) of standard normal numbers; in the standard parametrisation times their deviations."""
    first, second = random.split(key)
    weights, biases = module.parameters(value, shapes)
    is_standard = str(module.parameterization).lower() == "standard"
    drawn_weights = random.normal(first, weights.shape) * (scale if is_standard else 1)
    if biases is None:
        return drawn_weights, None
    return drawn_weights, random.normal(second, biases.shape) * (module.b_std if is_standard else 1)


def _dense(module, key, value, shapes):
    return _pair(module, key, value, shapes, module.W_std / (value.channels / module.s[0]) ** 0.5)


def _convolution(module, key, value, shapes):
    fan_in = value.channels * int(np.prod(module.filter_shape))
    return _pair(module, key, value, shapes, module.W_std / (fan_in / module.s[0]) ** 0.5)


def _attention(module, key, value, shapes):
    keys = random.split(key, 6)
    return tuple(None if place is None else random.normal(own, place.shape)
                 for own, place in zip(keys, module.parameters(value, shapes)))


def _recurrent(module, key, value, shapes):
    return tuple(None if place is None else random.normal(own, place.shape)
                 for own, place in zip(random.split(key, 3), module.parameters(value, shapes)))


_DRAWN = {"serial": _serial, "parallel": _parallel, "repeat": _repeat, "dense": _dense, "convolution": _convolution, "attention": _attention,
          "recurrent": _recurrent}
