"""Predictions in the vocabulary of neural_tangents.predict: the same names, arguments and conventions, in NumPy and
double precision.

Kernels are arrays [n, n] with the outputs traced over, targets [n, outputs]. Losses are means over all numbers of the
targets, so that a time t here is t / y.size in the gradient flow of half the sum of squares.
"""

from typing import Any, NamedTuple

import numpy as np

from ._arrays import numbers


class Gaussian(NamedTuple):
    """Mean [n, outputs] and covariance [n, n] of outputs that are independent with one covariance."""

    mean: Any
    covariance: Any


def _check_trace_axes(trace_axes):
    if tuple(trace_axes) not in ((-1,), (1,)):
        raise NotImplementedError(f"trace_axes={trace_axes!r}: kernels here are traced over their outputs; expected "
                                  "trace_axes=(-1,)")


def _gram(kernel, name):
    kernel = numbers(kernel, name=name)
    if kernel.ndim != 2:
        raise NotImplementedError(f"{name}: expected an array [n, n'], got shape {kernel.shape}")
    return kernel


def _square_gram(kernel, name):
    kernel = _gram(kernel, name)
    if kernel.shape[0] != kernel.shape[1]:
        raise ValueError(f"{name}: expected a square array, got shape {kernel.shape}")
    return kernel


def _targets(y, n, name):
    y = numbers(y, name=name)
    if y.ndim == 0 or y.shape[0] != n:
        raise ValueError(f"{name}: expected {n} rows, as many as the kernel has, got shape {y.shape}")
    return y


def _regularised(kernel, diag_reg, diag_reg_absolute_scale):
    """The kernel plus diag_reg on its diagonal, relative to the mean diagonal unless told otherwise."""
    if diag_reg < 0:
        raise ValueError(f"diag_reg: expected a number of at least 0, got {diag_reg}")
    scale = 1.0 if diag_reg_absolute_scale else np.trace(kernel) / kernel.shape[0]
    return kernel + diag_reg * scale * np.eye(kernel.shape[0])


def _check_time(t):
    t = np.asarray(t, float)
    if t.ndim:
        raise NotImplementedError("t: expected one time; call the function once for every time")
    if not t >= 0:
        raise ValueError(f"t: expected a time of at least 0, got {t}")
    return float(t)


class _Flow:
    """exp(-rate T t) in the eigenbasis of T, for any t."""

    def __init__(self, kernel, rate):
        self._values, self._vectors = np.linalg.eigh(kernel)
        smallest = np.finfo(float).eps * len(kernel) * max(1.0, abs(self._values[-1]))
        if self._values[0] < -1e3 * smallest:
            raise np.linalg.LinAlgError(
                f"the kernel has the eigenvalue {self._values[0]:.3g}: expected a positive semidefinite kernel; "
                "diag_reg adds to its diagonal")
        self._values = np.maximum(self._values, 0)
        self._rate = rate

    def _apply(self, factors, vectors):
        return self._vectors @ (factors[:, None] * (self._vectors.T @ vectors))

    def remaining(self, t, vectors):
        """exp(-rate T t) v"""
        return self._apply(np.exp(-self._rate * self._values * t), vectors)

    def progress(self, t, vectors):
        """T^-1 (I - exp(-rate T t)) v, which is rate t v where T is 0."""
        exponents = self._rate * self._values * t
        with np.errstate(divide="ignore", invalid="ignore"):
            factors = np.where(exponents > 1e-30, -np.expm1(-exponents) / self._values, self._rate * t)
        return self._apply(factors, vectors)


def _solve(kernel, vectors):
    """kernel^-1 v by Cholesky factors, which say where a kernel is not positive definite."""
    factor = np.linalg.cholesky(kernel)
    return np.linalg.solve(factor.T, np.linalg.solve(factor, vectors))


def _columns(array):
    return array.reshape(array.shape[0], -1)


def gradient_descent_mse(k_train_train, y_train, learning_rate=1.0, diag_reg=0.0, diag_reg_absolute_scale=False,
                         trace_axes=(-1,)):
    """Outputs under gradient flow of the mean squared error, linear in the kernel.

    Returns predict_fn(t=None, fx_train_0=0., fx_test_0=None, k_test_train=None): outputs on the training inputs at
    time t (None: at the end), and, where fx_test_0 is given, a pair with those on the test inputs.
    """
    _check_trace_axes(trace_axes)
    kernel = _regularised(_square_gram(k_train_train, "k_train_train"), diag_reg, diag_reg_absolute_scale)
    y = _targets(y_train, len(kernel), "y_train")
    flow = _Flow(kernel, learning_rate / y.size)

    def predict_fn(t=None, fx_train_0=0.0, fx_test_0=None, k_test_train=None):
        start = np.broadcast_to(np.zeros_like(y) if fx_train_0 is None else np.asarray(fx_train_0, float), y.shape)
        residual = _columns(y - start)
        if t is None:
            train, step = np.array(y), _solve(kernel, residual) if fx_test_0 is not None else None
        else:
            t = _check_time(t)
            train, step = y - flow.remaining(t, residual).reshape(y.shape), flow.progress(t, residual)
        if fx_train_0 is None:
            train = None
        if fx_test_0 is None:
            return train
        if k_test_train is None:
            raise ValueError("k_test_train: expected the kernel between test and training inputs beside fx_test_0")
        cross = _gram(k_test_train, "k_test_train")
        change = (cross @ step).reshape((len(cross),) + y.shape[1:])
        test = np.broadcast_to(np.asarray(fx_test_0, float), change.shape) + change
        return test if train is None else (train, test)

    return predict_fn


def gradient_descent(loss, k_train_train, y_train, learning_rate=1.0, momentum=None, trace_axes=(-1,)):
    """Outputs under gradient flow (with momentum: heavy-ball flow) of any loss(fx, y), by an ODE solver of SciPy.

    The loss's gradient comes from jax.grad where JAX is installed and takes the loss, else from central differences
    (2 y.size calls of the loss a step). Returns predict_fn as gradient_descent_mse, but a finite t is needed.
    """
    from ._loss_flow import loss_flow  # SciPy is an extra.

    _check_trace_axes(trace_axes)
    kernel = _square_gram(k_train_train, "k_train_train")
    return loss_flow(loss, kernel, _targets(y_train, len(kernel), "y_train"), learning_rate, momentum)


def _named(values):
    """A named tuple of kernels' names, or the value alone for a string."""
    fields = tuple(values)
    kind = NamedTuple("Prediction", [(field, Any) for field in fields])
    return kind(**values)


def _kernel_names(get, known):
    names = (get,) if isinstance(get, str) else tuple(get)
    for name in names:
        if name not in known:
            raise ValueError(f"get: expected {' or '.join(known)}, got {name!r}")
    return names


def gradient_descent_mse_ensemble(kernel_fn, x_train, y_train, learning_rate=1.0, diag_reg=0.0,
                                  diag_reg_absolute_scale=False, trace_axes=(-1,), **kernel_fn_kwargs):
    """Mean and covariance of infinite ensembles of networks trained on the mean squared error: 'ntk', all layers;
    'nngp', the last layer only, at infinite time the Bayesian posterior.

    Returns predict_fn(t=None, x_test=None, get=('nngp', 'ntk'), compute_cov=False): the mean, or with compute_cov a
    Gaussian of mean and covariance, for a string; a named tuple of them for a tuple of names. t=None: infinite time;
    x_test=None: on the training inputs.
    """
    _check_trace_axes(trace_axes)
    y = numbers(y_train, name="y_train")
    cache = {}

    def train_kernels(names):
        wanted = [name for name in names if name not in cache]
        if wanted:
            kernels = kernel_fn(x_train, None, tuple(wanted), **kernel_fn_kwargs)
            for name, kernel in zip(wanted, kernels):
                cache[name] = _square_gram(kernel, name)
                _targets(y, len(cache[name]), "y_train")
        return cache

    def flow_of(name):
        key = name + " flow"
        if key not in cache:
            kernel = _regularised(train_kernels((name,))[name], diag_reg, diag_reg_absolute_scale)
            cache[key] = _Flow(kernel, learning_rate / y.size)
        return cache[key]

    def weighted(name, t, vectors):
        """T^-1 (I - exp(-T t)) v for the kernel that trains."""
        if t is None:
            kernel = _regularised(train_kernels((name,))[name], diag_reg, diag_reg_absolute_scale)
            return _solve(kernel, vectors)
        return flow_of(name).progress(t, vectors)

    def predicted(name, t, test, compute_cov):
        cross = test[name]
        mean = (cross @ weighted(name, t, _columns(y))).reshape((len(cross),) + y.shape[1:])
        if not compute_cov:
            return mean
        if name == "nngp":
            # The flow that has run for 2 t: prior minus what data explain.
            explained = weighted("nngp", None if t is None else 2 * t, cross.T)
            return Gaussian(mean, test["nngp_test"] - cross @ explained)
        factors = weighted("ntk", t, cross.T)
        mixed = test["nngp"] @ factors
        return Gaussian(mean, test["nngp_test"] + factors.T @ train_kernels(("nngp",))["nngp"] @ factors - mixed
                        - mixed.T)

    def predict_fn(t=None, x_test=None, get=None, compute_cov=False, **test_kwargs):
        names = _kernel_names(("nngp", "ntk") if get is None else get, ("nngp", "ntk"))
        t = None if t is None else _check_time(t)
        needed = tuple(dict.fromkeys(names + (("nngp",) if compute_cov else ())))
        train_kernels(needed)
        if x_test is None:
            test = {name: cache[name] for name in needed}
            test["nngp_test"] = cache.get("nngp")
        else:
            kwargs = {**kernel_fn_kwargs, **test_kwargs}
            test = dict(zip(needed, kernel_fn(x_test, x_train, needed, **kwargs)))
            if compute_cov:
                test["nngp_test"] = kernel_fn(x_test, None, "nngp", **kwargs)
        values = {name: predicted(name, t, test, compute_cov) for name in names}
        return values[get] if isinstance(get, str) else _named(values)

    return predict_fn


def gp_inference(k_train_train, y_train, diag_reg=0.0, diag_reg_absolute_scale=False, trace_axes=(-1,)):
    """Bayesian posterior ('nngp') and infinite ensembles of networks trained to the end ('ntk') from kernels at hand.

    k_train_train: an array (then get must be a string), or what kernel_fn gives: something with .nngp and .ntk.
    Returns predict_fn(get=None, k_test_train=None, k_test_test=None): means, or Gaussians where k_test_test is given.
    """
    _check_trace_axes(trace_axes)

    def part(kernels, name, what):
        kernel = getattr(kernels, name, None) if hasattr(kernels, "nngp") or hasattr(kernels, "ntk") else kernels
        if kernel is None:
            raise ValueError(f"{what}: expected the kernel {name}, got none")
        return _gram(kernel, f"{what}.{name}")

    def predicted(name, k_test_train, k_test_test):
        train = part(k_train_train, name, "k_train_train")
        y = _targets(y_train, len(train), "y_train")
        cross = train if k_test_train is None else part(k_test_train, name, "k_test_train")
        kernel = _regularised(train, diag_reg, diag_reg_absolute_scale)
        mean = (cross @ _solve(kernel, _columns(y))).reshape((len(cross),) + y.shape[1:])
        if k_test_test is None:
            return mean
        prior = part(k_test_test, "nngp", "k_test_test") if hasattr(k_test_test, "nngp") else _gram(k_test_test,
                                                                                                   "k_test_test")
        factors = _solve(kernel, cross.T)
        if name == "nngp":
            return Gaussian(mean, prior - cross @ factors)
        nngp_cross = part(k_train_train if k_test_train is None else k_test_train, "nngp", "k_test_train")
        mixed = nngp_cross @ factors
        return Gaussian(mean, prior + factors.T @ part(k_train_train, "nngp", "k_train_train") @ factors - mixed
                        - mixed.T)

    def predict_fn(get=None, k_test_train=None, k_test_test=None, **unused):
        if get is None:
            get = tuple(name for name in ("nngp", "ntk") if getattr(k_train_train, name, None) is not None) or "nngp"
        names = _kernel_names(get, ("nngp", "ntk"))
        values = {name: predicted(name, k_test_train, k_test_test) for name in names}
        return values[get] if isinstance(get, str) else _named(values)

    return predict_fn


def max_learning_rate(ntk_train_train, y_train_size=None, momentum=0.0, eps=1e-12):
    """The largest learning rate at which gradient descent on the mean squared error converges:
    2 (1 + momentum) y_train_size / (largest eigenvalue + eps). y_train_size: numbers in the targets; None: rows."""
    kernel = _square_gram(ntk_train_train, "ntk_train_train")
    size = len(kernel) if y_train_size is None else y_train_size
    return 2 * (1 + momentum) * size / (np.linalg.eigvalsh(kernel)[-1] + eps)
