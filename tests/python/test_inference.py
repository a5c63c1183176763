"""Regression, gradient flow and predict, against the formulas in NumPy."""

import numpy as np
import pytest

import widelimit
from widelimit import predict, stax


def problem(random):
    kernel_fn = stax.serial(stax.Dense(1, W_std=1.3, b_std=0.2), stax.Erf(), stax.Dense(1))[2]
    x, test = random.normal(size=(7, 4)), random.normal(size=(3, 4))
    return kernel_fn, x, random.normal(size=(7, 2)), test


def test_regression_is_the_posterior(random):
    kernel_fn, x, y, test = problem(random)
    k, cross, prior = kernel_fn(x, None, "nngp"), kernel_fn(test, x, "nngp"), kernel_fn(test, None, "nngp")
    posterior = widelimit.Regression.fit(k, y, noise_variance=0.1)
    inverse = np.linalg.inv(k + 0.1 * np.eye(7))
    np.testing.assert_allclose(posterior.mean(cross), cross @ inverse @ y, rtol=1e-10)
    covariance = prior - cross @ inverse @ cross.T
    np.testing.assert_allclose(posterior.covariance(cross, prior), covariance, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(posterior.variance(cross, np.diag(prior).copy()), np.diag(covariance), rtol=1e-8)
    _, log_determinant = np.linalg.slogdet(k + 0.1 * np.eye(7))
    evidence = -0.5 * np.trace(y.T @ inverse @ y) - log_determinant - 7 * np.log(2 * np.pi)
    assert posterior.log_marginal_likelihood == pytest.approx(evidence, rel=1e-10)
    with pytest.raises(ValueError, match="got both"):
        widelimit.Regression.fit(k, y, noise_variance=0.1, regulariser=0.1)


def left_out(inverse_of, y):
    """Refits without each input: (residuals, variances)."""
    residuals, variances = [], []
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        mean, variance = inverse_of(rest, i)
        residuals.append(y[i] - mean)
        variances.append(variance)
    return np.array(residuals), np.array(variances)


def test_leaving_one_out_is_what_refits_give(random):
    kernel_fn, x, y, _ = problem(random)
    k, t = kernel_fn(x, None, ("nngp", "ntk"))

    def posterior(rest, i):
        weights = np.linalg.solve(k[np.ix_(rest, rest)] + 0.1 * np.eye(6), k[rest, i])
        return weights @ y[rest], k[i, i] - weights @ k[rest, i] + 0.1

    def trained(rest, i):
        weights = np.linalg.solve(t[np.ix_(rest, rest)] + 0.1 * np.eye(6), t[rest, i])
        return weights @ y[rest], k[i, i] - 2 * weights @ k[rest, i] + weights @ k[np.ix_(rest, rest)] @ weights + 0.1

    for found, refit in ((widelimit.Regression.fit(k, y, noise_variance=0.1).leave_one_out(), posterior),
                         (widelimit.GradientFlow.fit(k, t, y, noise_variance=0.1).leave_one_out(), trained)):
        residuals, variances = left_out(refit, y)
        np.testing.assert_allclose(found.residuals, residuals, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(found.variances, variances, rtol=1e-8)
        assert found.mean_squared_error == pytest.approx(np.mean(residuals**2), rel=1e-8)
        density = 0.5 * np.sum(np.log(2 * np.pi * variances)[:, None] + residuals**2 / variances[:, None]) / len(y)
        assert found.negative_log_predictive_density == pytest.approx(density, rel=1e-8)


def test_variances_of_flows_are_diagonals(random):
    kernel_fn, x, y, test = problem(random)
    flow = widelimit.GradientFlow.fit(*kernel_fn(x, None, ("nngp", "ntk")), y, regulariser=1e-3)
    cross, prior = kernel_fn(test, x, ("nngp", "ntk")), kernel_fn(test, None, "nngp")
    for time in (0.0, 2.0, np.inf):
        covariance = flow.covariance(time, cross.nngp, cross.ntk, prior)
        variance = flow.variance(time, cross.nngp, cross.ntk, np.diag(prior).copy())
        np.testing.assert_allclose(variance, np.diag(covariance), rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(flow.train_variance(time), np.diag(flow.train_covariance(time)), rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(cross.ntk @ flow.weights(time), flow.mean(time, cross.ntk), rtol=1e-8, atol=1e-12)


def test_probabilities_of_classes_and_their_calibration(random):
    mean, variances = random.normal(size=(5, 3)), random.uniform(0.1, 2, 5)
    probabilities = widelimit.class_probabilities(mean, variances)
    drawn = mean + np.sqrt(variances)[:, None] * random.normal(size=(200000, 5, 3))
    shares = np.eye(3)[drawn.argmax(-1)].mean(0)
    np.testing.assert_allclose(probabilities, shares, atol=6e-3)
    assert widelimit.class_probabilities(mean[:, 0], variances).shape == (5, 2)
    labels = np.array([0, 1, 2, 0, 1])
    found = widelimit.calibration(probabilities, labels, bins=4)
    confidence, right = probabilities.max(1), probabilities.argmax(1) == labels
    error = 0.0
    for b in found.bins:
        inside = (confidence > b.lower) & (confidence <= b.upper)
        assert b.count == inside.sum()
        error += abs(right[inside].sum() - confidence[inside].sum()) / 5
    assert found.expected_error == pytest.approx(error, rel=1e-12) and len(found.bins) == 4
    with pytest.raises(TypeError, match="labels: expected integers"):
        widelimit.calibration(probabilities, labels.astype(float))
    with pytest.raises(ValueError, match="variances: expected a vector"):
        widelimit.class_probabilities(mean, mean)
    with pytest.raises(widelimit.ArgumentError):
        widelimit.calibration(probabilities, labels + 2)


def test_the_library_and_predict_agree(random):
    kernel_fn, x, y, test = problem(random)
    k, t = kernel_fn(x, None, ("nngp", "ntk"))
    cross = kernel_fn(test, x, ("nngp", "ntk"))
    flow = widelimit.GradientFlow.fit(k, t, y)
    ensemble = predict.gradient_descent_mse_ensemble(kernel_fn, x, y)
    for time in (0.0, 3.0, np.inf):
        scaled = None if time == np.inf else time * y.size
        got = ensemble(t=scaled, x_test=test, get="ntk", compute_cov=True)
        np.testing.assert_allclose(got.mean, flow.mean(time, cross.ntk), rtol=1e-7, atol=1e-9)
        prior = kernel_fn(test, None, "nngp")
        np.testing.assert_allclose(got.covariance, flow.covariance(time, cross.nngp, cross.ntk, prior), rtol=1e-6,
                                   atol=1e-8)


def test_gradient_descent_of_any_loss_is_that_of_the_mean_squared_error(random):
    pytest.importorskip("scipy")
    kernel_fn, x, y, test = problem(random)
    k, cross = kernel_fn(x, None, "ntk"), kernel_fn(test, x, "ntk")
    closed = predict.gradient_descent_mse(k, y)(5.0, 0.0, np.zeros((3, 2)), cross)
    loss = predict.gradient_descent(lambda fx, y: 0.5 * np.mean((fx - y)**2), k, y)
    for got, expected in zip(loss(5.0, 0.0, np.zeros((3, 2)), cross), closed):
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-8)


def test_predictions_on_training_inputs_end_at_the_targets(random):
    kernel_fn, x, y, _ = problem(random)
    both = predict.gradient_descent_mse_ensemble(kernel_fn, x, y)(compute_cov=True)
    np.testing.assert_allclose(both.nngp.mean, y, atol=1e-7)
    np.testing.assert_allclose(both.ntk.covariance, 0, atol=1e-7)
    np.testing.assert_allclose(predict.gradient_descent_mse(kernel_fn(x, None, "ntk"), y)(), y)


def test_the_largest_learning_rate_is_where_descent_stops_converging(random):
    kernel_fn, x, y, _ = problem(random)
    k = kernel_fn(x, None, "ntk")
    rate = predict.max_learning_rate(k, y_train_size=y.size)

    def after(scale):
        fx = np.zeros_like(y)
        for _ in range(400):
            fx = fx - scale * rate / y.size * k @ (fx - y)
        return np.abs(fx - y).max()

    assert after(0.9) < 10 < after(1.1)


def test_wrong_arguments(random):
    kernel_fn, x, y, _ = problem(random)
    k = kernel_fn(x, None, "ntk")
    with pytest.raises(ValueError, match=r"k_train_train: expected an array over \(7, 2\) as y_train without trace_axes"):
        predict.gradient_descent_mse(k, y, trace_axes=())
    with pytest.raises(ValueError, match="trace_axes=.*expected axes of y_train"):
        predict.gradient_descent_mse(k, y, trace_axes=(2,))
    with pytest.raises(ValueError, match="diag_reg"):
        predict.gradient_descent_mse(k, y, diag_reg=-1)
    with pytest.raises(ValueError, match=r"k_train_train: expected an array over \(3,\)"):
        predict.gp_inference(k, y[:3])(get="ntk")
    with pytest.raises(ValueError, match="k_test_train: expected the kernel"):
        predict.gradient_descent_mse(k, y)(1.0, 0.0, 0.0)
    with pytest.raises(ValueError, match="nothing would be predicted"):
        predict.gradient_descent_mse(k, y)(1.0, None)
    with pytest.raises(ValueError, match="expected both kernels"):
        predict.gp_inference(k, y, 0.1)("ntk", k, k)
    with pytest.raises(ValueError, match="get: expected"):
        predict.gradient_descent_mse_ensemble(kernel_fn, x, y)(get="ntkgp")
    with pytest.raises(np.linalg.LinAlgError, match="eigenvalue"):
        predict.gradient_descent_mse(-np.eye(7), y)(1.0)
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        predict.gp_inference(-np.eye(7), y)("nngp", k)


def test_kernels_in_single_precision_flow_in_spite_of_their_rounding(random):
    x, y = random.normal(size=(60, 2)), random.normal(size=(60, 1))
    kernel = stax.serial(stax.Dense(1), stax.Monomial(2), stax.Dense(1))[2](x, None, "nngp", precision="float")
    assert np.linalg.eigvalsh(kernel.astype(float))[0] < 0
    assert np.isfinite(predict.gradient_descent_mse(kernel, y)(np.array([1.0, np.inf]))).all()


def test_an_ode_state_goes_on(random):
    pytest.importorskip("scipy")
    kernel_fn, x, y, test = problem(random)
    k, cross = kernel_fn(x, None, "ntk"), kernel_fn(test, x, "ntk")
    flow = predict.gradient_descent(lambda fx, y: np.mean((fx - y)**4), k, y, 0.5, momentum=0.9)
    begin = predict.ODEState(np.zeros_like(y), np.zeros((3, 2)))
    middle, end = (flow(t, begin, None, cross) for t in (1.0, 3.0))
    later = flow(2.0, middle, None, cross)
    both = flow(np.array([1.0, 3.0]), 0.0, 0.0, cross)
    for got, expected in ((later.fx_test, end.fx_test), (later.qx_train, end.qx_train), (both[1][1], end.fx_test),
                          (both[0][0], middle.fx_train)):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-7)


def hinge_flow(k, y, end):
    """Margins under the flow of mean(max(0, 1 - y f)) at time `end`: straight lines between events.

    A point at margin 1 stays there if a force between 0 and 1 / n keeps it; it leaves if even the whole force, or none, would.
    """
    n, at = len(y), 0.0
    margins, forces = np.zeros(n), np.full(n, 1 / n)
    k = y[:, None] * k * y
    while at < end:
        held = np.flatnonzero((abs(margins - 1) < 1e-12))
        forces = np.where(margins < 1 - 1e-12, 1 / n, 0.0)
        while held.size:
            force = np.linalg.solve(k[np.ix_(held, held)], -k[held] @ np.where(np.isin(range(n), held), 0, forces))
            forces[held] = force
            if ((0 <= force) & (force <= 1 / n)).all():
                break
            outside = np.argmax(np.maximum(-force, force - 1 / n))
            forces[held[outside]] = 0.0 if force[outside] < 0 else 1 / n
            held = np.delete(held, outside)
        speed = k @ forces
        with np.errstate(divide="ignore", invalid="ignore"):
            hits = (1 - margins) / speed
        moving = np.setdiff1d(np.arange(n), held)
        step = min([end - at, *[hit for hit in hits[moving] if hit > 1e-12]])
        margins, at = margins + step * speed, at + step
        margins[held] = 1
        margins[abs(margins - 1) < 1e-10] = 1
    return margins


def test_outputs_stay_where_the_gradient_of_a_loss_jumps():
    jax = pytest.importorskip("jax")
    random = np.random.default_rng(0)
    x, y = random.normal(size=(6, 5)), np.sign(random.normal(size=6))
    k = np.array(stax.serial(stax.Dense(1), stax.Relu(), stax.Dense(1))[2](x, None, "ntk"))
    losses = {"compiled": lambda fx, y: jax.numpy.mean(jax.numpy.maximum(0, 1 - fx * y)),
              "arrays of NumPy": lambda fx, y: float(np.mean(np.maximum(0, 1 - np.asarray(fx) * y)))}
    for name, loss in losses.items():
        for end in (3.0, 8.0, 40.0):
            fx = predict.gradient_descent(loss, k, y[:, None])(end)
            assert np.allclose(fx[:, 0] * y, hinge_flow(k, y, end), atol=2e-5), (name, end)


def multi_class_hinge(numpy):
    """max_j (f_j + 1 - y_j) - f_y of one-hot targets, summed over inputs."""
    return lambda fx, y: numpy.sum(numpy.max(fx + 1 - y, axis=-1) - numpy.sum(fx * y, axis=-1))


def test_outputs_that_share_a_jump_share_its_force():
    jax = pytest.importorskip("jax")
    k, y = np.ones((1, 1)), np.array([[1.0, 0, 0, 0]])
    flow = predict.gradient_descent(multi_class_hinge(jax.numpy), k, y)
    # The second output falls alone to the third, both by half to the fourth, and all three by a third.
    found = flow(np.array([0.01, 0.05, 0.3]), np.array([[0, 0.03, 0.02, 0]]))
    expected = [[[0.01, 0.02, 0.02, 0]], [[0.05, 0, 0, 0]], [[0.3, *3 * [-0.25 / 3]]]]
    assert np.allclose(found, expected, atol=2e-4)
    of_numpy = predict.gradient_descent(lambda fx, y: float(multi_class_hinge(np)(np.asarray(fx), y)), k, y)
    with pytest.raises(ArithmeticError, match="jumps in several outputs at once.*jax.numpy"):
        of_numpy(0.3)


def test_smooth_losses_of_numpy_are_those_of_jax(random):
    jax = pytest.importorskip("jax")
    x, y = random.normal(size=(5, 3)), np.eye(3)[random.integers(3, size=5)]
    k = np.array(stax.serial(stax.Dense(1), stax.Relu(), stax.Dense(1))[2](x, None, "ntk"))

    def cross_entropy(numpy):
        as_array = numpy.asarray
        return lambda fx, y: numpy.mean(numpy.log(numpy.sum(numpy.exp(as_array(fx)), axis=1)) - numpy.sum(fx * y, axis=1))

    by_jax, by_numpy = (predict.gradient_descent(cross_entropy(of), k, y)(20.0) for of in (jax.numpy, np))
    assert np.allclose(by_jax, by_numpy, atol=1e-6)
    # At the optimum of a smooth loss both sides differ as well.
    square = predict.gradient_descent(lambda fx, y: float(np.sum((np.asarray(fx) - y).sum(axis=1)**2 + ((fx - y)**2).sum(axis=1))), k, y)(400.0)
    assert np.allclose(square, y, atol=1e-4)


def test_long_oscillations_of_a_smooth_loss_are_no_jump(random):
    jax = pytest.importorskip("jax")
    x, y = random.normal(size=(6, 3)), random.normal(size=(6, 2))
    k = np.array(stax.serial(stax.Dense(1), stax.Relu(), stax.Dense(1))[2](x, None, "ntk"))
    values, vectors = np.linalg.eigh(k)
    friction, time = 0.01, 100.0  # momentum .99, learning rate 1
    # Each mode: q'' = -v q / 12 - friction q', for the mean over 12 outputs; exactly.
    decay = np.array([np.exp(np.roots([1, friction, v / 12]) * time) for v in values])
    roots = np.array([np.roots([1, friction, v / 12]) for v in values])
    left = ((roots[:, 0] * decay[:, 1] - roots[:, 1] * decay[:, 0]) / (roots[:, 0] - roots[:, 1])).real
    found = predict.gradient_descent(lambda fx, y: 0.5 * jax.numpy.mean((fx - y)**2), k, y, 1.0, momentum=0.99)(time)
    assert np.allclose(found, y - vectors @ (left[:, None] * (vectors.T @ y)), atol=2e-8)
