"""Kernels of stax networks whose layers all have formulas, as functions of JAX's arrays (_formulas.py), from inputs or from a
Kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._jax import with_any_ranks
from ._kernel import unzipped, zipped
from ._module import variance
from ._numbers import paths_of, placeholders, with_numbers


def last_axes(count, axes):
    """The order of axes that puts the batch first and the channels last; axes: their places."""
    return (axes[0], *(axis for axis in range(count) if axis not in axes), axes[1])


def paths_of_numbers(kernel_fn, first):
    """The paths of the variances whose square roots are the numbers of a kernel_fn."""
    networks, variances = [], []
    for spread in (0.00781, 0.01113):
        chosen = placeholders(len(kernel_fn.numbers), spread)
        networks.append(kernel_fn.at(chosen).network(first)[0])
        variances.append([variance(std) for std in chosen])
    return paths_of(networks, variances)


class FormulaKernels:
    """layers: objects of network files, or duals; paths: of the numbers in them; first, value: before and after the network."""

    def __init__(self, layers, paths, first, value):
        self._layers, self._paths, self._first, self._value = layers, paths, first, value
        self._compiled: dict[Any, Any] = {}

    @staticmethod
    def of(kernel_fn: Any, first: Any) -> FormulaKernels | None:
        """None unless all layers have formulas, and the numbers are in them."""
        known = kernel_fn.formulas
        if first not in known:
            known[first] = FormulaKernels._made(kernel_fn, first)
        return known[first]

    @staticmethod
    def _made(kernel_fn, first):
        from .._formulas import descriptions

        value = kernel_fn.at(placeholders(len(kernel_fn.numbers), 0.00781)).network(first)[1]
        layers = descriptions(value.layers)
        paths = paths_of_numbers(kernel_fn, first) if kernel_fn.numbers and layers is not None else []
        if layers is None or value.rows or not all(paths):
            return None
        return FormulaKernels(layers, paths, first, value)

    def compiled(self, count, names, has_pairs):
        """of_inputs() as a function of `count` batches and the numbers, which JAX compiles as one, also its derivatives: one by one its
        steps would be compiled for seconds."""
        import jax

        key = count, names, has_pairs
        if key not in self._compiled:
            def found(*inputs):
                arrays = self.of_inputs(inputs[0], inputs[1] if count == 2 else None, inputs[count:], names, has_pairs)
                return [arrays[name] for name in names]

            self._compiled.setdefault(key, jax.jit(with_any_ranks(found)))
        return self._compiled[key]

    def of_inputs(self, x1, x2, numbers, names, has_pairs):
        """Arrays by their names, for inputs of full shapes."""
        from .._formulas import of_inputs
        from ._inputs import are_same

        order = last_axes(x1.ndim, (self._first.batch_axis, self._first.channel_axis))
        found = of_inputs(*(None if x is None else x.transpose(*order) for x in (x1, x2)), "ntk" in names, has_pairs,
                          x2 is None or are_same(x1, x2))
        return self._arrays(found, numbers, names)

    @with_any_ranks
    def of_kernel(self, kernel, numbers, names):
        """Arrays by their names, after a Kernel made by hand."""
        from .._formulas import Covariances

        def matrices(array, batch_axes):
            if array is None or np.ndim(array) == 0:
                return array
            is_diagonal = bool(kernel.diagonal_spatial)
            found = unzipped(array, self._first.shape, is_diagonal, kernel.is_reversed and not is_diagonal, batch_axes)
            return found[..., None] * np.eye(found.shape[-1], dtype=found.dtype) if is_diagonal else found

        axes = 1 if kernel.diagonal_batch else 2
        nngp, cov1 = matrices(kernel.nngp, 2), matrices(kernel.cov1, axes)
        ntk = None if kernel.ntk is None or "ntk" not in names else nngp * 0 + matrices(kernel.ntk, 2)
        cov2 = cov1 if kernel.cov2 is None else matrices(kernel.cov2, axes)
        return self._arrays(Covariances(nngp, ntk, cov1, cov2, self._first.shape, kernel.x1_is_x2), numbers, names)

    def _arrays(self, covariances, numbers, names):
        from .._formulas import step_of

        layers = with_numbers(self._layers, self._paths, [number**2 for number in numbers])
        found = step_of(layers)(covariances)
        return {name: self._in_their_layout(getattr(found, name), 2 if name in ("nngp", "ntk") else found.cov1.ndim - 2)
                for name in names}

    def _in_their_layout(self, matrices, batch_axes):
        value = self._value
        if matrices is None:
            return None
        if not value.shape:
            return matrices[..., 0, 0]
        if value.is_diagonal:
            matrices = matrices.diagonal(axis1=-2, axis2=-1)
        return zipped(matrices, value.shape, value.is_diagonal, value.is_reversed, batch_axes)
