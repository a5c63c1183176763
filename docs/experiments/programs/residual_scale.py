"""Residual attention with the paper's R, and with an R whose rows sum to 1 on average: which of them answers better.

    python residual_scale.py DEPTH DRAW --data FOLDER --work FOLDER [--size 8] [--train 300] [--validation 300] [--test 400]
                             [--device cpu] [--minutes M] [--estimate]
    python residual_scale.py summary

Hron et al. 2020, arXiv:2006.10540: K' = alpha K + (1 - alpha) R K R^T behind DEPTH convolutions, an RMS norm, flatten and a readout:
the network residual-attention with its defaults, once with row_sum = 0 (R as published) and once with row_sum = 1 (scaled). Each draw
has training, validation and test images of its own, so that draws are independent; regularisers are chosen as in attention_depth.py.
Appends to docs/experiments/data/residual_scale.csv, with a bit a test image (hexadecimal) that says whether the answer was right.
"""
import argparse

import numpy as np
import widelimit

from attention_depth import SIZES, Images, answers
from computing import Computer, Tiles, add_arguments, add_image_arguments
from tables import EXPERIMENTS, Table, as_bits, from_bits, mean_and_error, rows_of, shows, signed, standard_errors

SCALES = {"published": 0, "scaled": 1}  # row_sum
PAGE = EXPERIMENTS / "infinite-attention.md"


def fill(options):
    computer = Computer(options)
    table = Table("residual_scale", ("rows", "depth", *SIZES, "draw", "kernel"), ("validation_right", "regulariser", "test_right", "right_bits"),
                  "draws 0, 1, ...", computer)
    case = options.depth, options.size, options.train, options.validation, options.test, options.draw
    scales = [scale for scale in SCALES if any(table.lacks(scale, *case, kernel) for kernel in ("nngp", "ntk"))]
    if not scales:
        return
    data = Images(options, first_test=options.draw * options.test)
    tiles = {scale: Tiles(computer, widelimit.Network.named("residual-attention", {"depth": options.depth, "row_sum": SCALES[scale]}),
                          computer.folder(options.work, "_".join(map(str, ("residual", scale, *case)))), data.train, data.others) for scale in scales}
    computer.begin(f"residual attention behind {options.depth} convolutions, draw {options.draw}",
                   [(each.network, each.train, each.pairs()) for each in tiles.values()])
    for scale, each in tiles.items():
        table.lacks(scale, *case, "nngp")
        rows = []
        for kernel, k, c in zip(("nngp", "ntk"), *each.compute()):
            regulariser, validated, right = answers(k, c, data.labels, data.known, options.validation)
            rows.append((scale, *case, kernel, validated, float(regulariser), int(right.sum()), as_bits(right)))
        table.append(*rows)


def right_answers():
    """(depth, kernel): {scale: {draw: right}}."""
    found = {}
    for row in rows_of("residual_scale"):
        found.setdefault((int(row["depth"]), row["kernel"]), {}).setdefault(row["rows"], {})[int(row["draw"])] = from_bits(row)
    return found


def difference_and_error(differences):
    """Percentage points and their standard error, of differences [draws, images] on images of each draw's own."""
    mean, within = mean_and_error(100 * np.concatenate([*differences]))
    _, over_draws = mean_and_error([100 * draw.mean() for draw in differences])
    return mean, max(within, over_draws)


def summary():
    yield "| convolutions | kernel | draws | published | scaled | published - scaled | 95 % interval | right with the published R only, with the scaled only |"
    yield "|---|---|---|---|---|---|---|---|"
    every = []
    for (depth, kernel), of in sorted(right_answers().items(), key=lambda pair: (pair[0][1], pair[0][0])):
        draws = sorted(set(of["published"]) & set(of["scaled"]))
        published, scaled = (np.stack([of[scale][draw] for draw in draws]) for scale in SCALES)
        every.append(published - scaled)
        yield (f"| {depth} | {kernel.upper()} | {len(draws)} | {100 * published.mean():.1f} % | {100 * scaled.mean():.1f} % | "
               f"{compared(every[-1])} | {int((published > scaled).sum())}, {int((scaled > published).sum())} |")
    draws = min(map(len, every))
    yield f"| all | both | {draws} |  |  | {compared(np.mean([each[:draws] for each in every], axis=0))} |  |"


def compared(differences):
    difference, error = difference_and_error(differences)
    half = standard_errors(len(differences) - 1) * error
    return f"{signed(difference)} ± {error:.1f} | {signed(difference - half)} to {signed(difference + half)}"


SUMMARIES = {"residual_scale": summary}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("depth", help="of the convolutions, or summary")
    parser.add_argument("draw", type=int, nargs="?")
    add_image_arguments(parser, 8, train=300, validation=300, test=400)
    add_arguments(parser)
    options = parser.parse_args()
    if shows(options.depth, SUMMARIES):
        return
    if None in (options.draw, options.data, options.work):
        parser.error("DEPTH, DRAW, --data and --work are needed to compute kernels")
    options.depth = int(options.depth)
    fill(options)


if __name__ == "__main__":
    main()
