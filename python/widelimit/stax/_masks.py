"""Masks of activations: which entries do not count before a layer, and which after it.

A mask is a boolean array of NumPy or JAX with the axes of the activations, in which an axis may have the size 1; True stands for what
does not count.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from operator import and_
from types import SimpleNamespace
from typing import Any, Callable, Dict, Tuple

import numpy as np

from .._jax import is_of_jax


@dataclass(frozen=True)
class MaskedArray:
    """What apply_fn gives for inputs with a mask_constant: outputs, and which of them do not count.

    masked_value  an array, or a tree of arrays
    mask          of the same axes, which may have the size 1: True where an output does not count

    apply_fn takes one too, in place of inputs with a mask_constant. JAX sees it as a tree of arrays."""

    masked_value: Any
    mask: Any

    def __post_init__(self) -> None:
        if "jax" in sys.modules:
            _register()

    def replace(self, **changes: Any) -> MaskedArray:
        """The same with another field."""
        return replace(self, **changes)

    def asdict(self) -> Dict[str, Any]:
        """Fields by their names; arrays are not copied."""
        return {"masked_value": self.masked_value, "mask": self.mask}

    def astuple(self) -> Tuple[Any, Any]:
        """Fields in their order; arrays are not copied."""
        return self.masked_value, self.mask


@lru_cache(1)
def _register():
    tree_util = sys.modules["jax"].tree_util
    tree_util.register_pytree_node(MaskedArray, lambda array: (array.astuple(), None), lambda _, children: MaskedArray(*children))


def with_zeros(array: Any, mask: Any) -> Any:
    """An array with zeros where its mask says that nothing counts; mask: None if everything does."""
    if mask is None:
        return array
    return _module_of(array, mask).where(mask, array.dtype.type(0), array)


def masked(x: Any, mask_constant: Any) -> Any:
    """The MaskedArray of inputs in which this number (it may be NaN) stands for what does not count; None: the inputs. x: an array, a
    MaskedArray, which stays as it is, or a list of them."""
    if isinstance(x, (list, tuple)):
        return type(x)(masked(one, mask_constant) for one in x)
    if mask_constant is None or isinstance(x, MaskedArray):
        return x
    module = _module_of(x, mask_constant)
    mask = module.where(module.isnan(mask_constant), module.isnan(x), x == mask_constant)
    return MaskedArray(with_zeros(x, mask), mask)


def unmasked(outputs: Any) -> Any:
    """Outputs, a tree of arrays, with zeros where nothing counts."""
    if isinstance(outputs, dict):
        return {name: unmasked(part) for name, part in outputs.items()}
    if isinstance(outputs, (list, tuple)) and not hasattr(outputs, "_fields"):
        return type(outputs)(map(unmasked, outputs))
    return with_zeros(*outputs.astuple()) if isinstance(outputs, MaskedArray) else outputs


def parts_of(x: Any) -> Tuple[Any, Any]:
    """Arrays and their masks, or lists of both."""
    if isinstance(x, (list, tuple)):
        pairs = [parts_of(one) for one in x]
        return [array for array, _ in pairs], [mask for _, mask in pairs]
    return (with_zeros(*x.astuple()), x.mask) if isinstance(x, MaskedArray) else (x, None)


def mask_after(module: Any, mask: Any, value: Any) -> Any:
    """The mask of the outputs of one layer; value: the form of what comes before it (_module.py)."""
    if isinstance(mask, list):
        return _MASKS[module.in_jax](module, mask, value) if any(one is not None for one in mask) else None
    return mask if mask is None or module.in_jax not in _MASKS else _MASKS[module.in_jax](module, mask, value)


def mask_through(module: Any, mask: Any, value: Any, seen: Any = None) -> Any:
    """The mask of the outputs of a network, or None, and the form of these; seen(mask, form) is called after each layer outside of
    branches. value: the form of the inputs."""
    if mask is None:
        return None, module.apply(value)
    if module.opens_branches:
        return [mask] * module.number, module.apply(value)
    if module.keeps_branches:
        return [mask_through(*branch)[0] for branch in zip(module.modules, mask, value.values)], module.apply(value)
    if module.parts():
        for part in getattr(module, "modules", None) or (module.module,) * module.times:
            mask, value = mask_through(part, mask, value, None if isinstance(mask, list) else seen)
        return mask, value
    behind = module.apply(value)
    mask = mask_after(module, mask, value)
    if seen is not None and mask is not None and not isinstance(mask, list):
        seen(mask, behind)
    return mask, behind


def joined(module: Any, xs: Any) -> Any:
    """What a fan-in makes of outputs of branches."""
    arrays, masks = parts_of(list(xs))
    found = module.outputs_of(arrays)
    forms = SimpleNamespace(values=[SimpleNamespace(full_shape=np.shape(array)) for array in arrays])
    mask = mask_after(module, masks, forms)
    return found if mask is None else MaskedArray(found, mask)


def _module_of(*arrays):
    if any(map(is_of_jax, arrays)):
        import jax.numpy as jnp

        return jnp
    return np


def _of_channels(module, mask, value):
    """Layers with weights see all channels: of a position all must be masked."""
    return mask.all(value.channel_axis, keepdims=True)


def _convolution(module, mask, value):
    mask = _of_channels(module, mask, value)
    if not module.filter_shape:
        return mask
    behind = module.before_turning(value)
    mask = _of_positions(mask, value)
    if module.kind == "conv_transpose":
        found = _transposed(module, mask, behind)
    else:
        found = mask[(slice(None), *_middles(module.filter_shape, module.strides, module.padding, value.shape, behind.shape))]
    return module.turned(_module_of(mask).moveaxis(found, (0, -1), (behind.batch_axis, behind.channel_axis)), behind)


def _of_positions(mask, value):
    """The mask with the batch first, the channels last, and all positions."""
    mask = _module_of(mask).moveaxis(mask, (value.batch_axis, value.channel_axis), (0, -1))
    return _module_of(mask).broadcast_to(mask, (len(mask), *value.shape, mask.shape[-1]))


def _middles(window, strides, padding, shape, behind):
    """The positions in the middle of windows, which say whether what a window gives counts."""
    found = []
    for size, width, stride, count in zip(shape, window, strides, behind):
        before = 0 if padding == "valid" else max((count - 1) * stride + width - size, 0) // 2
        start = (width - 1) // 2 - before
        found.append(slice(start, start + 1 + (count - 1) * stride, stride))
    return tuple(found)


def _transposed(module, mask, behind):
    """What reads a masked position is masked."""
    import jax.numpy as jnp
    from jax import lax

    from ._windows import folded, numbers_of

    axes = len(module.filter_shape)
    numbers = numbers_of(axes), numbers_of(axes, True), numbers_of(axes)
    padding = "VALID" if module.padding == "circular" else module.padding.upper()
    found = lax.conv_transpose(jnp.asarray(mask, jnp.float32), jnp.ones((*module.filter_shape, 1, 1), jnp.float32), module.strides,
                               padding, dimension_numbers=numbers)
    found = folded(found, (len(mask), *behind.shape, 1)) if module.padding == "circular" else found
    return found > 0 if is_of_jax(mask) else np.asarray(found) > 0


def _pool(module, mask, value):
    if not module.window:
        return mask
    behind = module.apply(value)
    mask = _of_positions(mask, value)
    found = mask[(slice(None), *_middles(module.window, module.strides, module.padding, value.shape, behind.shape))]
    return _module_of(mask).moveaxis(found, (0, -1), (behind.batch_axis, behind.channel_axis))


def _global_pool(module, mask, value):
    return mask.all(value.spatial_axes)


def _flatten(module, mask, value):
    sizes = list(value.full_shape)
    sizes[value.batch_axis] = mask.shape[value.batch_axis]
    mask = _module_of(mask).broadcast_to(mask, sizes)
    flat = _module_of(mask).moveaxis(mask, (value.batch_axis, value.channel_axis), (0, -1)).reshape(sizes[value.batch_axis], -1)
    return flat if module.batch_axis_out == 0 else flat.T


def _resize(module, mask, value):
    """What has a share of something that counts, counts."""
    import jax

    shape = list(mask.shape)
    for axis, size in zip(value.spatial_axes, module.apply(value).shape):
        shape[axis] = size
    found = jax.image.resize(jax.numpy.asarray(~mask, jax.numpy.float32), shape, module.method, module.antialias) == 0
    return found if is_of_jax(mask) else np.asarray(found)


def _index(module, mask, value):
    sizes = [mask.shape[axis] if size == -1 or axis == value.channel_axis else size for axis, size in enumerate(value.full_shape)]
    return _module_of(mask).broadcast_to(mask, sizes)[module.index]


def _dot_general(module, mask, value):
    """What has a share of something that counts, counts."""
    if module.other.ndim == 0:
        return mask if module.other != 0 else mask | True
    sizes = [mask.shape[axis] if size == -1 or axis == value.channel_axis else size for axis, size in enumerate(value.full_shape)]
    (ours, theirs), order = module._labels(len(sizes))
    arrays = _module_of(mask)
    counts = arrays.broadcast_to(~mask, sizes).astype(np.float32)
    return arrays.einsum(counts, ours, arrays.asarray(module.other != 0, np.float32), theirs, order) == 0


def _fan_in(module, masks, value):
    return reduce(and_, [mask for mask in masks if mask is not None])


def _concat(module, masks, value):
    forms = [one.full_shape for one in value.values]
    axis = module.axis % len(forms[0])
    arrays = _module_of(*masks)
    shape = [max(sizes) for sizes in zip(*(mask.shape for mask in masks if mask is not None))]
    found = []
    for mask, form in zip(masks, forms):
        wanted = [*shape[:axis], form[axis] if form[axis] != -1 else shape[axis], *shape[axis + 1:]]
        found.append(np.zeros(wanted, bool) if mask is None else arrays.broadcast_to(mask, wanted))
    return arrays.concatenate(found, axis)


_MASKS: Dict[str, Callable[[Any, Any, Any], Any]] = {
    "dense": _of_channels,
    "attention": _of_channels,
    "convolution": _convolution,
    "pool": _pool,
    "global_pool": _global_pool,
    "flatten": _flatten,
    "resize": _resize,
    "index": _index,
    "dot_general": _dot_general,
    "fan_in": _fan_in,
    "concat": _concat,
}
