"""Estimators for scikit-learn, with the kernels of infinitely wide networks (needs scikit-learn)."""

from __future__ import annotations

import warnings
from typing import Any, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, check_is_fitted, column_or_1d, validate_data

from ._arrays import numbers
from ._automatic import default_network
from ._core import Network
from ._fit_arguments import says_fit_arguments
from ._frames import Columns, as_table
from ._table_warnings import warn_of_alike_classes
from .kernels import gram, gram_diagonal
from .models import Model, ObservationLaw, Prediction

__all__ = ["NetworkKernel", "WideNetworkClassifier", "WideNetworkRegressor", "default_network"]

# Rows of whole weights are repeated as long as they are no more than so many times the rows.
_MOST_REPEATED = 10


class NetworkKernel(Kernel):
    """A network's kernel for GaussianProcessRegressor(kernel=NetworkKernel(network)).

    network: a Network; None: `depth` hidden ReLU layers of these variances (default_network()), which get_params() and
    set_params() know, so that GridSearchCV and its like search for them (`kernel__depth`). kernel: 'nngp' or 'ntk'. It has no
    hyperparameters with gradients; multiply it by a ConstantKernel for an amplitude. Inputs are vectors [n, channels], or images and
    sequences reshaped to rows, for which `shape` gives (spatial..., channels). ValueError, with the first inputs, for a network
    beside another depth or variance than the default.
    """

    requires_vector_input = True

    def __init__(self, network: Network | None = None, kernel: str = "nngp",
                 shape: Sequence[int] | None = None, depth: int = 3, weight_variance: float = 2.0, bias_variance: float = 0.01) -> None:
        self.network = network
        self.kernel = kernel
        self.shape = shape
        self.depth = depth
        self.weight_variance = weight_variance
        self.bias_variance = bias_variance

    def _inputs(self, x):
        x = numbers(x, name="X")
        return x if self.shape is None else x.reshape((len(x), *self.shape))

    def _network(self):
        layers = (self.depth, self.weight_variance, self.bias_variance)
        if self.network is None:
            return default_network(*layers)
        if layers != (3, 2.0, 0.01):
            raise ValueError("NetworkKernel: depth, weight_variance and bias_variance are those of network=None: expected their defaults "
                             f"3, 2.0 and 0.01 beside a network, got {', '.join(map(str, layers))}")
        return self.network

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
    """What both estimators share: a Model, `model_`, that is fitted to what scikit-learn hands over."""

    def __init__(self, network: Network | str | None = None, kernel: str = "nngp",
                 regularizer: float | Sequence[float] | None = None, precision: str = "double", threads: int = 0,
                 relevance: bool = False, learn_features: int = 0) -> None:
        self.network = network
        self.kernel = kernel
        self.regularizer = regularizer
        self.precision = precision
        self.threads = threads
        self.relevance = relevance
        self.learn_features = learn_features

    def _fit_model(self, X, y, weights, **options):
        kinds = {"nngp": "bayesian", "ntk": "trained"}
        if self.kernel not in kinds:
            raise ValueError(f"kernel: expected 'nngp' or 'ntk', got {self.kernel!r}")
        model = Model.fit("auto" if self.network is None else self.network, X, y, kind=kinds[self.kernel], weights=weights,
                          relevance=self.relevance, learn_features=self.learn_features, precision=self.precision, threads=self.threads,
                          columns=self._columns,
                          **self._regularisers(), **options)
        self.model_, self.network_, self.automatic_ = model, model.network, model.automatic
        self.learned_, self.feature_map_ = model.learned, model.feature_map
        found = model.regulariser
        self.regularizer_ = found[0] if (found == found[0]).all() else found
        if model.kind == "bayesian":
            self.log_marginal_likelihood_ = model.log_marginal_likelihood
        return self

    def _regularisers(self):
        """`regularizer` as arguments of Model.fit: one, or the candidates."""
        if self.regularizer is None:
            return {}
        try:
            values = np.asarray(self.regularizer, float)
        except (TypeError, ValueError):
            values = np.array([])
        if values.ndim > 1 or values.size == 0 or not (np.isfinite(values) & (values > 0)).all():
            raise ValueError("regularizer: expected a positive, finite number or a sequence of such numbers, or None for those that "
                             f"Model.fit chooses from, got {self.regularizer!r}")
        return {"grid": values.tolist()} if values.ndim == 1 else {"regulariser": float(values)}

    def _validated(self, X, y, **options):
        """Inputs and targets as arrays; the columns of a frame are kept."""
        self._columns = Columns.of(X)
        return validate_data(self, as_table(X), y, dtype=np.float64, allow_nd=True, **options)

    def _new(self, X):
        check_is_fitted(self)
        if self._columns.names and not hasattr(self, "feature_names_in_"):
            X = self._columns.matched(X, "X")  # Names that are no texts, which scikit-learn passes over.
        return validate_data(self, as_table(X), dtype=np.float64, reset=False, allow_nd=True)


def _counted(X, y, sample_weight, groups):
    """Rows, weights and groups as Model takes them: rows of weight 0 are left out, and rows of whole weights stand as often as
    these say. Other weights say how precise rows are."""
    if groups is not None:
        groups = column_or_1d(groups)
        check_consistent_length(X, groups)
    if sample_weight is None:
        return X, y, None, groups
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise ValueError("sample_weight: expected a weight that is not zero, got zeros only")
    there = weights > 0
    X, y, weights = X[there], y[there], weights[there]
    groups = None if groups is None else groups[there]
    if (weights != np.floor(weights)).any() or weights.sum() > _MOST_REPEATED * len(X):
        return X, y, weights, groups
    times = weights.astype(int)
    return (np.repeat(X, times, axis=0), np.repeat(y, times, axis=0), None,
            None if groups is None else np.repeat(groups, times))


def _missing_targets(y):
    """Which targets of several outputs are NaN, [n, outputs]; None if none are."""
    try:
        y = np.asarray(y, float)
    except (TypeError, ValueError):
        return None
    return np.isnan(y) if y.ndim == 2 and y.shape[1] > 1 and np.isnan(y).any() else None


@says_fit_arguments(["relevance", "learn_features"], indent=4)
class WideNetworkRegressor(RegressorMixin, _WideNetwork):
    """Gaussian-process regression with the NNGP of a network, or networks after training: widelimit.Model, `model_`, with
    scikit-learn's protocol. What it chooses, its amplitudes and its deviations are those of Model.fit.

    NaN among the targets of several outputs are missing: each row is left out of the fit of the outputs that miss it. Outputs that
    miss the same rows are one fit; `parts_` are then the outputs and the estimator of each, in place of `model_` and its like.

    An output whose targets are all equal is predicted everywhere with a standard deviation of 0, and a warning says so.
    Deviations are half of the 95 % interval of observations over 1.96, so that they tell of intervals: wider than roots of the
    variances where the amplitude was fitted to few rows (20 rows by 9 %, 5 rows by 58 %).

    network      a Network; None or 'auto': chosen as in Model.fit (`network_`, and `automatic_` with all scores)
    kernel       'nngp', Model's kind 'bayesian', or 'ntk', its kind 'trained'
    regularizer  relative to the kernel's mean diagonal; of several, and of Model's candidates for None, the one that predicts
                 left-out targets best (`regularizer_`, an array if outputs differ)
    precision    'float' or 'double', of the kernel; the solver computes in double
    threads      0: one for each core
    target_transform  that of Model.fit: 'log' fits logarithms of targets, all positive, 'none' does not; None: 'none', or what
                 'auto' chooses
    FIT_ARGUMENTS

    What relevance and learn_features found is in `learned_`; `feature_map_` are the scales [features], the matrix, or None.
    `log_marginal_likelihood_` is that of the targets, of 'nngp'. fit() raises ValueError for a single row and for parameters out
    of range, and NumericalError if the kernel cannot be factorised with any candidate.
    """

    def __init__(self, network: Network | str | None = None, kernel: str = "nngp",
                 regularizer: float | Sequence[float] | None = None, precision: str = "double", threads: int = 0,
                 relevance: bool = False, learn_features: int = 0, target_transform: str | None = None) -> None:
        super().__init__(network, kernel, regularizer, precision, threads, relevance, learn_features)
        self.target_transform = target_transform

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None,
            noise_variance: ArrayLike | None = None, groups: ArrayLike | None = None) -> WideNetworkRegressor:
        """X [n, features], or images and sequences [n, positions..., channels] for a network of such; y [n] or [n, outputs].

        sample_weight   [n], 0 or more. Whole weights count rows: a row of weight k is k equal rows (as long as they are at most
                        ten times the rows). Other weights, of 'nngp', are Model's: the noise variance of a row is that of the
                        model over its weight
        noise_variance  known noise variances of the targets, [n] or a number for all, in their squared units, which take the
                        place of a regularizer: of each output the amplitude under which its targets are most likely is
                        searched for. Deviations of predictions have their mean, and are those of a normal distribution
        groups          [n]: rows of one group are left out together where something is chosen by data left out. Equal rows are
                        without being told."""
        missing = _missing_targets(y)
        self.__dict__.pop("parts_", None)
        if missing is not None:
            return self._fit_parts(X, np.asarray(y, float), missing, sample_weight=sample_weight, noise_variance=noise_variance, groups=groups)
        X, y = self._validated(X, y, multi_output=True, y_numeric=True)
        if noise_variance is not None:
            if sample_weight is not None:
                raise ValueError("expected sample_weight or noise_variance, got both")
            noise_variance = numbers(noise_variance, name="noise_variance")
            noise_variance = np.full(len(X), noise_variance) if noise_variance.size == 1 else noise_variance
        X, y, weights, groups = _counted(X, y, sample_weight, groups)
        if len(X) < 2:
            raise ValueError("WideNetworkRegressor: expected two rows or more, got 1 sample, which says nothing of how targets "
                             "spread")
        self._is_flat = y.ndim == 1
        y = np.asarray(y, float).reshape(len(y), -1)
        self._equal, self._varying = y[0], np.ptp(y, axis=0) > 0
        if not self._varying.all():
            warnings.warn(f"y: the targets of outputs {np.flatnonzero(~self._varying).tolist()} are all equal, so that their "
                          "predictions have the standard deviation 0", RuntimeWarning, stacklevel=2)
        if self._varying.any():
            return self._fit_model(X, np.ascontiguousarray(y[:, self._varying]), weights, noise_variance=noise_variance, groups=groups,
                                   target_transform=self.target_transform)
        self.model_, self.regularizer_ = None, self.regularizer
        return self

    def _fit_parts(self, X, y, missing, **rows):
        """Fits the outputs that miss the same rows, one such set after another."""
        few = np.flatnonzero((~missing).sum(0) < 2)
        if few.size:
            raise ValueError(f"y: expected two targets or more that are not missing (NaN) of each output, got fewer of outputs {few.tolist()}")
        X, y = self._validated(X, np.where(missing, 0, y), multi_output=True, y_numeric=True)
        patterns, places = np.unique(missing, axis=1, return_inverse=True)
        self._is_flat, self.parts_ = False, []
        for part in range(patterns.shape[1]):
            outputs, there = np.flatnonzero(places.ravel() == part), ~patterns[:, part]
            given = {name: values if values is None or np.size(values) == 1 else np.asarray(values)[there] for name, values in rows.items()}
            self.parts_.append((outputs, clone(self).fit(X[there], y[there][:, outputs], **given)))
        return self

    def _of_parts(self, X, **what):
        """Means, or means and deviations, of the outputs of all parts in their order."""
        order = np.argsort(np.concatenate([outputs for outputs, _ in self.parts_]))
        found = [part.predict(X, **what) for _, part in self.parts_]
        if not any(what.values()):
            return np.concatenate(found, axis=-1)[..., order]
        return tuple(np.concatenate(each, axis=-1)[..., order] for each in zip(*found))

    def predict(self, X: ArrayLike, return_std: bool = False, return_cov: bool = False) -> Any:
        """Means; with return_std also standard deviations of observations, both [n] or [n, outputs] as y was; with
        return_cov covariances of observations, [n, n] or [n, n, outputs]. RuntimeError for both together."""
        if return_std and return_cov:
            raise RuntimeError("predict: expected return_std or return_cov, got both")
        X = self._new(X)
        if hasattr(self, "parts_"):
            return self._of_parts(X, return_std=return_std, return_cov=return_cov)
        if self.model_ is None:
            mean = self._all(np.empty((len(X), 0)), self._equal)
            return (mean, 0 * mean) if return_std else (mean, np.zeros((len(X), *mean.shape))) if return_cov else mean
        if return_std:
            found = self.model_.predict(X, threads=self.threads)
            lower, upper = found.intervals(0.95)
            return self._all(found.mean, self._equal), self._all((upper - lower) / (2 * ObservationLaw().half_width(0.95)))
        if return_cov:
            found = self.model_.predict_jointly(X, threads=self.threads)
            variance = np.diagonal(found.covariance).T
            alone = Prediction(found.mean, np.sqrt(variance), self.model_.noise_variance, None, self.model_.law)
            covariance = found.covariance + np.eye(len(X))[..., None] * (alone.observation_variance - variance)
            return self._all(found.mean, self._equal), self._all(covariance * _widening(self.model_.law)**2)
        return self._all(self.model_.mean(X, threads=self.threads), self._equal)

    def _all(self, found, equal=0.0):
        """Numbers of the outputs of the model, beside those of outputs whose targets were all equal."""
        numbers = np.broadcast_to(equal, (*found.shape[:-1], len(self._varying))).copy()
        numbers[..., self._varying] = found
        return numbers[..., 0] if self._is_flat else numbers


def _widening(law):
    """What roots of variances are multiplied with, so that a normal distribution has the law's interval of 95 %."""
    return law.half_width(0.95) / ObservationLaw().half_width(0.95)


class WideNetworkClassifier(ClassifierMixin, _WideNetwork):
    """Classification by regression with a network's kernel: widelimit.Model, `model_`, with scikit-learn's protocol. Parameters
    are those of WideNetworkRegressor. Probabilities are Model's; the predicted class has the largest."""

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None,
            groups: ArrayLike | None = None) -> WideNetworkClassifier:
        """X as in WideNetworkRegressor.fit(), y [n] of any labels; sample_weight and groups as in WideNetworkRegressor.fit()."""
        shape = np.asarray(y).shape
        if len(shape) == 2 and shape[1] > 1:
            raise ValueError(f"WideNetworkClassifier: y should be a 1d array of labels, got an array of shape {shape} instead; "
                             "the labels of one-hot rows are np.argmax(y, axis=1)")
        X, y = self._validated(X, y)
        check_classification_targets(y)
        X, y, weights, groups = _counted(X, y, sample_weight, groups)
        self.classes_, places = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("WideNetworkClassifier: expected at least 2 classes, got 1 class")
        warn_of_alike_classes(self.classes_)
        return self._fit_model(X, places, weights, labels=True, groups=groups)

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
        X = self._new(X)
        return self.model_.predict(X, threads=self.threads).class_probabilities
