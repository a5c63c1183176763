#!/usr/bin/env python3
"""Reference cases computed on a device: errors of both kernels beside tolerances, in a file of rows that a second call goes on with.

    python bench/device_cases.py --device gpu --rows FILE [CASE...] [--folder FOLDER...] [--precision double float]

Errors and tolerances are those of tests/kernel/reference_test.cpp: relative to the norm of the reference or, where a case says so,
to each entry; in float 1e-4, 1e-3 for near-identical. Sampled cases, whose tolerance is in standard errors, stay with that test. A
network that devices lack has the outcome `refused` and the layer. Ends with 1 if a case differs.
"""
import argparse
import json
import pathlib
import sys

import numpy as np
import widelimit

from card_rows import Rows

REFERENCE = pathlib.Path(__file__).resolve().parent.parent / "tests/reference"


def arguments_of(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help="all of the folders")
    parser.add_argument("--device", required=True)
    parser.add_argument("--rows", type=pathlib.Path, required=True)
    parser.add_argument("--folder", nargs="+", type=pathlib.Path, default=[REFERENCE / "kernels", REFERENCE / "attention-today"])
    parser.add_argument("--precision", nargs="+", choices=["float", "double"], default=["double", "float"])
    return parser.parse_args(argv)


def arguments_of_gram(folder, dtype):
    """What gram() is called with: inputs of one or two sides, with their lengths or masks where there are files of these."""
    files = {path.stem: np.load(path) for path in folder.glob("*[12].npy")}
    return {name: value.astype(dtype if name.startswith("x") else bool if name.startswith("mask") else int) for name, value in files.items()}


def error(found, expected, entrywise):
    return float(np.abs(found / expected - 1).max() if entrywise else np.linalg.norm(found - expected) / np.linalg.norm(expected))


def errors(folder, case, precision, device):
    dtype = np.float32 if precision == "float" else np.float64
    network = widelimit.Network.read(folder / "network.json")
    found = widelimit.gram(network, **arguments_of_gram(folder, dtype), device=device)
    return [error(kernel, np.load(folder / f"{name}.npy"), case.get("entrywise", False))
            for name, kernel in (("nngp", found.nngp), ("ntk", found.ntk))]


def tolerance(case, precision):
    return case["tolerance"] if precision == "double" else 1e-3 if case["case"] == "near-identical" else 1e-4


def main(argv):
    arguments = arguments_of(argv)
    rows = Rows(arguments.rows, ("case", "precision"), ("outcome", "nngp_error", "ntk_error", "tolerance", "reason"))
    cases = [(folder / case["case"], case) for folder in arguments.folder for case in json.loads((folder / "index.json").read_text())
             if not isinstance(case["tolerance"], str)]
    names = {case["case"] for _, case in cases}
    if unknown := set(arguments.cases) - names:
        sys.exit(f"device_cases: no case is called {', '.join(sorted(unknown))} in {', '.join(map(str, arguments.folder))}")
    widelimit._core.device_in_full(arguments.device)  # an error if there is none of this name
    for folder, case in cases:
        for precision in arguments.precision:
            name = case["case"]
            if arguments.cases and name not in arguments.cases or not rows.lacks(name, precision):
                continue
            try:
                found, most = errors(folder, case, precision, arguments.device), tolerance(case, precision)
            except widelimit.Error as problem:
                # What a device lacks is told so by every layer.
                if "choose the device cpu" in str(problem):
                    rows.append(name, precision, "refused", "", "", "", " ".join(str(problem).split()))
                else:
                    rows.append(name, precision, "error", problem=str(problem))
                continue
            agrees = max(found) <= most
            rows.append(name, precision, "agrees" if agrees else "differs", *found, most, problem="" if agrees else "beyond the tolerance")
    return 1 if rows.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
