"""Kernel-inducing points (T. Nguyen, Z. Chen, J. Lee, 2021, arXiv:2011.00050; T. Nguyen, R. Novak, L. Xiao, J. Lee,
2021, arXiv:2107.13034): a few images on which kernel ridge regression alone classifies well.

Each step draws a batch (x, y) of training images. The loss of support images s with labels l is

    L(s, l) = |K(x, s) (K(s, s) + r tr K(s, s) / n I)^-1 l - y|^2 / 2 / batch ,

Adam optimises s, and with --learn-labels also l. The gradient with respect to the kernels' entries is linear algebra;
widelimit.gram_vjp propagates it back to the pixels.

    python kernel_inducing_points.py --data FOLDER --picture points.png

FOLDER holds CIFAR-10 in its binary format (data_batch_*.bin, test_batch.bin); a file NAME.npz holds x_train and x_test
[n, height, width, channels], and integers from 0 as y_train and y_test [n]. Without --data images are generated: each class
is a grating of one orientation and one colour, of random phase and contrast, in noise as strong as itself.
"""

import argparse
import pathlib
import time

import numpy as np
import widelimit
from widelimit import layers

SIZE = 16


# Images ---------------------------------------------------------------------------------------------------------------


def generated(count, random):
    """Images [count, SIZE, SIZE, 3] of ten classes, and the classes [count]."""
    labels = random.integers(10, size=count)
    angle = np.pi * (labels % 5) / 5
    colour = np.cos(np.where(labels < 5, 0.3, 1.4)[:, None] + np.array([0, 1, 2]))
    rows, columns = np.mgrid[:SIZE, :SIZE] / SIZE
    along = np.cos(angle)[:, None, None] * rows + np.sin(angle)[:, None, None] * columns
    waves = np.sin(2 * np.pi * (2 * along + random.uniform(size=(count, 1, 1))))
    waves *= random.uniform(0.5, 1.5, size=(count, 1, 1))
    return waves[..., None] * colour[:, None, None, :] + 0.5 * random.normal(size=(count, SIZE, SIZE, 3)), labels


def cifar10(paths):
    """Images [n, 32, 32, 3] and classes [n] of files in CIFAR-10's binary format."""
    records = np.concatenate([np.fromfile(path, np.uint8).reshape(-1, 1 + 3072) for path in paths])
    return records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1) / 255, records[:, 0].astype(int)


def smaller(images):
    """Averages over squares of pixels, so that SIZE x SIZE are left."""
    n, height, width, channels = images.shape
    if height % SIZE or width % SIZE:
        raise SystemExit(f"--data: expected images of a multiple of {SIZE} x {SIZE} pixels, got {height} x {width}")
    return images.reshape(n, SIZE, height // SIZE, SIZE, width // SIZE, channels).mean((2, 4))


def read(data, random):
    """((images, classes) for training, the same for tests), images of SIZE x SIZE pixels."""
    if data is None:
        return generated(4000, random), generated(1000, random)
    path = pathlib.Path(data)
    if path.suffix == ".npz":
        arrays = np.load(path)
        sets = [(arrays[f"x_{part}"], arrays[f"y_{part}"]) for part in ("train", "test")]
    else:
        batches = sorted(path.glob("data_batch_*.bin"))
        if not batches:
            raise SystemExit(f"--data: expected data_batch_*.bin and test_batch.bin in {path}, or a file .npz")
        sets = [cifar10(batches), cifar10([path / "test_batch.bin"])]
    return [(smaller(images), labels) for images, labels in sets]


class Standardisation:
    """Every channel with mean 0 and variance 1 over the training images, and back."""

    def __init__(self, images):
        self.mean, self.deviation = images.mean((0, 1, 2)), images.std((0, 1, 2))

    def __call__(self, images):
        return ((images - self.mean) / self.deviation).astype(np.float32)

    def back(self, images):
        return images * self.deviation + self.mean


# Networks -------------------------------------------------------------------------------------------------------------


def network(name):
    """The network whose kernel is used."""
    weights = {"weight_variance": 2, "bias_variance": 0.01}
    if name == "fcn":
        hidden = [layers.flatten()] + 3 * [layers.dense(**weights), layers.relu()]
    else:
        hidden = 3 * [layers.conv([3, 3], **weights), layers.relu()] + [layers.flatten()]
    return widelimit.Network([*hidden, layers.dense()])


# The loss -------------------------------------------------------------------------------------------------------------


class Ridge:
    """Kernel ridge regression on support images and labels, its loss on a batch, and the gradient of that."""

    def __init__(self, network, kernel, ridge, threads):
        self.network, self.kernel, self.ridge, self.threads = network, kernel, ridge, threads

    def gram(self, *inputs):
        found = widelimit.gram(self.network, *inputs, kernels=self.kernel, threads=self.threads)
        return getattr(found, self.kernel).astype(float)

    def regularised(self, support):
        """K(s, s) and a share of its trace on the diagonal."""
        gram = self.gram(support)
        return gram + self.ridge * np.trace(gram) / len(gram) * np.eye(len(gram))

    def predictions(self, support, labels, x):
        return self.gram(x, support) @ np.linalg.solve(self.regularised(support), labels)

    def loss_and_gradient(self, support, labels, x, y):
        """(loss, its derivatives by the support images and by their labels)."""
        matrix, cross = self.regularised(support), self.gram(x, support)
        weights = np.linalg.solve(matrix, labels)
        residual = cross @ weights - y
        by_labels = np.linalg.solve(matrix, cross.T @ residual) / len(x)
        by_cross = residual @ weights.T / len(x)
        by_gram = -by_labels @ weights.T
        by_gram += self.ridge * np.trace(by_gram) / len(support) * np.eye(len(support))  # The trace depends on s too.
        own = widelimit.gram_vjp(self.network, support, **{self.kernel: by_gram}, threads=self.threads)
        _, others = widelimit.gram_vjp(self.network, x, support, **{self.kernel: by_cross}, threads=self.threads)
        return (residual ** 2).sum() / 2 / len(x), own + others, by_labels


class Adam:
    """D. Kingma, J. Ba, 2015, arXiv:1412.6980, with the usual decays."""

    def __init__(self, shape, rate):
        self.first, self.second, self.rate, self.count = np.zeros(shape), np.zeros(shape), rate, 0

    def step(self, gradient):
        """What is to be added."""
        self.count += 1
        self.first = 0.9 * self.first + 0.1 * gradient
        self.second = 0.999 * self.second + 0.001 * gradient ** 2
        mean, square = self.first / (1 - 0.9 ** self.count), self.second / (1 - 0.999 ** self.count)
        return -self.rate * mean / (np.sqrt(square) + 1e-8)


# Distillation ---------------------------------------------------------------------------------------------------------


def drawn(labels, per_class, random):
    """The indices of some images of each class, class by class."""
    of_class = [np.flatnonzero(labels == c) for c in np.unique(labels)]
    return np.concatenate([random.choice(rows, per_class, replace=False) for rows in of_class])


def accuracy(model, support, targets, x, labels):
    return (model.predictions(support, targets, x).argmax(1) == labels).mean()


def distil(model, support, targets, x, y, options, random, report=print):
    """Support images and labels after the steps of the options."""
    support, targets = support.copy(), targets.copy()
    images, labels = Adam(support.shape, options.rate), Adam(targets.shape, options.rate / 10)
    for step in range(options.steps):
        rows = random.choice(len(x), min(options.batch, len(x)), replace=False)
        loss, by_support, by_labels = model.loss_and_gradient(support, targets, x[rows], y[rows])
        if step % max(1, options.steps // 10) == 0:
            report(f"step {step}: loss {loss:.4f}")
        support += images.step(by_support).astype(support.dtype)
        if options.learn_labels:
            targets += labels.step(by_labels)
    return support, targets


def draw(before, after, per_class, path):
    """Support images before and after, a class a row."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8, 4.4), constrained_layout=True)
    for axis, images, title in zip(axes, (before, after), ("training images", "distilled")):
        grid = images.reshape(-1, per_class, *images.shape[1:]).transpose(0, 2, 1, 3, 4)
        axis.imshow(np.clip(grid.reshape(grid.shape[0] * SIZE, -1, 3), 0, 1), interpolation="nearest")
        axis.set_title(title)
        axis.axis("off")
    figure.savefig(path, dpi=100)


def parsed(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="a folder with CIFAR-10, or a file .npz; without it images are generated")
    parser.add_argument("--network", choices=("fcn", "conv"), default="fcn")
    parser.add_argument("--kernel", choices=("ntk", "nngp"), default="ntk")
    parser.add_argument("--per-class", type=int, default=10)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=500)
    parser.add_argument("--rate", type=float, default=0.02, help="Adam's step; a tenth of it for labels")
    parser.add_argument("--ridge", type=float, default=1e-6, help="of the mean of the diagonal of K(s, s)")
    parser.add_argument("--learn-labels", action="store_true")
    parser.add_argument("--draws", type=int, default=5, help="choices of training images to compare with")
    parser.add_argument("--compare", type=int, nargs="*", default=[], help="other numbers of training images")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=0, help="0: one a core")
    parser.add_argument("--picture", help="a file for the images before and after")
    return parser.parse_args(arguments)


def main(arguments=None):
    """Prints accuracies; returns those of random support images (several) and of the distilled ones."""
    options = parsed(arguments)
    random = np.random.default_rng(options.seed)
    (train, train_labels), (test, test_labels) = read(options.data, random)
    standardised = Standardisation(train)
    x, x_test = standardised(train), standardised(test)
    y = np.eye(train_labels.max() + 1)[train_labels] - 1 / (train_labels.max() + 1)
    model = Ridge(network(options.network), options.kernel, options.ridge, options.threads)

    chosen = [drawn(train_labels, options.per_class, random) for _ in range(options.draws)]
    before = [accuracy(model, x[rows], y[rows], x_test, test_labels) for rows in chosen]
    print(f"{len(chosen[0])} training images: accuracy {np.mean(before):.3f} on {len(x_test)} test images, "
          f"{np.min(before):.3f} to {np.max(before):.3f} over {len(before)} choices; the first: {before[0]:.3f}")
    for count in options.compare:
        print(f"{count} training images: accuracy {accuracy(model, x[:count], y[:count], x_test, test_labels):.3f}")

    start = time.process_time()
    support, targets = distil(model, x[chosen[0]], y[chosen[0]], x, y, options, random)
    seconds = time.process_time() - start
    after = accuracy(model, support, targets, x_test, test_labels)
    print(f"as many distilled ones: accuracy {after:.3f} after {options.steps} steps, {seconds:.0f} s of the processor")
    if options.picture:
        draw(train[chosen[0]], standardised.back(support), options.per_class, options.picture)
    return before, after


if __name__ == "__main__":
    main()
