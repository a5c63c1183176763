"""widelimit.from_torch: every piece and random modules against their own outputs and gradients over fresh initialisations."""

import numpy as np
import pytest
import widelimit

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
import torch.nn.functional as F  # noqa: E402
from pieces_of_torch import ATTENDING, FUNCTIONS, PIECES, Of, attention, gated, residual, sdpa  # noqa: E402
from random_modules_of_torch import module_of  # noqa: E402
from sampled_modules import deviations, drawn, in_double, limits  # noqa: E402, F401
from torch import nn  # noqa: E402

# The largest of a kernel's six entries, in standard errors.
MOST = 4.0


def check(build, shape, attends, seed=1, **options):
    """NNGP and NTK, extrapolated from two widths in 1/width. Attention goes with 1/heads, of which there are two to four times more
    where the width is four to sixteen times as large."""
    sizes = {"width": 36, "factor": 4, "draws": 120, "ntk_draws": 12} if attends else {"width": 24, "draws": 200, "ntk_draws": 24}
    found = deviations(build, torch.randn(3, *shape), seed=seed, **{**sizes, **options})
    assert max(found) < MOST, found


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    build, shape, options = FUNCTIONS[name]
    check(build, shape, False, **options)


@pytest.mark.parametrize("name", PIECES)
def test_pieces(name):
    build, shape, options = PIECES[name]
    check(build, shape, name in ATTENDING, **options, **({"width": 64} if name == "grouped queries" else {}))


@pytest.mark.parametrize("seed", range(33))
def test_random_modules(seed):
    build, shape, attends = module_of(seed)
    check(build, shape, attends, seed)


def squares(w):
    """Two layers of squares, whose outputs have E f^2 = 27 (1 + 32 / (3 width)) times that of an input of length 1."""
    module = nn.Sequential(nn.Linear(2, w, bias=False), Of(lambda s, x: x * x), nn.Linear(w, w, bias=False), Of(lambda s, x: x * x),
                           nn.Linear(w, 8, bias=False))
    for layer in module[::2]:
        nn.init.normal_(layer.weight, std=layer.in_features**-0.5)
    return module


def test_deviations_fall_as_one_over_the_width():
    """E u^4 = 3 E (mean of z^4)^2 of the second layer's u has 1 + Var(z^4) / (E(z^4)^2 width), z a standard normal variable."""
    x = torch.ones(1, 2)
    for width in (16, 32, 64):
        variances = {"0.weight": 1 / 2, "2.weight": 1 / width, "4.weight": 1 / width}
        (limit, _), _ = limits(squares, width, x, False, variances=variances)
        assert limit[0, 0] == pytest.approx(27, rel=1e-6)
        ratios = drawn(squares, width, x, 3000, 3, False)[0][:, 0, 0] / limit[0, 0]
        assert ratios.mean() - 1 == pytest.approx(32 / (3 * width), abs=MOST * ratios.std() / np.sqrt(3000))
        assert ratios.mean() - 1 > 2 * ratios.std() / np.sqrt(3000)


def test_a_wrong_limit_is_found():
    """The check itself: half the variance of one layer is 19 standard errors away."""
    def build(w):
        return nn.Sequential(nn.Linear(4, w), nn.ReLU(), nn.Linear(w, 8))

    assert deviations(build, torch.randn(3, 4), variances={"2.weight": 0.01})[0] > 3 * MOST
