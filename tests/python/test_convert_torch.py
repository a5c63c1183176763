"""widelimit.from_torch: every piece and random modules against their own outputs and gradients over fresh initialisations."""

import numpy as np
import pytest
import widelimit

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
import torch.nn.functional as F  # noqa: E402
from pieces_of_torch import ATTENDING, FUNCTIONS, PIECES, Of, attention, gated, residual, sdpa  # noqa: E402
from random_modules_of_torch import module_of  # noqa: E402
from sampled_modules import deviations, drawn, limits  # noqa: E402
from torch import nn  # noqa: E402

# The largest of a kernel's six entries, in standard errors.
MOST = 4.0


@pytest.fixture(autouse=True)
def in_double():
    threads = torch.get_num_threads()
    torch.set_default_dtype(torch.double)
    torch.set_num_threads(1)
    torch.manual_seed(5)
    yield
    torch.set_default_dtype(torch.float)
    torch.set_num_threads(threads)


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


@pytest.mark.parametrize("seed", range(30))
def test_random_modules(seed):
    build, shape, attends = module_of(seed)
    check(build, shape, attends, seed)


def test_deviations_fall_as_one_over_the_width():
    """Of the NTK of a module whose gains and deviations from the limit are large enough to see."""
    def build(w):
        return nn.Sequential(nn.Linear(4, w), nn.ReLU(), nn.Linear(w, w), nn.ReLU(), nn.Linear(w, 8))

    x, errors = torch.randn(2, 4), []
    for width, draws in ((8, 1500), (16, 1500), (32, 1500)):
        (_, limit), _ = limits(build, width, x, True)
        _, sample = drawn(build, width, x, draws, 3, True)
        errors.append(((sample.mean(0) - limit) / limit)[0, 0])
        assert abs(errors[-1]) > 3 * sample[:, 0, 0].std() / limit[0, 0] / np.sqrt(draws) or width == 32
    assert errors[0] > 1.5 * errors[1] > 1.5 * 1.5 * abs(errors[2])


def test_a_wrong_limit_is_found():
    """The check itself: half the variance of one layer is 20 standard errors away."""
    def build(w):
        return nn.Sequential(nn.Linear(4, w), nn.ReLU(), nn.Linear(w, 8))

    assert max(deviations(build, torch.randn(3, 4), variances={"2.weight": 0.01})) > 10 * MOST
