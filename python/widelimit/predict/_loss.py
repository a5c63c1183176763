"""Gradient flow of any loss in function space, by an ODE solver (needs SciPy)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from .._arrays import scalar_or_array
from .._caller import caller_of
from .._jax import in_double, refuse_traced
from ._flow import checked_times
from ._layout import Targets, as_matrix, kernel_array, square_kernel
from ._mse import check_start
from ._types import LossPredictor


@dataclass
class ODEState:
    """Outputs on training and test inputs, and with momentum their velocities; for several times, these are the first axes."""

    fx_train: Any = None
    fx_test: Any = None
    qx_train: Any = None
    qx_test: Any = None

    def replace(self, **changes: Any) -> ODEState:
        """The state with other fields."""
        return replace(self, **changes)

    def asdict(self) -> dict[str, Any]:
        """Its fields by their names, not copied."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def astuple(self) -> tuple[Any, ...]:
        """Its fields in their order, not copied."""
        return tuple(self.asdict().values())


class _TooLong(Exception):
    """The solver asked for more gradients than a smooth loss needs."""


class _Gradient:
    """The gradient of a loss by the outputs: its derivative by JAX where it is made of JAX's functions."""

    def __init__(self, loss, y):
        self._loss, self._y = loss, y
        self._derivative = self._of_jax()

    def _of_jax(self):
        """The compiled derivative; not compiled where the loss decides by the values of its outputs; None without JAX."""
        try:
            import jax
        except ImportError:
            return None
        for gradient in jax.jit(jax.grad(self._loss)), jax.grad(self._loss):
            called = in_double(gradient)
            try:
                called(np.zeros_like(self._y), self._y)
            except Exception:  # The last one: a function that takes nothing but NumPy's arrays.
                continue
            return called
        return None

    @property
    def is_a_derivative(self):
        """False for central differences, which are an average of the gradient over the step, and so have no jumps."""
        return self._derivative is not None

    def derivative(self, fx):
        return np.asarray(self._derivative(fx, self._y), float)

    def averages(self):
        """A function of the outputs: each component averaged over a small step to both sides, as central differences are."""
        if self._derivative is None:
            return lambda fx: _differences(self._loss, fx, self._y)
        import jax

        def all_of(fx, y, steps):
            def moved(at, step):
                return self._loss(fx.ravel().at[at].add(step).reshape(fx.shape), y)

            def average(place):
                at, step = place
                return (moved(at, step) - moved(at, -step)) / (2 * step)

            return jax.lax.map(average, (jax.numpy.arange(fx.size), steps)).reshape(fx.shape)

        compiled = in_double(lambda fx: jax.jit(all_of)(jax.numpy.asarray(fx), self._y, 1e-6 * np.maximum(1, abs(fx)).ravel()))
        try:
            compiled(np.zeros_like(self._y))
        except Exception:  # A loss that decides by the values of its outputs cannot be compiled.
            return lambda fx: _differences(self._loss, fx, self._y)
        return lambda fx: np.asarray(compiled(fx), float)


def _differences(loss, fx, y):
    result = np.empty_like(fx)
    for at in np.ndindex(*fx.shape):
        step = 1e-5 * max(1.0, abs(fx[at]))
        above, below = np.array(fx), np.array(fx)
        above[at] += step
        below[at] -= step
        result[at] = (float(loss(above, y)) - float(loss(below, y))) / (2 * step)
    return result


class _LossFlow:
    """predict_fn of gradient_descent()."""

    def __init__(self, loss, kernel, targets, learning_rate, momentum, caller):
        self._caller = caller
        self._gradient = _Gradient(loss, targets.y)
        self._kernel, self._targets = kernel, targets
        self._scale = learning_rate if momentum is None else np.sqrt(learning_rate)
        # Friction of the heavy ball in the limit of small steps.
        self._friction = None if momentum is None else (1 - momentum) / np.sqrt(learning_rate)

    def __call__(self, t=None, fx_train_or_state_0=0.0, fx_test_0=None, k_test_train=None):
        if t is None:
            raise NotImplementedError("t=None: expected finite times; only gradient_descent_mse has a closed form")
        refuse_traced("predict_fn", t, fx_train_or_state_0, fx_test_0, k_test_train)
        begin = fx_train_or_state_0
        if isinstance(begin, ODEState):
            if fx_test_0 is not None:
                raise ValueError("fx_test_0: expected None, as the ODEState has outputs on test inputs")
            fx_train_0, fx_test_0 = begin.fx_train, begin.fx_test
        else:
            fx_train_0 = begin
        if isinstance(begin, ODEState):
            refuse_traced("predict_fn", *begin.astuple())
        check_start(fx_train_0, fx_test_0, k_test_train)
        state = begin if isinstance(begin, ODEState) else ODEState()
        if self._friction is None and (state.qx_train is not None or state.qx_test is not None):
            raise ValueError("ODEState: expected no velocities without momentum")
        caller = caller_of(self._caller, t, begin, fx_test_0, k_test_train)
        found = caller.give(self._solved(checked_times(t), fx_train_0, fx_test_0, state, k_test_train), "own")
        if isinstance(begin, ODEState):
            return found
        if fx_test_0 is None:
            return found.fx_train
        return found.fx_test if fx_train_0 is None else (found.fx_train, found.fx_test)

    def _solved(self, times, fx_train_0, fx_test_0, state, k_test_train):
        targets, shapes, kernels = self._targets, [self._targets.y.shape], [self._kernel]
        starts, velocities = [0.0 if fx_train_0 is None else fx_train_0], [state.qx_train]
        test_shape = ()
        if fx_test_0 is not None:
            cross = targets.check(kernel_array(k_test_train, "k_test_train"), "k_test_train")
            test_shape = cross.shape[::2]
            shapes.append(targets.output_shape(test_shape))
            kernels.append(as_matrix(cross))
            starts.append(fx_test_0)
            velocities.append(state.qx_test)
        kernel_shapes = [targets.kernel_shape, test_shape]

        def forces_by(gradient):
            def forces(fx):
                slopes = targets.rows(gradient(fx[:targets.size].reshape(targets.y.shape)))
                return np.concatenate([-targets.outputs(kernel @ slopes, shape).ravel()
                                       for kernel, shape in zip(kernels, kernel_shapes)])
            return forces

        begin = _joined(starts, shapes)
        if self._friction is not None:
            begin = np.concatenate([begin, _joined([0.0 if q is None else q for q in velocities], shapes)])
        path = self._path(forces_by, begin, times)
        count = sum(int(np.prod(shape)) for shape in shapes)
        parts = _split(path[..., :count], shapes, times.shape)
        moving = [None, None] if self._friction is None else _split(path[..., count:], shapes, times.shape)
        return ODEState(parts[0], parts[1], moving[0], moving[1])

    def _path(self, forces_by, begin, times):
        """The state at all times, [times, numbers].

        Outputs may come to where the gradient of a loss jumps, as that of a hinge at margin 1, and stay there: between two
        values of the gradient that drive them across. The solver would cross by ever smaller steps. Averages of the gradient
        over 1e-6 take its place then.
        """
        if self._gradient.is_a_derivative:
            try:
                return self._integrated(forces_by(self._at_most(2000 + 100 * len(begin))), begin, times)
            except _TooLong:
                pass
        return self._integrated(forces_by(self._gradient.averages()), begin, times)

    def _at_most(self, count):
        """The derivative of the loss, which may be asked for `count` times."""
        left = iter(range(count))

        def derivative(fx):
            if next(left, None) is None:
                raise _TooLong
            return self._gradient.derivative(fx)

        return derivative

    def _integrated(self, forces, begin, times):
        """The state at all times, [times, numbers]."""
        from scipy.integrate import solve_ivp  # SciPy is an extra.

        friction, half = self._friction, len(begin) // 2

        def change(_, state):
            if friction is None:
                return forces(state)
            return np.concatenate([state[half:], forces(state[:half]) - friction * state[half:]])

        ends, places = np.unique(self._scale * times.ravel(), return_inverse=True)
        if ends[-1] == 0:
            return np.repeat(begin[None], times.size, axis=0)
        solved = solve_ivp(change, (0.0, ends[-1]), begin, method="LSODA", t_eval=ends, rtol=1e-9, atol=1e-11)
        if not solved.success:
            raise ArithmeticError(f"gradient_descent: the ODE solver stopped: {solved.message}")
        return solved.y.T[places.ravel()]


def _joined(values, shapes):
    return np.concatenate([np.broadcast_to(scalar_or_array(value, "fx"), shape).ravel()
                           for value, shape in zip(values, shapes)])


def _split(path, shapes, front):
    """Training and test outputs with the times in front; None where there are no test inputs."""
    parts, at = [], 0
    for shape in shapes:
        size = int(np.prod(shape))
        parts.append(path[:, at:at + size].reshape(*front, *shape))
        at += size
    return parts + [None] * (2 - len(parts))


def gradient_descent(loss: Callable[[Any, Any], Any], k_train_train: ArrayLike, y_train: ArrayLike, learning_rate: float = 1.0,
                     momentum: float | None = None, trace_axes: int | Sequence[int] = (-1,)) -> LossPredictor:
    """Outputs under gradient flow of loss(outputs, targets), with momentum in the limit of small steps.

    loss           loss(outputs, targets), a number, for arrays of y_train's shape [n, ..., outputs]
    k_train_train  [n, n], the NTK of the training inputs
    learning_rate  the unit of time is 1 / learning_rate of the loss's gradient flow
    momentum       in 0 .. 1; None: no momentum
    trace_axes     axes of y_train that the kernels lack

    The gradient of the loss comes from jax.grad if JAX is installed and can differentiate the loss, else from central
    differences (2 y.size calls of the loss in each step). Returns predict_fn(t, fx_train_or_state_0=0., fx_test_0=None,
    k_test_train=None) as gradient_descent_mse does, but finite times are needed; an ODEState gives an ODEState.
    ValueError for shapes that do not fit and times below 0, ArithmeticError if the ODE solver stops.
    """
    targets = Targets(y_train, trace_axes)
    kernel = targets.check(square_kernel(k_train_train, "k_train_train"), "k_train_train")
    return _LossFlow(loss, as_matrix(kernel), targets, learning_rate, momentum,
                     caller_of(targets.caller, k_train_train)).__call__
