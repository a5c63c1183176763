"""What widelimit.jax and widelimit.torch have in common: kernels of NumPy arrays, and their ways back."""

from __future__ import annotations

import numpy as np

from . import _core
from .derivatives import gram_diagonal_vjp, gram_vjp
from .kernels import _checked_kernels, gram, gram_diagonal
from .stax._kernel_fn import KernelFunction
from .stax._module import start

_OF_PAIRS = {"threads", "lengths1", "lengths2", "mask1", "mask2", "graphs1", "graphs2"}
_OF_ONE = {"threads", "lengths", "mask", "graphs"}


def pair_kernels(network, kernels, options, *shapes):
    """gram() of a Network or of a kernel_fn for inputs of full shapes, those of x1 and of x2 if there is one."""
    if isinstance(network, KernelFunction):
        _check_options("gram of a kernel_fn", options, {"threads", "mask_constant", "pattern"})
        return _OfKernelFunction(network, kernels, options, shapes)
    _check_network("gram", network)
    _check_options("gram", options, _OF_PAIRS)
    return _OfPairs(network, kernels, options, shapes)


def diagonal_kernels(network, kernels, options, shape):
    """gram_diagonal() of them."""
    if isinstance(network, KernelFunction):
        _check_options("gram_diagonal of a kernel_fn", options, {"threads"})
        return _DiagonalOfKernelFunction(network, kernels, options, shape)
    _check_network("gram_diagonal", network)
    _check_options("gram_diagonal", options, _OF_ONE)
    return _Diagonal(network, kernels, options, shape)


class _Differentiable:
    """names: of the kernels asked for; shape: of each of them; forward(*inputs): the kernels in the order of their names;
    backward(inputs, cotangents, wanted): derivatives by the inputs, one each, None where they are not wanted. A cotangent
    may be None, but not all of them; some input is wanted."""

    def __init__(self, network, kernels, options):
        self.network, self.kernels, self.options = network, _checked_kernels(kernels), options
        self.names = ("nngp", "ntk") if kernels == "both" else (kernels,)

    def _chosen(self, found):
        return [getattr(found, name) for name in self.names]

    def _weights(self, cotangents):
        return dict(zip(self.names, cotangents))


def _word_of(wanted):
    """What gram_vjp() calls these inputs."""
    return "both" if all(wanted) else "x1" if wanted[0] else "x2"


class _OfPairs(_Differentiable):
    def __init__(self, network, kernels, options, shapes):
        super().__init__(network, kernels, options)
        _check_axes(shapes, channel_axis=-1)
        self.shape = (shapes[0][0], shapes[-1][0])

    def forward(self, *inputs):
        return self._chosen(gram(self.network, *inputs, kernels=self.kernels, **self.options))

    def backward(self, inputs, cotangents, wanted):
        found = gram_vjp(self.network, *inputs, wanted=_word_of(wanted), **self._weights(cotangents), **self.options)
        return list(found) if len(inputs) == 2 else [found]


class _OfKernelFunction(_Differentiable):
    def __init__(self, kernel_fn, kernels, options, shapes):
        super().__init__(kernel_fn, kernels, options)
        first = _layout(kernel_fn, shapes[0], options)[1]
        _check_axes(shapes, first.channel_axis)
        self.shape = (shapes[0][first.batch_axis], shapes[-1][first.batch_axis])

    def forward(self, *inputs):
        return self._chosen(self.network(*inputs, get=self.names, **self.options))

    def backward(self, inputs, cotangents, wanted):
        found = self.network.vjp(*inputs, wanted=_word_of(wanted), **self._weights(cotangents), **self.options)
        return list(found) if len(inputs) == 2 else [found]


class _Diagonal(_Differentiable):
    def __init__(self, network, kernels, options, shape):
        super().__init__(network, kernels, options)
        _check_axes([shape], channel_axis=-1)
        self.shape = shape[:1]

    def forward(self, x):
        return self._chosen(gram_diagonal(self.network, x, self.kernels, **self.options))

    def backward(self, inputs, cotangents, wanted):
        return [gram_diagonal_vjp(self.network, *inputs, **self._weights(cotangents), **self.options)]


class _DiagonalOfKernelFunction(_Diagonal):
    def __init__(self, kernel_fn, kernels, options, shape):
        network, first = _layout(kernel_fn, shape, options)
        self.axes = (first.batch_axis, first.channel_axis)
        super().__init__(network, kernels, options, [shape[first.batch_axis], shape[first.channel_axis]])

    def forward(self, x):
        return super().forward(np.moveaxis(x, self.axes, (0, -1)))

    def backward(self, inputs, cotangents, wanted):
        found, = super().backward([np.moveaxis(x, self.axes, (0, -1)) for x in inputs], cotangents, wanted)
        return [np.moveaxis(found, (0, -1), self.axes)]


def _layout(kernel_fn, shape, options):
    """The Network of a kernel_fn for inputs of a full shape, and the value in front of it, which knows their axes."""
    if len(shape) < 2:
        _check_axes([shape], channel_axis=-1)
    first = start(kernel_fn.module, shape, is_diagonal=kernel_fn._is_diagonal(None),
                  has_masks=options.get("mask_constant") is not None, has_patterns=options.get("pattern") is not None)
    network, value = kernel_fn.network(first)
    if value.shape or value.rows:
        raise NotImplementedError("derivatives: expected a network with a readout over positions, which takes no slices of "
                                  "the batch")
    return network, first


def _check_network(name, network):
    if not isinstance(network, _core.Network):
        raise TypeError(f"{name}: expected a widelimit.Network, or a kernel_fn of widelimit.stax, got {network!r}")


def _check_options(name, options, known):
    unknown = sorted(set(options) - known)
    if unknown:
        raise TypeError(f"{name}: unexpected {', '.join(unknown)}; expected {', '.join(sorted(known))}, and inputs of the "
                        "element type that kernels are to have")


def _check_axes(shapes, channel_axis):
    """That these are batches, of the same axes and as many channels."""
    for shape, name in zip(shapes, ("x1", "x2")):
        if len(shape) < 2:
            raise ValueError(f"{name}: expected an array [n, ..., C], got one of shape {tuple(shape)}")
    if len(shapes[0]) != len(shapes[-1]) or shapes[0][channel_axis] != shapes[-1][channel_axis]:
        raise ValueError(f"expected inputs with the same axes and channels, got x1 of shape {tuple(shapes[0])} and x2 of "
                         f"shape {tuple(shapes[1])}")
