"""What the records of kernel methods would cost with this library: the table of docs/experiments/field.md.

    python field.py measure [--program widelimit]
    python field.py summary

measure times pairs of images of 32 x 32 with `widelimit explain` on one core, and writes docs/experiments/data/field.csv. Milliseconds
of a device are those of docs/devices.md, where that page has this network.
"""
import argparse
import json
import subprocess

import widelimit

from tables import DATA, EXPERIMENTS, as_line, processor, rows_of, shows

PAGE = EXPERIMENTS / "field.md"
# (record, network, training inputs, test inputs, kernels a pair, milliseconds of an H200 by docs/devices.md)
RECORDS = (
    ("CNTK with global average pooling", "conv-gap:depth=14,bias_variance=0", 50_000, 10_000, 1, 0.146),
    ("local average pooling and mirror images", "conv-lap:depth=14,window=11,bias_variance=0", 50_000, 10_000, 2, None),
    ("Myrtle10 and mirror images", "myrtle5:first=3,second=3,third=3", 50_000, 10_000, 2, None),
    ("a million augmented images, Myrtle10", "myrtle5:first=3,second=3,third=3", 1_000_000, 10_000, 1, None),
    ("structured attention", "struct:depth=8", 50_000, 10_000, 1, None),
)
COLUMNS = ("record", "network", "train", "test", "kernels_a_pair", "core_ms", "device_ms")


def measure(program):
    found = {}
    for _, network, *_ in RECORDS:
        if network not in found:
            done = subprocess.run([program, "explain", network, "--input", "32,32,3", "--threads", "1", "--measure", "2", "--json", "--quiet"],
                                  check=True, capture_output=True, text=True)
            found[network] = 1000 * json.loads(done.stdout)["processor_seconds_per_pair"]
    head = (f"# python docs/experiments/programs/field.py measure; widelimit {widelimit.__version__}; {processor()}; no seed: processor times of one "
            "core; device_ms: NVIDIA H200, docs/devices.md\n")
    rows = [(record, network, train, test, kernels, found[network], "" if device is None else device)
            for record, network, train, test, kernels, device in RECORDS]
    (DATA / "field.csv").write_text(head + "".join(map(as_line, (COLUMNS, *rows))))


def hours(row, column):
    """Of all pairs, counting a pair of training inputs once."""
    return pairs(row) * float(row[column]) / 3.6e6


def pairs(row):
    n, t = int(row["train"]), int(row["test"])
    return (n * (n + 1) // 2 + n * t) * int(row["kernels_a_pair"])


def brief_number(value):
    """Two digits: times are no better known."""
    return f"{float(f'{value:.2g}'):,g}"


def summary():
    yield "| what a record needs | network | training images | pairs, billions | ms a pair, one core | core hours | ms a pair, H200 | hours of an H200 |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in rows_of("field"):
        device = (row["device_ms"], brief_number(hours(row, "device_ms"))) if row["device_ms"] else ("-", "-")
        yield (f"| {row['record']} | `{row['network']}` | {int(row['train']):,} | {brief_number(pairs(row) / 1e9)} | {float(row['core_ms']):.2g} | "
               f"{brief_number(hours(row, 'core_ms'))} | {' | '.join(device)} |")


SUMMARIES = {"field": summary}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("measure", "summary"))
    parser.add_argument("--program", default="widelimit")
    given = parser.parse_args()
    if not shows(given.what, SUMMARIES):
        measure(given.program)


if __name__ == "__main__":
    main()
