"""Derivatives of Gram matrices with respect to the inputs and to hyperparameters of the network."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._arrays import Graphs, Inputs, batch, numbers, type_of_inputs
from ._device import checked_device, chosen
from ._frames import beside
from ._progress import Progress, teller
from .kernels import Gram, _checked_kernels


def gram_vjp(network: _core.Network, x1: Inputs, x2: Inputs | None = None, *, nngp: ArrayLike | None = None,
             ntk: ArrayLike | None = None, wanted: str = "both", precision: str | None = None, threads: int = 0,
             progress: Progress = None, lengths1: ArrayLike | None = None,
             lengths2: ArrayLike | None = None, mask1: ArrayLike | None = None, mask2: ArrayLike | None = None,
             graphs1: Graphs | None = None, graphs2: Graphs | None = None, device: str | None = None) -> Any:
    """The derivatives of L = sum(nngp * K) + sum(ntk * T) with respect to the inputs, where K and T = gram(network, x1, x2).

    network    a Network; every layer needs a backward pass (sampled attention has none: ArgumentError)
    x1, x2     inputs as those of gram()
    nngp, ntk  cotangents [n1, n2], the derivatives of L with respect to the entries of K and of T; at least one of them
    wanted     'both', or 'x1' or 'x2': the derivatives with respect to that batch only, and None for the other, at less cost
    device     where: 'cpu', 'gpu' or part of a name, for networks without positions (an Error names the layer of others); None:
               as the block `with widelimit.device(...)` says, and on the CPU what devices do not differentiate
    others     those of gram()

    Returns (dx1, dx2), arrays of the shapes of x1 and x2; without x2, dx1 alone, for the symmetric K and T of x1. A list of
    arrays of different sizes gives one array [n, longest..., C] with 0 after shorter ones; of two frames, both are in the order of
    the columns of x1. Where a kernel has an infinite slope, like ReLU's NTK between inputs that are multiples of each other, it
    counts as 0. Ctrl-C stops it.
    """
    progress = teller(progress, "pairs")
    x2 = beside(x1, x2)
    dtype = type_of_inputs(precision, x1, x2)
    left = batch(x1, dtype, "x1", lengths1, mask1, graphs1)
    cotangents = (cotangent(nngp, dtype, "nngp"), cotangent(ntk, dtype, "ntk"))
    if x2 is None:
        if wanted != "both":
            raise ValueError(f"gram_vjp: wanted: expected 'both' without x2, got {wanted!r}")
        found = _core.gram_vjp_of_one(network, left, *cotangents, threads, progress, _place_of(network, left, device))
        return _as_long_as(x1, lengths1, found)
    first, second = _core.gram_vjp(network, left, batch(x2, dtype, "x2", lengths2, mask2, graphs2), *cotangents, wanted,
                                   threads, progress, _place_of(network, left, device))
    return _as_long_as(x1, lengths1, first), _as_long_as(x2, lengths2, second)


def _as_long_as(x: Inputs, lengths: ArrayLike | None, found: Any) -> Any:
    """Derivatives by padded sequences, with zeros behind the longest of them as in the array that was given."""
    if lengths is None or found is None or found.shape[1] == x.shape[1]:
        return found
    return np.pad(found, [(0, 0), (0, x.shape[1] - found.shape[1]), (0, 0)])


def _place_of(network: _core.Network, inputs: Any, device: str | None) -> str:
    """The device of gram_vjp()."""
    if device is not None:
        return checked_device(device)
    return "cpu" if chosen() == "cpu" or _core.device_vjp_gap(network, inputs) else chosen()


def gram_diagonal_vjp(network: _core.Network, x: Inputs, *, nngp: ArrayLike | None = None, ntk: ArrayLike | None = None,
                      precision: str | None = None, threads: int = 0, lengths: ArrayLike | None = None,
                      mask: ArrayLike | None = None, graphs: Graphs | None = None) -> NDArray[Any]:
    """gram_vjp() for gram_diagonal(network, x): cotangents are vectors [n], the result has the shape of x. Same errors."""
    dtype = type_of_inputs(precision, x)
    columns = [None if given is None else numbers(np.reshape(given, (-1, 1)), dtype, name)
               for given, name in ((nngp, "nngp"), (ntk, "ntk"))]
    found = _core.gram_diagonal_vjp(network, batch(x, dtype, "x", lengths, mask, graphs), *columns, threads, None)
    return _as_long_as(x, lengths, found)


def gram_jvp(network: _core.Network, x1: Inputs, x2: Inputs | None = None, *, direction: Mapping[str, float],
             kernels: str = "both", threads: int = 0, progress: Progress = None,
             lengths1: ArrayLike | None = None, lengths2: ArrayLike | None = None, mask1: ArrayLike | None = None,
             mask2: ArrayLike | None = None, graphs1: Graphs | None = None, graphs2: Graphs | None = None) -> Gram:
    """The derivatives of K and T = gram(network, x1, x2) along a direction of the network's hyperparameters.

    direction  how fast numbers change, by their paths in the network's file: {'layers[0].weight_variance': 1}
    kernels    'nngp', 'ntk' or 'both'
    others     those of gram(); always computed in double

    Returns a Gram of derivatives. They are central differences of eighth order of the kernels, and one-sided ones if a number
    is at the end of its range. The error is 1e-9 of the largest entry or less (1e-13 of the kernel's largest entry where that
    is more); the cost is 8 or 9 times that of gram(), and that of probes. ArgumentError for a path that leads to no number or
    to an integer, NumericalError if a kernel has no derivative. Ctrl-C stops it.
    """
    progress = teller(progress, "pairs")
    sides = _sides_in_double(x1, x2, lengths1, lengths2, mask1, mask2, graphs1, graphs2)
    return Gram(*_core.gram_jvp(network, *sides, dict(direction), _checked_kernels(kernels), threads, progress))


def gram_gradient(network: _core.Network, x1: Inputs, x2: Inputs | None = None, *, numbers: Sequence[str],
                  kernels: str = "both", threads: int = 0, lengths1: ArrayLike | None = None,
                  lengths2: ArrayLike | None = None, mask1: ArrayLike | None = None, mask2: ArrayLike | None = None,
                  graphs1: Graphs | None = None, graphs2: Graphs | None = None) -> list[Gram]:
    """The derivatives with respect to each of several numbers, in the order of their paths: see gram_jvp().
    Regression.score_derivatives turns them into derivatives of the evidence."""
    if isinstance(numbers, str):
        raise TypeError(f"numbers: expected a sequence of paths, got the string {numbers!r}")
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"numbers: expected every path once, got {list(numbers)}")
    sides = _sides_in_double(x1, x2, lengths1, lengths2, mask1, mask2, graphs1, graphs2)
    return [Gram(*_core.gram_jvp(network, *sides, {path: 1.0}, _checked_kernels(kernels), threads, None))
            for path in numbers]


def gram_number_vjp(network: _core.Network, x1: Inputs, x2: Inputs | None = None, *, numbers: Sequence[str],
                    nngp: ArrayLike | None = None, ntk: ArrayLike | None = None, precision: str | None = None,
                    threads: int = 0, lengths1: ArrayLike | None = None, lengths2: ArrayLike | None = None,
                    mask1: ArrayLike | None = None, mask2: ArrayLike | None = None, graphs1: Graphs | None = None,
                    graphs2: Graphs | None = None) -> NDArray[np.float64]:
    """The derivatives of L = sum(nngp * K) + sum(ntk * T) with respect to hyperparameters, where K and T = gram(network, x1, x2).

    numbers    their paths in the network's file: ['layers[0].weight_variance', 'layers[3].bias_variance']
    nngp, ntk  cotangents [n1, n2], the derivatives of L with respect to the entries of K and of T; at least one of them
    others     those of gram()

    Returns an array [numbers]. One backward pass, at about 5 times the cost of gram(), gives the derivatives by all numbers on
    which only variances of dense and convolutional layers, and factors of branches, depend. Each other number takes
    differences, with the errors of gram_jvp(). With Regression.score_cotangents(), these are derivatives of the evidence by
    hyperparameters. Ctrl-C stops it.
    """
    if isinstance(numbers, str):
        raise TypeError(f"numbers: expected a sequence of paths, got the string {numbers!r}")
    x2 = beside(x1, x2)
    dtype = type_of_inputs(precision, x1, x2)
    left = batch(x1, dtype, "x1", lengths1, mask1, graphs1)
    right = None if x2 is None else batch(x2, dtype, "x2", lengths2, mask2, graphs2)
    cotangents = (cotangent(nngp, dtype, "nngp"), cotangent(ntk, dtype, "ntk"))
    return np.array(_core.gram_number_vjp(network, left, right, *cotangents, list(numbers), threads))


def _sides_in_double(x1, x2, lengths1, lengths2, mask1, mask2, graphs1, graphs2):
    """Both batches; None for the second if there is none."""
    x2 = beside(x1, x2)
    left = batch(x1, np.float64, "x1", lengths1, mask1, graphs1)
    return left, None if x2 is None else batch(x2, np.float64, "x2", lengths2, mask2, graphs2)


def cotangent(given, dtype, name):
    """Derivatives with respect to the entries of a kernel, [n1, n2]; None if none are given."""
    if given is None:
        return None
    array = numbers(given, dtype, name)
    if array.ndim != 2:
        raise ValueError(f"{name}: expected a matrix [n1, n2] of cotangents, got an array of shape {array.shape}")
    return array
