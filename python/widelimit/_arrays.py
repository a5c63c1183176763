"""Converts arrays of any kind for the compiled half: row-major float32 or float64 in this process's memory."""

from __future__ import annotations

import operator
import warnings
from typing import Any, Sequence, Union

import numpy as np
from numpy.typing import ArrayLike

from . import _core
from ._frames import array_of, is_frame
from ._jax import refuse_traced

# One array [n, ..., C], or arrays [..., C] of different sizes.
Inputs = Union[ArrayLike, Sequence[ArrayLike]]
# One for each input.
Graphs = Sequence[Union[_core.Graph, ArrayLike]]

_ELEMENT: dict[Any, type] = {"float": np.float32, "float32": np.float32, "double": np.float64, "float64": np.float64}


def element_type(precision, *arrays):
    """The element type of a computation: `precision` ("float" or "double"), or, for None, float32 if every array has
    float32 or narrower floats, else float64."""
    if precision is not None:
        if precision not in _ELEMENT:
            raise ValueError(f"precision: expected 'float' or 'double', got {precision!r}")
        return _ELEMENT[precision]
    return np.float32 if arrays and all(_is_narrow(_numpy(a).dtype) for a in arrays) else np.float64


def _is_narrow(dtype):
    """Whether a type is float32 or narrower, in either byte order."""
    return (dtype.kind == "f" and dtype.itemsize <= 4) or dtype.name == "bfloat16"


def _numpy(array, name="inputs"):
    """A view if there is one: of NumPy, of JAX and PyTorch on the host, of anything with __array__ or DLPack."""
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"{name}: expected an array without a mask of its own, got a numpy.ma.MaskedArray; fill it, and give "
                        "mask_constant to kernel_fn, or mask1 and mask2 to gram")
    if isinstance(array, np.ndarray):
        return array
    refuse_traced(name, array)
    if is_frame(array):
        return array_of(array, name)
    if getattr(getattr(array, "device", None), "type", "cpu") != "cpu" and hasattr(array, "cpu"):
        warnings.warn(f"{name}: a tensor on {array.device} is copied to the host, where it is used and the results are; x.cpu() "
                      "does so without this warning", UserWarning, stacklevel=2)
        array = array.detach().cpu()
    if getattr(array, "requires_grad", False):  # PyTorch's tensors under differentiation.
        array = array.detach()
    if hasattr(array, "__array__") or not hasattr(array, "__dlpack__"):
        return np.asarray(array)
    return np.from_dlpack(array)


def _suspect_channels_first(shape, name):
    """Warns of images that seem to have their channels before the positions."""
    if len(shape) == 4 and shape[1] in (1, 3) and shape[2] == shape[3] > 4:
        warnings.warn(f"{name}: channels are expected last, and shape {tuple(shape)} looks like images with channels first: write "
                      "np.moveaxis(x, 1, -1), or give layers of stax their axes", UserWarning, stacklevel=4)


def numbers(array, dtype=np.float64, name="array", of_inputs=False):
    """A row-major array of `dtype`; not copied if it is one already. of_inputs: its rows are inputs, of which each must be left
    something where it is rounded."""
    if array is None:
        raise TypeError(f"{name}: expected an array of real numbers, got None")
    array = _numpy(array, name)
    if array.dtype.kind == "V" and array.dtype.name == "bfloat16":
        array = array.astype(np.float32)
    if array.dtype.kind == "O" and array.size and all(isinstance(value, (bool, int, float, np.number, np.bool_)) for value in array.flat):
        array = array.astype(float)  # What pandas makes of columns of numbers and truth values together.
    if array.dtype.kind not in "fiub":
        is_text = array.dtype.kind in "US" or (array.dtype.kind == "O" and any(isinstance(value, str) for value in array.flat))
        remedy = ("; for classes give labels=True" if is_text and name == "y" else
                  "; if they are bfloat16, give array.view(ml_dtypes.bfloat16)" if array.dtype == "V2" else "")
        raise TypeError(f"{name}: expected an array of real numbers, got {'texts' if is_text else 'elements'} of type {array.dtype}{remedy}")
    if dtype == np.float32 and not _is_narrow(array.dtype):
        return _rounded(array, name, of_inputs)
    return np.ascontiguousarray(array, dtype=dtype)


def _rounded(array, name, of_inputs):
    """float32 from a wider type. ValueError where rounding would leave infinity of a finite number, or nothing of a channel, or
    of an input."""
    with np.errstate(over="ignore", under="ignore"):
        rounded = np.ascontiguousarray(array, dtype=np.float32)
    remedy = "rescale it, standardise it, or compute in double"
    beyond = np.isinf(rounded) & np.isfinite(array)
    if beyond.any():
        raise ValueError(f"{name}: {array[beyond][0]:.6g} is beyond the range of float: {remedy}")
    there, left = array != 0, rounded != 0
    axes = tuple(range(array.ndim))
    for what, others in (("a channel", axes[:-1]), ("an input", axes[1:] if of_inputs else ())):
        if others and (there.any(others) & ~left.any(others)).any():
            raise ValueError(f"{name}: all numbers of {what} are rounded to 0 in float: {remedy}")
    return rounded


def scalar_or_array(value, name):
    """Finite or infinite real numbers in double precision, of any shape, including none."""
    array = _numpy(value, name)
    return numbers(array, name=name).reshape(array.shape)


def integer_array(array, name):
    """A row-major array of int64; TypeError for elements of another type, and for those outside the range of int64."""
    array = _numpy(array, name)
    if array.size > 0 and (array.dtype.kind not in "iu" or not np.can_cast(array.dtype, np.int64)):
        raise TypeError(f"{name}: expected integers, got elements of type {array.dtype}")
    return np.ascontiguousarray(array, dtype=np.int64)


def whole(value, name, least=0):
    """One integer that is not smaller than `least`: TypeError and ValueError for anything else."""
    try:
        value = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: expected an integer, got {value!r}") from None
    if value < least:
        raise ValueError(f"{name}: expected an integer of at least {least}, got {value}")
    return value


def real(value, name):
    """One real number as a float; TypeError for anything else."""
    if isinstance(value, (str, bytes)) or np.ndim(value) != 0:
        raise TypeError(f"{name}: expected a number, got {value!r}")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: expected a number, got {value!r}") from None


def integers(values, name):
    """Sizes as a list of integers; TypeError for anything else."""
    try:
        return [operator.index(value) for value in values]
    except TypeError:
        raise TypeError(f"{name}: expected a sequence of integers, got a {type(values).__name__} of something else") from None


def check_network(value, order=""):
    """Checks that something is a Network; order: for errors, the arguments of the function that takes it."""
    if isinstance(value, _core.Network):
        return
    if isinstance(value, _core.Layer):
        got = "a Layer; write Network([layer])"
    elif isinstance(value, (list, tuple)) and len(value) == 3 and hasattr(value[2], "network"):
        got = "a layer of widelimit.stax, whose kernel_fn(x1, x2, get) gives kernels"
    elif isinstance(value, (list, tuple)):
        got = f"a {type(value).__name__}; write Network(layers)"
    elif hasattr(value, "shape"):
        got = f"a {type(value).__module__}.{type(value).__name__}" + (f"; arguments are {order}" if order else "")
    else:
        got = repr(value)
    raise TypeError(f"network: expected a widelimit.Network, got {got}")


def check_callable(name, function):
    """Checks that something can be called."""
    if not callable(function):
        raise TypeError(f"{name}: expected a function, got {function!r}")


def one_of(value, name, known):
    """`value`, which must be one of the known words."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name}: expected one of {', '.join(known)}, got {value!r}")
    return value


def each(values, name, of):
    """The elements of `values` as a list; TypeError for what has none."""
    try:
        return list(values)
    except TypeError:
        raise TypeError(f"{name}: expected a list of {of}, got {values!r}") from None


def is_ragged(inputs):
    """Whether inputs are a list of arrays [..., C] rather than one array [n, ..., C]."""
    return isinstance(inputs, (list, tuple)) and len(inputs) > 0 and getattr(inputs[0], "ndim", 0) >= 2


def type_of_inputs(precision, *batches):
    """element_type() of all arrays in batches, leaving out None."""
    arrays = []
    for inputs in batches:
        if inputs is not None:
            arrays.extend(inputs if is_ragged(inputs) else [inputs])
    return element_type(precision, *arrays)


def batch(inputs, dtype, name, lengths=None, mask=None, graphs=None):
    """Inputs in the form for the compiled half: one array [n, ..., C], or a list of arrays [..., C]."""
    kind = _core.FloatInputs if dtype == np.float32 else _core.DoubleInputs
    if is_ragged(inputs):
        arrays = [numbers(x, dtype, f"{name}[{i}]") for i, x in enumerate(inputs)]
    else:
        arrays = numbers(inputs, dtype, name, of_inputs=True)
        if arrays.size == 0 and np.ndim(inputs) < 2:
            raise ValueError(f"{name}: expected inputs [n, channels] or [n, positions..., channels], got an empty array of shape "
                             f"{np.shape(inputs)}; no inputs of 3 channels have shape (0, 3)")
        _suspect_channels_first(arrays.shape, name)
    return kind(arrays, _lengths(lengths, f"lengths of {name}"), _masks(mask, f"mask of {name}", is_ragged(inputs)),
                _graphs(graphs))


def _lengths(lengths, name):
    if lengths is None:
        return None
    return integer_array(lengths, name).ravel().tolist()


def _masks(mask, name, of_list):
    """One array of bool; for a list of inputs a list of them, if it is one."""
    if mask is None:
        return None
    if of_list and isinstance(mask, (list, tuple)):
        return [truths(m, f"{name}[{i}]") for i, m in enumerate(mask)]
    return truths(mask, name)


def truths(mask, name):
    """A row-major array of bool: of booleans, or of integers 0 and 1, as tokenizers give them. TypeError and ValueError for
    others."""
    array = _numpy(mask, name)
    if array.dtype.kind in "iu":
        other = array[(array != 0) & (array != 1)]
        if other.size > 0:
            raise ValueError(f"{name}: expected booleans, or integers 0 and 1, got {other.flat[0]}")
        array = array == 1
    if array.dtype != bool:
        raise TypeError(f"{name}: expected an array of bool, or of integers 0 and 1, got elements of type {array.dtype}")
    return np.ascontiguousarray(array)


def _graphs(graphs):
    """Graphs as they are, or from adjacency matrices [nodes, nodes] with rows for sources."""
    if graphs is None:
        return None
    return [g if isinstance(g, _core.Graph) else _core.Graph.from_adjacency(numbers(g, name="graphs")) for g in graphs]
