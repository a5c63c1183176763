"""Functions that several threads call at once."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

import widelimit as nt
from widelimit import predict, stax


def in_threads(function, choices, calls=600):
    """Whether function(choice) gives in four threads what it gives in one, to the last bit."""
    expected = [function(choice) for choice in choices]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda k: np.array_equal(function(choices[k % len(choices)]), expected[k % len(choices)]),
                              range(calls)))
    return found.count(False) == 0


def test_finite_networks_keep_their_own_parameters(random):
    x = random.normal(size=(3, 4))
    init_fn, apply_fn, _ = stax.serial(stax.Dense(64), stax.Relu(), stax.Dense(1))
    draws = [init_fn(seed, (-1, 4))[1] for seed in range(3)]
    empirical = nt.empirical_kernel_fn(apply_fn)
    assert in_threads(lambda params: apply_fn(params, x), draws)
    assert in_threads(lambda params: empirical(x, None, "ntk", params), draws)
    assert in_threads(lambda params: nt.linearize(apply_fn, params)(draws[0], x), draws, calls=100)


def test_predictions_share_what_they_keep(random):
    x, y, test = random.normal(size=(12, 3)), random.normal(size=(12, 1)), random.normal(size=(4, 3))
    kernel_fn = stax.serial(stax.Dense(8, 1.3, 0.2), stax.Erf(), stax.Dense(1))[2]

    def predictor():
        return predict.gradient_descent_mse_ensemble(kernel_fn, x, y, diag_reg=0.1)

    requests = [(name, t) for name in ("nngp", "ntk") for t in (None, 1.0, 7.0)]
    expected = [predictor()(t, test, name) for name, t in requests]
    for _ in range(20):
        shared = predictor()
        with ThreadPoolExecutor(6) as pool:
            found = list(pool.map(lambda request: shared(request[1], test, request[0]), requests))
        for array, right in zip(found, expected):
            np.testing.assert_array_equal(array, right)
