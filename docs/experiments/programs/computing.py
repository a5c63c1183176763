"""Kernels of the experiments: on the processor or a device, in tiles that are kept, and how long they will take.

A program that computes kernels adds these options to its own, and makes a Computer of them. It ends with status 75 where
--minutes are too few, and with 69 where a device cannot compute a network; run_on_device.sh tells both from failures."""
import pathlib
import sys
import time

import numpy as np
import widelimit

from tables import DATA, processor, processor_seconds

TOO_LONG, UNABLE = 75, 69


def add_arguments(parser):
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu", help="cpu, gpu, or part of a name as `widelimit devices` prints it [cpu]")
    parser.add_argument("--minutes", type=float, help="a cell that would take longer is left out, with exit status 75")
    parser.add_argument("--estimate", action="store_true", help="say how long a cell would take, and leave it")
    parser.add_argument("--out", type=pathlib.Path, default=DATA, help="folder of the file of rows [docs/experiments/data]")


def add_image_arguments(parser, size, **parts):
    """--data, --work, --size and the number of images of each part, with its default."""
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--size", type=int, default=size, choices=(4, 8, 16, 32), help="of the images, in pixels")
    for name, images in parts.items():
        parser.add_argument(f"--{name}", type=int, default=images)


def described(seconds):
    for limit, unit, name in (120, 1, "s"), (7200, 60, "minutes"), (172_800, 3600, "hours"):
        if seconds < limit:
            return f"{seconds / unit:.2g} {name}" if seconds / unit < 10 else f"{seconds / unit:.0f} {name}"
    return f"{seconds / 86_400:.1f} days"


def leave(status, message):
    print(message, file=sys.stderr)
    raise SystemExit(status)


class Computer:
    """Where kernels are computed, and until when."""

    def __init__(self, options):
        self.device, self.threads, self.out = options.device, options.threads, options.out
        self.only_estimate = options.estimate
        self.end = None if options.minutes is None else time.monotonic() + 60 * options.minutes
        found = widelimit._core.device_in_full(self.device)  # an error if there is none of this name
        self.machine = found.split(", ")[0] if found else processor()
        self.out.mkdir(parents=True, exist_ok=True)

    @property
    def on_device(self):
        return self.device.lower() != "cpu"

    def folder(self, parent, name):
        """A folder for tiles: those of a device are not those of the processor."""
        return parent / (f"{name}_{''.join(c if c.isalnum() else '_' for c in self.machine)}" if self.on_device else name)

    def clock(self):
        """Seconds: of the clock on a device, else of the processor."""
        return time.monotonic() if self.on_device else processor_seconds()

    def gram(self, network, *inputs):
        """NNGP and NTK, [2, rows, columns]."""
        return np.stack(widelimit.gram(network, *inputs, threads=self.threads, device=self.device)[:2])

    def diagonal(self, network, inputs):
        return np.stack(widelimit.gram_diagonal(network, inputs, threads=self.threads, device=self.device)[:2])

    def seconds_a_pair(self, network, inputs, least=0.3):
        """Of the clock: measured on 8, 16, ... inputs, until they take `least` seconds, after two that compile what there is to."""
        self.gram(network, inputs[:2])
        n = 8
        while True:
            some = inputs[:n]
            begin = time.monotonic()
            self.gram(network, some)
            seconds = time.monotonic() - begin
            if seconds > least or n >= len(inputs):
                return seconds / (len(some) * (len(some) + 1) / 2)
            n *= 2

    def begin(self, what, work):
        """Says how long kernels will take, [(network, inputs, pairs)], and ends the program if that is longer than there is, or
        if the device cannot compute one of them."""
        seconds, pairs = 0, sum(pairs for _, _, pairs in work)
        for network, inputs, count in work:
            try:
                seconds += count * self.seconds_a_pair(network, inputs) if count else 0
            except widelimit.Error as error:
                if not self.on_device:
                    raise
                leave(UNABLE, f"{what}: cannot be computed on {self.machine}; no row. {error}")
        left = "" if self.end is None else f", {described(max(0, self.end - time.monotonic()))} left"
        print(f"{what}: {pairs:,} pairs, about {described(seconds)} on {self.machine}{left}", file=sys.stderr, flush=True)
        if self.end is not None and time.monotonic() + seconds > self.end:
            leave(TOO_LONG, f"{what}: left out, there is no time for it")
        if self.only_estimate:
            raise SystemExit(0)


class Tiles:
    """The kernels of a network, [2, n, n] of training inputs and [2, m, n] of others with them, in tiles of `side` inputs. Each is
    written under its final name at once, so that a run that was stopped goes on where it was. More inputs go on from the whole tiles
    of fewer."""

    def __init__(self, computer, network, folder, train, others, side=500):
        self.computer, self.network, self.folder, self.side = computer, network, folder, side
        self.train, self.others = train, others

    def _starts(self, inputs):
        return range(0, len(inputs), self.side)

    def _all(self):
        """(file, rows, columns or nothing for a tile on the diagonal, place in its matrix, whether it is of others)."""
        for column in self._starts(self.train):
            columns = slice(column, column + self.side)
            for row in range(column, len(self.train), self.side):
                rows = slice(row, row + self.side)
                yield (self.folder / f"train_{row}_{column}.npz", self.train[rows], None if row == column else self.train[columns],
                       (rows, columns), False)
            for row in self._starts(self.others):
                rows = slice(row, row + self.side)
                yield self.folder / f"test_{row}_{column}.npz", self.others[rows], self.train[columns], (rows, columns), True

    @staticmethod
    def _kept(file, rows, columns):
        """The tile of a file, if it is there and of these inputs."""
        if not file.exists():
            return None
        with np.load(file) as arrays:
            tile = np.stack([arrays["nngp"], arrays["ntk"]])
        return tile if tile.shape[1:] == (len(rows), len(rows if columns is None else columns)) else None

    def pairs(self):
        """How many are not there yet."""
        return sum(len(rows) * (len(rows) + 1) // 2 if columns is None else len(rows) * len(columns)
                   for file, rows, columns, _, _ in self._all() if self._kept(file, rows, columns) is None)

    def compute(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        square = np.empty((2, len(self.train), len(self.train)), np.float32)
        cross = np.empty((2, len(self.others), len(self.train)), np.float32)
        for file, rows, columns, (left, top), of_others in self._all():
            tile = self._kept(file, rows, columns)
            if tile is None:
                tile = self.computer.gram(self.network, rows, *(() if columns is None else (columns,)))
                unfinished = file.with_suffix(".unfinished.npz")
                np.savez(unfinished, nngp=tile[0], ntk=tile[1])
                unfinished.rename(file)
            if of_others:
                cross[:, left, top] = tile
            else:
                square[:, left, top], square[:, top, left] = tile, tile.transpose(0, 2, 1)
        return square, cross
