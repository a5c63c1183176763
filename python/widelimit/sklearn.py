"""Estimators for scikit-learn, with the kernels of infinitely wide networks (needs scikit-learn)."""

from __future__ import annotations

import warnings
from typing import Any, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ._arrays import numbers
from ._core import Network, NumericalError, Regression
from .kernels import gram, gram_diagonal
from .layers import dense, relu


def default_network() -> Network:
    """Three hidden ReLU layers, weight variance 2 and bias variance 0.01."""
    hidden = [dense(2, 0.01), relu()]
    return Network([*hidden, *hidden, *hidden, dense(1, 0.01)])


class NetworkKernel(Kernel):
    """A network's kernel for GaussianProcessRegressor(kernel=NetworkKernel(network)).

    network: a Network; None: three hidden ReLU layers. kernel: 'nngp' or 'ntk'. It has no hyperparameters to tune; multiply
    it by a ConstantKernel for an amplitude. Inputs are vectors [n, channels], or images and sequences reshaped to rows,
    whose `shape` (spatial..., channels) says how.
    """

    requires_vector_input = True

    def __init__(self, network: Network | None = None, kernel: str = "nngp",
                 shape: Sequence[int] | None = None) -> None:
        self.network = network
        self.kernel = kernel
        self.shape = shape

    def _inputs(self, x):
        x = numbers(x, name="X")
        return x if self.shape is None else x.reshape((len(x), *self.shape))

    def _network(self):
        return default_network() if self.network is None else self.network

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None, eval_gradient: bool = False) -> Any:
        """Kernels of all pairs, [n, n'], and with eval_gradient their empty gradients as well."""
        right = None if Y is None else self._inputs(Y)
        matrix = getattr(gram(self._network(), self._inputs(X), right, self.kernel, "double"), self.kernel)
        return (matrix, np.empty((*matrix.shape, 0))) if eval_gradient else matrix

    def diag(self, X: ArrayLike) -> NDArray[np.float64]:
        """Kernels of every input with itself, [n]."""
        return getattr(gram_diagonal(self._network(), self._inputs(X), self.kernel, "double"), self.kernel)

    def is_stationary(self) -> bool:
        """False: kernels depend on the norms of inputs."""
        return False

    def __repr__(self) -> str:
        return f"NetworkKernel({self.kernel})"


class _WideNetwork(BaseEstimator):
    """What both estimators share: the posterior of a network's kernel with a regulariser chosen from a list."""

    def __init__(self, network: Network | None = None, kernel: str = "nngp",
                 regularizer: float | Sequence[float] = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0),
                 precision: str = "double", threads: int = 0) -> None:
        self.network = network
        self.kernel = kernel
        self.regularizer = regularizer
        self.precision = precision
        self.threads = threads

    def _gram(self, x1, x2=None):
        result = gram(self._network, x1, x2, self.kernel, self.precision, self.threads)
        return np.ascontiguousarray(getattr(result, self.kernel), float)

    def __getstate__(self) -> dict[str, Any]:
        """Without the factorization, which is made again when the estimator is loaded."""
        return {name: value for name, value in super().__getstate__().items() if name != "_posterior"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "X_fit_"):
            self._posterior = self._solved(self._gram(self.X_fit_), self.regularizer_)

    def _solved(self, matrix, regularizer):
        return Regression.fit(matrix, self._targets, regulariser=regularizer, threads=self.threads)

    def _fit_targets(self, X, targets):
        if self.kernel not in ("nngp", "ntk"):
            raise ValueError(f"kernel: expected 'nngp' or 'ntk', got {self.kernel!r}")
        candidates = self._candidates()
        self._network = default_network() if self.network is None else self.network
        self.X_fit_, self._targets = X, targets
        matrix = self._gram(X)
        fits = self._fits(matrix, candidates)
        self.regularizer_, self._posterior = max(fits, key=lambda fit: self._likelihood(fit[1]))
        self.log_marginal_likelihood_ = self._likelihood(self._posterior)
        return self

    def _likelihood(self, posterior):
        """Infinite where the targets are all equal: the smaller the amplitude, the more likely they are."""
        return posterior.log_marginal_likelihood if np.any(self._targets) else np.inf

    def _candidates(self):
        try:
            candidates = np.atleast_1d(np.asarray(self.regularizer, float))
        except (TypeError, ValueError):
            candidates = np.array([])
        if candidates.ndim != 1 or candidates.size == 0 or not (np.isfinite(candidates) & (candidates > 0)).all():
            raise ValueError("regularizer: expected a positive, finite number or a sequence of such numbers, got "
                             f"{self.regularizer!r}")
        return candidates.tolist()

    def _fits(self, matrix, candidates):
        """Candidates with which the matrix can be factorised, each with its posterior; NumericalError if there are none."""
        fits, errors = [], {}
        for eps in candidates:
            try:
                fits.append((eps, self._solved(matrix, eps)))
            except NumericalError as error:
                errors[eps] = error
        if not fits:
            raise NumericalError(f"regularizer: none of {list(errors)} is large enough: {list(errors.values())[-1]}")
        if errors:
            warnings.warn(f"regularizer: left out {list(errors)}, with which the kernel of these inputs in precision "
                          f"{self.precision!r} is not positive definite", RuntimeWarning, stacklevel=4)
        return fits

    def _mean_and_deviation(self, X, return_std):
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        cross = self._gram(X, self.X_fit_)
        mean = self._posterior.mean(cross)
        if not return_std:
            return mean, None
        if not np.any(self._targets):
            return mean, np.zeros(len(X))
        diagonal = gram_diagonal(self._network, X, self.kernel, self.precision, self.threads)
        variances = np.ascontiguousarray(getattr(diagonal, self.kernel), float)
        deviation = np.sqrt(self._posterior.variance(cross, variances) + self._posterior.noise_variance)
        return mean, deviation


class WideNetworkRegressor(RegressorMixin, _WideNetwork):
    """Gaussian-process regression with the NNGP kernel of a network, or kernel regression with its NTK.

    Of targets less their mean, which predictions get back: targets that are all equal are predicted everywhere, with a
    standard deviation of 0.

    network      a Network; None: three hidden ReLU layers
    kernel       'nngp' or 'ntk'
    regularizer  relative to the kernel's mean diagonal; the one of several under which the targets are most likely is taken
                 (`regularizer_`), each with its amplitude in closed form. Candidates below the rounding errors of the
                 kernel, with which it cannot be factorised, are left out with a warning
    precision    'float' or 'double', of the kernel; the solver computes in double
    threads      0: all of the machine's

    fit() raises ValueError for parameters out of range, NumericalError where no candidate lets the kernel be factorised.
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike) -> WideNetworkRegressor:
        """X [n, features], y [n] or [n, outputs]."""
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        self._is_flat = y.ndim == 1
        y = np.asarray(y, float).reshape(len(y), -1)
        self._offset = y.mean(0)
        return self._fit_targets(X, np.ascontiguousarray(y - self._offset))

    def predict(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Means, and with return_std standard deviations of observations, [n]."""
        mean, deviation = self._mean_and_deviation(X, return_std)
        mean = mean + self._offset
        mean = mean[:, 0] if self._is_flat else mean
        return (mean, deviation) if return_std else mean


def largest_probabilities(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities [n, classes] with which each of independent normal numbers of means `scores` [n, classes] and variance
    1 is the largest: integrals over u of phi(u - s_c) times the product of Phi(u - s_j) over j other than c.

    Larger means have larger integrands everywhere, so that probabilities are ordered as the means are. By the trapezoidal
    rule, to rounding. Cost: n classes times 91 normal distribution functions.
    """
    below = scores - scores.max(1, keepdims=True)
    total = np.zeros_like(below)
    for u in np.linspace(-9.0, 9.0, 91):
        ours = u - below
        under = ndtr(ours)
        total += np.exp(-0.5 * ours**2) / under * under.prod(1, keepdims=True)
    return total / total.sum(1, keepdims=True)


class WideNetworkClassifier(ClassifierMixin, _WideNetwork):
    """Classification by regression on one-hot targets less 1/classes, with a network's kernel; parameters as
    WideNetworkRegressor. Probabilities are those with which a class has the largest of independent Gaussian outputs, by
    quadrature: the class that is predicted has the largest one."""

    def fit(self, X: ArrayLike, y: ArrayLike) -> WideNetworkClassifier:
        """X [n, features], y [n] of any labels."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, indices = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("WideNetworkClassifier: expected at least 2 classes, got 1 class")
        return self._fit_targets(X, np.eye(len(self.classes_))[indices] - 1 / len(self.classes_))

    def _scores(self, X):
        """Posterior means in standard deviations of observations, [n, classes], and the places of the largest means."""
        mean, deviation = self._mean_and_deviation(X, True)
        # Without noise the outputs at training inputs are certain.
        return mean / np.maximum(deviation, 1e-100)[:, None], mean.argmax(1)

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Posterior means in standard deviations of observations, [n, classes]; for two classes the second less the first
        in standard deviations of this difference, [n], of which the probability is the normal distribution function."""
        scores, _ = self._scores(X)
        return (scores[:, 1] - scores[:, 0]) / np.sqrt(2) if len(self.classes_) == 2 else scores

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class of the largest posterior mean, [n]."""
        mean, _ = self._mean_and_deviation(X, False)
        return self.classes_[np.argmax(mean, axis=1)]

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probabilities of the classes, [n, classes]."""
        scores, best = self._scores(X)
        if scores.shape[1] == 2:
            difference = (scores[:, 1] - scores[:, 0]) / np.sqrt(2)
            result = np.stack([ndtr(-difference), ndtr(difference)], axis=1)
        else:
            result = largest_probabilities(scores)
        # Where rounding makes two of them equal, the larger mean is still the winner.
        rows = np.arange(len(result))
        result[rows, best] = np.where(result.argmax(1) == best, result[rows, best], np.nextafter(result.max(1), 2))
        return result
