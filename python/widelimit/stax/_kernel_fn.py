"""kernel_fn: Gram matrices of a stax network."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._arrays import element_type, numbers
from .._caller import caller_of, is_live
from .._differentiable import differentiated
from .._frames import beside
from .._jax import is_traced
from .._named import by_name
from ._counted import Counted, count_of
from ._diagonal import NO
from ._flow import FlowKernels, is_plain
from ._finite import warn_of_unknown
from ._formula_kernels import FormulaKernels
from ._given import GivenKernel, form_of
from ._inputs import are_same, batch_of, checked_array
from ._kernel import ARRAYS, FIELDS, Kernel, registered
from ._live import LiveKernels
from ._masks import mask_through, masked
from ._module import Module, Sequence, axis_among, start
from ._numbers import numbers_of, placeholders, with_values
from ._own import OfKernels, has_own
from ._request import Request, facts_of


class KernelFunction:
    """kernel_fn(x1, x2=None, get=None, *, pattern=None, mask_constant=None, diagonal_batch=None, diagonal_spatial=None,
    batch_axis=None, channel_axis=None, precision=None, threads=0, store=None).

    x1, x2  arrays, with channels where the layers say (last, unless told otherwise); or x1 is the Kernel before this
            network: one that another kernel_fn gave, changed or not, or that you made by hand
    get     'nngp', 'ntk', 'cov1', 'cov2' or another field of Kernel in letters of either case; a tuple of them for a named
            tuple; None for a Kernel
    pattern          (graphs of x1, graphs of x2), for networks with Aggregate layers
    mask_constant    positions whose channels all have this value do not count
    diagonal_batch   False: cov1 and cov2 hold the covariances of all pairs of inputs
    store            a folder that keeps nngp and ntk tile by tile, as in widelimit.gram()
    diagonal_spatial  True: only covariances of positions with themselves, for a network without a readout over positions
    batch_axis, channel_axis  where inputs have them, for layers that were not told; ValueError where one was told otherwise, and
                     for a Kernel that has them elsewhere

    Arrays that are float32 give kernels in float32, others in float64; precision='float' or 'double' overrides this.
    Kernels are arrays of JAX if the inputs are, tensors of PyTorch if the inputs are, and otherwise NumPy's. Within functions
    that JAX transforms, and for tensors that require gradients, kernels of networks with a readout have derivatives with respect
    to the inputs and to the W_std and b_std of dense and convolutional layers: first ones in reverse mode (NotImplementedError
    for others). Other keywords are ignored, as in neural-tangents, with one warning for each.
    """

    def __init__(self, module: Module, store: Any = None) -> None:
        self.module = module
        self._store = store
        self._networks: dict[Any, Any] = {}
        self.formulas: dict[Any, Any] = {}  # FormulaKernels by the value before the network.

    def __reduce__(self) -> tuple[Any, ...]:
        return KernelFunction, (self.module, self._store)

    @property
    def __name__(self) -> str:
        return str(self.module.name)

    def with_store(self, folder: Any) -> KernelFunction:
        """The same function with this folder as the default of `store`."""
        return KernelFunction(self.module, folder)

    @cached_property
    def numbers(self) -> list[Any]:
        """Numbers of layers that are traced by JAX, or are tensors of PyTorch."""
        return numbers_of(self.module)

    def at(self, values: Any) -> KernelFunction:
        """The same function with these values in place of its numbers."""
        if not self.numbers:
            return self
        return KernelFunction(with_values(self.module, self.numbers, values), self._store)

    @cached_property
    def _needs(self):
        return self.module.diagonal

    def network(self, first):
        """The library's network after a starting value, and the value after it."""
        if first not in self._networks:
            value = self.module.apply(first)
            self._networks[first] = _core.Network(list(value.layers)), value
        return self._networks[first]

    @overload
    def __call__(self, x1: ArrayLike | Kernel, x2: ArrayLike | None = None, get: None = None, **options: Any) -> Kernel: ...

    @overload
    def __call__(self, x1: ArrayLike | Kernel, x2: ArrayLike | None = None, *,
                 get: Literal["nngp", "ntk", "cov1", "cov2"], **options: Any) -> NDArray[Any]: ...

    @overload
    def __call__(self, x1: ArrayLike | Kernel, x2: ArrayLike | None, get: Literal["nngp", "ntk", "cov1", "cov2"],
                 **options: Any) -> NDArray[Any]: ...

    @overload
    def __call__(self, x1: ArrayLike | Kernel, x2: ArrayLike | None = None, get: Any = None, **options: Any) -> Any: ...

    def __call__(self, x1: Any, x2: Any = None, get: Any = None, *, pattern: Any = None, mask_constant: float | None = None,
                 diagonal_batch: bool | None = None, diagonal_spatial: bool | None = None, batch_axis: int | None = None,
                 channel_axis: int | None = None, precision: str | None = None, threads: int = 0, store: Any = None,
                 **others: Any) -> Any:
        warn_of_unknown("kernel_fn", others)
        get = _in_lower_case(get)
        store = self._store if store is None else store
        options = {"pattern": pattern, "mask_constant": mask_constant, "diagonal_batch": diagonal_batch,
                   "diagonal_spatial": diagonal_spatial, "precision": precision, "threads": threads}
        axes = {"batch_axis": batch_axis, "channel_axis": channel_axis}
        if not self._is_plain and not self._has_own:
            return self._of_flow(x1, x2, get, {**options, **axes, "store": store})
        if isinstance(x1, Kernel):
            if store is not None:
                raise NotImplementedError("store: expected arrays of inputs, got a Kernel")
            _check_axes(x1, axes)
            return self._continued(x1, x2, get, options)
        options.update(axes)
        names = _wanted(get)
        caller = caller_of(x1, x2, self.numbers, list(options.values()))
        if self._has_own:
            if store is not None or caller.is_live or self.numbers:
                raise NotImplementedError("kernel_fn: expected arrays of inputs without a store, outside of functions that JAX "
                                          "transforms: the network has layers of functions of kernels")
            return self._of_kernels(self._inputs_kernel(x1, x2, options), names, get, options, caller)
        if caller.name == "JAX":
            registered()
        if caller.is_live:
            if store is not None:
                raise NotImplementedError("store: expected arrays of inputs outside of functions that JAX transforms, and "
                                          "tensors that require no gradients")
            return self._live(x1, x2, get, names, options)
        if self.numbers:
            return caller.give(self.at([float(value) for value in self.numbers])(x1, x2, get, store=store, **options))
        request = self._request(x1, x2, **options).stored(store)
        fields = caller.give(request.arrays([name for name in ARRAYS if name in names]))
        return self._result(get, names, fields, lambda: {**request.facts(), **self._masks(x1, x2, request.first, mask_constant)},
                            (self.module, x1, x2, options))

    def _masks(self, x1, x2, first, mask_constant):
        """The masks of a Kernel after the network."""
        if mask_constant is None:
            return {}
        sides = [None if x is None else masked(x if hasattr(x, "dtype") else np.asarray(x), mask_constant).mask for x in (x1, x2)]
        return {name: None if mask is None else mask_through(self.module, mask, first)[0]
                for name, mask in zip(("mask1", "mask2"), sides)}

    @staticmethod
    def _result(get, names, fields, facts, origin):
        """The result that `get` asks for, from arrays by their names and from facts()."""
        if get is None:
            return Kernel(**fields, **facts()).from_origin(origin)
        if not set(names) <= set(ARRAYS):
            fields.update({name: value for name, value in facts().items() if name in names})
        return by_name("AnalyticKernel", get, fields)

    def vjp(self, x1: ArrayLike, x2: ArrayLike | None = None, nngp: ArrayLike | None = None, ntk: ArrayLike | None = None, *,
            wanted: str = "both", pattern: Any = None, mask_constant: float | None = None, batch_axis: int | None = None,
            channel_axis: int | None = None, precision: str | None = None, threads: int = 0) -> Any:
        """The derivatives of L = sum(nngp * K) + sum(ntk * T) with respect to the inputs, where K and T are the kernels of x1 and
        x2: (dx1, dx2) of their shapes, or dx1 alone without x2. nngp and ntk [n1, n2] are the derivatives of L with respect to the
        kernels' entries, at least one of them. With wanted='x1' or 'x2', those with respect to the other one are None and not
        computed. Derivatives are 0 at masked positions; see widelimit.gram_vjp. If x1 and x2 are equal they are one batch, as for
        the kernels themselves: half of an input's derivative with itself goes to dx1 and half to dx2. NotImplementedError for
        networks without a readout and for slices of the batch, ArgumentError for layers without a backward pass."""
        options = {"pattern": pattern, "mask_constant": mask_constant, "batch_axis": batch_axis, "channel_axis": channel_axis,
                   "precision": precision, "threads": threads}
        values = [float(value) for value in self.numbers]
        found = self.at(values).way_back(x1, x2, {"nngp": nngp, "ntk": ntk}, wanted, options)
        return caller_of(x1, x2, nngp, ntk).give(found)

    def way_back(self, x1: Any, x2: Any, weights: dict[str, Any], wanted: str, options: dict[str, Any]) -> Any:
        """vjp() for any of the arrays of a Kernel: weights are their cotangents by name, None for those without."""
        request, mask_constant = self.request(x1, x2, **options), options.get("mask_constant")
        if request.value.shape or request.value.rows:
            raise NotImplementedError("vjp: expected a network with a readout over positions, which takes no slices of the "
                                      "batch; use widelimit.gram_vjp for the rest of it")
        axes = (request.first.batch_axis, request.first.channel_axis)
        moved = [None if gradient is None else np.moveaxis(gradient, (0, -1), axes)
                 for gradient in request.vjp(weights, wanted)]
        if mask_constant is not None:  # Single channels may be masked.
            for gradient, given in zip(moved, (x1, x2)):
                if gradient is None:
                    continue
                array = numbers(given, name="inputs")
                gradient[np.isnan(array) if np.isnan(mask_constant) else array == mask_constant] = 0
        return tuple(moved) if x2 is not None else moved[0]

    def _live(self, x1, x2, get, names, options):
        """Results for inputs and numbers that are being differentiated or traced."""
        inputs = [x1] if x2 is None else [x1, x2]
        for x, name in zip(inputs, ("x1", "x2")):
            checked_array(x, None, name)
        present = [name for name in names if name in ARRAYS and (name != "cov2" or x2 is not None)]
        kernels = LiveKernels(self, present, options, *(np.shape(x) for x in inputs))
        found = differentiated(kernels, inputs + self.numbers + kernels.traced.values,
                               self._type_of_results(inputs, options)) if present else []
        fields = {name: None for name in names if name in ARRAYS}
        fields.update(zip(present, found))

        def facts():
            n1, n2 = (np.shape(x)[kernels.first.batch_axis] for x in (inputs[0], inputs[-1]))
            return {**facts_of(kernels.value, n1, n2, x2 is None or are_same(x1, x2),
                               options["diagonal_batch"] is not False, kernels.is_diagonal),
                    **self._masks(x1, x2, kernels.first, options["mask_constant"])}

        return self._result(get, names, fields, facts, (self.module, x1, x2, options))

    def _type_of_results(self, inputs, options):
        """That of the inputs and numbers, unless the caller says another one; None: all that is given."""
        if options["precision"] is not None:
            return element_type(options["precision"])
        if not is_traced(options["pattern"], options["mask_constant"], *(options["pattern"] or ())):
            return None
        import jax.numpy as jnp

        return jnp.result_type(*inputs, *self.numbers, jnp.float32)

    def _continued(self, kernel, x2, get, options):
        if x2 is not None:
            raise ValueError("kernel_fn: expected no x2 together with a Kernel, which is of both batches")
        if kernel.origin is not None and not self._has_own:
            module, x1, x2, first = kernel.origin
            given = {name: value for name, value in options.items() if value is not None and (name != "threads" or value != 0)}
            return KernelFunction(Sequence((module, self.module)))(x1, x2, get, **{**first, **given})
        arrays = [getattr(kernel, name) for name in ARRAYS]
        if is_live(arrays, self.numbers):
            return self._live_behind(kernel, get, options)
        caller, names = caller_of(arrays, self.numbers), _wanted(get)
        if caller.name == "JAX":
            registered()
        if self._has_own:
            return self._of_kernels(kernel, names, get, options, caller)
        fields, facts = self._behind(kernel, names, options)
        return self._result(get, names, caller.give(fields, "own"), lambda: facts, None)

    def _live_behind(self, kernel, get, options):
        """After a Kernel made by hand whose arrays, or whose layers' numbers, are traced or differentiated."""
        caller, names = caller_of([getattr(kernel, name) for name in ARRAYS], self.numbers), _wanted(get)
        kernels = None
        if caller.name == "JAX" and not self._has_own and options["pattern"] is None and kernel.mask1 is None:
            registered()
            first = form_of(kernel)
            self._check_positions(kernel)
            kernels = FormulaKernels.of(self, first)
        if kernels is None:
            raise NotImplementedError("kernel_fn: expected a Kernel made by hand outside of functions that JAX transforms, of "
                                      "tensors that require no gradients, or layers that have formulas, without masks and "
                                      "patterns; a Kernel that a kernel_fn gave, unchanged, has derivatives")
        present = [name for name in names if name in ARRAYS and getattr(kernel, name) is not None]
        fields = {name: None for name in names if name in ARRAYS}
        fields.update(kernels.of_kernel(kernel, self.numbers, present))
        value = self.at(placeholders(len(self.numbers), 0.00781)).network(first)[1]
        n1, n2 = (shape[kernel.batch_axis] for shape in (kernel.shape1, kernel.shape2))

        def facts():
            return {**facts_of(value, n1, n2, kernel.x1_is_x2, bool(kernel.diagonal_batch), bool(kernel.diagonal_spatial)),
                    "is_input": bool(kernel.is_input) and not value.layers}

        return self._result(get, names, fields, facts, None)

    def _check_positions(self, kernel):
        if kernel.diagonal_spatial and self._needs is not None and self._needs.before == NO:
            raise ValueError("Kernel: diagonal_spatial: expected one with the covariances of all pairs of positions: pools, "
                             "attention and other layers mix them")

    def _behind(self, kernel, names, options):
        """Arrays of these names, and facts(), after a Kernel made by hand."""
        given = GivenKernel(kernel, options["precision"])
        self._check_positions(kernel)
        if given.x1_is_x2 and not given.is_one and _draws(self.module):
            raise ValueError("Kernel: expected symmetric kernels with the variances on the diagonal, as x1_is_x2 says that they "
                             "are of one batch, and the network has Dropout")
        if options["diagonal_batch"] is False and kernel.diagonal_batch:
            raise ValueError("diagonal_batch=False: expected a Kernel with diagonal_batch=False")
        patterns = _pair(options["pattern"])
        first = given.value(patterns[0] is not None)
        this = self.at([float(value) for value in self.numbers])
        value = this.module.apply(first)
        sides = [None if batch is None else batch.chosen(value.rows)
                 for batch in given.batches([this._graphs(pattern, first) for pattern in patterns])]
        request = self._counted(Request(_core.Network(list(value.layers)), value, *sides, bool(kernel.diagonal_batch),
                                        given.is_diagonal, options["threads"], first))
        present = [name for name in ARRAYS if name in names and (given.has_ntk or name != "ntk")]
        fields = {name: None for name in names if name in ARRAYS}
        fields.update(request.arrays(present))
        if kernel.cov2 is None and "cov2" in fields:
            fields["cov2"] = None
        is_input = bool(kernel.is_input) and len(value.layers) == len(first.layers)
        masks = {name: mask_through(self.module, mask, first)[0] for name, mask in (("mask1", kernel.mask1), ("mask2", kernel.mask2))
                 if mask is not None}
        return fields, {**request.facts(), **masks, "x1_is_x2": given.x1_is_x2, "is_input": is_input}

    def _of_flow(self, x1, x2, get, options):
        """Of several inputs or outputs."""
        if options["store"] is not None:
            raise NotImplementedError("store: expected a network of one input and one output")

        def behind(module, kernel, get=None):
            return KernelFunction(module)(kernel, None, get, **{**options, "batch_axis": None, "channel_axis": None, "pattern": None,
                                                                "mask_constant": None})

        return FlowKernels(lambda module, *given: KernelFunction(module)(*given, **options), behind)(self.module, x1, x2, get)

    @cached_property
    def _is_plain(self):
        return is_plain(self.module)

    @cached_property
    def _has_own(self):
        return has_own(self.module)

    def _inputs_kernel(self, x1, x2, options):
        """The Kernel of inputs, for layers of functions of kernels."""
        needs_pairs = _needs_pairs(self.module)
        if options["diagonal_batch"] and needs_pairs:
            raise ValueError("diagonal_batch=True: expected a network without layers that need covariances among the inputs of a batch")
        given = {**options, "diagonal_batch": options["diagonal_batch"] is not False and not needs_pairs}
        nothing = Sequence(())
        request = self._request(x1, x2, behind=nothing, **given)
        fields, masks = request.arrays(ARRAYS), KernelFunction(nothing)._masks(x1, x2, request.first, options["mask_constant"])
        return Kernel(**fields, **{**request.facts(), **masks, "is_input": True})

    def _of_kernels(self, kernel, names, get, options, caller):
        def step(module, kernel):
            fields, facts = KernelFunction(module)._behind(kernel, ARRAYS, {**options, "diagonal_batch": None})
            return Kernel(**fields, **facts)

        given = {"pattern": options["pattern"]} if options["pattern"] is not None else {}
        found = OfKernels(caller, given, step).behind(self.module, kernel)
        fields = {name: None if (array := getattr(found, name)) is None else numbers(array, name=name) for name in names
                  if name in ARRAYS}
        facts = {name: getattr(found, name) for name in (*FIELDS, "mask1", "mask2") if name not in ARRAYS}
        return self._result(get, names, caller.give(fields, "own"), lambda: facts, None)

    def request(self, x1: Any, x2: Any, **options: Any) -> Request:
        """The request for kernels of the library."""
        return self._request(x1, x2, **options)

    def _request(self, x1, x2, pattern=None, mask_constant=None, diagonal_batch=None, diagonal_spatial=None, batch_axis=None,
                 channel_axis=None, precision=None, threads=0, behind=None):
        """behind: the module whose kernels are wanted, if it is another one."""
        if x1 is None or isinstance(x1, Kernel):
            raise TypeError(f"x1: expected an array of inputs, got {'None' if x1 is None else 'a Kernel'}")
        x2 = beside(x1, x2)
        dtype = element_type(precision, x1, *(() if x2 is None else (x2,)))
        arrays = [None if x is None else checked_array(x, dtype, name) for x, name in ((x1, "x1"), (x2, "x2"))]
        is_diagonal = self._is_diagonal(diagonal_spatial)
        patterns = _pair(pattern)
        first = start(self.module, arrays[0].shape, batch_axis, channel_axis, is_diagonal=is_diagonal,
                      has_masks=mask_constant is not None, has_patterns=patterns[0] is not None)
        _check_shapes(*arrays, first)
        network, value = self.network(first) if behind is None else KernelFunction(behind).network(first)
        batches = [None if x is None else batch_of(x, first, mask_constant, self._graphs(graphs, first)).chosen(value.rows)
                   for x, graphs in zip(arrays, patterns)]
        if arrays[1] is not None and (patterns[0] is None) != (patterns[1] is None):
            raise ValueError("pattern: expected graphs of both x1 and x2, or of neither")
        whose = self if behind is None else KernelFunction(behind)
        return whose._counted(Request(network, value, *batches, diagonal_batch is not False, is_diagonal, threads, first))

    def _counted(self, request):
        """The request, with zeros for inputs of which nothing counts."""
        sides = [request.left] if request.right is None else [request.left, request.right]
        if request.value.rows or all(batch.mask is None and batch.counts is None for batch in sides):
            return request
        counts = [count_of(self.module, request.first, batch) for batch in sides]
        return request if all(map(np.all, counts)) else Counted(request, counts[0], counts[1] if len(counts) == 2 else None)

    def _is_diagonal(self, diagonal_spatial):
        needs = self._needs
        if diagonal_spatial and needs is not None and needs.before == NO:
            raise ValueError("diagonal_spatial=True: expected a network that needs variances of positions only; pools, "
                             "attention and other layers mix them")
        return bool(needs) if diagonal_spatial is None else bool(diagonal_spatial)

    def _graphs(self, pattern, first):
        """Adjacency matrices over all positions of the inputs, from patterns as the Aggregate layers take them."""
        if pattern is None:
            return None
        aggregates = _aggregates(self.module)
        if not aggregates:
            return None
        axes = [layer.axes_among(len(first.shape)) for layer in aggregates]
        if any((layer.patterns, own) != (aggregates[0].patterns, axes[0]) for layer, own in zip(aggregates, axes)):
            raise NotImplementedError("Aggregate: expected layers with the same arguments in one network")
        return aggregates[0].patterns.dense(pattern, first.shape, axes[0])


def _pair(pattern):
    """The graphs of both batches; those of one pair are not among them."""
    if pattern is None:
        return None, None
    if not isinstance(pattern, (tuple, list)) or len(pattern) != 2:
        raise ValueError("pattern: expected a pair, (graphs of x1, graphs of x2), got "
                         f"{len(pattern) if isinstance(pattern, (tuple, list)) else 'one array'}")
    return tuple(pattern)


def _check_shapes(x1, x2, first):
    """Checks that both inputs have the same axes, and equally many channels."""
    if x2 is not None and (x1.ndim != x2.ndim or x1.shape[first.channel_axis] != x2.shape[first.channel_axis]):
        raise ValueError(f"kernel_fn: expected inputs with the same axes and channels, got x1 of shape {x1.shape} and x2 of "
                         f"shape {x2.shape}")


def _check_axes(kernel, axes):
    """Checks that a Kernel has its batch and channels where the caller says that they are."""
    for name, axis in axes.items():
        if axis is None:
            continue
        found = getattr(kernel, name)
        if axis_among(len(kernel.shape1), name, axis) != found:
            raise ValueError(f"kernel_fn: {name}={axis}: got a Kernel that has it at {found}, of shape {kernel.shape1}; leave "
                             "the argument out, or move the axes of the inputs")


def _aggregates(module):
    """The Aggregate layers of a network."""
    own = [module] if hasattr(module, "patterns") else []
    return own + [found for part in module.parts() for found in _aggregates(part)]


def _wanted(get):
    if get is not None and not isinstance(get, (str, tuple, list)):
        raise TypeError(f"get: expected a name, a tuple of names or None, got {get!r}")
    if get is not None and len(get) == 0:
        raise ValueError(f"get: expected at least one name, got {get!r}")
    names = ARRAYS if get is None else (get,) if isinstance(get, str) else tuple(get)
    for name in names:
        if name not in FIELDS:
            raise NotImplementedError(f"get: expected {', '.join(FIELDS)}, got {name!r}")
    return names


def _in_lower_case(get):
    if isinstance(get, (tuple, list)):
        return tuple(name.lower() if isinstance(name, str) else name for name in get)
    return get.lower() if isinstance(get, str) else get


def _draws(module):
    return module.draws or any(map(_draws, module.parts()))


def _needs_pairs(module):
    """Whether a layer of functions of kernels needs the covariances among the inputs of a batch."""
    return getattr(module, "requirements", {}).get("diagonal_batch") is False or any(map(_needs_pairs, module.parts()))
