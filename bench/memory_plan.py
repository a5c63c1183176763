"""How right `widelimit explain --inputs` is about memory: its peak beside that of the commands themselves, as the system
counts it (getrusage of the child, which a control group's memory.peak includes too). A plan must not be below the
measurement, and at most SHARE above it.

    python3 bench/memory_plan.py PROGRAM [--share 0.15] [--large] [--only TEXT]
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

IMAGE = (8, 8, 3)

# Name, network, shape of an input, inputs, tests, command, options of both, options of the command only.
CASES = [
    ("gram, both kernels", "fcn:axes=0", (64,), 3000, 0, "gram --out", [], []),
    ("gram, both kernels, larger", "fcn:axes=0", (64,), 10000, 0, "gram --out", [], []),
    ("gram, double", "fcn:axes=0", (256,), 5000, 0, "gram --out", ["--precision", "double"], []),
    ("gram, one kernel", "conv-flatten", IMAGE, 6000, 0, "gram --out", ["--kernel", "nngp"], []),
    ("gram, states of attention", "struct:depth=1", (32, 32, 3), 48, 0, "gram --out", ["--kernel", "nngp"], []),
    ("gram in a store", "fcn:axes=0", (3072,), 8000, 0, "gram --store", [], []),
    ("gp, both kernels", "fcn:axes=0", (64,), 2000, 500, "gp --solver cholesky", [], []),
    ("gp, both kernels, larger", "fcn:axes=0", (64,), 5000, 1000, "gp --solver cholesky", [], []),
    ("gp, NNGP in double", "fcn:axes=0", (64,), 4000, 500, "gp --solver cholesky", ["--kernel", "nngp", "--precision", "double"], []),
    ("gp, conjugate gradients", "fcn:axes=0", (64,), 2000, 300, "gp --solver cg", ["--solver", "cg"], []),
    ("gp in a store", "fcn:axes=0", (64,), 4000, 500, "gp --store --solver cholesky", [], []),
    ("gp in a store, conjugate gradients", "fcn:axes=0", (64,), 2000, 50, "gp --store --solver cg", ["--solver", "cg"], []),
    ("fit, NNGP", "fcn:axes=0", (64,), 4000, 500, "fit", ["--kernel", "nngp"], []),
    ("fit, NTK", "fcn:axes=0", (64,), 2000, 200, "fit", ["--kernel", "ntk"], []),
    ("fit, conjugate gradients", "fcn:axes=0", (64,), 4000, 300, "fit --solver cg", ["--kernel", "nngp", "--solver", "cg"], []),
]
# Factorizations of these take minutes, so regularisers are given.
GIVEN = ["--regulariser", "0.1"]
LARGE = [
    ("gram, both kernels, 7 GB", "fcn:axes=0", (64,), 30000, 0, "gram --out", [], []),
    ("gram, double, 6 GB", "fcn:axes=0", (64,), 20000, 0, "gram --out", ["--precision", "double"], []),
    ("gram in a store, 7 GB of disk", "fcn:axes=0", (64,), 42000, 0, "gram --store", ["--kernel", "nngp"], []),
    ("gp, NNGP, 8 GB", "fcn:axes=0", (64,), 25000, 1000, "gp --solver cholesky", ["--kernel", "nngp", *GIVEN], []),
    ("gp, NTK, 2 GB", "fcn:axes=0", (64,), 9000, 500, "gp --solver cholesky", ["--kernel", "ntk", *GIVEN], ["--amplitude", "1"]),
    ("gp, conjugate gradients, 3 GB", "fcn:axes=0", (64,), 20000, 100, "gp --solver cg", ["--kernel", "nngp", "--solver", "cg", *GIVEN], []),
    ("gp in a store, 1 GB", "fcn:axes=0", (64,), 12000, 500, "gp --store --solver cholesky", ["--kernel", "nngp", *GIVEN], []),
    ("fit, NNGP, 2 GB", "fcn:axes=0", (64,), 10000, 500, "fit", ["--kernel", "nngp", *GIVEN], []),
]


def run(words):
    """Peak memory of a command in bytes."""
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            errors.seek(0)
            sys.exit(f"{' '.join(map(str, words))}: {errors.read().decode()}")
    return 1024 * usage.ru_maxrss


def write_data(folder, shape, inputs, tests, precision):
    random = np.random.default_rng(1)
    folder.mkdir()
    for name, count in (("train", inputs), ("validation", 50), ("test", max(tests, 1))):
        np.save(folder / f"x_{name}.npy", random.normal(size=(count, *shape)).astype(precision))
        np.save(folder / f"y_{name}.npy", np.arange(count) % 10)


def predicted(program, network, shape, inputs, tests, command, options):
    words = [program, "explain", network, "--input", ",".join(map(str, shape)), "--inputs", str(inputs), "--test", str(tests),
             "--measure", "0", "--json", *options]
    runs = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)["runs"]
    return next(one for one in runs if one["command"] == command)


def command_line(program, network, command, data, out, options):
    if command.startswith("gram"):
        where = ["--store" if command.endswith("store") else "--out", out]
        return [program, "gram", network, "--x", data / "x_train.npy", *where, *options]
    if command.startswith("fit"):
        return [program, "fit", "--network", network, "--data", "npy", "--path", data, "--model", out, *options]
    words = [program, "gp", "--network", network, "--data", "npy", "--path", data, *options]
    if "--store" in command:
        words += ["--store", out]
    if "cg" in command:
        # The amplitude of the NTK solves once for every input.
        words += ["--amplitude", "1"]
    return words


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--share", type=float, default=0.15)
    parser.add_argument("--large", action="store_true", help="also cases of up to 8 GB, which take minutes and as much disk")
    parser.add_argument("--only", default="", help="cases whose name has this text")
    arguments = parser.parse_args()
    failed = 0
    print(f"{'case':<36} {'inputs':>6} {'planned':>9} {'measured':>9} {'ratio':>6}  peak")
    for name, network, shape, inputs, tests, command, options, own in CASES + (LARGE if arguments.large else []):
        if arguments.only not in name:
            continue
        with tempfile.TemporaryDirectory() as work:
            work = pathlib.Path(work)
            write_data(work / "data", shape, inputs, tests, np.float64 if "double" in options else np.float32)
            plan = predicted(arguments.program, network, shape, inputs, tests, command, options)
            peak = run(command_line(arguments.program, network, command, work / "data", work / "out", options + own))
        ratio = plan["peak_bytes"] / peak
        failed += not 1 <= ratio <= 1 + arguments.share
        print(f"{name:<36} {inputs:>6} {plan['peak_bytes'] / 1e6:>6.0f} MB {peak / 1e6:>6.0f} MB {ratio:>6.2f}  {plan['peak_phase']}", flush=True)
    sys.exit(f"{failed} plans are below the measurement or too far above it" if failed else 0)


if __name__ == "__main__":
    main()
