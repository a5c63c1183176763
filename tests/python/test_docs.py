"""The Python blocks of the pages run as they stand, and docs/python.md names everything."""

import pathlib
import re

import pytest

import widelimit as nt
from widelimit import predict, stax

ROOT = pathlib.Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [(page.name, k, block) for page in PAGES
          for k, block in enumerate(re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S))]


@pytest.mark.parametrize("page, number, block", BLOCKS, ids=[f"{page}-{k}" for page, k, _ in BLOCKS])
def test_the_block_runs(page, number, block):
    if "sklearn" in block:
        pytest.importorskip("sklearn")
    exec(compile(block, f"{page} block {number}", "exec"), {"__name__": "page"})


def test_the_table_names_every_public_name():
    page = (ROOT / "docs" / "python.md").read_text()
    names = [name for name in stax.__all__ if name != "Kernel"]
    names += [name for name, value in vars(predict).items()
              if callable(value) and not name.startswith("_") and getattr(value, "__module__", "") == predict.__name__]
    names += ["batch", "empirical_kernel_fn", "empirical_nngp_fn", "empirical_ntk_fn", "monte_carlo_kernel_fn",
              "linearize", "taylor_expand"]
    assert all(hasattr(nt, name) or hasattr(stax, name) or hasattr(predict, name) for name in names)
    assert [name for name in names if not re.search(rf"\b{name}\b", page)] == []
