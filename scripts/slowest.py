#!/usr/bin/env python3
"""Prints what takes the time of `make test` in a build folder: its slowest translation units and tests.

    slowest.py BUILD [NUMBER]

Seconds are those of the last time that each was compiled or run. They compare with each other only if nothing else ran on
the machine and no compiler cache answered.
"""
import pathlib
import sys


def compiled(build):
    """translation unit -> seconds, by ninja's log; later lines of an output replace earlier ones."""
    seconds = {}
    for line in (build / ".ninja_log").read_text().splitlines():
        fields = line.split("\t")
        if len(fields) == 5 and fields[3].endswith(".o"):
            seconds[fields[3]] = (int(fields[1]) - int(fields[0])) / 1000
    return seconds


def tested(build):
    """test -> seconds, the mean that CTest keeps to start long tests first."""
    seconds = {}
    for line in (build / "Testing" / "Temporary" / "CTestCostData.txt").read_text().splitlines():
        if line == "---":
            break
        name, _, cost = line.rsplit(" ", 2)
        seconds[name] = float(cost)
    return seconds


def table(title, seconds, number):
    print(f"| {title}: {len(seconds)}, {sum(seconds.values()):.0f} s in all | seconds |\n|---|---|")
    for name, value in sorted(seconds.items(), key=lambda row: -row[1])[:number]:
        print(f"| `{name}` | {value:.0f} |")


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__.strip())
    build, number = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) == 3 else 20
    table("translation units", compiled(build), number)
    print()
    table("tests", tested(build), number)


if __name__ == "__main__":
    main()
