"""Parameters of networks of finite width, nested as neural-tangents nests them, and what apply_fn makes of them."""

import importlib.util
import json
import pathlib

import numpy as np
import pytest

import widelimit as nt
from parameter_trees import form, leaves, mapped
from widelimit import stax

FOLDER = pathlib.Path(__file__).parent.parent / "reference" / "neural_tangents"
NUMBERS = np.load(FOLDER / "parameters.npz")


def networks():
    spec = importlib.util.spec_from_file_location("parameter_cases", FOLDER / "parameter_cases.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.NETWORKS


@pytest.mark.parametrize("name", networks())
def test_parameters_and_outputs_are_those_of_neural_tangents(name):
    source, shape = networks()[name]
    init_fn, apply_fn, _ = eval(source, vars(stax))
    outputs = NUMBERS[f"{name}/outputs"]
    found_shape, params = init_fn(0, shape)
    assert found_shape == outputs.shape and form(params) == json.loads(str(NUMBERS[f"{name}/form"]))
    numbers = iter([NUMBERS[f"{name}/{k}"] for k in range(len(leaves(params)))])
    np.testing.assert_allclose(apply_fn(mapped(lambda _: next(numbers), params), NUMBERS[f"{name}/x"]), outputs, rtol=1e-12,
                               atol=1e-12)


def test_standard_parameters_are_drawn_as_weights():
    weights = stax.Dense(400, W_std=3.0, b_std=0.5, parameterization="standard")[0](0, (2, 100))[1]
    np.testing.assert_allclose([weights[0].std(), weights[1].std()], [0.3, 0.5], rtol=0.1)


def test_positions_of_a_pointwise_network_are_inputs(random):
    x = random.normal(size=(2, 3, 5, 4))
    init_fn, apply_fn, _ = stax.serial(stax.Dense(6), stax.Relu(), stax.FanOut(2), stax.parallel(stax.Dense(3), stax.Dense(3)),
                                       stax.FanInSum())
    params = init_fn(0, x.shape)[1]
    np.testing.assert_array_equal(apply_fn(params, x).reshape(-1, 3), apply_fn(params, x.reshape(-1, 4)))
    with pytest.raises(NotImplementedError, match="readout over positions, or one that treats every position by itself"):
        stax.Conv(3, (2, 2))[0](0, x.shape)
    kernel = nt.empirical_ntk_fn(apply_fn)(x, None, params)
    assert kernel.shape == (2, 2, 3, 3, 5, 5)
    jacobian = apply_fn.__self__.sides(params, x, None, "ntk")[0]
    np.testing.assert_allclose(kernel, np.einsum("aijop,bkmop->abikjm", jacobian, jacobian) / 3, rtol=1e-10)


@pytest.mark.parametrize("layer", [stax.Erf(), stax.Relu(), stax.Identity(), stax.serial(stax.Cos())])
def test_layers_without_parameters(random, layer):
    x = random.normal(size=(3, 4))
    shape, params = layer[0](0, x.shape)
    assert shape == x.shape and leaves(params) == []
    assert layer[1](params, x).shape == x.shape
    np.testing.assert_allclose(stax.Relu()[1]((), x), np.maximum(x, 0))


def test_many_networks_of_jax(random):
    jax = pytest.importorskip("jax")
    x = jax.numpy.asarray(random.normal(size=(2, 3)), "float32")
    init_fn, apply_fn, _ = stax.serial(stax.Dense(8, b_std=0.1), stax.Relu(), stax.Dense(1))
    keys = jax.random.split(jax.random.PRNGKey(0), 3)
    many = jax.vmap(lambda key: init_fn(key, (2, 3))[1])(keys)
    outputs = jax.vmap(lambda params: apply_fn(params, x))(many)
    assert outputs.shape == (3, 2, 1)
    for k, key in enumerate(keys):
        one = init_fn(key, (2, 3))[1]
        mapped(np.testing.assert_array_equal, mapped(lambda array: array[k], many), one)
        np.testing.assert_allclose(outputs[k], apply_fn(one, x), rtol=1e-5)
    mapped(np.testing.assert_array_equal, jax.jit(init_fn, static_argnums=1)(keys[1], (2, 3))[1], init_fn(keys[1], (2, 3))[1])
    assert len(jax.vmap(init_fn, (0, None))(keys, (2, 3))[1]) == 3


def test_training_by_jax_moves_every_array(random):
    jax = pytest.importorskip("jax")
    x, y = random.normal(size=(6, 3)).astype(np.float32), random.normal(size=(6, 1)).astype(np.float32)
    init_fn, apply_fn, _ = stax.serial(stax.Dense(16, b_std=0.2), stax.Erf(), stax.Dense(1))
    params = init_fn(jax.random.PRNGKey(0), x.shape)[1]
    loss = jax.jit(jax.value_and_grad(lambda p: ((apply_fn(p, x) - y)**2).mean()))
    before, slopes = loss(params)
    assert all(np.abs(slope).max() > 0 for slope in jax.tree_util.tree_leaves(slopes))
    for _ in range(50):
        params = jax.tree_util.tree_map(lambda array, slope: array - 0.3 * slope, params, loss(params)[1])
    assert loss(params)[0] < before / 2


def test_training_by_pytorch(random):
    torch = pytest.importorskip("torch")
    x = torch.tensor(random.normal(size=(6, 3)))
    init_fn, apply_fn, _ = stax.serial(stax.Dense(16, b_std=0.2), stax.Erf(), stax.Dense(1))
    params = mapped(lambda array: torch.tensor(array, requires_grad=True), init_fn(0, x.shape)[1])
    (apply_fn(params, x)**2).sum().backward()
    assert all(leaf.grad.abs().max() > 0 for leaf in leaves(params))
