"""Names of neural_tangents.experimental, which need TensorFlow: not here."""

from .stax._missing import missing as _missing

__all__ = ["empirical_ntk_fn_tf", "get_apply_fn_and_params"]

_INSTEAD = "networks of TensorFlow need automatic differentiation; empirical_ntk_fn takes networks of widelimit.stax"
empirical_ntk_fn_tf = _missing("experimental.empirical_ntk_fn_tf", _INSTEAD)
get_apply_fn_and_params = _missing("experimental.get_apply_fn_and_params", _INSTEAD)
