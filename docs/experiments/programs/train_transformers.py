"""Transformers of four kinds, trained at many initialisations, and whether their exponents at initialisation foretell the loss.

    python train_transformers.py run --task mnist --data FOLDER [--kinds cowsik] [--alphas .1,.3,.5] [--sigmas 1,2,3] [--depths 8,16]
                                     [--widths 32] [--seeds 1,2,3] [--steps 150] [--only-estimate]
    python train_transformers.py summary

The networks are those of JAX, and Adam is that of Optax, which must be installed (pip install optax); both run on a GPU where JAX has
one. `run` times a step of every depth and width and prints an estimate of the whole before it begins. Each network is a row of
data/trained_transformers.csv, which a run that was stopped goes on with.

kinds   cowsik    blocks of Cowsik et al. (arXiv:2403.02579): norms before both branches, strength alpha, gain sigma_w
        shaped    Noci et al. (arXiv:2306.17759): attention g1 1 + softmax - g2 1 1^T / n, shaped ReLU; g1, g2 and gamma = alpha are learned
        unshaped  the same with softmax alone and ReLU
        pre_ln, post_ln  the same with layer norms before the branches or after the sums, and skip connections of 1
tasks   mnist     the t10k files in 16 patches: 4,000 images to learn, 500 to judge
        cifar10   the binary files in 64 patches of 4 x 4 pixels: the same numbers of images
        copy      made here: 8 random tokens of 16 and again the first 7; the second time each next token is to be told (causal mask)
"""
import argparse
import functools
import pathlib
import time

import numpy as np
from widelimit import propagation

from tables import Table, rows_of

KINDS, TASKS = ("cowsik", "shaped", "unshaped", "pre_ln", "post_ln"), ("mnist", "cifar10", "copy")
NAME = "trained_transformers"
KEYS = ("task", "kind", "alpha", "sigma_w", "depth", "width", "seed", "steps")
COLUMNS = ("loss", "accuracy", "entropy_before", "entropy_after", "log_gradient_before", "lambda_a", "lambda_g", "gradient_variance")
TRAIN, TEST, BATCH, RATE = 4000, 500, 32, 1e-3


def patches(images, side):
    """[n, height, width, channels] in squares, [n, patches, numbers], each image centred and of deviation 1."""
    n, height, width, channels = images.shape
    cut = images.reshape(n, height // side, side, width // side, side, channels).transpose(0, 1, 3, 2, 4, 5)
    rows = cut.reshape(n, -1, side * side * channels).astype(np.float32)
    return (rows - rows.mean((1, 2), keepdims=True)) / rows.std((1, 2), keepdims=True)


def inputs_of(task, folder):
    """(x, y) of all inputs, shuffled once; x are patches, or one-hot tokens; y are classes, [n] or [n, positions]."""
    random = np.random.default_rng(0)
    if task == "copy":
        first = random.integers(16, size=(TRAIN + TEST, 8))
        tokens = np.concatenate([first, first[:, :7]], 1)
        return np.eye(16, dtype=np.float32)[tokens], first
    if folder is None:
        raise SystemExit(f"--data: {task} needs the folder with its files")
    folder = pathlib.Path(folder)
    if task == "mnist":
        images = np.frombuffer((folder / "t10k-images-idx3-ubyte").read_bytes(), np.uint8, offset=16).reshape(-1, 28, 28, 1)
        labels, side = np.frombuffer((folder / "t10k-labels-idx1-ubyte").read_bytes(), np.uint8, offset=8), 7
    else:
        records = np.concatenate([np.frombuffer(path.read_bytes(), np.uint8).reshape(-1, 3073)
                                  for path in sorted(folder.glob("*batch*.bin"))])
        images, labels, side = records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), records[:, 0], 4
    if len(images) < TRAIN + TEST:
        raise SystemExit(f"--data: expected at least {TRAIN + TEST} images in {folder}, found {len(images)}")
    order = random.permutation(len(images))[:TRAIN + TEST]
    return patches(images[order], side), labels[order].astype(np.int64)


def made_parameters(jax, kind, sigma_w, depth, width, features, tokens, classes, seed, alpha):
    """Weights of a network: those of all blocks together, and of what stands before and behind them."""
    keys = iter(jax.random.split(jax.random.PRNGKey(seed), 16))

    def gaussian(*shape, gain=1.0):
        return gain * jax.random.normal(next(keys), shape) / np.sqrt(shape[-1])

    square = (depth, width, width)
    blocks = {name: gaussian(*square) for name in ("query", "key", "value")}
    gain = sigma_w if kind == "cowsik" else np.sqrt(2) if kind != "shaped" else 1.0
    blocks |= {"in": gaussian(*square, gain=gain), "out": gaussian(*square)}
    if kind == "cowsik":
        blocks["hidden"] = gaussian(*square, gain=gain)
    if kind == "shaped":
        blocks |= {name: np.full(depth, value, np.float32) for name, value in (("g1", 1), ("g2", 1), ("gamma", alpha))}
    return {"blocks": blocks, "embedding": gaussian(width, features), "positions": gaussian(tokens, width, gain=np.sqrt(width)),
            "head": gaussian(classes, width)}


def network_of(jax, kind, causal):
    """embed(parameters, x [batch, tokens, features]) -> tokens before the blocks, and blocks(parameters, tokens, alpha) ->
    (tokens behind them, mean entropy of the attention of each)."""
    np_ = jax.numpy

    def rms(x):
        return x / np_.sqrt((x * x).mean(-1, keepdims=True) + 1e-12)

    def layer_norm(x):
        return rms(x - x.mean(-1, keepdims=True))

    def attention(weights, x):
        width, n = x.shape[-1], x.shape[-2]
        scores = (x @ weights["query"].T) @ (x @ weights["key"].T).swapaxes(-1, -2) / np.sqrt(width)
        seen = np_.tril(np_.ones((n, n))) if causal else np_.ones((n, n))
        # The shaped softmax is near the mean: its temperature is that of the paper, sqrt(width) once more.
        scores = np_.where(seen > 0, scores / (np.sqrt(width) if kind == "shaped" else 1), -1e30)
        a = jax.nn.softmax(scores)
        entropy = -np_.where(a > 0, a * np_.log(np_.where(a > 0, a, 1)), 0).sum(-1).mean()
        if kind == "shaped":
            a = a + weights["g1"] * np_.eye(n) - weights["g2"] * seen / seen.sum(-1, keepdims=True)
        return a @ (x @ weights["value"].T), entropy

    def mlp(weights, x):
        if kind == "cowsik":
            return np_.tanh(np_.tanh(x @ weights["in"].T) @ weights["hidden"].T) @ weights["out"].T
        inner = x @ weights["in"].T
        slope = 1 - 1 / np.sqrt(x.shape[-1]) if kind == "shaped" else 0.0
        return np_.where(inner > 0, inner, slope * inner) @ weights["out"].T

    def block(x, weights, alpha):
        before = rms if kind == "cowsik" else layer_norm if kind == "pre_ln" else (lambda y: y)
        after = layer_norm if kind == "post_ln" else (lambda y: y)
        if kind == "shaped":
            alpha = np_.clip(weights["gamma"], 0, 1)
        skip, branch = (1.0, 1.0) if kind.endswith("_ln") else (np_.sqrt(1 - alpha**2), alpha)
        added, entropy = attention(weights, before(x))
        x = after(skip * x + branch * added)
        return after(skip * x + branch * mlp(weights, before(x))), entropy

    def embed(parameters, x):
        return rms(x @ parameters["embedding"].T + parameters["positions"])

    def blocks(parameters, tokens, alpha):
        return jax.lax.scan(lambda x, weights: block(x, weights, alpha), tokens, parameters["blocks"])

    return embed, blocks


@functools.cache
def trainer(kind, causal):
    """(step, judge, log_gradient), each compiled once for a shape: alpha is a number of the run."""
    import jax
    import optax
    np_, (embed, blocks), adam = jax.numpy, network_of(jax, kind, causal), optax.adam(RATE)

    def told(parameters, x, alpha):
        tokens, entropies = blocks(parameters, embed(parameters, x), alpha)
        tokens = tokens / np_.sqrt((tokens * tokens).mean(-1, keepdims=True) + 1e-12)
        # Of images one answer, of sequences one at each of the last tokens: the next one.
        seen = tokens[:, 7:] if causal else tokens.mean(1)
        return seen @ parameters["head"].T, entropies.mean()

    def loss(parameters, x, y, alpha):
        return optax.softmax_cross_entropy_with_integer_labels(told(parameters, x, alpha)[0], y).mean()

    @jax.jit
    def step(parameters, state, x, y, alpha):
        updates, state = adam.update(jax.grad(loss)(parameters, x, y, alpha), state)
        return optax.apply_updates(parameters, updates), state

    @jax.jit
    def judge(parameters, x, y, alpha):
        answers, entropy = told(parameters, x, alpha)
        cross = optax.softmax_cross_entropy_with_integer_labels(answers, y).mean()
        return cross, (answers.argmax(-1) == y).mean(), entropy

    @jax.jit
    def log_gradient(parameters, x, alpha, key):
        """ln of the squared gradient of a random projection of the output by the blocks' input, over that at the output."""
        start = embed(parameters, x)
        direction = jax.random.normal(key, start.shape)
        gradient = jax.grad(lambda tokens: (blocks(parameters, tokens, alpha)[0] * direction).sum())(start)
        return np_.log((gradient**2).sum() / (direction**2).sum())

    return adam, step, judge, log_gradient


def trained(task, x, y, kind, alpha, sigma_w, depth, width, seed, steps):
    """The columns of one run."""
    import jax
    causal = task == "copy"
    adam, step, judge, log_gradient = trainer(kind, causal)
    parameters = made_parameters(jax, kind, sigma_w, depth, width, x.shape[2], x.shape[1], int(y.max()) + 1, seed, alpha)
    state, random = adam.init(parameters), np.random.default_rng(seed)
    gradient = float(log_gradient(parameters, x[:8], alpha, jax.random.PRNGKey(seed)))
    before = float(judge(parameters, x[TRAIN:], y[TRAIN:], alpha)[2])
    for _ in range(steps):
        rows = random.integers(TRAIN, size=BATCH)
        parameters, state = step(parameters, state, x[rows], y[rows], alpha)
    loss, accuracy, after = map(float, judge(parameters, x[TRAIN:], y[TRAIN:], alpha))
    theory = (float("nan"),) * 3
    if kind == "cowsik":
        network = propagation.Parameters(tokens=x.shape[1], alpha_A=alpha, alpha_M=alpha, sigma_w=sigma_w)
        exponents = propagation.exponents(network, depth, causal=causal)
        spread = float("nan") if causal else propagation.width_spread(network, width, depth).gradient_variance
        theory = exponents.lambda_a_log, exponents.lambda_g, spread
    return loss, accuracy, before, after, gradient, *theory


def estimate(given, x, y, runs):
    """Prints how long the runs that are missing will take: ten steps of every kind, depth and width, timed behind their compilation."""
    import jax
    total = 0.0
    for kind, depth, width in sorted({(kind, depth, width) for kind, _, _, depth, width, _ in runs}):
        adam, step, *_ = trainer(kind, given.task == "copy")
        parameters = made_parameters(jax, kind, 1.0, depth, width, x.shape[2], x.shape[1], int(y.max()) + 1, 0, 0.5)
        state = adam.init(parameters)
        for timed in range(2):
            begin = time.perf_counter()
            for _ in range(10):
                parameters, state = step(parameters, state, x[:BATCH], y[:BATCH], 0.5)
            jax.block_until_ready(parameters)
        each = (time.perf_counter() - begin) / 10 * given.steps
        count = sum(run[0] == kind and run[3:5] == (depth, width) for run in runs)
        print(f"{kind}, {depth} blocks of width {width}: {count} runs of {each:.1f} s", flush=True)
        total += count * each
    print(f"{len(runs)} runs: about {total / 60:.1f} minutes", flush=True)


def run(given):
    x, y = inputs_of(given.task, given.data)
    table = Table(NAME, KEYS, COLUMNS, "seeds are a column")
    runs = [(kind, alpha, sigma_w, depth, width, seed)
            for kind in given.kinds for depth in given.depths for width in given.widths for alpha in given.alphas
            for sigma_w in (given.sigmas if kind == "cowsik" else [1.0]) for seed in given.seeds]
    runs = [case for case in runs if table.lacks(given.task, *case, given.steps)]
    if not runs:
        return print("all rows are there")
    estimate(given, x, y, runs)
    for case in [] if given.only_estimate else runs:
        table.lacks(given.task, *case, given.steps)
        row = trained(given.task, x, y, *case, given.steps)
        table.append((given.task, *case, given.steps, *row))
        print(*case, *(f"{value:.3g}" for value in row), flush=True)


def folds_of(points, folds=5):
    """Which fold each initialisation is in: all seeds of one are together."""
    names = sorted(set(points))
    place = dict(zip(names, np.random.default_rng(1).permutation(len(names)) % folds))
    return np.array([place[point] for point in points])


def predictions(features, loss, folds, degree=2):
    """Of each row by a polynomial that was fitted without its fold."""
    from sklearn.linear_model import LinearRegression
    from sklearn.preprocessing import PolynomialFeatures
    terms, found = PolynomialFeatures(degree).fit_transform(features), np.empty(len(loss))
    for fold in np.unique(folds):
        away = folds == fold
        found[away] = LinearRegression().fit(terms[~away], loss[~away]).predict(terms[away])
    return found


def exponent_predictions(lambda_a, lambda_g, loss, folds, classes):
    """The predictor of the paper, fitted without the fold."""
    found = np.empty(len(loss))
    for fold in np.unique(folds):
        away = folds == fold
        fit = propagation.fit_losses(lambda_a[~away], lambda_g[~away], loss[~away], classes=classes, bootstrap=2)
        found[away] = np.minimum(fit.bias + np.maximum(fit.weight_a * abs(lambda_a[away]), fit.weight_g * abs(lambda_g[away])),
                                 np.log(classes))
    return found


def summary():
    """Out of sample, by leaving out initialisations: errors over seeds of the exponents' predictor and of baselines."""
    rows = [row for row in rows_of(NAME) if row["kind"] == "cowsik"]
    for task in sorted({row["task"] for row in rows}):
        chosen = [row for row in rows if row["task"] == task]
        column = lambda name: np.array([float(row[name]) for row in chosen])
        classes = 16 if task == "copy" else 10
        loss, seeds = np.minimum(column("loss"), np.log(classes)), column("seed")
        folds = folds_of([(row["alpha"], row["sigma_w"], row["depth"], row["width"]) for row in chosen])
        alpha, gain, depth = column("alpha"), column("sigma_w"), column("depth")
        lambda_a, lambda_g = column("lambda_a"), column("lambda_g")
        columns = {"exponents, the paper's predictor": exponent_predictions(lambda_a, lambda_g, loss, folds, classes),
                   "exponents and depth, quadratic": predictions(np.c_[lambda_a, lambda_g, depth], loss, folds),
                   "alpha alone": predictions(alpha[:, None], loss, folds),
                   "depth alone": predictions(depth[:, None], loss, folds),
                   "alpha and depth": predictions(np.c_[alpha, depth], loss, folds),
                   "alpha, sigma_w and depth": predictions(np.c_[alpha, gain, depth], loss, folds)}
        print(f"| {task}: {len(chosen)} networks, {len(set(seeds))} seeds | error | explained |\n|---|---|---|")
        for name, found in columns.items():
            errors = np.array([np.sqrt(((found - loss)[seeds == seed]**2).mean()) for seed in sorted(set(seeds))])
            explained = np.array([1 - ((found - loss)[seeds == seed]**2).sum() / ((loss - loss[seeds == seed].mean())[seeds == seed]**2).sum()
                                  for seed in sorted(set(seeds))])
            cell = lambda values: f"{values.mean():.3f} ± {values.std(ddof=1) / np.sqrt(len(values)):.3f}"
            print(f"| {name} | {cell(errors)} | {cell(explained)} |")


def numbers(kind):
    return lambda text: [kind(part) for part in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "summary"))
    parser.add_argument("--task", choices=TASKS, default="copy")
    parser.add_argument("--data", help="folder of the files of mnist or cifar10")
    parser.add_argument("--kinds", type=numbers(str), default=["cowsik"])
    parser.add_argument("--alphas", type=numbers(float), default=[0.1, 0.3, 0.5, 0.7])
    parser.add_argument("--sigmas", type=numbers(float), default=[1.0, 2.0, 3.0], help="gains of cowsik")
    parser.add_argument("--depths", type=numbers(int), default=[8, 16])
    parser.add_argument("--widths", type=numbers(int), default=[32])
    parser.add_argument("--seeds", type=numbers(int), default=[1, 2, 3])
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--only-estimate", action="store_true")
    given = parser.parse_args()
    if unknown := set(given.kinds) - set(KINDS):
        parser.error(f"--kinds: expected some of {', '.join(KINDS)}, got {', '.join(sorted(unknown))}")
    run(given) if given.what == "run" else summary()


if __name__ == "__main__":
    main()
