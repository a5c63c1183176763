#!/usr/bin/env python3
"""layer_reference.py FOLDER: writes what FOLDER, the docs/ of the repository, says of every kind of layer: layer-reference.md,
and the tables of layers.md and network-format.md. All of it comes from the library's table of kinds
(widelimit/layers/kinds.hpp), which the package must be importable for."""

import json
import pathlib
import re
import sys
import textwrap

BEGIN, END = "<!-- made by docs/site/layer_reference.py -->", "<!-- end of what is made -->"

GROUPS = {
    "weights": ("Weights", "These layers have new weights and biases, whose variances are w and b."),
    "activation": ("Nonlinearities", """Elementwise functions phi have K' = E[phi(u) phi(v)] and T' = T E[phi'(u) phi'(v)], where u and v are Gaussian with variances p and
q and covariance K. They need Gaussian channels and leave channels that are not Gaussian. Closed forms cost a few nanoseconds per entry, and quadrature
takes two to fifteen times as long as ReLU ([performance.md](performance.md#nonlinearities)). Their errors are in [accuracy.md](accuracy.md)."""),
    "pooling": ("Poolings and readouts", "Means and sums over positions."),
    "positions": ("Maps of positions", "Linear maps of positions without weights, the same for every channel."),
    "graph": ("Graphs", "Positions are the nodes of a graph that comes with each input ([graphs.md](graphs.md))."),
    "normalisation": ("Norms", "Norms over channels, and over positions if asked for."),
    "dropout": ("Dropout", "Noise that stays while the network is evaluated."),
    "attention": ("Attention", """[layers.md](layers.md#attention) compares the scalings, options and costs; [theory/attention.md](theory/attention.md) has the derivations."""),
    "branches": ("Branches", "Layers that contain layers."),
}

FIRST = """# Layer reference

This page describes every kind of layer: its formula, fields, limits, cost and source. Each kind is a layer of network files, a function in
`widelimit/layers/` in C++, and a function of `widelimit.layers` in Python. K and T are the NNGP and the NTK of two positions of a pair of inputs, and K'
and T' are those after the layer; p and q are the variances of the two positions. Defaults are in brackets. [layers.md](layers.md) says which layers may
follow which, and explains masks and the standard parametrisation.

The page is generated from the library's table of kinds (`include/widelimit/layers/kinds.hpp`):

    PYTHONPATH=build/release/python python docs/site/layer_reference.py docs
"""


def load():
    from widelimit import _core

    return json.loads(_core.layer_kinds())


def marked(text):
    """Words in quotes are what files hold; pages become links on the site."""
    return re.sub(r"docs/[\w/-]+\.md", r"`\g<0>`", re.sub(r"(?<!\w)'(\w+)'(?!\w)", r"`\1`", text))


def default_of(field):
    if field["required"] or field["default"] is None:
        return ""
    value = field["default"]
    return f" [`{value}`]" if isinstance(value, str) else f" [{json.dumps(value)}]"


def field_text(field):
    """`name` [default]: its words or range, and what it is."""
    words = " or ".join(filter(None, [", ".join(f"`{word}`" for word in field["words"][:-1]), *(f"`{word}`" for word in field["words"][-1:])]))
    said = "; ".join(part for part in (words, field["range"], marked(field["meaning"])) if part)
    return f"`{field['name']}`{default_of(field)}" + (f": {said}" if said else "")


def call_in_tangents(theirs):
    arguments = [name for name, _ in theirs["arguments"]] + theirs["ignored"]
    return f"`stax.{theirs['function']}({', '.join(arguments)})`"


def item(text):
    """An item of a list, within the columns of a page."""
    return textwrap.fill(f"- {text}", 160, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def entry(kind):
    """One kind, as a section."""
    does = kind["does"][0].upper() + kind["does"][1:] if kind["group"] not in ("activation",) else kind["does"]
    lines = [f"### {kind['name']}", "", f"{does}{', by quadrature' if kind['by_quadrature'] else ''}.", ""]
    for name, key in (("K'", "nngp"), ("T'", "ntk")):
        if kind[key]:
            lines.append(item(f"{name}: {marked(kind[key].removeprefix(name + ' = '))}"))
    lines += [item(f"field {field_text(field)}") for field in kind["fields"]]
    for name, key in (("limits", "limits"), ("cost of a pair of inputs with d positions each", "cost"), ("source", "source")):
        if kind[key]:
            lines.append(item(f"{name}: {marked(kind[key].rstrip('.'))}"))
    if kind["neural_tangents"]:
        lines.append(item(f"in neural-tangents: {call_in_tangents(kind['neural_tangents'])}"))
    lines += ["", "```json", json.dumps({"layer": kind["name"], **kind["example"]}), "```", ""]
    return "\n".join(lines)


def page(kinds):
    text = FIRST
    for group, (title, about) in GROUPS.items():
        text += f"\n## {title}\n\n{about}\n\n" + "\n".join(entry(kind) for kind in kinds if kind["group"] == group)
    return text


def merged(kinds, key):
    """Kinds of a group that have the same key stand in one row."""
    rows = {}
    for kind in kinds:
        rows.setdefault((kind["group"], key(kind)), []).append(kind["name"])
    return [(", ".join(f"`{name}`" for name in names), *key_of) for (_, key_of), names in rows.items()]


def fields_table(kinds):
    """Of network-format.md."""
    rows = merged(kinds, lambda kind: ("<br>".join(field_text(field) for field in kind["fields"]),))
    return "| kind | fields |\n|---|---|\n" + "".join(f"| {names} | {fields} |\n" for names, fields in rows)


def formulas_table(kinds):
    """Of layers.md, nonlinearities in one row."""
    activations = ("E[phi(u) phi(v)] ([each](layer-reference.md#nonlinearities))", "T E[phi'(u) phi'(v)]")
    rows = merged(kinds, lambda kind: activations if kind["group"] == "activation" else
                  (marked(kind["nngp"].removeprefix("K'[a, c] = ")), marked(kind["ntk"])))
    return "| layer | K' | T' |\n|---|---|---|\n" + "".join(
        f"| {'nonlinearities' if nngp.startswith('E[phi') else names} | {nngp} | {ntk} |\n" for names, nngp, ntk in rows)


def with_table(text, table):
    """The page with what is made between its two marks."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n\n{table}\n{END}{rest.split(END)[1]}"


def pages(folder):
    """{path: text} of all that is made."""
    kinds = load()
    found = {folder / "layer-reference.md": page(kinds)}
    for name, table in (("layers.md", formulas_table(kinds)), ("network-format.md", fields_table(kinds))):
        found[folder / name] = with_table((folder / name).read_text(), table)
    return found


def main():
    for path, text in pages(pathlib.Path(sys.argv[1])).items():
        path.write_text(text)


if __name__ == "__main__":
    main()
