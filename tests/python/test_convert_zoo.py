"""widelimit.from_torch: modules as other people write them, by numbers or by the reason why they have no limit."""

import pytest
import widelimit

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from sampled_modules import deviations, in_double  # noqa: E402, F401
from zoo_of_torch import ATTENDING, ZOO  # noqa: E402


@pytest.mark.parametrize("name", [name for name, row in ZOO.items() if row[2] is None])
def test_modules_agree_with_their_limits(name):
    build, shape, _ = ZOO[name]
    options = {"layout": "first"} if name == "WaveNet" else {}
    sizes = {"width": 36, "factor": 4, "draws": 120, "ntk_draws": 12} if name in ATTENDING else {"width": 24, "draws": 150, "ntk_draws": 20}
    found = deviations(build, torch.randn(3, *shape), **sizes, **options)
    assert max(found) < 4, found


@pytest.mark.parametrize("name", [name for name, row in ZOO.items() if row[2] is not None])
def test_modules_without_a_limit_say_why(name):
    build, shape, message = ZOO[name]
    x = torch.randint(0, 11, (3, 5)) if shape == "indices" else torch.randn(3, *shape)
    with pytest.raises(widelimit.convert.ConversionError, match=message):
        widelimit.from_torch(build(16), x)
