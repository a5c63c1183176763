#!/usr/bin/env python3
"""command_reference.py PROGRAM FOLDER: a page for each command, from its --help and that of the commands below it."""

import os
import pathlib
import re
import subprocess
import sys


def help_of(program, command):
    """As wide as a page shows it."""
    wide = {**os.environ, "COLUMNS": "100"}
    return subprocess.run([program, *command, "--help"], check=True, capture_output=True, text=True, env=wide).stdout.rstrip()


def commands_below(text):
    """Names under "Subcommands:"."""
    listed = re.search(r"^Subcommands:\n((?:  .*\n?)+)", text, re.M)
    return re.findall(r"^  (\S+)", listed.group(1), re.M) if listed else []


def section(program, command, level):
    """The help of one command as a section, and of those below it."""
    text = help_of(program, command)
    purpose, usage, rest = text.partition("\nUsage:")
    title = f"{'#' * level} widelimit {' '.join(command)}\n\n{' '.join(purpose.split())}.\n\n"
    below = "".join(section(program, [*command, name], level + 1) for name in commands_below(text))
    return title + f"```text\n{usage.strip()}{rest}\n```\n\n" + below


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    names = commands_below(help_of(program, []))
    if not names:
        sys.exit(f"{program} --help lists no commands")
    for name in names:
        (folder / f"{name}.md").write_text(section(program, [name], 1))


if __name__ == "__main__":
    main()
