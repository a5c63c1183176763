"""Functions that JAX and PyTorch differentiate: functions of NumPy's arrays that know their backward passes."""

from __future__ import annotations

import sys
from typing import Any, Sequence

from .derivatives import gram_diagonal_vjp
from .kernels import _checked_kernels, gram_diagonal


class Differentiable:
    """names: those of the results; shapes: of each result; forward(*inputs): the results in the order of their names;
    backward(inputs, cotangents, wanted): derivatives with respect to the inputs, one each, None for those not wanted. A cotangent
    may be None, but not all of them; at least one input is wanted."""

    names: Sequence[str]
    shapes: Sequence[tuple[int, ...]]
    what = "kernels"  # The word for the results in errors.
    instead = "their first derivatives are in widelimit.gram_vjp, of which differences can be taken"

    def forward(self, *inputs: Any) -> list[Any]:
        raise NotImplementedError

    def backward(self, inputs: Sequence[Any], cotangents: Sequence[Any], wanted: Sequence[bool]) -> list[Any]:
        raise NotImplementedError

    def check_way_back(self, wanted: Sequence[bool]) -> None:
        """NotImplementedError if there is no backward pass to these inputs."""

    def formula(self) -> Any:
        """forward() as a function of JAX's arrays alone, which has all derivatives; None if there is none."""
        return None


def differentiated(function: Differentiable, inputs: Sequence[Any], dtype: Any = None) -> list[Any]:
    """The function's results at inputs some of which are live (_caller.py), as arrays of their library that can be
    differentiated. dtype: the element type of the results, a NumPy one; None: that of the inputs."""
    jax = sys.modules.get("jax")
    if jax is not None and any(isinstance(value, jax.core.Tracer) for value in inputs):
        from ._host_functions import traced

        return traced(function, inputs, dtype)
    from ._recorded import recorded

    return recorded(function, inputs)


def names_of(kernels):
    """The names of results that 'nngp', 'ntk' or 'both' asks for."""
    return ("nngp", "ntk") if _checked_kernels(kernels) == "both" else (kernels,)


class Kernels(Differentiable):
    """Kernels of a Network."""

    def __init__(self, network, kernels, options):
        self.network, self.kernels, self.options = network, kernels, options
        self.names = names_of(kernels)

    def formula(self):
        if any(value is not None for name, value in self.options.items() if name != "threads"):
            return None
        from ._formulas import descriptions, of_inputs, step_of

        layers = descriptions(self.network.layers)
        if layers is None:
            return None
        step = step_of(layers)

        def kernels(*inputs):
            found = step(of_inputs(*self._pair(inputs), "ntk" in self.names, False))
            return [self._of_pairs(getattr(found, name)) for name in self.names]

        return kernels

    @staticmethod
    def _pair(inputs):
        return inputs[0], inputs[1] if len(inputs) == 2 else None

    @staticmethod
    def _of_pairs(array):
        return array[:, :, 0, 0]

    def _chosen(self, found):
        return [getattr(found, name) for name in self.names]

    def _weights(self, cotangents):
        return dict(zip(self.names, cotangents))


def word_of(wanted):
    """The word of gram_vjp() for these inputs."""
    return "both" if all(wanted) else "x1" if wanted[0] else "x2"


class Diagonal(Kernels):
    """gram_diagonal() for a Network."""

    def __init__(self, network, kernels, options, shape):
        super().__init__(network, kernels, options)
        check_axes([shape], channel_axis=-1)
        self.shapes = [shape[:1]] * len(self.names)

    @staticmethod
    def _of_pairs(array):
        return array.diagonal()[0, 0]

    def forward(self, x):
        return self._chosen(gram_diagonal(self.network, x, self.kernels, **self.options))

    def backward(self, inputs, cotangents, wanted):
        return [gram_diagonal_vjp(self.network, *inputs, **self._weights(cotangents), **self.options)]


def check_axes(shapes, channel_axis):
    """Checks that these are batches, with the same axes and equally many channels."""
    for shape, name in zip(shapes, ("x1", "x2")):
        if len(shape) < 2:
            raise ValueError(f"{name}: expected an array [n, ..., C], got one of shape {tuple(shape)}")
    if len(shapes[0]) != len(shapes[-1]) or shapes[0][channel_axis] != shapes[-1][channel_axis]:
        raise ValueError(f"expected inputs with the same axes and channels, got x1 of shape {tuple(shapes[0])} and x2 of "
                         f"shape {tuple(shapes[1])}")
