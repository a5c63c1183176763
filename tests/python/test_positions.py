"""Covariances between positions, of networks without a readout."""

import numpy as np
import pytest

import widelimit
from widelimit import layers, stax


def network():
    return widelimit.Network([layers.conv([3, 2], weight_variance=2, bias_variance=0.1), layers.relu(), layers.dense(1.5)])


def test_pools_of_covariances_are_the_gram_matrix(random):
    x1, x2 = random.normal(size=(3, 3, 4, 2)), random.normal(size=(2, 3, 4, 2))
    for left, right in ((x1, x2), (x1, None)):
        found = widelimit.position_covariances(network(), left, right)
        for readout, reduced in ((layers.global_average_pool(), lambda k: k.mean((2, 3))),
                                 (layers.flatten(), lambda k: np.trace(k, axis1=2, axis2=3) / 12)):
            expected = widelimit.gram(widelimit.Network([*network().layers, readout]), left, right)
            for name in ("nngp", "ntk"):
                np.testing.assert_allclose(reduced(getattr(found, name)), getattr(expected, name), rtol=1e-12)
    assert found.nngp.shape == (3, 3, 12, 12) and found.nngp.flags.owndata is False and found.nngp.flags.writeable


def test_variances_and_diagonals_are_parts_of_it(random):
    x = random.normal(size=(3, 3, 4, 2))
    whole = widelimit.position_covariances(network(), x)
    own = widelimit.position_variances(network(), x)
    np.testing.assert_array_equal(own.ntk, np.stack([whole.ntk[i, i] for i in range(3)]))
    diagonal = widelimit.position_covariances(network(), x, diagonal=True)
    np.testing.assert_array_equal(diagonal.nngp, np.diagonal(whole.nngp, axis1=2, axis2=3))
    np.testing.assert_array_equal(whole.nngp, whole.nngp.transpose(1, 0, 3, 2))
    alone = widelimit.position_covariances(network(), x.astype(np.float32), kernels="nngp")
    assert alone.ntk is None and alone.nngp.dtype == np.float32
    np.testing.assert_allclose(alone.nngp, whole.nngp, rtol=1e-5)


def test_inputs_of_different_size_are_an_error(random):
    ragged = [random.normal(size=(length, 2)) for length in (3, 4)]
    sequences = widelimit.Network([layers.conv([3]), layers.relu(), layers.dense()])
    with pytest.raises(ValueError, match="inputs of one size"):
        widelimit.position_covariances(sequences, ragged)


def test_kernel_fn_has_axes_for_positions(random):
    x1, x2 = random.normal(size=(3, 3, 4, 2)), random.normal(size=(2, 3, 4, 2))
    kernel_fn = stax.serial(stax.Conv(8, (2, 2), b_std=0.3), stax.Relu(), stax.Conv(8, (1, 2)), stax.Erf())[2]
    kernel = kernel_fn(x1, x2)
    assert kernel.ntk.shape == (3, 2, 2, 2, 2, 2) and kernel.cov1.shape == (3, 2, 2, 2, 2)
    assert kernel.shape1 == (3, 2, 2, 8) and not kernel.is_reversed and not kernel.is_gaussian
    np.testing.assert_allclose(kernel.cov2, np.einsum("iiabcd->iabcd", kernel_fn(x2, None, "nngp")), rtol=1e-12)
    diagonal = kernel_fn(x1, x2, ("ntk", "cov1", "is_reversed"), diagonal_spatial=True)
    np.testing.assert_allclose(diagonal.ntk, np.einsum("ijaabb->ijab", kernel.ntk), rtol=1e-12)
    assert diagonal.cov1.shape == (3, 2, 2) and diagonal.is_reversed is False
    assert kernel_fn(x1, x2, "cov1", diagonal_batch=False).shape == (3, 3, 2, 2, 2, 2)
    odd = stax.serial(stax.Conv(8, (2, 1)), stax.Relu())[2](x1, None)
    assert odd.is_reversed and odd.nngp.shape == (3, 3, 4, 4, 2, 2)


def test_networks_go_on_from_a_kernel(random):
    x = random.normal(size=(3, 4, 2))
    front = stax.serial(stax.Conv(8, (2,), b_std=0.3), stax.Relu())
    back = stax.serial(stax.Conv(8, (2,)), stax.Relu(), stax.GlobalAvgPool(), stax.Dense(1))
    found = back[2](front[2](x))
    np.testing.assert_array_equal(found.ntk, stax.serial(front, back)[2](x, None, "ntk"))
    np.testing.assert_allclose(back[2](front[2](x).replace()).ntk, found.ntk, rtol=1e-12)
