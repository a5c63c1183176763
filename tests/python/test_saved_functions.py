"""Networks and models with layers of a user's functions in files, which have the functions' names and run nothing by themselves."""

import copy
import json
import os
import pickle
import subprocess
import sys
import types

import importable_functions
import numpy as np
import pytest

import widelimit
from importable_functions import Family, cosine, cosine_slope, mixing, swish, swish_slope
from widelimit import layers

NAMES = {f"importable_functions:{name}": getattr(importable_functions, name)
         for name in ("swish", "swish_slope", "cosine", "cosine_slope", "mixing")}
NAMES["importable_functions:Family.damped"] = Family.damped


def network():
    """Every way to make such a layer, also within others."""
    own = [layers.elementwise(swish, swish_slope, breakpoints=[1.5], kind="swish"), layers.dense()]
    return widelimit.Network([
        layers.conv([2], weight_variance=1.5, bias_variance=0.1), layers.pair(mixing, leaves="as_it_was"), *own,
        layers.sum([layers.elementwise_dual(cosine, cosine_slope, kind="cosine"), layers.dense()], []),
        layers.repeat(2, [layers.elementwise_dual(Family.damped), layers.dense()]), layers.flatten(), layers.dense()], "own")


@pytest.fixture
def x(random):
    return random.normal(size=(4, 3, 2))


@pytest.mark.parametrize("functions", [NAMES, ["importable_functions"], ("os", "importable_functions")])
def test_networks_go_through_files(x, tmp_path, functions):
    expected = widelimit.gram(network(), x, kernels="nngp").nngp
    network().write(tmp_path / "own.json")
    text = network().to_json()
    assert json.loads(text)["layers"][2]["python"]["functions"]["phi"] == "importable_functions:swish"
    for again in (widelimit.Network.read(tmp_path / "own.json", functions), widelimit.Network.from_json(text, functions=functions)):
        assert again == network() and again.to_json() == text
        assert np.array_equal(widelimit.gram(again, x, kernels="nngp").nngp, expected)


def test_what_was_read_holds_its_functions(x):
    text = network().to_json()
    expected = widelimit.gram(network(), x, kernels="nngp").nngp
    apart = types.FunctionType(cosine.__code__, cosine.__globals__, "cosine")
    again = widelimit.Network.from_json(text, {**NAMES, "importable_functions:cosine": apart})
    del apart
    assert np.array_equal(widelimit.gram(again, x, kernels="nngp").nngp, expected)
    assert np.array_equal(widelimit.gram(widelimit.Network(again.layers), x, kernels="nngp").nngp, expected)


def test_pickles_and_copies_hold_names(x):
    expected = widelimit.gram(network(), x, kernels="nngp").nngp
    for again in (pickle.loads(pickle.dumps(network())), copy.deepcopy(network()), widelimit.Network(
            [pickle.loads(pickle.dumps(layer)) for layer in network().layers], "own")):
        assert again == network()
        assert np.array_equal(widelimit.gram(again, x, kernels="nngp").nngp, expected)


def test_models(x, tmp_path):
    model = widelimit.Model.fit(network(), x, np.arange(4.0), regulariser=0.1)
    model.save(tmp_path / "model")
    expected = model.predict(x)
    for again in (widelimit.Model.load(tmp_path / "model", functions=NAMES), pickle.loads(pickle.dumps(model)),
                  widelimit.Model.load(tmp_path / "model", 1, ["importable_functions"])):
        assert np.allclose(again.predict(x).mean, expected.mean, rtol=1e-12) and again.network == network()
        again.save(tmp_path / "again")
    with pytest.raises(widelimit.NetworkError, match=r"layers\[1\]\.python: calls the function 'importable_functions:mixing': expected "
                                                     r"functions=\{'importable_functions:mixing': \.\.\.\} with the function"):
        widelimit.Model.load(tmp_path / "model")


def file_of(name, **changes):
    """A network file by somebody else."""
    told = {"make": "elementwise_dual", "kind": "own", "functions": {"nngp": name}, **changes}
    return json.dumps({"widelimit": 1, "layers": [{"layer": "own", "python": told}]})


def test_a_file_by_itself_imports_nothing(tmp_path, monkeypatch):
    (tmp_path / "module_of_a_stranger.py").write_text(
        f"open({str(tmp_path / 'it_ran')!r}, 'w').close()\nimport os\ndef dual(p, q, c): return c\n")
    monkeypatch.syspath_prepend(tmp_path)
    text = file_of("module_of_a_stranger:dual")
    for functions in (None, {}, [], ["os"], NAMES, ["module_of_a_strange"]):
        with pytest.raises(widelimit.NetworkError, match=r"functions=\['module_of_a_stranger'\] if you trust the file to import"):
            widelimit.Network.from_json(text, functions)
    assert not (tmp_path / "it_ran").exists() and "module_of_a_stranger" not in sys.modules
    # A trusted module has its own functions only, not what it has imported.
    for name in ("os.system", "os.path.join", "no_such", "__builtins__", "dual.__call__", "__name__"):
        with pytest.raises(widelimit.NetworkError, match="has no such function of its own"):
            widelimit.Network.from_json(file_of(f"module_of_a_stranger:{name}"), ["module_of_a_stranger"])
    assert widelimit.Network.from_json(text, ["module_of_a_stranger"]).layers[0].kind == "own"
    assert (tmp_path / "it_ran").exists()
    with pytest.raises(widelimit.NetworkError, match="No module named 'no_such_module'"):
        widelimit.Network.from_json(file_of("no_such_module:f"), ["no_such_module"])


@pytest.mark.parametrize("changes, message", [
    ({"make": "eval"}, "make: expected one of elementwise, elementwise_dual, pair, got 'eval'"), ({"make": ["pair"]}, "make: expected"),
    ({"functions": {"phi": "a:b"}}, "functions: expected derivative, nngp"), ({"functions": "a:b"}, "functions: expected"),
    ({"functions": {"nngp": "cosine"}}, "functions: expected names 'module:name'"), ({"functions": {"nngp": 3}}, "expected names"),
    ({"options": {"kind": "x"}}, "options: expected none, got"), ({"kind": 3}, "kind: expected a text"), ({"more": 1}, "expected an object"),
    ({"make": "pair", "functions": {"transform": "importable_functions:mixing"}, "options": {"leaves": "here"}}, "leaves: expected"),
    ({"make": "elementwise", "functions": {"phi": "importable_functions:swish"}, "options": {"breakpoints": 3}}, "a list of numbers, got 3"),
    ({"make": "elementwise", "functions": {"phi": "importable_functions:swish"}, "options": {"breakpoints": "12"}}, "of numbers, got '12'"),
    ({"make": "elementwise", "functions": {"phi": "importable_functions:swish"}, "options": {"breakpoints": [True]}}, "a list of numbers"),
    ({"make": "pair", "functions": {"transform": "importable_functions:mixing"}, "options": {"needs_gaussian": 1}}, "true or false, got 1"),
    ({"kind": "relu"}, r"layers\[0\].*: elementwise_dual: relu: this kind is a layer of the library"), ({"kind": ""}, "an empty name")])
def test_descriptions_are_checked(changes, message):
    with pytest.raises(widelimit.NetworkError, match=message):
        widelimit.Network.from_json(file_of("importable_functions:cosine", **changes), ["importable_functions"])
    with pytest.raises(widelimit.NetworkError, match="unknown field"):
        widelimit.Network.from_json('{"widelimit": 1, "layers": [{"layer": "dense", "python": {}}]}')
    for wrong in ("importable_functions", 3, [cosine], {"a:b": 3}, [".relative"], [""]):
        with pytest.raises(TypeError, match="functions: "):
            widelimit.Network.from_json(file_of("importable_functions:cosine"), wrong)


def test_functions_without_a_name_stay_out_of_files():
    for function in (lambda p, q, c: np.array(c), types.FunctionType(cosine.__code__, {}, "cosine")):
        own = widelimit.Network([layers.elementwise_dual(function)])
        with pytest.raises(widelimit.NetworkError, match="write its functions in a module, from which they can be imported by name, or "
                                                         "keep the code that makes the network"):
            own.to_json()


def test_stores_do_not_know_functions_by_their_names_alone(x, tmp_path):
    """Their text may change: only what JAX reads of them tells them apart."""
    with pytest.raises(widelimit.NetworkError, match=r"layers\[1\] \(.pair.\): a layer of your own, whose functions may change"):
        widelimit.gram(network(), x, store=tmp_path / "store")
    with pytest.raises(widelimit.NetworkError, match="may change under their names"):
        widelimit.Model.fit(network(), x, np.arange(4.0), regulariser=0.1, gram_folder=tmp_path / "grams")


def test_the_program_says_who_can_use_such_files(x, tmp_path):
    program = os.environ.get("WIDELIMIT_PROGRAM")
    if not program:
        pytest.skip("WIDELIMIT_PROGRAM, the program, is not set")
    network().write(tmp_path / "own.json")
    widelimit.Model.fit(network(), x, np.arange(4.0), regulariser=0.1).save(tmp_path / "model")
    np.save(tmp_path / "x.npy", x)
    for command in (["gram", tmp_path / "own.json", "--x", tmp_path / "x.npy", "--out", tmp_path / "out"],
                    ["predict", "--model", tmp_path / "model", "--x", tmp_path / "x.npy", "--out", tmp_path / "out"]):
        ran = subprocess.run([program, *map(str, command)], capture_output=True, text=True)
        assert ran.returncode != 0 and "layers[1].python: the layer \"pair\" calls functions of Python" in ran.stderr, ran.stderr
        assert "widelimit.Model.load(FOLDER, functions=...)" in " ".join(ran.stderr.split())
