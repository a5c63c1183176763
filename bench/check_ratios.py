#!/usr/bin/env python3
"""Compares what the engine takes with the committed ratios of bench/ratios.json; `make bench-check` runs it.

    check_ratios.py [--attempts 3] [--sections map conv ...] [--peer PYTHON] [--write] [--tables]

Every line of build/release/bench/side_by_side measures the engine and a limit in turns. Its ratio counts as worse if the
best of all attempts is 10 % beyond the committed one; the program then names the line and exits with 1. Other programs come
and go, so attempts end as soon as no line is worse.

--peer PYTHON  an interpreter with neural-tangents 0.6.5 and jax 0.4.23 (see bench/neural_tangents_speed.py): its workloads
               are run there and here, one after the other, and their ratios checked as well
--write        writes the best ratios to bench/ratios.json in place of comparing them
--tables       prints the tables of README.md and docs/performance.md from bench/ratios.json and measures nothing
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

PROJECT = pathlib.Path(__file__).resolve().parent.parent
FILE = PROJECT / "bench/ratios.json"
SIDE_BY_SIDE = PROJECT / "build/release/bench/side_by_side"
SECTIONS = ("map", "conv", "networks", "threads", "dense", "regression", "pages")
WORSE = 1.1
LINE = re.compile(r"^(?P<measure>.{52}) +(?P<ours>\S+) +(?P<limit>\S+) +(?P<unit>\S+) +(?P<ratio>\S+) +\S+$")
WORKLOADS = {
    # name: (inputs there, inputs here, compared by the pair, what the README says of it)
    "gap": (2, 2, False, "`gap 2`: 8 convolutions, global pooling"),
    "flatten": (20, 20, False, "`flatten 20`: 8 convolutions, flattened"),
    "struct": (2, 2, False, "`struct 2`: 8 convolutions, attention, layer norm"),
    "struct by the pair": (2, 32, True, "the same time per pair, both cores (`struct 32` for widelimit)"),
    "dense": (1000, 1000, False, "`dense 1000`: 5 dense layers"),
}
SPEED = re.compile(r"n = \d+: (\S+) s, (\S+) ms a pair, (\S+) GB")


def run(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stderr}")
    return done.stdout


def measured(sections):
    """{measure: its line} of one run; a gain (unit x) is to be large, a time small."""
    found = {}
    for line in run(SIDE_BY_SIDE, *sections).splitlines()[1:]:
        match = LINE.match(line)
        if match is None:
            sys.exit(f"side_by_side: cannot read the line {line!r}")
        found[match["measure"].strip()] = {key: float(match[key]) for key in ("ours", "limit", "ratio")} | {"unit": match["unit"]}
    return found


def speed(python, name, count, package):
    """Seconds, milliseconds a pair and GB of a workload of neural_tangents_speed.py."""
    output = run(python, PROJECT / "bench/neural_tangents_speed.py", name, count, "--package", package)
    return list(map(float, SPEED.search(output).groups()))


def beside_the_peer(peer):
    found, known = {}, {}

    def once(python, name, count, package):
        key = name, count, package
        if key not in known:
            known[key] = speed(python, name, count, package)
        return known[key]

    for workload, (there, here, by_the_pair, _) in WORKLOADS.items():
        name = workload.split()[0]
        theirs, ours = once(peer, name, there, "neural_tangents"), once(sys.executable, name, here, "widelimit")
        unit = 1 if by_the_pair else 0
        scale = 1e-3 if by_the_pair else 1
        found[workload] = {"there": scale * theirs[unit], "here": scale * ours[unit], "ratio": theirs[unit] / ours[unit],
                           "gigabytes_there": theirs[2], "gigabytes_here": ours[2], "unit": "x"}
    return found


def better(one, other):
    """The line with the better ratio of two."""
    if other is None:
        return one
    return max(one, other, key=lambda line: line["ratio"] if line["unit"] == "x" else -line["ratio"])


def worse_lines(found, committed):
    for measure, line in found.items():
        if measure not in committed:
            yield f"{measure}: not in bench/ratios.json"
            continue
        before = committed[measure]["ratio"]
        change = before / line["ratio"] if line["unit"] == "x" else line["ratio"] / before
        if change > WORSE:
            yield f"{measure}: {line['ratio']:.3g}, committed {before:.3g} ({change - 1:+.0%})"


def shown(seconds):
    return f"{seconds:#.2g} s" if seconds < 1 else f"{seconds:.3g} s"


def readme_rows(peer):
    for workload, (_, _, by_the_pair, text) in WORKLOADS.items():
        if workload in peer:
            line, pair = peer[workload], " a pair" if by_the_pair else ""
            times = f"{line['ratio']:.0f}" if line["ratio"] > 10 else f"{line['ratio']:.1f}"
            yield (f"| {text} | {shown(line['there'])}{pair} | {shown(line['here'])}{pair} | {times} | "
                   f"{line['gigabytes_there']:.2f} / {line['gigabytes_here']:.2f} GB |")


def performance_rows(limits):
    for measure, line in limits.items():
        yield f"| {measure} | {line['ours']:.3g} {line['unit']} | {line['limit']:.3g} | {line['ratio']:.2f} |"


def tables(kept):
    return [*readme_rows(kept["of_neural_tangents"]), *performance_rows(kept["of_the_limit"])]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--attempts", type=int, default=3)
    parser.add_argument("--sections", nargs="+", choices=SECTIONS, default=SECTIONS)
    parser.add_argument("--peer", metavar="PYTHON")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--tables", action="store_true")
    given = parser.parse_args()

    kept = json.loads(FILE.read_text()) if FILE.exists() else {"of_the_limit": {}, "of_neural_tangents": {}}
    if given.tables:
        print("\n".join(tables(kept)))
        return
    limits, peers, worse = {}, {}, []
    for attempt in range(1, given.attempts + 1):
        limits = {measure: better(line, limits.get(measure)) for measure, line in measured(given.sections).items()}
        if given.peer:
            peers = {name: better(line, peers.get(name)) for name, line in beside_the_peer(given.peer).items()}
        worse = [*worse_lines(limits, kept["of_the_limit"]), *worse_lines(peers, kept["of_neural_tangents"])]
        print(f"attempt {attempt}: {len(limits) + len(peers)} ratios, {len(worse)} of them worse by more than a tenth", flush=True)
        if not worse and not given.write:
            break
    if given.write:
        kept["of_the_limit"].update(limits)
        kept["of_neural_tangents"].update(peers)
        FILE.write_text(json.dumps(kept, indent=1) + "\n")
        return
    print("\n".join(worse) or "no ratio is worse than the committed one by more than a tenth")
    sys.exit(bool(worse))


if __name__ == "__main__":
    main()
