#!/usr/bin/env python3
"""manual_pages.py PROGRAM GENERATOR: every command has a manual page; groff warns of none; and every option, field and
choice of a help begins a line of its own there, so that no list has run together."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

WIDTH = 80
# Words of the help alone.
HEADINGS = set("Usage Options Positionals Subcommands Configuration Example Examples Network OPTIONS SUBCOMMAND REQUIRED Needs fields".split())


def help_of(program, command):
    wide = {**os.environ, "COLUMNS": "999999"}
    text = subprocess.run([program, *command, "--help"], check=True, capture_output=True, text=True, env=wide).stdout
    return "".join(line for line in text.splitlines(True) if "COMMAND --help" not in line)  # A page lists other pages.


def commands_below(program, command=()):
    yield command
    listed = re.search(r"^Subcommands:\n((?:  .*\n)+)", help_of(program, command), re.M)
    for name in re.findall(r"^  (\S+)", listed.group(1), re.M) if listed else []:
        yield from commands_below(program, (*command, name))


def items_of(text):
    """What must begin a line: names in the first column of tables, fields, choices that have a line of their own."""
    items = []
    rows = [line for line in text.splitlines() if line.startswith("  ")]
    for line in rows:
        if choice := re.match(r" {30}([a-z0-9-]+): ", line):
            items.append(choice.group(1))
        elif name := re.match(r"  ([a-z0-9-]\S*?)(?:,\S*)? ", line):
            items.append(name.group(1))
    return items


def rendered(page):
    """As `man` shows it in a terminal of 80 columns, and what groff says about it."""
    command = ["groff", "-man", "-Tascii", "-P-c", "-P-b", "-P-u", "-ww", f"-rLL={WIDTH}n", page]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    return shown.stdout, shown.stderr


def faults_of(program, page, command):
    text, warnings = rendered(page)
    faults = [f"groff: {warnings.strip()}"] if warnings else []
    faults += [f"wider than {WIDTH}: {line}" for line in text.splitlines() if len(line) > WIDTH]
    begun = [line.split()[0].rstrip(",:") for line in text.splitlines() if line.strip()]
    joined = help_of(program, command)
    for item in items_of(joined):
        if item.rstrip(":") not in begun and item not in ("widelimit", "mpirun", "echo", "source"):
            faults.append(f"{item} begins no line")
    lost = set(re.findall(r"\w+", joined)) - set(re.findall(r"\w+", text)) - HEADINGS
    return faults + [f"{word} of the help is lost" for word in sorted(lost)]


def main():
    program, generator = sys.argv[1:]
    if shutil.which("groff") is None:
        print("skipped: groff is not installed")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, generator, program, folder], check=True)
        commands = list(commands_below(program))
        name = pathlib.Path(program).name
        pages = {"-".join([name, *command]) + ".1": command for command in commands}
        written = {page.name for page in pathlib.Path(folder).iterdir()}
        faults = [f"pages {sorted(written ^ set(pages))}"] if written != set(pages) else []
        for page, command in pages.items():
            faults += [f"{page}: {fault}" for fault in faults_of(program, f"{folder}/{page}", command)]
    print("\n".join(faults) or f"{len(pages)} pages")
    return 1 if faults or len(commands) < (3 if name == "widelimit-mpi" else 50) else 0


if __name__ == "__main__":
    sys.exit(main())
