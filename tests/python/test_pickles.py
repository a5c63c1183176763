"""What can be pickled and copied, and sent to other processes."""

import copy
import multiprocessing
import pickle

import numpy as np
import pytest

import widelimit as nt
from parameter_trees import mapped
from widelimit import layers, predict, stax


def copies(value):
    return pickle.loads(pickle.dumps(value)), copy.deepcopy(value), copy.copy(value)


def networks():
    def branches(fan_in, *inner):
        return stax.serial(stax.FanOut(len(inner)), stax.parallel(*inner), fan_in)

    conv = stax.serial(stax.Relu(), stax.Conv(4, (2, 2), padding="SAME", W_std=1.4, b_std=0.1))
    first = stax.Dense(4)
    return (stax.serial(first, branches(stax.FanInSum(), first, stax.repeat(conv, 2)), stax.AvgPool((2, 2)),
                        stax.LayerNorm(), stax.Dropout(0.8), stax.Flatten(), stax.Dense(2)),
            stax.serial(first, branches(stax.FanInProd(), conv, conv), stax.GlobalAvgPool(), stax.Dense(2)),
            stax.serial(first, branches(stax.FanInConcat(), conv, conv), stax.Index(stax.Slice[:, 1:]), stax.Dense(3), stax.Abs(),
                        stax.ImageResize((-1, 2, 2, -1), "linear"), stax.GlobalSumPool(), stax.Dense(2)),
            stax.serial(stax.Dense(4), stax.GlobalSelfAttention(4, 2, 2, 2, pos_emb_type="SUM"), stax.Flatten(),
                        stax.DotGeneral(rhs=2.0), stax.Dense(2)))


@pytest.mark.parametrize("number", range(4))
def test_triples(random, number):
    x, triple = random.normal(size=(3, 4, 3, 2)), networks()[number]
    kernels, params = triple[2](x, None, ("nngp", "ntk")), triple[0](0, x.shape)[1]
    outputs = triple[1](params, x, rng=1)
    for init_fn, apply_fn, kernel_fn in copies(triple):
        for name in ("nngp", "ntk"):
            np.testing.assert_array_equal(getattr(kernel_fn(x), name), getattr(kernels, name))
        np.testing.assert_array_equal(apply_fn(params, x, rng=1), outputs)
        mapped(np.testing.assert_array_equal, init_fn(0, x.shape)[1], params)


def test_nonlinearities_of_ones_own_go_with_their_functions(random):
    x = random.normal(size=(3, 4))
    for layer in (stax.Elementwise(np.tanh), stax.ElementwiseNumerical(np.tanh, 25), stax.Elementwise(nngp_fn=first_of)):
        kernel_fn = stax.serial(stax.Dense(4), layer, stax.Dense(1))[2]
        for other in copies(kernel_fn):
            np.testing.assert_array_equal(other(x, None, "ntk"), kernel_fn(x, None, "ntk"))


def first_of(c, p, q):
    """The dual of the identity."""
    return c


def test_results_and_values(random):
    x = random.normal(size=(4, 3))
    kernel_fn = stax.serial(stax.Dense(4), stax.Relu(), stax.Dense(1))[2]
    behind = stax.serial(stax.Relu(), stax.Dense(1))[2]
    kernel = kernel_fn(x)
    for other in copies(kernel):
        assert other.shape1 == kernel.shape1
        np.testing.assert_array_equal(behind(other).ntk, behind(kernel).ntk)
    for result in (kernel_fn(x, None, ("ntk", "nngp")), nt.gram(nt.Network([layers.dense()]), x),
                   predict.gradient_descent_mse_ensemble(kernel_fn, x, x[:, :1], diag_reg=0.1)(x_test=x)):
        for other in copies(result):
            assert other._fields == result._fields
            np.testing.assert_array_equal(other[0], result[0])
    for layer in (layers.dense(2, 0.1), layers.sum([], [layers.relu()]), layers.conv([3, 3])):
        assert all(other == layer for other in copies(layer))
    finite = nt.FiniteNetwork(nt.Network([layers.dense(), layers.relu(), layers.dense()]), (), 3, hidden=8, seed=3)
    finite.parameters = 2 * finite.parameters
    for other in copies(finite):
        np.testing.assert_array_equal(other(x), finite(x))


def test_models_and_predictions(random):
    x, y = random.normal(size=(6, 3)), random.normal(size=(6, 1))
    network = nt.Network([layers.dense(2, 0.1), layers.relu(), layers.dense()])
    model = nt.Model.fit(network, x, y)
    kernel_fn = stax.serial(stax.Dense(4), stax.Relu(), stax.Dense(1))[2]
    gram = kernel_fn(x, None, ("nngp", "ntk"))
    for other in copies(model):
        np.testing.assert_array_equal(other.predict(x).mean, model.predict(x).mean)
    for predict_fn, arguments in ((predict.gradient_descent_mse_ensemble(kernel_fn, x, y, diag_reg=0.1), (None, x, "ntk")),
                                  (predict.gp_inference(gram, y, 0.1), ("ntk", gram)),
                                  (predict.gradient_descent_mse(gram.ntk, y), (2.0,))):
        expected = predict_fn(*arguments)
        for other in copies(predict_fn):
            np.testing.assert_array_equal(other(*arguments), expected)


def test_layers_of_functions_say_that_they_cannot():
    own = layers.elementwise(lambda z: np.tanh(z))
    for value in (own, nt.Network([layers.dense(), own])):
        with pytest.raises(TypeError, match="layers made of functions cannot be pickled or copied: .*elementwise"):
            pickle.dumps(value)


def test_other_processes(random):
    x1, x2 = random.normal(size=(4, 3)), random.normal(size=(2, 3))
    kernel_fn = stax.serial(stax.Dense(4), stax.Relu(), stax.Dense(1))[2]
    calls = [(x1, None, "ntk"), (x1, x2, ("nngp", "ntk"))]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        alone, both = pool.starmap(kernel_fn, calls)
    np.testing.assert_array_equal(alone, kernel_fn(*calls[0]))
    np.testing.assert_array_equal(both.ntk, kernel_fn(*calls[1]).ntk)
