"""Small-data CIFAR-10 (Arora et al. 2020, arXiv:1910.01663, table 2): kernel regression on 10 to 320 images and more.

    python small_cifar10.py NETWORK DRAW --data FOLDER --work FOLDER [--train 320] [--test 2000] [--flips] [--size 32]
                            [--device cpu] [--minutes M] [--estimate]
    python small_cifar10.py summary

NETWORK is conv-gap-14, myrtle5, myrtle10 or struct-8. A draw is a balanced, nested choice of training images: the first n / 10
images of every class in an order that the draw's number decides; --flips adds the mirror image of each. Kernels are computed
once for the largest n, in tiles that are kept in the work folder, so that a run that was stopped goes on where it was. Appends a
row for each n and kernel to docs/experiments/data/small_cifar10.csv, with a bit a test image (hexadecimal) that says whether the
answer was right. FOLDER holds the binary files of CIFAR-10.
"""
import argparse

import numpy as np
import widelimit

from computing import Computer, Tiles, add_arguments, add_image_arguments
from tables import EXPERIMENTS, Table, as_bits, rows_of, shows

SIZES = (10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120)
SIDE = 100
NETWORKS = {
    "conv-gap-14": ("conv-gap", {"depth": 14, "bias_variance": 0}),
    "myrtle5": ("myrtle5", {"bias_variance": 0}),
    "myrtle10": ("myrtle5", {"first": 3, "second": 3, "third": 3, "bias_variance": 0}),
    "struct-8": ("struct", {"depth": 8}),
}
KEYS = ("network", "size", "flips", "train", "test", "draw", "kernel")
PAGE = EXPERIMENTS.parent / "experiments.md"


def read_images(files):
    """Images [n, 32, 32, 3] in [0, 1] and labels [n] of CIFAR-10's binary files."""
    records = np.concatenate([np.fromfile(file, np.uint8).reshape(-1, 3073) for file in files])
    images = records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1) / 255.0
    return images.astype(np.float32), records[:, 0].astype(int)


def standardise(images, mean, deviation):
    return np.ascontiguousarray((images - mean) / deviation, np.float32)


def nested_order(labels, draw):
    """Indices of training images: every ten of them hold one image of each class."""
    random = np.random.default_rng(draw)
    columns = [random.permutation(np.flatnonzero(labels == label)) for label in range(10)]
    length = min(map(len, columns))
    return np.stack([column[:length] for column in columns], axis=1).ravel()


def reduced(images, size):
    """[n, 32, 32, 3] to [n, size, size, 3], by means of squares of pixels."""
    return images.reshape(-1, size, 32 // size, size, 32 // size, 3).mean(axis=(2, 4))


def with_mirrors(images, labels):
    """Every image with its mirror image behind it, so that the first 2 n are those of the first n."""
    both = np.stack([images, images[:, :, ::-1]], axis=1)
    return both.reshape(-1, *images.shape[1:]), np.repeat(labels, 2)


def right_answers(square, cross, labels, truth):
    """Of kernel regression without a regulariser, targets one-hot less 1/10, as in the paper."""
    targets = np.eye(10)[labels] - 0.1
    coefficients = np.linalg.lstsq(square.astype(float), targets, rcond=1e-7)[0]
    return np.argmax(cross.astype(float) @ coefficients, axis=1) == truth


def fill(options):
    computer = Computer(options)
    table = Table("small_cifar10", KEYS, ("correct", "right_bits"), "draws 0, 1, ...", computer)
    sizes = [size for size in SIZES if size < options.train] + [options.train]
    flips = int(options.flips)
    cases = [(options.network, options.size, flips, n, options.test, options.draw) for n in sizes]
    if not any(table.lacks(*case, kernel) for case in cases for kernel in ("nngp", "ntk")):
        return
    images, labels = read_images(sorted(options.data.glob("data_batch_*.bin")))
    test, truth = read_images([options.data / "test_batch.bin"])
    images, test = reduced(images, options.size), reduced(test, options.size)
    mean, deviation = images.mean(axis=(0, 1, 2)), images.std(axis=(0, 1, 2))
    chosen = nested_order(labels, options.draw)[:options.train]
    if len(chosen) < options.train or len(test) < options.test:
        raise SystemExit(f"{options.data} has {len(labels)} training and {len(test)} test images, too few for what was asked")
    train, labels = images[chosen], labels[chosen]
    if options.flips:
        train, labels = with_mirrors(train, labels)
    name = f"{options.network}{'_flips' if options.flips else ''}_{options.draw}_{options.size}_{options.test}"
    network = widelimit.Network.named(*NETWORKS[options.network])
    tiles = Tiles(computer, network, computer.folder(options.work, name), standardise(train, mean, deviation),
                  standardise(test[:options.test], mean, deviation), SIDE)
    computer.begin(name, [(network, tiles.train, tiles.pairs())])
    square, cross = tiles.compute()
    for case, n in zip(cases, sizes):
        count = n * (1 + flips)
        for kernel, k, c in zip(("nngp", "ntk"), square, cross):
            if (*map(str, case), kernel) not in table.done:
                right = right_answers(k[:count, :count], c[:, :count], labels[:count], truth[:options.test])
                table.append((*case, kernel, int(right.sum()), as_bits(right)))


def summary():
    """A table for each network, number of test images and machine: their rows are never mixed."""
    rows = rows_of("small_cifar10")
    same = ("network", "size", "flips", "test", "machine")
    for kind in dict.fromkeys(tuple(row[name] for name in same) for row in rows):
        network, size, flips, test, machine = kind
        mine = [row for row in rows if tuple(row[name] for name in same) == kind]
        sizes = sorted({int(row["train"]) for row in mine})
        draws = {row["draw"] for row in mine}
        yield (f"{network}{' with mirror images' if flips == '1' else ''}, {size} x {size}, {len(draws)} draws, {int(test):,} test images, {machine}, "
               f"version {', '.join(dict.fromkeys(row['version'] for row in mine))}:")
        yield ""
        yield "| kernel | " + " | ".join(f"{n:,}" for n in sizes) + " |"
        yield "|---|" + "---|" * len(sizes)
        for kernel in ("nngp", "ntk"):
            cells = []
            for n in sizes:
                values = [int(row["correct"]) / int(test) for row in mine if (row["kernel"], row["train"]) == (kernel, str(n))]
                spread = f" ({1000 * np.std(values, ddof=1):.0f})" if len(values) > 1 else ""
                cells.append(f"{np.mean(values):.3f}".lstrip("0") + spread if values else "")
            yield f"| {kernel.upper()} | {' | '.join(cells)} |"
        yield ""


SUMMARIES = {"small_cifar10": summary}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("network", choices=(*NETWORKS, "summary"))
    parser.add_argument("draw", type=int, nargs="?")
    add_image_arguments(parser, 32, train=320, test=2000)
    parser.add_argument("--flips", action="store_true")
    add_arguments(parser)
    options = parser.parse_args()
    if shows(options.network, SUMMARIES):
        return
    if None in (options.draw, options.data, options.work):
        parser.error("DRAW, --data and --work are needed to compute kernels")
    fill(options)


if __name__ == "__main__":
    main()
