"""Functions of the package neural_tangents itself."""

from __future__ import annotations

from enum import IntEnum
from functools import partial
from operator import index
from typing import Any, Callable, Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._arrays import numbers
from ._named import by_name

_Function = Callable[..., Any]
_Axes = Sequence[int]


def batch(kernel_fn: _Function, batch_size: int = 0, device_count: int = -1, store_on_device: bool = True,
          store: Any = None) -> _Function:
    """kernel_fn itself: tiles, threads and memory are the library's own affair. With `store` its kernels are kept in that
    folder: for calls of one network and one choice of inputs."""
    return kernel_fn if store is None else partial(kernel_fn, store=store)


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


def empirical_kernel_fn(f: _Function, trace_axes: _Axes = (-1,), diagonal_axes: _Axes = (), vmap_axes: Any = None,
                        implementation: Any = None) -> _Function:
    """kernel_fn(x1, x2, get, params) of one network of finite width, averaged over its outputs."""
    if tuple(trace_axes) not in ((-1,), (1,)) or tuple(diagonal_axes) != ():
        raise NotImplementedError("empirical kernels: expected trace_axes=(-1,) and no diagonal_axes")
    functions = _finite_functions(f)

    def kernel_fn(x1, x2, get, params, **kwargs):
        wanted = _wanted(get)
        return by_name("EmpiricalKernel", wanted,
                       {name: functions.empirical(params, x1, x2, name) for name in _names(wanted)})

    return kernel_fn


def empirical_nngp_fn(f: _Function, trace_axes: _Axes = (-1,),
                      diagonal_axes: _Axes = ()) -> Callable[..., NDArray[np.float64]]:
    """nngp_fn(x1, x2, params) of one network of finite width."""
    kernel_fn = empirical_kernel_fn(f, trace_axes, diagonal_axes)
    return lambda x1, x2, params, **kwargs: kernel_fn(x1, x2, "nngp", params)


def empirical_ntk_fn(f: _Function, trace_axes: _Axes = (-1,), diagonal_axes: _Axes = (), vmap_axes: Any = None,
                     implementation: Any = None) -> Callable[..., NDArray[np.float64]]:
    """ntk_fn(x1, x2, params) of one network of finite width."""
    kernel_fn = empirical_kernel_fn(f, trace_axes, diagonal_axes)
    return lambda x1, x2, params, **kwargs: kernel_fn(x1, x2, "ntk", params)


def monte_carlo_kernel_fn(init_fn: _Function, apply_fn: _Function, key: Any, n_samples: int | Iterable[int],
                          batch_size: int = 0, device_count: int = -1, store_on_device: bool = True,
                          trace_axes: _Axes = (-1,), diagonal_axes: _Axes = (), vmap_axes: Any = None,
                          implementation: Any = None) -> _Function:
    """kernel_fn(x1, x2, get): the mean of empirical kernels over n_samples networks; a set of numbers of samples gives a
    generator of means."""
    from .stax._finite import seed_of

    one = empirical_kernel_fn(apply_fn, trace_axes, diagonal_axes)
    counts = _counts(n_samples)
    seed = seed_of(key)

    def means(x1, x2, wanted):
        names, shape = _names(wanted), (-1, *np.shape(x1)[1:])
        sums = {name: 0.0 for name in names}
        for draw in range(counts[-1]):
            _, params = init_fn(seed_of(np.array([seed, draw])), shape)
            for name in names:
                sums[name] = sums[name] + one(x1, x2, name, params)
            if draw + 1 in counts:
                yield by_name("EmpiricalKernel", wanted, {name: sums[name] / (draw + 1) for name in names})

    def kernel_fn(x1, x2=None, get=None):
        found = means(numbers(x1, name="x1"), x2, _wanted(get))
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


def _expansion(f, params, degree):
    from .stax._finite import only_part

    functions = _finite_functions(f)
    origin = [np.array(numbers(only_part(params), name="params"))]

    def expanded(new_params, x, **kwargs):
        outputs = functions.apply_fn(origin, x)
        if degree == 0:
            return outputs
        shift = numbers(only_part(new_params), name="params") - origin[0]
        return outputs + functions.jacobian(origin, x) @ shift

    return expanded


def linearize(f: _Function, params: Any) -> Callable[..., NDArray[np.float64]]:
    """f_lin(params, x): the network's first-order Taylor polynomial in its parameters, at `params`."""
    return _expansion(f, params, 1)


def taylor_expand(f: _Function, params: Any, degree: int) -> Callable[..., NDArray[np.float64]]:
    """f_lin(params, x): the network's Taylor polynomial in its parameters, of degree 0 or 1."""
    if degree not in (0, 1):
        raise NotImplementedError(f"taylor_expand: degree={degree}: expected 0 or 1; higher ones need automatic "
                                  "differentiation")
    return _expansion(f, params, degree)


def empirical_ntk_vp_fn(f: _Function, x1: ArrayLike, x2: ArrayLike | None, params: Any,
                        **apply_fn_kwargs: Any) -> Callable[[ArrayLike], NDArray[np.float64]]:
    """ntk_vp_fn(vectors [n2, outputs]): their product with the NTK of one network, not averaged over outputs."""
    functions = _finite_functions(f)
    left = functions.jacobian(params, x1)
    right = left if x2 is None else functions.jacobian(params, x2)

    def ntk_vp_fn(cotangents):
        return left @ np.tensordot(numbers(cotangents, name="cotangents"), right, ([0, 1], [0, 1]))

    return ntk_vp_fn
