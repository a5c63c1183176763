"""The Python blocks of the pages run as they stand and print what the pages say."""

import pathlib
import re
import textwrap

import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# A block, and what stands behind "prints", indented.
BLOCK = r"^```python\n(.*?)^```\n(?:\nprints\n\n((?:(?:    [^\n]*)?\n)+))?"
BLOCKS = [(page.name, k, *block) for page in PAGES
          for k, block in enumerate(re.findall(BLOCK, page.read_text(), re.M | re.S))]


@pytest.mark.parametrize("page, number, block, printed", BLOCKS, ids=[f"{page}-{k}" for page, k, *_ in BLOCKS])
def test_the_block_runs(page, number, block, printed, tmp_path, monkeypatch, capsys):
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    for package in ("sklearn", "jax", "torch", "transformers"):
        if re.search(rf"\bwidelimit\.{package}\b|^import {package}\b", block, re.M):
            pytest.importorskip(package)
    exec(compile(block, f"{page} block {number}", "exec"), {"__name__": "page"})
    if printed:
        assert capsys.readouterr().out == textwrap.dedent(printed).strip("\n") + "\n"


def test_outputs_of_the_blocks_are_found():
    assert {page for page, _, _, printed in BLOCKS if printed} >= {"README.md", "guide.md"}
