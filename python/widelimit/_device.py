"""Where kernels are computed: what there is, and the choice of a block of code."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import Iterator, NamedTuple

from . import _core

_chosen = ContextVar("widelimit.device", default="cpu")


class Device(NamedTuple):
    """A device that OpenCL offers."""

    name: str
    platform: str
    driver: str
    is_gpu: bool
    is_available: bool
    has_double: bool
    memory_bytes: int


def devices() -> list[Device]:
    """All devices, in the order in which names are looked for; none where OpenCL is not installed."""
    return [Device(*description) for description in _core.devices()]


def chosen() -> str:
    """The device of the innermost block."""
    return _chosen.get()


def checked_device(choice: str) -> str:
    """The choice of a device that is there. Raises TypeError, ValueError or Error for others."""
    if not isinstance(choice, str):
        raise TypeError(f"device: expected 'cpu', 'gpu' or a name, got {choice!r}")
    if not choice:
        raise ValueError("device: expected 'cpu', 'gpu' or a name, got an empty text")
    _core.device_in_full(choice)
    return choice


@contextmanager
def device(choice: str | None) -> Iterator[None]:
    """Kernels within the block are computed there, those of models, estimators and kernel functions included.

    choice  'cpu'; 'gpu'; or part of the name of a device or of its platform, case aside; of several that answer, 'gpu:1' or NAME:1
            is the second; None: no change

    The block holds for its thread. Threads of a pool do not inherit it: give them device=, or contextvars.copy_context().run.

    Raises Error at once if there is no such device. A network that a device cannot compute is an Error, too, which names the
    layer. Covariances of positions are computed on the CPU, and so are derivatives, but for those by inputs of networks without
    positions (gram_vjp).
    """
    if choice is None:
        yield
        return
    token = _chosen.set(checked_device(choice))
    try:
        yield
    finally:
        _chosen.reset(token)
