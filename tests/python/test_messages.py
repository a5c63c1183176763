"""What is wrong says where, and what was expected."""

import numpy as np
import pytest

import widelimit as nt
from widelimit import heads, layers, predict, propagation, sde, stax


def mlp():
    return stax.serial(stax.Dense(8), stax.Relu(), stax.Dense(1))


X = np.random.default_rng(0).normal(size=(4, 6))


def gram_of(*middle, **options):
    return nt.gram(nt.Network([layers.dense(), *middle, layers.dense()]), X, **options)


@pytest.mark.parametrize("array", [np.ma.masked_array(X, mask=X > 1), np.ma.masked_array(X)])
def test_masked_arrays_are_errors(array):
    for call in (lambda: mlp()[2](array, None, "ntk"), lambda: nt.gram(nt.Network([layers.dense()]), array),
                 lambda: mlp()[2](X, array, "ntk"), lambda: predict.gp_inference(np.eye(4), array[:, :1])):
        with pytest.raises(TypeError, match="numpy.ma.MaskedArray; fill it, and give mask_constant .*mask1"):
            call()


def test_the_order_of_bytes_does_not_matter():
    for array in (X.astype(">f4"), X.astype("<f4")):
        found = mlp()[2](array, None, "ntk")
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, mlp()[2](X.astype(np.float32), None, "ntk"))
    assert mlp()[2](X.astype(">f8"), None, "ntk").dtype == np.float64


@pytest.mark.parametrize("result, word", [(lambda z: z + 1j, "complex128"), (lambda z: None, "None"),
                                          (lambda z: "a", "<U1"), (lambda z: np.ma.masked_array(z), "MaskedArray")])
def test_functions_must_return_real_numbers(result, word):
    for name, make in (("elementwise: phi", lambda: layers.elementwise(result)),
                       ("elementwise: derivative", lambda: layers.elementwise(np.tanh, result)),
                       ("elementwise_dual: nngp", lambda: layers.elementwise_dual(lambda p, q, c: result(c))),
                       ("elementwise_dual: derivative",
                        lambda: layers.elementwise_dual(lambda p, q, c: c, lambda p, q, c: result(c))),
                       ("pair", lambda: layers.pair(lambda nngp, ntk, v1, v2: (result(nngp), ntk)))):
        if name == "pair" and word == "None":
            continue
        with pytest.raises(TypeError, match=f"{name}.*: expected the function to return .*real numbers, got .*{word}"):
            gram_of(make(), kernels="both" if "derivative" in name or name == "pair" else "nngp")


def test_functions_must_keep_the_shape():
    for make in (lambda: layers.elementwise(lambda z: z[:1]), lambda: layers.elementwise(lambda z: np.ones(1)),
                 lambda: layers.elementwise(np.tanh, lambda z: z[:1]),
                 lambda: layers.elementwise_dual(lambda p, q, c: c[:1], lambda p, q, c: c),
                 lambda: layers.elementwise_dual(lambda p, q, c: c, lambda p, q, c: c[:1])):
        with pytest.raises(nt.ArgumentError, match="expected [0-9]+ numbers, got 1$"):
            gram_of(make())
    constant = gram_of(layers.elementwise(lambda z: 1.5, lambda z: 0), kernels="nngp").nngp
    np.testing.assert_allclose(constant, np.full((4, 4), 2.25), rtol=1e-12)


def test_functions_must_be_functions():
    for make, name in ((lambda: layers.elementwise(3), "elementwise: phi"),
                       (lambda: layers.elementwise(np.tanh, 3), "elementwise: derivative"),
                       (lambda: layers.elementwise_dual(3), "elementwise_dual: nngp"),
                       (lambda: layers.pair(3), "pair: transform"),
                       (lambda: gram_of(progress=3), "progress")):
        with pytest.raises(TypeError, match=f"{name}: expected a function.*, got 3"):
            make()


@pytest.mark.parametrize("call, error, message", [
    (lambda: stax.Dense(3, W_std=np.nan), ValueError, "Dense: W_std: expected a finite number, got nan"),
    (lambda: stax.Conv(3, (3,), b_std=np.inf), ValueError, "Conv: b_std: expected a finite number, got inf"),
    (lambda: stax.GlobalSelfAttention(3, 1, 1, 1, W_key_std=np.nan), ValueError, "GlobalSelfAttention: W_key_std"),
    (lambda: mlp()[1]([], X), ValueError, "params: expected a list of 3, as init_fn gives it, got a list of 0"),
    (lambda: mlp()[1]([np.ones(56), (), ()], X), ValueError, r"params\[0\]: expected a tuple of 2, .*got an array of shape"),
    (lambda: mlp()[1]([(np.ones((6, 7)), None), (), (np.ones((8, 2)), None)], X), ValueError,
     r"params\[0\]\[0\]: expected an array of shape \(6, 8\), got one of shape \(6, 7\)"),
    (lambda: mlp()[1]([(np.ones((6, 8)), 3), (), (np.ones((8, 1)), None)], X), ValueError, r"params\[0\]\[1\]: expected None"),
    (lambda: mlp()[1](None, X), ValueError, "params: expected a list of 3, .*got None"),
    (lambda: mlp()[2](X, None, 5), TypeError, "get: expected a name, a tuple of names or None, got 5"),
    (lambda: mlp()[2](None), TypeError, "x1: expected an array of inputs, got None"),
    (lambda: mlp()[2](X, X.reshape(4, 2, 3), "ntk"), ValueError, r"x1 of shape \(4, 6\) .*x2 of shape \(4, 2, 3\)"),
    (lambda: mlp()[2](X, X[:, :5], "ntk"), ValueError, r"x1 of shape \(4, 6\) .*x2 of shape \(4, 5\)"),
    (lambda: stax.serial(), ValueError, "serial: expected at least one layer"),
    (lambda: mlp()[2](X, None, ()), ValueError, "get: expected at least one name"),
    (lambda: predict.gp_inference(np.eye(2), np.array([[1.0], [np.nan]])), ValueError, "y_train: expected finite numbers"),
])
def test_what_is_wrong_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_states_of_the_ode_are_data_classes():
    state = predict.ODEState(fx_train=np.zeros(2), fx_test=1.0)
    other = state.replace(fx_test=3.0)
    assert other.fx_test == 3.0 and state.fx_test == 1.0
    assert other.asdict() == {"fx_train": state.fx_train, "fx_test": 3.0, "qx_train": None, "qx_test": None}
    assert other.astuple()[1:] == (3.0, None, None) and other.astuple()[0] is state.fx_train


@pytest.mark.parametrize("call, error, message", [
    (lambda: nt.FiniteNetwork(nt.Network([layers.dense()]), (), 3)(np.full((2, 3), np.nan)), nt.ArgumentError, "finite"),
    (lambda: predict.gradient_descent_mse(np.eye(3), np.ones((3, 1)))(1j), TypeError, "t: expected an array of real"),
    (lambda: predict.gradient_descent_mse(np.eye(3), np.ones((3, 1)))(np.array(["2020-01-01"], "M8[D]")), TypeError, "t: exp"),
    (lambda: stax.DotGeneral(rhs=np.array([[1j]])), TypeError, "DotGeneral: the factor: expected an array of real"),
    (lambda: stax.DotGeneral(rhs=np.array([[np.nan]])), ValueError, "DotGeneral: the factor: expected finite"),
    (lambda: stax.Conv(3, "ab"), TypeError, "Conv: filter_shape: expected integers"),
    (lambda: stax.Conv(3, (3, 0)), ValueError, "Conv: filter_shape: expected integers of at least 1"),
    (lambda: stax.Conv(3, (3,), strides=(1.5,)), TypeError, "Conv: strides: expected integers"),
    (lambda: stax.AvgPool((2, None)), TypeError, "AvgPool: window_shape: expected integers"),
    (lambda: stax.Dense(3)[2](np.ones((2, 3)), None, (name for name in ("nngp",))), TypeError, "get: expected a name"),
])
def test_what_is_no_number_or_size_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


FITS = [nt.Regression.fit(np.eye(4), np.ones(4), regulariser=0.1),
        nt.GradientFlow.fit(np.eye(4), 2 * np.eye(4), np.ones(4), regulariser=0.1)]


@pytest.mark.parametrize("wrong, word", [(X + 0j, "complex128"), (np.array(["a"]), "<U1"), ("ab", "<U2"),
                                         (np.ma.masked_array(X), "MaskedArray")])
def test_matrices_of_fits_are_named(wrong, word):
    regression, flow = FITS
    for name, call in (("gram", lambda: nt.Regression.fit(wrong, np.ones(4), regulariser=0.1)),
                       ("targets", lambda: nt.Regression.fit(np.eye(4), wrong, regulariser=0.1)),
                       ("nngp", lambda: nt.GradientFlow.fit(wrong, np.eye(4), np.ones(4))),
                       ("ntk", lambda: nt.GradientFlow.fit(np.eye(4), wrong, np.ones(4))),
                       ("cross_gram", lambda: regression.mean(wrong)),
                       ("test_variances", lambda: regression.variance(np.eye(4), wrong)),
                       ("test_gram", lambda: regression.covariance(np.eye(4), wrong)),
                       ("gram_derivatives", lambda: regression.score_derivatives([wrong])),
                       ("ntk_cross", lambda: flow.mean(1.0, wrong)),
                       ("nngp_cross", lambda: flow.variance(1.0, wrong, np.eye(4), np.ones(4))),
                       ("Graph: edges", lambda: nt.Graph(3, wrong)),
                       ("Graph: weights", lambda: nt.Graph(3, [[0, 1]], wrong)),
                       ("Graph: adjacency", lambda: nt.Graph.from_adjacency(wrong))):
        with pytest.raises(TypeError, match=f"^{name}: expected .*{word}"):
            call()


def test_fits_take_what_arrays_are_made_of():
    matrix = 2 * np.eye(3) + np.diag([0.1, 0.3], 1) + np.diag([0.1, 0.3], -1)
    expected = nt.Regression.fit(matrix, np.arange(3.0), regulariser=0.1).weights
    for given in (matrix.tolist(), np.asfortranarray(matrix), np.repeat(matrix, 2, axis=1)[:, ::2]):
        np.testing.assert_array_equal(nt.Regression.fit(given, [0, 1, 2], regulariser=0.1).weights, expected)
    with pytest.raises(ValueError, match="gram: expected a matrix or a vector, got an array of 3 axes"):
        nt.Regression.fit(matrix[None], np.ones(3), regulariser=0.1)
    with pytest.raises(ValueError, match="test_variances: expected a vector, got an array of 2 axes"):
        FITS[0].variance(np.eye(4), np.ones((4, 1)))


def test_edges_of_graphs_are_integers():
    for wrong in (np.array([[0.5, 1.0]]), np.array([[0.0, 1.0]]), np.array([[True, False]])):
        with pytest.raises(TypeError, match="Graph: edges: expected integers, got elements of type"):
            nt.Graph(3, wrong)
    assert nt.Graph(3, np.array([[0, 1], [2, 1]], dtype=np.uint8)).edges == 2
    assert nt.Graph(3, np.zeros((0, 2))).edges == 0


def test_single_numbers_are_named():
    network = nt.Network([layers.dense(), layers.relu(), layers.dense()])
    model = nt.models.Model.fit(network, X, np.arange(4.0), regulariser=0.1)
    for error, match, call in (
            (TypeError, "count: expected an integer, got 2.5", lambda: model.samples(X, 2.5)),
            (ValueError, "seed: expected an integer of at least 0, got -1", lambda: model.prior_samples(X, 2, seed=-1)),
            (nt.ArgumentError, 'regulariser: expected a number > 0, got "a"',
             lambda: nt.models.Model.fit(network, X, np.ones(4), regulariser="a")),
            (nt.ArgumentError, r'time: expected a number >= 0, or inf, got \["a"\]', lambda: nt.models.Model.fit(network, X, np.ones(4), time="a")),
            (ValueError, "seed: expected an integer of at least 0", lambda: nt.FiniteNetwork(network, (), 6, seed=-1)),
            (TypeError, "hidden: expected an integer, got 'a'", lambda: nt.FiniteNetwork(network, (), 6, hidden="a")),
            (ValueError, "draws: expected an integer of at least 0", lambda: nt.check_limit(network, draws=-1)),
            (TypeError, "Hermite: degree: expected an integer, got 1.5", lambda: stax.Hermite(1.5)),
            (TypeError, "Sin: a: expected a number, got 'a'", lambda: stax.Sin("a")),
            (ValueError, "polynomial: coefficients: expected finite numbers", lambda: stax.Polynomial([1.0, np.nan])),
            (ValueError, "ab_relu: b: expected finite numbers, got inf", lambda: stax.ABRelu(1, np.inf)),
            (TypeError, "repeat: n: expected an integer, got 1.5", lambda: stax.repeat(stax.Relu(), 1.5)),
            (TypeError, "Dense: W_std: expected a number, got 'x'", lambda: stax.Dense(1, "x"))):
        with pytest.raises(error, match=match):
            call()


@pytest.mark.parametrize("name, shown", [("\x1b[31mred\n\u009b", r"\x1b[31mred\n\u009b"), ("caf\udce9", r"caf\xe9"),
                                         ("a\u202eb", r"a\u202eb"), ("K\u00e4se \u20ac", "K\u00e4se \u20ac")])
def test_messages_show_what_a_terminal_would_obey(tmp_path, name, shown):
    with pytest.raises(nt.DataError) as error:
        nt.Network.read(tmp_path / f"{name}.json")
    assert f"{shown}.json: expected a JSON file, found none" in str(error.value)


def test_networks_show_their_names_as_text():
    network = nt.Network([layers.dense()], name="<b>x</b>\x1b[2J\u009b")
    assert "<b>x</b>\\x1b[2J\\u009b" in repr(network)
    assert "&lt;b&gt;x&lt;/b&gt;" in network._repr_html_() and "<b>x" not in network._repr_html_()


def test_targets_of_models_say_what_they_may_be():
    network, number = nt.Network([layers.dense(), layers.relu(), layers.dense()]), X[:, 0]
    with pytest.raises(ValueError, match=r"criterion: it is measured on validation data, and there are none: give validation=\(x, y\), or take loo"):
        nt.Model.fit(network, X, number, criterion="mse")
    for texts in (np.array(["a", "b"] * 2), np.array(["a", "b"] * 2, dtype=object)):
        with pytest.raises(TypeError, match="y: expected an array of real numbers, got texts of type .*; for classes give labels=True"):
            nt.Model.fit(network, X, texts)
    with pytest.raises(TypeError, match=r"y: expected integers or texts \[n\], or one-hot rows .*, got int64 of shape \(4, 2\)"):
        nt.Model.fit(network, X, np.ones((4, 2), dtype=int), labels=True)


def test_one_hot_rows_are_labels():
    network, labels = nt.Network([layers.dense(), layers.relu(), layers.dense()]), np.array([0, 2, 1, 2])
    expected = nt.Model.fit(network, X, labels, labels=True, regulariser=0.1).predict(X).class_probabilities
    for dtype in (int, bool, float):
        rows = np.eye(3, dtype=dtype)[labels]
        found = nt.Model.fit(network, X, rows, labels=True, regulariser=0.1).predict(X).class_probabilities
        np.testing.assert_array_equal(found, expected)


def test_arrays_of_objects_that_are_numbers():
    mixed = np.concatenate([X.astype(object), (X[:, :1] > 0)], 1)
    network = nt.Network([layers.dense(), layers.relu(), layers.dense()])
    np.testing.assert_array_equal(nt.gram(network, mixed).ntk, nt.gram(network, mixed.astype(float)).ntk)
    with pytest.raises(TypeError, match="got texts of type object"):
        nt.gram(network, np.array([["1", 2.0]], dtype=object))


PRIOR = heads.Prior.spikes(2, 10)
TRANSFORMER = propagation.Parameters(tokens=4)


@pytest.mark.parametrize("call, words", [
    (lambda: heads.sgd("softmax", PRIOR, 3, 2, 4, 1), "sgd: dimension: expected an integer >= 7, got 4"),
    (lambda: heads.split_rate("bayes", 9, 2, 10, 10, samples=None), "split_rate: .*give samples in place of None"),
    (lambda: heads.hessian("softmax", 1, 2), "hessian: "),
    (lambda: heads.specialisation_times("softmax", PRIOR, 3, 1, 100, [1], 1), "specialisation_times: "),
    (lambda: heads.digit_times("softmax", heads.ImageTask(np.ones((2, 3)), [0, 1]), [1], 1, heads=1), "digit_times: "),
    (lambda: sde.resnet(0.5, hidden_ratio=-1), "resnet: "),
    (lambda: sde.attention(0.5, temperature=-1), "attention: "),
    (lambda: sde.gap_law(sde.mlp(), 0.5, 1), "gap_law: "),
    (lambda: propagation.critical(TRANSFORMER, tolerance=-1), "critical: "),
    (lambda: propagation.simulate_trajectory(TRANSFORMER, c0=2), "simulate_trajectory: c0: "),
    (lambda: propagation.BlockMap(TRANSFORMER).attention(propagation.TokenState(-1, 0)), "BlockMap.attention: "),
    (lambda: nt.Model.fit(nt.Network([layers.dense()]), X, np.zeros((4, 1)), regulariser=-1.0), "regulariser: "),
])
def test_messages_have_the_words_of_the_package(call, words):
    with pytest.raises((ValueError, nt.Error), match=f"^(?:{words})") as error:
        call()
    assert "::" not in str(error.value)
