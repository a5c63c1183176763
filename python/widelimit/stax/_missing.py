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
