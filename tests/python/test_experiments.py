"""Tables of the experiments' pages are those of the committed files."""

import importlib
import pathlib
import sys

import numpy as np
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
        assert head.startswith("# ") and "widelimit" in head and ("seed" in head or "draw" in head), file.name
        assert rows and {row.count(",") for row in rows if '"' not in row} == {columns.count(",")}, file.name


def test_leave_one_out_of_learning_curves_is_that_of_refits(programs):
    curves = programs("learning_curves")
    random = np.random.default_rng(1)
    x, targets = random.normal(size=(12, 3)), random.normal(size=(12, 2))
    square = np.exp(-((x[:, None] - x) ** 2).sum(axis=2))
    found = curves.LeaveOneOut(square, targets, 0.1)
    for i in range(12):
        others = np.arange(12) != i
        inverse = np.linalg.inv(square[np.ix_(others, others)] + 0.1 * np.eye(11))
        assert found.residual[i] == pytest.approx(targets[i] - square[i, others] @ inverse @ targets[others], rel=1e-9)
        assert found.variance[i] == pytest.approx(1.1 - square[i, others] @ inverse @ square[others, i], rel=1e-9)


def test_search_uphill_finds_the_best_of_all(programs):
    curves = programs("learning_curves")
    random = np.random.default_rng(2)
    x = random.normal(size=(60, 4))
    square, targets = np.exp(-((x[:, None] - x) ** 2).sum(axis=2)), np.sin(x[:, :1]) + 0.3 * random.normal(size=(60, 1))
    best, place = curves.best_leave_one_out(square, targets)
    assert best.density == max(curves.LeaveOneOut(square, targets, r).density for r in curves.REGULARISERS)
    for start in (0, 8, 16):
        assert curves.best_leave_one_out(square, targets, start)[1] == place
