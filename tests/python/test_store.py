"""Gram matrices that are kept on the disk, tile by tile."""

import numpy as np
import pytest

import widelimit
from widelimit import layers, stax


def network():
    return widelimit.Network([layers.dense(2), layers.relu(), layers.dense(1, 0.1)])


@pytest.fixture
def x():
    return np.random.default_rng(7).normal(size=(9, 4))


def test_a_store_gives_the_same_bits_at_once_and_again(x, tmp_path):
    expected = widelimit.gram(network(), x)
    done = []
    first = widelimit.gram(network(), x, store=tmp_path / "a", progress=lambda now, of: done.append((now, of)))
    again = widelimit.gram(network(), x, store=str(tmp_path / "a"))
    for found in (first, again):
        assert np.array_equal(found.nngp, expected.nngp) and np.array_equal(found.ntk, expected.ntk)
    assert done and done[-1][0] <= done[-1][1]
    zarr = pytest.importorskip("zarr")
    stored = zarr.open_group(tmp_path / "a", mode="r")["ntk"][:]
    triangle = np.tril_indices(9)
    assert np.array_equal(stored[triangle], expected.ntk[triangle])


def test_two_batches_and_float(x, tmp_path):
    x2 = x[:3].astype(np.float32) + 1
    expected = widelimit.gram(network(), x.astype(np.float32), x2, kernels="ntk")
    found = widelimit.gram(network(), x.astype(np.float32), x2, kernels="ntk", store=tmp_path / "b")
    assert found.nngp is None and found.ntk.dtype == np.float32
    assert np.array_equal(found.ntk, expected.ntk)


def test_a_store_of_something_else_is_refused(x, tmp_path):
    widelimit.gram(network(), x, store=tmp_path / "c")
    with pytest.raises(widelimit.DataError, match="c"):
        widelimit.gram(network(), x + 1e-9, store=tmp_path / "c")


def test_a_store_of_both_kernels_serves_one(x, tmp_path):
    both = widelimit.gram(network(), x, store=tmp_path / "c")
    alone = widelimit.gram(network(), x, kernels="nngp", store=tmp_path / "c")
    assert alone.ntk is None
    np.testing.assert_array_equal(alone.nngp, both.nngp)


def test_damaged_tiles_are_computed_again_with_a_warning(x, tmp_path):
    expected = widelimit.gram(network(), x, store=tmp_path / "d")
    chunk = next((tmp_path / "d" / "ntk" / "c").rglob("0"))
    chunk = chunk if chunk.is_file() else next(path for path in chunk.rglob("*") if path.is_file())
    chunk.write_bytes(chunk.read_bytes()[:-1] + b"!")
    with pytest.warns(RuntimeWarning, match="ntk"):
        again = widelimit.gram(network(), x, store=tmp_path / "d")
    assert np.array_equal(again.ntk, expected.ntk)


def test_a_tile_of_another_store_is_computed_again_with_a_warning(x, tmp_path):
    expected = widelimit.gram(network(), x, store=tmp_path / "own")
    widelimit.gram(network(), x + 1, store=tmp_path / "other")
    for array in ("nngp", "ntk"):
        own, other = (tmp_path / folder / array / "c" / "0" / "0" for folder in ("own", "other"))
        own.write_bytes(other.read_bytes())
        with pytest.warns(RuntimeWarning, match=f"{array}/c/0/0: damaged: the record of its place is of other numbers"):
            again = widelimit.gram(network(), x, store=tmp_path / "own")
        assert np.array_equal(again.nngp, expected.nngp) and np.array_equal(again.ntk, expected.ntk)


def test_kernel_fn_and_batch_pass_the_store_on(x, tmp_path):
    _, _, kernel_fn = stax.serial(stax.Dense(8), stax.Relu(), stax.Dense(1))
    expected = kernel_fn(x, None, "ntk")
    assert np.array_equal(kernel_fn(x, None, "ntk", store=tmp_path / "e"), expected)
    assert np.array_equal(widelimit.batch(kernel_fn, 5, store=tmp_path / "e")(x, None, "ntk"), expected)
    assert (tmp_path / "e" / "zarr.json").exists()
    _, _, positions_fn = stax.serial(stax.Conv(8, (3,)), stax.Relu())
    with pytest.raises(NotImplementedError, match="store: expected a network with a readout"):
        positions_fn(x[:, :, None], None, "nngp", store=tmp_path / "f")
