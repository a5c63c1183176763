"""Networks among which the evidence chooses, where nobody names one."""

from __future__ import annotations

from ._arrays import batch
from ._core import Network, NumericalError, median_distance
from .layers import dense, relu

AUTOMATIC = "auto"


def default_network() -> Network:
    """Three hidden ReLU layers, weight variance 2 and bias variance 0.01."""
    hidden = [dense(2, 0.01), relu()]
    return Network([*hidden, *hidden, *hidden, dense(1, 0.01)])


def automatic_networks(word, x):
    """default_network(), and squared exponentials of one, two and four times the median distance of inputs x [n, channels].
    ValueError for another word than 'auto' and for other inputs."""
    if word != AUTOMATIC:
        raise ValueError(f"network: expected a Network or {AUTOMATIC!r}, got {word!r}")
    if x.ndim != 2:
        raise ValueError(f"network: {AUTOMATIC!r} is for inputs [n, channels], got shape {x.shape}; give a Network")
    length = median_distance(batch(x, x.dtype, "x"))
    smooth = [] if length is None else [Network.named("rbf", {"axes": 0, "length": factor * length}) for factor in (1, 2, 4)]
    return [default_network(), *smooth]


def likeliest(networks, fitted, evidence):
    """Of fitted(network), the one with the highest evidence. NumericalError of the last network if none can be fitted."""
    fits = []
    for network in networks:
        try:
            fits.append(fitted(network))
        except NumericalError as failed:
            error = failed
    if not fits:
        raise error
    return max(fits, key=evidence)
