"""Programs of the experiments that draw curves of the papers: what they keep is what it says."""

import importlib
import pathlib
import sys
import types

import numpy as np
import pytest

from widelimit import heads

PROGRAMS = pathlib.Path(__file__).parent.parent.parent / "docs/experiments/programs"


@pytest.fixture
def programs(monkeypatch, tmp_path):
    """import_module that finds the experiments' programs; their tables are written to tmp_path. Forgets them afterwards."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(PROGRAMS))
    monkeypatch.setattr(importlib.import_module("tables"), "DATA", tmp_path)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if (PROGRAMS / f"{name}.py").exists():
            del sys.modules[name]


def rows_in(folder, name):
    return importlib.import_module("tables").read(folder / f"{name}.csv")[1:]


def settings(**given):
    return types.SimpleNamespace(**{"starts": 1, "threads": 1, "mnist": None, **given})


def test_opposite_heads_lose_what_their_formula_says(programs, tmp_path, monkeypatch):
    """Proposition IV.3: softmax-1 of m = B and -B, b = B^(3/2), v = 2, on sequences drawn here."""
    curves = programs("heads_curves")
    monkeypatch.setattr(curves, "LENGTHS", (3,))
    curves.bias(settings())
    columns, rows = rows_in(tmp_path, "heads_bias")
    found = {row[1]: dict(zip(columns[2:], map(float, row[2:]))) for row in rows}
    random, n, length = np.random.default_rng(1), 200_000, 3.0
    chi = random.normal(size=(n, 5))
    chi[:, 0] += length * random.choice([1, -1], size=n)
    weights = np.zeros((n, 5))
    for sign in (1, -1):
        scores = np.exp(sign * length * chi)
        weights += scores / (np.exp(length**1.5) + scores.sum(axis=1, keepdims=True))  # v / H = 1
    target = np.eye(5)[0]
    loss = ((weights - target) ** 2).sum(axis=1)
    assert found["softmax1"]["loss"] == pytest.approx(loss.mean(), abs=5 * loss.std() / n**0.5)
    assert found["softmax1"]["loss"] < found["softmax"]["loss"] and found["softmax1"]["bayes_risk"] < found["softmax1"]["loss"]
    curves.bias(settings())
    assert rows_in(tmp_path, "heads_bias")[1] == rows


def test_maps_are_weights_of_heads_and_have_their_masses(programs, tmp_path, monkeypatch):
    curves = programs("heads_curves")
    flow = heads.flow
    monkeypatch.setattr(heads, "flow", lambda *given, **options: flow(*given, **{**options, "tau": 10, "samples": 500}))
    curves.maps(settings())
    columns, rows = rows_in(tmp_path, "heads_maps")
    assert len(rows) == 4 * 6 * 4
    for activation in ("softmax", "bayes"):
        weights = np.array([[float(cell) for cell in row[4:9]] for row in rows if row[0] == activation]).reshape(6, 4, 5)
        assert weights.sum(axis=(1, 2)) == pytest.approx(np.ones(6), abs=1e-4)
        masses = [float(cell) for cell in next(row for row in rows if row[0] == activation)[9:11]]
        assert sum(masses) == pytest.approx(1, abs=1e-4)


def test_records_at_growing_times_begin_and_end_with_the_path(programs):
    tau = np.arange(0, 1001, dtype=float)
    kept = programs("heads_curves").at_growing_times(tau, 20)
    assert kept[0] == 0 and kept[-1] == 1000 and 15 < len(kept) <= 21
    ratios = tau[kept[8:]] / tau[kept[7:-1]]
    assert ratios.max() / ratios.min() < 1.2


def test_densities_are_densities_and_equal_variances_have_kurtosis_three(programs):
    curves, random = programs("shaped_curves"), np.random.default_rng(1)
    density = curves.density(random.uniform(-1, 1, size=40_000))
    assert density.sum() * 0.05 == pytest.approx(1) and density == pytest.approx(np.full(40, 0.5), abs=0.1)
    assert curves.kurtosis_and_error(np.full(100, 2.0)) == (3.0, 0.0)
    # Variances of 1 and 3 alike: 3 (1 + 9) / 2 / 4.
    assert curves.kurtosis_and_error(np.tile([1.0, 3.0], 100))[0] == pytest.approx(3.75)


def test_hidden_layers_of_finite_networks_have_their_exact_second_moment(programs):
    moments = programs("finite_moments")
    assert moments.ratio_and_error(np.tile([1.0, 3.0], 100)) == (pytest.approx(1.25), 0.0)
    found = moments.kernels(16, 2, 4000)
    hidden, ntk = map(moments.ratio_and_error, found)
    assert found[0].mean() == pytest.approx(1, abs=4 * found[0].std() / 4000**0.5)
    assert hidden[0] == pytest.approx((1 + 5 / 16) ** 2, abs=4 * hidden[1])
    assert 1 < ntk[0] < np.exp(5 * 2 / 16)


def test_pruned_heads_begin_at_the_loss_of_the_flow(programs, tmp_path, monkeypatch):
    curves, losses, flow = programs("heads_curves"), [], heads.flow

    def short(*given, **options):
        ends = flow(*given, **{**options, "tau": 10, "samples": 500})
        losses.append(ends[0].loss)
        return ends

    monkeypatch.setattr(heads, "flow", short)
    curves.prune(settings())
    columns, rows = rows_in(tmp_path, "heads_prune")
    assert columns[:5] == ["prior", "activation", "seed", "at_rest", "removed_0"] and len(rows) == 2 * 4
    assert [float(row[4]) for row in rows] == pytest.approx(losses, rel=1e-5)
