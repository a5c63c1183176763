"""bench/card.sh on PoCL at small sizes: what it writes, that a second start goes on, and that a step that fails stops no other."""
import csv
import os
import pathlib
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest

CARD = pathlib.Path(__file__).resolve().parent.parent.parent / "bench/card.sh"


def rows(file):
    with file.open(newline="") as lines:
        return list(csv.DictReader(lines))


def card(out, *options, seconds=300, images=""):
    begin = time.monotonic()
    variables = {"PYTHON": sys.executable, "CIFAR": str(images), "PROGRAM": os.environ.get("WIDELIMIT_PROGRAM", "widelimit")}
    ended = subprocess.run([CARD, "--device", "pocl", "--small", "--networks", "dense", "--seconds", str(seconds), "--out", out, *options],
                           env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    assert time.monotonic() - begin < seconds + 5, ended.stdout
    return ended


def outcomes(out):
    return [(row["step"], row["outcome"]) for row in rows(out / "steps.csv")]


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A folder, and the first call, in which neural-tangents is a program that fails."""
    out = tmp_path_factory.mktemp("card")
    return out, card(out, "--peer", "false")


def test_a_step_that_fails_is_said_and_the_others_are_done(begun):
    out, ended = begun
    assert ended.returncode == 1 and "Failed: peer\n" in ended.stdout
    assert outcomes(out) == [("device", "done"), ("cases", "done"), ("times", "done"), ("tune", "done"),
                             ("tuned", "done"), ("peer", "failed"), ("limits", "done")]
    (case,) = rows(out / "cases.csv")
    assert case["outcome"] == "agrees" and 0 < float(case["nngp_error"]) < float(case["tolerance"])
    own, tuned, other = rows(out / "times.csv")
    assert all(float(row["seconds"]) > 0 and not row["problem"] for row in (own, tuned)) and "status 1" in other["problem"]
    assert [own["form"], tuned["form"]] == ["usual", "tuned"]
    table = (out / "tune.log").read_text()
    assert table.count("ms a pair") >= 6 and table.count(", chosen") == 1
    (kept,) = (out / "forms").iterdir()
    assert f"kept in {kept}" in table
    assert [row["limit"] for row in rows(out / "limits.csv")] == ["float", "double", "memory"]
    shares = rows(out / "shares.csv")
    assert [share["form"] for share in shares] == ["usual", "tuned"] and all(0 < float(share["share_of_peak"]) < 1 for share in shares)


def test_a_second_start_goes_on(begun, tmp_path):
    out, _ = begun
    kept = {name: (out / name).read_text() for name in ("cases.csv", "times.csv", "limits.csv")}
    ended = card(out)
    assert ended.returncode == 0 and "cases    is done already" in ended.stdout and "No time" not in ended.stdout
    # Tables are of what is left of the time: nothing, and a further call is asked for.
    random = np.random.default_rng(0)
    for name in ("data_batch_1.bin", "test_batch.bin"):
        records = random.integers(0, 256, (200, 3073), dtype=np.uint8)
        records[:, 0] = np.arange(200) % 10
        records.tofile(tmp_path / name)
    ended = card(out, seconds=8, images=tmp_path)
    assert ended.returncode == 75 and "No time for all of: tables" in ended.stdout
    assert outcomes(out)[-1] in (("tables", "unfinished"), ("tables", "no time"))
    assert {name: (out / name).read_text() for name in kept} == kept


def test_rows_of_a_file_are_gone_on_with(begun):
    """A program that was killed leaves whole rows, of which none is computed again, and a problem is tried again."""
    out, _ = begun
    file, kept = out / "half.csv", (out / "cases.csv").read_text()
    file.write_text(kept)
    command = [sys.executable, CARD.parent / "device_cases.py", "fcn-relu", "--device", "pocl", "--rows", file, "--precision", "float"]
    assert subprocess.run(command, check=False).returncode == 0 and file.read_text() == kept
    header = kept.splitlines()[0]
    file.write_text(f"{header}\nfcn-relu,float,error,,,,,lost the device\nfcn-relu,fl")
    assert subprocess.run(command, check=False).returncode == 0
    assert [row["outcome"] for row in rows(file)] == ["error", "agrees"]


def test_a_case_that_differs_is_a_failure(tmp_path):
    reference = CARD.parent.parent / "tests/reference/kernels"
    shutil.copytree(reference / "fcn-relu", tmp_path / "fcn-relu")
    np.save(tmp_path / "fcn-relu/ntk.npy", 1.01 * np.load(reference / "fcn-relu/ntk.npy"))
    (tmp_path / "index.json").write_text('[{"case": "fcn-relu", "tolerance": 1e-10}]')
    ended = subprocess.run([sys.executable, CARD.parent / "device_cases.py", "--device", "pocl", "--rows", tmp_path / "cases.csv", "--folder",
                            tmp_path, "--precision", "float"], check=False)
    (case,) = rows(tmp_path / "cases.csv")
    assert ended.returncode == 1 and case["outcome"] == "differs" and float(case["nngp_error"]) < 1e-4 < float(case["ntk_error"])


def test_wrong_calls_and_other_folders_are_refused(begun):
    out, _ = begun
    assert card(out, "--secnds", "3").returncode == 2
    other = card(out, "--networks", "gap8")
    assert other.returncode == 2 and "was begun with device pocl, small 1, networks dense" in other.stderr
