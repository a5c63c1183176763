"""kernel_fn: Gram matrices of a stax network."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Optional, Tuple

import numpy as np

from .. import _core
from .._arrays import element_type, numbers
from ..kernels import gram, gram_diagonal
from ._module import start


@dataclass(frozen=True)
class Kernel:
    """Kernels of a batch with itself or with another one: nngp and ntk [n1, n2], variances cov1 [n1] and cov2 [n2] (the
    NNGP of every input with itself; None where x2 is None)."""

    nngp: np.ndarray
    ntk: np.ndarray
    cov1: np.ndarray
    cov2: Optional[np.ndarray]
    x1_is_x2: bool
    shape1: Tuple[int, ...]
    shape2: Tuple[int, ...]


_FIELDS = ("nngp", "ntk", "cov1", "cov2")


def _wanted(get):
    names = _FIELDS if get is None else (get,) if isinstance(get, str) else tuple(get)
    for name in names:
        if name not in _FIELDS:
            raise NotImplementedError(f"get: expected {', '.join(_FIELDS)}, got {name!r}")
    return names


@dataclass(frozen=True)
class _Batch:
    """Inputs, channels last, with their masks and patterns."""

    array: np.ndarray
    mask: Optional[np.ndarray]
    pattern: Any
    shape: Tuple[int, ...]  # As they came.

    def options(self, suffix=""):
        """Of gram(); graphs by their dense patterns, whose rows are sources."""
        found = {"mask": self.mask, "graphs": self.pattern}
        return {name + suffix: value for name, value in found.items() if value is not None}


def _masked(array, mask_constant):
    """True where a position counts: where not every channel is the constant."""
    if mask_constant is None:
        return None
    is_masked = np.isnan(array) if np.isnan(mask_constant) else array == mask_constant
    if np.any(is_masked.any(-1) != is_masked.all(-1)):
        raise NotImplementedError("mask_constant: expected positions whose channels are all masked, or none of them")
    return ~is_masked.all(-1)


class KernelFunction:
    """kernel_fn(x1, x2=None, get=None, *, mask_constant=None, pattern=None, precision=None, threads=0, store=None).

    get     'nngp', 'ntk', 'cov1' or 'cov2' for an array; a tuple of them for a named tuple; None for a Kernel.
    Arrays that are float32 give kernels in float32, others in float64; precision='float' or 'double' decides otherwise.
    """

    def __init__(self, module):
        self.module = module
        self._networks = {}

    def network(self, shape):
        """The library's network for inputs of a full shape, batch first, and the value behind it."""
        key = tuple(shape[1:])
        if key not in self._networks:
            value = self.module.apply(start(self.module, shape))
            self._networks[key] = _core.Network(list(value.layers)), value
        return self._networks[key]

    def __call__(self, x1, x2=None, get=None, *, mask_constant=None, pattern=None, precision=None, threads=0,
                 **others):
        self._check(others)
        names = _wanted(get)
        dtype = element_type(precision, x1, *(() if x2 is None else (x2,)))
        patterns = (None, None) if pattern is None else pattern
        left = self._batch(x1, dtype, "x1", mask_constant, patterns[0])
        right = None if x2 is None else self._batch(x2, dtype, "x2", mask_constant, patterns[1])
        network, value = self.network(left.shape)
        if value.shape:
            raise NotImplementedError(
                f"kernel_fn: expected a network that ends in a readout over positions (Flatten, GlobalAvgPool, "
                f"GlobalSumPool), got one with positions {value.shape} behind it")
        kernels = self._kernels(network, left, right, names, threads)
        if get is None:
            return Kernel(**kernels, x1_is_x2=x2 is None, shape1=self._out_shape(left, value),
                          shape2=self._out_shape(right or left, value))
        if isinstance(get, str):
            return kernels[get]
        return NamedTuple("Kernels", [(name, Any) for name in names])(**kernels)

    @staticmethod
    def _check(others):
        # What neural-tangents' kernel_fn takes and what changes nothing here.
        harmless = {"store", "diagonal_batch", "diagonal_spatial", "batch_size", "device_count", "store_on_device",
                    "rng", "key", "k"}
        unknown = set(others) - harmless
        if unknown:
            raise TypeError(f"kernel_fn: unknown arguments {sorted(unknown)}")
        if others.get("store") is not None:
            raise NotImplementedError("store: expected None; Gram matrices are kept in memory")
        if others.get("diagonal_batch") is False or others.get("diagonal_spatial") is False:
            raise NotImplementedError("diagonal_batch, diagonal_spatial: expected None; they are chosen as needed")

    def _batch(self, x, dtype, name, mask_constant, pattern):
        array = numbers(x, dtype, name)
        axis = start(self.module, array.shape).channel_axis
        last = np.ascontiguousarray(np.moveaxis(array, axis, -1))
        mask = _masked(last, mask_constant)
        if mask is not None:
            last = np.where(mask[..., None], last, dtype(0))
        return _Batch(last, mask, pattern, array.shape)

    @staticmethod
    def _kernels(network, left, right, names, threads):
        result = {}
        wanted = {"nngp", "ntk"} & set(names)
        if wanted:
            kernels = "both" if len(wanted) == 2 else wanted.pop()
            options = {**left.options("1"), **({} if right is None else right.options("2"))}
            both = gram(network, left.array, None if right is None else right.array, kernels, threads=threads,
                        **options)
            result.update(nngp=both.nngp, ntk=both.ntk)
        for name, batch in (("cov1", left), ("cov2", right)):
            if name in names:
                result[name] = None if batch is None else gram_diagonal(network, batch.array, "nngp", threads=threads,
                                                                        **batch.options()).nngp
        return {name: result[name] for name in names}

    @staticmethod
    def _out_shape(batch, value):
        return (batch.shape[0], value.channels)
