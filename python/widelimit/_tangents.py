"""Functions of the package neural_tangents itself."""

import numpy as np

from ._arrays import numbers
from .kernels import Gram


def batch(kernel_fn, batch_size=0, device_count=-1, store_on_device=True):
    """kernel_fn itself: tiles, threads and memory are the library's own affair."""
    return kernel_fn


def _finite_functions(apply_fn):
    functions = getattr(apply_fn, "__self__", None)
    if not hasattr(functions, "apply_fn"):
        raise NotImplementedError("expected the apply_fn of a network of widelimit.stax; other functions need automatic "
                                  "differentiation: use neural_tangents' or PyTorch's own")
    return functions


def _selected(get, kernels):
    if isinstance(get, str):
        return kernels(get)
    names = ("nngp", "ntk") if get is None else tuple(get)
    return Gram(**{name: kernels(name) if name in names else None for name in ("nngp", "ntk")})


def empirical_kernel_fn(f, trace_axes=(-1,), diagonal_axes=(), vmap_axes=None, implementation=None):
    """kernel_fn(x1, x2, get, params) of one network of finite width, averaged over its outputs."""
    if tuple(trace_axes) not in ((-1,), (1,)) or tuple(diagonal_axes) != ():
        raise NotImplementedError("empirical kernels: expected trace_axes=(-1,) and no diagonal_axes")
    functions = _finite_functions(f)

    def kernel_fn(x1, x2, get, params, **kwargs):
        return _selected(get, lambda name: functions.empirical(params, x1, x2, name))

    return kernel_fn


def empirical_nngp_fn(f, trace_axes=(-1,), diagonal_axes=()):
    """nngp_fn(x1, x2, params) of one network of finite width."""
    kernel_fn = empirical_kernel_fn(f, trace_axes, diagonal_axes)
    return lambda x1, x2, params, **kwargs: kernel_fn(x1, x2, "nngp", params)


def empirical_ntk_fn(f, trace_axes=(-1,), diagonal_axes=(), vmap_axes=None, implementation=None):
    """ntk_fn(x1, x2, params) of one network of finite width."""
    kernel_fn = empirical_kernel_fn(f, trace_axes, diagonal_axes)
    return lambda x1, x2, params, **kwargs: kernel_fn(x1, x2, "ntk", params)


def monte_carlo_kernel_fn(init_fn, apply_fn, key, n_samples, batch_size=0, device_count=-1, store_on_device=True,
                          trace_axes=(-1,), diagonal_axes=(), vmap_axes=None, implementation=None):
    """kernel_fn(x1, x2, get): the mean of empirical kernels over n_samples networks; a set of numbers of samples gives a
    generator of means."""
    from .stax._finite import seed_of

    one = empirical_kernel_fn(apply_fn, trace_axes, diagonal_axes)
    counts = sorted(n_samples) if hasattr(n_samples, "__iter__") else [int(n_samples)]
    seed = seed_of(key)

    def means(x1, x2, get):
        names = ("nngp", "ntk") if get is None else (get,) if isinstance(get, str) else tuple(get)
        sums, shape = {name: 0.0 for name in names}, (-1, *np.shape(x1)[1:])
        for draw in range(counts[-1]):
            _, params = init_fn(seed_of(np.array([seed, draw])), shape)
            for name in names:
                sums[name] = sums[name] + one(x1, x2, name, params)
            if draw + 1 in counts:
                yield _selected(get, lambda name: sums[name] / (draw + 1))

    def kernel_fn(x1, x2=None, get=None):
        found = means(numbers(x1, name="x1"), x2, get)
        return found if hasattr(n_samples, "__iter__") else next(found)

    return kernel_fn


def linearize(f, params):
    """Not here."""
    raise NotImplementedError("linearize: functions of your own need automatic differentiation; predictions of linearised "
                              "networks are widelimit.predict's")


def taylor_expand(f, params, degree):
    """Not here."""
    raise NotImplementedError("taylor_expand: functions of your own need automatic differentiation")
