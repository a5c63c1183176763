"""A network of PyTorch, Flax or ONNX in, its infinite-width limit out (docs/convert.md).

    network = widelimit.from_torch(module, example)
    print(network.report)
    nngp, ntk, *_ = widelimit.gram(network, network.inputs(x))
"""

from ._convert import ConvertedNetwork, from_flax, from_onnx, from_torch
from ._report import Report, Row
from ._rules import Measured
from ._trace import ConversionError

__all__ = ["ConversionError", "ConvertedNetwork", "Measured", "Report", "Row", "from_flax", "from_onnx", "from_torch"]
