"""Random search over the hyperparameters of an attention layer (Hron et al. 2020, arXiv:2006.10540, appendix A.1).

    python hyperparameters.py search --data FOLDER --work FOLDER [--settings 300] [--depth 8] [--size 32] [--train 2000]
                              [--validation 4000] [--device cpu] [--minutes M] [--estimate]
    python hyperparameters.py summary

A setting is a scaling and function of the logits, positional encodings with rho, phi and alpha, and whether values see them; the
first `settings` of 540 in an order of seed 0 are tried. Appends a row a setting and kernel to
docs/experiments/data/hyperparameters.csv; a row has its right answers on the validation images, on which the regulariser is
chosen too, so that the best of many looks better than it is. Softmax with 1/sqrt(width), which is sampled, is left out.
"""
import argparse
import itertools

import numpy as np
import widelimit
from widelimit import layers

from attention_depth import Images, answers, convolutions
from computing import Computer, Tiles, add_arguments, add_image_arguments
from tables import DATA, EXPERIMENTS, Table, rows_of, shows

FUNCTIONS = (("inverse_width", "softmax"), ("inverse_width", "identity"), ("inverse_width", "relu"), ("inverse_sqrt_width", "identity"),
             ("inverse_sqrt_width", "relu"), ("inverse_sqrt_width", "abs"))
SETTING = ("scaling", "weights", "values", "rho", "alpha", "phi")
KEYS = ("depth", "size", "train", "validation", "draw", *SETTING, "kernel")
PAGE = EXPERIMENTS / "infinite-attention.md"


def settings(count):
    """(scaling, weights, whether values see the encodings, rho relative to the images, alpha, phi; 0: identity encodings)."""
    grid = [(*function, *rest) for function in FUNCTIONS
            for rest in itertools.product(("absent", "present"), (0.25, 1.0, 4.0), (0.25, 0.5, 0.75), (0.0, 1.0, 4.0, 16.0, 64.0))]
    return [grid[place] for place in np.random.default_rng(0).permutation(len(grid))[:count]]


def network(depth, setting, variance):
    scaling, weights, values, rho, alpha, phi = setting
    kind = {"kind": "structured", "phi": phi} if phi else {"kind": "identity"}
    positions = {**kind, "rho": rho * variance, "input_weight": alpha, "position_weight": 1 - alpha, "in_values": values == "present"}
    return widelimit.Network([*convolutions(depth), layers.attention(scaling=scaling, weights=weights, query_key_std=2, positions=positions),
                              layers.layer_norm(), layers.flatten(), layers.dense()])


def search(options):
    computer = Computer(options)
    table = Table("hyperparameters", KEYS, ("validation_right", "regulariser"), "draw 0 of the images; seed 0 of the settings", computer)
    options.draw, options.test = 0, 0
    data = Images(options)
    probe = widelimit.Network([*convolutions(options.depth), layers.flatten()])
    variance = float(widelimit.gram_diagonal(probe, data.train, "nngp", threads=options.threads).nngp.mean())
    about = options.depth, options.size, options.train, options.validation, options.draw
    wanted = [setting for setting in settings(options.settings) if table.lacks(*about, *setting, "ntk")]
    for done, setting in enumerate(wanted):
        tiles = Tiles(computer, network(options.depth, setting, variance),
                      computer.folder(options.work, "setting_" + "_".join(map(str, (*about, *setting)))), data.train, data.others, 100)
        computer.begin(f"setting {done + 1} of {len(wanted)}: {' '.join(map(str, setting))}", [(tiles.network, tiles.train, tiles.pairs())])
        table.lacks(*about, *setting, "ntk")  # its time counts from here
        rows = []
        for kernel, k, c in zip(("nngp", "ntk"), *tiles.compute()):
            regulariser, right, _ = answers(k, c, data.labels, data.known, options.validation)
            rows.append((*about, *setting, kernel, right, float(regulariser)))
        table.append(*rows)


def summary():
    """The ten best of every size, and the range of all."""
    if not (DATA / "hyperparameters.csv").exists():
        return
    rows = rows_of("hyperparameters")
    for about in dict.fromkeys(tuple(row[name] for name in KEYS[:5]) for row in rows):
        mine = sorted((row for row in rows if tuple(row[name] for name in KEYS[:5]) == about), key=lambda row: -int(row["validation_right"]))
        depth, size, train, validation, _ = map(int, about)
        accuracies = [100 * int(row["validation_right"]) / validation for row in mine]
        yield (f"{depth} convolutions, {size} x {size} pixels, {train:,} training and {validation:,} validation images: {len(mine) // 2} settings, "
               f"from {accuracies[-1]:.1f} to {accuracies[0]:.1f} %, with a standard error of {50 / validation**0.5:.1f} at the most. The best:")
        yield ""
        yield f"| {' | '.join(SETTING)} | kernel | validation | regulariser |"
        yield "|---|" + "---|" * (len(SETTING) + 2)
        for row, accuracy in zip(mine[:10], accuracies):
            yield f"| {' | '.join(row[name] for name in SETTING)} | {row['kernel'].upper()} | {accuracy:.1f} % | {row['regulariser']} |"
        yield ""


SUMMARIES = {"hyperparameters": summary}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("search", "summary"))
    parser.add_argument("--settings", type=int, default=300)
    parser.add_argument("--depth", type=int, default=8)
    add_image_arguments(parser, 32, train=2000, validation=4000)
    add_arguments(parser)
    options = parser.parse_args()
    if shows(options.what, SUMMARIES):
        return
    if options.data is None or options.work is None:
        parser.error("--data and --work are needed to compute kernels")
    search(options)


if __name__ == "__main__":
    main()
