"""Reading layers made of a user's functions: files have the functions' names, and whoever reads them says which functions are meant,
or which modules may be imported. A file by itself runs nothing."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping

from . import _core, layers
from ._named_functions import found, name_of


def _are_numbers(value):
    return isinstance(value, list) and all(type(number) in (int, float) for number in value)


# Of each function that makes layers: the functions that it needs, all that it knows, and its options, with what these must be.
_ARGUMENTS = {"elementwise": ({"phi"}, {"phi", "derivative"}, {"breakpoints": ("a list of numbers", _are_numbers)}),
              "elementwise_dual": ({"nngp"}, {"nngp", "derivative"}, {}),
              "pair": ({"transform"}, {"transform"}, {"needs_gaussian": ("true or false", lambda value: isinstance(value, bool)),
                                                      "leaves": ("a text", lambda value: isinstance(value, str))})}


class _Refused(Exception):
    """Why there is no layer."""


class Maker:
    """Makes layers for a reader, by functions that the caller allows: a mapping of names to functions, or names of modules."""

    def __init__(self, functions=None):
        self.held = ()  # What the layers that were made hold.
        self._functions, self._modules = {}, ()
        if isinstance(functions, Mapping):
            for name, function in functions.items():
                if not callable(function):
                    raise TypeError(f"functions: {name!r}: expected a function, got {function!r}")
            self._functions = dict(functions)
        elif functions is not None:
            if isinstance(functions, str) or not hasattr(functions, "__iter__"):
                raise TypeError(f"functions: expected {{'module:name': function}} or a list of names of modules, got {functions!r}")
            self._modules = tuple(functions)
            if not all(isinstance(name, str) and all(part.isidentifier() for part in name.split(".")) for name in self._modules):
                raise TypeError(f"functions: expected names of modules, got {list(self._modules)!r}")

    def __call__(self, text):
        """The layer, or a text that says why there is none."""
        try:
            layer = self._layer(_checked(json.loads(text)))
        except _Refused as reason:
            return str(reason)
        self.held += layer._functions
        return layer

    def _layer(self, told):
        functions = {argument: self._function(name) for argument, name in told["functions"].items()}
        try:
            return getattr(layers, told["make"])(**functions, **told.get("options", {}), kind=told["kind"])
        except (TypeError, ValueError, _core.Error) as error:
            raise _Refused(f"{told['make']}: {error}") from error

    def _function(self, name):
        if name in self._functions:
            return self._functions[name]
        module, _, inside = name.partition(":")
        if module not in self._modules:
            raise _Refused(f"calls the function {name!r}: expected functions={{{name!r}: ...}} with the function that is meant, or "
                           f"functions=[{module!r}] if you trust the file to import that module and to call its functions")
        try:
            function = found(importlib.import_module(module), inside)
        except ImportError as error:
            raise _Refused(f"calls the function {name!r}: {error}") from error
        # What a module has imported from others is not its own.
        if not callable(function) or name_of(function) != name:
            raise _Refused(f"calls the function {name!r}: the module {module} has no such function of its own")
        return function


def _checked(told):
    """A file's description of a layer."""
    if not isinstance(told, dict) or not {"make", "kind", "functions"} <= set(told) <= {"make", "kind", "functions", "options"}:
        raise _Refused("expected an object with make, kind, functions and perhaps options")
    if not isinstance(told["make"], str) or told["make"] not in _ARGUMENTS:
        raise _Refused(f"make: expected one of {', '.join(_ARGUMENTS)}, got {told['make']!r}")
    needed, known, options = _ARGUMENTS[told["make"]]
    names, given = told["functions"], told.get("options", {})
    if not isinstance(names, dict) or not needed <= set(names) <= known:
        raise _Refused(f"functions: expected {', '.join(sorted(known))}, got {names!r}")
    if not all(isinstance(name, str) and name.count(":") == 1 for name in names.values()):
        raise _Refused(f"functions: expected names 'module:name', got {names!r}")
    if not isinstance(given, dict) or not set(given) <= set(options):
        raise _Refused(f"options: expected {', '.join(sorted(options)) or 'none'}, got {given!r}")
    for name, value in given.items():
        expected, is_fit = options[name]
        if not is_fit(value):
            raise _Refused(f"options: {name}: expected {expected}, got {value!r}")
    if not isinstance(told["kind"], str):
        raise _Refused(f"kind: expected a text, got {told['kind']!r}")
    return told
