"""Estimators for scikit-learn, with the kernels of infinitely wide networks (needs scikit-learn)."""

from __future__ import annotations

import warnings
from typing import Any, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, stdtrit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ._arrays import numbers, whole
from ._automatic import automatic_networks, default_network, likeliest
from ._calibration import fit_class_calibration
from ._core import Network, NumericalError, Regression, known_noise_amplitude
from .kernels import gram, gram_diagonal
from .models import _learn_inputs, class_scores

__all__ = ["NetworkKernel", "WideNetworkClassifier", "WideNetworkRegressor", "default_network"]


def _weighted_rows(X, y, sample_weight):
    """Rows of weight 0 left out, and the weights of the others; None for none."""
    if sample_weight is None:
        return X, y, None
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise ValueError("sample_weight: expected a weight that is not zero, got zeros only")
    there = weights > 0
    return X[there], y[there], weights[there]


def _known_variances(noise_variance, count):
    if noise_variance is None:
        return None
    variances = np.asarray(numbers(noise_variance, name="noise_variance"), float)
    if variances.shape not in ((), (count,)):
        raise ValueError(f"noise_variance: expected a number or one for each of {count} rows, got shape {variances.shape}")
    if not (np.isfinite(variances) & (variances > 0)).all():
        raise ValueError("noise_variance: expected positive, finite numbers")
    return np.broadcast_to(variances, (count,)).copy()


class NetworkKernel(Kernel):
    """A network's kernel for GaussianProcessRegressor(kernel=NetworkKernel(network)).

    network: a Network; None: three hidden ReLU layers. kernel: 'nngp' or 'ntk'. It has no hyperparameters to tune; multiply
    it by a ConstantKernel for an amplitude. Inputs are vectors [n, channels], or images and sequences reshaped to rows, for
    which `shape` gives (spatial..., channels).
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
    """The common part of both estimators: the posterior of a network's kernel with a regulariser chosen from a list."""

    def __init__(self, network: Network | str | None = None, kernel: str = "nngp",
                 regularizer: float | Sequence[float] = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0),
                 precision: str = "double", threads: int = 0, relevance: bool = False, learn_features: int = 0) -> None:
        self.network = network
        self.kernel = kernel
        self.regularizer = regularizer
        self.precision = precision
        self.threads = threads
        self.relevance = relevance
        self.learn_features = learn_features

    def _gram(self, x1, x2=None):
        result = gram(self._network, self._mapped(x1), None if x2 is None else self._mapped(x2), self.kernel, self.precision,
                      self.threads)
        return np.ascontiguousarray(getattr(result, self.kernel), float)

    def _mapped(self, x):
        """Inputs as the network sees them: with the scales, or by the matrix, that were learned."""
        if self.feature_map_ is None:
            return x
        return x * self.feature_map_ if self.feature_map_.ndim == 1 else x @ self.feature_map_

    def _learn(self, X, targets, candidates, classes):
        """Learns which inputs matter, if asked to; candidates with the regularizer that was learned."""
        self.feature_map_ = self.learned_ = None
        rounds = whole(self.learn_features, "learn_features")
        if self.relevance and rounds > 0:
            raise ValueError("expected relevance or learn_features, got both")
        if not self.relevance and rounds == 0:
            return candidates
        found = _learn_inputs(self._network, X, targets, classes, self.kernel, rounds, threads=self.threads)
        self._network, self.feature_map_, regularizer, self.learned_ = found
        return candidates if regularizer is None else [*candidates, regularizer]

    def __getstate__(self) -> dict[str, Any]:
        """Without the factorizations, which are made again when the estimator is loaded."""
        return {name: value for name, value in super().__getstate__().items() if name != "_posteriors"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "X_fit_"):
            matrix = self._weighted_gram()
            solved = {eps: self._solved(matrix, eps) for eps in set(self._chosen)}
            self._posteriors = [self._part(solved[eps], column) for column, eps in enumerate(self._chosen)]

    def _weighted_gram(self):
        """Rows and columns times the roots of their weights: with targets that are, too, the noise of all is alike."""
        return self._rows[:, None] * self._gram(self.X_fit_) * self._rows

    def _solved(self, matrix, regularizer):
        """A row of weight k is k rows, also in the mean diagonal that the regularizer is relative to."""
        return Regression.fit(matrix, self._targets, regulariser=regularizer * len(matrix) / self._count, threads=self.threads)

    def _part(self, posterior, column):
        """The posterior of one output, or of all together, with its amplitude."""
        if self._apart:
            posterior = posterior.output(column, self._targets)
        if self._amplitudes is not None:
            return posterior.with_amplitude(self._amplitudes[column])
        scale = len(self._rows) / self._count
        return posterior if scale == 1 or posterior.amplitude == 0 else posterior.with_amplitude(scale * posterior.amplitude)

    def _fit_targets(self, X, targets, apart, weights=None, noise=None):
        """weights [n], or None; noise: of the rows over that of each output, [n, outputs], or None."""
        if self.kernel not in ("nngp", "ntk"):
            raise ValueError(f"kernel: expected 'nngp' or 'ntk', got {self.kernel!r}")
        if not isinstance(self.network, str):
            return self._fit_network(default_network() if self.network is None else self.network, X, targets, apart, weights, noise)
        vars(self).update(likeliest(automatic_networks(self.network, X),
                                    lambda network: dict(vars(self._fit_network(network, X, targets, apart, weights, noise))),
                                    lambda fit: fit["log_marginal_likelihood_"]))
        return self

    def _fit_network(self, network, X, targets, apart, weights, noise):
        candidates = self._candidates()
        self._network = network
        candidates = self._learn(X, targets, candidates, classes=not apart)
        self._rows, self._count = np.ones(len(X)), len(X)
        if weights is not None:
            self._rows, self._count = np.sqrt(weights), weights.sum()
        if noise is not None:
            self._rows = np.sqrt(noise[:, 0].mean() / noise[:, 0])
        self.X_fit_, self._targets, self._apart, self._amplitudes = X, self._rows[:, None] * targets, apart, None
        matrix = self._weighted_gram()
        if noise is not None:
            best = self._known_noise(matrix, noise.mean(0))
        else:
            fits = self._fits(matrix, candidates)
            best = []
            for column in range(targets.shape[1] if apart else 1):
                of_output = [(eps, self._part(posterior, column)) for eps, posterior in fits]
                best.append(max(of_output, key=lambda fit, c=column: self._likelihood(fit[1], c)))
        self._chosen, self._posteriors = [eps for eps, _ in best], [posterior for _, posterior in best]
        self.network_ = self._network
        self.regularizer_ = self._chosen[0] if len(set(self._chosen)) == 1 else np.array(self._chosen)
        self.log_marginal_likelihood_ = sum(self._likelihood(*part) for part in zip(self._posteriors, range(len(best))))
        return self

    def _known_noise(self, matrix, noise):
        """For each output, of which the mean noise is known, the amplitude under which its targets are most likely; what it makes
        of the regularizer, and the posterior."""
        diagonal, best, self._amplitudes = np.diag(matrix).mean(), [], []
        for column, variance in enumerate(noise):
            targets = np.ascontiguousarray(self._targets[:, [column]])
            amplitude = known_noise_amplitude(matrix, targets, variance, self.threads)
            self._amplitudes.append(amplitude)
            eps = variance / (amplitude * diagonal)
            best.append((eps, self._part(self._solved(matrix, eps), column)))
        return best

    def _likelihood(self, posterior, column):
        """The log likelihood, of rows of weight k as k rows; infinite if the targets are all equal: the smaller the amplitude, the
        more likely they are."""
        targets = self._targets[:, column] if self._apart else self._targets
        if not np.any(targets):
            return np.inf
        outputs = 1 if self._apart else targets.shape[1]
        more = outputs * (self._count - len(self._rows))
        return posterior.log_marginal_likelihood - more / 2 * np.log(2 * np.pi * posterior.noise_variance)

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

    def _cross(self, X):
        """Checked inputs, and their kernels with the training inputs."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return X, self._gram(X, self.X_fit_) * self._rows

    def _means(self, cross):
        """[n, outputs]"""
        return np.concatenate([posterior.mean(cross) for posterior in self._posteriors], axis=1)

    def _deviations(self, X, cross):
        """Standard deviations of observations, [n, outputs], or [n, 1] for all outputs together."""
        diagonal = gram_diagonal(self._network, self._mapped(X), self.kernel, self.precision, self.threads)
        variances = np.ascontiguousarray(getattr(diagonal, self.kernel), float)
        deviations = [np.sqrt(posterior.variance(cross, variances) + posterior.noise_variance)
                      if posterior.amplitude > 0 else np.zeros(len(X)) for posterior in self._posteriors]
        return np.stack(deviations, axis=1)


class WideNetworkRegressor(RegressorMixin, _WideNetwork):
    """Gaussian-process regression with the NNGP kernel of a network, or kernel regression with its NTK.

    Targets are standardised: their mean is subtracted and they are divided by their standard deviation; predictions are put back.
    Each output has its own regularizer and amplitude. One whose targets are all equal is predicted everywhere with a standard
    deviation of 0, and a warning says so. Deviations allow for mean and amplitude being fitted: intervals of 1.96 deviations are
    the 95 % intervals of Student's t distribution, which few rows make wider (20 rows by 9 %, 5 rows by 58 %).

    network      a Network; None: three hidden ReLU layers; 'auto': of these and squared exponentials of one, two and four times the
                 median distance of the rows, the one under which the targets are most likely (`network_`)
    kernel       'nngp' or 'ntk'
    regularizer  relative to the kernel's mean diagonal. Of several, the one under which the targets are most likely is chosen
                 (`regularizer_`, an array if outputs differ), each with its amplitude in closed form. Candidates below the
                 rounding errors of the kernel, with which it cannot be factorised, are left out with a warning
    precision    'float' or 'double', of the kernel; the solver computes in double
    threads      0: one for each core
    relevance    True: learn a scale for each feature, with variances of weights and biases, by the gradient of the evidence
    learn_features  so many rounds of kernel regression and average gradient outer products learn a linear map of the features.
                 Both ways are kept only if each third of the training data is predicted better from what is learned from the
                 other two (`learned_`); `feature_map_` are the scales [features], the matrix, or None

    fit() raises ValueError for a single row and for parameters out of range, and NumericalError if the kernel cannot be factorised with any candidate.
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None,
            noise_variance: ArrayLike | None = None) -> WideNetworkRegressor:
        """X [n, features], y [n] or [n, outputs].

        sample_weight   [n], 0 or more: a row of weight k counts as k equal rows
        noise_variance  known noise variances of the targets, [n] or a number, in their squared units. `regularizer` is not used:
                        of each output the amplitude under which its targets are most likely is searched for. Deviations of
                        predictions have their mean."""
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        if noise_variance is not None and sample_weight is not None:
            raise ValueError("expected sample_weight or noise_variance, got both")
        noise = _known_variances(noise_variance, len(X))
        X, y, weights = _weighted_rows(X, y, sample_weight)
        if len(X) < 2:
            raise ValueError("WideNetworkRegressor: expected two rows or more, got 1 sample, which says nothing of how targets "
                             "spread")
        self._is_flat = y.ndim == 1
        y = np.asarray(y, float).reshape(len(y), -1)
        # Differences from the first target, and units of the largest one: no offset and no size costs digits.
        self._offset = y[0] + np.average(y - y[0], axis=0, weights=weights)
        residuals = y - self._offset
        largest = np.abs(residuals).max(0)
        unit = np.where(largest > 0, largest, 1.0)
        if not largest.all():
            warnings.warn(f"y: the targets of outputs {np.flatnonzero(largest == 0).tolist()} are all equal, so that their "
                          "predictions have the standard deviation 0", RuntimeWarning, stacklevel=2)
        spread = np.sqrt(np.average((residuals / unit)**2, axis=0, weights=weights))
        self._factor = np.where(largest > 0, unit * spread, 1.0)
        return self._fit_targets(X, np.ascontiguousarray(residuals / self._factor), apart=True, weights=weights,
                                 noise=None if noise is None else noise[:, None] / self._factor**2)

    def predict(self, X: ArrayLike, return_std: bool = False, return_cov: bool = False) -> Any:
        """Means; with return_std also standard deviations of observations, both [n] or [n, outputs] as y was; with
        return_cov covariances of observations, [n, n] or [n, n, outputs]. RuntimeError for both together."""
        if return_std and return_cov:
            raise RuntimeError("predict: expected return_std or return_cov, got both")
        X, cross = self._cross(X)
        mean = self._flat(self._means(cross) * self._factor + self._offset)
        if return_std:
            return mean, self._flat(self._deviations(X, cross) * self._factor * self._widening())
        return (mean, self._flat(self._covariances(X, cross) * (self._factor * self._widening())**2)) if return_cov else mean

    def _widening(self):
        """What deviations are multiplied with because mean and amplitude were fitted to n rows: integrated out, they leave
        Student's t distribution of n - 1 degrees of freedom; this Gaussian has its 95 % interval."""
        n = max(self._count, 2)
        return np.sqrt(n / (n - 1)) * stdtrit(n - 1, 0.975) / ndtri(0.975)

    def _flat(self, numbers):
        return numbers[..., 0] if self._is_flat else numbers

    def _covariances(self, X, cross):
        """Covariances of observations, [n, n, outputs]."""
        own = self._gram(X)
        noise = np.eye(len(X))
        return np.stack([posterior.covariance(cross, own) + posterior.noise_variance * noise
                         if posterior.amplitude > 0 else np.zeros_like(own) for posterior in self._posteriors], axis=-1)


class WideNetworkClassifier(ClassifierMixin, _WideNetwork):
    """Classification by regression with a network's kernel; parameters are those of WideNetworkRegressor. Two classes are one
    output, -1/2 and 1/2; more classes have one output each, one-hot minus 1/classes. Probabilities are those of
    widelimit.fit_class_calibration() for the training labels, left out one by one; the predicted class has the largest."""

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> WideNetworkClassifier:
        """X [n, features], y [n] of any labels; sample_weight [n], 0 or more: a row of weight k counts as k equal rows.
        Unless all weights are whole numbers, probabilities are fitted to rows left out as a whole, each once."""
        shape = np.asarray(y).shape
        if len(shape) == 2 and shape[1] > 1:
            raise ValueError(f"WideNetworkClassifier: y should be a 1d array of labels, got an array of shape {shape} instead; "
                             "the labels of one-hot rows are np.argmax(y, axis=1)")
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        X, y, weights = _weighted_rows(X, y, sample_weight)
        self.classes_, indices = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("WideNetworkClassifier: expected at least 2 classes, got 1 class")
        targets = class_scores(indices, len(self.classes_))
        self._fit_targets(X, targets, apart=False, weights=weights)
        self._calibration = fit_class_calibration(*self._left_out(targets, weights, indices))
        return self

    def _left_out(self, targets, weights, indices):
        """Scores of observations that are left out, their variances, and their classes."""
        posterior = self._posteriors[0]
        others, noise = posterior.leave_one_out(), posterior.noise_variance
        if weights is None:
            return targets - others.residuals, others.variances, indices
        residuals = others.residuals / self._rows[:, None]
        if (weights != np.floor(weights)).any():
            # A row as a whole, and the variance of a single observation, whose noise is not over the weight.
            return targets - residuals, others.variances / weights + noise * (1 - 1 / weights), indices
        # One of k equal rows: of (K + noise)^-1 of all of them, from that of the weighted rows (Woodbury).
        precisions = (1 - (1 - noise / others.variances) / weights) / noise
        single = targets - residuals / (others.variances * precisions)[:, None]
        copies = np.repeat(np.arange(len(weights)), weights.astype(int))
        return single[copies], 1 / precisions[copies], indices[copies]

    def _scores(self, X):
        """Posterior means [n, outputs] and variances of observations [n]."""
        X, cross = self._cross(X)
        return self._means(cross), self._deviations(X, cross)[:, 0]**2

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Logarithms of the probabilities, [n, classes], or for two classes that of the second less that of the first, [n]."""
        logarithms = np.log(np.maximum(self.predict_proba(X), np.finfo(float).tiny))
        return logarithms[:, 1] - logarithms[:, 0] if len(self.classes_) == 2 else logarithms

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The most probable class, [n]."""
        places = self.predict_proba(X).argmax(1)
        return self.classes_[places]

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probabilities of the classes, [n, classes]."""
        mean, variances = self._scores(X)
        return self._calibration.probabilities(mean, variances)
