"""Neural networks in their wide limits: NNGP and NTK kernels, Gaussian-process inference, finite networks.

    import widelimit
    from widelimit import layers
    network = widelimit.Network([layers.dense(2, 0.01), layers.relu(), layers.dense()])
    nngp, ntk, *_ = widelimit.gram(network, x)

Scripts for neural-tangents: `import widelimit as nt; from widelimit import stax, predict` (docs/python.md).
"""

from . import layers, predict, stax
from ._core import (ArgumentError, Cancelled, DataError, Error, GradientFlow, Graph, Layer, Network, NetworkError,
                    NumericalError, Regression, __version__)
from ._tangents import (batch, empirical_kernel_fn, empirical_nngp_fn, empirical_ntk_fn, linearize,
                        monte_carlo_kernel_fn, taylor_expand)
from .finite import FiniteNetwork
from .kernels import Gram, check_limit, explain, gram, gram_diagonal

__all__ = [
    "ArgumentError", "Cancelled", "DataError", "Error", "FiniteNetwork", "GradientFlow", "Gram", "Graph", "Layer", "Network",
    "NetworkError", "NumericalError", "Regression", "__version__", "batch", "check_limit", "empirical_kernel_fn",
    "empirical_nngp_fn", "empirical_ntk_fn", "explain", "gram", "gram_diagonal", "layers", "linearize",
    "monte_carlo_kernel_fn", "predict", "stax", "taylor_expand",
]
