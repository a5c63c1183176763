"""init_fn and apply_fn: networks of finite width."""

from __future__ import annotations

import importlib.util
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, List, Sequence, Tuple

import numpy as np
from numpy.typing import ArrayLike

from .._arrays import numbers
from .._core import Network
from .._caller import caller_of
from .._differentiable import differentiated
from .._jax import called_back, concretely, double_precision, is_traced, refuse_traced
from ..finite import FiniteNetwork
from ._inputs import batch_of, same_inputs
from ._live import LiveOutputs
from ._masks import MaskedArray, unmasked
from ._module import start
from ._request import counted
from ._structure import Counter, Packer, unpacked
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


@dataclass(frozen=True)
class Beside:
    """What apply_fn takes beside inputs: a key of draws, the number of what does not count, and graphs."""

    rng: Any = None
    mask_constant: Any = None
    pattern: Any = None

    @staticmethod
    def of(name, kwargs):
        """Of keyword arguments; others are ignored, as in neural-tangents, with one warning for each."""
        known = {what: kwargs[what] for what in ("rng", "mask_constant", "pattern") if what in kwargs}
        warn_of_unknown(name, set(kwargs) - set(known))
        return Beside(**known)

    def asks_for_jax(self, x):
        """Whether the library has no networks of finite width that take it."""
        return self.mask_constant is not None or self.pattern is not None or isinstance(x, MaskedArray)


_IGNORED = {"batch_size", "device_count", "store_on_device", "rng", "key", "k"}


def warn_of_unknown(name, others):
    """Warns of keywords that neural-tangents ignores, once for each of them."""
    for other in sorted(set(others) - _IGNORED):
        _IGNORED.add(other)
        warnings.warn(f"{name}: {other}: there is no such argument, and it is ignored, as in neural-tangents", UserWarning,
                      stacklevel=4)


def _draws(module):
    return module.draws or any(_draws(part) for part in module.parts())


class _Site:
    """A network of finite width for inputs of one form: the values before and after it, the structure of its parameters,
    and the networks that no call uses at the moment, as many as calls ran at once.

    A network that leaves positions where they are is one of vectors, for which every position is an input.
    """

    def __init__(self, module, first):
        counter = Counter(heads_of(module))
        tree, value = module.form(first, counter)
        if value.shape and not module.is_pointwise:
            raise NotImplementedError("init_fn, apply_fn: expected a network with a readout over positions, or one that "
                                      "treats every position by itself")
        self.first, self.value, self.tree = first, value, tree
        self.form = () if value.shape else first.shape
        self.heads, self.idle = counter.heads, []
        self.packed = Packer(tree, counter.count)

    def made(self, seed=0):
        value, (heads, width) = self.value, self.heads
        made = FiniteNetwork(Network(list(value.layers)), self.form, self.first.channels, outputs=value.channels,
                             widths=chosen_widths(value.places), seed=seed, hidden=heads * width, heads=heads)
        if len(made.parameters) != self.packed.count:
            raise AssertionError(f"init_fn: expected {self.packed.count} parameters, got {len(made.parameters)}")
        return made

    def inputs(self, x):
        """A batch in the form that the network takes."""
        array = batch_of(x, self.first, None, None).chosen(self.value.rows).array
        return array.reshape(-1, array.shape[-1]) if self.value.shape else array

    def outputs(self, rows):
        """Outputs [n, channels, ...] of a batch in the layout of the layers, other axes last."""
        return self._laid_out(rows, 1 + len(self.value.shape))

    def _laid_out(self, rows, channel):
        if self.value.shape:
            rows = rows.reshape(-1, *self.value.shape, *rows.shape[1:])
        return np.moveaxis(rows, (0, channel), (self.value.batch_axis, self.value.channel_axis))

    def rows(self, outputs):
        """The backward pass."""
        found = np.moveaxis(outputs, (self.value.batch_axis, self.value.channel_axis), (0, -1))
        return found.reshape(-1, found.shape[-1])

    def full_shape(self, input_shape):
        """The shape of outputs for inputs of a full shape before the network, with as many inputs, or -1 for any number."""
        inputs = int(input_shape[self.first.batch_axis])
        count = inputs if inputs == -1 else counted(inputs, self.value.rows)
        return tuple(count if size == -1 else size for size in self.value.full_shape)


def heads_of(module):
    """(heads, channels of keys) of the first attention layer; in the library all attention layers have the same."""
    return next(((layer.n_heads, layer.n_chan_key) for layer in _attention_in(module)), (8, 32))


def _attention_in(module):
    if hasattr(module, "n_heads"):
        yield module
    for part in module.parts():
        yield from _attention_in(part)


def in_double_by_jax(function, *trees):
    """function(*trees), computed by JAX in double precision, with arrays of NumPy on both sides."""
    if importlib.util.find_spec("jax") is None:
        raise NotImplementedError("networks of finite width with masks, graphs, and GlobalSelfAttention with n_chan_val other than "
                                  "n_chan_key, 'CONCAT', different attention layers or vectors are computed by JAX, which is not "
                                  "installed: pip install 'widelimit[jax]'")
    import jax

    with double_precision(), concretely():  # Also within a function that JAX compiles: these are constants there.
        given = [jax.tree_util.tree_map(_of_jax, tree) for tree in trees]
        return jax.tree_util.tree_map(lambda leaf: np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf, function(*given))


def _of_jax(array):
    """An array of JAX: of numbers in double precision, or a mask."""
    import jax.numpy as jnp

    return jnp.asarray(array if getattr(array, "dtype", None) == bool else numbers(array))


class FiniteFunctions:
    """init_fn(key, input_shape) -> (output_shape, parameters); apply_fn(parameters, x) -> outputs.

    Parameters are nested as in neural-tangents, and independent standard normal numbers at the start (in the standard
    parametrisation they are the weights themselves). Widths are those given to the layers. If layers draw at random
    (Dropout), apply_fn needs a key `rng`: equal keys draw the same for equal inputs at equal places.
    """

    def __init__(self, module):
        self.module = module
        self._sites, self._jax_networks = {}, {}

    def __reduce__(self):
        return FiniteFunctions, (self.module,)

    def init_fn(self, key: Any, input_shape: Sequence[int]) -> Tuple[Tuple[int, ...], Any]:
        caller = caller_of(key)
        if self.is_of_jax(caller):
            return self._of_jax(input_shape).drawn(key, input_shape)
        if self.asks_for_jax(input_shape):
            return in_double_by_jax(lambda: self._of_jax(input_shape).drawn(seed_of(key) % 2**32, input_shape))
        site = self.site(input_shape)
        shape = site.full_shape(input_shape)
        if is_traced(key):
            return shape, _traced_parameters(site, key)
        return shape, caller.give(unpacked(site.tree, site.made(seed_of(key)).parameters, np.zeros))

    def apply_fn(self, params: Any, x: ArrayLike, rng: Any = None, **kwargs: Any) -> Any:
        """Outputs; for inputs with a mask_constant, or a MaskedArray, a MaskedArray."""
        return self._applied(params, x, Beside.of("apply_fn", {**kwargs, "rng": rng}))

    def unmasked_apply_fn(self, params: Any, x: ArrayLike, rng: Any = None, **kwargs: Any) -> Any:
        """Outputs, with zeros for those that do not count."""
        return unmasked(self._applied(params, x, Beside.of("apply_fn", {**kwargs, "rng": rng})))

    def _applied(self, params, x, beside):
        if len(_shape_of(x)) < 2:
            return self._outputs_of_few_axes(params, x, beside.rng)
        caller = caller_of(params, x, beside)
        if self.is_of_jax(caller):
            return self._by_jax(params, x, beside)
        if beside.asks_for_jax(x) or self.asks_for_jax(_shape_of(x)):
            self.check_jax(caller)
            return caller.give(in_double_by_jax(lambda params, x: self._by_jax(params, x, beside), params, x), "own")
        site = self.site(np.shape(x))
        if not caller.is_live:
            return caller.give(self.outputs(site.packed(params), x, beside.rng), "own")
        refuse_traced("rng", beside.rng)
        outputs = LiveOutputs(self, beside.rng, site.full_shape(np.shape(x)))
        return differentiated(outputs, [site.packed(params), x])[0]

    def _by_jax(self, params, x, beside):
        return self._of_jax(_shape_of(x)).outputs(params, x, self._checked_key(beside.rng), beside.mask_constant, beside.pattern)

    def _outputs_of_few_axes(self, params, x, rng):
        """Outputs of an elementwise function at numbers, or of a network at one point: biases [1, C] give it the axis of a batch,
        as in neural-tangents."""
        array = x if hasattr(x, "reshape") else np.asarray(x)
        if _is_elementwise(self.module):
            return self.apply_fn(params, array.reshape(-1, 1), rng).reshape(array.shape)
        if array.ndim == 0 or not self.module.is_pointwise:
            raise ValueError(f"apply_fn: expected inputs [n, ..., channels] with at least two axes, or one point [channels] for layers "
                             f"that treat every position by itself, got shape {array.shape}")
        outputs = self.apply_fn(params, array[None], rng)
        return outputs if _has_biases(params) else outputs[0]

    def is_of_jax(self, caller: Any) -> bool:
        """Whether a caller's networks are functions of JAX's arrays alone: it has some, and JAX knows all layers."""
        return caller.name == "JAX" and self.are_layers_of_jax

    def asks_for_jax(self, shape: Sequence[int]) -> bool:
        """Whether the library has no networks of finite width with these layers, and JAX has."""
        attention = list(_attention_in(self.module))
        return any(layer.asks_for_jax or (layer.n_heads, layer.n_chan_key) != (attention[0].n_heads, attention[0].n_chan_key)
                   for layer in attention) or (bool(attention) and len(shape) == 2) or aggregates(self.module)

    def check_jax(self, caller: Any) -> None:
        """NotImplementedError where networks of finite width that only JAX has cannot be computed."""
        if caller.is_live or not self.are_layers_of_jax:
            raise NotImplementedError("apply_fn: masks, graphs, and GlobalSelfAttention with n_chan_val other than n_chan_key, 'CONCAT', no "
                                      "positions or different attention layers: expected arrays or tensors that require no gradients, "
                                      "and layers that JAX knows (not functions of NumPy, nor encodings with a pos_emb_decay_fn)")

    @cached_property
    def are_layers_of_jax(self) -> bool:
        from ._outputs import is_of_jax

        return is_of_jax(self.module)

    def _of_jax(self, shape):
        from ._jax_network import JaxNetwork

        first = start(self.module, shape)
        if first not in self._jax_networks:
            self._jax_networks.setdefault(first, JaxNetwork(self.module, first, heads_of(self.module)))
        return self._jax_networks[first]

    def site(self, shape: Sequence[int]) -> _Site:
        """The network for inputs of a full shape."""
        first = start(self.module, shape)
        if first not in self._sites:
            self._sites.setdefault(first, _Site(self.module, first))
        return self._sites[first]

    def packed(self, params: Any, x: Any) -> Any:
        """Parameters in the order of the library, [count], of the network for these inputs."""
        return self.site(np.shape(x)).packed(params)

    def outputs(self, vector: Any, x: Any, rng: Any = None) -> Any:
        """Outputs at arrays, for parameters in one array."""
        with self._prepared(vector, numbers(x, name="inputs")) as (network, batches, site):
            return site.outputs(network(*batches, draw=self._draw(rng)))

    def gradients(self, vector: Any, x: Any, weights: Any, wanted: Sequence[bool], rng: Any = None) -> List[Any]:
        """Gradients of the sum of weights times outputs with respect to parameters and inputs, None for those not wanted."""
        x = numbers(x, name="inputs")
        with self._prepared(vector, x) as (network, batches, site):
            rows = site.rows(numbers(weights))
            found = network.vector_jacobian(*batches, rows, draw=self._draw(rng)) if wanted[0] else None
            if not wanted[1]:
                return [found, None]
            slopes = sum(rows[:, k].reshape(-1, *[1] * (batches[0].ndim - 1)) * network.input_jacobian(*batches, k)
                         for k in range(network.outputs))
        axes = (site.first.batch_axis, site.first.channel_axis)
        last = np.moveaxis(x, axes, (0, -1)).shape
        return [found, np.moveaxis(slopes.reshape(last), (0, -1), axes)]

    def check_input_gradients(self) -> None:
        """NotImplementedError if there are no derivatives with respect to inputs."""
        if _draws(self.module):
            raise NotImplementedError("apply_fn: derivatives by inputs: expected a network without Dropout")

    def _draw(self, rng):
        """The number of a key's draws."""
        return 0 if self._checked_key(rng) is None else seed_of(rng, "rng")

    def _checked_key(self, rng):
        """The key. ValueError if it is missing, as in neural-tangents."""
        if rng is None and _draws(self.module):
            raise ValueError("rng: expected a key (an integer or a JAX key): the network has Dropout, which draws at random")
        return rng

    def empirical(self, params, x1, x2, name, rng=None):
        """The empirical kernel 'nngp' or 'ntk' between two batches, [n1, n2], of outputs without positions. Equal batches
        are one: for both of its inputs dropout draws the same."""
        left, right = self._sides(x1, x2)
        vector = self.packed(params, left)
        with self._prepared(vector, left, *(() if right is None else (right,))) as (network, batches, _):
            return getattr(network, name)(*batches, draw=self._draw(rng))

    def has_positions(self, x: Any) -> bool:
        """Whether outputs have positions."""
        return bool(self.site(np.shape(x)).value.shape)

    def sides(self, params, x1, x2, name, rng=None):
        """Outputs ('nngp'), or their gradients with respect to all parameters ('ntk', one axis after the others), for both
        batches, with the axes of outputs as in apply_fn. One batch only if there is no x2, or if it is x1; draws as in
        empirical()."""
        left, right = self._sides(x1, x2)
        vector, draw = self.packed(params, left), self._draw(rng)
        with self._prepared(vector, *((left,) if right is None else (left, right))) as (network, batches, site):
            found = []
            for batch, first in zip(batches, (0, len(batches[0]))):
                if name == "nngp":
                    found.append(site.outputs(network(batch, draw=draw)))
                    continue
                rows = np.stack([network.jacobian(batch, k, draw=draw, first_input=first) for k in range(network.outputs)], 1)
                found.append(site.outputs(rows))
            return found

    @staticmethod
    def _sides(x1, x2):
        left = numbers(x1, name="x1")
        right = None if x2 is None else numbers(x2, name="x2")
        return left, None if right is None or same_inputs(left, right) else right

    @contextmanager
    def _prepared(self, vector, *batches):
        """A network with these parameters that nobody else uses at the same time, the batches with channels last, and its site."""
        site = self.site(batches[0].shape)
        try:
            network = site.idle.pop()
        except IndexError:
            network = site.made()
        try:
            network.parameters = numbers(vector, name="params")
            yield network, [site.inputs(batch) for batch in batches], site
        finally:
            site.idle.append(network)


def _shape_of(x):
    """The shape of inputs, or of those of a MaskedArray."""
    return np.shape(x.masked_value if isinstance(x, MaskedArray) else x)


def aggregates(module):
    """Whether there is a layer that sums over neighbours in graphs."""
    return module.in_jax == "aggregate" or any(map(aggregates, module.parts()))


def _is_elementwise(module):
    """Whether all layers are functions of single numbers."""
    parts = module.parts()
    return all(map(_is_elementwise, parts)) if parts else module.in_jax in ("nonlinearity", "function", "identity")


def _has_biases(params):
    """Whether there is a pair (weights, biases) among parameters."""
    if not isinstance(params, (list, tuple)):
        return False
    is_pair = len(params) == 2 and np.ndim(params[0] if not isinstance(params[0], (list, tuple)) else ()) == 2
    return (is_pair and params[1] is not None and np.ndim(params[1]) > 1) or any(map(_has_biases, params))


def _traced_parameters(site, key):
    """Parameters for a key that is only known when a function compiled by JAX runs."""
    import jax
    import jax.numpy as jnp

    key = jax.random.key_data(key) if "key" in str(key.dtype) else key
    found = called_back(lambda seed: site.made(seed_of(seed)).parameters, (site.packed.count,), jnp.result_type(float), key)
    return unpacked(site.tree, found, lambda shape: jnp.zeros(shape, found.dtype))
