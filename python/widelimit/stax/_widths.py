"""Channels of finite networks, in the order in which the library asks for them.

A network leaves channels open in every layer with weights. Those after a sequence of layers are asked for once, by whatever
surrounds it, and the last open layer takes them; branches of a sum that cannot choose (a skip connection) decide for
the others and are built first.
"""

from dataclasses import dataclass
from typing import Tuple

FLATTENED = "flattened"  # After it the number of channels is fixed.


@dataclass(frozen=True)
class Joined:
    """A sum, product or concatenation: the places of its branches, and the channels after it."""

    branches: Tuple[Tuple[object, ...], ...]
    width: int


def _opens(place):
    if isinstance(place, Joined):
        return all(_any_opens(branch) for branch in place.branches)
    return place != FLATTENED


def _any_opens(places):
    return any(_opens(place) for place in places)


def _last_open(places):
    for k in reversed(range(len(places))):
        if places[k] == FLATTENED:
            return None
        if _opens(places[k]):
            return k
    return None


def chosen_widths(places, is_last_given=True):
    """A width for every place for which one is asked separately."""
    widths, last = [], _last_open(places) if is_last_given else None
    for k, place in enumerate(places):
        if _opens(place) and k != last:
            widths.append(place.width if isinstance(place, Joined) else place)
        if isinstance(place, Joined):
            for may_choose in (False, True):
                for branch in place.branches:
                    if _any_opens(branch) == may_choose:
                        widths.extend(chosen_widths(branch, may_choose))
    return widths
