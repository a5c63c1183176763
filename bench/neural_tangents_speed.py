"""The workloads of `side_by_side reference` in neural-tangents, or by the same script in this library's Python package,
on the same cores: best of three, compiled.

    pip install "jax==0.4.23" "jaxlib==0.4.23" "numpy<2" "scipy<1.13" "neural-tangents==0.6.5"
    python bench/neural_tangents_speed.py {gap,flatten,struct,dense} N [--package widelimit]

Small numbers of inputs where memory does not allow more; times are then compared by the pair. With --overhead, what the
layer of Python adds in widelimit: kernel_fn against the library's own function for the same network and inputs (`gram` of
the compiled half), in turns, medians of many calls.
"""
import argparse
import importlib
import resource
import time

import numpy as np


def convolutions(stax, depth=8):
    layer = stax.serial(stax.Conv(1, (3, 3), padding="SAME", W_std=2**0.5, b_std=0.1), stax.Relu())
    return [layer] * depth


def network(stax, name):
    if name == "dense":
        return stax.serial(*[stax.serial(stax.Dense(1, 2**0.5, 0.1), stax.Relu())] * 5, stax.Dense(1))
    readouts = {"gap": [stax.GlobalAvgPool()], "flatten": [stax.Flatten()], "struct": [
        stax.GlobalSelfAttention(1, 1, 1, 1, linear_scaling=True, W_out_std=1.0, b_std=None,
                                 pos_emb_type="SUM", pos_emb_decay_fn=lambda d: 2.718281828459045**(-d / 32**2)),
        stax.LayerNorm(-1), stax.Flatten()]}
    return stax.serial(*convolutions(stax), *readouts[name], stax.Dense(1))


def compiled(package, kernel_fn):
    """A function of inputs that returns when both kernels are there."""
    if package == "widelimit":
        return lambda x: kernel_fn(x, None, ("nngp", "ntk"))
    import jax

    kernel = jax.jit(lambda x: kernel_fn(x, None, ("nngp", "ntk")))
    return lambda x: kernel(x).ntk.block_until_ready()


def overhead(kernel_fn, inputs):
    """Seconds of kernel_fn and of the compiled half alone, medians of calls in turns."""
    from widelimit import _core
    from widelimit._arrays import batch
    from widelimit.stax._module import start

    network, _ = kernel_fn.network(start(kernel_fn.module, inputs.shape))
    prepared = batch(inputs, inputs.dtype, "x1")
    calls = (lambda: kernel_fn(inputs, None, ("nngp", "ntk")),
             lambda: _core.gram(network, prepared, None, "both", 0, None))
    seconds = [[], []]
    begin = time.perf_counter()
    while len(seconds[0]) < 5 or (time.perf_counter() - begin < 5 and len(seconds[0]) < 2000):
        for call, list_of in zip(calls, seconds):
            start_time = time.perf_counter()
            call()
            list_of.append(time.perf_counter() - start_time)
    return [float(np.median(values)) for values in seconds]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=["gap", "flatten", "struct", "dense"])
    parser.add_argument("count", type=int)
    parser.add_argument("--package", choices=["neural_tangents", "widelimit"], default="neural_tangents")
    parser.add_argument("--overhead", action="store_true")
    arguments = parser.parse_args()
    shape = (3072,) if arguments.name == "dense" else (32, 32, 3)
    inputs = np.random.default_rng(0).standard_normal((arguments.count, *shape)).astype("float32")
    if arguments.overhead:
        whole, alone = overhead(network(importlib.import_module("widelimit").stax, arguments.name)[2], inputs)
        print(f"{arguments.name} n = {arguments.count}: {whole:.4g} s, the library alone {alone:.4g} s, "
              f"{1e6 * (whole - alone):.0f} us more")
        return
    stax = importlib.import_module(arguments.package).stax
    kernel = compiled(arguments.package, network(stax, arguments.name)[2])
    kernel(inputs)
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        kernel(inputs)
        best = min(best, time.perf_counter() - start)
    pairs = arguments.count * (arguments.count + 1) / 2
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{arguments.name} n = {arguments.count}: {best:.4g} s, {1e3 * best / pairs:.4g} ms a pair, {peak:.3g} GB")


if __name__ == "__main__":
    main()
