"""Probabilities for predictions of classes, and whether they are right as often as they say."""

from __future__ import annotations

from typing import NamedTuple, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._arrays import numbers
from ._html import table


class CalibrationBin(NamedTuple):
    """Predictions whose confidence, the largest probability, lies in (lower, upper], the first bin with its lower end: their
    number, their mean confidence, and the share of them that is right (both 0 if there are none)."""

    lower: float
    upper: float
    count: int
    mean_confidence: float
    accuracy: float


class Calibration(NamedTuple):
    """Bins of equal width over [0, 1], and the sum over them of count / n |accuracy - mean confidence|."""

    bins: Sequence[CalibrationBin]
    expected_error: float

    def _repr_html_(self) -> str:
        return table(CalibrationBin._fields, self.bins, f"expected error {self.expected_error:.5g}")


def _scores(mean, variances):
    mean, variances = numbers(mean, name="mean"), numbers(variances, name="variances")
    if variances.ndim != 1:
        raise ValueError(f"variances: expected a vector [n], got an array of shape {variances.shape}")
    return (mean[:, None] if mean.ndim == 1 else mean), variances


class ClassCalibration(NamedTuple):
    """How scores of observations become probabilities of classes: with z = mean / sqrt(variance) of every class they are the
    softmax of scale * z + shifts. A single score z stands for -z / 2 of class 0 and z / 2 of class 1."""

    scale: float
    shifts: NDArray[np.float64]

    def probabilities(self, mean: ArrayLike, variances: ArrayLike) -> NDArray[np.float64]:
        """[n, classes], for means [n, outputs] and variances [n] of observations. Arguments and errors are those of
        class_probabilities()."""
        return _core.calibrated_probabilities(*_scores(mean, variances), self.scale, self.shifts)


def fit_class_calibration(mean: ArrayLike, variances: ArrayLike, labels: ArrayLike) -> ClassCalibration:
    """The calibration for which the labels of inputs that were left out of the training are most likely: multinomial logistic
    regression on their scores, with labels as uncertain as in Platt's scaling. Shifts have a normal prior, whose variance has the
    highest evidence on a grid with 0: few labels leave shifts of 0, and the largest mean is the most probable class. Where a
    variance is 0 there are none, and probabilities are class_probabilities().

    mean [n, outputs], or [n] for two classes, and variances [n] are those of the observations left out, labels [n] their true
    classes 0, 1, ... ArgumentError for shapes, NaN, negative variances and labels that are not one of the classes."""
    scale, shifts, _ = _core.fit_class_calibration(*_scores(mean, variances), np.asarray(labels).tolist())
    return ClassCalibration(scale, shifts)


def class_probabilities(mean: ArrayLike, variances: ArrayLike) -> NDArray[np.float64]:
    """The probability that a class's output is the largest, [n, classes], for independent Gaussian outputs.

    mean       [n, classes]; a single column, or [n], is the score of class 1 against class 0, and two columns are returned
    variances  [n], >= 0, of all outputs of an input; with those of the posterior the probabilities describe the function,
               with the noise variance added they describe observations

    Accuracy 1e-12. ArgumentError for shapes, NaN or infinity, and negative variances.
    """
    return _core.class_probabilities(*_scores(mean, variances))


def calibration(probabilities: ArrayLike, labels: ArrayLike, bins: int = 15) -> Calibration:
    """How well the probabilities of the predicted classes agree with how often these are right: a Calibration.

    probabilities  [n, classes], each row of sum 1 within 1e-6
    labels         the true classes [n], integers 0 .. classes - 1
    bins           at least 1

    ArgumentError for anything else. Source: Guo et al. 2017, On calibration of modern neural networks, equation 3.
    """
    true = np.asarray(labels)
    if true.size == 0:
        raise ValueError("labels: expected a label or more, got an empty array")
    if true.dtype.kind not in "iu" or true.ndim != 1:
        raise TypeError(f"labels: expected integers [n], got {true.dtype} of shape {true.shape}")
    rows, error = _core.calibration(numbers(probabilities, name="probabilities"), true.tolist(), int(bins))
    return Calibration([CalibrationBin(*row) for row in rows], error)
