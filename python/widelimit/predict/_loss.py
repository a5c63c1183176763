"""Gradient flow of any loss in function space, by an ODE solver (needs SciPy)."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from .._arrays import scalar_or_array
from .._caller import caller_of, is_live
from .._jax import in_double
from ._flow import checked_times
from ._layout import Targets, as_matrix, kernel_array, square_kernel
from ._mse import check_start
from ._traced_loss import TracedLossFlow
from ._types import LossPredictor


@dataclass
class ODEState:
    """Outputs on training and test inputs, and with momentum their velocities; for several times, these are the first axes."""

    fx_train: Any = None
    fx_test: Any = None
    qx_train: Any = None
    qx_test: Any = None

    def __post_init__(self) -> None:
        if "jax" in sys.modules:
            _register()

    def replace(self, **changes: Any) -> ODEState:
        """The state with other fields."""
        return replace(self, **changes)

    def asdict(self) -> dict[str, Any]:
        """Its fields by their names, not copied."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def astuple(self) -> tuple[Any, ...]:
        """Its fields in their order, not copied."""
        return tuple(self.asdict().values())


@lru_cache(1)
def _register():
    """Registers ODEState as a tree of arrays with JAX, if it has been imported."""
    sys.modules["jax"].tree_util.register_pytree_node(ODEState, lambda state: (state.astuple(), None),
                                                      lambda _, children: ODEState(*children))


class _Crossing(Exception):
    """The solver makes no headway: the gradient jumps where the outputs are, and every step crosses the jump."""


class _Gradient:
    """The gradient of a loss by the outputs: its derivative by JAX where it is made of JAX's functions."""

    def __init__(self, loss, y):
        self._loss, self._y = loss, y
        self._derivative = self._of_jax()
        self._separable = None

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
        """False for central differences, which average the gradient over their step, and so have no jumps."""
        return self._derivative is not None

    def derivative(self, fx):
        return np.asarray(self._derivative(fx, self._y), float)

    def differences(self, fx):
        """Central differences of a function of NumPy's arrays.

        At a jump they are an average over both sides. Where several outputs are at one that they share, as the greatest
        of three equal outputs, no average along single outputs is right: ArithmeticError.
        """
        step = 1e-5 * self._scale(fx)
        forward, backward = self._slopes(fx, step)
        bent = abs(forward - backward) > 0.1 * np.maximum(abs(forward), abs(backward))
        if bent.sum() > 2 and not self.is_separable():
            # Where the loss is smooth, a step of a tenth leaves a tenth of what both sides differ by.
            near_forward, near_backward = self._slopes(fx, step / 10)
            if (abs(near_forward - near_backward)[bent] > 0.5 * abs(forward - backward)[bent]).sum() > 2:
                raise ArithmeticError("gradient_descent: the gradient of the loss jumps in several outputs at once, which "
                                      "differences cannot resolve: write the loss with jax.numpy")
        return (forward + backward) / 2

    def _slopes(self, fx, step):
        """Differences to both sides, over the step."""
        here, forward, backward = float(self._loss(fx, self._y)), np.empty_like(fx), np.empty_like(fx)
        for at in np.ndindex(*fx.shape):
            moved = np.array(fx)
            moved[at] += step
            forward[at] = (float(self._loss(moved, self._y)) - here) / step
            moved[at] = fx[at] - step
            backward[at] = (here - float(self._loss(moved, self._y))) / step
        return forward, backward

    def averages(self):
        """A function of the outputs: each component of a separable loss's gradient, averaged over a small step."""
        if not self.is_a_derivative:
            return self.differences
        import jax

        def all_of(fx, y, step):
            def moved(at, by):
                return self._loss(fx.ravel().at[at].add(by).reshape(fx.shape), y)

            def average(at):
                return (moved(at, step) - moved(at, -step)) / (2 * step)

            places, size = jax.numpy.arange(fx.size), fx.size
            return (jax.vmap(average)(places) if size <= 256 else jax.lax.map(average, places)).reshape(fx.shape)

        compiled = in_double(lambda fx: jax.jit(all_of)(jax.numpy.asarray(fx), self._y, 1e-6 * self._scale(fx)))
        try:
            compiled(np.zeros_like(self._y))
        except Exception:  # A loss that decides by the values of its outputs cannot be compiled.
            return self.differences
        return lambda fx: np.asarray(compiled(fx), float)

    def is_separable(self):
        """Whether each component of the gradient depends on its own output alone, by draws far apart."""
        if self._separable is None:
            self._separable = self._draws_say_separable()
        return self._separable

    def _draws_say_separable(self):
        def gradient(fx):
            return self.derivative(fx) if self.is_a_derivative else sum(self._slopes(fx, 1e-5 * self._scale(fx))) / 2

        random, shape = np.random.default_rng(0), self._y.shape
        for _ in range(20):
            first, second = (3 * self._scale(self._y) * random.normal(size=shape) for _ in range(2))
            kept = random.integers(2, size=shape).astype(bool)
            one, other = gradient(first)[kept], gradient(np.where(kept, first, second))[kept]
            largest = max(abs(one).max(initial=0), abs(other).max(initial=0))
            if not np.allclose(one, other, rtol=1e-4, atol=1e-4 * largest):
                return False
        return True

    def _scale(self, fx):
        """The size of outputs and targets, which steps are relative to."""
        return max(abs(fx).max(initial=0), abs(self._y).max(initial=0)) or 1.0


class _LossFlow:
    """predict_fn of gradient_descent()."""

    def __init__(self, loss, kernel, targets, learning_rate, momentum, caller):
        self._caller, self._loss = caller, loss
        # A loss of targets that JAX traces has no gradient but JAX's.
        is_traced_here = caller.name == "JAX" and is_live(targets.y, kernel, learning_rate, momentum)
        self._gradient = None if is_traced_here else _Gradient(loss, targets.y)
        self._kernel, self._targets = kernel, targets
        self._scale = learning_rate if momentum is None else learning_rate**0.5
        # Friction of the heavy ball in the limit of small steps.
        self._friction = None if momentum is None else (1 - momentum) / learning_rate**0.5

    def __call__(self, t=None, fx_train_or_state_0=0.0, fx_test_0=None, k_test_train=None):
        if t is None:
            raise NotImplementedError("t=None: expected finite times; only gradient_descent_mse has a closed form")
        begin = fx_train_or_state_0
        if isinstance(begin, ODEState):
            if fx_test_0 is not None:
                raise ValueError("fx_test_0: expected None, as the ODEState has outputs on test inputs")
            fx_train_0, fx_test_0 = begin.fx_train, begin.fx_test
        else:
            fx_train_0 = begin
        check_start(fx_train_0, fx_test_0, k_test_train)
        state = begin if isinstance(begin, ODEState) else ODEState()
        if self._friction is None and (state.qx_train is not None or state.qx_test is not None):
            raise ValueError("ODEState: expected no velocities without momentum")
        caller = caller_of(self._caller, t, begin, fx_test_0, k_test_train)
        if self._gradient is None or (caller.name == "JAX" and caller.is_live):
            found = self._traced(t, fx_train_0, fx_test_0, state, k_test_train)
        else:
            found = caller.give(self._solved(checked_times(t), fx_train_0, fx_test_0, state, k_test_train), "own")
        if isinstance(begin, ODEState):
            return found
        if fx_test_0 is None:
            return found.fx_train
        return found.fx_test if fx_train_0 is None else (found.fx_train, found.fx_test)

    def _traced(self, t, fx_train_0, fx_test_0, state, k_test_train):
        has_test = fx_test_0 is not None
        flow = TracedLossFlow(self._loss, self._kernel, self._targets, self._scale, self._friction)
        outputs, velocities = flow.path(t, [fx_train_0, fx_test_0][:1 + has_test], [state.qx_train, state.qx_test][:1 + has_test],
                                        k_test_train)
        return ODEState(*(outputs + [None])[:2], *(velocities + [None, None])[:2])

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

        Outputs may come to where the gradient of a loss jumps, as that of a hinge at margin 1, and stay there: between the
        values of the gradient that drive them across. The solver would cross by ever smaller steps. For a separable loss,
        averages of the gradient over 1e-6 take its place then; for others, many equal steps that cross by little.
        """
        if not self._gradient.is_a_derivative:
            return self._integrated(forces_by(self._gradient.differences), begin, times)
        try:
            return self._integrated(forces_by(self._gradient.derivative), begin, times, watched=True)
        except _Crossing:
            pass
        if self._gradient.is_separable():
            return self._integrated(forces_by(self._gradient.averages()), begin, times)
        return self._in_small_steps(forces_by(self._gradient.derivative), begin, times)

    def _in_small_steps(self, forces, begin, times):
        """Explicit steps, 20,000 in all: right to about 1e-4 of the way that the outputs go."""
        change, ends, places = self._change(forces, len(begin) // 2), *self._ends(times)
        step, now, state, found = ends[-1] / 20_000, 0.0, begin, []
        for end in ends:
            count = max(1, int(np.ceil((end - now) / step))) if end > now else 0
            for _ in range(count):
                state = state + (end - now) / count * change(None, state)
            now = end
            found.append(state)
        return np.array(found)[places]

    def _ends(self, times):
        """The times in the solver's unit, in order, and where each of those given is among them."""
        ends, places = np.unique(self._scale * times.ravel(), return_inverse=True)
        return ends, places.ravel()

    def _change(self, forces, half):
        friction = self._friction

        def change(_, state):
            if friction is None:
                return forces(state)
            return np.concatenate([state[half:], forces(state[:half]) - friction * state[half:]])

        return change

    def _integrated(self, forces, begin, times, watched=False):
        """The state at all times, [times, numbers]. _Crossing, if watched, where it would take more than 1e7 gradients."""
        from scipy.integrate import solve_ivp  # SciPy is an extra.

        ends, places = self._ends(times)
        if ends[-1] == 0:
            return np.repeat(begin[None], times.size, axis=0)
        change, asked, look_at, every = self._change(forces, len(begin) // 2), 0, 0.0, 2000 + 100 * len(begin)

        def observed(time, state):
            nonlocal asked, look_at
            asked += 1
            if watched and asked % every == 0:
                if (time - look_at) * 1e7 < every * (ends[-1] - time):
                    raise _Crossing
                look_at = time
            return change(time, state)

        solved = solve_ivp(observed, (0.0, ends[-1]), begin, method="LSODA", t_eval=ends, rtol=1e-9, atol=1e-11)
        if not solved.success:
            raise ArithmeticError(f"gradient_descent: the ODE solver stopped: {solved.message}")
        return solved.y.T[places]


def _joined(values, shapes):
    return np.concatenate([np.broadcast_to(scalar_or_array(value, "fx"), shape).ravel()
                           for value, shape in zip(values, shapes)])


def _split(path, shapes, front):
    """Training and test outputs with the times first; None where there are no test inputs."""
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
    differences (2 y.size calls of the loss in each step). Where outputs come to a jump of the gradient and stay there, as
    at the margin of a hinge, results are right to 1e-6 of the outputs' size for losses that are a sum over outputs, and
    to about 1e-4 of the way for others. Returns predict_fn(t, fx_train_or_state_0=0., fx_test_0=None,
    k_test_train=None) as gradient_descent_mse does, but finite times are needed; an ODEState gives an ODEState.
    Within functions that JAX transforms, JAX's own solver takes SciPy's place, in JAX's precision, for losses of JAX's functions.
    ValueError for shapes that do not fit and times below 0, ArithmeticError if the ODE solver stops, and
    where a loss of NumPy's arrays jumps in several outputs at once.
    """
    targets = Targets(y_train, trace_axes)
    kernel = targets.check(square_kernel(k_train_train, "k_train_train"), "k_train_train")
    return _LossFlow(loss, as_matrix(kernel), targets, learning_rate, momentum,
                     caller_of(targets.caller, k_train_train)).__call__
