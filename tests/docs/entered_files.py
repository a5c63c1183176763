"""docs/engine.md tells the way of a run truly: the sources of its list are entered first in that order, and it says how many.

    entered_files.py BUILD
"""
import importlib.util
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# What other compilers put into other functions moves a few sources in or out.
TOLERANCE = 8


def traced(build, *arguments):
    spec = importlib.util.spec_from_file_location("entered", ROOT / "scripts" / "entered-files.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    found = script.entered_files(build, list(arguments))
    if isinstance(found, str):
        print(found)
        sys.exit(0 if found.startswith("skipped") else 1)
    return found


def breaches(section, run, version):
    """Every line that the run contradicts."""
    before = -1
    for number, path, more in re.findall(r"^(\d+)[.] `(src/[^`]+[.]cpp)`(.*)$", section, re.MULTILINE):
        if path not in run:
            yield f"{number}. {path}: not entered"
            continue
        place = run.index(path)
        if more.startswith(" (entered before"):
            if place > before:
                yield f"{number}. {path}: not entered before"
            continue
        if place < before:
            yield f"{number}. {path}: entered before {run[before]}"
        before = place
    told = [int(number) for number in re.search(
        r"enters (\d+) sources of this project: (\d+) before the engine, and (\d+) before a state", section).groups()]
    told += [int(re.search(r"--version` enters (\d+):", section)[1])]
    are = [len(run), run.index("src/kernel/run/explain.cpp"), run.index("src/kernel/run/state_worker.cpp"), len(version)]
    for number, is_now in zip(told, are):
        if abs(number - is_now) > TOLERANCE:
            yield f"{number} sources are told, {is_now} were entered"
    for path in version:
        if path.split("/")[1] in ("layers", "models", "network", "propagation", "covariance_sde", "specialization", "gp"):
            yield f"--version enters {path}"


def main():
    page = (ROOT / "docs" / "engine.md").read_text()
    section = page.split("## From an option to a prediction")[1].split("\n## ")[0]
    build = sys.argv[1]
    found = list(breaches(section, traced(build, "gp", "--network", "conv-gap", "--data", "sample"), traced(build, "--version")))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
