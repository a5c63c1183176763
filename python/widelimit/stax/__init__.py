"""Networks in the vocabulary of neural_tangents.stax: layers are triples (init_fn, apply_fn, kernel_fn).

Names, arguments and conventions are those of neural-tangents 0.6.5; what differs, and what takes the place of what is not
here, is in docs/python.md.
"""

from ._activations import (ABRelu, Abs, Cos, Elementwise, ElementwiseNumerical, Erf, Exp, ExpNormalized, Gabor, Gaussian,
                           Gelu, Hermite, LeakyRelu, Monomial, Polynomial, Rbf, RectifiedMonomial, Relu, Sigmoid_like,
                           Sign, Sin)
from ._attention import GlobalSelfAttention
from ._combinators import FanInConcat, FanInProd, FanInSum, FanOut, parallel, repeat, serial
from ._kernel_fn import Kernel
from ._linear import (Aggregate, AvgPool, Conv, ConvLocal, ConvTranspose, Dense, DotGeneral, Dropout, Flatten,
                      GlobalAvgPool, GlobalSumPool, Identity, ImageResize, Index, LayerNorm, Slice, SumPool)
from ._missing import layer, requires, supports_masking, unmask_fn

__all__ = [
    "ABRelu", "Abs", "Aggregate", "AvgPool", "Conv", "ConvLocal", "ConvTranspose", "Cos", "Dense", "DotGeneral",
    "Dropout", "Elementwise", "ElementwiseNumerical", "Erf", "Exp", "ExpNormalized", "FanInConcat", "FanInProd",
    "FanInSum", "FanOut", "Flatten", "Gabor", "Gaussian", "Gelu", "GlobalAvgPool", "GlobalSelfAttention",
    "GlobalSumPool", "Hermite", "Identity", "ImageResize", "Index", "Kernel", "LayerNorm", "LeakyRelu", "Monomial",
    "Polynomial", "Rbf", "RectifiedMonomial", "Relu", "Sigmoid_like", "Sign", "Sin", "Slice", "SumPool", "layer",
    "parallel", "repeat", "requires", "serial", "supports_masking", "unmask_fn",
]
