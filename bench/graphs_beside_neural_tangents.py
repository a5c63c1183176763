"""Kernels of graphs beside neural-tangents' Aggregate at the same shapes: three blocks of aggregation, dense layer and ReLU,
a sum over nodes, NNGP and NTK; graphs of 30 nodes and 60 undirected edges. Microseconds of a core a pair, best of some runs.

    python bench/graphs_beside_neural_tangents.py [COUNT] [--nodes 30] [--precision float32] [--peer PYTHON]

It runs where this library's package is installed; with --peer, a Python that has neural-tangents 0.6.5, it calls itself
there too and compares the kernels.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np


def arguments_of(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", type=int, nargs="?", default=16)
    parser.add_argument("--nodes", type=int, default=30)
    parser.add_argument("--channels", type=int, default=8)
    parser.add_argument("--precision", choices=["float32", "float64"], default="float32")
    parser.add_argument("--peer", help="a Python that has neural-tangents")
    parser.add_argument("--as", dest="package", choices=["widelimit", "neural_tangents"], default="widelimit")
    parser.add_argument("--kernels", help="where to leave both kernels")
    return parser.parse_args(argv)


def graphs(arguments):
    """Features [n, nodes, channels] and symmetric adjacency matrices with twice as many edges as nodes."""
    random = np.random.default_rng(1)
    features = random.standard_normal((arguments.count, arguments.nodes, arguments.channels))
    patterns = np.zeros((arguments.count, arguments.nodes, arguments.nodes))
    above = np.triu_indices(arguments.nodes, 1)
    for pattern in patterns:
        chosen = random.choice(len(above[0]), 2 * arguments.nodes, replace=False)
        pattern[above[0][chosen], above[1][chosen]] = 1
        pattern += pattern.T
    return features.astype(arguments.precision), patterns.astype(arguments.precision)


def layers(stax):
    block = [stax.Aggregate(aggregate_axis=1, batch_axis=0, channel_axis=2), stax.Dense(1, 2**0.5, 0), stax.Relu()]
    return stax.serial(*3 * block, stax.GlobalSumPool(), stax.Dense(1))


def compiled(arguments):
    """A function of features and patterns that returns both kernels."""
    if arguments.package == "widelimit":
        from widelimit import stax

        kernel_fn = layers(stax)[2]
        return lambda x, pattern: kernel_fn(x, None, ("nngp", "ntk"), pattern=(pattern, pattern))
    import jax

    jax.config.update("jax_enable_x64", arguments.precision == "float64")
    from neural_tangents import stax

    kernel_fn = layers(stax)[2]
    kernel = jax.jit(lambda x, pattern: kernel_fn(x, None, ("nngp", "ntk"), pattern=(pattern, pattern)))

    def both(x, pattern):
        kernels = kernel(x, pattern)
        return type(kernels)(*map(np.asarray, kernels))

    return both


def measure(arguments):
    x, pattern = graphs(arguments)
    kernel = compiled(arguments)
    kernels = kernel(x, pattern)
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        kernel(x, pattern)
        best = min(best, time.process_time() - start)
    if arguments.kernels:
        np.savez(arguments.kernels, nngp=kernels.nngp, ntk=kernels.ntk)
    # Both compute a symmetric matrix: one of them a triangle of it.
    return {"seconds": best, "pairs": arguments.count * (arguments.count + 1) // 2}


def run(python, arguments, package, folder):
    """In a process of its own, which is given one core before anything is loaded."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu",
                   "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}
    command = ["taskset", "-c", str(min(os.sched_getaffinity(0))),
               python, os.path.abspath(__file__), str(arguments.count), "--nodes", str(arguments.nodes), "--channels",
               str(arguments.channels), "--precision", arguments.precision, "--as", package, "--kernels",
               os.path.join(folder, package + ".npz")]
    output = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(output.splitlines()[-1])


def main():
    arguments = arguments_of(sys.argv[1:])
    if arguments.kernels:
        print(json.dumps(measure(arguments)))
        return
    with tempfile.TemporaryDirectory() as folder:
        packages = {"widelimit": sys.executable}
        if arguments.peer:
            packages["neural_tangents"] = arguments.peer
        for package, python in packages.items():
            result = run(python, arguments, package, folder)
            print(f"{package}: {result['pairs']} pairs, {1e6 * result['seconds'] / result['pairs']:.4g} us a pair")
        if arguments.peer:
            ours, theirs = (np.load(os.path.join(folder, package + ".npz")) for package in packages)
            for kernel in ("nngp", "ntk"):
                error = np.linalg.norm(ours[kernel] - theirs[kernel]) / np.linalg.norm(theirs[kernel])
                print(f"{kernel}: relative difference {error:.2g}")


if __name__ == "__main__":
    main()
