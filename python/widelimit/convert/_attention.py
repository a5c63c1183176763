"""Attention, as one operation or written out as products, masks and softmax."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ._axes import BATCH, CHANNEL, Atom, merged, renamed
from ._nodes import OTHER, make
from ._positions import as_axes, joined
from ._signals import HeadMap, Logits, Signal, settled
from ._trace import Constant, Operation, refuse

MASKED = -1e4  # Logits below this belong to positions that are not seen.


def is_position(atom: Atom) -> bool:
    return atom.axis not in (BATCH, CHANNEL) and not (isinstance(atom.axis, tuple) and atom.axis[0] in ("row", "key", "repeat"))


class Attention:
    """What happens to products of queries and keys."""

    def product(self, state: Any, operation: Operation, a: Signal, b: Signal) -> Logits:
        """Queries times keys, contracted over the channels of heads."""
        place = operation.place
        (batch_a, batch_b), (over_a, over_b) = operation.attributes["batch"], operation.attributes["contracting"]
        a, b = (compact(state, settled(signal, place), place) for signal in (a, b))
        if any(is_position(atom) for signal, batch in ((a, batch_a), (b, batch_b)) for k in batch for atom in signal.dims[k]):
            raise refuse(place, "attention is within groups of positions that a reshape makes (windows)",
                         "attend to all positions with a mask that has the windows, or say by batch_axis= where the batch is")
        for signal, over in ((a, over_a), (b, over_b)):
            if any(atom.axis != CHANNEL and atom.axis[0] != "row" for k in over for atom in signal.dims[k]):
                raise refuse(place, "two values of the network are multiplied and summed over positions or the batch",
                             "softmax attention and products with weights have limits")
        a, rest_a = _one_axis(a, [k for k in range(len(a.dims)) if k not in (*batch_a, *over_a)], place)
        b, rest_b = _one_axis(b, [k for k in range(len(b.dims)) if k not in (*batch_b, *over_b)], place)

        def as_key(atom):
            return Atom(("key", atom.axis), atom.stride, atom.size) if is_position(atom) else atom

        dims = tuple(a.dims[k] for k in batch_a) + rest_a + renamed(rest_b, as_key)
        return Logits(a, b, dims, a.scale * b.scale)

    def times(self, operation: Operation, a: Any, b: Any) -> Logits:
        logits, other = (a, b) if isinstance(a, Logits) else (b, a)
        if isinstance(other, Constant) and logits.stage == "logits" and other.values.size == 1:
            return replace(logits, scale=logits.scale * float(other.values.ravel()[0]))
        if isinstance(other, Logits) and {logits.stage, other.stage} == {"exponential", "inverse"}:
            return replace(logits if logits.stage == "exponential" else other, stage="weights")
        if isinstance(other, Constant) and logits.stage == "logits" and np.ptp(other.values) == 0:
            return replace(logits, scale=logits.scale * float(other.values.ravel()[0]))
        raise refuse(operation.place, "attention weights are multiplied with numbers of their own", "scale all logits by one number")

    def divided(self, operation: Operation, a: Any, b: Logits) -> Logits:
        if isinstance(a, Logits) and (a.stage, b.stage) == ("exponential", "total"):
            return replace(a, stage="weights")
        raise refuse(operation.place, "a value is divided by attention weights", "use softmax")

    def plus(self, operation: Operation, a: Any, b: Any, sign_a: float, sign_b: float) -> Logits:
        """A mask that is added, or the maximum that softmax takes away."""
        place = operation.place
        if isinstance(b, Logits) and isinstance(a, Logits) and b.stage == "maximum" and sign_b == -1:
            return a
        logits, other, sign = (a, b, sign_b) if isinstance(a, Logits) else (b, a, sign_a)
        if not isinstance(other, Constant) or logits.stage != "logits":
            raise refuse(place, "values of the network are added to logits", "add a mask that does not depend on the input")
        values = sign * other.values.astype(float)
        if not values.any():
            return logits
        return self._seen(logits, values > MASKED, place, np.where(values > MASKED, values, 0))

    def where(self, operation: Operation, condition: Constant, a: Any, b: Any) -> Logits:
        """masked_fill: where(condition, filler, logits), or the other way round."""
        logits, filler, seen = (a, b, condition.values != 0) if isinstance(a, Logits) else (b, a, condition.values == 0)
        if isinstance(filler, Constant) and logits.stage == "logits" and (filler.values <= MASKED).all():
            return self._seen(logits, seen, operation.place)
        if isinstance(filler, Constant) and logits.stage == "weights" and not filler.values.any():
            return logits  # Rows in which nothing is seen; others have zeros there already.
        raise refuse(operation.place, "logits are replaced by numbers that softmax sees", "mask them by -inf")

    def _seen(self, logits, seen, place, bias=None):
        """The mask [queries, keys] among the constant's dimensions."""
        queries, keys = (np.prod([d for d in self._sizes(logits, kind)], dtype=int) for kind in ("query", "key"))
        seen = np.broadcast_to(seen.reshape((1,) * (len(logits.dims) - seen.ndim) + seen.shape), logits.shape)
        if bias is not None and bias.any():
            raise refuse(place, "numbers are added to logits (a bias of relative positions, ALiBi)",
                         "leave them out; layers.attention(alibi=) has one slope for all heads")
        first = tuple(slice(None) if any(is_position(atom) or atom.axis[0] == "key" for atom in dimension) else 0
                      for dimension in logits.dims)
        if (seen != seen[tuple(slice(None) if index == slice(None) else slice(0, 1) for index in first)]).any():
            raise refuse(place, "masks differ from input to input, or from head to head",
                         "use one mask; widelimit.gram takes masks of inputs")
        mask = seen[first]
        if self._key_first(logits):
            mask = mask.T
        mask = mask.reshape(queries, keys)
        return replace(logits, mask=mask if logits.mask is None else logits.mask & mask)

    @staticmethod
    def _sizes(logits, kind):
        return [atom.size for dimension in logits.dims for atom in dimension
                if (is_position(atom) if kind == "query" else isinstance(atom.axis, tuple) and atom.axis[0] == "key")]

    @staticmethod
    def _key_first(logits):
        for dimension in logits.dims:
            for atom in dimension:
                if is_position(atom):
                    return False
                if isinstance(atom.axis, tuple) and atom.axis[0] == "key":
                    return True
        return False

    def elementwise(self, operation: Operation, logits: Logits) -> Logits:
        function = operation.attributes["function"]
        probe = np.array([-1.0, 0.5, 2.0])
        values = function(probe)
        if logits.stage == "logits" and np.allclose(values, np.exp(probe)):
            return replace(logits, stage="exponential")
        if logits.stage == "total" and np.allclose(function(np.array([2.0, 4.0])), [0.5, 0.25]):
            return replace(logits, stage="inverse")
        if np.allclose(values, values[2] / 2 * probe):
            return replace(logits, scale=logits.scale * float(values[2] / 2))
        raise refuse(operation.place, "a nonlinearity acts on attention logits (a soft cap)", "use softmax alone")

    def extreme(self, operation: Operation, logits: Logits, other: Any) -> Logits:
        if isinstance(other, Constant) and logits.stage == "maximum":
            return logits
        raise refuse(operation.place, "logits are clipped", "use softmax alone")

    def reduced(self, operation: Operation, logits: Logits) -> Logits:
        """max and sum over keys, as softmax has them."""
        (k,) = operation.attributes["dimensions"]
        is_key = all(isinstance(atom.axis, tuple) and atom.axis[0] == "key" for atom in logits.dims[k])
        stage = {("max", "logits"): "maximum", ("sum", "exponential"): "total"}.get((operation.kind, logits.stage))
        if stage is None or not is_key:
            raise refuse(operation.place, "attention weights are averaged", "use what they attend to")
        dims = logits.dims[:k] + (((),) if operation.attributes["keep"] else ()) + logits.dims[k + 1:]
        return replace(logits, stage=stage, dims=dims)

    def softmax(self, operation: Operation, logits: Any) -> Logits:
        place = operation.place
        if not isinstance(logits, Logits):
            raise refuse(place, "softmax over channels couples all of them, so that they are not independent",
                         "leave it out and take the logits"
                         " (outputs), or gate by sigmoid")
        atoms = logits.dims[operation.attributes["dimension"]]
        if logits.stage != "logits" or not all(isinstance(atom.axis, tuple) and atom.axis[0] == "key" for atom in atoms):
            if not all(is_position(atom) for atom in atoms):
                raise refuse(place, "softmax is not over the positions of keys", "use softmax over the keys of each query")
            logits = self._turned(logits)
        return replace(logits, stage="weights")

    @staticmethod
    def _turned(logits):
        def change(atom):
            if is_position(atom):
                return Atom(("key", atom.axis), atom.stride, atom.size)
            if isinstance(atom.axis, tuple) and atom.axis[0] == "key":
                return Atom(atom.axis[1], atom.stride, atom.size)
            return atom
        return replace(logits, queries=logits.keys, keys=logits.queries, dims=renamed(logits.dims, change),
                       mask=None if logits.mask is None else logits.mask.T)

    def attend(self, state: Any, operation: Operation, a: Any, b: Any) -> Signal:
        """Attention weights times values, contracted over positions of keys."""
        place = operation.place
        (batch_a, batch_b), (over_a, over_b) = operation.attributes["batch"], operation.attributes["contracting"]
        swapped = not isinstance(a, Logits)
        weights, values = (b, a) if swapped else (a, b)
        batch_w, batch_v, over_w, over_v = (batch_b, batch_a, over_b, over_a) if swapped else (batch_a, batch_b, over_a, over_b)
        if weights.stage != "weights" or isinstance(values, Logits):
            raise refuse(place, "products of queries and keys are used without softmax", "use softmax attention")
        if any(atom.axis == BATCH for k in over_v for atom in values.dims[k]):
            raise refuse(place, "attention is between the inputs of a batch", "say by batch_axis= where the example has its batch")
        if not all(is_key(atom) for k in over_w for atom in weights.dims[k]) or not all(
                is_position(atom) for k in over_v for atom in values.dims[k]):
            raise refuse(place, "attention weights are summed over something else than the positions of keys", "sum over keys")
        values, _ = _one_axis(compact(state, settled(values, place), place), list(over_v), place)
        rest_v = [k for k in range(len(values.dims)) if k not in (*batch_v, *over_v)]
        rest_w = [k for k in range(len(weights.dims)) if k not in (*batch_w, *over_w)]
        if len(rest_v) != 1 or values.rows is not None:
            raise refuse(place, "values of attention are no channels of heads", "keep the channels of a head in one dimension")
        size = int(np.prod([atom.size for atom in values.dims[rest_v[0]]], dtype=int))
        node = self._node(weights, values, size, place)
        of_weights = _outputs([weights.dims[k] for k in (*batch_w, *rest_w)], size, node.data["heads"])
        channels = ((Atom(CHANNEL, 1, size),) if size > 1 else (),)
        batch, queries = of_weights[:len(batch_w)], of_weights[len(batch_w):]
        return Signal(node, batch + (channels + queries if swapped else queries + channels))

    @staticmethod
    def _node(weights, values, size, place):
        queries, keys = weights.queries, weights.keys
        heads = int(np.prod([atom.size for dimension in weights.dims for atom in dimension if _is_head(atom)], dtype=int))
        sources = [_source(signal, what, place) for signal, what in ((queries, "queries"), (keys, "keys"), (values, "values"))]
        if any(source.parents[0] is not sources[0].parents[0] for source in sources):
            raise refuse(place, "queries, keys and values come from different values of the network (cross attention)",
                         "widelimit.layers.cross_attention has the limit where both are parts of one sequence")
        parent = sources[0].parents[0]
        if queries.node is not sources[0]:
            parent = make("shape", (parent,), place, axes=queries.node.axes)
        maps = [signal.rows.matrix if signal.rows is not None else np.eye(_head_width(signal))[None] for signal in (queries, keys)]
        q, k = (matrix.reshape(len(matrix), -1, matrix.shape[-1]) for matrix in maps)
        width = q.shape[-1]
        return make("heads", (parent,), place, channels=heads * size, law=OTHER, query=sources[0], keys=sources[1], value=sources[2],
                    kappa=weights.scale * np.sqrt(width), mask=weights.mask, frequencies=rotary_frequencies(q, k, place), heads=heads,
                    value_scale=values.scale)


def is_key(atom: Atom) -> bool:
    return isinstance(atom.axis, tuple) and atom.axis[0] == "key"


def _is_head(atom):
    return atom.axis == CHANNEL or (isinstance(atom.axis, tuple) and atom.axis[0] == "repeat")


def _outputs(dims, size, heads):
    """Dimensions of attention weights as those of the outputs: heads become the outer digits of the channels."""
    result, inner = [], heads
    for dimension in dims:
        atoms = []
        for atom in dimension:
            if _is_head(atom):
                inner //= atom.size
                atom = Atom(CHANNEL, size * inner, atom.size)
            atoms.append(atom)
        result.append(merged(atoms))
    return tuple(result)


def _one_axis(signal, rest, place):
    """The signal with its positions, in the dimensions `rest`, as axes; and these dimensions."""
    for k in rest:
        if any(is_position(atom) for atom in signal.dims[k]):
            if len(signal.dims[k]) > 1 and signal.rows is None:
                signal = joined(signal, tuple(atom.axis for atom in signal.dims[k]), place)
            elif signal.rows is None:
                signal, _ = as_axes(signal, [k], place)
    return signal, tuple(signal.dims[k] for k in rest)


def _source(signal, what, place):
    """The dense layer of queries, keys or values."""
    node = signal.node
    if node.kind == "shape":
        node = node.parents[0]
    is_dense = node.kind == "weights" and not node.data["each"] and not node.data.get("filter")
    if not is_dense:
        raise refuse(place,
                     f"{what} of attention are not a linear map of one value (they come from {node.place or node.kind}, {node.kind})",
                     "make queries, keys and values by linear layers")
    return node


def _head_width(signal):
    return max((atom.size for dimension in signal.dims for atom in dimension if atom.axis == CHANNEL and atom.stride == 1), default=1)


def compact(state: Any, signal: Signal, place: str) -> Signal:
    """The signal without the channels of its heads that no row reads, and without rows that are the channels themselves."""
    if signal.rows is None:
        return signal
    matrix, size = signal.rows.matrix, signal.rows.size
    read = np.flatnonzero(matrix.any(tuple(range(matrix.ndim - 1))))
    if len(read) < size:
        heads = signal.node.channels // size
        node = state.parts.of(signal.node, (np.arange(heads)[:, None] * size + read).ravel(), place)
        dims = renamed(signal.dims, lambda atom: Atom(CHANNEL, atom.stride // size * len(read), atom.size)
                       if atom.axis == CHANNEL else atom)
        signal = replace(signal, node=node, dims=dims, rows=HeadMap(matrix[..., read], signal.rows.axis, len(read)))
    rows = [k for k, dimension in enumerate(signal.dims) if any(isinstance(atom.axis, tuple) and atom.axis[0] == "row"
                                                                for atom in dimension)]
    matrix = signal.rows.matrix
    if len(rows) == 1 and matrix.shape[:2] == (1, len(read)) and np.array_equal(matrix[0], np.eye(len(read))):
        dims = tuple((Atom(CHANNEL, 1, len(read)),) if k == rows[0] else dimension for k, dimension in enumerate(signal.dims))
        return replace(signal, dims=dims, rows=None)
    return signal


def rotary_frequencies(q: np.ndarray, k: np.ndarray, place: str) -> list[float] | None:
    """The angles by which queries and keys [positions or 1, rows, channels] turn from one position to the next; None if they
    do not."""
    advice = "turn queries and keys by the same angles, position times a frequency"
    if len(q) == len(k) == 1:
        if all(np.array_equal(matrix[0], np.eye(*matrix[0].shape)) for matrix in (q, k)):
            return None
        raise refuse(place, "queries and keys are mixed by fixed matrices", advice)
    if q.shape != k.shape or not np.allclose(q, k, atol=1e-5):
        raise refuse(place, "queries and keys are turned differently", advice)
    step = q[0].T @ q[1]
    size = step.shape[0]
    for a in range(len(q)):
        turned = q[a].T @ q[a]
        if not np.allclose(turned, np.eye(size), atol=1e-4) or (a and not np.allclose(q[a - 1].T @ q[a], step, atol=1e-4)):
            raise refuse(place, "the tables that are multiplied to queries and keys are no rotations by position", advice)
    angles = np.sort(np.abs(np.angle(np.linalg.eigvals(step))))[::-1][::2]
    return [float(angle) if angle > 1e-9 else 0.0 for angle in angles]
