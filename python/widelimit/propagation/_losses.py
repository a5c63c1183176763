"""Losses after training, from both exponents."""

from __future__ import annotations

from typing import NamedTuple

from numpy.typing import ArrayLike

from .. import _core
from .._arrays import numbers
from ._types import Numbers


class LossFit(NamedTuple):
    """The loss after training from both exponents, min(bias + max(weight_a |lambda_a|, weight_g |lambda_g|), ceiling),
    fitted by least squares: weights >= 0 and bias with bootstrap errors, how well it describes the losses, and the
    `predicted` ones [n]."""

    weight_a: float
    weight_g: float
    bias: float
    weight_a_error: float
    weight_g_error: float
    bias_error: float
    root_mean_square_error: float
    explained_variance: float
    rank_correlation: float
    predicted: Numbers


def fit_losses(lambda_a: ArrayLike, lambda_g: ArrayLike, loss: ArrayLike, classes: int | None = None, bootstrap: int = 200,
               seed: int = 0) -> LossFit:
    """The LossFit of trained networks.

    lambda_a, lambda_g  their exponents [n], n >= 4, the first in one form throughout
    loss                [n], not all equal
    classes             of the task, at least 2: losses are at most their logarithm; None: no ceiling
    bootstrap           draws for the standard errors, at least 2

    ArgumentError for anything else.
    """
    found, predicted = _core.fit_losses(numbers(lambda_a, name="lambda_a"), numbers(lambda_g, name="lambda_g"),
                                        numbers(loss, name="loss"), {"classes": classes, "bootstrap": bootstrap, "seed": seed})
    return LossFit(**found, predicted=predicted)
