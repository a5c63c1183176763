"""Nonlinearities of PyTorch, JAX and ONNX that network files have no kind for, as functions of NumPy's arrays.

Networks with them are written by these names. Whoever reads such a file says Network.read(file, ["widelimit.convert.functions"]).
"""

from __future__ import annotations

from math import erf as _erf_of_number
from typing import Any

import numpy as np

__all__ = ["celu", "elu", "gelu_quick", "gelu_tanh", "hardsigmoid", "hardswish", "hardtanh", "log_sigmoid", "mish", "relu6", "selu",
           "softsign", "squared_relu", "tanhshrink"]


_erf_of_each = np.frompyfunc(_erf_of_number, 1, 1)


def _erf(z):
    return np.asarray(_erf_of_each(z), float)


def _logistic(z):
    return 0.5 * (1 + np.tanh(0.5 * np.asarray(z)))


def _log_one_plus_exp(z):
    return np.logaddexp(0, z)


def gelu_tanh(z: Any) -> Any:
    """GELU's approximation by tanh: Hendrycks and Gimpel 2016 (arXiv:1606.08415), section 2."""
    return 0.5 * z * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3)))


def gelu_quick(z: Any) -> Any:
    """z / (1 + exp(-1.702 z)): the same, section 2."""
    return z * _logistic(1.702 * z)


def elu(z: Any) -> Any:
    """z above 0, exp(z) - 1 below: Clevert et al. 2016 (arXiv:1511.07289), equation 16 with alpha = 1."""
    return np.where(z > 0, z, np.expm1(np.minimum(z, 0)))


celu = elu


def selu(z: Any) -> Any:
    """Klambauer et al. 2017 (arXiv:1706.02515), equation 2."""
    return 1.0507009873554805 * np.where(z > 0, z, 1.6732632423543772 * np.expm1(np.minimum(z, 0)))


def mish(z: Any) -> Any:
    """z tanh(log(1 + exp(z))): Misra 2020 (arXiv:1908.08681)."""
    return z * np.tanh(_log_one_plus_exp(z))


def hardtanh(z: Any) -> Any:
    """z, kept within -1 and 1."""
    return np.clip(z, -1, 1)


def relu6(z: Any) -> Any:
    """z, kept within 0 and 6."""
    return np.clip(z, 0, 6)


def hardsigmoid(z: Any) -> Any:
    """z / 6 + 1/2, kept within 0 and 1."""
    return np.clip(z / 6 + 0.5, 0, 1)


def hardswish(z: Any) -> Any:
    """z times hardsigmoid: Howard et al. 2019 (arXiv:1905.02244), section 5.2."""
    return z * np.clip(z / 6 + 0.5, 0, 1)


def softsign(z: Any) -> Any:
    """z / (1 + |z|)."""
    return z / (1 + np.abs(z))


def log_sigmoid(z: Any) -> Any:
    """-log(1 + exp(-z))."""
    return -_log_one_plus_exp(-z)


def tanhshrink(z: Any) -> Any:
    """z - tanh(z)."""
    return z - np.tanh(z)


def squared_relu(z: Any) -> Any:
    """max(z, 0)^2: So et al. 2021 (arXiv:2109.08668), section 4."""
    return np.maximum(z, 0) ** 2
