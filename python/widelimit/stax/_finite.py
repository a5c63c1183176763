"""init_fn and apply_fn: networks of finite width."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, List, Sequence, Tuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._arrays import numbers
from .._core import Network
from .._caller import caller_of
from .._differentiable import differentiated
from .._jax import refuse_traced
from ..finite import FiniteNetwork
from ._inputs import batch_of, same_inputs
from ._live import LiveOutputs
from ._module import start
from ._request import counted
from ._widths import chosen_widths


def seed_of(key, name="key"):
    """The seed of an integer, or of a key of JAX (an array of integers, or a typed key)."""
    refuse_traced(name, key)
    if hasattr(key, "dtype") and "key" in str(key.dtype):
        import jax

        key = jax.random.key_data(key)
    words = np.atleast_1d(np.asarray(key))
    if words.dtype.kind not in "iu":
        raise TypeError(f"{name}: expected an integer or a JAX key, got {key!r}")
    seed = 0
    for word in words.ravel():
        seed = (seed * 0x9E3779B97F4A7C15 + int(word)) % 2**63
    return seed


def only_part(params):
    """The array in a list of parameters, or the array itself."""
    if not isinstance(params, (list, tuple)):
        return params
    if len(params) != 1:
        raise ValueError(f"params: expected a list with one array, as init_fn gives it, got {len(params)} of them")
    return params[0]


def _shape_behind(value, first, input_shape):
    """Shape of outputs for inputs of a full shape in front of the network, with as many inputs, or -1 for any number."""
    inputs = int(input_shape[first.batch_axis])
    count = inputs if inputs == -1 else counted(inputs, value.rows)
    return tuple(count if size == -1 else size for size in value.full_shape)


def rng_among(name, kwargs):
    """The rng of arguments that go to apply_fn. NotImplementedError for others of neural-tangents', TypeError for those
    that it does not know."""
    unknown = sorted(set(kwargs) - {"rng", "mask_constant", "pattern"})
    if unknown:
        raise TypeError(f"{name}: unknown arguments {unknown}: expected those of apply_fn, rng")
    for other in ("mask_constant", "pattern"):
        if kwargs.get(other) is not None:
            raise NotImplementedError(f"{name}: {other}: networks of finite width have neither masks nor patterns; leave "
                                      "masked positions out, or give graphs to widelimit.FiniteNetwork")
    return kwargs.get("rng")


def _draws(module):
    return module.draws or any(_draws(part) for part in module.parts())


class FiniteFunctions:
    """init_fn(key, input_shape) -> (output_shape, parameters); apply_fn(parameters, x) -> outputs.

    Parameters are a list with one array, independent standard normal numbers at the start. Widths are those that the
    layers were given. Where layers draw at random (Dropout), apply_fn needs `rng`, a key: equal keys draw the same for
    equal inputs at equal places.
    """

    def __init__(self, module):
        self.module = module
        self._networks = {}

    def __reduce__(self):
        return FiniteFunctions, (self.module,)

    def init_fn(self, key: Any, input_shape: Sequence[int]) -> Tuple[Tuple[int, ...], List[NDArray[np.float64]]]:
        first = start(self.module, input_shape)
        value = self._behind(first)
        parameters = self._made(first, value, seed_of(key)).parameters
        return _shape_behind(value, first, input_shape), [caller_of(key).give(parameters)]

    def apply_fn(self, params: Any, x: ArrayLike, rng: Any = None, **kwargs: Any) -> Any:
        rng_among("apply_fn", kwargs)
        caller = caller_of(params, x)
        if not caller.is_live:
            return caller.give(self.outputs(only_part(params), x, rng), "own")
        refuse_traced("rng", rng)
        first = start(self.module, np.shape(x))
        value, _ = self._idle(first)
        outputs = LiveOutputs(self, rng, _shape_behind(value, first, np.shape(x)))
        return differentiated(outputs, [only_part(params), x])[0]

    def outputs(self, parameters: Any, x: Any, rng: Any = None) -> Any:
        """Outputs at arrays, for parameters in one array."""
        with self._prepared(parameters, numbers(x, name="inputs")) as (network, batches, value):
            outputs = network(*batches, draw=self._draw(rng))
        return np.moveaxis(outputs, (0, 1), (value.batch_axis, value.channel_axis))

    def gradients(self, parameters: Any, x: Any, weights: Any, wanted: Sequence[bool], rng: Any = None) -> List[Any]:
        """Of the sum of weights times outputs by parameters and by inputs, None where they are not wanted."""
        with self._prepared(parameters, numbers(x, name="inputs")) as (network, batches, value):
            rows = np.moveaxis(numbers(weights), (value.batch_axis, value.channel_axis), (0, 1))
            found = network.vector_jacobian(*batches, rows, draw=self._draw(rng)) if wanted[0] else None
            if not wanted[1]:
                return [found, None]
            slopes = sum(rows[:, k].reshape(-1, *[1] * (batches[0].ndim - 1)) * network.input_jacobian(*batches, k)
                         for k in range(network.outputs))
        first = start(self.module, np.shape(x))
        return [found, np.moveaxis(slopes, (0, -1), (first.batch_axis, first.channel_axis))]

    def check_input_gradients(self) -> None:
        """NotImplementedError where there are no derivatives by inputs."""
        if _draws(self.module):
            raise NotImplementedError("apply_fn: derivatives by inputs: expected a network without Dropout")

    def _draw(self, rng):
        """The number of the draws of a key. ValueError where it is missing, as in neural-tangents."""
        if rng is not None:
            return seed_of(rng, "rng")
        if _draws(self.module):
            raise ValueError("rng: expected a key (an integer or a JAX key): the network has Dropout, which draws at random")
        return 0

    def _traced(self, params, x, rng):
        """Within a function that JAX compiles: an array, computed when it runs."""
        refuse_traced("rng", rng)
        first = start(self.module, np.shape(x))
        value, _ = self._idle(first)
        return called_back("apply_fn", lambda parameters, inputs: [self.apply_fn(parameters, inputs, rng)],
                           [_shape_behind(value, first, np.shape(x))], only_part(params), x)[0]

    def empirical(self, params, x1, x2, name, rng=None):
        """The empirical kernel 'nngp' or 'ntk' between two batches, [n1, n2]. Equal batches are one: for both of its
        inputs dropout draws the same."""
        left, right = self._sides(x1, x2)
        with self._prepared(params, left, *(() if right is None else (right,))) as (network, batches, _):
            return getattr(network, name)(*batches, draw=self._draw(rng))

    def jacobians(self, params, x1, x2=None, rng=None):
        """Gradients of all outputs, [n, outputs, parameters], at the inputs of both batches, or of one where they are equal
        or there is no x2; draws as in empirical()."""
        left, right = self._sides(x1, x2)
        draw, sides = self._draw(rng), (left,) if right is None else (left, right)
        with self._prepared(params, *sides) as (network, batches, _):
            firsts = (0, len(batches[0]))
            return [np.stack([network.jacobian(batch, k, draw=draw, first_input=first) for k in range(network.outputs)], 1)
                    for batch, first in zip(batches, firsts)]

    @staticmethod
    def _sides(x1, x2):
        left = numbers(x1, name="x1")
        right = None if x2 is None else numbers(x2, name="x2")
        return left, None if right is None or same_inputs(left, right) else right

    @contextmanager
    def _prepared(self, params, *batches):
        """A network with these parameters that nobody else uses meanwhile, the batches with channels last, and the value
        behind the network."""
        first = start(self.module, batches[0].shape)
        value, idle = self._idle(first)
        try:
            network = idle.pop()
        except IndexError:
            network = self._made(first, value)
        try:
            network.parameters = numbers(only_part(params), name="params")
            yield network, [batch_of(batch, first, None, None).chosen(value.rows).array for batch in batches], value
        finally:
            idle.append(network)

    def _idle(self, first):
        """The value behind the network, and the networks that no call uses: as many as calls ran at once."""
        if first not in self._networks:
            self._networks.setdefault(first, (self._behind(first), []))
        return self._networks[first]

    def _behind(self, first):
        value = self.module.apply(first)
        if value.shape:
            raise NotImplementedError("init_fn, apply_fn: expected a network with a readout over positions")
        return value

    @staticmethod
    def _made(first, value, seed=0):
        return FiniteNetwork(Network(list(value.layers)), first.shape, first.channels, outputs=value.channels,
                             widths=chosen_widths(value.places), seed=seed)
