"""Networks with the API of neural_tangents.stax: layers are triples (init_fn, apply_fn, kernel_fn).

Names, arguments and conventions are those of neural-tangents 0.6.5. docs/python.md lists what differs, and what to use instead
of missing names.
"""

from . import _kinds
from ._activations import Elementwise, ElementwiseNumerical
from ._attention import GlobalSelfAttention
from ._combinators import FanInConcat, FanInProd, FanInSum, FanOut, parallel, repeat, serial
from ._enums import AggregateImplementation, AttentionMechanism, Padding, PositionalEmbedding
from ._kernel import Kernel
from ._kinds import *  # noqa: F403
from ._masks import MaskedArray
from ._own import Bool, Diagonal, requires
from ._own_layers import layer, supports_masking
from ._pools import AvgPool, Dropout, Flatten, GlobalAvgPool, GlobalSumPool, Identity, LayerNorm, SumPool
from ._positions import Aggregate, DotGeneral, ImageResize, Index, Slice
from ._recurrent import Recurrent
from ._triple import unmask_fn
from ._weights import Conv, ConvLocal, ConvTranspose, Dense

__all__ = [
    "Aggregate", "AggregateImplementation", "AttentionMechanism", "AvgPool", "Bool", "Conv", "ConvLocal",
    "ConvTranspose", "Dense", "Diagonal", "DotGeneral", "Dropout", "Elementwise", "ElementwiseNumerical", "FanInConcat",
    "FanInProd", "FanInSum", "FanOut", "Flatten", "GlobalAvgPool", "GlobalSelfAttention", "GlobalSumPool", "Identity",
    "ImageResize", "Index", "Kernel", "LayerNorm", "MaskedArray", "Padding", "PositionalEmbedding", "Recurrent", "Slice", "SumPool",
    "layer", "parallel", "repeat", "requires", "serial", "supports_masking", "unmask_fn",
]
__all__ += _kinds.__all__
