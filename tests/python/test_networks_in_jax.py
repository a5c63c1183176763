"""Networks of finite width as functions of JAX's arrays alone: everything that JAX does with functions, and neural-tangents with
its own networks."""

import numpy as np
import pytest

import widelimit as nt
from parameter_trees import form, leaves, mapped
from test_parameters import NUMBERS, networks
from widelimit import stax

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = jax.numpy
pytestmark = pytest.mark.usefixtures("in_double")

MORE = {
    "pools": ("serial(Conv(4, (3, 3), padding='CIRCULAR', strides=(2, 1)), AvgPool((2, 3), (1, 2), 'SAME', normalize_edges=True), "
              "Relu(), AvgPool((2, 2), padding='SAME'), SumPool((2, 2), padding='CIRCULAR'), Flatten(), Dense(2))", (2, 5, 6, 3)),
    "transposed": ("serial(ConvTranspose(4, (3, 2), strides=(2, 2), padding='CIRCULAR'), Erf(0.5, 2.0, 0.3), ConvTranspose(4, "
                   "(2, 5), strides=(1, 1), padding='CIRCULAR'), LayerNorm((1, 2, 3)), Conv(4, (4, 4), padding='CIRCULAR'), "
                   "Gelu(), GlobalSumPool(), Dense(2))", (2, 5, 6, 3)),
    "local": ("serial(ConvLocal(4, (3, 2), strides=(2, 2), padding='CIRCULAR', b_std=0.3), Sin(1.0, 2.0, 0.3), ConvLocal(4, "
              "(3, 2), parameterization='standard', b_std=0.3, s=(1, 2)), GlobalSumPool(), Dense(2))", (2, 7, 8, 3)),
    "resized": ("serial(Conv(4, (3, 3), padding='SAME'), ImageResize((-1, 7, 3, -1), 'linear'), Abs(), ImageResize((-1, 3, 7, "
                "-1), 'cubic'), ABRelu(0.3, 2.0), ImageResize((-1, 6, 2, -1), 'nearest'), LayerNorm(), Flatten(), Dense(2))",
                (2, 5, 6, 3)),
    "indexed": ("serial(Conv(4, (3, 3), padding='SAME'), Index(Slice[:, 1:4, 2]), LeakyRelu(0.2), DotGeneral(rhs=[[0, 1.], [2, 3], "
                "[4, 5]], dimension_numbers=(((1,), (0,)), ((), ()))), GlobalAvgPool(channel_axis=1), Dense(2))", (2, 5, 6, 3)),
    "nonlinearities": ("serial(Dense(5), Rbf(0.7), Dense(5), Polynomial([1.0, 2.0, 0.3]), Dense(5), Hermite(3), Dense(5), "
                       "Sigmoid_like(), Dense(5), Gabor(), Dense(5), Monomial(3), Dense(5), RectifiedMonomial(2), Dense(5), "
                       "Gaussian(1.2, -0.3), Dense(5), Exp(0.3, 0.4), Dense(5), Cos(), Dense(3), Sign())", (2, 5)),
    "standard": ("serial(Dense(5, 1.3, 0.2, parameterization='standard', s=(1, 2)), Relu(), Dense(5, 1.3, 0.0, "
                 "parameterization='standard', s=(2, 3)), FanOut(2), parallel(Dense(4), serial(Relu(), Dense(4))), FanInProd(), "
                 "Dense(2, b_std=0.1))", (2, 5)),
    "encodings": ("serial(GlobalSelfAttention(6, 4, 4, 3, pos_emb_type='CONCAT', n_chan_pos_emb=7, W_pos_emb_std=0.7, b_std=0.2, "
                  "linear_scaling=False, attention_mechanism='ABS'), GlobalAvgPool(), Dense(2))", (2, 5, 3)),
    "repetitions": ("serial(Conv(4, (3, 3), padding='SAME'), repeat(serial(Relu(), Conv(4, (3, 3), padding='SAME', b_std=0.1)), 2), "
                    "repeat(Conv(4, (2, 2)), 2), GlobalAvgPool(), Dense(2))", (2, 5, 6, 3)),
}


def case(name):
    """(init_fn, apply_fn, parameters, x): with neural-tangents' numbers for its networks."""
    source, shape = {**networks(), **MORE}[name]
    init_fn, apply_fn, _ = eval(source, vars(stax))
    params, x = init_fn(0, shape)[1], np.random.default_rng(0).normal(size=shape)
    if name not in MORE:
        numbers = iter([NUMBERS[f"{name}/{k}"] for k in range(len(leaves(params)))])
        params, x = mapped(lambda _: next(numbers), params), NUMBERS[f"{name}/x"]
    return init_fn, apply_fn, params, x


@pytest.mark.parametrize("name", [*networks(), *MORE])
def test_outputs_are_those_of_the_library_and_of_neural_tangents(name):
    init_fn, apply_fn, params, x = case(name)
    jitted = jax.jit(apply_fn)
    found = jitted(mapped(jnp.asarray, params), x)
    np.testing.assert_allclose(found, apply_fn(params, x), rtol=1e-12, atol=1e-12)
    if name not in MORE:
        np.testing.assert_allclose(found, NUMBERS[f"{name}/outputs"], rtol=1e-12, atol=1e-12)
    assert "callback" not in str(jax.make_jaxpr(apply_fn)(mapped(jnp.asarray, params), x))
    # Of other keys other numbers, in the same nesting.
    shape, drawn = init_fn(jax.random.PRNGKey(1), x.shape)
    assert shape == found.shape and form(drawn) == form(params)


@pytest.mark.parametrize("name", networks())
def test_parameters_are_drawn_as_neural_tangents_draws_them(name):
    """Its reference numbers are of a JAX whose draws did not yet depend on the place of a number."""
    if not hasattr(jax.config, "jax_threefry_partitionable"):
        pytest.skip("JAX has one way to draw only")
    before = jax.config.jax_threefry_partitionable
    jax.config.update("jax_threefry_partitionable", False)
    try:
        init_fn, _, params, x = case(name)
        for found, expected in zip(leaves(init_fn(jax.random.PRNGKey(1), x.shape)[1]), leaves(params), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-14)
    finally:
        jax.config.update("jax_threefry_partitionable", before)


@pytest.fixture
def network(random):
    """(init_fn, apply_fn, parameters, others, x1, x2), arrays of JAX."""
    init_fn, apply_fn, _ = stax.serial(stax.Dense(9, 1.3, 0.2), stax.Erf(), stax.Dense(3))
    first, second = (init_fn(jax.random.PRNGKey(k), (-1, 4))[1] for k in range(2))
    return init_fn, apply_fn, first, second, *(jnp.asarray(random.normal(size=(n, 4))) for n in (5, 2))


def same(found, expected, tolerance=1e-10):
    for one, other in zip(*map(jax.tree_util.tree_leaves, (found, expected)), strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=1e-12)


def test_empirical_functions_are_those_of_the_library(network):
    """With arrays of NumPy the library computes them."""
    init_fn, apply_fn, params, others, x1, x2 = network
    host = [mapped(np.asarray, tree) for tree in (params, others)] + [np.asarray(x) for x in (x1, x2)]

    def results(params, others, x1, x2):
        for axes in ({}, {"trace_axes": ()}, {"trace_axes": (), "diagonal_axes": (-1,)}):
            yield nt.empirical_kernel_fn(apply_fn, **axes)(x1, x2, ("nngp", "ntk"), params)
            yield nt.empirical_ntk_fn(apply_fn, **axes)(x1, None, params)
        yield nt.empirical_ntk_vp_fn(apply_fn, x1, x2, params)(np.ones((2, 3)))
        yield nt.linearize(apply_fn, params)(others, x1)
        for degree in range(4):
            yield nt.taylor_expand(apply_fn, params, degree)(others, x1)

    for found, expected in zip(results(params, others, x1, x2), results(*host), strict=True):
        assert isinstance(jax.tree_util.tree_leaves(found)[0], jax.Array)
        assert isinstance(jax.tree_util.tree_leaves(expected)[0], np.ndarray)
        same(found, expected)


FUNCTIONS = {
    "linearize": lambda f, params, p, x, x2: nt.linearize(f, params)(p, x),
    "around parameters": lambda f, params, p, x, x2: nt.linearize(f, p)(params, x),
    "second degree": lambda f, params, p, x, x2: nt.taylor_expand(f, params, 2)(p, x),
    "ntk": lambda f, params, p, x, x2: nt.empirical_ntk_fn(f)(x, x2, p),
    "nngp": lambda f, params, p, x, x2: nt.empirical_nngp_fn(f)(x, None, p),
    "both": lambda f, params, p, x, x2: sum(nt.empirical_kernel_fn(f)(x, None, ("nngp", "ntk"), p)),
    "product": lambda f, params, p, x, x2: nt.empirical_ntk_vp_fn(f, x, x2, p)(jnp.ones((2, 3))),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_everything_can_be_transformed(network, name):
    _, apply_fn, params, moved, x1, x2 = network
    expected = FUNCTIONS[name](apply_fn, params, moved, x1, x2)
    same(jax.jit(lambda p, x: FUNCTIONS[name](jax.jit(apply_fn), params, p, x, x2))(moved, x1), expected)

    def total(p, x):
        return (FUNCTIONS[name](apply_fn, params, p, x, x2)**2).sum()

    slope = jax.jit(jax.grad(total, (0, 1)))(moved, x1)
    step = jax.tree_util.tree_map(lambda array: jnp.cos(jnp.arange(array.size, dtype=float)).reshape(array.shape), (moved, x1))
    along = sum(jnp.vdot(a, b) for a, b in zip(*map(jax.tree_util.tree_leaves, (slope, step))))
    value, forward = jax.jit(lambda size: jax.jvp(total, jax.tree_util.tree_map(
        lambda array, by: array + size * by, (moved, x1), step), step))(0.0)
    same(forward, along)
    at = jax.jit(lambda size: total(*jax.tree_util.tree_map(lambda array, by: array + size * by, (moved, x1), step)))
    same(value, at(0.0))
    np.testing.assert_allclose(along, (at(1e-5) - at(-1e-5)) / 2e-5, rtol=1e-6)


def test_kernels_of_several_batches(network):
    _, apply_fn, params, _, x1, _ = network
    ntk_fn, several = nt.empirical_ntk_fn(apply_fn), jnp.stack([x1, 2 * x1])
    same(jax.vmap(lambda x: ntk_fn(x, None, params))(several), jnp.stack([ntk_fn(x, None, params) for x in several]))


def test_means_over_networks_can_be_transformed(network):
    init_fn, apply_fn, _, _, x1, x2 = network
    for key in (jax.random.PRNGKey(3), 3):
        kernel_fn = nt.monte_carlo_kernel_fn(init_fn, apply_fn, key, 3)
        expected = kernel_fn(x1, x2, ("nngp", "ntk"))
        same(jax.jit(lambda a, b: kernel_fn(a, b, ("nngp", "ntk")))(x1, x2), expected)
        slope = jax.grad(lambda a: kernel_fn(a, x2, "ntk").sum())(x1)
        difference = [kernel_fn(x1.at[1, 2].add(step), x2, "ntk").sum() for step in (1e-5, -1e-5)]
        np.testing.assert_allclose(slope[1, 2], (difference[0] - difference[1]) / 2e-5, rtol=1e-6)
    keys = jax.random.split(jax.random.PRNGKey(0), 2)
    found = jax.vmap(lambda key: nt.monte_carlo_kernel_fn(init_fn, apply_fn, key, 2)(x1, None, "nngp"))(keys)
    same(found, jnp.stack([nt.monte_carlo_kernel_fn(init_fn, apply_fn, key, 2)(x1, None, "nngp") for key in keys]))


def test_training_and_its_hessian(network):
    init_fn, apply_fn, params, _, x1, _ = network
    loss = lambda p: (apply_fn(p, x1)**2).mean()
    step = jax.jit(lambda p: jax.tree_util.tree_map(lambda a, g: a - 0.1 * g, p, jax.grad(loss)(p)))
    trained = jax.lax.fori_loop(0, 200, lambda _, p: step(p), params)
    assert loss(trained) < loss(params) / 2
    hessian = jax.hessian(lambda w: loss([(w, params[0][1]), *params[1:]]))(params[0][0])
    same(hessian, jnp.transpose(hessian, (2, 3, 0, 1)))
    assert jnp.abs(hessian).max() > 0


def test_dropout_draws_by_keys(random):
    init_fn, apply_fn, _ = stax.serial(stax.Dense(64), stax.Relu(), stax.Dropout(0.5), stax.Dense(48))
    x, other = (jnp.asarray(random.normal(size=(n, 4))) for n in (3, 2))
    key = jax.random.PRNGKey(1)
    params = init_fn(key, x.shape)[1]
    outputs = jax.jit(lambda key: apply_fn(params, x, rng=key))(key)
    same(outputs, apply_fn(params, x, rng=key))
    assert not np.array_equal(outputs, apply_fn(params, x, rng=jax.random.PRNGKey(2)))
    many = jax.vmap(lambda key: apply_fn(params, x, rng=key))(jax.random.split(key, 2000))
    np.testing.assert_allclose(many.mean(0), apply_fn(params, x, rng=key) * 0 + stax.serial(
        stax.Dense(64), stax.Relu(), stax.Identity(), stax.Dense(48))[1](params, x), atol=0.2)
    empirical = nt.empirical_nngp_fn(apply_fn)
    same(empirical(x, x + 0, params, rng=key), empirical(x, None, params, rng=key))  # Equal batches are one.
    with pytest.raises(ValueError, match="rng: expected a key"):
        jax.jit(apply_fn)(params, x)


def test_networks_without_a_readout(random):
    """The library has none of them, JAX has all."""
    init_fn, apply_fn, _ = stax.serial(stax.Conv(6, (3, 3), padding="SAME", b_std=0.1), stax.Relu(), stax.Conv(2, (2, 2)))
    x = jnp.asarray(random.normal(size=(2, 5, 5, 3)))
    shape, params = init_fn(jax.random.PRNGKey(0), x.shape)
    outputs = apply_fn(params, x)
    assert outputs.shape == shape == (2, 4, 4, 2)
    whole = stax.serial(stax.Conv(6, (3, 3), padding="SAME", b_std=0.1), stax.Relu(), stax.Conv(2, (2, 2)), stax.GlobalAvgPool())
    same(outputs.mean((1, 2)), whole[1](mapped(np.asarray, [*params, ()]), np.asarray(x)))


def test_layers_of_functions_of_numpy_stay_on_the_host(random):
    init_fn, apply_fn, _ = stax.serial(stax.Dense(8), stax.Elementwise(np.tanh), stax.Dense(1))
    x = jnp.asarray(random.normal(size=(3, 4)))
    params = init_fn(jax.random.PRNGKey(0), x.shape)[1]
    found = jax.jit(apply_fn)(params, x)
    in_jax = stax.serial(stax.Dense(8), stax.Elementwise(jnp.tanh), stax.Dense(1))[1]
    same(found, in_jax(params, x))
    assert "callback" in str(jax.make_jaxpr(apply_fn)(params, x)) and "callback" not in str(jax.make_jaxpr(in_jax)(params, x))
    with pytest.raises(NotImplementedError, match="taylor_expand: degree=2: expected 0 or 1"):
        nt.taylor_expand(apply_fn, mapped(np.asarray, params), 2)(mapped(np.asarray, params), np.asarray(x))


def test_parameters_of_another_form_are_an_error(network):
    _, apply_fn, params, _, x1, _ = network
    for wrong, message in ((params[:2], r"params: expected a list of 3, as init_fn gives it, got a list of 2"),
                           ([params[0], (), (params[2][0].T, None)], r"params\[2\]\[0\]: expected an array of shape \(9, 3\)")):
        with pytest.raises(ValueError, match=message):
            jax.jit(apply_fn)(wrong, x1)
