"""Functions of JAX among the arguments, which compute in single precision unless they are told not to."""

import importlib
import inspect
import sys
from contextlib import nullcontext
from functools import wraps

import numpy as np


def double_precision():
    """A context in which JAX, if it has been imported, computes in double precision."""
    jax = sys.modules.get("jax")
    if jax is None:
        return nullcontext()
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    return importlib.import_module("jax.experimental").enable_x64(True)


def concretely():
    """A context in which JAX, if it has been imported, computes at once, also within a function that it compiles."""
    jax = sys.modules.get("jax")
    return nullcontext() if jax is None else jax.ensure_compile_time_eval()


def with_any_ranks(function):
    """A function of JAX's arrays, or None, in which arrays of different ranks meet whatever the user lets JAX say about that."""
    if function is None:
        return None

    @wraps(function)
    def called(*arguments):
        import jax

        with jax.numpy_rank_promotion("allow"):
            return function(*arguments)

    return called


def in_double(function):
    """The function, computed in double precision even if it is written in JAX."""

    def called(*arguments):
        with double_precision():
            return function(*arguments)

    return called


def is_of_jax(value):
    """Whether a value is an array of JAX."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, jax.Array)


def is_traced(*values):
    """Whether one of the values represents an array in a function that JAX compiles."""
    jax = sys.modules.get("jax")
    return jax is not None and any(isinstance(value, jax.core.Tracer) for value in values)


def refuse_traced(name, *values):
    """NotImplementedError if one of the values represents an array in a function that JAX compiles."""
    if is_traced(*values):
        raise NotImplementedError(f"{name}: expected arrays and numbers outside of functions that JAX transforms (jit, "
                                  "grad, vmap): take the transformation away; kernel_fn, apply_fn and predict_fn can be "
                                  "transformed by what they are called with")


def called_back(function, shape, dtype, *arrays):
    """function(*arrays), an array of a shape and an element type, in a function that JAX compiles: called when that runs."""
    import jax

    # Versions before 0.4.34 go through a batch one by one without being told.
    takes_method = "vmap_method" in inspect.signature(jax.pure_callback).parameters
    options = {"vmap_method": "sequential"} if takes_method else {}
    return jax.pure_callback(lambda *given: np.asarray(function(*(np.asarray(array) for array in given)), dtype),
                             jax.ShapeDtypeStruct(shape, dtype), *arrays, **options)


def is_function_of_jax(function, arguments=1):
    """Whether a function of arrays of one shape can be called with arrays that JAX traces."""
    import jax

    try:
        jax.eval_shape(function, *[jax.ShapeDtypeStruct((2,), np.float32)] * arguments)
    except Exception:  # A function of NumPy's arrays, or none at all.
        return False
    return True
