"""The program, whose numbers those of the package must be bit for bit."""

import json
import os
import subprocess

import pytest


def program_json(*arguments):
    """What a command prints as JSON."""
    program = os.environ.get("WIDELIMIT_PROGRAM")
    if not program:
        pytest.skip("WIDELIMIT_PROGRAM, the program, is not set")
    printed = subprocess.run([program, *map(str, arguments)], check=True, capture_output=True, text=True).stdout
    return json.loads(printed)


def program_file(folder, *arguments):
    """What a command writes to --out FILE.json: its table, with the summary beside it."""
    program = os.environ.get("WIDELIMIT_PROGRAM")
    if not program:
        pytest.skip("WIDELIMIT_PROGRAM, the program, is not set")
    file = folder / "printed.json"
    subprocess.run([program, *map(str, arguments), "--out", str(file)], check=True, capture_output=True)
    document = json.loads(file.read_text())
    return {**document, **document.get("summary", {})}


def column(table, name):
    """One column of a command's table."""
    place = table["columns"].index(name)
    return [row[place] for row in table["rows"]]
