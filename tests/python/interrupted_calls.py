"""Calls that would take seconds, each interrupted as by Ctrl-C: prints `name seconds` from the signal to
KeyboardInterrupt, or `name finished`."""

import signal
import sys
import threading
import time

import numpy as np

import widelimit as nt
from widelimit import heads, layers, predict, propagation, sde, stax

RANDOM = np.random.default_rng(0)


def positive(size):
    matrix = np.full((size, size), 0.1)
    matrix[np.diag_indices(size)] = 2
    return matrix


def convolutions(readout):
    hidden = [layers.conv([3, 3]), layers.relu()]
    return nt.Network([*hidden, *hidden, *readout])


def finite(method):
    network = nt.FiniteNetwork(convolutions([layers.flatten(), layers.dense()]), (24, 24), 3, hidden=96)
    images = RANDOM.normal(size=(300, 24, 24, 3))
    return lambda: getattr(network, method)(images)


def parameters():
    network = nt.Network([layers.dense(), layers.relu(), layers.dense(), layers.relu(), layers.dense()])
    return lambda: nt.FiniteNetwork(network, (), 3, hidden=9000)


def empirical(name):
    init_fn, apply_fn, _ = stax.serial(stax.Conv(96, (3, 3), padding="SAME"), stax.Relu(), stax.Conv(96, (3, 3), padding="SAME"),
                                       stax.Flatten(), stax.Dense(3))
    images = RANDOM.normal(size=(200, 24, 24, 3))
    params = init_fn(0, images.shape)[1]
    functions = {"apply_fn": lambda: apply_fn(params, images),
                 "empirical_ntk_fn": lambda: nt.empirical_ntk_fn(apply_fn)(images, None, params),
                 "linearize": lambda: nt.linearize(apply_fn, params)(params, images),
                 "monte_carlo_kernel_fn": lambda: nt.monte_carlo_kernel_fn(init_fn, apply_fn, 0, 9)(images, None, "ntk")}
    return functions[name]


def kernels(name):
    images = RANDOM.normal(size=(24, 20, 20, 3))
    network = convolutions([layers.attention(weights="relu"), layers.flatten(), layers.dense()])
    pixels = RANDOM.normal(size=(2, 40, 40, 3))
    large = convolutions([layers.attention(), layers.global_average_pool(), layers.dense()])
    positions = nt.Network([layers.repeat(60, [layers.conv([3, 3]), layers.relu()])])
    functions = {"gram": lambda: nt.gram(network, images),
                 "gram_vjp": lambda: nt.gram_vjp(large, pixels, ntk=np.ones((2, 2))),
                 "gram_diagonal_vjp": lambda: nt.gram_diagonal_vjp(large, pixels, ntk=np.ones(2)),
                 "position_covariances": lambda: nt.position_covariances(positions, images[:8]),
                 "explain": lambda: nt.explain(network, (20, 20), 3, measure_seconds=20),
                 "check_limit": lambda: nt.check_limit(nt.Network([layers.dense(), layers.relu(), layers.dense()]),
                                                       widths=(256, 512, 1024), draws=3000)}
    return functions[name]


def signals(name):
    parameters = propagation.Parameters(tokens=64)
    block, start = parameters.block(), propagation.start_gram(24, 1, 0.2)
    functions = {"propagate": lambda: propagation.propagate(block, start, 400),
                 "layer_gradients": lambda: propagation.layer_gradients(block, start, 100),
                 "sample_block": lambda: propagation.sample_block(block, start, 8, width=256, networks=200),
                 "simulate_trajectory": lambda: propagation.simulate_trajectory(parameters, 4, width=256, networks=4000),
                 "phase_diagram": lambda: propagation.phase_diagram(parameters, ("alpha", np.linspace(0.1, 0.9, 20)),
                                                                    ("sigma_w", np.linspace(0.2, 4, 20_000)), causal=True)}
    return functions[name]


def theories(name):
    prior, model, network = heads.Prior.spikes(4, 10), sde.transformer(0.25), sde.Network("shaped_transformer", 256, 0.25)
    v0 = sde.start(8)
    functions = {"heads.flow": lambda: heads.flow("softmax1", prior, 5, 4, starts=9),
                 "heads.sgd": lambda: heads.sgd("softmax1", prior, 5, 4, 10_000, 100, form="vector"),
                 "heads.bayes_risk": lambda: heads.bayes_risk(prior, 5, 10**9),
                 "sde.simulate": lambda: sde.simulate(model, v0, [1], paths=10**6),
                 "sde.sample_networks": lambda: sde.sample_networks(network, v0, [256], samples=10**6),
                 "sde.gradients": lambda: sde.gradients(network, v0, 8, samples=2000)}
    return functions[name]


def regression(name):
    matrix, y = positive(2500), RANDOM.normal(size=(2500, 1))
    if name == "fit":
        large, targets = positive(5000), RANDOM.normal(size=(5000, 1))
        return lambda: nt.Regression.fit(large, targets, regulariser=1e-3)
    fitted = nt.Regression.fit(matrix, y, regulariser=1e-3)
    many = RANDOM.normal(size=(6000, 2500))
    prior = np.eye(6000)
    return lambda: fitted.covariance(many, prior)


def flow():
    matrix = positive(2000)
    return lambda: nt.GradientFlow.fit(matrix, matrix, RANDOM.normal(size=(2000, 1)), regulariser=1e-3)


def model(name):
    x, y = RANDOM.normal(size=(1500, 5)), RANDOM.normal(size=1500)
    network = nt.Network([layers.dense(), layers.relu(), layers.dense()])
    if name == "fit":
        return lambda: nt.Model.fit(network, x, y)
    fitted, many = nt.Model.fit(network, x[:50], y[:50], regulariser=0.1), RANDOM.normal(size=(4500, 5))
    return lambda: fitted.samples(many, 2)


def whitening():
    images = RANDOM.normal(size=(2500, 30, 30, 3))
    return lambda: nt.Preprocessing.fit("zca", images)


def prediction(name):
    matrix, y = positive(2600), RANDOM.normal(size=(2600, 1))
    large, targets = positive(4500), RANDOM.normal(size=(4500, 1))
    functions = {"gp_inference": lambda: predict.gp_inference(large, targets, 0.1)("nngp", large[:10]),
                 "gradient_descent_mse": lambda: predict.gradient_descent_mse(matrix, y)(1.0),
                 "max_learning_rate": lambda: predict.max_learning_rate(large)}
    return functions[name]


# Name, what makes the call, and its arguments. Those that leave a computation behind come last.
CALLS = [("FiniteNetwork", parameters), ("FiniteNetwork.__call__", finite, "__call__"),
         ("FiniteNetwork.jacobian", finite, "jacobian"), ("FiniteNetwork.ntk", finite, "ntk"),
         *[(name, empirical, name) for name in ("apply_fn", "empirical_ntk_fn", "linearize", "monte_carlo_kernel_fn")],
         *[(name, kernels, name) for name in ("gram", "gram_vjp", "gram_diagonal_vjp", "position_covariances", "explain", "check_limit")],
         *[(name, signals, name) for name in ("propagate", "layer_gradients", "sample_block", "simulate_trajectory", "phase_diagram")],
         *[(name, theories, name) for name in ("heads.flow", "heads.sgd", "heads.bayes_risk", "sde.simulate", "sde.sample_networks",
                                               "sde.gradients")],
         ("Model.fit", model, "fit"), ("Model.samples", model, "samples"), ("Regression.fit", regression, "fit"),
         ("Regression.covariance", regression, "covariance"), ("GradientFlow.fit", flow), ("Preprocessing.fit", whitening),
         *[(name, prediction, name) for name in ("gp_inference", "gradient_descent_mse", "max_learning_rate")]]


def latency(call):
    """Seconds from the signal to KeyboardInterrupt; None where the call ended before."""
    sent = []

    def interrupt():
        sent.append(time.monotonic())
        signal.raise_signal(signal.SIGINT)

    timer = threading.Timer(0.15, interrupt)
    timer.start()
    try:
        call()
        timer.cancel()
        return None
    except KeyboardInterrupt:
        return time.monotonic() - sent[0]


if __name__ == "__main__":
    for name, make, *arguments in CALLS:
        if name in sys.argv[1:] or len(sys.argv) == 1:
            seconds = latency(make(*arguments))
            print(name, "finished" if seconds is None else f"{seconds:.3f}", flush=True)
