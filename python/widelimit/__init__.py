"""Neural networks in their wide limits: NNGP and NTK kernels, Gaussian-process inference, finite networks.

    import widelimit
    from widelimit import layers
    network = widelimit.Network([layers.dense(2, 0.01), layers.relu(), layers.dense()])
    nngp, ntk, *_ = widelimit.gram(network, x)

Scripts for neural-tangents: `import widelimit as nt; from widelimit import stax, predict` (docs/python.md).
"""

from . import convert, experimental, heads, layers, predict, propagation, sde, stax, transfer
from ._calibration import (Calibration, CalibrationBin, ClassCalibration, calibration, class_probabilities,
                           fit_class_calibration)
from ._core import (ArgumentError, Cancelled, DataError, Error, GradientFlow, Graph, Layer, Network, NetworkError,
                    NumericalError, Preprocessing, Regression, __version__)
from ._device import Device, device, devices
from ._tangents import (NtkImplementation, batch, empirical_kernel_fn, empirical_nngp_fn, empirical_ntk_fn,
                        empirical_ntk_vp_fn, linearize, monte_carlo_kernel_fn, taylor_expand)
from .derivatives import gram_diagonal_vjp, gram_gradient, gram_jvp, gram_number_vjp, gram_vjp
from .finite import FiniteNetwork
from .kernels import (Gram, ShortenedAttention, check_laws, check_limit, explain, gram, gram_diagonal, median_distance,
                      position_covariances, position_variances)
from .convert import from_flax, from_onnx, from_torch
from .models import Model, search
from .stax import Kernel

__all__ = [
    "ArgumentError", "Calibration", "CalibrationBin", "Cancelled", "ClassCalibration", "DataError", "Device", "Error", "FiniteNetwork", "GradientFlow", "Gram", "Graph", "Kernel",
    "Layer", "Model", "Network", "NetworkError", "NtkImplementation", "NumericalError", "Preprocessing", "Regression", "ShortenedAttention",
    "__version__", "batch", "calibration", "check_laws", "check_limit", "class_probabilities", "convert", "device", "devices", "empirical_kernel_fn", "empirical_nngp_fn", "empirical_ntk_fn",
    "empirical_ntk_vp_fn", "experimental", "explain", "fit_class_calibration", "from_flax", "from_onnx", "from_torch", "gram", "gram_diagonal", "gram_diagonal_vjp", "gram_gradient",
    "gram_jvp", "gram_number_vjp", "gram_vjp", "heads",
    "layers", "linearize", "median_distance", "monte_carlo_kernel_fn", "position_covariances", "position_variances", "predict",
    "propagation", "sde", "search", "stax", "taylor_expand", "transfer",
]
