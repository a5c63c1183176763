"""Keywords of kernel_fn that JAX traces, the user's settings of JAX, and export: what functions of JAX alone do by themselves."""

import numpy as np
import pytest

from widelimit import stax

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = jax.numpy
pytestmark = pytest.mark.usefixtures("in_double")

DENSE = stax.serial(stax.Dense(8, 1.5, 0.1), stax.Relu(), stax.Dense(1))[2]
CONV = stax.serial(stax.Conv(8, (3,), padding="SAME"), stax.Relu(), stax.GlobalAvgPool(), stax.Dense(1))[2]
FLAT = stax.serial(stax.Conv(8, (3,), padding="SAME"), stax.Erf())[2]
GRAPH = stax.serial(stax.Dense(4), stax.Relu(), stax.Aggregate(), stax.GlobalAvgPool(), stax.Dense(1))[2]
EDGES = stax.serial(stax.Dense(4), stax.Relu(), stax.Aggregate(implementation="SPARSE"), stax.GlobalSumPool())[2]


def masked(random, *shape):
    x = random.normal(size=shape)
    x[0, -2:] = 10.0
    return jnp.asarray(x)


@pytest.mark.parametrize("kernel_fn, shape, get", [(DENSE, (3, 4), "ntk"), (CONV, (3, 6, 2), "nngp"), (CONV, (3, 6, 2), ("ntk", "cov1")),
                                                   (FLAT, (3, 4, 2), "nngp")])
def test_the_mask_constant_is_traced(random, kernel_fn, shape, get):
    x, y = masked(random, *shape), masked(random, *shape)[:2]
    expected = kernel_fn(x, y, get, mask_constant=10.0)
    found = jax.jit(kernel_fn, static_argnames="get")(x, y, get, mask_constant=10.0)
    for one, other in zip(jax.tree_util.tree_leaves(found), jax.tree_util.tree_leaves(expected), strict=True):
        np.testing.assert_array_equal(one, other)
    constant = jax.jit(lambda mask: kernel_fn(x, None, get, mask_constant=mask))(10.0)  # Inputs are constants.
    np.testing.assert_array_equal(jax.tree_util.tree_leaves(constant)[0],
                                  jax.tree_util.tree_leaves(kernel_fn(x, None, get, mask_constant=10.0))[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_results_have_the_type_of_the_inputs(random, dtype):
    x = masked(random, 3, 6, 2).astype(dtype)
    assert jax.jit(CONV, static_argnames="get")(x, None, "ntk", mask_constant=10.0).dtype == dtype
    edges = jnp.zeros((3, 4, 2), int)
    assert jax.jit(EDGES, static_argnames="get")(x, None, "nngp", pattern=(edges, edges)).dtype == dtype


def test_the_mask_constant_leaves_derivatives_by_the_inputs(random):
    x, weights = masked(random, 3, 6, 2), random.normal(size=(3, 3))
    found = jax.jit(jax.grad(lambda z, mask: (CONV(z, None, "ntk", mask_constant=mask) * weights).sum()))(x, 10.0)
    expected = CONV.vjp(x, ntk=weights, mask_constant=10.0)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    with pytest.raises(NotImplementedError, match="derivatives by pattern and mask_constant"):
        jax.grad(lambda mask: CONV(x, None, "ntk", mask_constant=mask).sum())(10.0)


@pytest.mark.parametrize("kernel_fn, of_edges", [(GRAPH, False), (EDGES, True)])
def test_patterns_are_traced(random, kernel_fn, of_edges):
    x, y = (jnp.asarray(random.normal(size=(n, 5, 2))) for n in (3, 2))
    patterns = tuple(jnp.asarray(random.integers(-1, 5, size=(n, 6, 2)) if of_edges else random.normal(size=(n, 5, 5))) for n in (3, 2))
    expected = kernel_fn(x, y, "nngp", pattern=patterns)
    found = jax.jit(kernel_fn, static_argnames="get")(x, y, "nngp", pattern=patterns)
    np.testing.assert_array_equal(found, expected)
    slopes = jax.jit(jax.grad(lambda z, p: kernel_fn(z, y, "nngp", pattern=p).sum()))(x, patterns)
    assert slopes.shape == x.shape and np.isfinite(slopes).all()
    np.testing.assert_array_equal(jax.jit(kernel_fn, static_argnames="get")(x, None, "nngp", pattern=(patterns[0], None)),
                                  kernel_fn(x, None, "nngp", pattern=(patterns[0], None)))


def test_vmap_of_patterns(random):
    x = jnp.asarray(random.normal(size=(2, 5, 2)))
    patterns = jnp.asarray(random.normal(size=(3, 2, 5, 5)))
    found = jax.vmap(lambda p: GRAPH(x, None, "ntk", pattern=(p, p)))(patterns)
    np.testing.assert_allclose(found, [GRAPH(x, None, "ntk", pattern=(p, p)) for p in patterns], rtol=1e-13)


@pytest.mark.parametrize("keyword, value", [("diagonal_batch", True), ("batch_axis", 0), ("threads", 1)])
def test_other_keywords_must_be_known(random, keyword, value):
    x = jnp.asarray(random.normal(size=(2, 3)))
    with pytest.raises(NotImplementedError, match=f"kernel_fn: {keyword}: .*static_argnames"):
        jax.jit(DENSE, static_argnames="get")(x, None, "nngp", **{keyword: value})


@pytest.fixture
def strict_ranks():
    jax.config.update("jax_numpy_rank_promotion", "raise")
    yield
    jax.config.update("jax_numpy_rank_promotion", "allow")


CHANGES = {"jvp": lambda f, x: jax.jvp(f, (x,), (x,))[1], "jacfwd": lambda f, x: jax.jit(jax.jacfwd(f))(x),
           "grad": lambda f, x: jax.grad(lambda z: f(z).sum())(x), "hessian": lambda f, x: jax.hessian(lambda z: f(z).sum())(x)}


@pytest.mark.usefixtures("strict_ranks")
@pytest.mark.parametrize("name, kernel_fn, shape", [("jvp", DENSE, (2, 3)), ("jacfwd", CONV, (2, 4, 2)), ("grad", CONV, (2, 4, 2)),
                                                    ("hessian", DENSE, (2, 3))])
def test_ranks_that_the_user_forbids_to_promote(random, name, kernel_fn, shape):
    x = jnp.asarray(random.normal(size=shape))
    found = CHANGES[name](lambda z: kernel_fn(z, None, "ntk"), x)
    with jax.numpy_rank_promotion("allow"):
        np.testing.assert_allclose(found, CHANGES[name](lambda z: kernel_fn(z, None, "ntk"), x), rtol=1e-12)


@pytest.mark.usefixtures("strict_ranks")
def test_networks_of_finite_width_with_such_ranks(random):
    init_fn, apply_fn, _ = stax.serial(stax.Conv(3, (2,), b_std=0.1), stax.LayerNorm(), stax.GlobalSelfAttention(4, 2, 2, 2, b_std=0.1),
                                       stax.Flatten(), stax.Dense(2, b_std=0.1))
    x = jnp.asarray(random.normal(size=(2, 4, 3)))
    params = init_fn(jax.random.PRNGKey(0), x.shape)[1]
    assert jax.jit(apply_fn)(params, x).shape == (2, 2)


@pytest.mark.parametrize("f", [lambda z: CONV(z, None, "ntk"), jax.grad(lambda z: DENSE(z.reshape(len(z), -1), None, "ntk").sum())])
def test_export(random, f):
    export = pytest.importorskip("jax.export", reason="this version of JAX has no jax.export")
    x = jnp.asarray(random.normal(size=(2, 4, 2)))
    exported = export.export(jax.jit(f))(jax.ShapeDtypeStruct(x.shape, x.dtype))
    assert "callback" not in exported.mlir_module()
    np.testing.assert_allclose(exported.call(x), f(x), rtol=1e-12)


def test_what_export_does_not_take_along(random):
    export = pytest.importorskip("jax.export", reason="this version of JAX has no jax.export")
    x = jnp.asarray(random.normal(size=(2, 4, 2)))
    with pytest.raises(NotImplementedError, match="kernels: jax.export: expected layers that have formulas"):
        export.export(jax.jit(lambda z: CONV(z, None, "ntk", mask_constant=1.0)))(x)
