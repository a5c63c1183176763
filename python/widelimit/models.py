"""Networks fitted to data: predictions with uncertainty, saved and loaded."""

from __future__ import annotations

import json
import os
import pathlib
import tempfile
import warnings
from typing import Any, Callable, Dict, Iterable, Mapping, NamedTuple, Sequence, Tuple, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._arrays import Graphs, Inputs, batch, check_network, is_ragged, numbers, real, type_of_inputs, whole
from ._automatic import automatic_network, require_automatic
from ._calibration import ClassCalibration
from ._core import Network, Preprocessing
from ._fit_arguments import says_fit_arguments
from ._frames import Columns, ConstantChannels, is_frame
from ._html import matrix_html, network_html, rows_html, table
from ._named_functions import functions_of
from ._progress import Progress, told
from ._saved_functions import Maker
from ._table_warnings import warn_of_alike_classes, warn_of_table

Numbers = NDArray[np.float64]
_Folder = Union[str, "os.PathLike[str]"]
# The functions that a file names, by their names, or modules that may be imported for them.
Functions = Union[Mapping[str, Callable[..., Any]], Iterable[str], None]
# (x, y), or a dictionary with 'x' and 'y' and those of 'lengths', 'mask' and 'graphs' that belong to x.
Validation = Union[Tuple[Inputs, ArrayLike], Dict[str, Any]]


class ObservationLaw(NamedTuple):
    """The law of observations around their means, in deviations (roots of their variances, noise included): Student's t
    distribution where the amplitude was fitted to the targets, with a degree of freedom for each row, less one for standardised
    targets; else, and for classes, the normal distribution, whose degrees of freedom are infinite. of_logarithms: it is that of
    logarithms of observations, which were fitted (`target_transform`)."""

    degrees_of_freedom: float = np.inf
    scale: float = 1.0
    of_logarithms: bool = False

    def half_width(self, probability: float) -> float:
        """How many deviations on each side of the mean hold an observation with this probability. ArgumentError unless it lies
        between 0 and 1."""
        return _core.central_half_width(self.degrees_of_freedom, self.scale, real(probability, "probability"))


class Prediction(NamedTuple):
    """The prediction of a model for inputs, in the units of the targets: mean and standard deviation of the function, both [n,
    outputs], the noise variance of observations [outputs] (of their logarithms, where these were fitted), for classes the
    probabilities [n, classes], else None, and the ObservationLaw of numbers."""

    mean: Numbers
    standard_deviation: Numbers
    noise_variance: Numbers
    class_probabilities: Numbers | Any
    law: ObservationLaw = ObservationLaw()

    @property
    def observation_variance(self) -> Numbers:
        """Variances of observations, noise included, [n, outputs]."""
        return _core.observation_variances(*self.law, self.mean, self.standard_deviation**2, self.noise_variance)

    def intervals(self, probability: float = 0.95) -> tuple[Numbers, Numbers]:
        """Ends, both [n, outputs], of the central intervals in which an observation lies with this probability, by its law: wider
        than those of a normal distribution where the amplitude was fitted to few rows. ArgumentError unless it lies between 0
        and 1."""
        return _core.central_intervals(*self.law, real(probability, "probability"), self.mean, self.observation_variance)

    def log_density(self, y: ArrayLike) -> Numbers:
        """Logarithms of the densities of observations y, [n] or [n, outputs], by its law: [n, outputs]. The mean of their negative
        sum over outputs is the negative log predictive density. ArgumentError for another number of observations."""
        observations = np.asarray(y, float).reshape(len(self.mean), -1) if np.size(y) == self.mean.size else np.empty((0, 0))
        if observations.shape != self.mean.shape:
            raise _core.ArgumentError(f"y: expected observations of shape {self.mean.shape}, got {np.shape(y)}")
        return _core.log_densities(*self.law, observations, self.mean, self.observation_variance)

    def _repr_html_(self) -> str:
        found = {"mean": self.mean, "standard deviation": self.standard_deviation, "probability": self.class_probabilities}
        return rows_html({name: array for name, array in found.items() if array is not None and np.size(array)})


def _prediction(found, class_names):
    """From the tuple of the compiled half, which has no probabilities of no inputs."""
    mean, deviation, noise, probabilities, law = found
    if class_names and probabilities is None:
        probabilities = np.zeros((len(mean), len(class_names)))
    return Prediction(mean, deviation, noise, probabilities, ObservationLaw(*law))


class JointPrediction(NamedTuple):
    """Mean [n, outputs] and covariance [n, n, outputs] of the function at several inputs together. Classes share one
    covariance, of which the array is a read-only view."""

    mean: Numbers
    covariance: Numbers

    def _repr_html_(self) -> str:
        return rows_html({"mean": self.mean}) + matrix_html({"covariance": np.mean(self.covariance, -1)})


class LeaveOneOut(NamedTuple):
    """Predictions of every training target, row by row, from all others but those that are left out with it: for a Model rows of
    equal inputs, which would give it away, and of the same of `groups`. residuals [n, outputs], variances of observations [n, outputs] (for
    a Regression or GradientFlow [n], the same for all outputs), the negative log density of each input, and the mean squared
    error."""

    residuals: Numbers
    variances: Numbers
    negative_log_predictive_density: float
    mean_squared_error: float

    def _repr_html_(self) -> str:
        facts = table(["mean squared error", "negative log density"],
                      [[self.mean_squared_error, self.negative_log_predictive_density]])
        return facts + rows_html({"residual": self.residuals, "variance": self.variances})


class Selection(NamedTuple):
    """The regulariser that was chosen, the value below which a fit would follow the kernel's rounding errors, and the scores of
    all candidates: dictionaries with 'regulariser', 'above_noise', 'accuracy', 'mse', 'nlpd', 'log_marginal_likelihood'
    and 'loo', NaN for those not computed."""

    best: float
    noise_floor: float
    scores: Sequence[dict[str, Any]]

    def _repr_html_(self) -> str:
        names = [name for name in self.scores[0] if name != "above_noise"] if self.scores else []
        rows = [[*(row[name] for name in names), "chosen" if row["regulariser"] == self.best else
                 "" if row["above_noise"] else "below the rounding errors of the kernel"] for row in self.scores]
        return table([*names, ""], rows)


def _json(value):
    """A value as the table of fitting reads it: numbers that JSON lacks are their words."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Iterable) and not isinstance(value, str) and getattr(value, "ndim", 1) > 0:
        return [_json(one) for one in value]
    value = getattr(value, "item", lambda: value)()
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value


def _options(given, preprocessing):
    """Options of the compiled half from the arguments of fit() or select(); arrays of rows are None or numbers."""
    noise, weights = given.get("noise_variance"), given.get("weights")
    rounds = whole(given.get("learn_features", 0), "learn_features", 0)
    _core.require_fit(regulariser=given.get("regulariser") is not None, noise=noise is not None,
                      relevance=bool(given.get("relevance")), features=rounds > 0, diagonal=bool(given.get("diagonal")))
    options = _core.ModelOptions()
    for name, _ in _core.fit_arguments():
        value = _json(given.get(name)) if name not in ("noise_variance", "weights", "groups", "store") else None
        if value is not None:
            options.set(name, json.dumps([value] if name == "time" and not isinstance(value, list) else value))
    if given.get("store") is not None:
        options.set_store(os.fspath(given["store"]))
    if noise is not None and np.ndim(noise) > 0:
        options.set_rows("noise_variance", _of_rows(noise, "noise_variance"))
    elif noise is not None:
        options.set_noise_variance(real(noise, "noise_variance"))
    if weights is not None:
        options.set_rows("weights", _of_rows(weights, "weights"))
    if given.get("channel_groups") is not None:
        options.set_groups([whole(group, "channel_groups") for group in given["channel_groups"]])
    if given.get("groups") is not None:
        options.row_groups = _row_groups(given["groups"])
    options.class_names = [str(name) for name in given.get("class_names", ())]
    options.preprocessing = preprocessing
    options.set_exact_attention(given.get("exact_attention", False))
    options.set_threads(given["threads"])
    options.set_device()
    return options


def _left_out(inputs, x, options, given):
    """The ConstantChannels of the training inputs, which the options leave out then. Preprocessings that mix channels make
    something else of them."""
    if is_ragged(x) or inputs.preprocessing.kind not in ("none", "channel"):
        return ConstantChannels()
    x = numbers(x, type_of_inputs(None, x), "x")
    constant = ConstantChannels.of(x)
    if constant.values:
        options.leave_out(list(constant.values), x.shape[1])
        groups = given.get("channel_groups")
        if groups is not None and len(groups := list(groups)) == x.shape[1]:
            stay = [group for place, group in enumerate(groups) if place not in constant.values]
            options.set_groups(np.unique(stay, return_inverse=True)[1].tolist())
    return constant


def _of_rows(values, name):
    """Numbers of the training inputs, of which no array means that there are none."""
    values = numbers(values, name=name)
    if values.size == 0:
        raise ValueError(f"{name}: expected a number for each input, got an empty array; None means that there are none")
    return values


def _row_groups(groups):
    """A number for each label of a group."""
    groups = np.asarray(groups)
    if groups.ndim != 1 or groups.size == 0 or groups.dtype.kind not in "biufUSO":
        raise ValueError(f"groups: expected the label of a group for each input, [n], got {groups.dtype} of shape {groups.shape} "
                         "(channel_groups are those of channels)")
    places = {}
    return [places.setdefault(label, len(places)) for label in groups.tolist()]


def class_scores(places, count):
    """Targets of classes from their places 0, 1, ...: one output for two classes, else one for each."""
    if count == 2:
        return places.reshape(-1, 1) - 0.5
    return np.eye(count)[places] - 1 / count


def _is_one_hot(rows):
    """Whether rows have two values, of which the larger one stands once in each."""
    return len(np.unique(rows)) == 2 and bool(((rows == rows.max()).sum(1) == 1).all())


class _Classes:
    """The classes in labels [n]: the different labels, in ascending order, with their names."""

    def __init__(self, labels, names):
        labels = self._checked(labels, "y")
        self.labels = np.unique(labels)
        if len(self.labels) < 2:
            raise ValueError(f"y: expected labels of two or more classes, got {self.labels.tolist()}")
        self.names = self._named([str(name) for name in names])

    @staticmethod
    def _checked(labels, name):
        labels = np.asarray(labels)
        if labels.size == 0:
            raise ValueError(f"{name}: expected a label for each input, got an empty array of shape {labels.shape}")
        if labels.dtype.kind == "O" and all(isinstance(label, str) for label in labels.ravel()):
            labels = labels.astype(str)
        if labels.dtype.kind in "biuf" and labels.ndim == 2 and labels.shape[1] > 1 and _is_one_hot(labels):
            return labels.argmax(1)
        if labels.dtype.kind not in "biuUS" or labels.ndim != 1:
            raise TypeError(f"{name}: expected integers or texts [n], or one-hot rows [n, classes], with labels=True, got "
                            f"{labels.dtype} of shape {labels.shape}")
        return labels.astype(int) if labels.dtype.kind == "b" else labels

    def _named(self, names):
        if not names:
            return [str(label) for label in self.labels]
        if self.labels.dtype.kind in "iu" and self.labels[0] >= 0 and self.labels[-1] < len(names):
            return [names[label] for label in self.labels]
        if len(names) != len(self.labels):
            raise ValueError(f"class_names: expected {len(self.labels)} names of the labels {self.labels.tolist()[:20]}, "
                             f"got {len(names)}")
        return names

    def targets(self, labels, name):
        """Scores of classes: one output for two classes, else one for each; never NaN."""
        labels = self._checked(labels, name)
        places = np.searchsorted(self.labels, labels).clip(max=len(self.labels) - 1)
        unknown = np.flatnonzero(self.labels[places] != labels)
        if unknown.size:
            raise ValueError(f"{name}: label {unknown[0]} (from 0) is {str(labels[unknown[0]])!r}, which does not occur in the "
                             "training labels")
        return class_scores(places, len(self.labels))


def _held_out(validation, inputs, targets, columns):
    """(x, y) of validation data as the compiled half takes them, from (x, y) or a dictionary."""
    if validation is None:
        return None, None
    given = validation if isinstance(validation, dict) else None
    if given is None and isinstance(validation, (tuple, list)) and len(validation) == 2:
        given = dict(zip(("x", "y"), validation))
    if given is None or not {"x", "y"} <= set(given) <= {"x", "y", "lengths", "mask", "graphs"}:
        raise TypeError("validation: expected (x, y), or a dictionary with 'x' and 'y', and 'lengths', 'mask' or 'graphs' as "
                        f"those of x, got {list(given) if given is not None else type(validation).__name__}")
    others = {name: value for name, value in given.items() if name not in ("x", "y")}
    return inputs.batch(columns.matched(given["x"], "validation"), "validation", **others), targets(given["y"], "validation")


def _targets(y, name):
    y = numbers(y, name=name)
    if y.size == 0:
        raise ValueError(f"{name}: expected a target or more for each input, got an empty array of shape {y.shape}")
    return y if y.ndim == 2 else y.reshape(len(y), -1)


class _Inputs:
    """Batches of one precision, preprocessed as the training inputs are."""

    def __init__(self, preprocessing, x, precision, flip=False):
        self.dtype = type_of_inputs(precision, x)
        if isinstance(preprocessing, str) and preprocessing == "none":
            preprocessing = Preprocessing()
        elif isinstance(preprocessing, str):
            preprocessing = Preprocessing.fit(preprocessing, self._array(x), mirror_images=flip)
        self.preprocessing = preprocessing

    @staticmethod
    def _array(x):
        # Rounded only after the preprocessing, which takes large offsets away.
        if is_ragged(x):
            raise NotImplementedError("preprocessing: expected one array of inputs, got a list of different sizes")
        return numbers(x, name="x")

    def prepared(self, x):
        """Inputs as the network gets them."""
        return x if self.preprocessing.kind == "none" else self.preprocessing.apply(self._array(x))

    def batch(self, x, name, lengths=None, mask=None, graphs=None):
        """A batch as the compiled half takes it."""
        if self.preprocessing.kind != "none":
            if mask is not None or lengths is not None:
                raise NotImplementedError(f"preprocessing: expected 'none' for inputs with a mask or lengths, since "
                                          f"{self.preprocessing.kind!r} reads all positions")
        x = self.prepared(x)
        return batch(x, self.dtype, name, lengths, mask, graphs)


def _only(selections, remedy):
    """The selection that all outputs share."""
    if len(selections) > 1:
        raise ValueError(f"selection: each of {len(selections)} outputs has its own regulariser; {remedy}")
    return selections[0]


class Model:
    """A network fitted to data. It keeps its kernel matrices to itself. Made by Model.fit() or Model.load(); immutable."""

    def __init__(self, model: _core.Model, network: Network | None = None, labels: Any = None) -> None:
        self._model = model
        self._labels = labels  # Those that classes were made of; None where only their names are known.
        # The one that was given holds the functions of its layers.
        self._network = model.network if network is None else network
        self._columns = Columns.read(model.preparation)
        self._constant = ConstantChannels.read(model.preparation)
        self._automatic: dict[str, Any] | None = None

    @classmethod
    @says_fit_arguments()
    def fit(cls, network: Network | str, x: Inputs, y: ArrayLike, *, validation: Validation | None = None,
            labels: bool = False, kind: str = "bayesian", time: float | Iterable[float] = np.inf, regulariser: float | None = None,
            noise_variance: float | ArrayLike | None = None, weights: ArrayLike | None = None,
            relevance: bool = False, learn_features: int = 0, diagonal: bool = False,
            channel_groups: Iterable[int] | None = None, groups: ArrayLike | None = None,
            grid: Iterable[float] | None = None, criterion: str | None = None, solver: str = "cholesky", residual: float = 1e-10,
            amplitude: float | None = None, flip: bool = False, refit: bool = False,
            class_names: Iterable[str] = (), preprocessing: str | Preprocessing = "none", precision: str | None = None, threads: int = 0,
            targets_as_they_are: bool = False, target_transform: str | None = None,
            lengths: ArrayLike | None = None, mask: ArrayLike | None = None, graphs: Graphs | None = None,
            gram_folder: _Folder | None = None, store: _Folder | None = None, progress: Progress = None, exact_attention: bool = False,
            columns: Iterable[str] | None = None) -> Model:
        """The model of a network for inputs x, as gram() takes them, and targets y, [n] or [n, outputs].

        network        a Network, or for inputs [n, channels] 'auto': the kernel, and the treatment of inputs with tails, that predict
                       training targets best when they are left out; see `automatic` and docs/inference.md
        validation     (x, y) for criteria that need them, or a dictionary with 'x' and 'y', and 'lengths', 'mask' or 'graphs'
                       of these inputs; y are labels if those of the training are
        labels         True: y are classes, any integers or texts, or one-hot rows; the classes are those that occur in y. class_names are those
                       of the labels 0, 1, ..., or of the different labels in ascending order
        FIT_ARGUMENTS
        channel_groups of each channel, beside relevance and learn_features; channels of the same number share a scale
        preprocessing  'none', 'pixel', 'image', 'channel', 'zca' or a Preprocessing: kept, and also applied to the inputs of
                       predictions
        precision      as in gram()
        lengths, mask, graphs   of x, as in gram()
        progress       called with (pairs done, total pairs) of the Gram matrices; True: a bar of tqdm, or a line
        exact_attention  as in gram()
        columns        names of the columns of an array x [n, channels], for `columns`; frames have their own

        Columns of x [n, channels] that are the same in all training inputs are left out, and so is what new inputs have there; both are
        said by a UserWarning (but for the preprocessings 'pixel', 'image' and 'zca', which mix channels).

        Frames of pandas, polars and PyArrow are found by the names of their columns in validation data and predictions.

        Raises ArgumentError for shapes and options that do not fit each other, NumericalError if no regulariser lifts
        the kernel above its rounding errors. Cost: the Gram matrix, n^3 / 3 operations, and 9 n^3 to choose.
        """
        given = {name: value for name, value in locals().items() if name not in ("cls", "network", "x", "y")}
        chooses = isinstance(network, str)
        if chooses:
            shape = x.shape if is_frame(x) else () if is_ragged(x) else np.shape(x)
            require_automatic(network, shape, any(other is not None for other in (lengths, mask, graphs)))
        else:
            check_network(network, "network, x, y")
        named = Columns.of(x, columns)
        inputs = _Inputs(preprocessing, x, precision, flip)
        options = _options(given, inputs.preprocessing)
        constant = _left_out(inputs, x, options, given)
        if constant.values:
            warnings.warn(constant.note(named), stacklevel=2)
        options.preparation = named.preparation(y, constant)
        classes = None
        train = inputs.batch(x, "x", lengths, mask, graphs)
        if labels:
            classes = _Classes(y, class_names)
            options.class_names = classes.names
            targets = classes.targets
            warn_of_alike_classes(classes.names)
        else:
            targets = _targets
        warn_of_table(x, y, named.names, labels, inputs.preprocessing.kind == "none")
        held = _held_out(validation, inputs, targets, named)
        automatic = None
        if chooses:
            network, automatic = automatic_network(train, targets(y, "y"), held[1], options)
        with told(progress, "pairs") as tell:
            if tell is not None:
                options.set_progress(tell)
            model = _core.Model.fit(network, train, targets(y, "y"), *held, options)
        # A network with learned variances is another one.
        used = model.network if model.learned is not None else network
        fitted = cls(model, used, None if classes is None else classes.labels)
        fitted._automatic = automatic
        return fitted

    @staticmethod
    def select(network: Network, x: Inputs, y: ArrayLike, *, validation: Validation | None = None,
               kind: str = "bayesian", grid: Iterable[float] | None = None, criterion: str | None = None, flip: bool = False,
               preprocessing: str | Preprocessing = "none", precision: str | None = None, threads: int = 0,
               labels: bool = False, lengths: ArrayLike | None = None, mask: ArrayLike | None = None,
               graphs: Graphs | None = None, gram_folder: _Folder | None = None, solver: str = "cholesky",
               residual: float = 1e-10, groups: ArrayLike | None = None) -> Selection:
        """The scores of the regularisers of the grid with this network, and the best one: a Selection, for searches. Arguments,
        errors and cost are those of fit(), without the factorization."""
        given = dict(locals())
        check_network(network, "network, x, y")
        inputs = _Inputs(preprocessing, x, precision, flip)
        options = _options(given, inputs.preprocessing)
        _left_out(inputs, x, options, given)
        targets = _targets
        if labels:
            classes = _Classes(y, ())
            options.class_names, targets = classes.names, classes.targets
        found = _core.Model.select(network, inputs.batch(x, "x", lengths, mask, graphs), targets(y, "y"),
                                   *_held_out(validation, inputs, targets, Columns.of(x)), options)
        return _only(tuple(Selection(*each) for each in found), "Model.select: give the columns of y one by one")

    @classmethod
    def load(cls, folder: _Folder, threads: int = 0, functions: Functions = None) -> Model:
        """The model that was saved, whose predictions have the same bits. functions: what its layers of your own call,
        {'module:name': function}, or names of modules that may be imported for it (docs/python.md). DataError for anything else
        than a model, NetworkError for functions that are not given."""
        maker = Maker(functions)
        model = _core.load_model(folder, threads, maker)
        network = model.network
        if maker.held:
            network._functions = maker.held
        return cls(model, network)

    def save(self, folder: _Folder) -> None:
        """Writes a folder, which appears as a whole or not at all (docs/inference.md). DataError if it holds anything else
        than a model; NetworkError for layers of functions that cannot be imported by name, which no file can hold."""
        self._model.save(folder)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the files that save() writes."""
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder) / "model"
            self.save(place)
            files = {str(file.relative_to(place)): file.read_bytes() for file in place.rglob("*") if file.is_file()}
        return _of_files, (files, self._labels, functions_of(self.network.to_json()))

    def _batch(self, x, lengths, mask, graphs):
        x = self._columns.matched(x, "x")
        new = _Inputs(self.preprocessing, x, None).batch(x, "x", lengths, mask, graphs)
        if self._constant.values and (said := self._constant.new_values(numbers(x, name="x"), self._columns)):
            warnings.warn(said, stacklevel=3)
        if warning := self._model.range_warning(new):
            warnings.warn("x: " + warning, stacklevel=3)
        return new

    def predict(self, x: Inputs, *, threads: int = 0, lengths: ArrayLike | None = None, mask: ArrayLike | None = None,
                graphs: Graphs | None = None, batch_size: int | None = None, progress: Progress = None) -> Prediction:
        """A Prediction for every input; x, lengths, mask and graphs are as in fit(). batch_size: so many inputs at a time, which
        holds less memory and agrees to rounding; with progress and without it, a twentieth of them. ArgumentError for inputs of
        another form than the training inputs', and for NaN."""
        x = self._columns.matched(x, "x")
        whole_batch = self._batch(x, lengths, mask, graphs)
        if batch_size is None and (progress is None or progress is False):
            return _prediction(self._model.predict(whole_batch, threads), self.class_names)
        inputs = list(x) if is_ragged(x) else numbers(x, type_of_inputs(None, x), "x")
        size = max(1, -(-len(inputs) // 20)) if batch_size is None else whole(batch_size, "batch_size", 1)
        parts = []
        with told(progress, "predictions") as tell:
            for first in range(0, len(inputs), size):
                rows = slice(first, min(first + size, len(inputs)))
                others = [None if given is None else given[rows] for given in (lengths, mask, graphs)]
                some = _Inputs(self.preprocessing, inputs[rows], None).batch(inputs[rows], "x", *others)
                parts.append(_prediction(self._model.predict(some, threads), self.class_names))
                if tell is not None:
                    tell(rows.stop, len(inputs))
        if not parts:
            return _prediction(self._model.predict(whole_batch, threads), self.class_names)
        joined = {name: np.concatenate([getattr(part, name) for part in parts])
                  for name in ("mean", "standard_deviation", "class_probabilities")
                  if getattr(parts[0], name) is not None and np.size(getattr(parts[0], name))}
        return parts[0]._replace(**joined)

    def mean(self, x: Inputs, *, threads: int = 0, lengths: ArrayLike | None = None, mask: ArrayLike | None = None,
             graphs: Graphs | None = None) -> Numbers:
        """The mean alone, [n, outputs], which costs no more than the kernel. Arguments and errors are those of predict()."""
        return self._model.mean(self._batch(x, lengths, mask, graphs), threads)

    def predict_jointly(self, x: Inputs, *, threads: int = 0, lengths: ArrayLike | None = None, mask: ArrayLike | None = None,
                        graphs: Graphs | None = None) -> JointPrediction:
        """A JointPrediction of all inputs. Arguments and errors are those of predict(). Cost: the kernel of all pairs of inputs."""
        mean, covariances = self._model.predict_jointly(self._batch(x, lengths, mask, graphs), threads)
        if len(covariances) == mean.shape[1]:
            return JointPrediction(mean, np.stack(covariances, axis=-1))
        return JointPrediction(mean, np.broadcast_to(covariances[0][..., None], (*covariances[0].shape, mean.shape[1])))

    def samples(self, x: Inputs, count: int, seed: int = 0, joint: bool = True, *, threads: int = 0,
                lengths: ArrayLike | None = None, mask: ArrayLike | None = None,
                graphs: Graphs | None = None) -> Numbers:
        """Functions of the posterior at these inputs, [count, n, outputs], without the noise of observations; with
        joint=False they are independent from input to input. Equal seeds give equal functions. ArgumentError for count < 1, and
        the errors of predict(). Cost: n^3 / 3 operations in addition to those of predict_jointly()."""
        return self._model.samples(self._batch(x, lengths, mask, graphs), whole(count, "count"), whole(seed, "seed"), joint, threads)

    def prior_samples(self, x: Inputs, count: int, seed: int = 0, *, threads: int = 0,
                      lengths: ArrayLike | None = None, mask: ArrayLike | None = None,
                      graphs: Graphs | None = None) -> Numbers:
        """Functions before any data, [count, n, outputs]: wide networks at initialisation, scaled by the amplitude. Seeds and
        errors are those of samples()."""
        return self._model.prior_samples(self._batch(x, lengths, mask, graphs), whole(count, "count"), whole(seed, "seed"), threads)

    def score(self, x: Inputs, y: ArrayLike, *, threads: int = 0, lengths: ArrayLike | None = None,
              mask: ArrayLike | None = None, graphs: Graphs | None = None) -> float:
        """The score of predictions as scikit-learn defines it. For classes it is the share predicted correctly, where y are labels
        as in fit() (for a loaded model, names of classes, or their numbers from 0). For numbers it is R^2, 1 minus the mean squared
        error over the variance of y, averaged over outputs. ValueError for unknown labels, and for targets that do not differ."""
        if len(x) == 0:
            raise ValueError("score: x: expected an input or more, got none")
        if self.class_names:
            places = self.predict(x, threads=threads, lengths=lengths, mask=mask, graphs=graphs).class_probabilities.argmax(1)
            true = self._places_of(y)
            if len(true) != len(places):
                raise ValueError(f"score: y: expected {len(places)} labels, one an input, got {len(true)}")
            return float((places == true).mean())
        predicted = self.mean(x, threads=threads, lengths=lengths, mask=mask, graphs=graphs)
        targets = _targets(y, "y")
        if targets.shape != predicted.shape:
            raise ValueError(f"score: y: expected targets {predicted.shape}, got {targets.shape}")
        spread = ((targets - targets.mean(0))**2).sum(0)
        if not (spread > 0).all():
            raise ValueError("score: y: expected targets that differ in every output; R^2 is a ratio to their variance")
        return float((1 - ((targets - predicted)**2).sum(0) / spread).mean())

    def _places_of(self, y):
        """Numbers of the classes of labels."""
        y = _Classes._checked(y, "y")
        known = self._labels
        if known is None:
            known = np.array(self.class_names) if y.dtype.kind == "U" else np.arange(len(self.class_names))
        order = np.argsort(known)
        places = order[np.searchsorted(known, y, sorter=order).clip(max=len(known) - 1)]
        unknown = np.flatnonzero(known[places] != y)
        if unknown.size:
            raise ValueError(f"score: y: label {y[unknown[0]]!s} is none of the model's, {known.tolist()[:20]}")
        return places

    def leave_one_out(self) -> LeaveOneOut:
        """A LeaveOneOut of the training data, in closed form. ArgumentError for networks trained for a finite time, and for
        models of conjugate gradients."""
        return self._model.leave_one_out()

    def with_amplitude(self, amplitude: float) -> Model:
        """The same model with another factor on the kernel: the same means, other variances. ArgumentError unless it is positive
        and finite."""
        return Model(self._model.with_amplitude(amplitude), self._network, self._labels)

    def at_time(self, time: float) -> Model:
        """The same networks after another time of training, 0 .. inf, for 'trained' models of the solver 'cholesky' (ArgumentError): it
        shares the decomposition, and regulariser, amplitude and calibration are those of infinite time."""
        return Model(self._model.at_time(real(time, "time")), self._network, self._labels)

    @property
    def log_marginal_likelihood(self) -> float:
        """The log marginal likelihood of the training targets; for 'bayesian' models of the solver 'cholesky' only
        (ArgumentError)."""
        return self._model.log_marginal_likelihood()

    @property
    def selections(self) -> tuple[Selection, ...]:
        """The scores of the regularisers: one Selection for all outputs (classes, or a single output), or one for each; none if
        a regulariser was given, and for a loaded model."""
        return tuple(Selection(*found) for found in self._model.selections())

    @property
    def selection(self) -> Selection | None:
        """The Selection for all outputs; None if there is none. ValueError if each output has its own."""
        found = self.selections
        return _only(found, "see `selections`") if found else None

    @property
    def kind(self) -> str:
        """'bayesian' or 'trained'."""
        return self._model.kind

    @property
    def solver(self) -> str:
        """'cholesky' or 'cg': by which the model was fitted."""
        return self._model.solver

    @property
    def time(self) -> float:
        """The training time of 'trained' models, 0 .. inf, in units of 1 / (learning rate * eigenvalue of the NTK)."""
        return self._model.time

    @property
    def times(self) -> tuple[float, ...]:
        """The times that `time` of fit() listed, for at_time(), and at which `widelimit predict` predicts too; empty for a single one."""
        return tuple(self._model.times)

    @property
    def amplitude(self) -> Numbers:
        """The factor on the kernel of standardised targets, [outputs]: the given one, or the most likely one."""
        return self._model.amplitude

    @property
    def noise_variance(self) -> Numbers:
        """The noise variance of observations, [outputs], in squared units of the targets."""
        return self._model.noise_variance

    @property
    def regulariser(self) -> Numbers:
        """The regulariser of each output, [outputs], relative to the mean diagonal of the kernel: the one that was chosen or given, or
        what a known noise comes to. NaN for models that were saved by version 0.2.0."""
        return self._model.regulariser

    @property
    def law(self) -> ObservationLaw:
        """The ObservationLaw of numbers around their means; normal for classes."""
        return ObservationLaw(*self._model.law)

    @property
    def target_scale(self) -> tuple[Numbers, Numbers]:
        """Offset and factor of each output, both [outputs]: targets are offset + factor * standardised targets."""
        return self._model.target_offsets, self._model.target_factors

    @property
    def class_calibration(self) -> ClassCalibration:
        """How scores of classes become their probabilities, fitted to training data that are left out one by one; without shifts
        for numbers and with a given amplitude, where probabilities are widelimit.class_probabilities()."""
        return ClassCalibration(self._model.probability_scale, self._model.probability_shifts)

    @property
    def network(self) -> Network:
        """The Network."""
        return self._network

    @property
    def outputs(self) -> int:
        """The number of outputs."""
        return self._model.outputs

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the classes; empty if targets are numbers."""
        return tuple(self._model.class_names)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of the training inputs, by which those of frames are found; empty if they had none. Of tables of
        `widelimit fit`, a column of texts is several numbers of the inputs."""
        return self._columns.names

    @property
    def automatic(self) -> dict[str, Any] | None:
        """Of network='auto': what was chosen, 'network' and 'inputs', on how many 'rows', and all 'trials' with their scores; None
        for other networks and for a loaded model."""
        return self._automatic

    @property
    def feature_map(self) -> Numbers | None:
        """What channels are multiplied by before the network: factors [C], a matrix [C, C], or None for nothing. Those of channels
        that are left out are 0."""
        factors = self._model.feature_map
        if not self._constant.values or factors is None:
            return factors
        factors = np.delete(factors, list(self._constant.values), axis=0)
        is_diagonal = np.array_equal(factors, np.diag(np.diag(factors)))
        return self._constant.all_channels(np.diag(factors) if is_diagonal else factors)

    @property
    def learned(self) -> dict[str, Any] | None:
        """What relevance or learn_features found: 'factors', whether they are 'kept', the 'score' of thirds of the training data
        (negative log density of standardised numbers, or log loss), 'score_without', the 'standard_error' of the difference,
        and the 'course' of learning. None if nothing was asked for, and for a loaded model."""
        found = self._model.learned
        return None if found is None else {**found, "factors": self._constant.all_channels(found["factors"])}

    @property
    def flips(self) -> bool:
        """Whether kernels are averaged over inputs and mirror images."""
        return self._model.flips

    @property
    def preprocessing(self) -> Preprocessing:
        """The Preprocessing of all inputs."""
        return self._model.preprocessing

    def __len__(self) -> int:
        """The number of training inputs."""
        return self._model.train_size

    def _repr_html_(self) -> str:
        facts = {"kind": self.kind, "training inputs": len(self), "outputs": self.outputs,
                 "amplitude": ", ".join(f"{a:.5g}" for a in self.amplitude[:10]),
                 "noise variance": ", ".join(f"{v:.5g}" for v in self.noise_variance[:10])}
        if self.class_names:
            facts["classes"] = ", ".join(self.class_names[:20])
        if self.preprocessing.kind != "none":
            facts["preprocessing"] = self.preprocessing.kind
        chosen = "".join(found._repr_html_() for found in self.selections[:4])
        return table(["", ""], facts.items()) + network_html(self.network) + chosen

    def __repr__(self) -> str:
        return f"<{self.kind} model of {self.network!r}, {len(self)} training inputs>"


def _of_files(files, labels=None, functions=None):
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            file = pathlib.Path(folder) / "model" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        model = Model.load(pathlib.Path(folder) / "model", functions=functions)
        model._labels = labels
        return model


class Trial(NamedTuple):
    """A choice of values and its score."""

    values: Sequence[float]
    score: float


def search(parameters: Iterable[Sequence[Any]], score: Callable[[Sequence[float]], Any], trials: int = 50,
           known: Iterable[Trial | tuple[Sequence[float], float]] = ()) -> list[Trial]:
    """Searches for the values with the lowest score, without derivatives. Returns all Trials in their order.

    parameters  (name, lower, upper) or (name, lower, upper, 'linear' | 'log' | 'integer') for each value
    score       called with a list of values; NaN if it cannot be computed
    known       Trials of an earlier search for the same parameters, which are not computed again
    """
    bounds = [(str(name), float(low), float(high), *(rest or ("linear",))) for name, low, high, *rest in parameters]
    earlier = [([float(value) for value in values], float(result)) for values, result in known]
    return [Trial(*trial) for trial in _core.search(bounds, lambda values: float(score(values)), trials, earlier)]
