"""Random cases of predict, against numbers that neural-tangents gave (tests/reference/neural_tangents/predict_cases.py)."""

import importlib.util
import json
import pathlib

import numpy as np
import pytest

from widelimit import predict, stax

FOLDER = pathlib.Path(__file__).parent.parent / "reference" / "neural_tangents"
NUMBERS = json.loads((FOLDER / "predict_numbers.json").read_text())


def cases():
    spec = importlib.util.spec_from_file_location("predict_cases", FOLDER / "predict_cases.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check(found, expected, tolerance):
    if isinstance(expected, list):
        assert isinstance(found, list) and len(found) == len(expected)
        for one, right in zip(found, expected):
            check(one, right, tolerance)
    elif isinstance(expected, dict):
        assert found["shape"] == expected["shape"]
        np.testing.assert_allclose(found["sums"], expected["sums"], rtol=tolerance, atol=tolerance)
    else:
        assert found == expected


@pytest.mark.parametrize("kind", cases().KINDS)
def test_predictions_are_those_of_neural_tangents(kind):
    if kind == "gradient_descent":
        pytest.importorskip("scipy")
    module = cases()
    numbers = [int(number) for number in NUMBERS if module.KINDS[int(number) % len(module.KINDS)] == kind]
    assert len(numbers) >= 8
    for number in numbers:
        # ODE solvers of their own; kernels to neural-tangents' digits; and closed forms.
        tolerance = {"gradient_descent": 1e-5, "gradient_descent_mse_ensemble": 1e-6}.get(kind, 1e-9)
        check(module.result(number, stax, predict), NUMBERS[str(number)], tolerance)


def test_messages_name_the_argument_and_the_remedy(random):
    x, y = random.normal(size=(6, 3)), random.normal(size=6)
    _, _, kernel_fn = stax.serial(stax.Dense(1), stax.Relu(), stax.Dense(1))
    kernel = kernel_fn(x, None)
    for call in (lambda: predict.gradient_descent_mse(kernel.ntk, y), lambda: predict.gp_inference(kernel, y)):
        with pytest.raises(ValueError, match=r"y_train: expected \[n, ..., outputs\], got shape \(6,\): give y_train\[:, None\]"):
            call()
    with pytest.raises(TypeError, match="k_train_train: expected an array, got a Kernel of two kernels: give its .ntk or .nngp"):
        predict.gradient_descent_mse(kernel, y[:, None])
    with pytest.raises(TypeError, match=r"diag_reg: expected one number for the whole diagonal, got shape \(6,\)"):
        predict.gradient_descent_mse(kernel.ntk, y[:, None], diag_reg=np.ones(6))
    with pytest.raises(TypeError, match=r"diag_reg: expected one number for the whole diagonal, got shape \(2,\)"):
        predict.gp_inference(kernel, y[:, None], diag_reg=[1, 2])("nngp", kernel.nngp)
