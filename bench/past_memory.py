#!/usr/bin/env python3
"""A regression past memory, killed on the way: Gram matrices of generated images into stores, ten outputs solved with
five regularisers by conjugate gradients, predictions. Prints times, bytes, iterations and peak memory (docs/scale.md).

    bench/past_memory.py build/release/widelimit /scratch/run              60,000 inputs
    bench/past_memory.py build/release/widelimit /scratch/run --n 3000     the same, small

The run is killed (SIGKILL) when shares of the tiles of the training matrix are there, and started again each time.
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import time


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="widelimit")
    parser.add_argument("folder", type=pathlib.Path, help="for stores, log and results; some 4 n^2 bytes a kernel")
    parser.add_argument("--n", type=int, default=60_000, help="inputs for training")
    parser.add_argument("--validation", type=int, default=500)
    parser.add_argument("--test", type=int, default=100)
    parser.add_argument("--size", type=int, default=8, help="height and width of the images")
    parser.add_argument("--network", default="fcn:depth=5")
    parser.add_argument("--candidates", default="1e-3,1e-2,1e-1,1,10")
    parser.add_argument("--residual", default="1e-8")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--kills", type=int, default=3)
    return parser.parse_args()


def gp_command(options):
    return [options.program, "gp", "--network", options.network, "--data", "sample", "--train", str(options.n),
            "--validation", str(options.validation), "--test", str(options.test), "--size", str(options.size),
            "--precision", "float", "--threads", str(options.threads), "--amplitude", "1", "--solver", "cg",
            "--candidates", options.candidates, "--residual", options.residual,
            "--store", str(options.folder / "stores"), "--out", str(options.folder / "out"), "--no-report",
            "--no-pictures"]


def tiles_of(store):
    """How many tiles the store of the training inputs has, and how many are there."""
    try:
        array = json.loads((store / "ntk" / "zarr.json").read_text())
    except (OSError, ValueError):
        return 0, 0
    side = array["chunk_grid"]["configuration"]["chunk_shape"][0]
    across = -(-array["shape"][0] // side)
    there = sum(1 for file in (store / "ntk" / "c").glob("*/*") if file.name.isdigit())
    return across * (across + 1) // 2, there


def run(options, share_to_kill_at, log):
    """Starts the program; kills it when that share of the tiles is there (never, if None). Returns its exit code, seconds,
    peak memory in bytes and the tiles that were there in the end."""
    start = time.monotonic()
    process = subprocess.Popen(gp_command(options), stdout=log, stderr=subprocess.STDOUT)
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        tiles, there = tiles_of(options.folder / "stores" / "train")
        if share_to_kill_at is not None and tiles and there >= max(1, share_to_kill_at * tiles):
            os.kill(process.pid, signal.SIGKILL)
            share_to_kill_at = None
        time.sleep(0.01)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, time.monotonic() - start, usage.ru_maxrss * 1024, tiles_of(
        options.folder / "stores" / "train")


def bytes_in(folder):
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def main():
    options = arguments()
    options.folder.mkdir(parents=True, exist_ok=True)
    if (options.folder / "stores").exists():
        sys.exit(f"{options.folder}/stores is there already; give an empty folder")
    shares = [(k + 1) / (options.kills + 1) for k in range(options.kills)] + [None]
    print(" ".join(gp_command(options)), "\n")
    print("| run | ended | seconds | peak memory | tiles there |\n|---|---|---|---|---|")
    peaks, seconds = [], 0
    with open(options.folder / "log", "w") as log:
        for number, share in enumerate(shares, 1):
            code, took, peak, (tiles, there) = run(options, share, log)
            peaks.append(peak)
            seconds += took
            ended = "killed" if code == -signal.SIGKILL else "done" if code == 0 else f"exit code {code}"
            print(f"| {number} | {ended} | {took:.1f} | {peak / 1e9:.2f} GB | {there} of {tiles} |", flush=True)
            if code not in (0, -signal.SIGKILL):
                sys.exit(f"the run failed; see {options.folder}/log")
            if share is not None and code == 0:
                sys.exit("the run ended before it could be killed; take more inputs")
    subprocess.run([options.program, "store", "verify", str(options.folder / "stores" / "train")], check=True)
    results = json.loads((options.folder / "out" / "results.json").read_text())
    print(f"\n{seconds:.0f} s in all, peak {max(peaks) / 1e9:.2f} GB; the store of the training inputs has "
          f"{bytes_in(options.folder / 'stores' / 'train') / 1e9:.2f} GB\n")
    print("| kernel | passes | relative residual | regulariser | accuracy | solved in |\n|---|---|---|---|---|---|")
    for result in results["results"]:
        print(f"| {result['kernel']} | {result['passes']} | {result['relative_residual']:.1e} | "
              f"{result['regulariser']:g} | {100 * result['accuracy']:.1f} % | {result['solve_seconds']:.1f} s |")


if __name__ == "__main__":
    main()
