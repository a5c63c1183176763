"""Starts the program `widelimit` that lies in this folder of a wheel. It is a package of its own, so that the program begins
without NumPy."""

from __future__ import annotations

import os
import pathlib
import sys

PROGRAM = pathlib.Path(__file__).with_name("widelimit")


def main() -> None:
    """Becomes the program, with the arguments of this process."""
    if not PROGRAM.is_file():
        sys.exit(f"widelimit: {PROGRAM}: expected the program, which this installation was built without: install what the build "
                 "said is missing (Debian: libcli11-dev) and install again, or use the package from Python")
    os.execv(PROGRAM, [sys.argv[0], *sys.argv[1:]])
