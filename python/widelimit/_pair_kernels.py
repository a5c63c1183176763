"""gram() and gram_diagonal() of a Network or a kernel_fn, as functions that JAX and PyTorch differentiate."""

from __future__ import annotations

from . import _core
from ._differentiable import Diagonal, Kernels, check_axes, names_of, word_of
from .derivatives import gram_vjp
from .kernels import gram
from .stax._kernel_fn import KernelFunction
from .stax._live import DiagonalOfKernelFunction, LiveKernels

_OF_PAIRS = {"threads", "lengths1", "lengths2", "mask1", "mask2", "graphs1", "graphs2"}
_OF_ONE = {"threads", "lengths", "mask", "graphs"}


def pair_kernels(network, kernels, options, *shapes):
    """gram() for a Network or a kernel_fn and inputs of full shapes, those of x1 and of x2 if there is one."""
    if isinstance(network, KernelFunction):
        _check_options("gram of a kernel_fn", options, {"threads", "mask_constant", "pattern"})
        found = LiveKernels(network, names_of(kernels), options, *shapes)
        found.check_way_back([True])
        return found
    _check_network("gram", network)
    _check_options("gram", options, _OF_PAIRS)
    return _OfPairs(network, kernels, options, shapes)


def diagonal_kernels(network, kernels, options, shape):
    """gram_diagonal() for the same."""
    if isinstance(network, KernelFunction):
        _check_options("gram_diagonal of a kernel_fn", options, {"threads"})
        return DiagonalOfKernelFunction(network, kernels, options, shape)
    _check_network("gram_diagonal", network)
    _check_options("gram_diagonal", options, _OF_ONE)
    return Diagonal(network, kernels, options, shape)


class _OfPairs(Kernels):
    def __init__(self, network, kernels, options, shapes):
        super().__init__(network, kernels, options)
        check_axes(shapes, channel_axis=-1)
        self.shapes = [(shapes[0][0], shapes[-1][0])] * len(self.names)

    def forward(self, *inputs):
        return self._chosen(gram(self.network, *inputs, kernels=self.kernels, **self.options))

    def backward(self, inputs, cotangents, wanted):
        found = gram_vjp(self.network, *inputs, wanted=word_of(wanted), **self._weights(cotangents), **self.options)
        return list(found) if len(inputs) == 2 else [found]


def _check_network(name, network):
    if not isinstance(network, _core.Network):
        raise TypeError(f"{name}: expected a widelimit.Network, or a kernel_fn of widelimit.stax, got {network!r}")


def _check_options(name, options, known):
    unknown = sorted(set(options) - known)
    if unknown:
        raise TypeError(f"{name}: unexpected {', '.join(unknown)}; expected {', '.join(sorted(known))}, and inputs of the "
                        "element type that kernels are to have")
