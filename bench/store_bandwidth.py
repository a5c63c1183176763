#!/usr/bin/env python3
"""What the disk below a store does: the figures b, B and l of docs/scale.md, for bench/cluster_time.py.

    bench/store_bandwidth.py FOLDER [--processes 1 2 4] [--side 2048] [--files 12]

Writes files as a store does (to a temporary name, synced, renamed, the folder synced) into FOLDER, which must lie where
stores shall, and removes them. l is the median time of files of 4 KB by one process, b what one process writes a second of
files of a tile of SIDE inputs in float, without l, and B the most that processes write together. Chain it on as many machines
at once as jobs shall have, and add up their B.
"""

import argparse
import multiprocessing
import os
import pathlib
import shutil
import statistics
import tempfile
import time


def write_file(folder, name, content):
    temporary = folder / f".{name}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(descriptor, left):]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.rename(temporary, folder / name)
    of_folder = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(of_folder)
    finally:
        os.close(of_folder)


def seconds_of_files(folder, prefix, size, files):
    content = os.urandom(size)  # Some file systems compress.
    times = []
    for number in range(files):
        begin = time.perf_counter()
        write_file(folder, f"{prefix}-{number}", content)
        times.append(time.perf_counter() - begin)
    return times


def run_process(folder, number, size, files, barrier, results):
    barrier.wait()
    begin = time.perf_counter()
    times = seconds_of_files(folder, f"{size}-{number}", size, files)
    results.put((begin, time.perf_counter(), times))


def rate_of(folder, processes, size, files):
    """Bytes a second of all, from the first beginning to the last end, and the median time of a file."""
    barrier, results = multiprocessing.Barrier(processes), multiprocessing.Queue()
    workers = [multiprocessing.Process(target=run_process, args=(folder, number, size, files, barrier, results))
               for number in range(processes)]
    for worker in workers:
        worker.start()
    found = [results.get() for _ in workers]
    for worker in workers:
        worker.join()
    seconds = max(end for _, end, _ in found) - min(begin for begin, _, _ in found)
    return processes * files * size / seconds, statistics.median(t for _, _, times in found for t in times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--side", type=int, default=2048, help="inputs a side of a tile [2048]")
    parser.add_argument("--files", type=int, default=12, help="a process")
    options = parser.parse_args()
    size = 4 * options.side**2
    folder = pathlib.Path(tempfile.mkdtemp(prefix="store-bandwidth-", dir=options.folder))
    try:
        latency = statistics.median(seconds_of_files(folder, "small", 4096, 5 * options.files))
        print(f"l = {1e3 * latency:.1f} ms a file of 4 KB")
        rates = {}
        for processes in options.processes:
            rates[processes], median = rate_of(folder, processes, size, options.files)
            print(f"{processes} processes, files of {size / 1e6:.1f} MB: {rates[processes] / 1e6:.0f} MB/s, "
                  f"a file {median:.3f} s")
            for file in folder.iterdir():
                file.unlink()
        one = rates.get(1, max(rates.values()))
        alone = size / max(size / one - latency, 1e-9)
        print(f"bench/cluster_time.py --latency {latency:.4f} --rank-bandwidth {alone:.3g} "
              f"--bandwidth {max(rates.values()):.3g}")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
