"""Networks that a function refers to which they call are freed: the garbage collector sees into them."""

import gc
import weakref

import numpy as np
import pytest

import widelimit as nt
from widelimit import layers, stax


class Holder:
    """Refers to its network, whose layers call its method."""

    def __init__(self, make):
        self.scale = 1.0
        self.network = make(self.phi)

    def phi(self, z):
        return self.scale * np.tanh(z)


def own(phi):
    """Cheap to make: nothing is tabulated."""
    return layers.elementwise_dual(lambda p, q, c: phi(c), lambda p, q, c: phi(c))


MAKERS = {
    "network": lambda phi: nt.Network([layers.dense(), own(phi), layers.dense()]),
    "layer": own,
    "functions": lambda phi: layers.elementwise(phi, lambda z: 1 - phi(z)**2),
    "pair": lambda phi: layers.pair(lambda nngp, ntk, left, right: (phi(nngp), ntk)),
    "branches": lambda phi: nt.Network([layers.sum([layers.product([own(phi)], [own(phi), layers.dense()])], (0.5, []))]),
    "concat": lambda phi: nt.Network([layers.concat((0.5, [own(phi)]), (0.5, [layers.concat_positions(0, [own(phi)], [])]))]),
    "repeat": lambda phi: nt.Network([layers.repeat(3, [layers.dense(), own(phi)])]),
    "layers of a network": lambda phi: nt.Network([layers.dense(), own(phi)]).layers,
    "stax": lambda phi: stax.serial(stax.Dense(4), stax.Elementwise(nngp_fn=lambda c, p, q: phi(c)), stax.Dense(1)),
    "finite": lambda phi: nt.FiniteNetwork(nt.Network([layers.dense(), layers.elementwise(phi), layers.dense()]), (), 3, hidden=4),
    "model": lambda phi: nt.Model.fit(nt.Network([layers.dense(), own(phi), layers.dense()]), np.eye(4), np.arange(4.0),
                                      regulariser=0.1),
}


@pytest.mark.parametrize("name", MAKERS)
def test_cycles_through_functions_are_freed(name):
    holder = Holder(MAKERS[name])
    seen = weakref.ref(holder)
    del holder
    gc.collect()
    assert seen() is None


def test_cycles_are_freed_after_use(random):
    holder = Holder(MAKERS["stax"])
    kernel = holder.network[2](random.normal(size=(3, 2)))
    assert np.isfinite(kernel.ntk).all()
    seen = weakref.ref(holder)
    del holder, kernel
    gc.collect()
    assert seen() is None


def test_functions_live_as_long_as_what_calls_them(random):
    x = random.normal(size=(4, 3))

    def made(scale):
        return nt.Network([layers.dense(), layers.sum([own(lambda c: scale * c), layers.dense()], []), layers.dense()])

    expected = nt.gram(made(2.0), x).ntk
    network = nt.Network(made(2.0).layers)
    finite = nt.FiniteNetwork(nt.Network([layers.dense(), layers.elementwise(lambda z: 2 * z), layers.dense()]), (), 3, hidden=8)
    model = nt.Model.fit(made(2.0), x, x[:, 0], regulariser=0.1)
    again = model.with_amplitude(2.0).network
    gc.collect()
    np.testing.assert_array_equal(nt.gram(network, x).ntk, expected)
    np.testing.assert_array_equal(nt.gram(again, x).ntk, expected)
    assert np.isfinite(finite(x)).all()
    assert np.isfinite(model.predict(x).mean).all()
    assert np.isfinite(nt.gram(nt.Network(model.network.layers), x).ntk).all()
