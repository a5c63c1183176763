"""gram() and its arrays, against closed forms in NumPy."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import widelimit
from widelimit import layers


def relu_network():
    return widelimit.Network([layers.dense(2, 0.1), layers.relu(), layers.dense(1.5, 0.2)])


def relu_kernels(x1, x2):
    """The arc-cosine kernels of relu_network()."""

    def dense(k, t, weight, bias):
        return weight * k + bias, weight * k + bias + weight * t

    k = x1 @ x2.T / x1.shape[1]
    k, t = dense(k, 0, 2, 0.1)
    p = (2 * (x1**2).mean(1) + 0.1)[:, None]
    q = (2 * (x2**2).mean(1) + 0.1)[None, :]
    angle = np.arccos(np.clip(k / np.sqrt(p * q), -1, 1))
    t = t * (np.pi - angle) / (2 * np.pi)
    k = np.sqrt(p * q) / (2 * np.pi) * (np.sin(angle) + (np.pi - angle) * np.cos(angle))
    return dense(k, t, 1.5, 0.2)


def test_gram_has_the_arc_cosine_kernels(random):
    x1, x2 = random.normal(size=(5, 7)), random.normal(size=(3, 7))
    result = widelimit.gram(relu_network(), x1, x2)
    for got, expected in zip((result.nngp, result.ntk), relu_kernels(x1, x2)):
        np.testing.assert_allclose(got, expected, rtol=1e-12)
    assert result.nngp.flags.owndata or result.nngp.base is not None
    assert result.nngp_error is None and result.ntk_error is None


def test_one_batch_is_symmetric_and_has_the_diagonal(random):
    x = random.normal(size=(6, 4))
    result = widelimit.gram(relu_network(), x)
    np.testing.assert_array_equal(result.ntk, result.ntk.T)
    diagonal = widelimit.gram_diagonal(relu_network(), x)
    np.testing.assert_array_equal(np.diag(result.nngp), diagonal.nngp)
    np.testing.assert_array_equal(np.diag(result.ntk), diagonal.ntk)


def test_kernels_and_precision_are_what_was_asked_for(random):
    x = random.normal(size=(4, 3))
    assert widelimit.gram(relu_network(), x, kernels="nngp").ntk is None
    assert widelimit.gram(relu_network(), x, kernels="ntk").nngp is None
    assert widelimit.gram(relu_network(), x).nngp.dtype == np.float64
    assert widelimit.gram(relu_network(), x.astype(np.float32)).nngp.dtype == np.float32
    assert widelimit.gram(relu_network(), x, precision="float").nngp.dtype == np.float32
    with pytest.raises(ValueError, match="kernels: expected 'nngp', 'ntk' or 'both', got 'all'"):
        widelimit.gram(relu_network(), x, kernels="all")
    with pytest.raises(ValueError, match="precision: expected 'float' or 'double', got 'half'"):
        widelimit.gram(relu_network(), x, precision="half")


def test_attention_is_exact_if_asked_for_and_results_say_what_was_left_out():
    network = widelimit.Network([layers.dense(2, 0.1), layers.relu(), layers.attention(), layers.flatten()])
    # A constant image needs one combination of its outputs, white noise of three channels some more.
    x = np.stack([np.full((16, 16, 3), 0.7), np.random.default_rng(3).normal(size=(16, 16, 3))]).astype(np.float32)
    few, exact = widelimit.gram(network, x), widelimit.gram(network, x, exact_attention=True)
    assert few.shortened.inputs == 2
    assert few.shortened.largest_rank >= 1 and 0 <= few.shortened.largest_tail <= 1e-7
    assert exact.shortened.inputs == 0
    np.testing.assert_allclose(few.ntk, exact.ntk, rtol=1e-6)
    np.testing.assert_array_equal(widelimit.gram_diagonal(network, x, exact_attention=True).ntk, np.diag(exact.ntk))
    assert "shortened" not in exact._repr_html_()


def test_arrays_of_any_layout_are_taken(random):
    x = random.normal(size=(4, 6))
    expected = widelimit.gram(relu_network(), x).ntk
    wide = np.zeros((4, 12))
    wide[:, ::2] = x
    for other in (np.asfortranarray(x), wide[:, ::2], x.tolist(), x.astype(">f8")):
        np.testing.assert_array_equal(widelimit.gram(relu_network(), other).ntk, expected)
    whole = random.integers(-3, 4, size=(4, 6))
    np.testing.assert_array_equal(widelimit.gram(relu_network(), whole).ntk,
                                  widelimit.gram(relu_network(), whole.astype(float)).ntk)
    with pytest.raises(TypeError, match="x1: expected an array of real numbers, got elements of type complex128"):
        widelimit.gram(relu_network(), x + 1j)


def test_an_object_with_dlpack_only(random):
    x = random.normal(size=(3, 5))

    class Tensor:
        def __dlpack__(self, **options):
            return x.__dlpack__(**options)

        def __dlpack_device__(self):
            return x.__dlpack_device__()

    np.testing.assert_array_equal(widelimit.gram(relu_network(), Tensor()).nngp,
                                  widelimit.gram(relu_network(), x).nngp)


def test_sequences_of_different_length(random):
    network = widelimit.Network([layers.conv([3], weight_variance=2), layers.relu(), layers.global_average_pool(),
                                 layers.dense()])
    padded, lengths = random.normal(size=(4, 6, 3)), np.array([6, 2, 5, 1])
    ragged = [x[:length] for x, length in zip(padded, lengths)]
    by_lengths = widelimit.gram(network, padded, lengths1=lengths)
    np.testing.assert_array_equal(widelimit.gram(network, ragged).ntk, by_lengths.ntk)
    with pytest.raises(TypeError, match="lengths of x1: expected integers"):
        widelimit.gram(network, padded, lengths1=lengths / 1)


def test_errors_are_pythons_own_too(random):
    x = random.normal(size=(4, 6))
    with pytest.raises(widelimit.ArgumentError) as error:
        widelimit.gram(relu_network(), np.full((2, 3), np.nan))
    assert isinstance(error.value, ValueError) and isinstance(error.value, widelimit.Error)
    with pytest.raises(widelimit.NetworkError, match=r"layers\[0\]"):
        widelimit.gram(widelimit.Network([layers.conv([3])]), x)
    with pytest.raises(widelimit.DataError, match="/nowhere/network.json"):
        widelimit.Network.read("/nowhere/network.json")
    with pytest.raises(widelimit.ArgumentError, match="threads"):
        widelimit.gram(relu_network(), x, threads=-1)


def test_progress_is_reported_and_its_errors_arrive(random):
    x, calls = random.normal(size=(40, 6)), []
    widelimit.gram(relu_network(), x, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (40 * 41 // 2, 40 * 41 // 2)

    def failing(done, total):
        raise KeyError("of the caller")

    with pytest.raises(KeyError, match="of the caller"):
        widelimit.gram(relu_network(), x, progress=failing)


def test_other_threads_run_meanwhile(random):
    network = widelimit.Network.named("struct", {"depth": 2})
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.005)

    thread = threading.Thread(target=tick)
    thread.start()
    widelimit.gram(network, random.normal(size=(40, 12, 12, 3)), threads=1)
    stop.set()
    thread.join()
    assert len(ticks) > 3 and max(np.diff(ticks)) < 1


def test_threads_and_forked_processes_compute():
    # In a process of its own: forking one with threads of NumPy's own is the caller's risk.
    script = ("import os, numpy, threading, widelimit\n"
              "from widelimit import layers\n"
              "network = widelimit.Network([layers.dense(2), layers.relu(), layers.dense()])\n"
              "x = numpy.random.default_rng(0).normal(size=(30, 4))\n"
              "expected = widelimit.gram(network, x).ntk\n"
              "good = []\n"
              "def check():\n"
              "    good.append(all((widelimit.gram(network, x).ntk == expected).all() for _ in range(20)))\n"
              "threads = [threading.Thread(target=check) for _ in range(6)]\n"
              "[thread.start() for thread in threads], [thread.join() for thread in threads]\n"
              "assert good == [True] * 6\n"
              "child = os.fork()\n"
              "if child == 0:\n"
              "    check()\n"
              "    os._exit(0 if good[-1] else 1)\n"
              "assert os.waitpid(child, 0)[1] == 0\n")
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == 0


def test_explain_and_check_limit():
    table = widelimit.explain(relu_network(), (), 5, measure_seconds=0)
    assert "layers[1]" in table
    passed, table = widelimit.check_limit(relu_network(), widths=(16, 32, 64), draws=16)
    assert passed, table
