"""What neural-tangents' tests ask, answered as it answers (tests/reference/neural_tangents/questions.py)."""

import importlib.util
import pathlib

import numpy as np
import pytest

import widelimit as nt
from widelimit import predict, stax

jax = pytest.importorskip("jax", reason="JAX is not installed")
pytestmark = pytest.mark.usefixtures("in_double")
FOLDER = pathlib.Path(__file__).parent.parent / "reference" / "neural_tangents"
NUMBERS = np.load(FOLDER / "questions.npz")


def table():
    spec = importlib.util.spec_from_file_location("questions", FOLDER / "questions.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TABLE = table()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TABLE.QUESTIONS)
def test_answers_are_those_of_neural_tangents(name):
    expected = [NUMBERS[f"{name}/{k}"] for k in range(sum(key.rsplit("/", 1)[0] == name for key in NUMBERS.files))]
    assert expected
    found = TABLE.answer(TABLE.QUESTIONS[name], nt, stax, predict)
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("subject", TABLE.DIFFERENCES)
def test_differences_are_those_of_the_page(subject):
    expression, there, here = TABLE.DIFFERENCES[subject]
    prefix = f"differences: {subject}"
    expected = [NUMBERS[f"{prefix}/{k}"] for k in range(sum(key.rsplit("/", 1)[0] == prefix for key in NUMBERS.files))]
    assert bool(expected) != (there.split(":")[0].endswith("Error"))
    name = here.split(":")[0]
    if name.endswith("Error"):
        with pytest.raises(Exception, match="") as raised:
            TABLE.answer(expression, nt, stax, predict)
        assert type(raised.value).__name__ == name
        return
    found = TABLE.answer(expression, nt, stax, predict)
    assert all(np.isfinite(array).all() for array in found)
    is_same = len(found) == len(expected) and all(
        one.shape == other.shape and np.allclose(one, other, rtol=1e-7, atol=1e-9) for one, other in zip(found, expected))
    assert not is_same


def test_the_page_has_the_tables():
    page = (FOLDER.parent.parent.parent / "docs" / "neural-tangents.md").read_text()
    assert TABLE.table_of_questions() in page
    assert TABLE.table_of_differences() in page
