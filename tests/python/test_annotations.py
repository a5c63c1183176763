"""Everything public says its types: the package has py.typed."""

import inspect

import pytest

import widelimit
from widelimit import convert, experimental, heads, layers, predict, propagation, sde, stax, transfer

MODULES = {"widelimit": widelimit, "stax": stax, "predict": predict, "layers": layers, "experimental": experimental,
           "convert": convert, "heads": heads, "propagation": propagation, "sde": sde, "transfer": transfer}


def public_callables():
    """(name, function) of every function and method that is written in Python."""
    found = []
    modules = dict(MODULES)
    if pytest.importorskip("sklearn"):
        from widelimit import sklearn

        modules["sklearn"] = sklearn
    for module_name, module in modules.items():
        for name in getattr(module, "__all__", [name for name in vars(module) if not name.startswith("_")]):
            value = getattr(module, name)
            if not getattr(value, "__module__", "").startswith("widelimit") or (
                    not hasattr(module, "__all__") and value.__module__ != module.__name__):
                continue
            if inspect.isfunction(value):
                found.append((f"{module_name}.{name}", value))
            elif inspect.isclass(value):
                for member, method in vars(value).items():
                    method = getattr(method, "fget", getattr(method, "__func__", method))
                    is_ours = inspect.isfunction(method) and method.__module__.startswith("widelimit")
                    if is_ours and (not member.startswith("_") or member in ("__init__", "__call__")):
                        found.append((f"{module_name}.{name}.{member}", method))
    return found


def test_there_is_something_to_look_at():
    names = [name for name, _ in public_callables()]
    assert len(names) > 120
    assert {"widelimit.gram", "stax.serial", "predict.gp_inference", "layers.dense", "widelimit.Model.fit"} <= set(names)


def test_functions_are_annotated():
    bare = []
    for name, function in public_callables():
        parameters = [p for p in inspect.signature(function).parameters.values() if p.name not in ("self", "cls")]
        if any(p.annotation is p.empty for p in parameters) or "return" not in function.__annotations__:
            bare.append(name)
    assert bare == []


@pytest.mark.parametrize("triple", [stax.Relu(), stax.serial(stax.Dense(3))])
def test_functions_of_layers_are_annotated(triple):
    init_fn, apply_fn, kernel_fn = triple
    for function in (init_fn, apply_fn, type(kernel_fn).__call__):
        assert "return" in function.__annotations__


def test_stubs_say_arrays():
    """Of the compiled half: what users call gives arrays, not objects."""
    import pathlib

    stub = (pathlib.Path(widelimit.__file__).parent / "_core.pyi").read_text()
    for line in ("def mean(self, cross_gram", "def covariance(self, cross_gram", "def train_mean(self", "def apply(self, x"):
        lines = [text for text in stub.splitlines() if line in text]
        assert lines and all("-> numpy" in text or "-> NDArray" in text for text in lines), line
