"""Products with weights: dense layers, convolutions, attention's projections, embeddings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ._attention import is_position
from ._axes import BATCH, CHANNEL, Atom, renamed
from ._nodes import GAUSSIAN, RAW, make
from ._positions import as_axes, mapped, without
from ._signals import Logits, Signal, settled, unscaled
from ._trace import Constant, Operation, refuse
from ._weights import record, vector, weights


def contract(state: Any, operation: Operation, a: Any, b: Any) -> Any:
    if isinstance(a, Constant) or isinstance(b, Constant):
        return _with_constant(state, operation, a, b)
    if isinstance(a, Logits) or isinstance(b, Logits):
        return state.attention.attend(state, operation, a, b)
    return state.attention.product(state, operation, a, b)


def _with_constant(state, operation, a, b):
    place = operation.place
    (batch_a, batch_b), (over_a, over_b) = operation.attributes["batch"], operation.attributes["contracting"]
    first = isinstance(a, Constant)
    signal, constant = (b, a) if first else (a, b)
    batch_s, batch_c, over_s, over_c = (batch_b, batch_a, over_b, over_a) if first else (batch_a, batch_b, over_a, over_b)
    if not isinstance(signal, Signal) or signal.rows is not None:
        raise refuse(place, "attention weights or parts of heads meet weights", "apply weights to whole channels")
    constant, kept = _without_batch(constant, batch_c, place)
    over_c = [kept.index(k) for k in over_c]
    rest_c = [k for k in range(constant.values.ndim) if k not in over_c]
    rest_s = [k for k in range(len(signal.dims)) if k not in (*batch_s, *over_s)]
    atoms = [atom for k in over_s for atom in signal.dims[k]]
    if any(atom.axis == BATCH for atom in atoms):
        raise refuse(place, "a product sums over the batch",
                     "every input has to be computed by itself (batch_axis says where the batch is)")
    if not any(atom.axis == CHANNEL for atom in atoms) and signal.node.channels > 1:
        return _over_positions(signal, constant, (batch_s, rest_s, over_s), (over_c, rest_c), first, place)
    weight = record(constant, [*rest_c, *over_c], len(rest_c), place)
    node, dims = _dense(signal, atoms, weight, place)
    out = [constant.values.shape[k] for k in rest_c]
    strides = [int(np.prod(out[j + 1:], dtype=int)) for j in range(len(out))]
    new = tuple((Atom(CHANNEL, stride, size),) if size > 1 else () for stride, size in zip(strides, out))
    batch, rest = tuple(dims[k] for k in batch_s), tuple(dims[k] for k in rest_s)
    return Signal(node, batch + (new + rest if first else rest + new))


def _without_batch(constant, batch, place):
    """Weights without the dimensions that broadcasting has repeated for every input, and which dimensions are left."""
    if any(constant.values.shape[k] > 1 and np.ptp(constant.values, k).any() for k in batch):
        raise refuse(place, "weights differ from input to input, or from head to head",
                     "use the same weights for all, or a grouped convolution")
    kept = [k for k in range(constant.values.ndim) if k not in batch]
    first = tuple(0 if k in batch else slice(None) for k in range(constant.values.ndim))
    parameter = constant.parameter and replace(constant.parameter, entries=constant.parameter.entries[first])
    return Constant(constant.values[first], parameter), kept


def _dense(signal, atoms, weight, place):
    """The node of new weights over these atoms, all channels and perhaps parts of positions, and the dims of what remains."""
    signal = unscaled(signal, place)
    node, dims = signal.node, signal.dims
    channels = int(np.prod([atom.size for atom in atoms if atom.axis == CHANNEL], dtype=int))
    if channels != node.channels:
        raise refuse(place, f"weights mix {channels} of {node.channels} channels", "mix all channels, or use a grouped convolution")
    spatial = list(dict.fromkeys(atom.axis for atom in atoms if atom.axis != CHANNEL))
    out = len(weight.values)
    if node.kind == "heads":
        made = make("attention", node.parents, place, channels=out, law=GAUSSIAN, key=(weight.name, weight.entries.tobytes()),
                    weight=weight, bias=None, heads_node=node)
        return made, renamed(dims, lambda atom: None if atom.axis == CHANNEL else atom)
    if not spatial:
        return weights(node, weight, None, place, channels=out, fan_channels=channels), renamed(
            dims, lambda atom: None if atom.axis == CHANNEL else atom)
    sizes = {axis: int(np.prod([atom.size for atom in atoms if atom.axis == axis])) for axis in spatial}
    if all(sizes.get(axis) == size for axis, size in node.axes):
        total = channels * int(np.prod(list(sizes.values())))
        flat = make("flatten", (node,), place, axes=(), channels=total)
        return weights(flat, weight, None, place, channels=out, fan_channels=total), renamed(
            dims, lambda atom: None if atom.axis == CHANNEL or atom.axis in spatial else atom)
    return _patches(signal, atoms, sizes, weight, channels, place)


def _patches(signal, atoms, sizes, weight, channels, place):
    """Weights over neighbouring positions that are cut out side by side: a convolution whose strides are its filter."""
    node = signal.node
    for axis, size in sizes.items():
        inner = [atom for atom in atoms if atom.axis == axis]
        if inner != [Atom(axis, 1, size)]:
            raise refuse(place, "weights act on positions that are no neighbours", "use a convolution")
    axes = tuple((axis, size // sizes.get(axis, 1)) for axis, size in node.axes)
    filters = {axis: size for axis, size in sizes.items()}
    made = weights(node, weight, None, place, channels=len(weight.values), fan_channels=channels, axes=axes, filter=filters,
                   strides=filters, pads={}, dilations={})
    for axis in sizes:
        if dict(axes)[axis] == 1:
            made = without(made, axis, place)

    def change(atom):
        if atom.axis == CHANNEL:
            return None
        return Atom(atom.axis, atom.stride // sizes[atom.axis], atom.size) if atom.axis in sizes and atom not in atoms else \
            None if atom in atoms else atom

    return made, renamed(signal.dims, change)


def _over_positions(signal, constant, of_signal, of_constant, first, place):
    """A fixed matrix of positions, such as the adjacency of a graph."""
    batch_s, rest_s, over_s = of_signal
    over_c, rest_c = of_constant
    if constant.parameter is not None:
        raise refuse(place, "learned weights mix positions, the same for all channels (token mixing): there are as many of them as "
                            "positions, "
                     "which stay few as channels grow, so that the kernel stays random", "use attention, a convolution over channels, or a "
                     "fixed matrix (a buffer)")
    if len(over_s) != 1 or len(rest_c) != 1 or not all(is_position(atom) for atom in signal.dims[over_s[0]]):
        raise refuse(place, "a fixed matrix acts on something else than one axis of positions", "use one matrix for one axis")
    matrix = np.transpose(constant.values, [*rest_c, *over_c])
    signal, (axis,) = as_axes(settled(signal, place), [over_s[0]], place)
    result = mapped(signal, axis, matrix, place)
    batch, rest, moved = (tuple(result.dims[k] for k in which) for which in (batch_s, rest_s, over_s))
    return replace(result, dims=batch + (moved + rest if first else rest + moved))


def convolution(state: Any, operation: Operation, value: Any, weight: Constant, bias: Constant | None = None) -> Signal:
    """Convolutions of every kind; inputs [n, channels, positions...]."""
    place, given = operation.place, operation.attributes
    if not isinstance(value, Signal) or not isinstance(weight, Constant):
        raise refuse(place, "a convolution by values of the network", "use attention or a product")
    value = unscaled(value, place)
    count = weight.values.ndim - 2
    if value.dims[1] != ((Atom(CHANNEL, 1, value.node.channels),) if value.node.channels > 1 else ()):
        raise refuse(place, "the convolution's channels are not those of the network", "give it [n, channels, positions...]")
    value, axes = as_axes(value, list(range(2, 2 + count)), place)
    each = given["groups"] > 1 and given["groups"] == value.node.channels
    if given["groups"] > 1 and value.node.law == RAW:
        raise refuse(place, "groups of the inputs' own channels have weights of their own", "use one group on the inputs")
    order = [1, 0, *range(2, 2 + count)] if given.get("transposed") else list(range(2 + count))
    if given.get("transposed") and given["groups"] > 1:
        raise refuse(place, "a transposed convolution has groups", "use one group")
    rows = record(weight, order, 1, place)
    sizes = weight.values.shape[2:]
    node, axes, given = _without_lone_axes(value.node, axes, sizes, given, place)
    if given.get("transposed"):
        node, given = _spread(node, axes, sizes, given, place)
    return _convolved(value, node, axes, (rows, sizes, bias), given, each, place)


def _convolved(value, node, axes, tensors, given, each, place):
    weight, sizes, bias = tensors
    named = [axis for axis in axes if axis is not None]
    out = {axis: _length(node.size(axis), size, stride, before + after, dilation) for axis, size, stride, before, after, dilation in zip(
        axes, sizes, given["strides"], *given["pads"], given["dilations"]) if axis is not None}
    if any(length < 1 for length in out.values()):
        raise refuse(place, "the convolution leaves no position", "use larger inputs")
    options = {"filter": sizes, "strides": given["strides"], "dilations": given["dilations"], "pads": tuple(zip(*given["pads"]))}
    by_axis = {name: {axis: values[k] for k, axis in enumerate(axes) if axis is not None} for name, values in options.items()}
    if all(size == 1 for size in sizes) and all(s == 1 for s in given["strides"]) and not np.any(given["pads"]):
        by_axis = {}
    channels = len(weight.values)
    if bias is not None and bias.parameter is None and bias.values.any():
        raise refuse(place, "the convolution's biases are no parameter", "make them one, or leave them out")
    made = weights(node, weight, None if bias is None else vector(bias), place, channels=channels,
                   fan_channels=1 if each else node.channels // given["groups"], each=each,
                   axes=tuple((axis, out.get(axis, size)) for axis, size in node.axes), **by_axis)
    dims = [(Atom(CHANNEL, 1, channels),) if channels > 1 else ()]
    for axis in axes:
        length = out.get(axis, 1)
        dims.append((Atom(axis, 1, length),) if length > 1 else ())
    for axis in named:
        if out[axis] == 1:
            made = without(made, axis, place)
    return Signal(made, (value.dims[0], *dims))


def _length(size, filter_size, stride, pads, dilation):
    return (size + pads - dilation * (filter_size - 1) - 1) // stride + 1


def _without_lone_axes(node, axes, sizes, given, place):
    """Axes of one position that the node has no axis for get one where the filter needs it."""
    missing = [k for k, axis in enumerate(axes) if axis is None]
    if not missing or all(sizes[k] == 1 and not given["pads"][0][k] and not given["pads"][1][k] for k in missing):
        return node, axes, given
    lone = [("lone", k) for k in missing]
    named = list(axes)
    for k, name in zip(missing, lone):
        named[k] = name
    full = np.eye(int(np.prod([size for _, size in node.axes], dtype=int)))
    sizes_of = {axis: node.size(axis) for axis in named}
    return make("map", (node,), place, axes=tuple((axis, sizes_of[axis]) for axis in named), full=full), named, given


def _spread(node, axes, sizes, given, place):
    """A transposed convolution is one with zeros between the positions."""
    pads = [[], []]
    for k, axis in enumerate(axes):
        size, stride, reach = node.size(axis), given["strides"][k], given["dilations"][k] * (sizes[k] - 1)
        before, after = reach - given["pads"][0][k], reach - given["pads"][1][k] + given["output_padding"][k]
        if before < 0 or after < 0:
            raise refuse(place, "a transposed convolution whose padding is above its reach", "use less padding")
        pads[0].append(before)
        pads[1].append(after)
        if stride > 1 and axis is not None and size > 1:
            matrix = np.zeros(((size - 1) * stride + 1, size))
            matrix[np.arange(size) * stride, np.arange(size)] = 1
            node = make("map", (node,), place, axes=tuple((name, len(matrix) if name == axis else length) for name, length in node.axes),
                        matrices={axis: matrix})
    return node, {**given, "pads": pads, "strides": [1] * len(axes)}


def embedding(state: Any, operation: Operation, weight: Constant, value: Any) -> Signal:
    """Rows of weights at indices: a dense layer of one-hot inputs."""
    place = operation.place
    if not state.one_hot or not isinstance(value, Signal) or value.node.kind != "input":
        raise refuse(place, "an embedding of indices has no input of real numbers",
                     "pass one_hot=True: the network then takes one-hot inputs, and the embedding is its first dense layer")
    rows = record(weight, [1, 0], 1, place)
    count = rows.values.shape[1]
    node = state.one_hot_input(value.node, count, place)
    made = weights(node, rows, None, place, channels=len(rows.values), fan_channels=count)
    return Signal(made, (*value.dims, (Atom(CHANNEL, 1, len(rows.values)),)))


def attention(state: Any, operation: Operation, q: Any, k: Any, v: Any, mask: Any = None) -> Signal:
    """scaled_dot_product_attention, as the operations that it stands for."""
    rank, given = len(q.dims), operation.attributes
    batch = tuple(range(rank - 2))
    product = Operation("contract", (), operation.output, {"batch": (batch, batch), "contracting": ((rank - 1,), (rank - 1,))},
                        operation.place)
    logits = state.attention.product(state, product, q, k)
    logits = replace(logits, scale=logits.scale * given["scale"])
    if given["causal"]:
        seen = Constant(np.tril(np.ones(logits.shape[-2:])))
        logits = state.attention.where(operation, seen, logits, Constant(np.array(-np.inf)))
    if mask is not None:
        if mask.values.dtype == bool:
            logits = state.attention.where(operation, Constant(mask.values.astype(float)), logits, Constant(np.array(-np.inf)))
        else:
            logits = state.attention.plus(operation, logits, mask, 1.0, 1.0)
    product = Operation("contract", (), operation.output, {"batch": (batch, batch), "contracting": ((rank - 1,), (rank - 2,))},
                        operation.place)
    return state.attention.attend(state, product, replace(logits, stage="weights"), v)

