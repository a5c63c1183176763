"""The package `widelimit_program`, by which a wheel's `widelimit` starts its program."""

import pathlib
import shutil
import subprocess
import sys

import pytest

PACKAGE = pathlib.Path(__file__).parents[2] / "python" / "widelimit_program"


@pytest.fixture
def installed(tmp_path):
    """The package alone, under a path with a space, as in an environment without NumPy and without the program."""
    folder = tmp_path / "an environment"
    shutil.copytree(PACKAGE, folder / "widelimit_program", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def launch(folder, *arguments, **options):
    return subprocess.run([sys.executable, "-S", "-m", "widelimit_program", *arguments], cwd=folder, capture_output=True,
                          text=True, env={}, **options)


def test_arguments_input_and_exit_status_are_the_programs(installed):
    program = installed / "widelimit_program" / "widelimit"
    program.write_text('#!/bin/sh\nprintf "[%s]" "$@"\ncat\necho trouble >&2\nexit 3\n')
    program.chmod(0o755)
    result = launch(installed, "gp", "two words", "", "--é", input="from the pipe")
    assert (result.stdout, result.stderr, result.returncode) == ("[gp][two words][][--é]from the pipe", "trouble\n", 3)


def test_the_program_takes_the_place_of_the_interpreter(installed):
    """Signals reach the program, which would not if a child of Python ran it."""
    program = installed / "widelimit_program" / "widelimit"
    program.write_text("#!/bin/sh\nkill -TERM $$\n")
    program.chmod(0o755)
    assert launch(installed).returncode == -15


def test_an_installation_without_the_program_says_what_is_missing(installed):
    result = launch(installed, "--version")
    assert result.returncode == 1
    assert str(installed / "widelimit_program" / "widelimit") in result.stderr and "libcli11-dev" in result.stderr
