"""What was found of every tensor, and where it went."""

from __future__ import annotations

from dataclasses import dataclass

from ._rules import Measured


@dataclass(frozen=True)
class Row:
    """One tensor: the submodule, the parameter's name, the fan-in of its layer, the variance of its entries, and the learning
    rate relative to the others, by which its gradients count in the NTK."""

    place: str
    parameter: str
    fan_in: int
    variance: Measured
    learning_rate: float
    trained: bool


@dataclass(frozen=True)
class Report:
    """The tensors of a module in the order in which they are used, and what a reader of the limit should know.

    shape, channels   of an input of the network: positions, and channels, which are last
    """

    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    shape: tuple[int, ...]
    channels: int
    parametrisation: str

    def __str__(self) -> str:
        lines = [f"inputs [n, {', '.join(map(str, (*self.shape, self.channels)))}], channels last; parametrisation {self.parametrisation}"]
        table = [("parameter", "fan-in", "variance", "measured", "rule")]
        for row in self.rows:
            found = row.variance
            rate = "" if row.learning_rate == 1 else f"; learning rate times {row.learning_rate:g}"
            table.append((row.parameter, str(row.fan_in), f"{found.variance:.4g}", f"{found.measured:.4g} +- {found.error:.1g}",
                          found.rule + rate + ("" if row.trained else "; not trained")))
        widths = [max(len(row[k]) for row in table) for k in range(4)]
        lines += ["  ".join([*(cell.ljust(width) for cell, width in zip(row, widths)), row[4]]) for row in table]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])
