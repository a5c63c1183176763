"""The names by which files call a user's functions: 'module:name', as that of a function which can be imported."""

from __future__ import annotations

import json
import sys


def found(module, name):
    """module.name, of dotted names too; None for nothing."""
    value = module
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def name_of(function):
    """The name of a function under which it can be imported, else None."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    # Scripts have another name when they are imported.
    if not isinstance(module, str) or not isinstance(name, str) or module == "__main__" or module not in sys.modules:
        return None
    return f"{module}:{name}" if found(sys.modules[module], name) is function else None


def description(make, kind, functions, **options):
    """What a file says of a layer, make(**functions, **options, kind=kind) of widelimit.layers; empty if one of the functions has
    no name."""
    names = {argument: name_of(function) for argument, function in functions.items() if function is not None}
    if None in names.values():
        return ""
    try:
        return json.dumps({"make": make, "kind": kind, "functions": names, **({"options": options} if options else {})}, allow_nan=False)
    except (TypeError, ValueError):  # What is wrong with an option is said where it is used.
        return ""


def functions_of(text):
    """The functions that the text of a network of this process names, by their names."""
    named = {}

    def look(part):
        for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
            look(inner)
        if isinstance(part, dict) and "layer" in part and isinstance(part.get("python"), dict):
            for name in part["python"]["functions"].values():
                module, _, inside = name.partition(":")
                named[name] = found(sys.modules[module], inside)

    if '"python"' in text:
        look(json.loads(text))
    return named
