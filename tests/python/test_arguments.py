"""What functions of the limit theories say of arguments that are of another kind than theirs."""

import numpy as np
import pytest

import widelimit
from widelimit import heads, propagation, sde

V0 = sde.start()
NETWORK = sde.Network("shaped_attention", 16, 0.25)
PARAMETERS = propagation.Parameters(tokens=8)
POSITIVE = r"expected a number (> 0|in \[1, 1e\+07\]), got"  # A depth is a number of blocks.


@pytest.mark.parametrize("function, call", [
    ("simulate", lambda value: sde.simulate(sde.attention(0.25), V0, [0.1], max_step=value)),
    ("sgd", lambda value: heads.sgd("softmax", heads.Prior.spikes(2, 10), 3, 2, 16, 1, gamma=value)),
    ("exponents", lambda value: propagation.exponents(PARAMETERS, depth=value))])
@pytest.mark.parametrize("value, words", [
    (10 ** 400, POSITIVE), (-10 ** 400, POSITIVE), ("\ud800", "UTF-8"),
    ({1: 2}, "texts as the keys"), ({"\ud800": 2}, "UTF-8")])
def test_numbers_and_texts_that_json_lacks(function, call, value, words):
    with pytest.raises((widelimit.ArgumentError, TypeError), match=rf"(max_step|gamma|depth): .*{words}"):
        call(value)


@pytest.mark.parametrize("argument, call", [
    ("network", lambda value: sde.compare(value, V0, [1])),
    ("network", lambda value: sde.stopping_times(value, V0, [1], gammas=[0.5])),
    ("ensemble", sde.outputs),
    ("gammas", lambda value: sde.stopping_times(NETWORK, V0, [1], gammas=value)),
    ("temperatures", lambda value: sde.stopping_times(NETWORK, V0, [1], temperatures=value)),
    ("start", lambda value: heads.flow("softmax", heads.Prior.spikes(2, 10), 3, 2, tau=1, start=value)),
    ("parameters", lambda value: heads.prune("softmax", value, heads.Prior.spikes(2, 10), 3)),
    ("parameters", lambda value: heads.judge("softmax", value, heads.Prior.spikes(2, 10), 3)),
    ("parameters", lambda value: heads.attention_map("softmax", value, np.ones((3, 2)), np.ones((3, 2)))),
    ("constants", lambda value: heads.escape_rates(value, 2, 1)),
    ("x", lambda value: propagation.phase_diagram(PARAMETERS, x=value)),
    ("y", lambda value: propagation.critical_lines(PARAMETERS, y=value))])
@pytest.mark.parametrize("value", [True, 3, "ab"])
def test_things_of_another_kind(argument, call, value):
    with pytest.raises(TypeError, match=rf"^{argument}: expected "):
        call(value)


@pytest.mark.parametrize("argument, call", [
    ("layers", propagation.measure), ("attention", propagation.measure_attention),
    ("depths", lambda value: propagation.simulate_samples(PARAMETERS, value))])
@pytest.mark.parametrize("value", [None, 3])
def test_lists_are_lists(argument, call, value):
    with pytest.raises(TypeError, match=rf"^{argument}: expected a list of .*, got {value}"):
        call(value)


def test_sequences_that_are_left_out_are_as_many_as_the_table_says():
    prior = heads.Prior.spikes(2, 10)
    for found, expected in zip(heads.fresh_sequences(prior, 3, 2, None), heads.fresh_sequences(prior, 3, 2)):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("gamma", [-0.5, 2, np.nan])
def test_gammas_are_residual_weights(gamma):
    with pytest.raises(widelimit.ArgumentError, match=rf"stopping_times: gammas: expected numbers in \[0, 1\], got {gamma}"):
        sde.stopping_times(NETWORK, V0, [1], gammas=[0.5, gamma], samples=10)


def test_words_are_texts():
    for free in (np.ones(2), "x", None):
        with pytest.raises(ValueError, match="free: expected one of alpha"):
            propagation.critical_values("angle", free, PARAMETERS)
    with pytest.raises(ValueError, match="which: expected one of angle"):
        propagation.critical_values(np.ones(2), "sigma_w", PARAMETERS)


def test_the_spread_of_networks_has_a_width():
    with pytest.raises(widelimit.ArgumentError, match="width_spread: width: expected"):
        propagation.width_spread(PARAMETERS, None)
