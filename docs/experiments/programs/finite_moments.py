"""Moments of the last hidden layer and of the NTK of finite ReLU networks, beside Hanin and Nica (arXiv:1909.05989): they grow
with beta, the sum of 1 / width.

    python finite_moments.py compute [NETWORKS]
    python finite_moments.py summary

compute   the second moment of the mean square of the last hidden layer and of the NTK of one input, over the square of the mean, of NETWORKS
          [12,000] networks of each width and depth, without biases; appends a row a case to docs/experiments/data/finite_moments.csv
summary   prints the table of docs/experiments/finite-networks.md"""
import sys

import numpy as np
from widelimit import Network, layers
from widelimit.finite import FiniteNetwork

from tables import EXPERIMENTS, Table, brief, mean_and_error, point, rows_of, shows

PAGE = EXPERIMENTS / "finite-networks.md"
CASES = ((64, 4), (64, 8), (32, 8), (64, 16), (32, 16))  # width, hidden layers


def ratio_and_error(values, parts=20):
    """E k^2 / (E k)^2, with a standard error over parts of the networks."""
    def ratio(of):
        return (of**2).mean() / of.mean() ** 2

    return float(ratio(values)), float(mean_and_error([ratio(part) for part in np.array_split(values, parts)])[1])


def kernels(width, depth, networks):
    """The mean square of the last hidden layer and the NTK of one input, [2, networks]."""
    hidden = [layer for _ in range(depth) for layer in (layers.dense(2), layers.relu())]
    cut, whole, x = Network(hidden), Network([*hidden, layers.dense()]), np.ones((1, width))

    def drawn(network, outputs, seed):
        return FiniteNetwork(network, (), width, hidden=width, outputs=outputs, seed=seed, threads=1)

    return np.array([(drawn(cut, width, seed).nngp(x)[0, 0], drawn(whole, 1, seed).ntk(x)[0, 0]) for seed in range(networks)]).T


def compute(networks):
    table = Table("finite_moments", ("width", "depth"), ("networks", "hidden", "hidden_error", "ntk", "ntk_error"),
                  "seeds 0, 1, ...; ReLU, weight variance 2, no biases; second moment over the squared mean; errors over 20 parts")
    for width, depth in CASES:
        if table.lacks(width, depth):
            hidden, ntk = map(ratio_and_error, kernels(width, depth, networks))
            table.append((width, depth, networks, *hidden, *ntk))


def summary():
    yield "| width | hidden layers | beta | networks | last hidden layer | exact, (1 + 5 / width)^layers | NTK | exp(5 beta) |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in rows_of("finite_moments"):
        width, depth = int(row["width"]), int(row["depth"])
        hidden, ntk = (brief(float(row[name]), float(row[f"{name}_error"])) for name in ("hidden", "ntk"))
        yield (f"| {width} | {depth} | {point(depth / width, 4)} | {int(row['networks']):,} | {hidden} | {(1 + 5 / width) ** depth:.3f} | {ntk} | "
               f"{np.exp(5 * depth / width):.3f} |")


SUMMARIES = {"finite_moments": summary}


def main():
    if sys.argv[1:] in (["-h"], ["--help"]):
        print(__doc__)
    elif not shows(" ".join(sys.argv[1:]), SUMMARIES):
        compute(int(sys.argv[2]) if len(sys.argv) > 2 else 12_000)


if __name__ == "__main__":
    main()
