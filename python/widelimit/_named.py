"""Named tuples of the names that a call asks for, which can be pickled."""

from collections import namedtuple
from functools import lru_cache


@lru_cache
def named_tuple(kind, names):
    """The class of named tuples `kind` with these names."""
    made = namedtuple(kind, names)
    made.__reduce__ = lambda self: (_again, (kind, names, tuple(self)))
    return made


def _again(kind, names, values):
    return named_tuple(kind, names)(*values)


def by_name(kind, get, values):
    """The value of one name for a string; a named tuple of exactly these names for several."""
    return values[get] if isinstance(get, str) else named_tuple(kind, tuple(get))(*(values[name] for name in get))
