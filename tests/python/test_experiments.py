"""Tables of the experiments' pages are those of the committed files."""

import importlib
import pathlib
import sys

import pytest

PROGRAMS = pathlib.Path(__file__).parent.parent.parent / "docs/experiments/programs"


@pytest.fixture
def programs(monkeypatch):
    """import_module that finds the experiments' programs, and forgets them afterwards."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(PROGRAMS))
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if (PROGRAMS / f"{name}.py").exists():
            del sys.modules[name]


def test_tables_stand_on_the_pages(programs):
    assert list(programs("check_pages").missing()) == []


def test_every_file_has_its_head(programs):
    for file in programs("tables").DATA.glob("*.csv"):
        head, columns, *rows = file.read_text().splitlines()
        assert head.startswith("# ") and "widelimit" in head, file.name
        assert rows and {row.count(",") for row in rows if '"' not in row} == {columns.count(",")}, file.name
