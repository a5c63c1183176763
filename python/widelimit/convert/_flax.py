"""Reads a module of Flax (NNX) by its jaxpr: everything that the module computes, whatever its layers are called."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._jax_steps import STEPS
from ._steps import refused, written
from ._trace import Constant, ConversionError, Operation, Parameter, Trace, Variable

_INSIDE = {"pjit": "jaxpr", "jit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr", "custom_jvp_call": "call_jaxpr",
           "custom_vjp_call": "call_jaxpr", "custom_vjp_call_jaxpr": "fun_jaxpr", "remat": "jaxpr", "checkpoint": "jaxpr",
           "remat2": "jaxpr"}
_SAME = {"convert_element_type", "stop_gradient", "copy", "copy_p", "device_put", "optimization_barrier", "sharding_constraint",
         "reduce_precision"}
_ARRANGING = _SAME | {"reshape", "transpose", "squeeze", "expand_dims", "broadcast_in_dim", "slice", "rev"}


def trace(module: Any, example: Any, fixed: tuple[str, ...] = ()) -> Trace:
    """The operations of module(example)."""
    import jax
    from flax import nnx

    example = example if hasattr(example, "dtype") else np.asarray(example)
    if example.ndim and example.shape[0] < 2:  # A batch of one cannot be told from a dimension that the module adds.
        example = np.concatenate([example] * 2)
    definition, state = nnx.split(module)
    leaves, tree = jax.tree_util.tree_flatten(state)
    names = [_name(path) for path, _ in jax.tree_util.tree_flatten_with_path(state)[0]]
    parameters = {_name(path) for path, _ in jax.tree_util.tree_flatten_with_path(nnx.state(module, nnx.Param))[0]}

    def called(values, x):
        return nnx.merge(definition, jax.tree_util.tree_unflatten(tree, values))(x)

    closed = jax.make_jaxpr(called)(leaves, example)
    reader = _Reader(tuple(np.shape(example)))
    constants = [_constant(name, leaf, name in parameters and name not in fixed) for name, leaf in zip(names, leaves)]
    outputs = reader.run(closed.jaxpr, closed.consts, [*constants, reader.input])
    found = [value for value in outputs if isinstance(value, Variable)]
    if not found:
        raise ConversionError("module: no array of its output depends on the input; pass a module whose call returns an array")
    return Trace(reader.operations, reader.input, found[0], type(module).__name__)


def _name(path):
    keys = [str(getattr(key, "key", getattr(key, "name", getattr(key, "idx", key)))) for key in path]
    return ".".join(key for key in keys if key not in ("value", "raw_value"))


def _constant(name, leaf, is_parameter):
    if not is_parameter:
        return Constant(leaf) if _is_key(leaf) else Constant(np.asarray(leaf))
    values = np.asarray(leaf, float)
    return Constant(values, Parameter(name, np.arange(values.size).reshape(values.shape), True, values.ravel()))


def _is_key(value):
    return "key" in str(getattr(value, "dtype", ""))


class _Reader:
    """The equations of a jaxpr as operations."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.operations: list[Operation] = []
        self.input = Variable(shape)
        self._place = "module"

    def run(self, jaxpr: Any, consts: Any, arguments: list[Any]) -> list[Any]:
        """The results of a jaxpr: Variables, and Constants where they do not depend on the input."""
        values = {variable: Constant(value if _is_key(value) else np.asarray(value)) for variable, value in zip(jaxpr.constvars, consts)}
        values.update(zip(jaxpr.invars, arguments))

        def read(atom):
            return Constant(np.asarray(atom.val)) if hasattr(atom, "val") else values[atom]

        for equation in jaxpr.eqns:
            inputs = [read(atom) for atom in equation.invars]
            for variable, result in zip(equation.outvars, self._equation(equation, inputs)):
                values[variable] = result
        return [read(atom) for atom in jaxpr.outvars]

    def _equation(self, equation, inputs):
        name = equation.primitive.name
        self._see(inputs)
        if name in _INSIDE and any(isinstance(value, Variable) for value in inputs):
            inner = equation.params[_INSIDE[name]]
            return self.run(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), inputs)
        if not any(isinstance(value, Variable) for value in inputs):
            return self._computed(equation, name, inputs)
        if name in _SAME:
            return inputs
        steps = STEPS[name](equation.params, inputs) if name in STEPS else refused(
            f"the operation {name} has no limit here", "write it by layers that docs/convert.md lists")
        if steps[0][0] == "refused":
            steps = [("refused", tuple(value for value in inputs if isinstance(value, Variable)), steps[0][2])]
        outputs = steps if steps and isinstance(steps[0], list) else [steps]
        return [written(self.operations, one, _tensor, tuple(variable.aval.shape), self._place)
                for one, variable in zip(outputs, equation.outvars)]

    def _see(self, inputs):
        """The submodule whose parameters were read last is where an operation belongs."""
        for value in inputs:
            if isinstance(value, Constant) and value.parameter is not None:
                self._place = ("module." + value.parameter.name.rpartition(".")[0]).rstrip(".")

    @staticmethod
    def _computed(equation, name, inputs):
        parts = equation.primitive.bind(*(value.values for value in inputs), **equation.params)
        parts = list(parts) if equation.primitive.multiple_results else [parts]
        source = next((value.parameter for value in inputs if value.parameter is not None), None)
        if source is None:
            return [Constant(part if _is_key(part) else np.asarray(part)) for part in parts]
        if name in _ARRANGING and len(inputs) == 1:
            entries = source.entries if name in _SAME else np.asarray(equation.primitive.bind(source.entries, **equation.params))
            return [Constant(np.asarray(parts[0], float), Parameter(source.name, entries, source.trained, source.whole))]
        results = []
        for part in parts:
            values = np.asarray(part)
            results.append(Constant(values, Parameter(f"{source.name} (computed)", np.arange(values.size).reshape(values.shape),
                                                      source.trained,
                                                      values.ravel())))
        return results


def _tensor(value):
    return Constant(np.asarray(value)) if isinstance(value, (bool, int, float, np.ndarray)) else value
