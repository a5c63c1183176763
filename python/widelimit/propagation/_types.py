"""What several files of this module return."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


class Estimate(NamedTuple):
    """A mean with its standard error."""

    value: float
    standard_error: float
