"""DotGeneral, ImageResize and LayerNorm over the batch, as layers of functions of kernels (_own.py): outputs of an input then depend on
other inputs too."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._jax import concretely
from ._kernel import library
from ._own import Bool, Diagonal, Own, requires
from ._own_layers import masking
from ._triple import Triple, triple


def dot_general(module: Any, dimension_numbers: Any) -> Triple:
    """module: that of DotGeneral, whose axes are among the batch's."""
    other = module.other

    def product(x):
        (ours, theirs), order = module._labels(np.ndim(x))
        return library(x).einsum(x, ours, library(x).asarray(other, x.dtype), theirs, order)

    @requires(diagonal_batch=module.batch_axis not in module.contracted[0],
              diagonal_spatial=Diagonal(input=Bool.YES if set(module.contracted[0]) <= {module.batch_axis} else Bool.NO),
              batch_axis=module.batch_axis, channel_axis=module.channel_axis)
    def kernel_fn(k: Any, **kwargs: Any) -> Any:
        return k.dot_general(other, other, module.is_left, dimension_numbers)

    def mask_fn(mask, shape):
        sizes = [mask.shape[axis] if axis == module.channel_axis % len(shape) else size for axis, size in enumerate(shape)]
        counts = library(mask).broadcast_to(~mask, sizes)
        (ours, theirs), order = module._labels(len(shape))
        return library(mask).einsum(counts.astype(np.float32), ours, library(mask).asarray(other != 0, np.float32), theirs, order) == 0

    return _layer("DotGeneral", lambda shape: product(np.broadcast_to(np.float32(0), shape)).shape,
                  lambda x, mask: product(x), kernel_fn, mask_fn, remask_kernel=False)


def image_resize(module: Any) -> Triple:
    """module: that of ImageResize, with a size for the batch."""
    sizes, axes = module.size, len(module.size)
    batch, channels = module.batch_axis % axes, module.channel_axis % axes
    if sizes[channels] != -1:
        raise ValueError(f"ImageResize: shape: expected -1 for the channels, axis {channels}, got {sizes}")

    def resized(array, shape):
        return _by_jax(lambda image: _resize(image, shape, module.method, module.antialias), array)

    def shape_of(shape):
        if len(shape) != axes:
            raise ValueError(f"ImageResize: shape: expected {len(shape)} sizes for {tuple(shape)}, got {sizes}")
        return tuple(old if new == -1 else int(new) for new, old in zip(sizes, shape))

    @requires(diagonal_batch=False, batch_axis=module.batch_axis, channel_axis=module.channel_axis, diagonal_spatial=Diagonal(
        input=Bool.NO if any(size != -1 for axis, size in enumerate(sizes) if axis not in (batch, channels)) else Bool.YES))
    def kernel_fn(k: Any, **kwargs: Any) -> Any:
        def changed(array, first, second):
            if array is None or np.ndim(array) == 0:
                return array
            shape, spatial = [first[batch], second[batch]], [axis for axis in range(axes) if axis not in (batch, channels)]
            for axis in spatial[::-1] if k.is_reversed and not k.diagonal_spatial else spatial:
                shape += [first[axis]] if k.diagonal_spatial else [first[axis], second[axis]]
            return resized(array, shape)

        first, second = shape_of(k.shape1), shape_of(k.shape2)
        return k.replace(nngp=changed(k.nngp, first, second), ntk=changed(k.ntk, first, second), cov1=changed(k.cov1, first, first),
                         cov2=changed(k.cov2, second, second))

    def mask_fn(mask, shape):
        counts = library(mask).asarray(~mask, np.float32)
        return resized(counts, [new if new != -1 else old for new, old in zip(sizes, mask.shape)]) == 0

    return _layer("ImageResize", shape_of, lambda x, mask: resized(x, shape_of(x.shape)), kernel_fn, mask_fn, remask_kernel=True)


def layer_norm(module: Any) -> Triple:
    """module: that of LayerNorm, with the batch and the channels among its axes."""

    def apply_fn(x, mask):
        centred = x - _mean(x, module.axes, mask)
        return centred / library(x).sqrt(_mean(centred**2, module.axes, mask) + module.eps)

    @requires(batch_axis=module.batch_axis, channel_axis=module.channel_axis)
    def kernel_fn(k: Any, **kwargs: Any) -> Any:
        if not k.is_gaussian:
            raise NotImplementedError("LayerNorm: the batch among its axes: expected a layer with weights before it")
        count = len(k.shape1)
        axes = {axis % count for axis in module.axes}
        if k.channel_axis not in axes:
            raise ValueError(f"LayerNorm: axis={module.axes}: expected the channels (axis {k.channel_axis}) among the axes: without them "
                             "there is no kernel in the limit")
        spatial = [axis for axis in range(count) if axis not in (k.batch_axis, k.channel_axis)]
        spatial = spatial[::-1] if k.is_reversed else spatial
        means = (0, *(1 + place for place, axis in enumerate(spatial) if axis in axes))
        own = 1 if k.diagonal_batch else 2

        def deviations(variances, mask):
            return library(variances).sqrt(module.eps + _mean(variances, means, mask))

        left = deviations(k._variances_of(k.cov1), k._mask_of_positions(k.mask1))
        right = left if k.cov2 is None else deviations(k._variances_of(k.cov2), k._mask_of_positions(k.mask2))

        def divided(array, first, second, batch_axes):
            return array if array is None or np.ndim(array) == 0 else array / k._of_pairs(first, second, batch_axes)

        return k.replace(nngp=divided(k.nngp, left, right, 2), ntk=divided(k.ntk, left, right, 2), cov1=divided(k.cov1, left, left, own),
                         cov2=divided(k.cov2, right, right, own))

    return _layer("LayerNorm", tuple, apply_fn, kernel_fn, lambda mask, shape: mask, remask_kernel=False)


def _layer(name, shape_of, function, kernel_fn, mask_fn, remask_kernel):
    def init_fn(rng: Any, input_shape: Any) -> Any:
        return tuple(shape_of(tuple(input_shape))), ()

    def apply_fn(params: Any, x: Any, mask: Any = None, **kwargs: Any) -> Any:
        return function(x, mask)

    return triple(Own(name, *masking((init_fn, apply_fn, kernel_fn, mask_fn), remask_kernel)))


def _mean(x, axes, mask):
    """The mean over axes, which stay as axes of size 1, of what counts; 0 where nothing does."""
    if mask is None:
        return x.mean(axes, keepdims=True)
    counts = library(x).broadcast_to(~mask, x.shape)
    return (x * counts).sum(axes, keepdims=True) / library(x).maximum(counts.sum(axes, keepdims=True), 1)


def _resize(image, shape, method, antialias):
    import jax

    return jax.image.resize(image, shape, method, antialias)


def _by_jax(function, array):
    try:
        import jax
    except ImportError:
        raise NotImplementedError("ImageResize: the batch: it is resized by JAX, which is not installed: pip install "
                                  "'widelimit[jax]'") from None
    if not isinstance(array, np.ndarray):
        return function(array)
    with concretely():  # Also within a function that JAX compiles: this is a constant there.
        return np.asarray(function(jax.numpy.asarray(array)))
