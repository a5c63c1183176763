"""The notebooks run from top to bottom."""

import json
import pathlib

import pytest

FOLDER = pathlib.Path(__file__).parent.parent.parent / "examples" / "python"


def check_attention_images(scope):
    assert min(max(values) for values in scope["accuracy"].values()) > 0.2
    assert scope["model"].prior_samples(scope["path"], 5).shape == (5, 25, 10)


def check_signal_propagation(scope):
    cosines = {label: trajectory.cosine[-1] for label, trajectory in scope["measured"].items()}
    assert cosines["ordered"] > cosines["critical"] > cosines["chaotic"]
    assert scope["lines"].angle and scope["lines"].gradient
    assert scope["behind"].grams.shape == (5, 8, 8)


def check_head_specialisation(scope):
    assert scope["path"].loss[-1] < scope["path"].loss[0]
    assert scope["risk"].value < scope["trained"].loss
    assert scope["both"].largest_difference_m < 0.5
    assert scope["best"].relevant > scope["found"].relevant - 0.05


def check_covariance_sde(scope):
    assert scope["both"].distances["rho01"].p_value > 1e-4
    assert len(scope["gradients"]) == 3
    assert abs((scope["sampled"] < scope["law"].quantile(0.5)).mean() - 0.5) < 0.04


def check_cifar_classes(scope):
    assert scope["accuracy"] > 0.5  # One of ten classes is right by chance.
    assert scope["tested"].expected_error < 0.5 and sum(part.count for part in scope["trained"].bins) == len(scope["train"])
    assert scope["report"].count("<h2>") == 4 and "stripes 9" in scope["report"]


def check_from_neural_tangents(scope):
    assert scope["losses"][-1] < scope["losses"][0] / 10
    assert scope["errors"][1] < scope["errors"][0]
    assert abs(scope["empirical"] - scope["of_jax"]).max() < 1e-3 * abs(scope["empirical"]).max()


def check_own_layers(scope):
    assert scope["passed"] and scope["limit_passed"] and scope["dual_passed"] and scope["pair_passed"] and scope["map_passed"]
    assert not scope["wrong_passed"]
    assert abs(scope["by_quadrature"] - scope["by_formula"]).max() < 1e-9
    assert abs(scope["ours"] - scope["theirs"]).max() < 1e-12


CHECKS = {"cifar_classes": check_cifar_classes, "from_neural_tangents": check_from_neural_tangents,
          "own_layers": check_own_layers, "attention_images": check_attention_images, "signal_propagation": check_signal_propagation,
          "head_specialisation": check_head_specialisation, "covariance_sde": check_covariance_sde}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_the_notebook_runs(path):
    matplotlib = pytest.importorskip("matplotlib", reason="Matplotlib is not installed")
    matplotlib.use("Agg")
    if path.stem == "from_neural_tangents":
        pytest.importorskip("jax", reason="JAX is not installed")
    scope = {"__name__": "__main__"}
    for k, cell in enumerate(json.loads(path.read_text())["cells"]):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{path.name} cell {k}", "exec"), scope)
    matplotlib.pyplot.close("all")
    CHECKS[path.stem](scope)
