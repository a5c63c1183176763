"""Kernels made by hand, or changed: their fields, and layers that go on from them."""

import numpy as np
import pytest

import widelimit as nt
from widelimit import stax

ARRAYS = ("nngp", "ntk", "cov1", "cov2")
VECTORS = stax.serial(stax.Dense(4, 1.3, 0.2))
BEHIND_VECTORS = stax.serial(stax.Relu(), stax.Dense(3, 1.1), stax.Erf(), stax.Dense(1))
CONV = stax.Conv(4, (3, 3), padding="SAME", b_std=0.1)


def check_same(found, expected):
    for name in ARRAYS:
        one, other = getattr(found, name), getattr(expected, name)
        assert (one is None) == (other is None), name
        if one is not None:
            assert one.shape == other.shape
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
    facts = [{name: value for name, value in kernel.asdict().items() if name not in ARRAYS} for kernel in (found, expected)]
    assert facts[0] == facts[1]


@pytest.mark.parametrize("diagonal_batch", [True, False])
@pytest.mark.parametrize("two", [False, True])
@pytest.mark.parametrize("front, behind", [
    (VECTORS, BEHIND_VECTORS),
    (stax.serial(VECTORS, stax.Relu()), stax.serial(stax.Dense(1), stax.LayerNorm(), stax.Gelu())),
    (CONV, stax.serial(stax.Relu(), stax.Conv(3, (2, 3), padding="CIRCULAR"), stax.Relu(), stax.GlobalAvgPool(), stax.Dense(1))),
    (CONV, stax.serial(stax.Relu(), stax.Flatten(), stax.Dense(1))),
    (stax.serial(CONV, stax.Relu(), CONV), stax.serial(stax.Relu(), stax.Conv(3, (2, 3)))),
    (CONV, stax.serial(stax.Relu(), stax.GlobalSelfAttention(3, 2, 2, 2), stax.Flatten())),
])
def test_layers_go_on_from_a_kernel_made_by_hand(random, front, behind, two, diagonal_batch):
    shape = (3,) if front[2].module.is_pointwise else (4, 5, 2)
    x1, x2 = random.normal(size=(3, *shape)), random.normal(size=(2, *shape)) if two else None
    kernel = front[2](x1, x2, diagonal_batch=diagonal_batch)
    again = nt.Kernel(**kernel.asdict())
    assert again.origin is None and kernel.origin is not None
    check_same(behind[2](again), stax.serial(front, behind)[2](x1, x2, diagonal_batch=diagonal_batch))


def test_variances_of_positions_are_enough_where_they_are(random):
    x = random.normal(size=(3, 4, 5, 2))
    kernel = CONV[2](x, diagonal_spatial=True).replace()
    behind = stax.serial(stax.Relu(), stax.Flatten(), stax.Dense(1))
    np.testing.assert_allclose(behind[2](kernel, get="NTK"), stax.serial(CONV, behind)[2](x, None, "ntk"), rtol=1e-12)
    with pytest.raises(ValueError, match="diagonal_spatial: expected one with the covariances of all pairs of positions"):
        stax.GlobalSelfAttention(3, 2, 2, 2)[2](kernel)


def test_a_changed_kernel_is_that_of_other_weights(random):
    x = random.normal(size=(3, 4))
    front = stax.Dense(4)[2](x)
    expected = stax.serial(stax.Dense(4, 1.5, 0.3), BEHIND_VECTORS)[2](x, None, "nngp")
    np.testing.assert_allclose(BEHIND_VECTORS[2](0.3 + 1.5 * front, get="nngp"), expected, rtol=1e-12)
    np.testing.assert_array_equal((front / 2).cov1, front.cov1 / 4)
    np.testing.assert_array_equal((np.float64(1.5) * front).ntk, (front * 1.5).ntk)
    assert (-front) is front and (front - 2).nngp[0, 0] == front.nngp[0, 0] + 4


def test_a_dual_on_a_grid_of_correlations():
    correlations = np.linspace(-1, 1, 9)[None]
    kernel = nt.Kernel(nngp=correlations, ntk=np.zeros((1, 9)), cov1=np.ones(1), cov2=np.ones(9), x1_is_x2=False,
                       is_gaussian=True, is_reversed=False, is_input=False, diagonal_batch=True, diagonal_spatial=False,
                       shape1=(1, 7), shape2=(9, 7), batch_axis=0, channel_axis=1)
    found = stax.Relu()[2](kernel)
    angle = np.arccos(correlations)
    np.testing.assert_allclose(found.nngp, (np.sin(angle) + (np.pi - angle) * correlations) / (2 * np.pi), atol=1e-12)
    np.testing.assert_array_equal(found.ntk, np.zeros((1, 9)))
    # From an NTK of 1 on, what is behind is the dual of the derivative.
    with_ntk = stax.Relu()[2](kernel.replace(ntk=np.ones((1, 9))), get="ntk")
    np.testing.assert_allclose(with_ntk, (np.pi - angle) / (2 * np.pi), atol=1e-12)
    assert stax.Relu()[2](kernel.replace(ntk=None)).ntk is None
    np.testing.assert_array_equal(stax.Relu()[2](kernel.replace(ntk=np.float64(0)), get="ntk"), np.zeros((1, 9)))


def test_one_batch_counts_as_one_for_dropout(random):
    x = random.normal(size=(3, 4))
    kernel, behind = VECTORS[2](x).replace(), stax.serial(stax.Relu(), stax.Dropout(0.5), stax.Dense(1))
    check_same(behind[2](kernel), stax.serial(VECTORS, behind)[2](x))
    with pytest.raises(ValueError, match="Kernel: expected symmetric kernels with the variances on the diagonal"):
        behind[2](kernel.replace(nngp=kernel.nngp + np.triu(np.ones((3, 3)), 1)))


def test_masks_of_a_kernel_made_by_hand(random):
    x = random.normal(size=(3, 6, 2))
    x[0, 4:] = x[2, 1] = 100.0
    front = stax.serial(stax.Conv(4, (3,), padding="SAME"))
    behind = stax.serial(stax.Relu(), stax.GlobalAvgPool(), stax.Dense(1))
    masked = (x == 100.0).all(-1, keepdims=True)
    kernel = front[2](x, mask_constant=100.0).replace(mask1=masked)
    np.testing.assert_allclose(behind[2](kernel, get="ntk"), stax.serial(front, behind)[2](x, None, "ntk", mask_constant=100.0),
                               rtol=1e-12)


def test_fields_by_name_and_in_order(random):
    kernel = VECTORS[2](random.normal(size=(3, 4)))
    assert list(kernel.asdict()) == ["nngp", "ntk", "cov1", "cov2", "x1_is_x2", "is_gaussian", "is_reversed", "is_input",
                                     "diagonal_batch", "diagonal_spatial", "shape1", "shape2", "batch_axis", "channel_axis",
                                     "mask1", "mask2"]
    assert all(one is other for one, other in zip(kernel.astuple(), kernel.asdict().values()))
    part = kernel.slice(slice(0, 2), slice(1, 3))
    np.testing.assert_array_equal(part.nngp, kernel.nngp[:2, 1:])
    np.testing.assert_array_equal(part.cov2, kernel.cov1[1:])
    assert part.shape1 == (2, 4) and part.shape2 == (2, 4)
    spatial = CONV[2](random.normal(size=(2, 3, 4, 2)))
    assert spatial.is_reversed and spatial.reverse().nngp.shape == (2, 2, 3, 3, 4, 4)
    check_same(stax.Relu()[2](spatial.reverse()).reverse(), stax.Relu()[2](spatial.replace()))


def test_what_is_wrong_with_a_kernel(random):
    kernel = VECTORS[2](random.normal(size=(3, 4)), random.normal(size=(2, 4)))
    for changes, message in (({"nngp": kernel.nngp[:2]}, r"Kernel: nngp: expected shape \(3, 2\), got \(2, 2\)"),
                             ({"cov2": None}, "Kernel: cov2: expected the variances of x2, got None"),
                             ({"shape1": None}, "Kernel: shape1, shape2: expected the shapes of the activations"),
                             ({"shape2": (2, 5, 4)}, "with the same positions")):
        with pytest.raises(ValueError, match=message):
            BEHIND_VECTORS[2](kernel.replace(**changes))
    with pytest.raises(ValueError, match="diagonal_batch=False: expected a Kernel with diagonal_batch=False"):
        BEHIND_VECTORS[2](kernel.replace(), diagonal_batch=False)
    with pytest.raises(ValueError, match="expected no x2 together with a Kernel"):
        BEHIND_VECTORS[2](kernel, np.ones((2, 3)))


def test_kernels_of_jax_by_hand(random):
    jax = pytest.importorskip("jax")
    x = jax.numpy.asarray(random.normal(size=(3, 4)), "float32")
    kernel = VECTORS[2](x).replace(is_gaussian=True)
    found = BEHIND_VECTORS[2](kernel, get="ntk")
    assert isinstance(found, jax.Array) and found.dtype == "float32"
    np.testing.assert_allclose(found, stax.serial(VECTORS, BEHIND_VECTORS)[2](x, None, "ntk"), rtol=1e-5)
    np.testing.assert_allclose(jax.jit(lambda k: BEHIND_VECTORS[2](k, get="ntk"))(kernel), found, rtol=1e-4)
    attention = stax.GlobalSelfAttention(3, 2, 2, 2)[2]
    with pytest.raises(NotImplementedError, match="a Kernel made by hand outside of functions that JAX transforms"):
        jax.jit(attention)(CONV[2](jax.numpy.ones((2, 4, 5, 2))).replace())
