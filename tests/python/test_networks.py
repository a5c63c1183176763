"""Layers and networks as values, and nonlinearities from Python functions."""

import math
import pickle

import numpy as np
import pytest

import widelimit
from widelimit import layers


def some_network():
    inner = [layers.gelu(), layers.dense(1.5)]
    return widelimit.Network([layers.conv([3, 3], padding="valid", weight_variance=2), layers.leaky_relu(0.1),
                              layers.dense(), layers.sum([], (0.5, inner)), layers.repeat(2, inner), layers.flatten(),
                              layers.concat((0.25, [layers.dense()]), (0.75, [layers.dense(2)])), layers.dense()],
                             name="some")


def test_networks_go_through_files_and_pickles(tmp_path):
    network = some_network()
    network.write(tmp_path / "network.json")
    for other in (widelimit.Network.read(tmp_path / "network.json"),
                  widelimit.Network.from_json(network.to_json()), pickle.loads(pickle.dumps(network))):
        assert other == network and other.name == "some"
    assert network != widelimit.Network(network.layers[:-1], name="some")
    assert [layer.kind for layer in network.layers[:2]] == ["conv", "leaky_relu"]
    assert "conv" in repr(network) and "leaky_relu" in repr(network.layers[1])
    assert "6x6" in network.describe((8, 8))


def test_wrong_layers_name_the_field():
    with pytest.raises(widelimit.NetworkError, match="weight_variance"):
        layers.dense(-1)
    with pytest.raises(widelimit.NetworkError, match="padding"):
        layers.conv([3], padding="full")
    with pytest.raises(widelimit.NetworkError, match="unknown kind"):
        layers.nonlinearity("relo")


def kernels_of(nonlinearity, x):
    network = widelimit.Network([layers.dense(1.5, 0.1), nonlinearity, layers.dense()])
    return widelimit.gram(network, x)


def test_a_nonlinearity_from_its_function(random):
    x = random.normal(size=(5, 4))
    expected = kernels_of(layers.erf(), x)
    error_function = np.vectorize(math.erf)
    for own in (layers.elementwise(error_function),
                layers.elementwise(error_function, lambda z: 2 / np.sqrt(np.pi) * np.exp(-z**2))):
        result = kernels_of(own, x)
        np.testing.assert_allclose(result.nngp, expected.nngp, rtol=1e-8)
        np.testing.assert_allclose(result.ntk, expected.ntk, rtol=1e-7)


def test_a_function_whose_terms_cancel_is_tabulated(random):
    """1 + tanh(x) has lost its digits where x is far below 0; there the table is right to what is lost."""
    alone = []

    def cancelling(z):
        alone.extend(z[np.abs(z) < 2**14] if z.size == 1 else [])
        return z * 0.5 * (1 + np.tanh(0.75 * z))

    def stable(z):
        with np.errstate(over="ignore"):
            return z / (1 + np.exp(-1.5 * z))

    x = random.normal(size=(5, 4))
    found, expected = (kernels_of(layers.elementwise(phi), x) for phi in (cancelling, stable))
    assert not alone
    np.testing.assert_allclose(found.nngp, expected.nngp, rtol=1e-11)
    np.testing.assert_allclose(found.ntk, expected.ntk, rtol=1e-9)


def test_a_nonlinearity_from_its_dual(random):
    x = random.normal(size=(5, 4))
    expected = kernels_of(layers.nonlinearity("exp"), x)

    def dual(p, q, c):
        return np.exp((p + q) / 2 + c)

    for precision, tolerance in (("double", 1e-12), ("float", 1e-5)):
        network = widelimit.Network([layers.dense(1.5, 0.1), layers.elementwise_dual(dual, dual), layers.dense()])
        result = widelimit.gram(network, x, precision=precision)
        np.testing.assert_allclose(result.nngp, expected.nngp, rtol=tolerance)
        np.testing.assert_allclose(result.ntk, expected.ntk, rtol=tolerance)


def test_own_functions_fail_with_their_own_errors(random):
    x = random.normal(size=(5, 4))

    def failing(p, q, c):
        raise ZeroDivisionError("of the caller")

    with pytest.raises(ZeroDivisionError, match="of the caller"):
        kernels_of(layers.elementwise_dual(failing, failing), x)
    with pytest.raises(widelimit.ArgumentError, match="the NTK needs the derivative's dual"):
        kernels_of(layers.elementwise_dual(lambda p, q, c: np.array(c)), x)  # JAX cannot read it.
    with pytest.raises(widelimit.ArgumentError, match="expected 5 numbers|of the size that it got"):
        kernels_of(layers.elementwise_dual(lambda p, q, c: c[:2], lambda p, q, c: c), x)


def test_a_pair_layer_from_its_function(random):
    x = random.normal(size=(3, 5, 2))
    matrix = random.normal(size=(5, 5))

    def mixed(nngp, ntk, variance1, variance2):
        assert variance1.shape == variance2.shape == (5,)
        return matrix @ nngp @ matrix.T, None if ntk is None else matrix @ ntk @ matrix.T

    def kernels(layer):
        return widelimit.gram(widelimit.Network([layers.dense(1.5), layer, layers.flatten(), layers.dense()]), x)

    expected = kernels(layers.from_fields("positions_map", matrix=matrix.tolist()))
    for got, right in zip(kernels(layers.pair(mixed, leaves="as_it_was")), expected):
        if right is not None:
            np.testing.assert_allclose(got, right, rtol=1e-12)
    with pytest.raises(widelimit.ArgumentError, match=r"must return nngp of shape \(5, 5\)"):
        kernels(layers.pair(lambda nngp, ntk, *variances: (nngp[:2], ntk)))
    with pytest.raises(widelimit.ArgumentError, match="leaves: expected gaussian"):
        layers.pair(mixed, leaves="normal")


def test_own_layers_in_messages_and_prints():
    # JAX, which may have been imported, cannot read it.
    halved = layers.pair(lambda nngp, ntk, p, q: (np.array(nngp) / 2, None if ntk is None else ntk / 2), leaves="as_it_was", kind="halved")
    other = layers.pair(lambda nngp, ntk, p, q: (nngp, ntk), leaves="as_it_was", kind="halved")
    network = widelimit.Network([layers.dense(), halved, layers.dense()])
    with pytest.raises(widelimit.ArgumentError, match=r"gram_vjp: layers\[1\].*: this layer has no adjoint"):
        widelimit.gram_vjp(network, np.ones((2, 3)), np.ones((2, 3)), ntk=np.ones((2, 2)))
    with pytest.raises(widelimit.NetworkError, match="can be imported by name, or keep the code that makes the network"):
        network.to_json()
    # Of one kind, layers are told apart by numbers, not by addresses.
    for shown in (repr(halved), repr(other), repr(network), str(network)):
        assert "0x" not in shown
    assert repr(halved) == repr(halved) != repr(other)
    passed, table = widelimit.check_laws(halved, [()], inputs=2)
    assert passed and "adjoints               absent" in table
    forgets = layers.pair(lambda nngp, ntk, p, q: (nngp / 2, None if ntk is None else 0 * ntk), leaves="as_it_was")
    passed, table = widelimit.check_laws(forgets, [()], inputs=2)
    assert not passed and "linear ntk             FAILED" in table
    with pytest.raises(widelimit.NetworkError, match='unknown weights "sofmax"; did you mean "softmax"'):
        layers.attention(weights="sofmax")


def test_layers_take_numbers_of_numpy():
    made = widelimit.Network([layers.conv([np.int64(3)], weight_variance=np.float32(2)), layers.leaky_relu(np.float64(0.25))])
    assert made == widelimit.Network([layers.conv([3], weight_variance=2), layers.leaky_relu(0.25)])
    with pytest.raises(TypeError, match="expected numbers, texts and lists of them, got a set"):
        layers.dense({1})
