#!/usr/bin/env python3
"""Strong scaling over ranks on one machine: one Gram matrix into a store, by threads and by 1, 2, 4, 8 ranks.

    bench/rank_scaling.py build/release FOLDER
    bench/rank_scaling.py build/release FOLDER --inputs 500 --repeat 1        a try

The yardstick is `widelimit gram` with a thread for each core. Ranks share the cores; more ranks than cores take one thread
each. Runs take turns, and the best of --repeat counts, as other programs come and go. Every store must have the same bits.
Prints the table of docs/scale.md, and the load of the machine before each turn: above 0.3 the numbers mean little.
"""

import argparse
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import time

import numpy as np

# More ranks than cores, as root in a container.
MPI_ENVIRONMENT = {
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}


def chunk_sum(store):
    """SHA-256 over the tiles of all kernels, in the order of their names."""
    digest = hashlib.sha256()
    chunks = sorted(file for file in store.glob("*/c/*/*") if file.name.isdigit())
    if not chunks:
        sys.exit(f"{store}: no tiles were written")
    for file in chunks:
        digest.update(str(file.relative_to(store)).encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


def command_of(ranks, cores, gram, build):
    """`ranks` None: threads alone."""
    if ranks is None:
        return [str(build / "widelimit"), *gram, "--threads", str(cores)]
    threads = max(1, cores // ranks)
    return ["mpirun", "-n", str(ranks), str(build / "widelimit-mpi"), *gram, "--threads", str(threads)]


def run(command, store):
    """Seconds, the start of the processes included."""
    shutil.rmtree(store, ignore_errors=True)
    begin = time.perf_counter()
    result = subprocess.run(command + ["--store", str(store)], env={**os.environ, **MPI_ENVIRONMENT},
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    seconds = time.perf_counter() - begin
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {result.returncode}\n{result.stderr}")
    return seconds


def print_table(best, cores):
    alone = best[None]
    print(f"\n| on {cores} cores | seconds | against {cores} threads |\n|---|---|---|")
    for ranks, seconds in best.items():
        name = f"{cores} threads" if ranks is None else f"{ranks} rank{'s' if ranks > 1 else ''}"
        print(f"| {name} | {seconds:.1f} | {100 * (seconds / alone - 1):+.1f} % |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="folder of widelimit and widelimit-mpi")
    parser.add_argument("folder", type=pathlib.Path, help="for inputs and stores; stores are removed again")
    parser.add_argument("--network", default="conv-gap")
    parser.add_argument("--inputs", type=int, default=3000)
    parser.add_argument("--side", type=int, default=8, help="of the images, of 3 channels")
    parser.add_argument("--tile", type=int, default=128)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    inputs = options.folder / "inputs.npy"
    shape = (options.inputs, options.side, options.side, 3)
    np.save(inputs, np.random.default_rng(0).standard_normal(shape, dtype=np.float32))
    gram = ["gram", options.network, "--x", str(inputs), "--tile", str(options.tile)]
    store = options.folder / "store"
    best, sums = {}, set()
    for turn in range(options.repeat):
        print(f"turn {turn + 1}, load {os.getloadavg()[0]:.2f}:", end="", flush=True)
        for ranks in [None, *options.ranks]:
            seconds = run(command_of(ranks, options.cores, gram, options.build), store)
            best[ranks] = min(seconds, best.get(ranks, seconds))
            sums.add(chunk_sum(store))
            print(f" {seconds:.1f}", end="", flush=True)
        print()
    shutil.rmtree(store)
    inputs.unlink()
    print_table(best, options.cores)
    if len(sums) != 1:
        sys.exit(f"expected the same bits from all runs, got {len(sums)} different stores")


if __name__ == "__main__":
    main()
