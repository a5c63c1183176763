"""Networks with the API of neural_tangents.stax: layers are triples (init_fn, apply_fn, kernel_fn).

Names, arguments and conventions are those of neural-tangents 0.6.5. docs/python.md lists what differs, and what to use instead
of missing names.
"""

from ._activations import (ABRelu, Abs, Cos, Elementwise, ElementwiseNumerical, Erf, Exp, ExpNormalized, Gabor, Gaussian,
                           Gelu, Hermite, LeakyRelu, Monomial, Polynomial, Rbf, RectifiedMonomial, Relu, Sigmoid_like,
                           Sign, Sin)
from ._attention import GlobalSelfAttention
from ._combinators import FanInConcat, FanInProd, FanInSum, FanOut, parallel, repeat, serial
from ._enums import AggregateImplementation, AttentionMechanism, Padding, PositionalEmbedding
from ._kernel import Kernel
from ._missing import MaskedArray, unmask_fn
from ._own import Bool, Diagonal, layer, requires, supports_masking
from ._pools import AvgPool, Dropout, Flatten, GlobalAvgPool, GlobalSumPool, Identity, LayerNorm, SumPool
from ._positions import Aggregate, DotGeneral, ImageResize, Index, Slice
from ._weights import Conv, ConvLocal, ConvTranspose, Dense

__all__ = [
    "ABRelu", "Abs", "Aggregate", "AggregateImplementation", "AttentionMechanism", "AvgPool", "Bool", "Conv", "ConvLocal",
    "ConvTranspose", "Cos", "Dense", "Diagonal", "DotGeneral", "Dropout", "Elementwise", "ElementwiseNumerical", "Erf",
    "Exp", "ExpNormalized", "FanInConcat", "FanInProd", "FanInSum", "FanOut", "Flatten", "Gabor", "Gaussian", "Gelu",
    "GlobalAvgPool", "GlobalSelfAttention", "GlobalSumPool", "Hermite", "Identity", "ImageResize", "Index", "Kernel",
    "LayerNorm", "LeakyRelu", "MaskedArray", "Monomial", "Padding", "Polynomial", "PositionalEmbedding", "Rbf",
    "RectifiedMonomial", "Relu", "Sigmoid_like", "Sign", "Sin", "Slice", "SumPool", "layer", "parallel", "repeat",
    "requires", "serial", "supports_masking", "unmask_fn",
]
