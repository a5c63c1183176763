"""The three functions that convert, and what they return."""

from __future__ import annotations

import importlib
import warnings
from typing import Any, Sequence

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..kernels import explain
from ._emit import Emission
from ._nodes import every_node
from ._parametrisation import Parametrisation
from ._report import Report
from ._trace import ConversionError, Trace
from ._translate import Translation

_KINDS = ("standard", "ntk", "mup")


class ConvertedNetwork(_core.Network):
    """A Network that was read of a module. report says what became of every tensor; inputs() arranges the module's inputs."""

    report: Report
    _order: tuple[int, ...] | None
    _one_hot: int | None

    def inputs(self, x: Any) -> NDArray[Any]:
        """The module's inputs as the network takes them, [n, positions..., channels]; indices become one-hot vectors."""
        array = np.asarray(x.detach() if hasattr(x, "detach") else x)
        if self._one_hot is not None:
            return np.eye(self._one_hot, dtype=np.float32)[array]
        return np.ascontiguousarray(np.transpose(array, self._order))


def converted(trace: Trace, *, parametrisation: str, width_multiplier: float, variances: dict[str, float] | None, layout: str,
              batch_axis: int, one_hot: bool, untie: bool) -> ConvertedNetwork:
    """The network of a trace."""
    if parametrisation not in _KINDS:
        raise _core.ArgumentError(f"parametrisation: expected one of {', '.join(_KINDS)}, got {parametrisation!r}")
    if not width_multiplier > 0:
        raise _core.ArgumentError(f"width_multiplier: expected a positive number, got {width_multiplier!r}")
    translation, channel = _translated(trace, layout, batch_axis % len(trace.input.shape), one_hot, untie)
    emission = Parametrisation(parametrisation, width_multiplier, dict(variances or {}), translation.output)
    layers = Emission(emission).layers(translation.output)
    _check_variances(variances, emission)
    network = ConvertedNetwork(layers)
    rank = len(trace.input.shape)
    network._one_hot = translation.root.channels if channel is None else None
    network._order = None if channel is None else (batch_axis % rank, *(k for k in range(rank) if k not in (batch_axis % rank, channel)),
                                                   channel)
    shape = tuple(size for _, size in translation.root.axes)
    try:
        if not translation.output.axes:
            explain(network, shape, translation.root.channels, measure_seconds=0)
    except _core.NetworkError as error:
        raise ConversionError(f"{trace.name}: the layers that it became do not fit together: {error}") from error
    rows = tuple(emission.rows.values())
    network.report = Report(rows, _notes(translation.output, rows), shape, translation.root.channels, parametrisation)
    unknown = [row.parameter for row in rows if row.variance.rule == "measured"]
    if unknown:
        warnings.warn(f"{trace.name}: {len(unknown)} tensors follow no rule of initialisation (trained?), their measured variances are "
                      f"taken: "
                      f"{', '.join(unknown[:5])}{', ...' if len(unknown) > 5 else ''}; variances= says others", stacklevel=3)
    return network


def _translated(trace, layout, batch, one_hot, untie):
    """The translation, with the input's dimension of channels: the one for which everything fits."""
    rank = len(trace.input.shape)
    if one_hot:
        return Translation(trace, batch, None, True, untie), None
    places = {"first": 1 if batch == 0 else 0, "last": rank - 1}
    if layout not in ("auto", *places):
        raise _core.ArgumentError(f"layout: expected 'auto', 'first' or 'last', got {layout!r}")
    order = [layout] if layout != "auto" else ["first", "last"] if rank >= 4 else ["last", "first"]
    failures = []
    for name in order:
        try:
            return Translation(trace, batch, places[name], False, untie), places[name]
        except ConversionError as error:
            failures.append(error)
    raise max(failures, key=lambda error: error.reached)


def _check_variances(variances, emission):
    known = {row.parameter for row in emission.rows.values()}
    unknown = [name for name in variances or {} if name not in known]
    if unknown:
        raise _core.ArgumentError(f"variances: no parameter {unknown[0]!r}; there are {', '.join(sorted(known))}")


def _notes(output, rows):
    notes = []
    nodes = every_node(output)
    heads = [node.data["heads_node"].data["heads"] for node in nodes if node.kind == "attention"]
    if heads:
        notes.append(f"the limit takes the number of heads ({min(heads)} here) to infinity, with the channels of each")
    narrow = [node for node in nodes if node.kind == "weights" and node is not output and node.channels < 8]
    if narrow:
        notes.append(f"{narrow[0].place} has {narrow[0].channels} channels, which the limit takes to infinity as all hidden ones")
    if any(node.kind == "norm" for node in nodes):
        notes.append("gains and shifts of norms are 1 and 0 at the start; their own gradients are not part of the NTK")
    if any("(computed)" in row.parameter for row in rows):
        notes.append("weights that are computed of other parameters count in the NTK as if they were trained themselves")
    return tuple(notes)


def from_torch(module: Any, example: Any, *, parametrisation: str = "standard", width_multiplier: float = 1.0,
               variances: dict[str, float] | None = None, layout: str = "auto", batch_axis: int = 0, one_hot: bool = False,
               untie: bool = False, fixed: Sequence[str] = ()) -> ConvertedNetwork:
    """The infinite-width limit of a module of PyTorch as a Network; see docs/convert.md.

    module, example     a torch.nn.Module, and a batch of its inputs, on which it is run once; of a tuple the first tensor is the
                        input, and the rest is fixed (the adjacency of a graph)
    parametrisation     'standard': the NTK of the module's own parameters at its own widths. 'ntk': of parameters that are
                        multiplied by their deviations. 'mup': 'standard' with the learning rates of muP, at a width that is
                        width_multiplier times the base width
    variances           of entries of tensors by their names, in place of those that are measured and rounded to a rule
    layout              where the example has its channels: 'first' (behind the batch), 'last', or 'auto'. The network has them
                        last: network.inputs(x) arranges inputs
    batch_axis          of the example
    one_hot             inputs are indices of an embedding; the network takes one-hot vectors
    untie               parameters that are used at several places are taken as different ones
    fixed               names of parameters whose numbers stay as they are (a graph's matrix, sinusoids)

    ConversionError, a NetworkError, names the submodule that has no limit, why, and what one may do.
    """
    trace = _front_end("_torch", "torch")

    return converted(trace(module, example, batch_axis, tuple(fixed)), parametrisation=parametrisation, width_multiplier=width_multiplier,
                     variances=variances, layout=layout, batch_axis=batch_axis, one_hot=one_hot, untie=untie)


def from_flax(module: Any, example: Any, *, fixed: Sequence[str] = (), **options: Any) -> ConvertedNetwork:
    """The limit of a module of Flax (NNX), read by its jaxpr; arguments as of from_torch. Modules with dropout or batch norm
    must be in evaluation (module.eval())."""
    options = _with_defaults(options)
    trace = _front_end("_flax", "flax")

    return converted(trace(module, example, tuple(fixed)), **options)


def from_onnx(file: Any, example: Any = None, *, fixed: Sequence[str] = (), **options: Any) -> ConvertedNetwork:
    """The limit of a network in an ONNX file (a path, or a ModelProto); arguments as of from_torch, example: a batch of inputs, standard
    normal numbers of the file's shape if left out. Floating-point tensors of the file are taken as parameters, but for those in fixed."""
    options = _with_defaults(options)
    trace = _front_end("_onnx", "onnx")

    return converted(trace(file, example, tuple(fixed)), **options)


def _front_end(name, package):
    """trace() of a front end; ImportError says which package it needs."""
    try:
        if not hasattr(importlib.import_module(package), {"torch": "func"}.get(package, "__name__")):
            raise ImportError("it is older than 2.0")
        return importlib.import_module(f"{__package__}.{name}").trace
    except ImportError as error:
        needed = {"torch": "PyTorch 2.0 or newer", "flax": "Flax", "onnx": "ONNX"}[package]
        raise ImportError(f"from_{package} needs {needed} ({error}): pip install {package}") from error


def _with_defaults(options):
    defaults = {"parametrisation": "standard", "width_multiplier": 1.0, "variances": None, "layout": "auto", "batch_axis": 0,
                "one_hot": False,
                "untie": False}
    unknown = set(options) - set(defaults)
    if unknown:
        raise TypeError(f"unexpected argument {sorted(unknown)[0]!r}; there are {', '.join((*defaults, 'fixed'))}")
    return {**defaults, **options}
