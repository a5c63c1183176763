"""Reads a module of PyTorch: it runs on the example, and every operation that it makes is written down."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import Any, Iterator

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

from ._aten import ARRANGING, BINARY, SAME, STEPS, UNARY, WITH_PARAMETERS
from ._matrices import padded
from ._steps import FIRST, Earlier, refused, written
from ._trace import Constant, ConversionError, Operation, Parameter, Trace, Variable

_MAKING = {"empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "new_zeros", "new_ones", "new_full",
           "new_empty", "new_empty_strided", "isnan", "isinf"}
_SEVERAL = {"split", "split_with_sizes", "chunk", "unbind", "unsafe_split", "unsafe_chunk", "unsafe_split_with_sizes"}


class _Recorder(TorchDispatchMode):
    """Writes down ATen's operations, and follows which tensors depend on the input and which are parameters."""

    def __init__(self, module: torch.nn.Module, example: torch.Tensor, fixed: tuple[str, ...]) -> None:
        super().__init__()
        self.operations: list[Operation] = []
        self.stack: list[str] = []
        self.input = Variable(tuple(example.shape))
        self._keep: list[Any] = [example]  # Tensors by their id, which must stay theirs.
        self._variables: dict[int, tuple[Variable, int]] = {id(example): (self.input, 0)}
        self._parameters: dict[int, Parameter] = {}
        self._versions: dict[int, int] = {}
        self._noise: dict[int, float] = {}
        for name, parameter in module.named_parameters(remove_duplicate=True):
            if name in fixed:
                continue
            entries = np.arange(parameter.numel()).reshape(tuple(parameter.shape))
            self._parameters[id(parameter)] = Parameter(name, entries, parameter.requires_grad, _numpy(parameter).ravel())

    @property
    def place(self) -> str:
        return self.stack[-1] if self.stack else "module"

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = function._schema.name.split("::")[1]
        tensors = [leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, torch.Tensor)]
        stale = next((tensor for tensor in tensors if self._is_stale(tensor)), None)
        depends = name not in _MAKING and any(id(tensor) in self._variables for tensor in tensors)
        result = function(*args, **kwargs)
        self._keep += [leaf for leaf in tree_flatten(result)[0] if isinstance(leaf, torch.Tensor)]
        if stale is not None:
            self._stale(tensors, result)
        elif depends:
            self._recorded(function, name, args, kwargs, result)
        else:
            self._constant(function, name, args, kwargs, result, tensors)
        return result

    def _stale(self, tensors, result):
        variables = tuple(tensor for tensor in tensors if id(tensor) in self._variables)
        steps = refused("a tensor is read of which a part was changed in place", "make a new tensor instead")
        for tensor in (leaf for leaf in tree_flatten(result)[0] if isinstance(leaf, torch.Tensor)):
            self._write([("refused", variables, steps[0][2])], tensor, "")

    def _storage(self, tensor):
        return tensor.untyped_storage()._cdata

    def _is_stale(self, tensor):
        version = self._versions.get(self._storage(tensor), 0)
        known = self._variables.get(id(tensor))
        return version > 0 and (known is None or known[1] < version)

    def _tensor(self, value):
        """What an operation's input is in the trace."""
        if isinstance(value, torch.Tensor):
            if id(value) in self._variables:
                return self._variables[id(value)][0]
            return Constant(_numpy(value), self._parameters.get(id(value)))
        return Constant(np.asarray(value)) if isinstance(value, (bool, int, float)) else value

    def _recorded(self, function, name, args, kwargs, result):
        if not any(isinstance(leaf, torch.Tensor) for leaf in tree_flatten(result)[0]):
            raise ConversionError(f"{self.place}: a number is read of values that depend on the input (a condition, .item()), so that the "
                                  "operations may be others for other inputs; write it without")
        is_in_place = function._schema.is_mutable and name.endswith("_")
        base = name[:-1] if is_in_place and not name.startswith("_") else name
        steps = self._steps(base, args, kwargs, result, function)
        if steps and steps[0][0] == "refused":
            steps = self._refused(steps, (args, kwargs))
        if is_in_place and isinstance(result, torch.Tensor):
            storage = self._storage(result)
            shared = any(self._storage(tensor) == storage and tensor is not result for tensor in self._keep
                         if isinstance(tensor, torch.Tensor))
            if shared:
                self._versions[storage] = self._versions.get(storage, 0) + 1
        if steps is None:
            self._variables[id(result)] = self._variables[id(args[0])][0], self._versions.get(self._storage(result), 0)
        else:
            self._write(steps, result, name)

    def _steps(self, name, args, kwargs, result, function):
        """The operations that one of ATen stands for; None where the result is the input itself."""
        if name in SAME:
            return None if isinstance(args[0], torch.Tensor) and args[0].is_floating_point() == result.is_floating_point() else refused(
                "values of the network become whole numbers", "keep them real")
        if name == "copy":
            return [("expand", (args[1],), {"shape": tuple(args[0].shape)})]
        if name in ("view", "_unsafe_view", "reshape", "_reshape_alias"):
            return [("reshape", (args[0],), {"shape": tuple(result.shape)})]
        if name in _SEVERAL:
            return self._split(name, args, kwargs, result)
        if name == "mul" and any(isinstance(arg, torch.Tensor) and id(arg) in self._noise for arg in args):
            return self._dropped(args)
        if name in UNARY:
            return [("elementwise", (args[0],), {"function": UNARY[name], "name": name})]
        if name in ("clamp", "gt", "lt", "ge", "le", *WITH_PARAMETERS) and not any(isinstance(arg, torch.Tensor) for arg in args[1:]):
            return [("elementwise", (args[0],), {"function": WITH_PARAMETERS[name](*args[1:], **kwargs), "name": name})]
        if name in BINARY:
            return self._binary(name, args, kwargs)
        if name == "rsub":
            return [("subtract", (args[1], args[0]), {})]
        if name == "index" and self._indices(args) is not None:
            dimension, indices = self._indices(args)
            return [("slice", (args[0],), {"dimension": dimension, "indices": indices})]
        if name in STEPS:
            return STEPS[name](*args, **kwargs)
        return refused(f"the operation {function._schema.name} has no limit here", "write it by layers that docs/convert.md lists")

    def _refused(self, steps, inputs):
        """The step, with the variables that it reads, so that it counts where its result is needed."""
        read = tuple(leaf for leaf in tree_flatten(inputs)[0] if self.knows(leaf))
        return [("refused", read, steps[0][2])]

    @staticmethod
    def _binary(name, args, kwargs):
        first, second = args[:2]
        if name == "pow" and not isinstance(first, torch.Tensor):
            return [("elementwise", (second,), {"function": lambda z: float(first) ** z, "name": "power"})]
        if kwargs.get("rounding_mode"):
            return refused("values are rounded", "divide without rounding")
        alpha = kwargs.get("alpha", 1)
        if alpha != 1:
            return [("multiply", (second, float(alpha)), {}), (BINARY[name], (first, FIRST), {})]
        return [(BINARY[name], (first, second), {})]

    def _split(self, name, args, kwargs, result):
        dimension = (args[1]
                     if len(args) > 1 else kwargs.get("dim", 0)) if name == "unbind" else args[2] if len(args) > 2 else kwargs.get("dim", 0)
        whole, first, parts = args[0], 0, []
        dimension %= whole.ndim
        for part in result:
            size = 1 if name == "unbind" else part.shape[dimension]
            steps = [("slice", (whole,), {"dimension": dimension, "indices": np.arange(first, first + size)})]
            parts.append(steps + ([("reshape", (FIRST,), {"shape": tuple(part.shape)})] if name == "unbind" else []))
            first += size
        return parts

    def _dropped(self, args):
        value, noise = (args[0], args[1]) if id(args[1]) in self._noise else (args[1], args[0])
        if noise.shape != value.shape:
            return refused("whole channels are dropped at random (Dropout2d)", "call module.eval(), or use nn.Dropout")
        return [("dropout", (value,), {"rate": 1 - self._noise[id(noise)]})]

    @staticmethod
    def _indices(args):
        given = [(k, index) for k, index in enumerate(args[1]) if index is not None]
        if len(given) != 1 or given[0][1].ndim != 1:
            return None
        k, index = given[0]
        return k, np.flatnonzero(index.numpy()) if index.dtype == torch.bool else index.numpy() % args[0].shape[k]

    def _write(self, steps, result, name):
        """Operations for the steps, and what the resulting tensors are in the trace."""
        if name in _SEVERAL and isinstance(steps[0], list):
            for part, tensor in zip(steps, result):
                self._write(part, tensor, "")
            return
        tensors = [leaf for leaf in tree_flatten(result)[0] if isinstance(leaf, torch.Tensor)]
        output = written(self.operations, steps, self._tensor, tuple(tensors[0].shape), self.place)
        for tensor in tensors if steps[0][0] == "refused" else tensors[:1]:
            self._variables[id(tensor)] = output, self._versions.get(self._storage(tensor), 0)

    def _constant(self, function, name, args, kwargs, result, tensors):
        """Follows parameters through what is computed of them alone."""
        if name.startswith("bernoulli"):
            self._noise[id(result)] = float(args[1] if len(args) > 1 and not isinstance(args[1], torch.Tensor) else kwargs.get("p", 0.5))
        elif tensors and id(tensors[0]) in self._noise and name in ("div", "div_"):
            self._noise[id(result)] = self._noise[id(tensors[0])]
        known = [self._parameters[id(tensor)] for tensor in tensors if id(tensor) in self._parameters]
        results = [leaf for leaf in tree_flatten(result)[0] if isinstance(leaf, torch.Tensor)]
        if not known:
            return
        if name in ARRANGING and len(known) == 1:
            moved = function(*(torch.from_numpy(known[0].entries.copy()) if arg is tensors[0] and id(arg) in self._parameters else
                               torch.from_numpy(known[0].entries.copy()) if isinstance(arg, torch.Tensor)
                               and id(arg) in self._parameters else arg
                               for arg in args), **(kwargs if name != "_to_copy" else {}))
            entries = [leaf.numpy() for leaf in tree_flatten(moved)[0]]
            for tensor, entry in zip(results, entries):
                self._parameters[id(tensor)] = Parameter(known[0].name, entry, known[0].trained, known[0].whole)
            return
        for tensor in results:
            if tensor.is_floating_point():
                name = " and ".join(dict.fromkeys(parameter.name for parameter in known))
                self._parameters[id(tensor)] = Parameter(f"{name} (computed)", np.arange(tensor.numel()).reshape(tuple(tensor.shape)),
                                                         any(parameter.trained for parameter in known), _numpy(tensor).ravel())

    def padded_around(self, value: torch.Tensor, pad: list[int], result: torch.Tensor) -> None:
        """Circular padding, which ATen writes as copies in place."""
        steps, count = [], len(pad) // 2
        for k in range(count):
            matrix = padded(value.shape[value.ndim - 1 - k], pad[2 * k], pad[2 * k + 1], "circular")
            steps.append(("axis_map", (Earlier(len(steps) - 1) if steps else value,), {"dimension": value.ndim - 1 - k, "matrix": matrix}))
        self._keep.append(result)
        self._write(steps, result, "")

    def recurrent(self, value: torch.Tensor, result: Any) -> None:
        """A recurrent layer, of which nothing is read."""
        self._keep += list(result)
        steps = refused("a recurrent layer has the same weights at all times",
                        "widelimit.layers.recurrent is the limit of nn.RNN; gated cells "
                        "(LSTM, GRU) have none here")
        self._write(self._refused(steps, (value,)), result, "")

    def knows(self, tensor: Any) -> bool:
        return isinstance(tensor, torch.Tensor) and id(tensor) in self._variables

    def variable(self, tensor: Any) -> Variable | None:
        found = self._variables.get(id(tensor))
        return None if found is None else found[0]


class _AsOne(TorchFunctionMode):
    """Writes down circular padding and recurrent layers, which ATen takes apart, as one operation."""

    def __init__(self, recorder: _Recorder, paused: Any) -> None:
        super().__init__()
        self._recorder, self._paused = recorder, paused

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        mode, name = kwargs.get("mode", args[2] if len(args) > 2 else None), getattr(function, "__name__", "")
        if name in ("lstm", "gru", "rnn_tanh", "rnn_relu") and self._recorder.knows(args[0]):
            with self._paused():
                result = function(*args, **kwargs)
            self._recorder.recurrent(args[0], result)
            return result
        if name == "pad" and mode == "circular" and self._recorder.knows(args[0]):
            with self._paused():
                result = function(*args, **kwargs)
            self._recorder.padded_around(args[0], list(kwargs.get("pad", args[1] if len(args) > 1 else ())), result)
            return result
        return function(*args, **kwargs)


def _numpy(tensor):
    array = tensor.detach()
    if array.is_complex():
        return array.numpy()
    return array.to(torch.float64).numpy() if array.is_floating_point() else array.numpy()


@contextmanager
def _named_places(module: torch.nn.Module, stack: list[str]) -> Iterator[None]:
    with ExitStack() as hooks:
        for name, inner in module.named_modules():
            path = f"module.{name}" if name else "module"
            hooks.callback(inner.register_forward_pre_hook(lambda *_, path=path: stack.append(path)).remove)
            hooks.callback(inner.register_forward_hook(lambda *_: stack.pop() and None).remove)
        yield


@contextmanager
def _plain_attention() -> Iterator[None]:
    """nn.MultiheadAttention and nn.TransformerEncoderLayer by their operations, not by one for all of them."""
    switch = getattr(getattr(torch.backends, "mha", None), "set_fastpath_enabled", None)
    before = switch and torch.backends.mha.get_fastpath_enabled()
    if switch:
        switch(False)
    try:
        yield
    finally:
        if switch:
            switch(before)


def trace(module: torch.nn.Module, example: Any, batch_axis: int, fixed: tuple[str, ...] = ()) -> Trace:
    """The operations of module(*example). The first tensor of a tuple is the input, all else stays as it is."""
    if not isinstance(module, torch.nn.Module):
        raise ConversionError(f"module: expected a torch.nn.Module, got {module!r}")
    others = tuple(example[1:]) if isinstance(example, (tuple, list)) else ()
    example = torch.as_tensor(example[0] if isinstance(example, (tuple, list)) else example)
    if example.ndim < 1 or not -example.ndim <= batch_axis < example.ndim:
        raise ConversionError(f"example: expected a batch of inputs along axis {batch_axis}, got a tensor of shape {tuple(example.shape)}")
    if example.shape[batch_axis] < 2:  # A batch of one cannot be told from a dimension that the module adds.
        example = torch.cat([example] * 2, batch_axis)
    example = example.detach().clone()
    recorder = _Recorder(module, example, fixed)

    @contextmanager
    def paused():
        operations = recorder.operations
        try:
            with torch.utils._python_dispatch._disable_current_modes():
                yield
        finally:
            recorder.operations = operations

    with torch.no_grad(), _plain_attention(), _named_places(module, recorder.stack), torch.random.fork_rng(devices=[]), \
            _AsOne(recorder, paused), recorder:
        output = module(example, *others)
    return Trace(recorder.operations, recorder.input, _output(recorder, output), type(module).__name__)


def _output(recorder, output):
    """The one tensor of the output that depends on the input, the first where there are several."""
    leaves = [leaf for leaf in tree_flatten(output)[0] if isinstance(leaf, torch.Tensor)] or list(getattr(output, "values", lambda: [])())
    found = [variable for variable in map(recorder.variable, leaves) if variable is not None]
    if not found:
        raise ConversionError("module: no tensor of its output depends on the input; pass a module whose forward returns a tensor")
    return found[0]
