#!/usr/bin/env python3
"""How long a Gram matrix takes on a cluster: the model of docs/scale.md, with its figures as options.

    bench/cluster_time.py
    bench/cluster_time.py --pair 6.0e-3 --tile 64 --bandwidth 2e9 --cores 128 1024
"""

import argparse
import math

# Seconds a pair and core (docs/performance.md), and the side of the tiles that the library chooses for it.
WORKLOADS = {
    "8 x conv, global pooling, 32 x 32": (6.0e-3, 64),
    "8 x conv, flattened, 32 x 32": (7.0e-6, 1024),
    "dense, depth 5": (1.3e-7, 2048),
}


def hours_text(seconds):
    if seconds >= 2 * 86400:
        return f"{seconds / 86400:.1f} days"
    if seconds >= 2 * 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.1f} min" if seconds >= 120 else f"{seconds:.1f} s"


def predict(pair, tile, cores, options):
    """Seconds in all, of computing alone, and tiles a rank."""
    across = math.ceil(options.n / tile)
    tiles = across * (across + 1) // 2
    ranks = max(1, cores // options.cores_of_rank)
    computing = pair * tile**2 / (min(cores, options.cores_of_rank) * options.efficiency)
    tile_bytes = options.kernels * 4 * tile**2
    # As fast as one rank writes, but all share the store.
    writing = tile_bytes / min(options.rank_bandwidth, options.bandwidth / ranks) + options.kernels * options.latency
    rounds = math.ceil(tiles / ranks)
    return rounds * (computing + writing), rounds * computing, rounds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=60_000)
    parser.add_argument("--kernels", type=int, default=2, help="NNGP and NTK, float")
    parser.add_argument("--pair", type=float, help="seconds a pair and core [those of three networks]")
    parser.add_argument("--tile", type=int, default=1024, help="inputs a side, with --pair")
    parser.add_argument("--cores", type=int, nargs="+", default=[2, 128, 1024])
    parser.add_argument("--cores-of-rank", type=int, default=8)
    parser.add_argument("--efficiency", type=float, default=0.97, help="of the cores of a rank")
    parser.add_argument("--bandwidth", type=float, default=2e9, help="bytes a second that the store takes from all")
    parser.add_argument("--rank-bandwidth", type=float, default=5e8, help="bytes a second that it takes from one rank")
    parser.add_argument("--latency", type=float, default=0.02, help="seconds to sync and rename a file")
    options = parser.parse_args()
    workloads = {"given": (options.pair, options.tile)} if options.pair else WORKLOADS
    print("| network | a pair and core | tile | cores | computing | with the store | tiles a rank |")
    print("|---|---|---|---|---|---|---|")
    for name, (pair, tile) in workloads.items():
        for cores in options.cores:
            seconds, computing, rounds = predict(pair, tile, cores, options)
            print(f"| {name} | {pair * 1e6:g} us | {tile} | {cores} | {hours_text(computing)} | "
                  f"{hours_text(seconds)} | {rounds} |")


if __name__ == "__main__":
    main()
