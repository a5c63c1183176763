"""README.md and docs/performance.md show the ratios that `make bench-check` compares with."""

import importlib.util
import json
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent


@pytest.fixture
def check_ratios():
    spec = importlib.util.spec_from_file_location("check_ratios", ROOT / "bench/check_ratios.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_show_the_committed_ratios(check_ratios):
    kept = json.loads(check_ratios.FILE.read_text())
    readme, page = ((ROOT / name).read_text() for name in ("README.md", "docs/performance.md"))
    rows = check_ratios.readme_rows(kept["of_neural_tangents"])
    assert all(row in readme and row in page for row in rows)
    assert all(row in page for row in check_ratios.performance_rows(kept["of_the_limit"]))


def test_a_ratio_is_worse_from_a_tenth_on(check_ratios):
    committed = {"a time": {"ratio": 1.0, "unit": "ns"}, "a gain": {"ratio": 2.0, "unit": "x"}}

    def worse(time, gain):
        found = {"a time": {"ratio": time, "unit": "ns"}, "a gain": {"ratio": gain, "unit": "x"}}
        return [line.split(":")[0] for line in check_ratios.worse_lines(found, committed)]

    assert worse(1.09, 1.85) == []
    assert worse(0.5, 4.0) == []
    assert worse(1.11, 1.85) == ["a time"]
    assert worse(1.0, 1.8) == ["a gain"]
    assert list(check_ratios.worse_lines({"new": committed["a time"]}, committed)) == ["new: not in bench/ratios.json"]


def test_the_better_of_two_attempts_is_the_faster(check_ratios):
    slow, fast = {"ratio": 2.0, "unit": "s"}, {"ratio": 1.0, "unit": "s"}
    assert check_ratios.better(slow, fast) is fast
    gain, loss = {"ratio": 2.0, "unit": "x"}, {"ratio": 1.0, "unit": "x"}
    assert check_ratios.better(loss, gain) is gain
    assert check_ratios.better(loss, None) is loss
