"""Functions of JAX among the arguments: they compute in single precision unless they are told not to."""

import importlib
import sys
from contextlib import nullcontext

import numpy


def double_precision():
    """A context in which JAX, where it has been imported, computes in double precision."""
    jax = sys.modules.get("jax")
    if jax is None:
        return nullcontext()
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    return importlib.import_module("jax.experimental").enable_x64(True)


def in_double(function):
    """The function, computed in double precision also where it is made of JAX's."""

    def called(*arguments):
        with double_precision():
            return function(*arguments)

    return called


def is_of_jax(value):
    """Whether a value is an array of JAX."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, jax.Array)


def is_traced(*values):
    """Whether one of the values stands for an array in a function that JAX compiles."""
    jax = sys.modules.get("jax")
    return jax is not None and any(isinstance(value, jax.core.Tracer) for value in values)


def refuse_traced(name, *values):
    """NotImplementedError where one of the values stands for an array in a function that JAX compiles."""
    if is_traced(*values):
        raise NotImplementedError(f"{name}: expected arrays and numbers outside of functions that JAX transforms (jit, "
                                  "grad, vmap): take the transformation away; only kernel_fn and apply_fn are called back")


def called_back(name, function, shapes, *arguments):
    """function(*arguments), arrays of the given shapes in a list, called from within a function that JAX compiles. It has
    no derivatives: an error that starts with `name`."""
    jax = importlib.import_module("jax")
    numbers = jax.numpy.result_type(float)
    forms = [jax.ShapeDtypeStruct(shape, numbers) for shape in shapes]

    def on_host(*arrays):
        return [numpy.asarray(array, numbers) for array in function(*arrays)]

    kwargs = {"vmap_method": "sequential"} if hasattr(jax, "enable_x64") else {}
    call = jax.custom_jvp(lambda *arrays: jax.pure_callback(on_host, forms, *arrays, **kwargs))

    def no_derivatives(primals, tangents):
        raise NotImplementedError(f"{name}: JAX has no derivatives of it; those of kernels by inputs are in "
                                  "widelimit.jax.gram, those of finite networks in their parameters in linearize, "
                                  "empirical_ntk_fn and FiniteNetwork.jacobian")

    call.defjvp(no_derivatives)
    return call(*arguments)
