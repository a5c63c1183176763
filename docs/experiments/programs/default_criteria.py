"""Which criterion should choose the regulariser where nobody says? Ten small problems of the kinds that people bring.

    python default_criteria.py run [--seeds 10] [--device cpu] [--minutes M] [--estimate]
    python default_criteria.py summary

For every problem, seed and criterion: accuracy or root mean squared error over the deviation of the targets, negative log
density of a test observation, expected calibration error. `mse`, `accuracy` and `nlpd` choose on a fifth of the training data,
which are then trained on as well. The base rate predicts the frequencies of the training classes, or their mean and
variance. Appends a row a case to docs/experiments/data/default_criteria.csv. Problems that a device cannot compute are named
and left out. Cost: two minutes of one core."""

import argparse
import sys
import time
import warnings

import numpy as np
import widelimit
from widelimit import layers

from computing import TOO_LONG, UNABLE, Computer, add_arguments, described, leave
from tables import EXPERIMENTS, Table, mean_and_error, rows_of, shows

PAGE = EXPERIMENTS.parent / "inference.md"

CRITERIA = ("loo", "evidence", "mse", "accuracy", "nlpd")


def dense_network():
    hidden = [layers.dense(2, 0.1), layers.relu()]
    return widelimit.Network([*hidden, *hidden, layers.dense(1, 0.1)])


def two_moons(random, n):
    angle, label = random.uniform(0, np.pi, n), random.integers(0, 2, n)
    x = np.stack([np.cos(angle), np.sin(angle)], 1) * np.where(label, 1, -1)[:, None] + np.where(label, 0.5, -0.5)[:, None]
    return x + 0.35 * random.normal(size=x.shape), label


def three_classes(random, n):
    label = random.integers(0, 3, n)
    return np.eye(3, 6)[label] * 1.5 + random.normal(size=(n, 6)), label


def rare_class(random, n):
    x = random.normal(size=(n, 4))
    score = x[:, 0] + 0.7 * random.normal(size=n)
    label = (score > np.quantile(score, 0.95)).astype(int)
    return x, label


def pure_noise(random, n):
    return random.normal(size=(n, 4)), random.integers(0, 2, n)


def noisy_sine(random, n):
    x = random.uniform(-3, 3, size=(n, 1))
    return x, 10 + np.sin(2 * x) + 0.3 * random.normal(size=(n, 1))


def heteroscedastic(random, n):
    x = random.uniform(-2, 2, size=(n, 2))
    noise = np.stack([0.05 + 0.3 * np.abs(x[:, 0]), 50 * np.ones(n)], 1) * random.normal(size=(n, 2))
    return x, np.stack([np.sin(x[:, 0]) * x[:, 1], 20 * x[:, 1]], 1) + noise


def smooth_table(random, n):
    x = random.normal(size=(n, 5))
    return x, (x[:, :1] * x[:, 1:2] + np.sin(x[:, 2:3]) + 0.02 * random.normal(size=(n, 1)))


def images(random, n):
    label = random.integers(0, 3, n)
    x = 0.7 * random.normal(size=(n, 8, 8, 1))
    for i, c in enumerate(label):
        row, column = random.integers(0, 5, 2)
        stroke = np.zeros((4, 4))
        stroke[[slice(None), 1, np.arange(4)][c], [1, slice(None), np.arange(4)][c]] = 2
        x[i, row:row + 4, column:column + 4, 0] += stroke
    return x, label


def reviews(random, n):
    words = np.random.default_rng(7).normal(size=(60, 8))
    tone = np.random.default_rng(8).normal(size=60)
    x, label = [], []
    for _ in range(n):
        chosen = random.integers(0, 60, random.integers(5, 20))
        x.append(words[chosen])
        label.append(int(tone[chosen].mean() + 0.1 * random.normal() > 0))
    return x, np.array(label)


def sensors(random, n):
    """Numbers with heavy tails."""
    x = random.normal(size=(n, 3))
    return x, x[:, :1] ** 2 - x[:, 1:2] + 0.3 * random.standard_t(3, size=(n, 1))


def image_network():
    return widelimit.Network([layers.conv([3, 3], weight_variance=2), layers.relu(), layers.conv([3, 3], weight_variance=2),
                              layers.relu(), layers.global_average_pool(), layers.dense()])


def review_network():
    return widelimit.Network([layers.conv([3], weight_variance=2), layers.relu(), layers.global_average_pool(), layers.dense()])


PROBLEMS = [("two moons, 2 classes", two_moons, 80, dense_network), ("table, 3 classes", three_classes, 90, dense_network),
            ("5 % positives", rare_class, 200, dense_network), ("labels that are noise", pure_noise, 80, dense_network),
            ("images, 3 classes", images, 90, image_network), ("reviews, 2 classes", reviews, 80, review_network),
            ("noisy sine", noisy_sine, 60, dense_network), ("noise that varies, 2 outputs", heteroscedastic, 80, dense_network),
            ("smooth table", smooth_table, 100, dense_network), ("heavy tails", sensors, 80, dense_network)]
TEST = 400


def part(x, rows):
    return [x[i] for i in rows] if isinstance(x, list) else x[rows]


def fitted(network, x, y, criterion, classes):
    n = len(y)
    if criterion in ("loo", "evidence"):
        return widelimit.Model.fit(network, x, y, labels=classes, criterion=criterion)
    held = n // 5
    train, validation = range(held, n), range(held)
    return widelimit.Model.fit(network, part(x, train), y[held:], validation=(part(x, validation), y[:held]), labels=classes,
                               criterion=criterion, refit=True)


def class_scores(model, x, y, known):
    names = [int(name) for name in model.class_names]
    probabilities = model.predict(x).class_probabilities
    chosen = np.array(names)[probabilities.argmax(1)]
    column = np.array([names.index(label) for label in y])
    log_loss = -np.log(np.maximum(probabilities[np.arange(len(y)), column], 1e-300)).mean()
    rates = np.array([(known == name).mean() for name in names])
    confidence, right = probabilities.max(1), chosen == y
    bins = np.minimum((confidence * 15).astype(int), 14)
    ece = sum(abs(right[bins == b].mean() - confidence[bins == b].mean()) * (bins == b).mean() for b in np.unique(bins))
    return {"error": 1 - right.mean(), "density": log_loss, "ece": ece, "base": -np.log(rates[column]).mean()}


def number_scores(model, x, y, known):
    found = model.predict(x)
    variance = found.standard_deviation**2 + found.noise_variance
    density = 0.5 * (np.log(2 * np.pi * variance) + (y - found.mean) ** 2 / variance).sum(1).mean()
    spread = known.var(0)
    base = 0.5 * (np.log(2 * np.pi * spread) + (y - known.mean(0)) ** 2 / spread).sum(1).mean()
    return {"error": np.sqrt((((y - found.mean) / known.std(0)) ** 2).mean()), "density": density, "ece": np.nan, "base": base}


def problem(name, seed):
    """Inputs, targets and the number of training observations; nothing where a class is missing among these."""
    _, make, n, _ = next(row for row in PROBLEMS if row[0] == name)
    x, y = make(np.random.default_rng(seed), n + TEST)
    return None if y.ndim == 1 and len(np.unique(y[n // 5:n])) < len(np.unique(y)) else (x, y, n)


def scores(network, data, criterion):
    x, y, n = data
    model = fitted(network(), part(x, range(n)), y[:n], criterion, y.ndim == 1)
    return (class_scores if y.ndim == 1 else number_scores)(model, part(x, range(n, n + TEST)), y[n:], y[:n])


def cases(table, seeds):
    """(problem, network, seed, data, criterion) of every case that is missing."""
    for name, _, _, network in PROBLEMS:
        for seed in range(seeds):
            data = problem(name, seed)
            if data is not None:
                for criterion in CRITERIA:
                    if (criterion != "accuracy" or data[1].ndim == 1) and table.lacks(name, seed, criterion):
                        yield name, network, seed, data, criterion


def begin(computer, missing):
    """Names of problems that the device cannot compute; says how long the others will take, from one case of each."""
    seconds, unable = 0, set()
    for name in dict.fromkeys(case[0] for case in missing):
        mine = [case for case in missing if case[0] == name]
        started = time.monotonic()
        try:
            scores(*(mine[0][k] for k in (1, 3, 4)))
        except widelimit.Error as error:
            if not computer.on_device:
                raise
            unable.add(name)
            print(f"{name}: cannot be computed on {computer.machine}; no rows. {error}", file=sys.stderr)
        seconds += 0 if name in unable else (time.monotonic() - started) * len(mine)
    count = sum(case[0] not in unable for case in missing)
    print(f"{count} cases, about {described(seconds)} on {computer.machine}", file=sys.stderr)
    if computer.end is not None and time.monotonic() + seconds > computer.end:
        leave(TOO_LONG, "there is no time for them")
    return unable


def run(options):
    computer = Computer(options)
    table = Table("default_criteria", ("problem", "seed", "criterion"), ("error", "density", "ece", "base"), "seeds 0, 1, ...", computer)
    warnings.simplefilter("error")
    with widelimit.device(computer.device):
        missing = list(cases(table, options.seeds))
        unable = begin(computer, missing)
        for name, network, seed, data, criterion in [] if computer.only_estimate else missing:
            if name not in unable:
                table.lacks(name, seed, criterion)
                table.append((name, seed, criterion, *map(float, scores(network, data, criterion).values())))
    if unable:
        raise SystemExit(UNABLE)


def summary():
    """The table of docs/inference.md: mean density, and differences to loo with their standard errors over seeds."""
    found = rows_of("default_criteria")
    yield "| problem | base rate | `loo` | `evidence` | `mse` | `accuracy` | `nlpd` |"
    yield "|---|---|---|---|---|---|---|"
    for name, *_ in PROBLEMS:
        densities = {criterion: {row["seed"]: float(row["density"]) for row in found if (row["problem"], row["criterion"]) == (name, criterion)}
                     for criterion in CRITERIA}
        cells = [f"{np.mean([float(row['base']) for row in found if row['problem'] == name]):.3f}"]
        for criterion, mine in densities.items():
            difference, error = mean_and_error([mine[seed] - densities["loo"][seed] for seed in mine]) if mine else (0, 0)
            cells.append("-" if not mine else f"{np.mean(list(mine.values())):.3f}" + ("" if criterion == "loo" else
                         f" ({difference:+.3f} ± {error:.3f})"))
        yield f"| {name} | {' | '.join(cells)} |"


SUMMARIES = {"default_criteria": summary}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "summary"))
    parser.add_argument("--seeds", type=int, default=10)
    add_arguments(parser)
    options = parser.parse_args()
    if not shows(options.what, SUMMARIES):
        run(options)


if __name__ == "__main__":
    main()
