"""Reads an ONNX file: it is computed on the example, node by node, so that all shapes and constants are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import numpy as np

from ._onnx_steps import STEPS, Call
from ._steps import refused, written
from ._trace import Constant, ConversionError, Operation, Parameter, Trace, Variable

# What does not depend on the values of its input, or, of finite networks, is the same for all.
_SHAPES = {"IsNaN", "IsInf", "Shape", "Size", "ConstantOfShape", "EyeLike", "RandomNormalLike", "RandomUniformLike"}
_SAME = {"Identity", "Dropout", "Cast", "CastLike"}
# Of initializers, whose entries they leave as they are, elsewhere.
_ARRANGING: dict[str, Callable[..., np.ndarray]] = {}


class _Reader:
    """The nodes of a graph as operations."""

    def __init__(self, model: Any, values: dict[str, np.ndarray], source: str, fixed: tuple[str, ...]) -> None:
        from onnx import numpy_helper

        self.operations: list[Operation] = []
        self.values, self._known = values, {}
        self.input = Variable(tuple(values[source].shape))
        self._known[source] = self.input
        for tensor in model.graph.initializer:
            array = numpy_helper.to_array(tensor)
            self.values[tensor.name] = array
            self._known[tensor.name] = _constant(tensor.name, array, fixed)
        for node in model.graph.node:
            self._read(node)

    def tensor(self, value: Any) -> Any:
        """An input of a step: a name of the graph, an array or a number."""
        if isinstance(value, str):
            return self._known[value] if value in self._known else Constant(np.asarray(self.values[value]))
        return Constant(np.asarray(value)) if isinstance(value, (bool, int, float, np.ndarray)) else value

    def _read(self, node):
        place = f"node {node.name or node.output[0]} ({node.op_type})"
        depends = node.op_type not in _SHAPES and any(isinstance(self._known.get(name), Variable) for name in node.input)
        if not depends:
            for name in node.output:
                if name:
                    self._known[name] = self._arranged(node, name)
            return
        if node.op_type in _SAME and len(node.input) == 1 or node.op_type == "Dropout":
            self._known[node.output[0]] = self._known[node.input[0]]
            return
        call = Call(node, self.values)
        steps = STEPS.get(node.op_type)
        made = steps(call) if steps else refused(f"the operation {node.op_type} has no limit here",
                                                  "write it by layers that docs/convert.md lists")
        if made[0][0] == "refused":
            made = [("refused", tuple(name for name in node.input if isinstance(self._known.get(name), Variable)), made[0][2])]
        outputs = made if made and isinstance(made[0], list) else [made]
        for name, one in zip(node.output, outputs):
            self._known[name] = written(self.operations, one, self.tensor, tuple(self.values[name].shape), place)

    def _arranged(self, node, name):
        """A constant; what is an initializer's entries in another order stays that initializer."""
        array = np.asarray(self.values[name])
        sources = [self._known[given] for given in node.input if given in self._known and isinstance(self._known[given], Constant)]
        source = next((constant for constant in sources if constant.parameter is not None), None)
        if source is None or node.op_type not in ("Transpose", "Reshape", "Squeeze", "Unsqueeze", "Identity", "Cast", "Expand"):
            return Constant(array)
        call = Call(node, {**self.values, node.input[0]: source.parameter.entries})
        entries = call.arranged(array.shape)
        parameter = source.parameter
        return Constant(array, Parameter(parameter.name, entries, parameter.trained, parameter.whole))


def _constant(name, array, fixed):
    if array.dtype.kind != "f" or array.size < 2 or name in fixed:
        return Constant(array)
    return Constant(array, Parameter(name, np.arange(array.size).reshape(array.shape), True, np.asarray(array, float).ravel()))


def _without_constant_nodes(model):
    """A copy whose Constant nodes of numbers are initializers, as some exporters write weights."""
    import onnx

    model = onnx.ModelProto.FromString(model.SerializeToString())
    kept = []
    for node in model.graph.node:
        value = next((attribute.t for attribute in node.attribute if attribute.name == "value"), None)
        if node.op_type == "Constant" and value is not None:
            tensor = model.graph.initializer.add()
            tensor.CopyFrom(value)
            tensor.name = node.output[0]
        else:
            kept.append(node)
    del model.graph.node[:]
    model.graph.node.extend(kept)
    return model


def trace(file: Any, example: Any, fixed: tuple[str, ...] = ()) -> Trace:
    """The operations of a file, with its first input that is no initializer as the input."""
    import onnx

    model, name = _loaded(file)
    model = _without_constant_nodes(_inlined(model))
    given = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in given]
    if len(inputs) != 1:
        raise ConversionError(f"{name}: expected one input, got {len(inputs)} ({', '.join(value.name for value in inputs)}); export the "
                              f"part that "
                              "has one")
    array = _example(inputs[0], example, name)
    reader = _Reader(model, _computed(model, inputs[0].name, array, name), inputs[0].name, fixed)
    return Trace(reader.operations, reader.input, reader.tensor(model.graph.output[0].name), name)


def _loaded(file):
    import onnx

    if isinstance(file, onnx.ModelProto):
        return file, file.graph.name or "model"
    path = Path(file)
    if not path.is_file():
        raise ConversionError(f"{path}: there is no such file")
    try:
        return onnx.load(str(path)), path.name
    except Exception as error:  # protobuf's DecodeError, and what reading weights beside the file raises
        raise ConversionError(f"{path}: expected an ONNX file ({error})") from error


def _inlined(model):
    """Without functions of the file's own."""
    if not model.functions:
        return model
    from onnx import inliner

    return inliner.inline_local_functions(model)


def _example(value, example, name):
    if example is not None:
        array = np.asarray(example)
    else:
        dims = [dimension.dim_value for dimension in value.type.tensor_type.shape.dim]
        if any(size == 0 for size in dims[1:]):
            raise ConversionError(f"{name}: the sizes of input {value.name} are not in the file ({dims}); pass an example")
        array = np.random.default_rng(0).normal(size=[dims[0] if dims and dims[0] > 1 else 2, *dims[1:]])
    fixed = [dimension.dim_value for dimension in value.type.tensor_type.shape.dim]
    if len(fixed) == array.ndim and fixed[0] == 1:
        raise ConversionError(f"{name}: the file is for one input at a time, which cannot be told from a dimension of size 1; "
                              "export it with a batch of two or a free batch dimension")
    return array.astype(_type_of(value))


def _type_of(value):
    from onnx import helper

    return helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)


def _computed(model, source, array, name):
    """Every value of the graph, by ONNX's reference implementation."""
    import onnx
    from onnx.reference import ReferenceEvaluator

    wanted = [output for node in model.graph.node for output in node.output if output]
    del model.graph.output[len(model.graph.output):]
    outputs = [value.name for value in model.graph.output]
    for output in wanted:
        if output not in outputs:
            model.graph.output.append(onnx.ValueInfoProto(name=output))
    try:
        found = ReferenceEvaluator(model).run(wanted, {source: array})
    except Exception as error:  # Whatever an operation that it lacks raises
        raise ConversionError(f"{name}: ONNX's reference implementation cannot compute it ({error})") from error
    return {source: array, **dict(zip(wanted, found))}
