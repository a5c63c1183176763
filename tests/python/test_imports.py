"""Files of the package import each other in one direction."""

import ast
import graphlib
import os
import pathlib
import re
import subprocess
import sys

import pytest
import widelimit

ROOT = pathlib.Path(widelimit.__file__).parent


def name_of(path):
    return ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")


NAMES = {name_of(path): path for path in ROOT.rglob("*.py")}


def imports_of(name):
    """The files that a file imports when it is imported, or when types are checked."""
    path, found = NAMES[name], set()
    for node in ast.parse(path.read_text()).body:
        for statement in node.body if isinstance(node, ast.If) else [node]:
            if isinstance(statement, ast.ImportFrom) and statement.level:
                folder = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
                module = ".".join(folder[:len(folder) - statement.level + 1] + ([statement.module] if statement.module else []))
                found |= {f"{module}.{alias.name}" if f"{module}.{alias.name}" in NAMES else module for alias in statement.names}
    # A folder imports its files, which may name the folder.
    return {other for other in found if other in NAMES and not name.startswith(other + ".") and other != name}


def test_there_are_no_circles():
    graph = {name: imports_of(name) for name in NAMES}
    assert len(graph) > 50 and "widelimit.predict._types" in graph["widelimit.predict._gp"]
    order = list(graphlib.TopologicalSorter(graph).static_order())  # CycleError names the circle.
    assert order.index("widelimit.predict._types") < order.index("widelimit.predict._gp")


@pytest.mark.parametrize("call, message", [
    ("import widelimit.torch", "widelimit.torch needs PyTorch 2.0 or newer, got 1.13.1"),
    ("import widelimit; widelimit.from_torch(None, None)", r"from_torch needs PyTorch 2.0 or newer \(it is older than 2.0\): pip install torch")])
def test_an_old_pytorch_says_what_is_needed(call, message, tmp_path):
    """Debian's is 1.13, which has no torch.func."""
    (tmp_path / "torch.py").write_text("__version__ = '1.13.1'")
    ran = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True, check=False,
                         env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT.parent}"})
    assert re.search(f"ImportError: {message}", ran.stderr), ran.stderr
