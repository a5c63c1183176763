"""Regularised kernel matrices, solves with them, and their gradient flow."""

import numpy as np

from .._arrays import scalar_or_array
from .._caller import is_live
from ._apart import apart, product
from ._live import LiveFlow, library_of, real


def regularised(kernel, diag_reg, diag_reg_absolute_scale):
    """The matrix plus diag_reg on its diagonal, relative to the mean diagonal unless told otherwise."""
    if np.ndim(diag_reg) != 0:
        raise TypeError(f"diag_reg: expected one number for the whole diagonal, got shape {np.shape(diag_reg)}: add other "
                        "numbers to the kernel, k_train_train + diag(numbers)")
    library = library_of(kernel, diag_reg)
    if library is not None:
        kernel, added = library.array(kernel), library.array(diag_reg)
        scale = 1.0 if diag_reg_absolute_scale else library.functions().trace(kernel) / len(kernel)
        return kernel + added * scale * library.array(np.eye(len(kernel)))
    if not diag_reg >= 0:
        raise ValueError(f"diag_reg: expected a number of at least 0, got {diag_reg}")
    scale = 1.0 if diag_reg_absolute_scale else np.trace(kernel) / len(kernel)
    result = np.array(kernel)
    result[np.diag_indices(len(kernel))] += diag_reg * scale
    return result


def checked_times(t):
    """Times of any shape, checked."""
    if is_live(t):
        return real(t, "t")
    t = scalar_or_array(t, "t")
    if not np.all(t >= 0):
        raise ValueError(f"t: expected times of at least 0, got {t}")
    return t


class Solver:
    """T^-1 v by Cholesky factors, which say where a matrix is not positive definite."""

    def __init__(self, kernel):
        library = library_of(kernel)
        if library is not None:
            self._factor = library.cholesky(kernel)
            return
        try:
            self._factor = apart(np.linalg.cholesky, kernel)
        except np.linalg.LinAlgError as error:
            raise np.linalg.LinAlgError("the kernel is not positive definite: diag_reg adds to its diagonal") from error

    def __call__(self, vectors):
        library = library_of(self._factor, vectors)
        if library is not None:
            return library.solved(library.array(self._factor), library.array(vectors))
        halfway = apart(np.linalg.solve, self._factor, vectors)
        return apart(np.linalg.solve, self._factor.T, halfway)


class Flow:
    """exp(-rate T t) in the eigenbasis of T, for times of any shape, whose axes come first in the results. Eigenvalues below
    0 count as 0; those that rounding (to `precision`, that of the kernel's numbers) does not explain are errors."""

    def __init__(self, kernel, rate, precision=np.float64):
        self.values, self.vectors = apart(np.linalg.eigh, kernel)
        rounding = np.finfo(precision).eps * len(kernel) * max(abs(self.values[-1]), abs(self.values[0]))
        if self.values[0] < -1e2 * rounding:
            raise np.linalg.LinAlgError(
                f"the kernel has the eigenvalue {self.values[0]:.3g}: expected a positive semidefinite kernel; "
                "diag_reg adds to its diagonal")
        self.values = np.maximum(self.values, 0)
        self._rate = rate

    @property
    def matrix(self):
        """T without its negative part."""
        return product(self.vectors * self.values, self.vectors.T)

    def _exponents(self, t):
        with np.errstate(invalid="ignore"):
            exponents = self._rate * self.values * t[..., None]
        # Directions that do not learn do not learn in infinite time either.
        return np.where(self.values > 0, exponents, 0.0)

    def _apply(self, factors, vectors):
        inner = product(self.vectors.T, vectors)
        library = library_of(inner)
        return product(self.vectors, (factors if library is None else library.array(factors))[..., None] * inner)

    def remaining(self, t, vectors):
        """exp(-rate T t) v"""
        return self._apply(np.exp(-self._exponents(t)), vectors)

    def progress(self, t, vectors):
        """T^-1 (I - exp(-rate T t)) v, which is rate t v where T is 0."""
        exponents = self._exponents(t)
        with np.errstate(divide="ignore", invalid="ignore"):
            factors = np.where(exponents > 1e-30, -np.expm1(-exponents) / self.values, self._rate * t[..., None])
        return self._apply(factors, vectors)


def flow_of(kernel, rate, precision, *others):
    """The Flow of a kernel; a LiveFlow where it or one of the others, times or vectors, is live."""
    library = library_of(kernel, *others)
    return Flow(kernel, rate, precision) if library is None else LiveFlow(library, kernel, rate)


def precision_of(kernel):
    """The element type of a kernel that a user brings."""
    dtype = getattr(kernel, "dtype", None)
    return np.float32 if dtype is not None and str(dtype).endswith(("float32", "float16")) else np.float64
