"""The reference of the Python package: every public name has an example, which runs, and a page is made of them."""

import importlib
import importlib.util
import pathlib
import re
import warnings

import pytest

SITE = pathlib.Path(__file__).parent.parent.parent / "docs" / "site"


def load(name):
    spec = importlib.util.spec_from_file_location(name, SITE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


EXAMPLES, PRELUDE = load("python_examples").EXAMPLES, load("python_examples").PRELUDE
OPTIONAL = {"widelimit.sklearn": "sklearn", "widelimit.jax": "jax", "widelimit.torch": "torch"}


def module_of(name):
    if name in OPTIONAL:
        pytest.importorskip(OPTIONAL[name])
    return importlib.import_module(name)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_name_has_an_example(name):
    module = module_of(name)
    names = getattr(module, "__all__", None) or [each for each, value in vars(module).items() if not each.startswith("_")
                                                  and getattr(value, "__module__", "") == name and callable(value)]
    assert set(EXAMPLES[name]) == set(names)


@pytest.mark.parametrize("module, name", [(module, name) for module in EXAMPLES for name in EXAMPLES[module]])
def test_the_example_runs(module, name):
    module_of(module)
    if (module, name) == ("widelimit.predict", "gradient_descent"):
        pytest.importorskip("scipy")
    for package in ("torch", "flax", "onnx"):
        if re.search(rf"^(import|from) {package}\b", EXAMPLES[module][name], re.M):
            pytest.importorskip(package, reason=f"{package} is not installed (PyTorch's environment has it)")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(PRELUDE + EXAMPLES[module][name], f"{module}.{name}", "exec"), {"__name__": "example"})


def test_pages_have_signatures_docstrings_and_examples():
    reference = load("python_reference")
    text = reference.page("widelimit.layers")
    assert "## dense" in text and "weight_variance: float = 1.0, bias_variance: float = 0.0" in text
    assert "K' = w K + b" in text and "layers.dense(2, bias_variance=0.1)" in text
    top = reference.page("widelimit")
    assert "score(self, x: Inputs, y: ArrayLike" in top and "Network(layers: Sequence[Layer], name: str = '')" in top
