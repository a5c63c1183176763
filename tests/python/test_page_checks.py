"""What check_pages.py finds wrong of pages, each kind on a page that has it."""

import importlib
import pathlib
import subprocess
import sys

import pytest

PROGRAMS = pathlib.Path(__file__).parent.parent.parent / "docs/experiments/programs"


@pytest.fixture
def structure(monkeypatch, tmp_path):
    """page_structure.py of a project of its own: breaches(text) are those of a page docs/page.md."""
    monkeypatch.syspath_prepend(str(PROGRAMS))
    module = importlib.import_module("page_structure")
    for folder in ("docs/experiments/data", "src", "tests", "bench", "data"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("src/there.cpp", "tests/there_test.cpp", "data/there.csv", "bench/CMakeLists.txt", "docs/experiments/data/rows.csv"):
        (tmp_path / file).write_text("")
    (tmp_path / "Makefile").write_text("test: all\n")
    (tmp_path / "docs" / "other.md").write_text("# Other\n\n## A `word`, two\n\n## Twice\n\n## Twice\n")
    for command in (["init", "-q"], ["add", "docs/other.md", "docs/experiments/data"]):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "SITE", tmp_path / "docs" / "site.md")

    def breaches(text):
        page = tmp_path / "docs" / "page.md"
        page.write_text(text)
        checks = (module.link_breaches, module.path_breaches, module.command_breaches, module.table_breaches, module.row_breaches)
        return [what for check in checks for _, what in check(page)]

    yield breaches
    sys.modules.pop("page_structure")


@pytest.mark.parametrize("right, wrong, told", [
    ("[x](other.md)", "[x](another.md)", "leads to no file"),
    ("![x](../data/there.csv)", "![x](there.png)", "leads to no file"),
    ("[x](other.md#a-word-two)", "[x](other.md#a-word)", "leads to no heading"),
    ("[x](other.md#twice-1)", "[x](other.md#twice-2)", "leads to no heading"),
    ("# Head\n\n[x](#head)", "# Head\n\n[x](#tail)", "leads to no heading"),
    ("`[x](nowhere.md)`", "[x](nowhere.md)", "leads to no file"),
    ("`src/there.*`", "`src/gone.cpp`", "there is no `src/gone.cpp`"),
    ("`there_test`", "`gone_test`", "there is no test `gone_test`"),
    ("`make test`", "`make tests`", "make has no target tests"),
    ("    python data/there.csv", "    python bench/gone.py --x 1", "there is no bench/gone.py"),
    ("    widelimit gp --path data/there.csv", "    widelimit gp --path there.csv", "there is no there.csv to read"),
    ("    widelimit gp --path TABLE.csv", "    widelimit gram network.json", "there is no network.json to read"),
    ("    widelimit fit --model m\n    widelimit predict --model m", "    widelimit predict --model m", "there is no m to read"),
    ("| a | b |\n|---|---|\n| 1 | `x\\|y` |", "| a | b |\n|---|---|\n| 1 |", "a row of 1 cells in a table of 2"),
    ("| a |\n|---|\n| 1 |\n| 2 |", "| a |\n|---|\n| 1 |\n\n| 2 |", "a blank line cuts it"),
    ("[x](experiments/data/rows.csv)", "[x](experiments/data/new.csv)", "leads to no file"),
])
def test_what_is_wrong_of_a_page_is_found_and_what_is_right_passes(structure, right, wrong, told):
    assert structure(right) == []
    assert any(told in found for found in structure(wrong)), structure(wrong)


def test_rows_that_git_does_not_know_are_found(structure, tmp_path):
    (tmp_path / "docs/experiments/data/new.csv").write_text("")
    assert structure("[x](experiments/data/new.csv)") == ["the rows experiments/data/new.csv are not in git"]


def test_every_page_passes():
    sys.path.insert(0, str(PROGRAMS))
    try:
        for module in ("page_structure", "few_draws"):
            assert list(importlib.import_module(module).missing()) == []
        assert list(importlib.import_module("check_pages").without_rows()) == []
    finally:
        sys.path.remove(str(PROGRAMS))


def test_errors_of_few_draws_are_told_with_their_quantile(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(PROGRAMS))
    few, tables = importlib.import_module("few_draws"), importlib.import_module("tables")
    assert [round(tables.standard_errors(draws - 1), 2) for draws in (2, 3, 5, 10)] == [12.71, 4.3, 2.78, 2.26]
    page = tmp_path / "page.md"
    monkeypatch.setitem(few.SECTIONS, ("page.md", "Means"), 3)
    told = "an interval of 95 % reaches 4.3 standard errors to either side (t, 3 seeds)"
    for text, count in ((f"## Means\n\n1 ± 2, of which\n{told}.", 0), ("## Means\n\n1 ± 2", 1), ("## Means\n\n1 +- 2", 1), ("## Others\n\n| 1 ± 2 |", 1),
                        ("## Others\n\nwithin +-2", 0), (f"## Means\n\n1 ± 2, {told.replace('4.3', '2.0')}", 1)):
        page.write_text(text)
        assert len(list(few.breaches(page))) == count, text


def test_a_figure_of_a_sentence_that_stands_on_nothing_is_found(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(PROGRAMS))
    sentences = importlib.import_module("sentences")
    page = tmp_path / "page.md"
    monkeypatch.setattr(sentences, "said", lambda _: ["a rate of 0.02"])
    page.write_text("It is .75, 12 % and 3.1; at alpha = .3, a rate of 0.02 and version 0.1.0.\n\n| x |\n|---|\n| 0.75 ± 0.1 |\n")
    (figure,) = sentences.open_figures(page, ["3.1"])
    assert "12 %" in figure
    assert len(list(sentences.open_figures(page, []))) == 2
    assert any("does not say" in figure for figure in sentences.open_figures(page, ["what is nowhere"]))


def test_intervals_of_differences_have_the_degrees_of_welch_and_satterthwaite(monkeypatch):
    monkeypatch.syspath_prepend(str(PROGRAMS))
    stats, np = pytest.importorskip("scipy.stats"), pytest.importorskip("numpy")
    tables = importlib.import_module("tables")
    random = np.random.default_rng(1)
    first, second = random.normal(size=4), random.normal(size=7) + 1
    difference, error, degrees = tables.welch(first, second)
    known = stats.ttest_ind(first, second, equal_var=False)
    assert difference / error == pytest.approx(known.statistic) and degrees == pytest.approx(known.df)
    right = random.integers(2, size=(3, 500)).astype(float)
    mean, _, degrees = tables.paired(right, np.zeros_like(right))
    assert mean == pytest.approx(100 * right.mean()) and 2 < degrees < 501
    assert tables.paired(right[:1], np.zeros((1, 500)))[2] == pytest.approx(499)
