"""Whose arrays a caller passes: NumPy's, JAX's or PyTorch's. Kernels are computed with NumPy's arrays; results are of the
caller's kind.

Arrays that are being differentiated or traced are called live: JAX's within functions that it transforms
(jit, grad, vmap), and tensors of PyTorch that require gradients.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np

from ._jax import concretely


class Caller:
    """The caller with NumPy's arrays, who gets what was computed."""

    name = "NumPy"
    is_live = False

    def give(self, result: Any, dtype: Any = None) -> Any:
        """Results, arrays or tuples and the like of them, as the caller's arrays; if dtype is 'own', with the
        element type of the caller's arrays."""
        return result


class _Foreign(Caller):
    """A caller with another library's arrays. dtype: the common type of all its arrays of real numbers, None without any."""

    def __init__(self, arrays, is_live):
        self.is_live = is_live
        floats = [array for array in arrays if self._is_real(array)]
        self.dtype = self._common(floats) if floats else None

    def give(self, result, dtype=None):
        return _mapped(result, lambda array: self._given(array, self.dtype if dtype == "own" else None))


class _Jax(_Foreign):
    name = "JAX"

    @staticmethod
    def _is_real(array):
        import jax.numpy as jnp

        return jnp.issubdtype(array.dtype, jnp.floating)

    @staticmethod
    def _common(arrays):
        import jax.numpy as jnp

        return jnp.result_type(*(array.dtype for array in arrays), jnp.float32)

    @staticmethod
    def _given(array, dtype):
        import jax
        import jax.numpy as jnp

        if isinstance(array, jax.Array):  # Computed by JAX itself.
            return array if dtype is None else array.astype(dtype)
        dtype = jax.dtypes.canonicalize_dtype(array.dtype if dtype is None or array.dtype.kind != "f" else dtype)
        array = np.require(array, dtype, ["C", "W"])
        with concretely():  # Also within a function that JAX compiles this is an array.
            return jnp.from_dlpack(array) if array.size and array.dtype != bool else jnp.asarray(array)


class _Torch(_Foreign):
    name = "PyTorch"

    @staticmethod
    def _is_real(array):
        return array.is_floating_point()

    @staticmethod
    def _common(arrays):
        import torch

        narrow = all(array.element_size() <= 4 for array in arrays)
        return torch.float32 if narrow else torch.float64

    @staticmethod
    def _given(array, dtype):
        import torch

        tensor = array if isinstance(array, torch.Tensor) else torch.from_numpy(np.require(array, None, ["C", "W"]))
        return tensor if dtype is None or not tensor.is_floating_point() else tensor.to(dtype)


_NUMPY = Caller()


def caller_of(*values: Any) -> Caller:
    """The Caller for arguments: arrays, or lists, tuples, dictionaries and kernels of them, or other Callers. TypeError for
    arrays of JAX and of PyTorch in one call."""
    jax, torch = sys.modules.get("jax"), sys.modules.get("torch")
    if jax is None and torch is None:
        return _NUMPY
    found: dict[Any, Any] = {_Jax: [], _Torch: []}
    known = []
    for value in _leaves(values):
        if isinstance(value, Caller):
            known.append(value)
        elif jax is not None and isinstance(value, jax.Array):
            found[_Jax].append(value)
        elif torch is not None and isinstance(value, torch.Tensor):
            found[_Torch].append(value)
    callers = [kind(arrays, is_live(*arrays)) for kind, arrays in found.items() if arrays]
    return _joined(callers + [caller for caller in known if caller is not _NUMPY])


def _joined(callers):
    if not callers:
        return _NUMPY
    kinds = {type(caller) for caller in callers}
    if len(kinds) > 1:
        raise TypeError("expected arrays of at most one library other than NumPy, got some of JAX and some of PyTorch")
    if len(callers) == 1:
        return callers[0]
    result = kinds.pop()([], any(caller.is_live for caller in callers))
    types = [caller.dtype for caller in callers if caller.dtype is not None]
    result.dtype = max(types, key=lambda dtype: dtype.itemsize) if types else None
    return result


def is_live(*values: Any) -> bool:
    """Whether one of the values is being differentiated or traced."""
    jax, torch = sys.modules.get("jax"), sys.modules.get("torch")
    for value in _leaves(values):
        if jax is not None and isinstance(value, jax.core.Tracer):
            return True
        if torch is not None and isinstance(value, torch.Tensor) and (
                (value.requires_grad and torch.is_grad_enabled()) or _is_of_torch_func(torch, value)):
            return True
    return False


def _is_of_torch_func(torch, tensor):
    """Whether a tensor represents others in torch.func.grad or torch.vmap."""
    return bool(torch._C._functorch.is_functorch_wrapped_tensor(tensor))


def _leaves(value):
    """The elements of lists and the like of any depth."""
    if isinstance(value, (tuple, list)):
        for part in value:
            yield from _leaves(part)
    elif isinstance(value, dict):
        for part in value.values():
            yield from _leaves(part)
    elif hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        for name in value.__dataclass_fields__:
            yield from _leaves(getattr(value, name))
    else:
        yield value


def _mapped(value, give):
    """The same structure with other arrays."""
    if isinstance(value, np.generic):
        return give(np.asarray(value))
    if isinstance(value, np.ndarray) or (hasattr(value, "dtype") and hasattr(value, "shape")):
        return give(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_mapped(part, give) for part in value))
    if isinstance(value, (tuple, list)):
        return type(value)(_mapped(part, give) for part in value)
    if isinstance(value, dict):
        return {name: _mapped(part, give) for name, part in value.items()}
    if hasattr(value, "__dataclass_fields__"):
        return replace(value, **{name: _mapped(getattr(value, name), give) for name in value.__dataclass_fields__})
    return value
