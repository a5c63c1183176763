"""What is made from the library's table of kinds: functions, and pages of the documentation."""

import importlib.util
import inspect
import json
import pathlib

import pytest

import widelimit
from widelimit import layers, stax

DOCS = pathlib.Path(__file__).parent.parent.parent / "docs"
KINDS = json.loads(widelimit._core.layer_kinds())
MADE_OF_LAYERS = {"sum", "product", "concat", "repeat"}


def load(name):
    spec = importlib.util.spec_from_file_location(name, DOCS / "site" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind["name"] not in MADE_OF_LAYERS], ids=lambda kind: kind["name"])
def test_functions_have_the_arguments_of_the_row(kind):
    parameters = inspect.signature(getattr(layers, kind["name"])).parameters
    assert set(parameters) == {field["name"] for field in kind["fields"]}
    for field in kind["fields"]:
        found = parameters[field["name"]]
        # A choice that most take has a default in Python, and alternatives have none.
        if kind["name"] not in ("attention", "positions_map"):
            assert (found.default is found.empty) == field["required"], field["name"]
            assert (found.kind is found.KEYWORD_ONLY) == field["by_name"], field["name"]
            if not field["required"] and field["otherwise"] is not None:
                default = list(found.default) if isinstance(found.default, tuple) else found.default
                assert default == field["otherwise"], field["name"]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind["name"] not in MADE_OF_LAYERS], ids=lambda kind: kind["name"])
def test_functions_make_what_files_say(kind):
    made = getattr(layers, kind["name"])(**kind["example"])
    text = json.dumps({"widelimit": 1, "layers": [{"layer": kind["name"], **kind["example"]}]})
    assert made == widelimit.Network.from_json(text).layers[0]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind["name"] not in MADE_OF_LAYERS], ids=lambda kind: kind["name"])
def test_docstrings_say_what_the_row_says(kind):
    text = " ".join(inspect.getdoc(getattr(layers, kind["name"])).split())
    if kind["name"] not in ("attention", "positions_map"):
        for key in ("does", "nngp", "source"):
            assert " ".join(kind[key].split()) in text, key
        for field in kind["fields"]:
            assert field["range"] in text and field["meaning"] in text, field["name"]
        assert all(len(line) <= 120 for line in inspect.getsource(getattr(layers, kind["name"])).splitlines())


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind["neural_tangents"]], ids=lambda kind: kind["name"])
def test_functions_of_neural_tangents_make_the_same_layer(kind):
    theirs = kind["neural_tangents"]
    names = {field: name for name, field in theirs["arguments"]}
    function = getattr(stax, theirs["function"])
    assert list(inspect.signature(function).parameters) == [name for name, _ in theirs["arguments"]] + theirs["ignored"]
    x = [[0.3, -1.0, 0.4], [1.2, 0.1, -0.5]]
    found = stax.serial(stax.Dense(1), function(**{names[field]: value for field, value in kind["example"].items()}))[2](x, None, "nngp")
    network = widelimit.Network([layers.dense(), getattr(layers, kind["name"])(**kind["example"])])
    assert abs(found - widelimit.gram(network, x).nngp).max() == 0


@pytest.mark.parametrize("name", ["layer-reference.md", "layers.md", "network-format.md"])
def test_pages_say_what_the_table_says(name):
    made = {path.name: text for path, text in load("layer_reference").pages(DOCS).items()}
    assert (DOCS / name).read_text() == made[name], "run python docs/site/layer_reference.py docs"


def test_every_nonlinearity_norm_and_attention_has_its_accuracy():
    page = (DOCS / "accuracy.md").read_text()
    for kind in KINDS:
        if kind["group"] in ("activation", "normalisation"):
            assert page.count(f"| `{kind['name']}`") >= 2, kind["name"]
    for attention in ("1/width, softmax", "1/width, relu", "1/sqrt(width), identity", "1/sqrt(width), erf"):
        assert page.count(f"| {attention} |") == 2
