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
# One of several fields without defaults has to be there.
ALTERNATIVES = {"positions_map", "slice"}
MADE_OF_LAYERS = {"sum", "product", "concat", "repeat"}


def load(name):
    spec = importlib.util.spec_from_file_location(name, DOCS / "site" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def made_of(described):
    """The layer that the functions of Python make of a file's object."""
    fields = {name: value for name, value in described.items() if name != "layer"}
    function = getattr(layers, described["layer"])
    if "layers" in fields:
        fields["layers"] = [made_of(inner) for inner in fields["layers"]]
    branches = []
    for branch in fields.pop("branches", []):
        inner = [made_of(layer) for layer in branch["layers"]]
        weight = branch.get("scale", branch.get("share"))
        branches.append(inner if weight is None else (weight, inner))
    return function(*branches, **fields)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind["name"])
def test_functions_have_the_arguments_of_the_row(kind):
    """Names, what must be given, and defaults; branches, a list in files, are arguments in a row."""
    parameters = inspect.signature(getattr(layers, kind["name"])).parameters
    assert list(parameters) == [field["name"] for field in kind["fields"]]
    for field in kind["fields"]:
        found = parameters[field["name"]]
        assert (found.kind is found.VAR_POSITIONAL) == (field["name"] == "branches")
        if found.kind is not found.VAR_POSITIONAL:
            assert (found.default is found.empty) == field["required"], field["name"]
            assert (found.kind is found.KEYWORD_ONLY) == field["by_name"], field["name"]
        if not field["required"]:
            default = list(found.default) if isinstance(found.default, tuple) else found.default
            assert default == field["default"], field["name"]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind["name"])
def test_defaults_are_those_of_files(kind):
    """A layer is the same with the fields that have defaults written out and left out."""
    needed = {field["name"] for field in kind["fields"] if field["required"]}
    defaults = {field["name"]: field["default"] for field in kind["fields"] if field["default"] is not None}
    least = {name: value for name, value in kind["example"].items() if name in needed or kind["name"] in ALTERNATIVES}
    described = {"layer": kind["name"], **least}
    text = json.dumps({"widelimit": 1, "layers": [{**described, **{k: v for k, v in defaults.items() if k not in least}}]})
    assert made_of(described) == widelimit.Network.from_json(text).layers[0]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind["name"])
def test_functions_make_what_files_say(kind):
    made = made_of({"layer": kind["name"], **kind["example"]})
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
