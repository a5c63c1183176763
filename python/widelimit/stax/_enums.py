"""The choices of neural-tangents, as enumerations; strings are accepted in their place everywhere."""

from enum import Enum


class Padding(Enum):
    """What lies beyond the edges: the other side (CIRCULAR), zeros (SAME), or nothing (VALID)."""

    CIRCULAR = "CIRCULAR"
    SAME = "SAME"
    VALID = "VALID"


class PositionalEmbedding(Enum):
    """Encodings of positions in attention: none, added to the inputs, or as additional channels."""

    NONE = "NONE"
    SUM = "SUM"
    CONCAT = "CONCAT"


class AttentionMechanism(Enum):
    """How logits become attention weights."""

    SOFTMAX = "SOFTMAX"
    IDENTITY = "IDENTITY"
    ABS = "ABS"
    RELU = "RELU"


class AggregateImplementation(Enum):
    """Whether patterns of Aggregate are adjacency matrices (DENSE) or edges (SPARSE)."""

    DENSE = "DENSE"
    SPARSE = "SPARSE"


def choice(name, kind, value):
    """A member of an enumeration, given as itself or by its name in letters of either case."""
    word = getattr(value, "name", value)
    if str(word).upper() not in kind.__members__:
        raise ValueError(f"{name}: expected {', '.join(kind.__members__)}, got {value!r}")
    return kind[str(word).upper()]
