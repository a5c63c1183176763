"""Arrays that people bring to the program: .npz and .safetensors files, bfloat16; and files that lie."""

import json
import os
import struct
import subprocess
import zipfile

import numpy as np
import pytest


def run(*arguments):
    program = os.environ.get("WIDELIMIT_PROGRAM")
    if not program:
        pytest.skip("WIDELIMIT_PROGRAM, the program, is not set")
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)


def gram_of(folder, x):
    out = folder / "gram"
    done = run("gram", "fcn", "--x", x, "--out", out, "--force")
    assert done.returncode == 0, done.stderr
    return np.load(out / "nngp.npy")


def error_of(folder, x):
    done = run("gram", "fcn", "--x", x, "--out", folder / "gram")
    assert done.returncode != 0
    return done.stderr


def safetensors(file, arrays):
    header, values = {}, b""
    for name, (kind, array) in arrays.items():
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [len(values), len(values) + array.nbytes]}
        values += array.tobytes()
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + values)


@pytest.fixture
def x(random):
    return random.normal(size=(6, 3))


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_an_array_of_an_archive_is_the_array(tmp_path, x, save):
    np.save(tmp_path / "x.npy", x)
    save(tmp_path / "all.npz", x=x, other=x[:2])
    save(tmp_path / "one.npz", x=np.asfortranarray(x))
    expected = gram_of(tmp_path, tmp_path / "x.npy")
    for place in ("all.npz/x", "all.npz/x.npy", "one.npz"):
        np.testing.assert_array_equal(gram_of(tmp_path, tmp_path / place), expected)
    assert "all.npz: expected one array, found x, other; write " in error_of(tmp_path, tmp_path / "all.npz")
    assert "all.npz: expected an array 'z', found x, other" in error_of(tmp_path, tmp_path / "all.npz" / "z")


def test_data_of_a_task_may_be_one_archive(tmp_path, random):
    arrays = {"x_train": random.normal(size=(30, 2)), "x_test": random.normal(size=(5, 2))}
    arrays.update({f"y_{part}": np.sin(arrays[f"x_{part}"][:, 0]) for part in ("train", "test")})
    (tmp_path / "folder").mkdir()
    for name, array in arrays.items():
        np.save(tmp_path / "folder" / f"{name}.npy", array)
    np.savez_compressed(tmp_path / "data.npz", **arrays)
    safetensors(tmp_path / "data.safetensors", {name: ("F64", array) for name, array in arrays.items()})
    scores = []
    for path in ("folder", "data.npz", "data.safetensors"):
        done = run("gp", "--network", "fcn", "--data", "npy", "--path", tmp_path / path, "--out", tmp_path / ("results " + path))
        assert done.returncode == 0, done.stderr
        scores.append((tmp_path / ("results " + path) / "predictions.csv").read_text().replace("x_test.npy", "x_test"))
    assert scores[0] == scores[1] == scores[2]


def test_bfloat16_is_read(tmp_path, x):
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    narrow = x.astype(ml_dtypes.bfloat16)
    np.save(tmp_path / "narrow.npy", narrow)
    np.save(tmp_path / "wide.npy", narrow.astype(float))
    safetensors(tmp_path / "x.safetensors", {"x": ("BF16", narrow)})
    expected = gram_of(tmp_path, tmp_path / "wide.npy")
    np.testing.assert_array_equal(gram_of(tmp_path, tmp_path / "narrow.npy"), expected)
    np.testing.assert_array_equal(gram_of(tmp_path, tmp_path / "x.safetensors"), expected)


def test_archives_that_lie_are_refused(tmp_path, x):
    file = tmp_path / "x.npz"
    np.savez_compressed(file, x=x)
    whole = file.read_bytes()
    for size in (0, 10, len(whole) // 2, len(whole) - 30):
        file.write_bytes(whole[:size])
        assert "x.npz" in error_of(tmp_path, file)
    for changed in range(60, len(whole) - 120, 7):
        file.write_bytes(whole[:changed] + bytes([whole[changed] ^ 0x55]) + whole[changed + 1:])
        assert "x.npz" in error_of(tmp_path, file)
    np.savez(file, x=x)
    at = file.read_bytes().find(x[2, 1].tobytes())
    stored = file.read_bytes()
    file.write_bytes(stored[:at] + b"\0" + stored[at + 1:])
    assert "x.npz/x: the checksum is wrong: the file is damaged" in error_of(tmp_path, file)
    # More than any memory, which only its header says.
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 3)}\n"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + b"\0" * 1000)
    assert "truncated" in error_of(tmp_path, file)


def test_pickles_in_archives_are_not_read(tmp_path):
    np.savez(tmp_path / "x.npz", x=np.array([{}, {}], dtype=object))
    assert "x.npz/x: offset" in (said := error_of(tmp_path, tmp_path / "x.npz")) and "pickled Python objects are not read" in said
