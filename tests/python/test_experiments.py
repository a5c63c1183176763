"""Tables of the experiments' pages are those of the committed files."""

import importlib.util
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent
PROGRAMS = ROOT / "docs/experiments/programs"


def program(name):
    spec = importlib.util.spec_from_file_location(f"program_{name}", PROGRAMS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(PROGRAMS))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(PROGRAMS))
    return module


@pytest.mark.parametrize("table", ["features", "times", "rest"])
def test_tables_of_heads_stand_on_the_page(table):
    heads = program("heads")
    if not (heads.DATA / f"heads_{table}.csv").exists():
        pytest.skip(f"heads_{table}.csv was not drawn")
    page = (ROOT / "docs/experiments/head-specialization.md").read_text()
    for line in getattr(heads, f"summary_of_{table}")():
        assert line in page
