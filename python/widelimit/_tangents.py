"""Functions of the package neural_tangents itself."""

from __future__ import annotations

from enum import IntEnum
from operator import index
from typing import Any, Callable, Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._arrays import numbers
from ._caller import caller_of
from ._named import by_name

_Function = Callable[..., Any]
_Axes = Sequence[int]


def batch(kernel_fn: _Function, batch_size: int = 0, device_count: int = -1, store_on_device: bool = True,
          store: Any = None) -> _Function:
    """kernel_fn itself: tiles, threads and memory are the library's own affair. With `store` a kernel_fn of
    widelimit.stax keeps its kernels in that folder: for calls of one network and one choice of inputs. TypeError for
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


def _finite_functions(apply_fn):
    functions = getattr(apply_fn, "__self__", None)
    if not hasattr(functions, "apply_fn"):
        raise NotImplementedError("expected the apply_fn of a network of widelimit.stax; other functions need automatic "
                                  "differentiation: use torch.func or jax.jacobian")
    return functions


def _wanted(get):
    """What is asked for: 'nngp' or 'ntk', or a tuple of them; None: both."""
    wanted = ("nngp", "ntk") if get is None else get if isinstance(get, str) else tuple(get if np.iterable(get) else ())
    if not set(_names(wanted)) or not set(_names(wanted)) <= {"nngp", "ntk"}:
        raise ValueError(f"get: expected 'nngp', 'ntk', a tuple of them or None, got {get!r}")
    return wanted


def _names(wanted):
    return (wanted,) if isinstance(wanted, str) else wanted


def _one_key(name, apply_fn_kwargs):
    """The rng among arguments of apply_fn."""
    from .stax._finite import rng_among

    rng = rng_among(name, apply_fn_kwargs)
    if isinstance(rng, tuple):
        raise NotImplementedError(f"{name}: rng: expected one key for both batches, got a tuple")
    return rng


def empirical_kernel_fn(f: _Function, trace_axes: _Axes = (-1,), diagonal_axes: _Axes = (), vmap_axes: Any = None,
                        implementation: Any = None) -> _Function:
    """kernel_fn(x1, x2, get, params, **apply_fn_kwargs) of one network of finite width, averaged over its outputs.

    f is the apply_fn of a network of widelimit.stax, params what its init_fn gives, x1 [n1, ..., C], x2 [n2, ..., C] or None;
    get: 'nngp', 'ntk', a tuple of them or None for both. Kernels are arrays [n1, n2]. trace_axes: (-1,), diagonal_axes: (),
    others raise NotImplementedError; vmap_axes and implementation change nothing. ValueError for shapes that do not fit.

    apply_fn_kwargs are those of apply_fn: `rng`, a key, for networks with Dropout. As in neural-tangents equal x1 and x2
    count as one batch, in which dropout draws once an input; for different ones it draws anew."""
    if tuple(trace_axes) not in ((-1,), (1,)) or tuple(diagonal_axes) != ():
        raise NotImplementedError("empirical kernels: expected trace_axes=(-1,) and no diagonal_axes")
    functions = _finite_functions(f)

    def kernel_fn(x1, x2, get, params, **apply_fn_kwargs):
        wanted, rng = _wanted(get), _one_key("empirical_kernel_fn", apply_fn_kwargs)
        found = {name: functions.empirical(params, x1, x2, name, rng) for name in _names(wanted)}
        return by_name("EmpiricalKernel", wanted, caller_of(x1, x2, params).give(found, "own"))

    return kernel_fn


def empirical_nngp_fn(f: _Function, trace_axes: _Axes = (-1,),
                      diagonal_axes: _Axes = ()) -> Callable[..., NDArray[np.float64]]:
    """nngp_fn(x1, x2, params, **apply_fn_kwargs) of one network of finite width, as empirical_kernel_fn()."""
    kernel_fn = empirical_kernel_fn(f, trace_axes, diagonal_axes)
    return lambda x1, x2, params, **apply_fn_kwargs: kernel_fn(x1, x2, "nngp", params, **apply_fn_kwargs)


def empirical_ntk_fn(f: _Function, trace_axes: _Axes = (-1,), diagonal_axes: _Axes = (), vmap_axes: Any = None,
                     implementation: Any = None) -> Callable[..., NDArray[np.float64]]:
    """ntk_fn(x1, x2, params, **apply_fn_kwargs) of one network of finite width, as empirical_kernel_fn()."""
    kernel_fn = empirical_kernel_fn(f, trace_axes, diagonal_axes)
    return lambda x1, x2, params, **apply_fn_kwargs: kernel_fn(x1, x2, "ntk", params, **apply_fn_kwargs)


def monte_carlo_kernel_fn(init_fn: _Function, apply_fn: _Function, key: Any, n_samples: int | Iterable[int],
                          batch_size: int = 0, device_count: int = -1, store_on_device: bool = True,
                          trace_axes: _Axes = (-1,), diagonal_axes: _Axes = (), vmap_axes: Any = None,
                          implementation: Any = None) -> _Function:
    """kernel_fn(x1, x2=None, get=None): the mean of empirical kernels over n_samples networks, whose dropout draws too; a set
    of numbers of samples gives a generator of means.

    init_fn and apply_fn are those of a network of widelimit.stax, key an integer or a key of JAX; axes, get, results and
    errors as of empirical_kernel_fn(); ValueError for n_samples < 1. batch_size, device_count, store_on_device, vmap_axes and
    implementation change nothing."""
    from .stax._finite import seed_of

    one = empirical_kernel_fn(apply_fn, trace_axes, diagonal_axes)
    counts = _counts(n_samples)
    seed = seed_of(key)

    def means(x1, x2, wanted):
        names = _names(wanted)
        sums = {name: 0.0 for name in names}
        for draw in range(counts[-1]):
            _, params = init_fn(seed_of(np.array([seed, draw])), x1.shape)
            rng = seed_of(np.array([seed, draw, 1]))
            for name in names:
                sums[name] = sums[name] + one(x1, x2, name, params, rng=rng)
            if draw + 1 in counts:
                yield by_name("MonteCarloKernel", wanted, {name: sums[name] / (draw + 1) for name in names})

    def kernel_fn(x1, x2=None, get=None, **apply_fn_kwargs):
        if "rng" in apply_fn_kwargs:
            raise TypeError("monte_carlo_kernel_fn: rng: expected none, it comes from the key of monte_carlo_kernel_fn")
        _one_key("monte_carlo_kernel_fn", apply_fn_kwargs)
        caller = caller_of(key, x1, x2)
        arrays = numbers(x1, name="x1"), None if x2 is None else numbers(x2, name="x2")
        found = (caller.give(mean, "own") for mean in means(*arrays, _wanted(get)))
        return found if hasattr(n_samples, "__iter__") else next(found)

    return kernel_fn


def _counts(n_samples):
    """Numbers of networks after which a mean is given."""
    try:
        counts = sorted(index(count) for count in (n_samples if np.iterable(n_samples) else [n_samples]))
    except TypeError:
        raise TypeError(f"n_samples: expected an integer or several, got {n_samples!r}") from None
    if not counts or counts[0] < 1:
        raise ValueError(f"n_samples: expected at least 1, got {n_samples!r}")
    return counts


def _expansion(name, f, params, degree):
    from .stax._finite import only_part

    functions = _finite_functions(f)
    origin = [np.array(numbers(only_part(params), name="params"))]

    def expanded(new_params, x, **apply_fn_kwargs):
        rng = _one_key(name, apply_fn_kwargs)
        caller, x = caller_of(params, new_params, x), numbers(x, name="x")
        outputs = functions.apply_fn(origin, x, rng)
        if degree > 0:
            shift = numbers(only_part(new_params), name="params") - origin[0]
            outputs = outputs + functions.jacobians(origin, x, rng=rng)[0] @ shift
        return caller.give(outputs, "own")

    return expanded


def linearize(f: _Function, params: Any) -> Callable[..., NDArray[np.float64]]:
    """f_lin(params, x, **apply_fn_kwargs): the network's first-order Taylor polynomial in its parameters, at `params`.

    f is the apply_fn of a network of widelimit.stax, NotImplementedError for other functions; params what its init_fn gives, as
    in f_lin; x [n, ..., C], outputs [n, out_dim]. ValueError for parameters of another structure or shape."""
    return _expansion("linearize", f, params, 1)


def taylor_expand(f: _Function, params: Any, degree: int) -> Callable[..., NDArray[np.float64]]:
    """f_lin(params, x, **apply_fn_kwargs): the network's Taylor polynomial in its parameters, of degree 0 or 1
    (NotImplementedError for others); arguments and errors as of linearize()."""
    if degree not in (0, 1):
        raise NotImplementedError(f"taylor_expand: degree={degree}: expected 0 or 1; higher ones need automatic "
                                  "differentiation")
    return _expansion("taylor_expand", f, params, degree)


def empirical_ntk_vp_fn(f: _Function, x1: ArrayLike, x2: ArrayLike | None, params: Any,
                        **apply_fn_kwargs: Any) -> Callable[[ArrayLike], NDArray[np.float64]]:
    """ntk_vp_fn(vectors [n2, outputs]): their product with the NTK of one network, not averaged over outputs."""
    functions = _finite_functions(f)
    sides = functions.jacobians(params, x1, x2, _one_key("empirical_ntk_vp_fn", apply_fn_kwargs))
    left, right = sides[0], sides[-1]

    def ntk_vp_fn(cotangents):
        product = left @ np.tensordot(numbers(cotangents, name="cotangents"), right, ([0, 1], [0, 1]))
        return caller_of(x1, x2, params, cotangents).give(product, "own")

    return ntk_vp_fn
