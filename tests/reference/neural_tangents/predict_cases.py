"""Random cases of neural_tangents.predict, by number. `python predict_cases.py > predict_numbers.json` makes the numbers
with neural-tangents (0.6.5, in double precision)."""

import json
import sys
from collections import namedtuple

import numpy as np

Kernels = namedtuple("Kernels", ("nngp", "ntk"))
TRAIN, TEST = 4, 3
KINDS = ("gradient_descent_mse", "gp_inference", "gradient_descent_mse_ensemble", "max_learning_rate", "gradient_descent")


def pick(random, *options):
    return options[random.integers(len(options))]


def kernels(random, shape):
    """Of training inputs, of test with training inputs, and of test inputs: [n, n', d, d', ...] for positions [d, ...]."""
    size, axes = int(np.prod(shape)), len(shape)
    order = [0, axes + 1] + [axis for k in range(axes) for axis in (1 + k, axes + 2 + k)]
    parts = []
    for _ in Kernels._fields:
        root = random.normal(size=((TRAIN + TEST) * size, (TRAIN + TEST) * size + 2))
        matrix = root @ root.T / root.shape[1] + 0.1 * np.eye(len(root))
        array = matrix.reshape(TRAIN + TEST, *shape, TRAIN + TEST, *shape).transpose(order)
        parts.append((array[:TRAIN, :TRAIN], array[TRAIN:, :TRAIN], array[TRAIN:, TRAIN:]))
    return [Kernels(*pair) for pair in zip(*parts)]


def layout(random):
    """Shape of one target, the axes that kernels lack, and those that they have."""
    return pick(random, ((1,), (-1,), ()), ((3,), (-1,), ()), ((2,), (), (2,)), ((2, 3), (-1,), (2,)), ((2, 3), (1,), (3,)),
                ((2, 3), (1, 2), ()), ((2, 3), (-1, -2), ()), ((2, 2), (), (2, 2)), ((2, 3), (-2,), (3,)))


def start(random, shape):
    return pick(random, 0.0, 0.4, random.normal(size=shape))


def times(random):
    return pick(random, None, 0.0, 0.7, 12, 1e3, 1e6, np.array([0.3]), np.array([0.0, 1.5, 40.0]),
                np.array([[1.0, 2.0], [3.0, 4e5]]))


def regularisation(random):
    return {"diag_reg": pick(random, 0.0, 1e-4, 0.1, 2.0), "diag_reg_absolute_scale": bool(random.integers(2))}


def gradient_descent_mse(random, stax, predict):
    outputs, axes, shape = layout(random)
    train, cross, _ = kernels(random, shape)
    y = random.normal(size=(TRAIN, *outputs))
    found = predict.gradient_descent_mse(train.ntk, y, learning_rate=pick(random, 1.0, 0.1, 20.0), trace_axes=axes,
                                         **regularisation(random))
    t, fx_train, fx_test = times(random), pick(random, None, *[start(random, y.shape) for _ in range(2)]), pick(
        random, None, *[start(random, (TEST, *outputs)) for _ in range(2)])
    return found(t, fx_train, fx_test, None if fx_test is None else cross.ntk)


def gp_inference(random, stax, predict):
    outputs, axes, shape = layout(random)
    train, cross, test = kernels(random, shape)
    form = random.integers(4)
    if form == 0:
        train, cross, test = train.nngp, cross.nngp, test.nngp
    found = predict.gp_inference(train, random.normal(size=(TRAIN, *outputs)), trace_axes=axes, **regularisation(random))
    get = pick(random, "nngp", "ntk", "ntkgp", ("nngp", "ntk"), ("ntk",), ("ntkgp", "nngp"), None)
    return found(get, pick(random, cross, cross, None), pick(random, test.nngp if form == 1 else test, None))


def gradient_descent_mse_ensemble(random, stax, predict):
    phi = pick(random, stax.Relu, stax.Erf, stax.Gelu)()
    if random.integers(3) < 2:
        inputs, outputs = (3,), pick(random, (1,), (3,))
        layers = stax.serial(stax.Dense(8, 1.3, 0.2), phi, stax.Dense(1, 1.1, 0.1))
    else:
        inputs, outputs = (3, 2), (3, 2)
        layers = stax.serial(stax.Conv(4, (2,), padding="SAME", W_std=1.2, b_std=0.3), phi, stax.Dense(1, 1.0, 0.2))
    x, test = random.normal(size=(TRAIN, *inputs)), random.normal(size=(TEST, *inputs))
    found = predict.gradient_descent_mse_ensemble(
        layers[2], x, random.normal(size=(TRAIN, *outputs)), learning_rate=pick(random, 1.0, 0.3, 5.0),
        diag_reg=pick(random, 1e-3, 0.05, 1.0), diag_reg_absolute_scale=bool(random.integers(2)))
    get = pick(random, "nngp", "ntk", ("nngp", "ntk"), ("ntk", "nngp"), ("ntk",), None)
    return found(t=times(random), x_test=pick(random, None, test, test), get=get, compute_cov=bool(random.integers(2)))


def max_learning_rate(random, stax, predict):
    train, _, _ = kernels(random, layout(random)[2])
    return predict.max_learning_rate(train.ntk, pick(random, None, 4, 24), pick(random, 0.0, 0.5, 0.9), pick(random, 1e-12, 0.3))


def squared(outputs, y):
    return 0.5 * ((outputs - y)**2).mean()


def cross_entropy(outputs, y):
    if type(outputs).__module__ == "numpy":
        return -((outputs - np.log(np.exp(outputs).sum(-1, keepdims=True))) * y).mean()
    import jax.numpy as jnp

    return -((outputs - jnp.log(jnp.exp(outputs).sum(-1, keepdims=True))) * y).mean()


def gradient_descent(random, stax, predict):
    outputs, axes, shape = pick(random, ((3,), (-1,), ()), ((2, 3), (-1,), (2,)))
    train, cross, _ = kernels(random, shape)
    y = np.eye(3)[random.integers(3, size=(TRAIN, *outputs[:-1]))]
    momentum = pick(random, None, None, 0.5, 0.9)
    found = predict.gradient_descent(pick(random, squared, cross_entropy), train.ntk, y, learning_rate=pick(random, 0.3, 2.0),
                                     momentum=momentum, trace_axes=axes)
    t = pick(random, 0.0, 0.5, 6.0, np.array([0.5, 3.0]), np.array([0.0, 2.0]), np.array([[0.5, 1.0], [2.0, 4.0]]))
    fx_train, fx_test = start(random, y.shape), pick(random, None, start(random, (TEST, *outputs)))
    if random.integers(3) == 0:
        fx_train, fx_test = random.normal(size=y.shape), random.normal(size=(TEST, *outputs))
        moving = momentum is not None and random.integers(2)
        state = predict.ODEState(fx_train, fx_test, *([fx_train * 0.1, fx_test * 0.2] if moving else []))
        return found(t, state, None, cross.ntk)
    return found(t, fx_train, fx_test, None if fx_test is None else cross.ntk)


def described(value):
    """A result as numbers: of every array its shape, its sum and a sum with weights; the names of named tuples."""
    if value is None:
        return None
    if hasattr(value, "fx_train"):
        return [described(part) for part in (value.fx_train, value.fx_test, value.qx_train, value.qx_test)]
    if isinstance(value, tuple):
        return [list(getattr(value, "_fields", ())), *[described(part) for part in value]]
    array = np.asarray(value, float)
    return {"shape": list(array.shape), "sums": [float(array.sum()), float(array.ravel() @ np.cos(np.arange(array.size)))]}


def result(number, stax, predict):
    """Of a case described(), or the name of the error that it is."""
    random = np.random.default_rng(number)
    try:
        return described(globals()[KINDS[number % len(KINDS)]](random, stax, predict))
    except (ValueError, NotImplementedError) as error:
        return type(error).__name__


if __name__ == "__main__":
    import jax

    jax.config.update("jax_enable_x64", True)
    from neural_tangents import predict, stax

    first, last, *kinds = sys.argv[1:]
    numbers = {number: result(number, stax, predict) for number in range(int(first), int(last))
               if not kinds or KINDS[number % len(KINDS)] in kinds}
    print(json.dumps(numbers))
