"""Names, keywords and defaults of neural-tangents (tests/reference/neural_tangents/signatures.json) are here, and in the table
of docs/python.md."""

import enum
import importlib
import inspect
import json
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent
NAMES = json.loads((ROOT / "tests" / "reference" / "neural_tangents" / "signatures.json").read_text())
# Defaults that the page says to be others: they change nothing.
OTHERS = {"implementation", "to_dense", "do_backprop", "precision"}


@pytest.mark.parametrize("module", NAMES)
def test_every_public_name_is_here_with_its_arguments(module):
    ours = importlib.import_module(module.replace("neural_tangents", "widelimit"))
    for name, arguments in NAMES[module].items():
        found = getattr(ours, name)
        if arguments is None or (found.__doc__ or "").startswith("Not here"):
            continue
        parameters = inspect.signature(found).parameters
        assert list(parameters)[:len(arguments)] == list(arguments), name
        for argument, default in arguments.items():
            own = parameters[argument].default
            if default is None or argument in OTHERS:
                continue
            own = own.name if isinstance(own, enum.Enum) else own
            assert json.loads(json.dumps(own)) == default, f"{name}: {argument}"


def rows():
    """{name: keywords} of the table of names."""
    page = (ROOT / "docs" / "python.md").read_text()
    table = page.split("| name | arguments |")[1]
    return {name: re.findall(r"`(\w+)`", arguments) for name, arguments in re.findall(r"^\| `([\w.]+)` \|([^|]*)\|", table, re.M)}


@pytest.mark.parametrize("module", NAMES)
def test_the_table_has_every_name_with_every_keyword(module):
    found = rows()
    prefix = module.removeprefix("neural_tangents").lstrip(".") or "nt"
    for name, arguments in NAMES[module].items():
        assert found.get(f"{prefix}.{name}") == list(arguments or ()), name
