"""init_fn and apply_fn: networks of finite width."""

import numpy as np

from .._arrays import numbers
from .._core import Network
from ..finite import FiniteNetwork
from ._module import start
from ._widths import chosen_widths


def seed_of(key):
    """The seed of an integer, or of a key of JAX (an array of integers, or a typed key)."""
    if hasattr(key, "dtype") and "key" in str(key.dtype):
        import jax

        key = jax.random.key_data(key)
    words = np.atleast_1d(np.asarray(key))
    if words.dtype.kind not in "iu":
        raise TypeError(f"key: expected an integer or a JAX key, got {key!r}")
    seed = 0
    for word in words.ravel():
        seed = (seed * 0x9E3779B97F4A7C15 + int(word)) % 2**63
    return seed


class FiniteFunctions:
    """init_fn(key, input_shape) -> (output_shape, parameters); apply_fn(parameters, x) -> outputs.

    Parameters are a list with one array, independent standard normal numbers at the start. Widths are those that the
    layers were given.
    """

    def __init__(self, module):
        self.module = module
        self._networks = {}

    def init_fn(self, key, input_shape):
        value = self.module.apply(start(self.module, input_shape))
        network = self._network(input_shape, seed_of(key))
        return self._output_shape(value), [network.parameters]

    def apply_fn(self, params, x, rng=None, **kwargs):
        if kwargs:
            raise NotImplementedError(f"apply_fn: arguments {sorted(kwargs)}: networks of finite width take inputs only")
        array = numbers(x, name="inputs")
        network = self._with_parameters(params, array.shape)
        axis = start(self.module, array.shape).channel_axis
        outputs = network(np.moveaxis(array, axis, -1), draw=0 if rng is None else seed_of(rng))
        value = self.module.apply(start(self.module, array.shape))
        return outputs.reshape((len(outputs), *self._output_shape(value)[1:]))

    def empirical(self, params, x1, x2, name):
        """The empirical kernel 'nngp' or 'ntk' between two batches, [n1, n2]."""
        left = numbers(x1, name="x1")
        right = left if x2 is None else numbers(x2, name="x2")
        network = self._with_parameters(params, left.shape)
        axis = start(self.module, left.shape).channel_axis
        return getattr(network, name)(*(np.moveaxis(array, axis, -1) for array in (left, right)))

    def _with_parameters(self, params, shape):
        network = self._network(shape)
        network.parameters = numbers(params[0] if isinstance(params, (list, tuple)) else params, name="params")
        return network

    @staticmethod
    def _output_shape(value):
        return value.full_shape

    def _network(self, input_shape, seed=None):
        key = tuple(input_shape[1:])
        if seed is None and key in self._networks:
            return self._networks[key]
        first = start(self.module, input_shape)
        value = self.module.apply(first)
        if value.shape:
            raise NotImplementedError("init_fn, apply_fn: expected a network with a readout over positions")
        network = FiniteNetwork(Network(list(value.layers)), first.shape, first.channels, outputs=value.channels,
                                widths=chosen_widths(value.places), seed=seed or 0)
        if seed is None:
            self._networks[key] = network
        return network
