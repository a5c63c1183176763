"""Networks and predictions against numbers that neural-tangents gave (tests/reference/neural_tangents)."""

import importlib.util
import json
import pathlib

import numpy as np
import pytest

import widelimit
from widelimit import predict, stax

FOLDER = pathlib.Path(__file__).parent.parent / "reference" / "neural_tangents"
CASES = json.loads((FOLDER / "cases.json").read_text())
NUMBERS = np.load(FOLDER / "numbers.npz")


def maker():
    spec = importlib.util.spec_from_file_location("make_cases", FOLDER / "make_cases.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_numbers_are_those_of_neural_tangents(case):
    if "gradient_descent(" in case.get("statements", ""):
        pytest.importorskip("scipy", reason="SciPy is not installed")
    found = maker().results_of(case, widelimit, stax, predict)
    expected = {name: NUMBERS[f"{case['name']}/{name}"] for name in found if f"{case['name']}/{name}" in NUMBERS}
    assert expected
    for name, array in expected.items():
        assert found[name].shape == array.shape, name
        error = np.linalg.norm(found[name] - array) / max(np.linalg.norm(array), 1e-12)
        assert error <= case.get("tolerance", 1e-6), name
