"""Progress of a call: a function of the caller's, a bar of tqdm if it is installed, else a line on the error stream."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import Any, Callable, Iterator, Union

from ._arrays import check_callable

# None or False: no progress is shown. True: a bar. A function: called with (done, total).
Progress = Union[Callable[[int, int], object], bool, None]


@contextmanager
def told(progress: Progress, label: str) -> Iterator[Callable[[int, int], object] | None]:
    """The function that a computation calls, for `progress` as callers give it. TypeError for anything else."""
    if progress is None or progress is False:
        yield None
    elif progress is True:
        bar = _bar(label)
        try:
            yield bar.show
        finally:
            bar.close()
    else:
        check_callable("progress", progress)
        yield progress


def _bar(label):
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return _Line(label, sys.stderr)
    return _Tqdm(tqdm, label)


def teller(progress: Progress, label: str) -> Callable[[int, int], object] | None:
    """The same for computations whose end is not announced: a bar ends with the last step."""
    if progress is not True:
        with told(progress, label) as tell:
            return tell
    bar = _bar(label)

    def tell(done: int, total: int) -> None:
        bar.show(done, total)
        if done >= total:
            bar.close()

    return tell


class _Tqdm:
    def __init__(self, tqdm: Any, label: str) -> None:
        self._bar = tqdm(desc=label, total=0)

    def show(self, done: int, total: int) -> None:
        self._bar.total = total
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        self._bar.close()


class _Line:
    """The same line as the program's: written again at most five times a second."""

    def __init__(self, label: str, stream: Any) -> None:
        self._label, self._stream, self._shown, self._start = label, stream, 0.0, time.monotonic()

    def show(self, done: int, total: int) -> None:
        now = time.monotonic()
        if done < total and now - self._shown < 0.2:
            return
        self._shown = now
        left = (total - done) * (now - self._start) / done if done else float("nan")
        rest = f", {left:.0f} s left" if 0 < done < total else f", {now - self._start:.0f} s"
        self._stream.write(f"\r{self._label}: {done} of {total} ({100 * done // max(total, 1)} %){rest}   ")
        self._stream.flush()

    def close(self) -> None:
        if self._shown:
            self._stream.write("\n")
            self._stream.flush()
