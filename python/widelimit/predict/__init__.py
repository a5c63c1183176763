"""Predictions with the API of neural_tangents.predict: the same names, arguments and conventions, in NumPy and double
precision. Predictions from arrays that are being differentiated or traced are computed by JAX or PyTorch.

Kernels are arrays [n, n'], or with positions (or outputs that are not traced over) [n, n', d, d', ...]. `trace_axes` says
which axes of the targets kernels lack: over these, outputs are independent with one covariance. Losses are means over
all numbers of the targets, so that a time t here is t / y.size in the gradient flow of half the sum of squares.
"""

from ._ensemble import gradient_descent_mse_ensemble
from ._gp import Gaussian, gp_inference
from ._loss import ODEState, gradient_descent
from ._mse import gradient_descent_mse, max_learning_rate

__all__ = ["Gaussian", "ODEState", "gp_inference", "gradient_descent", "gradient_descent_mse",
           "gradient_descent_mse_ensemble", "max_learning_rate"]
