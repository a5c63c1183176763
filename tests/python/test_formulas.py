"""Kernels as functions of JAX's arrays alone, where all layers have formulas: forward mode, second derivatives, and kernels made by
hand within functions that JAX transforms."""

import numpy as np
import pytest

import widelimit as nt
from widelimit import layers, stax

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = jax.numpy
pytestmark = pytest.mark.usefixtures("in_double")


def cosine_dual(c, p, q):
    return jnp.exp(c - p / 2 - q / 2)


VECTORS = {
    "relu": stax.Relu(), "leaky_relu": stax.LeakyRelu(0.2), "ab_relu": stax.ABRelu(0.3, -1.2), "abs": stax.Abs(),
    "sign": stax.Sign(), "erf": stax.Erf(0.7, 1.3, 0.4), "gelu": stax.Gelu(), "sin": stax.Sin(1.2, 0.8, 0.3),
    "cos": stax.Cos(1.2, 0.8, 0.3), "rbf": stax.Rbf(0.6), "exp": stax.Exp(1.2, 0.3), "gaussian": stax.Gaussian(1.2, -0.7),
    "gabor": stax.Gabor(), "polynomial": stax.Polynomial([1.0, 0.5, 0.3, -0.2]), "hermite": stax.Hermite(3),
    "monomial": stax.Monomial(3), "step": stax.RectifiedMonomial(0), "rectified": stax.RectifiedMonomial(3),
    "exp_normalized": stax.ExpNormalized(0.7, -0.9), "sigmoid_like": stax.Sigmoid_like(), "identity": stax.Identity(),
    "layer_norm": stax.LayerNorm(), "dropout": stax.Dropout(0.7), "elementwise": stax.Elementwise(nngp_fn=cosine_dual),
    "standard": stax.serial(stax.Dense(3, 1.3, 0.0, parameterization="standard", s=(1, 2)), stax.FanOut(3), stax.parallel(
        stax.Dense(4), stax.serial(stax.Relu(), stax.Dense(4)), stax.Dense(4)), stax.FanInProd()),
    "branches": stax.serial(stax.FanOut(2), stax.parallel(stax.serial(stax.Relu(), stax.Dense(8)), stax.Identity()),
                            stax.FanInSum(), stax.FanOut(2), stax.parallel(stax.Dense(3), stax.Dense(2)), stax.FanInConcat(-1),
                            stax.repeat(stax.serial(stax.Gelu(), stax.Dense(3)), 2)),
}
IMAGES = {
    "windows": stax.serial(stax.Conv(5, (3, 3), padding="SAME", b_std=0.2), stax.Relu(), stax.Conv(
        5, (3, 2), (2, 1), padding="CIRCULAR"), stax.Relu(), stax.AvgPool((2, 2)), stax.Conv(
            2, (1, 2), parameterization="standard"), stax.Gelu(), stax.GlobalAvgPool(), stax.Dense(1)),
    "flatten": stax.serial(stax.Conv(5, (3, 3), padding="SAME", b_std=0.2), stax.Relu(), stax.Conv(
        5, (3, 2), (2, 1), padding="SAME"), stax.Erf(), stax.Flatten(), stax.Dense(1)),
    "positions": stax.serial(stax.Conv(5, (3, 3), padding="SAME"), stax.Relu(), stax.SumPool((2, 2), padding="CIRCULAR"),
                             stax.AvgPool((2, 2), padding="SAME", normalize_edges=True), stax.Conv(5, (2, 2))),
}


def network(name):
    return IMAGES[name] if name in IMAGES else stax.serial(stax.Dense(8, 1.3, 0.2), VECTORS[name], stax.Dense(1, 1.1))


def inputs(name, random):
    shape = (4, 3, 2) if name in IMAGES else (4,)
    return random.normal(size=(3, *shape)), random.normal(size=(2, *shape))


@pytest.mark.parametrize("name", [*VECTORS, *IMAGES])
def test_formulas_are_those_of_the_library(name, random):
    from widelimit.stax._live import LiveKernels

    kernel_fn, (x1, x2) = network(name)[2], inputs(name, random)
    for batches, options in (((x1, x2), {}), ((x1,), {"diagonal_batch": False})):
        names = ("nngp", "ntk", "cov1", "cov2")[:2 + len(batches)]
        formula = LiveKernels(kernel_fn, names, options, *(x.shape for x in batches)).formula()
        expected = kernel_fn(x1, batches[1] if len(batches) == 2 else None, names, **options)
        for found, array in zip(jax.jit(formula)(*map(jnp.asarray, batches)), expected, strict=True):
            np.testing.assert_allclose(found, array, rtol=1e-11, atol=1e-11 * np.abs(array).max())


@pytest.mark.parametrize("name", ["relu", "erf", "rectified", "dropout", "branches", "windows"])
def test_forward_mode_is_reverse_mode(name, random):
    kernel_fn, (x1, x2) = network(name)[2], map(jnp.asarray, inputs(name, random))

    def ntk(a):
        return kernel_fn(a, x2, "ntk")

    direction = jnp.asarray(random.normal(size=x1.shape))
    reverse = jnp.tensordot(jax.jit(jax.jacrev(ntk))(x1), direction, x1.ndim)
    np.testing.assert_allclose(jax.jvp(ntk, (x1,), (direction,))[1], reverse, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(jax.jvp(jax.jit(ntk), (x1,), (direction,))[1], reverse, rtol=1e-9, atol=1e-11)


def test_reverse_mode_is_still_the_librarys_own(random):
    kernel_fn, (x1, x2) = network("relu")[2], inputs("relu", random)
    weights = random.normal(size=(3, 2))
    found = jax.jit(jax.grad(lambda a, b: (weights * kernel_fn(a, b, "ntk")).sum(), (0, 1)))(x1, x2)
    for part, expected in zip(found, kernel_fn.vjp(x1, x2, ntk=weights)):
        np.testing.assert_array_equal(part, expected)


@pytest.mark.parametrize("name", ["relu", "erf"])
def test_second_derivatives_are_slopes_of_first_ones(name, random):
    kernel_fn, (x1, x2) = network(name)[2], map(jnp.asarray, inputs(name, random))

    def loss(a):
        return (kernel_fn(a, x2, "ntk")**2).sum() + kernel_fn(a, None, "nngp").sum()

    step, direction = 1e-5, jnp.asarray(random.normal(size=x1.shape))
    gradient = jax.jit(jax.grad(loss))
    expected = (gradient(x1 + step * direction) - gradient(x1 - step * direction)) / (2 * step)
    # What is compiled as a whole takes a fraction of the time.
    products = jax.jit(lambda a: (jax.jvp(jax.grad(loss), (a,), (direction,))[1],
                                  jax.grad(lambda b: (jax.grad(loss)(b) * direction).sum())(a),
                                  jnp.tensordot(jax.hessian(loss)(a), direction, 2)))(x1)
    products += (jax.jvp(jax.grad(loss), (x1,), (direction,))[1],) if name == "erf" else ()
    for found in products:
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7 * np.abs(expected).max())


def test_numbers_of_layers_have_second_derivatives(random):
    x = random.normal(size=(3, 4))

    def loss(std):
        branch = stax.serial(stax.Dense(8, std[0]), stax.Relu(), stax.Dense(8, std[0], std[1]))
        body = stax.serial(stax.Dense(8, std[0], std[1]), stax.FanOut(2), stax.parallel(branch, stax.Identity()), stax.FanInSum())
        return (stax.serial(body, stax.Erf(), stax.Dense(1))[2](x, None, "ntk")**2).sum()

    std, step = jnp.array([1.2, 0.3]), 1e-5
    gradient = jax.jit(jax.grad(loss))
    expected = [(gradient(std + step * e) - gradient(std - step * e)) / (2 * step) for e in np.eye(2)]
    np.testing.assert_allclose(jax.jit(jax.hessian(loss))(std), expected, rtol=1e-6)
    np.testing.assert_allclose(jax.jacfwd(loss)(std), gradient(std), rtol=1e-10)


def test_batches_of_calls(random):
    kernel_fn, (x1, x2) = network("erf")[2], inputs("erf", random)
    several = jnp.asarray(random.normal(size=(2, 3, 4)))

    def loss(a):
        return (kernel_fn(a, x2, "ntk")**2).sum()

    gradient, hessian = jax.jit(jax.grad(loss)), jax.jit(jax.hessian(loss))
    np.testing.assert_allclose(jax.jit(jax.grad(lambda all_of_them: jax.vmap(loss)(all_of_them).sum()))(several),
                               [gradient(one) for one in several], rtol=1e-12)
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.hessian(loss)))(several), [hessian(one) for one in several], rtol=1e-10)


def test_gram_of_networks(random):
    import widelimit.jax

    network, x = nt.Network([layers.dense(1.5, 0.1), layers.erf(), layers.dense()]), jnp.asarray(random.normal(size=(3, 4)))
    for gram in (lambda a: widelimit.jax.gram(network, a).ntk, lambda a: widelimit.jax.gram_diagonal(network, a).ntk):
        reverse = jax.jit(jax.jacrev(gram))
        np.testing.assert_allclose(jax.jacfwd(gram)(x), reverse(x), rtol=1e-10, atol=1e-12)
        hessian = jax.jit(jax.jacfwd(jax.jacrev(gram)))(x)
        np.testing.assert_allclose(jax.jit(jax.jacrev(jax.jacfwd(gram)))(x), hessian, rtol=1e-9, atol=1e-11)
        difference = (reverse(x.at[1, 2].add(1e-5)) - reverse(x.at[1, 2].add(-1e-5))) / 2e-5
        np.testing.assert_allclose(hessian[..., 1, 2], difference, rtol=1e-5, atol=1e-8)
    masked = widelimit.jax.gram
    conv = nt.Network([layers.conv([3]), layers.relu(), layers.global_average_pool(), layers.dense()])
    y = jnp.asarray(random.normal(size=(2, 5, 3)))
    with pytest.raises(NotImplementedError, match="no forward mode"):
        jax.jvp(lambda a: masked(conv, a, lengths1=[5, 3]).ntk, (y,), (y,))
    forward, reverse = (jax.jit(derivative(lambda a: masked(conv, a).ntk)) for derivative in (jax.jacfwd, jax.jacrev))
    np.testing.assert_allclose(forward(y), reverse(y), rtol=1e-9, atol=1e-12)


def kernel_of(nngp, p, q, **changes):
    """A Kernel made by hand of one pair of vectors."""
    array = jnp.reshape(nngp, (1, 1))
    fields = dict(nngp=array, ntk=0 * array, cov1=jnp.reshape(p, (1,)), cov2=jnp.reshape(q, (1,)), x1_is_x2=False,
                  is_gaussian=True, is_reversed=False, is_input=False, diagonal_batch=True, diagonal_spatial=False,
                  shape1=(1, 8), shape2=(1, 8), batch_axis=0, channel_axis=1)
    return nt.Kernel(**{**fields, **changes})


def correlation_map(activation, w_std, b_std):
    """c -> the covariance after one layer, with variances of 1 before it."""
    kernel_fn = stax.serial(activation, stax.Dense(8, w_std, b_std))[2]
    return lambda c: kernel_fn(kernel_of(c, 1.0, 1.0)).nngp[0, 0]


def test_the_slope_of_a_layer_at_equal_inputs():
    """chi_1 of ReLU is w / 2, that of erf has a formula; at c < 1 the slope is E[phi' phi']."""
    slope = jax.jit(jax.grad(lambda c, w: correlation_map(stax.Relu(), w, 0.1)(c)))
    np.testing.assert_allclose(slope(1.0, 1.5), 1.5**2 / 2, rtol=1e-12)
    np.testing.assert_allclose(slope(0.3, 1.5), 1.5**2 * (np.pi - np.arccos(0.3)) / (2 * np.pi), rtol=1e-12)
    slopes = jax.vmap(jax.grad(correlation_map(stax.Erf(), 1.3, 0.2)))(jnp.linspace(-0.9, 1.0, 5))
    c = np.linspace(-0.9, 1.0, 5)
    np.testing.assert_allclose(slopes, 1.3**2 * 4 / np.pi / np.sqrt(9 - 4 * c**2), rtol=1e-12)
    second = jax.grad(jax.grad(correlation_map(stax.Erf(), 1.0, None)))(0.4)
    np.testing.assert_allclose(second, 4 / np.pi * 4 * 0.4 / (9 - 4 * 0.16)**1.5, rtol=1e-12)


def test_a_phase_diagram_by_vmap_and_grad():
    """Variances and correlations at the fixed points over a grid of variances, all in one compiled function."""
    def fixed_point(f, start):
        return jax.lax.fori_loop(0, 200, lambda _, value: f(value), start)

    def point(w_variance, b_variance):
        kernel_fn = stax.serial(stax.Erf(), stax.Dense(8, jnp.sqrt(w_variance), jnp.sqrt(b_variance)))[2]
        q = fixed_point(lambda p: kernel_fn(kernel_of(p, p, p)).nngp[0, 0], 1.0)
        correlate = lambda c: kernel_fn(kernel_of(c * q, q, q)).nngp[0, 0] / q
        return q, fixed_point(correlate, 0.5), jax.grad(correlate)(1.0)

    w, b = jnp.array([0.5, 1.0, 3.0]), jnp.array([0.1, 0.4])
    q, c, chi = jax.jit(jax.vmap(jax.vmap(point, (None, 0)), (0, None)))(w, b)
    np.testing.assert_allclose(q, w[:, None] * 2 / np.pi * np.arcsin(2 * q / (1 + 2 * q)) + b, rtol=1e-8)
    np.testing.assert_allclose(chi, 4 / np.pi * w[:, None] / np.sqrt((1 + 2 * q)**2 - (2 * q)**2), rtol=1e-9)
    assert (np.asarray(c > 1 - 1e-6) == np.asarray(chi < 1)).all() and {bool(one) for one in np.ravel(chi < 1)} == {True, False}


@pytest.mark.parametrize("name", ["relu", "dropout", "standard", "windows", "positions"])
@pytest.mark.parametrize("diagonal_batch", [True, False])
def test_kernels_made_by_hand_are_traced(name, diagonal_batch, random):
    kernel_fn, (x1, x2) = network(name)[2], inputs(name, random)
    front = stax.Identity()[2]
    for second in (x2, None):
        given = front(jnp.asarray(x1), None if second is None else jnp.asarray(second), diagonal_batch=diagonal_batch).replace()
        expected = kernel_fn(given)
        found = jax.jit(lambda kernel: kernel_fn(kernel))(given)
        for array in ("nngp", "ntk", "cov1", "cov2"):
            one, other = getattr(found, array), getattr(expected, array)
            assert (one is None) == (other is None)
            if one is not None:
                np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
        facts = ("is_gaussian", "is_reversed", "is_input", "shape1", "shape2", "diagonal_batch", "diagonal_spatial")
        assert [getattr(found, fact) for fact in facts] == [getattr(expected, fact) for fact in facts]


def test_variances_of_positions_are_enough_where_they_are(random):
    x = jnp.asarray(random.normal(size=(3, 4, 5, 2)))
    given = stax.Conv(4, (3, 3), padding="SAME")[2](x, diagonal_spatial=True).replace()
    behind = stax.serial(stax.Relu(), stax.Conv(3, (3, 3), padding="SAME"), stax.Erf(), stax.Flatten(), stax.Dense(1))[2]
    np.testing.assert_allclose(jax.jit(lambda k: behind(k, get="ntk"))(given), behind(given, get="ntk"), rtol=1e-10)
    with pytest.raises(ValueError, match="diagonal_spatial: expected one with the covariances of all pairs of positions"):
        jax.jit(stax.GlobalSelfAttention(3, 2, 2, 2)[2])(given)


def test_layers_without_formulas_say_so(random):
    def behind(layer):
        return jax.jit(lambda c: layer[2](kernel_of(c, 1.0, 1.0)).nngp)

    for layer in (stax.Elementwise(np.tanh), stax.Elementwise(nngp_fn=lambda c, p, q: np.exp(c))):
        with pytest.raises(NotImplementedError, match="layers that have formulas"):
            behind(layer)(0.5)
    x = jnp.asarray(random.normal(size=(2, 3, 4)))
    attention = stax.serial(stax.GlobalSelfAttention(4, 2, 2, 2), stax.GlobalAvgPool(), stax.Dense(1))[2]
    with pytest.raises(NotImplementedError, match="no forward mode"):
        jax.jvp(lambda a: attention(a, None, "ntk"), (x,), (x,))
    with pytest.raises(NotImplementedError, match="no second derivatives"):
        jax.hessian(lambda a: attention(a, None, "ntk").sum())(x)


def test_ties_have_the_slope_of_the_variance(random):
    """An input with itself: all derivatives are those of what the layers make of its variance."""
    x = jnp.asarray(random.normal(size=(2, 4)))
    kernel_fn = network("relu")[2]
    norm = lambda a: (a**2).sum(-1) / 4
    expected = lambda a: (1.1**2 * (1.3**2 * norm(a) + 0.2**2) / 2).sum()
    found = lambda a: jnp.trace(kernel_fn(a, None, "nngp"))
    np.testing.assert_allclose(jax.jit(jax.jacfwd(found))(x), jax.grad(expected)(x), rtol=1e-12)
    np.testing.assert_allclose(jax.jit(jax.hessian(found))(x), jax.hessian(expected)(x), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("smoothness", [0.5, 1.5, 2.5])
def test_matern_kernels(smoothness, random):
    """Equal inputs among them, where the slope of the Laplace kernel counts as 0."""
    from widelimit.jax import gram

    matern = nt.Network([layers.dense(1.2), layers.matern(smoothness, 0.8), layers.dense()])
    x = random.normal(size=(4, 3))
    y = np.concatenate([x[:2], random.normal(size=(3, 3))])
    weights = jnp.asarray(random.normal(size=(4, 5)))
    found, slopes = jax.value_and_grad(lambda a: (weights * gram(matern, a, jnp.asarray(y)).nngp).sum())(jnp.asarray(x))
    assert float(found) == pytest.approx(float((np.asarray(weights) * nt.gram(matern, x, y).nngp).sum()), rel=1e-12)
    expected = nt.gram_vjp(matern, x, y, nngp=np.asarray(weights))[0]
    np.testing.assert_allclose(slopes, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("options", [{"pads": [1, 2]}, {"pads": [2, 0, 0, 3], "strides": [2, 1]}, {"dilations": [2, 1]},
                                     {"dilations": [1, 2], "padding": "valid"}, {"dilations": [2, 2], "padding": "circular"},
                                     {"pads": [1, 1], "dilations": [2, 3], "strides": [1, 2]}])
def test_convolutions_with_pads_and_dilations(options, random):
    from widelimit import _formulas

    of = [layers.conv([2, 2], bias_variance=0.2, **options), layers.relu(), layers.global_average_pool(), layers.dense()]
    x1, x2 = random.normal(size=(3, 4, 5, 2)), random.normal(size=(2, 4, 5, 2))
    step = _formulas.step_of(_formulas.descriptions(of))
    found = jax.jit(lambda a, b: (lambda kernel: (kernel.nngp, kernel.ntk))(step(_formulas.of_inputs(a, b, True, False))))(x1, x2)
    expected = nt.gram(nt.Network(of), x1, x2, precision="double")
    for ours, theirs in zip(found, (expected.nngp, expected.ntk)):
        np.testing.assert_allclose(ours[..., 0, 0], theirs, rtol=1e-12)
