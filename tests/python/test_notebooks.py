"""The notebooks run from top to bottom."""

import json
import pathlib

import pytest

FOLDER = pathlib.Path(__file__).parent.parent.parent / "examples" / "python"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_the_notebook_runs(path):
    matplotlib = pytest.importorskip("matplotlib", reason="Matplotlib is not installed")
    matplotlib.use("Agg")
    scope = {"__name__": "__main__"}
    for k, cell in enumerate(json.loads(path.read_text())["cells"]):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{path.name} cell {k}", "exec"), scope)
    matplotlib.pyplot.close("all")
    assert min(max(values) for values in scope["accuracy"].values()) > 0.2
    assert scope["model"].prior_samples(scope["path"], 5).shape == (5, 25, 10)
