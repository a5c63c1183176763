"""Names of neural_tangents.stax for which there is something else here; each says what."""

from __future__ import annotations

from typing import Any, Callable, NoReturn, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])


def missing(name: str, instead: str) -> Callable[..., NoReturn]:
    """A function that says what to use instead of it."""
    def absent(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"{name}: {instead}")

    absent.__name__ = name
    absent.__doc__ = f"Not here: {instead}."
    return absent


class _AbsentAttribute(NotImplementedError, AttributeError):
    """For hasattr() and help() there is no such attribute."""


class _Absent(type):
    """The type of missing classes: whatever is done with one says what to use instead."""

    def __call__(cls, *args, **kwargs):
        raise NotImplementedError(cls.__doc__)

    def __instancecheck__(cls, instance):
        raise NotImplementedError(cls.__doc__)

    def __subclasscheck__(cls, other):
        raise NotImplementedError(cls.__doc__)

    def __getattr__(cls, name):
        raise _AbsentAttribute(cls.__doc__)


def missing_class(name: str, instead: str) -> Any:
    """A class of which everything says what to use instead of it."""
    return _Absent(name.split(".")[-1], (), {"__doc__": f"{name}: {instead}"})


MaskedArray = missing_class("stax.MaskedArray", "give inputs with a mask_constant")


def unmask_fn(fn: _Function) -> _Function:
    """The function itself: outputs of apply_fn are arrays without masks."""
    return fn
