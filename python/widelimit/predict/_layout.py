"""Kernels and targets of any number of axes as matrices, and back."""

from operator import sub

import numpy as np

from .._caller import caller_of
from .._jax import with_any_ranks
from ._live import Jax, library_of, real


def as_matrix(kernel):
    """[n, n', d, d', ...] as [n d ..., n' d' ...]."""
    order = list(range(0, kernel.ndim, 2)) + list(range(1, kernel.ndim, 2))
    rows, columns = int(np.prod(kernel.shape[::2])), int(np.prod(kernel.shape[1::2]))
    return transposed(kernel, order).reshape(rows, columns)


def transposed(array, axes):
    """transpose() for arrays of any library."""
    library = library_of(array)
    return array.transpose(axes) if library is None else library.transposed(array, axes)


def moved(array, axes, to):
    """moveaxis() for arrays of any library."""
    library = library_of(array)
    return (np if library is None else library.functions()).moveaxis(array, tuple(axes), tuple(to))


def swapped(matrices):
    """Transposed matrices [..., n, m] of any library."""
    return matrices.swapaxes(-1, -2)


def as_covariance(matrices, shape):
    """[..., n d, n d] as [..., n, n, d, d, ...] with (n, d, ...) = shape."""
    front, count = matrices.ndim - 2, len(shape)
    array = matrices.reshape(*matrices.shape[:-2], *shape, *shape)
    axes = [front + k for axis in range(count) for k in (axis, axis + count)]
    return transposed(array, [*range(front), *axes])


def kernel_array(kernel, name):
    """An array with pairs of axes; one number where outputs have no axis that is not traced."""
    if hasattr(kernel, "nngp") and hasattr(kernel, "ntk"):
        raise TypeError(f"{name}: expected an array, got a {type(kernel).__name__} of two kernels: give its .ntk or .nngp")
    kernel = real(kernel, name)
    if kernel.ndim % 2:
        raise ValueError(f"{name}: expected an array [n, n', ...] with an even number of axes, got shape {kernel.shape}")
    return kernel


def square_kernel(kernel, name):
    """An array whose axes come in equal pairs."""
    kernel = kernel_array(kernel, name)
    if kernel.shape[::2] != kernel.shape[1::2]:
        raise ValueError(f"{name}: expected a square array, got shape {kernel.shape}")
    return kernel


def difference(y, other, name):
    """y - other, of the shape of y or with more leading axes."""
    other = real(other, name)
    library = library_of(y, other)
    if library is None:
        return np.array(y - other)
    return (with_any_ranks(sub) if library is Jax else sub)(library.array(y), library.array(other))


class Targets:
    """Targets y, and which of their axes the kernels lack."""

    def __init__(self, y, trace_axes):
        self.caller = caller_of(y)
        self.y = real(y, "y_train")
        if self.size == 0:
            raise ValueError(f"y_train: expected a target or more, got an empty array of shape {tuple(self.y.shape)}")
        if library_of(self.y) is None and not np.isfinite(self.y).all():
            raise ValueError(f"y_train: expected finite numbers, got {np.sum(~np.isfinite(self.y))} that are not")
        axes = (trace_axes,) if isinstance(trace_axes, int) else tuple(trace_axes)
        if any(not -self.y.ndim <= axis < self.y.ndim for axis in axes):
            raise ValueError(f"trace_axes={trace_axes!r}: expected axes of y_train, which has shape {self.y.shape}")
        self.trace_axes = axes
        self._axes = sorted({axis % self.y.ndim - self.y.ndim for axis in axes})
        if self.y.ndim == 1 and axes:
            raise ValueError(f"y_train: expected [n, ..., outputs], got shape {tuple(self.y.shape)}: give y_train[:, None], or "
                             "trace_axes=() if kernels have all its axes")
        self.kernel_shape = tuple(size for axis, size in enumerate(self.y.shape) if axis - self.y.ndim not in self._axes)

    @property
    def size(self):
        return int(np.prod(self.y.shape))

    def check(self, kernel, name):
        """Checks that a kernel [n, n', ...] has the targets' axes along its second ones."""
        if kernel.shape[1::2] != self.kernel_shape:
            raise ValueError(f"{name}: expected an array over {self.kernel_shape} as y_train without trace_axes, got "
                             f"shape {kernel.shape}")
        return kernel

    def rows(self, values):
        """Values like y as a matrix: axes that kernels have are rows, those that they lack are columns."""
        return moved(values, self._axes, range(-len(self._axes), 0)).reshape(-1, self.traced)

    @property
    def traced(self):
        return int(np.prod([self.y.shape[axis] for axis in self._axes])) if self._axes else 1

    def outputs(self, rows, shape):
        """Matrices [..., rows, columns] of inputs with (n, d, ...) = shape, as values like y."""
        sizes = tuple(self.y.shape[axis] for axis in self._axes)
        array = rows.reshape(*rows.shape[:-2], *shape, *sizes)
        return moved(array, range(-len(sizes), 0), self._axes)

    def output_shape(self, shape):
        """The shape of outputs at inputs with (n, d, ...) = shape."""
        return self.outputs(np.empty((int(np.prod(shape)), self.traced)), shape).shape
