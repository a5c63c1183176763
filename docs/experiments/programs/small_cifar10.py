"""Small-data CIFAR-10 (Arora et al. 2020, arXiv:1910.01663, table 2): kernel regression on 10 to 320 images.

    python small_cifar10.py NETWORK DRAW --data FOLDER --work FOLDER [--train 320] [--test 2000] [--threads 1]
                               [--device gpu]

Appends the rows of one draw to docs/experiments/data/small_cifar10.csv. A draw is a balanced, nested choice of training
images: the first n / 10 images of every class in an order that the draw's number decides. Kernels are computed once for
the largest n, in blocks of test images that are kept in the work folder, so that a run that was stopped goes on where
it was. FOLDER holds the binary files of CIFAR-10.
"""
import argparse
import pathlib
import platform
import sys
import time

import numpy as np
import widelimit

SIZES = (10, 20, 40, 80, 160, 320)
BLOCK = 25  # test images: minutes of one thread at depth 14
NETWORKS = {
    "conv-gap-14": ("conv-gap", {"depth": 14, "bias_variance": 0}),
    "myrtle5": ("myrtle5", {"bias_variance": 0}),
    "struct-8": ("struct", {"depth": 8}),
}
HEADER = "# python docs/experiments/programs/small_cifar10.py NETWORK DRAW --data FOLDER --work FOLDER [--device gpu]; version of widelimit and processor or device: columns; draws 0, 1, ...\nnetwork,kernel,draw,train,test,correct,accuracy,seconds_of_the_draw,version,processor\n"


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


def kept(path, compute):
    """The arrays of a file, computed and written under their final name at once where it is not there."""
    if not path.exists():
        unfinished = path.with_suffix(".unfinished.npz")
        nngp, ntk = compute()
        np.savez(unfinished, nngp=nngp, ntk=ntk)
        unfinished.rename(path)
    with np.load(path) as arrays:
        return arrays["nngp"], arrays["ntk"]


def kernels(network, train, test, work, threads, device):
    """NNGP and NTK of the training images, and of test with training images, each as [2, rows, train]."""
    def of(*images):
        return lambda: widelimit.gram(network, *images, threads=threads, device=device)[:2]

    square = kept(work / f"train_{len(train)}.npz", of(train))
    blocks = [kept(work / f"test_{len(train)}_{start}.npz", of(test[start:start + BLOCK], train))
              for start in range(0, len(test), BLOCK)]
    return np.stack(square), np.concatenate([np.stack(block) for block in blocks], axis=1)


def correct(square, cross, labels, truth):
    """Right answers of kernel regression without a regulariser, targets one-hot less 1/10, as in the paper."""
    targets = np.eye(10)[labels] - 0.1
    coefficients = np.linalg.lstsq(square.astype(float), targets, rcond=1e-7)[0]
    return int((np.argmax(cross.astype(float) @ coefficients, axis=1) == truth).sum())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("network", choices=NETWORKS)
    parser.add_argument("draw", type=int)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--train", type=int, default=SIZES[-1])
    parser.add_argument("--test", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu", help="as widelimit gram takes it")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parents[1] / "data" / "small_cifar10.csv")
    options = parser.parse_args()

    started = time.time()
    images, labels = read_images(sorted(options.data.glob("data_batch_*.bin")))
    test, truth = read_images([options.data / "test_batch.bin"])
    mean, deviation = images.mean(axis=(0, 1, 2)), images.std(axis=(0, 1, 2))
    chosen = nested_order(labels, options.draw)[:options.train]
    train, test, truth = images[chosen], test[:options.test], truth[:options.test]
    work = options.work / f"{options.network}_{options.draw}_{options.test}"
    work.mkdir(parents=True, exist_ok=True)
    network = widelimit.Network.named(*NETWORKS[options.network])
    square, cross = kernels(network, standardise(train, mean, deviation), standardise(test, mean, deviation), work,
                            options.threads, options.device)
    processor = next((found.name for found in widelimit.devices() if found.is_gpu), options.device) if options.device == "gpu" else (
        platform.processor() or platform.machine() if options.device == "cpu" else options.device)

    seconds = round(time.time() - started)
    new = not options.out.exists()
    with options.out.open("a") as out:
        if new:
            out.write(HEADER)
        for n in (size for size in SIZES if size <= options.train):
            for name, k, c in zip(("nngp", "ntk"), square, cross):
                right = correct(k[:n, :n], c[:, :n], labels[chosen[:n]], truth)
                out.write(f"{options.network},{name},{options.draw},{n},{len(test)},{right},{right / len(test):.4f},"
                          f"{seconds},{widelimit.__version__},{processor}\n")
                print(options.network, name, n, right / len(test), file=sys.stderr)


if __name__ == "__main__":
    main()
