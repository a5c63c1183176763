"""Gradient flow of any loss in function space, by an ODE solver."""

import numpy as np
from scipy.integrate import solve_ivp


def _gradient_of(loss, y):
    try:
        import jax

        gradient = jax.grad(loss)
        gradient(np.zeros_like(y), y)
        return lambda fx: np.asarray(gradient(fx, y), float)
    except Exception:  # No JAX here, or a loss that is not one of its functions.
        return lambda fx: _differences(loss, fx, y)


def _differences(loss, fx, y):
    result = np.empty_like(fx)
    for at in np.ndindex(*fx.shape):
        step = 1e-5 * max(1.0, abs(fx[at]))
        above, below = np.array(fx), np.array(fx)
        above[at] += step
        below[at] -= step
        result[at] = (float(loss(above, y)) - float(loss(below, y))) / (2 * step)
    return result


def loss_flow(loss, kernel, y, learning_rate, momentum):
    """predict_fn of predict.gradient_descent()."""
    gradient = _gradient_of(loss, y)
    rate = learning_rate if momentum is None else np.sqrt(learning_rate)
    # Friction of the heavy ball in the limit of small steps.
    friction = None if momentum is None else (1 - momentum) / np.sqrt(learning_rate)

    def predict_fn(t=None, fx_train_or_state_0=0.0, fx_test_0=None, k_test_train=None):
        if t is None:
            raise NotImplementedError("t=None: expected a finite time; only gradient_descent_mse has a closed form")
        start = np.broadcast_to(np.asarray(fx_train_or_state_0, float), y.shape)
        cross = None if fx_test_0 is None else np.asarray(k_test_train, float)
        test_shape = () if cross is None else (len(cross),) + y.shape[1:]
        test = np.zeros(0) if cross is None else np.broadcast_to(np.asarray(fx_test_0, float), test_shape).ravel()
        count = y.size + test.size

        def forces(fx):
            slopes = gradient(fx[:y.size].reshape(y.shape)).reshape(len(y), -1)
            train = -(kernel @ slopes).ravel()
            return train if cross is None else np.concatenate([train, -(cross @ slopes).ravel()])

        def change(_, state):
            if friction is None:
                return rate * forces(state)
            return np.concatenate([state[count:], forces(state[:count]) - friction * state[count:]])

        state = np.concatenate([start.ravel(), test])
        if friction is not None:
            state = np.concatenate([state, np.zeros(count)])
        end = t if friction is None else rate * t
        solved = solve_ivp(change, (0.0, float(end)), state, method="LSODA", rtol=1e-9, atol=1e-11)
        if not solved.success:
            raise ArithmeticError(f"gradient_descent: the ODE solver stopped: {solved.message}")
        last = solved.y[:, -1]
        train = last[:y.size].reshape(y.shape)
        return train if cross is None else (train, last[y.size:count].reshape(test_shape))

    return predict_fn
