"""Kernels and networks of finite width within functions that JAX transforms, and of tensors that require gradients."""

import numpy as np

from .._differentiable import Diagonal, Differentiable, check_axes, word_of
from .._jax import is_traced
from ._formula_kernels import FormulaKernels, last_axes, paths_of_numbers
from ._module import start
from ._numbers import placeholders
from ._request import array_shapes


class LiveKernels(Differentiable):
    """kernel_fn(x1, x2, names) as a function of x1, of x2 if there is one, of the numbers of its layers, and of those of
    `options` that JAX traces; options are the arguments of kernel_fn that are not differentiated."""

    def __init__(self, kernel_fn, names, options, *shapes):
        self.names, self._options = tuple(names), options
        self.traced = TracedOptions(options)
        self._kernel_fn, self._count = kernel_fn, len(shapes)
        shown = kernel_fn.at(placeholders(len(kernel_fn.numbers), 0.00781))
        self.is_diagonal = shown._is_diagonal(options.get("diagonal_spatial"))
        for shape in shapes:
            if len(shape) < 2:
                check_axes([shape], channel_axis=-1)
        self.first = start(shown.module, shapes[0], options.get("batch_axis"), options.get("channel_axis"),
                           is_diagonal=self.is_diagonal,
                           has_masks=options.get("mask_constant") is not None,
                           has_patterns=(options.get("pattern") or (None,))[0] is not None)
        check_axes(shapes, self.first.channel_axis)
        self.value = shown.network(self.first)[1]
        found = array_shapes(self.value, self.first, shapes[0], shapes[1] if self._count == 2 else None, self.is_diagonal,
                             options.get("diagonal_batch") is not False)
        self.shapes = [found[name] for name in self.names]

    def formula(self):
        if any(self._options.get(name) is not None for name in ("pattern", "mask_constant")):
            return None
        kernels = FormulaKernels.of(self._kernel_fn, self.first)
        if kernels is None:
            return None
        return kernels.compiled(self._count, self.names, self._options.get("diagonal_batch") is False)

    def forward(self, *inputs):
        inputs, options = self.traced.taken_from(inputs)
        found = self._on_host(inputs)(*self._batches(inputs), self.names, **options)
        return [getattr(found, name) for name in self.names]

    def backward(self, inputs, cotangents, wanted):
        result = [None] * len(inputs)
        inputs, options = self.traced.taken_from(inputs)
        kernel_fn, batches, weights = self._on_host(inputs), self._batches(inputs), dict(zip(self.names, cotangents))
        if any(wanted[:self._count]):
            found = kernel_fn.way_back(*batches, weights, word_of(wanted[:self._count]), options)
            result[:self._count] = found if self._count == 2 else [found]
        if any(wanted[self._count:len(inputs)]):
            deviations = [float(value) for value in inputs[self._count:]]
            slopes = kernel_fn.request(*batches, **options).number_vjp(weights, self._paths())
            result[self._count:len(inputs)] = [np.asarray(2 * std * slope) for std, slope in zip(deviations, slopes)]
        return [part if is_wanted else None for part, is_wanted in zip(result, wanted)]

    def check_way_back(self, wanted):
        numbers_end = len(wanted) - len(self.traced.values)
        if any(wanted[numbers_end:]):
            raise NotImplementedError("derivatives by pattern and mask_constant: expected constants")
        wanted = wanted[:numbers_end]
        if self.value.shape or self.value.rows:
            raise NotImplementedError("derivatives: expected a network with a readout over positions, which takes no slices "
                                      "of the batch")
        if any(wanted[self._count:]) and not all(self._paths()):
            raise NotImplementedError("derivatives by W_std and b_std: expected layers that network files know, also in the "
                                      "branches around them")

    def _batches(self, inputs):
        return inputs[0], inputs[1] if self._count == 2 else None

    def _on_host(self, inputs):
        values = [float(value) for value in inputs[self._count:]]
        return self._kernel_fn.at(values) if values else self._kernel_fn

    def _paths(self):
        return paths_of_numbers(self._kernel_fn, self.first)


class TracedOptions:
    """What JAX traces among the options of kernel_fn: mask_constant and patterns. values: these, which follow the inputs."""

    def __init__(self, options):
        for name, value in options.items():
            if name not in ("mask_constant", "pattern") and is_traced(value):
                raise NotImplementedError(f"kernel_fn: {name}: expected a value that is known when the function is compiled: name "
                                          "it in static_argnames of jax.jit")
        self._options, self._places, self.values = options, [], []
        self._add("mask_constant", None, options.get("mask_constant"))
        for k, pattern in enumerate(options.get("pattern") or ()):
            self._add("pattern", k, pattern)

    def _add(self, name, k, value):
        if is_traced(value):
            self._places.append((name, k, value.dtype))
            self.values.append(value)

    def taken_from(self, inputs):
        """The inputs before the values, and all options with the values that came with them."""
        count, options = len(inputs) - len(self.values), dict(self._options)
        for (name, k, dtype), value in zip(self._places, inputs[count:]):
            value = np.asarray(value).astype(dtype)  # Edges came as real numbers.
            options[name] = value if k is None else tuple(value if j == k else other for j, other in enumerate(options[name]))
        return list(inputs[:count]), options


class DiagonalOfKernelFunction(Diagonal):
    """gram_diagonal() for a kernel_fn, with channels where its layers say."""

    def __init__(self, kernel_fn, kernels, options, shape):
        live = LiveKernels(kernel_fn, ("nngp",), {}, shape)
        live.check_way_back([True])
        self.axes = (live.first.batch_axis, live.first.channel_axis)
        super().__init__(kernel_fn.network(live.first)[0], kernels, options,
                         (shape[live.first.batch_axis], shape[live.first.channel_axis]))

    def formula(self):
        inner = super().formula()
        return None if inner is None else lambda x: inner(x.transpose(*last_axes(x.ndim, self.axes)))

    def forward(self, x):
        return super().forward(np.moveaxis(x, self.axes, (0, -1)))

    def backward(self, inputs, cotangents, wanted):
        found, = super().backward([np.moveaxis(x, self.axes, (0, -1)) for x in inputs], cotangents, wanted)
        return [np.moveaxis(found, (0, -1), self.axes)]


class LiveOutputs(Differentiable):
    """apply_fn(parameters, x) as a function of both."""

    names = ("outputs",)
    what = "networks of finite width"
    instead = "their first derivatives are in widelimit.FiniteNetwork.jacobian, of which differences can be taken"

    def __init__(self, functions, rng, shape):
        self._functions, self._rng = functions, rng
        self.shapes = [shape]

    def forward(self, parameters, x):
        return [self._functions.outputs(parameters, x, self._rng)]

    def backward(self, inputs, cotangents, wanted):
        return self._functions.gradients(*inputs, cotangents[0], wanted, self._rng)

    def check_way_back(self, wanted):
        if wanted[1]:
            self._functions.check_input_gradients()
