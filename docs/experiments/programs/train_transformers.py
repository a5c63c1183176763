"""Transformers of five kinds, trained at many initialisations by JAX and Optax (pip install optax), on a GPU where JAX has one.

    python train_transformers.py [--task copy] [--data FOLDER] [--kinds cowsik] [--alphas .1,.3,.5] [--sigmas 1,2,3] [--depths 8,16]
                                 [--widths 32] [--seeds 1,2,3] [--steps 150] [--minutes 30] [--only-estimate]

It times steps of every kind, depth and width, prints how long the whole will take, and trains. Each network is a row of
data/trained_transformers.csv; runs that have one are left out, so that a command that was stopped goes on. Initialisations come in
random order with all their seeds, so that what a stop leaves is a sample of the grid. trained_transformers.py makes the tables.

kinds   cowsik    blocks of Cowsik et al. (arXiv:2403.02579): norms before both branches, strength alpha, gain sigma_w
        shaped    Noci et al. (arXiv:2306.17759): attention g1 1 + softmax - g2 1 1^T / n, shaped ReLU; g1, g2 and gamma, which begins
                  at alpha, are learned in every block; scores are divided by the width
        shaped_start  the same with scores over sqrt(width) and another 1/sqrt(width) in the initial queries and keys (its appendix D)
        unshaped  the same with softmax alone and ReLU, nothing but weights learned
        pre_ln, post_ln  unshaped with layer norms before the branches or after the sums, skip connections of 1 and branches of
                  alpha / sqrt(1 - alpha^2), which is 1 at alpha = .7071
        sigma_w is that of cowsik; the others have the gain that keeps squared norms, and 1 in this column
tasks   copy      made here: 8 random tokens of 16 and again the first 7; the second time each next token is to be told (causal mask)
        mnist     the t10k files in 16 patches
        cifar10   the binary files in 64 patches of 4 x 4 pixels
        reviews   a folder of aclImdb's layout, as words among the 1,000 most frequent, the first 32 of each review
        4,000 inputs to learn and 500 to judge each
"""
import argparse
import functools
import pathlib
import re
import time
from collections import Counter

import numpy as np
from widelimit import propagation

from tables import Table

KINDS = ("cowsik", "shaped", "shaped_start", "unshaped", "pre_ln", "post_ln")
NAME = "trained_transformers"
KEYS = ("task", "kind", "alpha", "sigma_w", "depth", "width", "seed", "steps")
COLUMNS = ("loss", "accuracy", "entropy_before", "entropy_halfway", "entropy_after", "log_gap_before", "log_gradient_before",
           "lambda_a", "lambda_g")
TRAIN, TEST, BATCH, RATE = 4000, 500, 32, 1e-3
FIRST_COPIED = 7  # the position whose next token is the first that can be told
WORDS, LENGTH = 1000, 32


def patches(images, side):
    """[n, height, width, channels] in squares, [n, patches, numbers], each image centred and of deviation 1."""
    n, height, width, channels = images.shape
    cut = images.reshape(n, height // side, side, width // side, side, channels).transpose(0, 1, 3, 2, 4, 5)
    rows = cut.reshape(n, -1, side * side * channels).astype(np.float32)
    return (rows - rows.mean((1, 2), keepdims=True)) / rows.std((1, 2), keepdims=True)


def copies(random, _):
    first = random.integers(16, size=(TRAIN + TEST, 8))
    tokens = np.concatenate([first, first[:, :7]], 1)
    return np.eye(16, dtype=np.float32)[tokens], first


def mnist(random, folder):
    images = np.frombuffer((folder / "t10k-images-idx3-ubyte").read_bytes(), np.uint8, offset=16).reshape(-1, 28, 28, 1)
    labels = np.frombuffer((folder / "t10k-labels-idx1-ubyte").read_bytes(), np.uint8, offset=8)
    order = chosen(random, len(images), folder)
    return patches(images[order], 7), labels[order].astype(np.int64)


def cifar10(random, folder):
    records = np.concatenate([np.frombuffer(path.read_bytes(), np.uint8).reshape(-1, 3073) for path in sorted(folder.glob("*batch*.bin"))])
    order = chosen(random, len(records), folder)
    images = records[order, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return patches(images, 4), records[order, 0].astype(np.int64)


def reviews(random, folder):
    """One-hot words of the most frequent ones, zeros for others and behind the end."""
    files = [(path, label) for label, part in enumerate(("neg", "pos")) for path in sorted(folder.glob(f"*/{part}/*.txt"))]
    order = chosen(random, len(files), folder)
    texts = [re.findall(r"[a-z']+", files[k][0].read_text(encoding="utf-8").lower().replace("<br />", " ")) for k in order]
    frequent = Counter(word for text in texts[:TRAIN] for word in text).most_common(WORDS)
    place = {word: k for k, (word, _) in enumerate(frequent)}
    x = np.zeros((len(texts), LENGTH, WORDS), np.float32)
    for row, text in zip(x, texts):
        for position, word in enumerate(text[:LENGTH]):
            if word in place:
                row[position, place[word]] = 1
    return x, np.array([files[k][1] for k in order])


TASKS = {"copy": copies, "mnist": mnist, "cifar10": cifar10, "reviews": reviews}


def chosen(random, count, folder):
    if count < TRAIN + TEST:
        raise SystemExit(f"--data: expected at least {TRAIN + TEST} inputs in {folder}, found {count}")
    return random.permutation(count)[:TRAIN + TEST]


def inputs_of(task, folder):
    """(x [n, tokens, features], y) of all inputs, in an order of seed 0; y are classes, [n] or, of copies, [n, positions]."""
    if folder is None and task != "copy":
        raise SystemExit(f"--data: {task} needs the folder with its files")
    return TASKS[task](np.random.default_rng(0), pathlib.Path(folder or "."))


def start_covariance(x):
    """V of the tokens of one input, [tokens, features], before the blocks, in the limit of the width: embedding and positions have equal
    strength, and tokens are divided by their norms."""
    v = x @ x.T / x.shape[1] + np.eye(len(x))
    norm = np.sqrt(np.diag(v))
    return v / norm / norm[:, None]


def branch_gain(kind, sigma_w, width):
    """Of the matrices before nonlinearities."""
    if kind == "cowsik":
        return sigma_w
    return np.sqrt(2 / (1 + negative_slope(kind, width) ** 2))


def is_shaped(kind):
    return kind in ("shaped", "shaped_start")


def negative_slope(kind, width):
    """Of the ReLU: that of shaped networks is near the identity."""
    return 1 - 1 / np.sqrt(width) if is_shaped(kind) else 0.0


def made_parameters(jax, kind, sigma_w, depth, width, x, classes, seed, alpha):
    """Weights of a network: those of all blocks together, and of what stands before and behind them."""
    keys = iter(jax.random.split(jax.random.PRNGKey(seed), 16))

    def gaussian(*shape, gain=1.0):
        return gain * jax.random.normal(next(keys), shape) / np.sqrt(shape[-1])

    square, gain = (depth, width, width), branch_gain(kind, sigma_w, width)
    blocks = {name: gaussian(*square) for name in ("query", "key", "value", "out")} | {"in": gaussian(*square, gain=gain)}
    if kind == "cowsik":
        blocks["hidden"] = gaussian(*square, gain=gain)
    if kind == "shaped_start":
        blocks |= {name: blocks[name] / width**0.25 for name in ("query", "key")}
    if is_shaped(kind):
        blocks |= {name: np.full(depth, value, np.float32) for name, value in (("g1", 1), ("g2", 1), ("gamma", alpha))}
    _, tokens, features = x.shape
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
        # The shaped softmax is near the mean: its temperature is that of the paper, sqrt(width) once more, or queries and keys begin so.
        scores = np_.where(seen > 0, scores / (np.sqrt(width) if kind == "shaped" else 1), -1e30)
        a = jax.nn.softmax(scores)
        entropy = -np_.where(a > 0, a * np_.log(np_.where(a > 0, a, 1)), 0).sum(-1).mean()
        if is_shaped(kind):
            a = a + weights["g1"] * np_.eye(n) - weights["g2"] * seen / seen.sum(-1, keepdims=True)
        return a @ (x @ weights["value"].T), entropy

    def mlp(weights, x):
        inner = x @ weights["in"].T
        if kind == "cowsik":
            return np_.tanh(np_.tanh(inner) @ weights["hidden"].T) @ weights["out"].T
        return np_.where(inner > 0, inner, negative_slope(kind, x.shape[-1]) * inner) @ weights["out"].T

    def block(x, weights, alpha):
        before = rms if kind == "cowsik" else layer_norm if kind == "pre_ln" else (lambda y: y)
        after = layer_norm if kind == "post_ln" else (lambda y: y)
        if is_shaped(kind):
            # A learned gamma stays below 1, where the skip connection would end and its derivative be infinite.
            alpha = np_.clip(weights["gamma"], -0.999, 0.999)
        skip, branch = np_.sqrt(1 - alpha**2), alpha
        if kind.endswith("_ln"):
            skip, branch = 1.0, branch / skip
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
    """(optimizer, step, judge, at_start), each compiled once for a shape: alpha is a number of the run."""
    import jax
    import optax
    np_, (embed, blocks), adam = jax.numpy, network_of(jax, kind, causal), optax.adam(RATE)

    def told(parameters, x, alpha):
        tokens, entropies = blocks(parameters, embed(parameters, x), alpha)
        tokens = tokens / np_.sqrt((tokens * tokens).mean(-1, keepdims=True) + 1e-12)
        # Of copies an answer at each of the last tokens, of others one.
        seen = tokens[:, FIRST_COPIED:] if causal else tokens.mean(1)
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

    def gap(tokens):
        """Mean of 1 - cosine over pairs of tokens, from differences of unit vectors, which keep small gaps."""
        unit = tokens / np_.sqrt((tokens * tokens).sum(-1, keepdims=True) + 1e-30)
        differences = unit[..., :, None, :] - unit[..., None, :, :]
        return (differences**2).sum(-1).mean() / 2

    @jax.jit
    def at_start(parameters, x, alpha, key):
        """Logarithms of the growth, from the first block to behind the last, of gaps between tokens, and of the squared gradient of a
        random projection of the output."""
        start = embed(parameters, x)
        direction = jax.random.normal(key, start.shape)
        output, pull = jax.vjp(lambda tokens: blocks(parameters, tokens, alpha)[0], start)
        gradient, = pull(direction)
        return np_.log(gap(output) / gap(start)), np_.log((gradient**2).sum() / (direction**2).sum())

    return adam, step, judge, at_start


def exponents_of(kind, tokens, alpha, sigma_w, depth, causal):
    """(ln(1 + lambda_a), lambda_g) of the limit, which is that of one kind."""
    if kind != "cowsik":
        return float("nan"), float("nan")
    network = propagation.Parameters(tokens=tokens, alpha_A=alpha, alpha_M=alpha, sigma_w=sigma_w)
    found = propagation.exponents(network, depth, causal=causal)
    return found.lambda_a_log, found.lambda_g


def trained(x, y, case, steps, causal):
    """The columns of one run."""
    import jax
    kind, alpha, sigma_w, depth, width, seed = case
    adam, step, judge, at_start = trainer(kind, causal)
    parameters = made_parameters(jax, kind, sigma_w, depth, width, x, int(y.max()) + 1, seed, alpha)
    state, random, halfway = adam.init(parameters), np.random.default_rng(seed), float("nan")
    start = map(float, at_start(parameters, x[:8], alpha, jax.random.PRNGKey(seed)))
    before = float(judge(parameters, x[TRAIN:], y[TRAIN:], alpha)[2])
    for done in range(steps):
        if done == steps // 2:
            halfway = float(judge(parameters, x[TRAIN:], y[TRAIN:], alpha)[2])
        rows = random.integers(TRAIN, size=BATCH)
        parameters, state = step(parameters, state, x[rows], y[rows], alpha)
    loss, accuracy, after = map(float, judge(parameters, x[TRAIN:], y[TRAIN:], alpha))
    return loss, accuracy, before, halfway, after, *start, *exponents_of(kind, x.shape[1], alpha, sigma_w, depth, causal)


def estimate(runs, x, y, steps, causal):
    """Prints how long the runs will take: up to ten steps of every kind, depth and width, timed behind their compilation."""
    import jax
    total = 0.0
    for kind, depth, width in sorted({(kind, depth, width) for kind, _, _, depth, width, _ in runs}):
        adam, step, *_ = trainer(kind, causal)
        parameters = made_parameters(jax, kind, 1.0, depth, width, x, int(y.max()) + 1, 0, 0.5)
        state = adam.init(parameters)
        parameters, state = step(parameters, state, x[:BATCH], y[:BATCH], 0.5)
        jax.block_until_ready(parameters)
        begin, done = time.perf_counter(), 0
        while done < 10 and (done == 0 or time.perf_counter() - begin < 2):
            parameters, state = step(parameters, state, x[:BATCH], y[:BATCH], 0.5)
            jax.block_until_ready(parameters)
            done += 1
        each = (time.perf_counter() - begin) / done * steps
        count = sum(run[0] == kind and run[3:5] == (depth, width) for run in runs)
        print(f"{kind}, {depth} blocks of width {width}: {count} runs of {each:.1f} s", flush=True)
        total += count * each
    print(f"{len(runs)} runs: about {total / 60:.1f} minutes", flush=True)


def cases(given):
    """(kind, alpha, sigma_w, depth, width, seed) of the grid, initialisations in random order, their seeds together."""
    points = [(kind, alpha, sigma_w, depth, width) for kind in given.kinds for depth in given.depths for width in given.widths
              for alpha in given.alphas for sigma_w in (given.sigmas if kind == "cowsik" else [1.0])]
    return [(*points[k], seed) for k in np.random.default_rng(0).permutation(len(points)) for seed in given.seeds]


def run(given):
    x, y = inputs_of(given.task, given.data)
    table, causal, begin = Table(NAME, KEYS, COLUMNS, "seeds are a column"), given.task == "copy", time.perf_counter()
    runs = [case for case in cases(given) if table.lacks(given.task, *case, given.steps)]
    if not runs:
        return print("all rows are there")
    estimate(runs, x, y, given.steps, causal)
    for case in [] if given.only_estimate else runs:
        if given.minutes is not None and time.perf_counter() - begin > 60 * given.minutes:
            return print("the time is over: the same command goes on")
        table.lacks(given.task, *case, given.steps)
        row = trained(x, y, case, given.steps, causal)
        table.append((given.task, *case, given.steps, *row))
        print(*case, *(f"{value:.3g}" for value in row), flush=True)


def numbers(kind):
    return lambda text: [kind(part) for part in text.split(",")]


def strength(text):
    """A number in (0, 1): skip connections have sqrt(1 - alpha^2)."""
    if not 0 < float(text) < 1:
        raise argparse.ArgumentTypeError(f"expected numbers between 0 and 1, got {text}")
    return float(text)


def strengths(text):
    return [strength(part) for part in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", choices=TASKS, default="copy")
    parser.add_argument("--data", help="folder of the files of mnist, cifar10 or reviews")
    parser.add_argument("--kinds", type=numbers(str), default=["cowsik"], help="of " + ", ".join(KINDS))
    parser.add_argument("--alphas", type=strengths, default=[0.1, 0.3, 0.5, 0.7])
    parser.add_argument("--sigmas", type=numbers(float), default=[1.0, 2.0, 3.0], help="gains of cowsik")
    parser.add_argument("--depths", type=numbers(int), default=[8, 16])
    parser.add_argument("--widths", type=numbers(int), default=[32])
    parser.add_argument("--seeds", type=numbers(int), default=[1, 2, 3])
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--minutes", type=float, help="no run begins later than this")
    parser.add_argument("--only-estimate", action="store_true")
    given = parser.parse_args()
    if unknown := set(given.kinds) - set(KINDS):
        parser.error(f"--kinds: expected some of {', '.join(KINDS)}, got {', '.join(sorted(unknown))}")
    run(given)


if __name__ == "__main__":
    main()
