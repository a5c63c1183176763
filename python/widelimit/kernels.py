"""Gram matrices of networks, and what they will cost."""

from __future__ import annotations

import os
from typing import Any, NamedTuple, Sequence

from numpy.typing import ArrayLike, NDArray

from . import _core
from ._arrays import Graphs, Inputs, batch, check_network, integers, type_of_inputs, whole
from ._device import device as using_device
from ._frames import beside
from ._html import matrix_html
from ._progress import Progress, told


class ShortenedAttention(NamedTuple):
    """The inputs whose attention before flatten was computed from `largest_rank` or fewer combinations of its outputs, which
    leave out `largest_tail` of an input's own NNGP or NTK, or less."""

    inputs: int
    largest_rank: int
    largest_tail: float


class Gram(NamedTuple):
    """Gram matrices [n1, n2]; None for those that were not asked for. The errors are standard errors, which only networks
    with sampled layers have (softmax attention with 1/sqrt(width)). shortened says, after gram() without a store, what
    exact_attention=True would have left out."""

    nngp: NDArray[Any] | Any
    ntk: NDArray[Any] | Any
    nngp_error: NDArray[Any] | None = None
    ntk_error: NDArray[Any] | None = None
    shortened: ShortenedAttention | None = None

    def _repr_html_(self) -> str:
        matrices = self._asdict()
        del matrices["shortened"]
        return matrix_html(matrices)


_KERNELS = ("nngp", "ntk", "both")


def _checked_kernels(kernels):
    if kernels not in _KERNELS:
        raise ValueError(f"kernels: expected 'nngp', 'ntk' or 'both', got {kernels!r}")
    return kernels


def gram(network: _core.Network, x1: Inputs, x2: Inputs | None = None, kernels: str = "both", precision: str | None = None,
         threads: int = 0, progress: Progress = None,
         store: str | os.PathLike[str] | None = None, lengths1: ArrayLike | None = None, lengths2: ArrayLike | None = None,
         mask1: ArrayLike | None = None, mask2: ArrayLike | None = None, graphs1: Graphs | None = None,
         graphs2: Graphs | None = None, exact_attention: bool = False, device: str | None = None) -> Gram:
    """The kernels of all pairs of x1, or of x1 with x2.

    network    a Network
    x1, x2     [n, C], or [n, spatial..., C] with one to three spatial axes, channels last; NumPy, JAX or PyTorch arrays
               (row-major float32 and float64 are not copied), or a list of arrays [spatial..., C] of different sizes; of
               two frames, the columns of x2 are found by their names in x1
    kernels    'nngp', 'ntk' or 'both'
    precision  'float' or 'double'; None: float if the inputs are float32, else double
    threads    0: one for each core. Results do not depend on it.
    progress   called with (pairs done, total pairs); True: a bar of tqdm if it is installed, else a line
    store      a folder in which tiles are kept as they are done (a Zarr group, docs/scale.md). A call that finds them
               continues with those that are missing. DataError, with nothing touched, for a store of another network, of other
               inputs, kernels or precision; damaged tiles are computed again, with a RuntimeWarning.
    lengths1, lengths2  true lengths of padded sequences, [n] integers
    mask1, mask2        [n, spatial...] of bool: positions that count; for a list of arrays also a list of masks
    graphs1, graphs2    for networks with aggregate layers, one for each input: Graph objects or adjacency matrices
    exact_attention     False: attention before flatten is computed from the leading combinations of an input's outputs if few
                        hold all but 1e-7 of it (1e-13 in double), which is about twice as fast; `shortened` of the result says
                        for how many inputs
    device              where: 'cpu', 'gpu' or part of a name (widelimit.devices()); None: as the block `with widelimit.device(...)`
                        says, else on the CPU

    Returns a Gram of matrices [n1, n2], in memory that nothing else uses. Raises NetworkError if the network does not fit such
    inputs, ArgumentError for inputs that are not finite, and NumericalError if a result is not finite; Ctrl-C stops it.
    """
    check_network(network, "network, x1, x2")
    x2 = beside(x1, x2)
    dtype = type_of_inputs(precision, x1, x2)
    left = batch(x1, dtype, "x1", lengths1, mask1, graphs1)
    right = None if x2 is None else batch(x2, dtype, "x2", lengths2, mask2, graphs2)
    with told(progress, "pairs") as tell, using_device(device):
        if store is not None:
            found = Gram(*_core.stored_gram(network, left, right, _checked_kernels(kernels), threads, tell, os.fspath(store),
                                             exact_attention))
            # A store that is there may have both.
            others = {"nngp": ("ntk", "ntk_error"), "ntk": ("nngp", "nngp_error")}.get(kernels, ())
            return found._replace(**dict.fromkeys(others))
        matrices, shortened = _core.gram(network, left, right, _checked_kernels(kernels), threads, tell, exact_attention)
        return Gram(*matrices, shortened=ShortenedAttention(*shortened))


def gram_diagonal(network: _core.Network, x: Inputs, kernels: str = "both", precision: str | None = None, threads: int = 0,
                  lengths: ArrayLike | None = None, mask: ArrayLike | None = None,
                  graphs: Graphs | None = None, exact_attention: bool = False, device: str | None = None) -> Gram:
    """The kernels of every input with itself, a Gram of vectors [n]: the diagonal of gram(network, x), bit for bit.
    Arguments and errors are those of gram()."""
    check_network(network, "network, x")
    inputs = batch(x, type_of_inputs(precision, x), "x", lengths, mask, graphs)
    with using_device(device):
        columns = _core.gram_diagonal(network, inputs, _checked_kernels(kernels), threads, exact_attention)
    return Gram(*(None if column is None else column[:, 0] for column in columns))


def median_distance(x: Inputs) -> float | None:
    """The median, over all pairs of inputs that differ, of the root mean square difference of their numbers, of 500 evenly spaced
    inputs if there are more: a length for kernels of distances (Network.named('laplace', {'length': ...})). None for inputs of
    different size and where no two differ; ArgumentError for numbers that are not finite."""
    return _core.median_distance(batch(x, type_of_inputs(None, x), "x"))


def position_covariances(network: _core.Network, x1: Inputs, x2: Inputs | None = None, kernels: str = "both",
                         diagonal: bool = False, precision: str | None = None, threads: int = 0,
                         mask1: ArrayLike | None = None, mask2: ArrayLike | None = None, graphs1: Graphs | None = None,
                         graphs2: Graphs | None = None) -> Gram:
    """The kernels between positions of all pairs of inputs, for networks without a readout. Returns a Gram of arrays
    [n1, n2, d, d'], positions in row-major order, or with `diagonal` [n1, n2, d] for equal positions. Inputs are those of
    gram(), all of one size. Masked positions are 0.

    Cost: for each pair that of gram() with all positions, and n1 n2 d d' numbers. Raises the errors of gram().
    """
    check_network(network, "network, x1, x2")
    left = batch(x1, type_of_inputs(precision, x1, x2), "x1", None, mask1, graphs1)
    right = None if x2 is None else batch(x2, type_of_inputs(precision, x1, x2), "x2", None, mask2, graphs2)
    return Gram(*_core.position_covariances(network, left, right, _checked_kernels(kernels), diagonal, threads))


def position_variances(network: _core.Network, x: Inputs, kernels: str = "both", diagonal: bool = False,
                       precision: str | None = None, threads: int = 0, mask: ArrayLike | None = None,
                       graphs: Graphs | None = None) -> Gram:
    """position_covariances() of every input with itself: a Gram of arrays [n, d, d'], or [n, d] with `diagonal`."""
    check_network(network, "network, x")
    inputs = batch(x, type_of_inputs(precision, x), "x", None, mask, graphs)
    return Gram(*_core.position_variances(network, inputs, _checked_kernels(kernels), diagonal, threads))


def explain(network: _core.Network, shape: Sequence[int], channels: int, kernels: str = "both", precision: str = "float",
            measure_seconds: float = 0.5) -> str:
    """A table of how gram() will compute the kernels of a network for inputs of a spatial shape, and what that costs.

    measure_seconds: about how long random inputs are run to measure the time of a pair; 0: not at all. NetworkError if the
    network does not fit such inputs.
    """
    check_network(network, "network, shape, channels")
    return _core.explain(network, integers(shape, "shape"), channels, _checked_kernels(kernels), precision, measure_seconds)


def check_laws(subject: _core.Layer | _core.Network, shapes: Sequence[Sequence[int]] = ((), (5,), (3, 2), (2, 3, 2)),
               channels: int = 3, inputs: int = 4, seed: int = 0) -> tuple[bool, str]:
    """Whether a layer, or a network, has the properties that all of them must have. Exchanged inputs transpose kernels,
    which are positive semidefinite; computing only what is needed changes nothing, nor do tiles and threads, bit for bit; the
    covariance of an input with itself is its variances; float agrees with double; results are finite, also for an input of
    zeros; a linear layer without weights maps the NTK as the NNGP; duals do not jump at equal inputs; adjoints, unless they are
    absent, are derivatives. Returns (passed, table).

    shapes    of inputs to try; those that the layer cannot take are left out; keep them small
    channels  of the inputs; inputs: the number of random ones, at least 2; a duplicate, a constant and zeros are added

    NetworkError if no shape fits, ArgumentError for numbers out of range. Takes milliseconds to seconds.
    """
    if not isinstance(subject, (_core.Layer, _core.Network)):
        raise TypeError(f"check_laws: expected a Layer or a Network, got {subject!r}")
    return _core.check_laws(subject, [integers(shape, "shapes") for shape in shapes], whole(channels, "channels"),
                            whole(inputs, "inputs"), whole(seed, "seed"))


def check_limit(network: _core.Network, widths: Sequence[int] = (64, 128, 256), draws: int = 64,
                shapes: Sequence[Sequence[int]] = ((), (4,), (2, 2)), channels: int = 3, seed: int = 0) -> tuple[bool, str]:
    """Compares a network's kernels with those of sampled networks of finite width. Returns (passed, table).

    widths    of hidden layers, ascending, at least two
    draws     networks of every width, at least 8
    shapes    of inputs; the network is checked on the first one that it can take
    channels  of the inputs

    The check passes if the means of all widths, extrapolated to infinite width, are within 4 standard errors of the kernels,
    and the mean squared distance falls like 1 / width. ArgumentError for numbers out of range, NetworkError if no shape fits
    or a layer has no finite counterpart. Takes seconds to minutes.
    """
    check_network(network, "network, widths")
    return _core.check_limit(network, integers(widths, "widths"), whole(draws, "draws"),
                             [integers(shape, "shapes") for shape in shapes], whole(channels, "channels"), whole(seed, "seed"))
