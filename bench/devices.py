#!/usr/bin/env python3
"""Both kernels on a device: the time of a distinct pair of inputs, copies included, best of three after the first call,
which compiles. Beside neural-tangents, where --peer names a Python that has it (on the devices that its JAX finds).

    python bench/devices.py --device gpu [NETWORK...] [--precision float double] [--count N] [--size PIXELS] [--peer PYTHON]

It runs where this library's package is installed. Without --count and --size, the inputs are as many and as large as the
table of docs/devices.md has them, which takes a GPU: a device must be named. neural-tangents computes all pairs of a batch
twice, and takes fewer inputs, for which it has memory; its time is divided by distinct pairs all the same. With --rows every time is
also a row of a file, and what the file has is not measured again; --form says there how the device's kernels were chosen.
"""
import argparse
import dataclasses
import json
import pathlib
import subprocess
import sys
import time

import numpy as np

from card_rows import Rows


def convolutions(stax, depth):
    return depth * [stax.Conv(1, (3, 3), padding="SAME", W_std=2**0.5, b_std=0.1), stax.Relu()]


def gap(stax, depth):
    return stax.serial(*convolutions(stax, depth), stax.GlobalAvgPool(), stax.Dense(1))


def myrtle5(stax):
    pool = stax.AvgPool((2, 2), (2, 2))
    return stax.serial(*convolutions(stax, 2), pool, *convolutions(stax, 1), pool, *convolutions(stax, 1), stax.GlobalAvgPool(),
                       stax.Dense(1))


def struct(stax):
    attention = stax.GlobalSelfAttention(1, 1, 1, 1, linear_scaling=True, W_out_std=1.0, b_std=None, pos_emb_type="SUM",
                                         pos_emb_decay_fn=lambda d: 2.718281828459045**(-d / 32**2))
    return stax.serial(*convolutions(stax, 8), attention, stax.LayerNorm(-1), stax.Flatten(), stax.Dense(1))


def flatten(stax):
    return stax.serial(*convolutions(stax, 8), stax.Flatten(), stax.Dense(1))


def dense(stax):
    return stax.serial(*5 * [stax.Dense(1, 2**0.5, 0.1), stax.Relu()], stax.Dense(1))


# Of an entry, for both kernels: a sum of three rows along each axis of a convolution, and ReLU's map, as bench/scaling.cpp counts them.
CONVOLUTION, MAP = 12, 25


@dataclasses.dataclass
class Row:
    """A network of the table, with how many inputs it is measured, and the operations of a pair of them by their pixels a side: those
    of convolutions, maps and products of matrices, poolings and readouts left out; and with how many inputs quickly."""
    network: callable
    count: int
    peer_count: int
    operations: callable
    quick: int = 200


def entries(layers, pixels):
    """Operations of layers on all pairs of positions."""
    return layers * (CONVOLUTION + MAP) * pixels**4


ROWS = {"gap8": Row(lambda stax: gap(stax, 8), 500, 20, lambda p: entries(8, p)),
        "gap14": Row(lambda stax: gap(stax, 14), 500, 20, lambda p: entries(14, p)),
        "myrtle5": Row(myrtle5, 500, 20, lambda p: entries(2, p) + entries(1, p // 2) + entries(1, p // 4)),
        # The readout's weights are one product of matrices over positions.
        "struct": Row(struct, 500, 20, lambda p: entries(8, p) + 2 * p**6),
        "conv-flatten": Row(flatten, 2000, 300, lambda p: 8 * (CONVOLUTION + MAP) * p**2, 2000),
        "dense": Row(dense, 10000, 10000, lambda p: 2 * 3 * p**2 + 5 * MAP, 10000)}


def arguments_of(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=", ".join(ROWS))
    parser.add_argument("--device", help="as in `widelimit gram --device`")
    parser.add_argument("--precision", nargs="+", choices=["float", "double"], default=["float", "double"])
    parser.add_argument("--count", type=int, help="inputs")
    parser.add_argument("--quick", action="store_true", help="fewer images, for a few minutes: 200 where a pair takes long")
    parser.add_argument("--size", type=int, default=32, help="pixels a side")
    parser.add_argument("--peer", help="a Python that has neural-tangents")
    parser.add_argument("--rows", type=pathlib.Path, help="a file of rows, which is gone on with")
    parser.add_argument("--form", default="as chosen", help="a word for the rows of this call [as chosen]")
    parser.add_argument("--as", dest="package", choices=["widelimit", "neural_tangents"], default="widelimit", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    for name in arguments.networks:
        if name not in ROWS:
            parser.error(f"expected networks among {', '.join(ROWS)}, got {name}")
    if not arguments.device and arguments.package == "widelimit":
        parser.error("the table's sizes are those of a device: give --device, one that `widelimit devices` lists")
    return arguments


def inputs_of(arguments, name, precision):
    row = ROWS[name]
    count = arguments.count or (row.peer_count if arguments.package != "widelimit" else row.quick if arguments.quick else row.count)
    size = arguments.size
    shape = (count, 3 * size**2) if name == "dense" else (count, size, size, 3)
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32 if precision == "float" else np.float64)


def computation(arguments, name, precision):
    """A function of inputs that returns both kernels on the host."""
    if arguments.package == "widelimit":
        import widelimit

        kernel_fn = ROWS[name].network(widelimit.stax)[2]

        def own(x):
            with widelimit.device(arguments.device):
                kernel_fn(x, None, ("nngp", "ntk"))
        return own
    import jax

    jax.config.update("jax_enable_x64", precision == "double")
    from neural_tangents import stax

    kernel = jax.jit(lambda x, of=ROWS[name].network(stax)[2]: tuple(of(x, None, ("nngp", "ntk"))))
    return lambda x: [np.asarray(part) for part in kernel(x)]


def measure(arguments, name, precision):
    kernels, x = computation(arguments, name, precision), inputs_of(arguments, name, precision)
    kernels(x)
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        kernels(x)
        best = min(best, time.perf_counter() - start)
    return {"inputs": len(x), "seconds": best, "milliseconds_a_pair": 2e3 * best / (len(x) * (len(x) + 1))}


def peer_measured(arguments, name, precision):
    command = [arguments.peer, __file__, name, "--as", "neural_tangents", "--precision", precision, "--size", str(arguments.size)]
    if arguments.count:
        command += ["--count", str(arguments.count)]
    ended = subprocess.run(command, stdout=subprocess.PIPE, check=False, text=True)
    if ended.returncode != 0:
        raise ValueError(f"ended without a result, with status {ended.returncode}")
    return json.loads(ended.stdout.splitlines()[-1])


class Times:
    """Prints times, and keeps them in the file of rows if there is one."""

    def __init__(self, arguments):
        self.arguments, self.failed = arguments, False
        self.rows = arguments.rows and Rows(arguments.rows, ("network", "precision", "package", "form", "pixels"),
                                            ("inputs", "seconds", "milliseconds_a_pair"))

    def take(self, name, precision, package, measured, form, errors):
        key = name, precision, package, form, self.arguments.size
        if self.rows and not self.rows.lacks(*key):
            return
        try:
            found = measured(self.arguments, name, precision)
        except errors as error:
            self.failed = True
            if self.rows:
                return self.rows.append(*key, problem=str(error))
            return print(f"{name:12} {precision:6} {package:15} not computed: {error}", flush=True)
        if self.rows:
            return self.rows.append(*key, found["inputs"], found["seconds"], found["milliseconds_a_pair"])
        print(f"{name:12} {precision:6} {package:15} {found['milliseconds_a_pair']:10.4g} ms a pair   {found['seconds']:9.4g} s for n = "
              f"{found['inputs']}", flush=True)


def main(argv):
    arguments = arguments_of(argv)
    names = arguments.networks or list(ROWS)
    if arguments.package == "neural_tangents":
        return print(json.dumps(measure(arguments, names[0], arguments.precision[0])))
    import widelimit

    print(widelimit._core.device_in_full(arguments.device))
    times = Times(arguments)
    for name in names:
        for precision in arguments.precision:
            times.take(name, precision, "widelimit", measure, arguments.form, widelimit.Error)
            if arguments.peer:
                times.take(name, precision, "neural-tangents", peer_measured, "", (ValueError, OSError))
    return 1 if times.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
