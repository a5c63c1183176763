"""Derivatives of kernels by both inputs beside JAX's reverse mode through neural-tangents: NNGP and NTK of two batches, all
cotangents 1. Processor seconds, best of some runs after the first, which compiles; and the peak memory of the process above
what it took before.

    python bench/derivatives_beside_neural_tangents.py [NETWORK...] [--count N] [--size PIXELS] [--peer PYTHON]

It runs where this library's package is installed; with --peer, a Python that has neural-tangents 0.6.5, it calls itself
there too, in a process a network, and compares the derivatives.
"""
import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np


def dense(stax):
    return stax.serial(*4 * [stax.Dense(1, 2**0.5, 0.1), stax.Relu()], stax.Dense(1))


def conv_gap(stax):
    return stax.serial(*8 * [stax.Conv(1, (3, 3), padding="SAME", W_std=2**0.5, b_std=0.1), stax.Relu()], stax.GlobalAvgPool(),
                       stax.Dense(1))


def attention(stax):
    return stax.serial(*2 * [stax.Conv(1, (3, 3), padding="SAME", W_std=2**0.5, b_std=0.1), stax.Relu()],
                       stax.GlobalSelfAttention(1, 1, 1, 1, linear_scaling=True, W_key_std=1, W_value_std=1, W_query_std=1, W_out_std=1,
                                                b_std=0.1),
                       stax.Flatten(), stax.Dense(1))


NETWORKS = {"dense": dense, "conv-gap": conv_gap, "attention": attention}


def arguments_of(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", choices=[[], *NETWORKS], metavar="NETWORK", help=", ".join(NETWORKS))
    parser.add_argument("--count", type=int, default=6, help="inputs a batch")
    parser.add_argument("--size", type=int, default=8, help="pixels a side")
    parser.add_argument("--peer", help="a Python that has neural-tangents")
    parser.add_argument("--as", dest="package", choices=["widelimit", "neural_tangents"], default="widelimit")
    parser.add_argument("--derivatives", help="where to leave them")
    return parser.parse_args(argv)


def batches(arguments, name):
    random = np.random.default_rng(1)
    shape = (arguments.count, 3 * arguments.size**2) if name == "dense" else (arguments.count, arguments.size, arguments.size, 3)
    return [random.standard_normal(shape).astype(np.float32) for _ in range(2)]


def computation(arguments, name):
    """A function of two batches that returns the derivatives by both."""
    ones = np.ones((arguments.count, arguments.count), np.float32)
    if arguments.package == "widelimit":
        from widelimit import stax

        kernel_fn = NETWORKS[name](stax)[2]
        return lambda x1, x2: kernel_fn.vjp(x1, x2, nngp=ones, ntk=ones)
    import jax
    from neural_tangents import stax

    kernel_fn = NETWORKS[name](stax)[2]

    def total(x1, x2):
        kernels = kernel_fn(x1, x2, ("nngp", "ntk"))
        return kernels.nngp.sum() + kernels.ntk.sum()

    compiled = jax.jit(jax.grad(total, argnums=(0, 1)))
    return lambda x1, x2: [np.asarray(gradient) for gradient in compiled(x1, x2)]


def peak_memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(arguments, name):
    derivatives = computation(arguments, name)
    x1, x2 = batches(arguments, name)
    # Neither libraries nor compilation for small inputs are what a call takes.
    before = peak_memory()
    results = derivatives(x1, x2)
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        derivatives(x1, x2)
        best = min(best, time.process_time() - start)
    if arguments.derivatives:
        np.savez(arguments.derivatives, *results)
    return {"seconds": best, "megabytes": peak_memory() - before}


def in_process(arguments, python, package, name, folder):
    """What another process measures, with its derivatives; None where it ended otherwise, as for want of memory."""
    file = os.path.join(folder, package + ".npz")
    ended = subprocess.run([python, __file__, name, "--as", package, "--count", str(arguments.count), "--size", str(arguments.size),
                            "--derivatives", file], stdout=subprocess.PIPE, check=False, text=True)
    if ended.returncode != 0:
        return None
    with np.load(file) as derivatives:
        return {**json.loads(ended.stdout.splitlines()[-1]), "derivatives": [derivatives[key] for key in derivatives.files]}


def beside(arguments, name):
    with tempfile.TemporaryDirectory() as folder:
        own = in_process(arguments, sys.executable, "widelimit", name, folder)
        print(f"{name:10} widelimit        {own['seconds']:9.4f} s  {own['megabytes']:8.0f} MB", flush=True)
        peer = in_process(arguments, arguments.peer, "neural_tangents", name, folder)
        if peer is None:
            return print(f"{name:10} neural-tangents  ended without a result")
        error = max(np.abs(a - b).max() / np.abs(b).max() for a, b in zip(own["derivatives"], peer["derivatives"]))
        print(f"{name:10} neural-tangents  {peer['seconds']:9.4f} s  {peer['megabytes']:8.0f} MB  "
              f"{peer['seconds'] / own['seconds']:.1f} times, largest difference {error:.1e}")


def main(argv):
    arguments = arguments_of(argv)
    for name in arguments.networks or NETWORKS:
        if arguments.peer:
            beside(arguments, name)
        else:
            print(json.dumps(measure(arguments, name)))


if __name__ == "__main__":
    main(sys.argv[1:])
