"""Functions of the package neural_tangents itself."""

from __future__ import annotations

import importlib.util
from enum import IntEnum
from operator import index
from typing import Any, Callable, Iterable, NamedTuple, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._arrays import numbers, whole
from ._caller import caller_of
from ._empirical import InDouble, JaxFunction, contracted, function_of_jax
from ._jax import double_precision
from ._named import by_name

_Function = Callable[..., Any]
_Axes = Sequence[int]


def batch(kernel_fn: _Function, batch_size: int = 0, device_count: int = -1, store_on_device: bool = True,
          store: Any = None) -> _Function:
    """kernel_fn itself: the library divides the work into tiles and threads by itself. With `store`, a kernel_fn of
    widelimit.stax keeps its kernels in that folder, for calls of one network and one choice of inputs. TypeError for
    another kernel_fn with `store`. batch_size, device_count and store_on_device change nothing."""
    if store is None:
        return kernel_fn
    if not hasattr(kernel_fn, "with_store"):
        raise TypeError(f"batch: store: expected a kernel_fn of widelimit.stax, got {kernel_fn!r}")
    kept: _Function = kernel_fn.with_store(store)
    return kept


class NtkImplementation(IntEnum):
    """Ways to compute an empirical NTK in neural-tangents; here they change nothing."""

    AUTO = 0
    JACOBIAN_CONTRACTION = 1
    NTK_VECTOR_PRODUCTS = 2
    STRUCTURED_DERIVATIVES = 3


def _functions_of(f):
    """The object that computes kernels of a function: for the apply_fn of a network of this package itself, else for JAX."""
    from .stax._finite import FiniteFunctions

    functions = getattr(f, "__self__", None)
    return functions if isinstance(functions, FiniteFunctions) else function_of_jax(f)


def _functions_for(functions, beside, *arrays):
    """The same for a caller with these arrays: those of JAX are its own business where it knows all layers. beside: what apply_fn takes
    beside inputs."""
    from .stax._flow import FlowFunctions

    caller = caller_of(*arrays, beside)
    if isinstance(functions, JaxFunction):
        is_flow = isinstance(getattr(functions.f, "__self__", None), FlowFunctions)
        return InDouble(functions.f) if is_flow and caller.name == "NumPy" else functions
    if functions.is_of_jax(caller):
        return JaxFunction(functions.unmasked_apply_fn)
    shapes = [np.shape(array) for array in arrays[:1] if hasattr(array, "shape")]
    if beside.asks_for_jax(None) or (shapes and functions.asks_for_jax(shapes[0])):
        functions.check_jax(caller)
        return InDouble(functions.unmasked_apply_fn)
    return functions


class _KernelAxes(NamedTuple):
    """Axes of outputs over which kernels are averaged, and axes of which they only have the diagonal."""

    trace: Any
    diagonal: Any

    def are_usual(self):
        return tuple(np.atleast_1d(self.trace)) in ((-1,), (1,)) and np.size(self.diagonal) == 0


def _wanted(get):
    """The names asked for: 'nngp' or 'ntk', or a tuple of them; None: both."""
    wanted = ("nngp", "ntk") if get is None else get.lower() if isinstance(get, str) else tuple(
        name.lower() if isinstance(name, str) else name for name in (get if np.iterable(get) else ()))
    if not set(_names(wanted)) or not set(_names(wanted)) <= {"nngp", "ntk"}:
        raise ValueError(f"get: expected 'nngp', 'ntk', a tuple of them or None, got {get!r}")
    return wanted


def _names(wanted):
    return (wanted,) if isinstance(wanted, str) else wanted


def _beside(name, apply_fn_kwargs):
    """What apply_fn takes beside inputs; a pair has one value for each batch."""
    from .stax._finite import Beside

    return Beside.of(name, apply_fn_kwargs)


def _one_key(name, beside):
    if isinstance(beside.rng, tuple):
        raise NotImplementedError(f"{name}: rng: expected one key for both batches, got a tuple")
    return beside.rng


def _own_arguments(beside):
    """Arguments of apply_fn, checked, as JAX's functions take them."""
    from .stax._keys import key_of

    given = {name: value for name, value in (("mask_constant", beside.mask_constant), ("pattern", beside.pattern)) if value is not None}
    if beside.rng is None:
        return given
    rng = tuple(key_of(key, "rng") for key in beside.rng) if isinstance(beside.rng, tuple) else key_of(beside.rng, "rng")
    return {**given, "rng": rng}


def empirical_kernel_fn(f: _Function, trace_axes: _Axes = (-1,), diagonal_axes: _Axes = (), vmap_axes: Any = None,
                        implementation: Any = None, _j_rules: Any = True, _s_rules: Any = True, _fwd: Any = None) -> _Function:
    """kernel_fn(x1, x2, get, params, **apply_fn_kwargs) of one network of finite width.

    f is the apply_fn of a network of widelimit.stax, params the result of its init_fn, x1 [n1, ..., C], x2 [n2, ..., C] or None.
    Or f is any function f(params, x, **apply_fn_kwargs) of trees of arrays that JAX differentiates. get: 'nngp', 'ntk', a tuple
    of them or None for both.

    trace_axes     axes of outputs over which a kernel is averaged: (-1,) gives arrays [n1, n2] for outputs [n, outputs]
    diagonal_axes  axes of which it only has the diagonal: with trace_axes=() and diagonal_axes=(-1,) it is [n1, n2, outputs]
    Other axes appear twice, as in neural-tangents: trace_axes=() gives [n1, n2, outputs, outputs]. vmap_axes, implementation and
    the arguments that choose its rules change nothing. ValueError for axes that do not exist and shapes that do not fit.

    apply_fn_kwargs are those of apply_fn: a key `rng` for networks with Dropout. As in neural-tangents, equal x1 and x2
    count as one batch, in which dropout draws once for each input; for different ones it draws anew. For functions of JAX a pair
    (a tuple) has one value for each batch."""
    functions, axes = _functions_of(f), _KernelAxes(trace_axes, diagonal_axes)

    def kernel_fn(x1, x2, get, params, **apply_fn_kwargs):
        wanted, is_own = _wanted(get), not isinstance(functions, JaxFunction)
        beside = _beside("empirical_kernel_fn", apply_fn_kwargs) if is_own else None
        computing = _functions_for(functions, beside, x1, x2, params)
        if isinstance(computing, JaxFunction):
            given = _own_arguments(beside) if is_own else apply_fn_kwargs
            return _by_name("EmpiricalKernel", wanted, {name: computing.kernel(name, params, x1, x2, axes, given)
                                                       for name in _names(wanted)})
        rng = _one_key("empirical_kernel_fn", beside)
        found = {name: _own_kernel(functions, axes, params, x1, x2, name, rng) for name in _names(wanted)}
        return by_name("EmpiricalKernel", wanted, caller_of(x1, x2, params).give(found, "own"))

    return kernel_fn


def _by_name(kind, wanted, found):
    """by_name() of each output."""
    first = next(iter(found.values()))
    if not isinstance(first, (list, tuple)):
        return by_name(kind, wanted, found)
    return type(first)([_by_name(kind, wanted, {name: arrays[k] for name, arrays in found.items()}) for k in range(len(first))])


def _own_kernel(functions, axes, params, x1, x2, name, rng):
    if axes.are_usual() and not functions.has_positions(x1):
        return functions.empirical(params, x1, x2, name, rng)
    sides = functions.sides(params, x1, x2, name, rng)
    left, right = sides[0], sides[-1]
    return contracted(left, right, axes) if name == "ntk" else contracted(left[..., None], right[..., None], axes)


def empirical_nngp_fn(f: _Function, trace_axes: _Axes = (-1,),
                      diagonal_axes: _Axes = ()) -> Callable[..., NDArray[np.float64]]:
    """nngp_fn(x1, x2, params, **apply_fn_kwargs) of one network of finite width, as empirical_kernel_fn()."""
    kernel_fn = empirical_kernel_fn(f, trace_axes, diagonal_axes)
    return lambda x1, x2, params, **apply_fn_kwargs: kernel_fn(x1, x2, "nngp", params, **apply_fn_kwargs)


def empirical_ntk_fn(f: _Function, trace_axes: _Axes = (-1,), diagonal_axes: _Axes = (), vmap_axes: Any = None,
                     implementation: Any = None, _j_rules: Any = True, _s_rules: Any = True,
                     _fwd: Any = None) -> Callable[..., NDArray[np.float64]]:
    """ntk_fn(x1, x2, params, **apply_fn_kwargs) of one network of finite width, as empirical_kernel_fn()."""
    kernel_fn = empirical_kernel_fn(f, trace_axes, diagonal_axes)
    return lambda x1, x2, params, **apply_fn_kwargs: kernel_fn(x1, x2, "ntk", params, **apply_fn_kwargs)


def monte_carlo_kernel_fn(init_fn: _Function, apply_fn: _Function, key: Any, n_samples: int | Iterable[int],
                          batch_size: int = 0, device_count: int = -1, store_on_device: bool = True,
                          trace_axes: _Axes = (-1,), diagonal_axes: _Axes = (), vmap_axes: Any = None,
                          implementation: Any = None) -> _Function:
    """kernel_fn(x1, x2=None, get=None): the mean of empirical kernels over n_samples networks, whose dropout draws too; a set
    of numbers of samples gives a generator of means.

    init_fn and apply_fn are those of a network of widelimit.stax or any functions of JAX, key is an integer or a key of JAX.
    Axes, get, results and errors are those of empirical_kernel_fn(); ValueError for n_samples < 1. batch_size, device_count,
    store_on_device, vmap_axes and implementation change nothing."""
    one = empirical_kernel_fn(apply_fn, trace_axes, diagonal_axes)
    counts, functions = _counts(n_samples), _functions_of(apply_fn)
    if isinstance(functions, JaxFunction):
        return _means_of_jax(init_fn, one, key, counts, n_samples)
    means = _means_of_jax if _functions_for(functions, _beside("", {}), key) is not functions else _means
    found = means(init_fn, one, key, counts, n_samples)

    def kernel_fn(x1, x2=None, get=None, **apply_fn_kwargs):
        if "rng" in apply_fn_kwargs:
            raise TypeError("monte_carlo_kernel_fn: rng: expected none, it comes from the key of monte_carlo_kernel_fn")
        return found(x1, x2, get, **apply_fn_kwargs)

    return kernel_fn


def _means(init_fn, one, key, counts, n_samples):
    """monte_carlo_kernel_fn() for a network of this package and an integer, or a key that JAX has no part in."""
    from .stax._finite import seed_of

    seed = seed_of(key)

    def means(x1, x2, wanted, kwargs):
        names = _names(wanted)
        sums = {name: 0.0 for name in names}
        for draw in range(counts[-1]):
            _, params = init_fn(seed_of(np.array([seed, draw])), np.shape(x1))
            rng = seed_of(np.array([seed, draw, 1]))
            for name in names:
                sums[name] = sums[name] + one(x1, x2, name, params, rng=rng, **kwargs)
            if draw + 1 in counts:
                yield by_name("MonteCarloKernel", wanted, {name: sums[name] / (draw + 1) for name in names})

    def kernel_fn(x1, x2, get, **apply_fn_kwargs):
        caller = caller_of(key, x1, x2)
        arrays = (x1, x2) if caller.is_live else [None if x is None else numbers(x, name=name)
                                                  for x, name in ((x1, "x1"), (x2, "x2"))]
        found = (caller.give(mean, "own") for mean in means(*arrays, _wanted(get), apply_fn_kwargs))
        return found if hasattr(n_samples, "__iter__") else next(found)

    return kernel_fn


def _means_of_jax(init_fn, one, key, counts, n_samples):
    """monte_carlo_kernel_fn() for functions of JAX."""
    import jax

    key = jax.random.PRNGKey(key) if isinstance(key, int) else key

    def means(x1, x2, wanted, kwargs):
        names = _names(wanted)
        sums = dict.fromkeys(names, 0.0)
        shape = jax.tree_util.tree_map(np.shape, x1)
        for draw in range(counts[-1]):
            init_key, apply_key = jax.random.split(jax.random.fold_in(key, draw))
            _, params = init_fn(init_key, shape)
            for name in names:
                sums[name] = jax.tree_util.tree_map(lambda new, old: new + old, one(
                    x1, x2, name, params, rng=apply_key, **kwargs), sums[name]) if draw else one(
                        x1, x2, name, params, rng=apply_key, **kwargs)
            if draw + 1 in counts:
                yield _by_name("MonteCarloKernel", wanted, {
                    name: jax.tree_util.tree_map(lambda total: total / (draw + 1), sums[name]) for name in names})

    def kernel_fn(x1, x2=None, get=None, **apply_fn_kwargs):
        found = means(x1, x2, _wanted(get), apply_fn_kwargs)
        return found if hasattr(n_samples, "__iter__") else next(found)

    return kernel_fn


def _counts(n_samples):
    """The numbers of networks after which a mean is given."""
    try:
        counts = sorted(index(count) for count in (n_samples if np.iterable(n_samples) else [n_samples]))
    except TypeError:
        raise TypeError(f"n_samples: expected an integer or several, got {n_samples!r}") from None
    if not counts or counts[0] < 1:
        raise ValueError(f"n_samples: expected at least 1, got {n_samples!r}")
    return counts


def _expansion(name, f, params, degree):
    functions = _functions_of(f)
    if isinstance(functions, JaxFunction):
        return functions.expanded(params, degree)

    def expanded(new_params, x, **apply_fn_kwargs):
        beside = _beside(name, apply_fn_kwargs)
        computing = _functions_for(functions, beside, x, params, new_params)
        if isinstance(computing, JaxFunction):
            return computing.expanded(params, degree)(new_params, x, **_own_arguments(beside))
        rng = _one_key(name, beside)
        if degree > 1:
            return _by_jax_in_double(name, functions, params, degree, new_params, x, beside)
        caller, x = caller_of(params, new_params, x), numbers(x, name="x")
        origin = functions.packed(params, x)
        outputs = functions.outputs(origin, x, rng)
        shift = functions.packed(new_params, x) - origin
        if degree > 0:
            outputs = outputs + functions.sides(params, x, None, "ntk", rng)[0] @ shift
        return caller.give(outputs, "own")

    return expanded


def _by_jax_in_double(name, functions, params, degree, new_params, x, beside):
    """An expansion of a higher degree for arrays that are not JAX's."""
    caller = caller_of(params, new_params, x)
    if importlib.util.find_spec("jax") is None or caller.is_live or not functions.are_layers_of_jax:
        raise NotImplementedError(f"{name}: degree={degree}: expected 0 or 1 for tensors that require gradients, without JAX "
                                  "(pip install 'widelimit[jax]'), and for networks with layers that are no functions of JAX's "
                                  "arrays")
    import jax

    with double_precision():
        arrays = [jax.tree_util.tree_map(lambda array: jax.numpy.asarray(numbers(array, name=name)), tree)
                  for tree in (params, new_params, x)]
        found = JaxFunction(functions.apply_fn).expanded(arrays[0], degree)(*arrays[1:], **_own_arguments(beside))
    return caller.give(np.asarray(found), "own")


def linearize(f: _Function, params: Any) -> Callable[..., NDArray[np.float64]]:
    """f_lin(params, x, **apply_fn_kwargs): the network's first-order Taylor polynomial in its parameters, at `params`.

    f is the apply_fn of a network of widelimit.stax, params the result of its init_fn, x is [n, ..., C], and outputs are
    [n, out_dim]; or f is any function of trees of arrays that JAX differentiates. ValueError for parameters of another
    structure or shape."""
    return _expansion("linearize", f, params, 1)


def taylor_expand(f: _Function, params: Any, degree: int) -> Callable[..., NDArray[np.float64]]:
    """f_lin(params, x, **apply_fn_kwargs): the network's Taylor polynomial in its parameters, of any degree. Arguments and
    errors are those of linearize(). Degrees above 1 are computed by JAX, in double precision (NotImplementedError where there is
    none, or a layer that is no function of JAX's arrays)."""
    return _expansion("taylor_expand", f, params, whole(degree, "taylor_expand: degree"))


def empirical_ntk_vp_fn(f: _Function, x1: ArrayLike, x2: ArrayLike | None, params: Any,
                        **apply_fn_kwargs: Any) -> Callable[[ArrayLike], NDArray[np.float64]]:
    """ntk_vp_fn(vectors [n2, outputs]): their product with the NTK of one network, not averaged over outputs. f and the other
    arguments are those of empirical_kernel_fn()."""
    functions = _functions_of(f)
    if isinstance(functions, JaxFunction):
        return functions.vector_product(params, x1, x2, apply_fn_kwargs)
    beside = _beside("empirical_ntk_vp_fn", apply_fn_kwargs)
    computing = _functions_for(functions, beside, x1, x2, params)
    if isinstance(computing, JaxFunction):
        return computing.vector_product(params, x1, x2, _own_arguments(beside))
    sides = functions.sides(params, x1, x2, "ntk", _one_key("empirical_ntk_vp_fn", beside))
    left, right = sides[0], sides[-1]
    axes = list(range(right.ndim - 1))

    def ntk_vp_fn(cotangents):
        product = left @ np.tensordot(numbers(cotangents, name="cotangents"), right, (axes, axes))
        return caller_of(x1, x2, params, cotangents).give(product, "own")

    return ntk_vp_fn
