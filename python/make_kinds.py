"""make_kinds.py FOLDER: writes FOLDER/_kinds.py and FOLDER/stax/_kinds.py, the functions of built-in layers, from the table
that the compiled half in FOLDER has (widelimit/layers/kinds.hpp)."""

import json
import pathlib
import re
import sys
import textwrap

# How a field of each type is annotated and checked. Kinds with fields of other types are written by hand, in layers.py.
TYPES = {"number": ("float", ""), "integer": ("int", ""), "true or false": ("bool", ""), "text": ("str", ""),
         "list of numbers": ("Sequence[float]", "numbers"), "list of integers": ("Sequence[int]", "sizes"),
         "object or text": ("str | dict[str, Any] | _core.Layer", ""), "list of integers and nulls": ("Sequence[int | None]", "sizes"), "list of names and integers": ("Sequence[str | int]", "axes")}

FIRST = '''"""Functions of built-in layers, one a kind, made from the library's table of them when the package is built."""

from __future__ import annotations

from typing import Any, Sequence

from . import _core
from ._fields import axes as _axes
from ._fields import layer as _layer
from ._fields import numbers as _numbers
from ._fields import sizes as _sizes

'''

FIRST_STAX = '''"""Nonlinearities in the vocabulary of neural_tangents.stax, made from the library's table when the package is built."""

from __future__ import annotations

from typing import Sequence

from ._activations import nonlinearity as _nonlinearity
from ._triple import Triple

'''


def default_of(field):
    """As source text: ' = 1.0', or nothing for what must be given."""
    if field["required"]:
        return ""
    value = field["default"]
    if field["type"] == "number" and value is not None:
        value = float(value)
    return f" = {source_of(value)}"


def source_of(value):
    """A default or a text as source text."""
    if isinstance(value, list):
        return "(" + "".join(f"{source_of(part)}, " for part in value[:-1]) + f"{source_of(value[-1])}" + (",)" if len(value) == 1 else ")")
    return json.dumps(value) if isinstance(value, str) else repr(value)


def parameter(field):
    annotation = TYPES[field["type"]][0] + ("" if field["required"] or field["default"] is not None else " | None")
    return f"{field['name']}: {annotation}{default_of(field)}"


def wrapped_call(head, parts, tail):
    """head(parts)tail, on as many lines as it takes, no part on two."""
    if not parts:
        return head + tail
    lines = [head]
    for k, part in enumerate(parts):
        piece = part + (", " if k + 1 < len(parts) else tail)
        if len(lines[-1]) + len(piece.rstrip()) > 120 and lines[-1].strip() != head.strip():
            lines[-1] = lines[-1].rstrip()
            lines.append(" " * len(head))
        lines[-1] += piece
    return "\n".join(lines)


def wrapped(text, width, **indents):
    return textwrap.wrap(text, width, break_on_hyphens=False, **indents)


def formula(name, text):
    """An equation, or words that are none."""
    return f"{name}: {text}" if re.match(r"[a-z]{2,} |'|closed", text) else text if text.startswith(name) else f"{name} = {text}"


def sentence(text):
    return text if text.endswith(".") else text + "."


def first_of(kind):
    does = sentence(kind["does"] + (", by quadrature" if kind["by_quadrature"] else ""))
    formulas = [formula(name, kind[key]) for name, key in (("K'", "nngp"), ("T'", "ntk")) if kind[key]]
    return does + (" " + sentence("; ".join(formulas)) if formulas else "")


def meaning(field):
    parts = [field["range"], ", ".join(repr(word) for word in field["words"]), field["meaning"]]
    return "; ".join(part for part in parts if part)


def docstring(kind, fields):
    """Of a function of layers: what it does, its arguments, limits and source."""
    lines = wrapped('"""' + first_of(kind), 116)
    told = [(field["name"], meaning(field)) for field in fields if meaning(field)]
    if told:
        width = max(len(name) for name, _ in told) + 3
        lines.append("")
        for name, text in told:
            lines += wrapped(text, 116, initial_indent=name.ljust(width), subsequent_indent=" " * width)
        lines.append("")
    rest = " ".join(part for part in (kind["limits"], f"Source: {kind['source']}." if kind["source"] else "") if part)
    if rest and not told:
        lines = wrapped('"""' + first_of(kind) + " " + rest, 116)
    elif rest:
        lines += wrapped(rest, 116)
    if not lines[-1]:
        lines.pop()
    if len(lines[-1]) > 113:
        lines.append("")
    lines[-1] += '"""'
    return "\n".join(f"    {line}".rstrip() for line in lines)


def argument(kind, field):
    check = TYPES[field["type"]][1]
    value = f"_{check}({source_of(kind['name'])}, {source_of(field['name'])}, {field['name']})" if check else field["name"]
    return f"{field['name']}={value}"


def function(kind):
    fields = kind["fields"]
    parameters = [parameter(field) for field in fields if not field["by_name"]]
    by_name = [parameter(field) for field in fields if field["by_name"]]
    parameters += ["*", *by_name] if by_name else []
    head = wrapped_call(f"def {kind['name']}(", parameters, ") -> _core.Layer:")
    call = wrapped_call("    return _layer(", [source_of(kind["name"])] + [argument(kind, field) for field in fields], ")")
    return f"{head}\n{docstring(kind, fields)}\n{call}\n"


def is_made(kind):
    return all(field["type"] in TYPES for field in kind["fields"])


def layers_module(kinds):
    made = [kind for kind in kinds if is_made(kind)]
    names = textwrap.fill(", ".join(json.dumps(kind["name"]) for kind in made), 116)
    return FIRST + "__all__ = [\n" + textwrap.indent(names, "    ") + ",\n]\n" + "".join(f"\n\n{function(kind)}" for kind in made)


def stax_function(kind):
    theirs, fields = kind["neural_tangents"], {field["name"]: field for field in kind["fields"]}
    given = [(name, fields[field]) for name, field in theirs["arguments"]]
    parameters = [parameter({**field, "name": name}) for name, field in given] + [f"{name}: bool = False" for name in theirs["ignored"]]
    doc = theirs["does"] or kind["does"]
    told = ", ".join(f"{name} {meaning(field)}" for name, field in given if meaning(field))
    text = sentence(doc) + (f" {sentence(told)} NetworkError for others." if told else "")
    lines = wrapped(f'"""{text}', 113)
    lines[-1] += '"""'
    call = [json.dumps(theirs["function"]), json.dumps(kind["name"])] + [f"{field['name']}=({source_of(name)}, {name})" for name, field in given]
    return (wrapped_call(f"def {theirs['function']}(", parameters, ") -> Triple:") + "\n" +
            "\n".join("    " + line for line in lines) + "\n" + wrapped_call("    return _nonlinearity(", call, ")") + "\n")


def stax_module(kinds):
    made = [kind for kind in kinds if kind["neural_tangents"]]
    names = textwrap.fill(", ".join(json.dumps(kind["neural_tangents"]["function"]) for kind in made), 116)
    return FIRST_STAX + "__all__ = [\n" + textwrap.indent(names, "    ") + ",\n]\n" + "".join(f"\n\n{stax_function(kind)}" for kind in made)


def main():
    folder = pathlib.Path(sys.argv[1])
    sys.path.insert(0, str(folder))  # The package cannot be imported before its functions are there.
    import _core

    kinds = json.loads(_core.layer_kinds())
    (folder / "stax").mkdir(exist_ok=True)
    (folder / "_kinds.py").write_text(layers_module(kinds))
    (folder / "stax" / "_kinds.py").write_text(stax_module(kinds))


if __name__ == "__main__":
    main()
