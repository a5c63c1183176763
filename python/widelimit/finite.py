"""Networks of finite width."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._arrays import Graphs, Inputs, batch, check_network, integers, is_ragged, numbers, whole


class FiniteNetwork:
    """A network of finite width in the NTK parametrisation, in double: weights are sigma / sqrt(fan_in) times
    independent standard normal parameters.

    network          a Network
    shape, channels  of an input: spatial sizes, () for vectors
    hidden           channels wherever the network leaves them open, at least 1; widths: instead, one number for each such
                     place
    outputs          channels after the last layer, at least 1
    heads            of attention, at least 1
    seed             equal seeds give equal bits with any number of threads

    Inputs x are one array [n, spatial..., channels], or a list of arrays [spatial..., channels] of different sizes.
    Raises NetworkError if the network does not fit the form or has layers without a finite counterpart, and ArgumentError
    for widths that do not fit it and for inputs of another form or with NaN. Threads may share one as long as none of them
    sets its parameters.
    """

    def __init__(self, network: _core.Network, shape: Sequence[int], channels: int, hidden: int = 256, outputs: int = 1,
                 widths: Sequence[int] = (), heads: int = 8, seed: int = 0, threads: int = 0) -> None:
        check_network(network, "network, shape, channels")
        self._made_of = (network, integers(shape, "shape"), whole(channels, "channels"), whole(hidden, "hidden"),
                         whole(outputs, "outputs"), integers(widths, "widths"), whole(heads, "heads"), whole(seed, "seed"),
                         whole(threads, "threads"))
        self._network = _core.FiniteNetwork(*self._made_of)

    def __reduce__(self) -> tuple[Any, ...]:
        return FiniteNetwork, self._made_of, self.parameters

    def __setstate__(self, parameters: NDArray[np.float64]) -> None:
        self.parameters = parameters

    @property
    def outputs(self) -> int:
        """Channels after the last layer."""
        return self._network.outputs

    @property
    def parameters(self) -> NDArray[np.float64]:
        """All parameters, layer after layer, [count]: independent standard normal numbers at the start. You may set them;
        ValueError for another number of them."""
        return self._network.parameters

    @parameters.setter
    def parameters(self, values: ArrayLike) -> None:
        values = numbers(values, name="parameters")
        if values.shape != (self._network.parameter_count,):
            raise ValueError(f"parameters: expected {self._network.parameter_count} numbers, got an array of shape "
                             f"{values.shape}")
        self._network.parameters = values

    def __call__(self, x: Inputs, lengths: ArrayLike | None = None, graphs: Graphs | None = None,
                 draw: int = 0) -> NDArray[np.float64]:
        """Outputs [n, outputs]. `draw` numbers the draws of dropout, lengths [n] are the numbers of positions that count in
        each input, and graphs has one Graph for each input."""
        return self._network.forward(_inputs(x, lengths, graphs), draw)

    def jacobian(self, x: Inputs, output: int = 0, lengths: ArrayLike | None = None, graphs: Graphs | None = None,
                 draw: int = 0, first_input: int = 0) -> NDArray[np.float64]:
        """Gradients of one output with respect to the parameters at every input, [n, count]. `draw` numbers the draws of
        dropout, which are different for every input and counted from `first_input`. ArgumentError unless `output` is
        one of 0 .. outputs - 1. Memory: n count doubles."""
        return self._network.jacobian(_inputs(x, lengths, graphs), output, draw, first_input)

    def vector_jacobian(self, x: Inputs, weights: ArrayLike, lengths: ArrayLike | None = None, graphs: Graphs | None = None,
                        draw: int = 0) -> NDArray[np.float64]:
        """The gradient of sum(weights * outputs) with respect to the parameters, [count]. weights are [n, outputs], other
        arguments those of __call__(). ArgumentError for weights of another shape. Cost: about three passes."""
        return self._network.vector_jacobian(_inputs(x, lengths, graphs), _matrix(weights), draw)

    def input_jacobian(self, x: ArrayLike, output: int = 0) -> NDArray[np.float64]:
        """Gradients of one output with respect to the inputs, an array of the shape of x, for networks without dropout.
        ArgumentError unless `output` is one of 0 .. outputs - 1."""
        return self._network.input_jacobian(_inputs(x), output).reshape(np.shape(x))

    def nngp(self, x1: Inputs, x2: Inputs | None = None, draw: int = 0) -> NDArray[np.float64]:
        """Products of outputs, averaged over outputs, [n1, n2]. Dropout numbers the inputs of x2 after those of x1; without x2
        it draws once for each input of x1. The mean over seeds tends to the nngp of gram() with growing width."""
        return self._network.nngp(_inputs(x1), None if x2 is None else _inputs(x2), draw)

    def ntk(self, x1: Inputs, x2: Inputs | None = None, draw: int = 0) -> NDArray[np.float64]:
        """The empirical NTK, products of gradients with respect to all parameters, averaged over outputs, [n1, n2]. Draws are
        those of nngp(). Cost: about three passes for each input and output."""
        return self._network.ntk(_inputs(x1), None if x2 is None else _inputs(x2), draw)


def _matrix(weights):
    weights = numbers(weights, name="weights")
    if weights.ndim != 2:
        raise ValueError(f"weights: expected a matrix [n, outputs], got an array of shape {weights.shape}")
    return weights


def _inputs(x, lengths=None, graphs=None):
    for array in x if is_ragged(x) else [x]:
        if not np.isfinite(numbers(array, name="x")).all():
            raise _core.ArgumentError("FiniteNetwork: x: expected finite numbers")
    return batch(x, np.float64, "x", lengths, None, graphs)
