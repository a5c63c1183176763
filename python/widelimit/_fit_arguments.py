"""The arguments of fitting in docstrings, from the table that the program's options and the pages are made of."""

from __future__ import annotations

import textwrap

from . import _core

_PLACE = "FIT_ARGUMENTS"
_WIDTH = 130


def fit_arguments(names=None, indent=8):
    """A paragraph for each argument, or each of these; what stands beside a name is indented by 15."""
    known = dict(_core.fit_arguments())
    lines = []
    for name in known if names is None else names:
        head = " " * indent + (name.ljust(15) if len(name) < 15 else name + "  ")
        lines.append(textwrap.fill(known[name], _WIDTH, initial_indent=head, subsequent_indent=" " * (indent + 15)))
    return "\n".join(lines)


def says_fit_arguments(names=None, indent=8):
    """Decorates a function or a class: the line FIT_ARGUMENTS of its docstring becomes fit_arguments()."""
    def said(documented):
        if documented.__doc__:  # None under python -OO.
            documented.__doc__ = documented.__doc__.replace(" " * indent + _PLACE, fit_arguments(names, indent))
        return documented

    return said
