"""Gradient flow of any loss by JAX's own solver, within functions that JAX transforms."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._layout import as_matrix, kernel_array
from ._live import Jax


class TracedLossFlow:
    """The flow of a loss of JAX's functions; friction: of the heavy ball, None without momentum; scale: the solver's unit of time."""

    def __init__(self, loss: Any, kernel: Any, targets: Any, scale: Any, friction: Any) -> None:
        self._loss, self._kernel, self._targets = loss, kernel, targets
        self._scale, self._friction = scale, friction

    def path(self, t: Any, starts: Any, velocities: Any, k_test_train: Any) -> Any:
        """(outputs, velocities) at times t, the first axes: lists for training inputs and, if `starts` has two, test inputs. Without
        momentum velocities are an empty list. Where the gradient of a loss jumps, the solver takes small steps and many of them."""
        import jax

        with jax.numpy_rank_promotion("allow"):
            return self._path(t, starts, velocities, k_test_train)

    def _path(self, t, starts, velocities, k_test_train):
        import jax
        import jax.numpy as jnp
        from jax.experimental.ode import odeint

        y = Jax.array(self._targets.y)
        kernels, sizes, shapes = [Jax.array(self._kernel)], [self._targets.kernel_shape], [y.shape]
        if len(starts) == 2:
            cross = self._targets.check(kernel_array(k_test_train, "k_test_train"), "k_test_train")
            kernels.append(Jax.array(as_matrix(cross)))
            sizes.append(cross.shape[::2])
            shapes.append(self._targets.output_shape(cross.shape[::2]))
        begin = [[jnp.broadcast_to(Jax.array(0.0 if start is None else start), shape) for start, shape in zip(several, shapes)]
                 for several in ((starts, velocities) if self._friction is not None else (starts,))]
        gradient = jax.grad(self._loss)

        def change(state, _):
            slopes = self._targets.rows(gradient(state[0][0], y))
            forces = [-self._targets.outputs(kernel @ slopes, size) for kernel, size in zip(kernels, sizes)]
            if self._friction is None:
                return [forces]
            return [state[1], [force - self._friction * velocity for force, velocity in zip(forces, state[1])]]

        times = self._scale * Jax.array(t).reshape(-1)
        # The solver wants times that grow from 0, and has NaN at 0 itself.
        order = jnp.argsort(times)
        path = odeint(change, begin, jnp.concatenate([jnp.zeros(1, times.dtype), jnp.maximum(times[order], jnp.finfo(times.dtype).tiny)]))
        back = jnp.argsort(order)

        def at_times(array, first):
            found = jnp.where(times.reshape(-1, *[1] * first.ndim) > 0, array[1:][back], first)
            return found.reshape(*np.shape(t), *first.shape)

        found = jax.tree_util.tree_map(at_times, path, begin)
        return found[0], found[1] if self._friction is not None else []
