"""From a configuration of Hugging Face's `transformers` to its blocks. It needs neither `transformers` nor PyTorch."""

from __future__ import annotations

import json
import math
import os
import pathlib
from typing import Any

from ._model_types import ModelType, model_type_of
from ._plan import ACTIVATIONS, MOST_CAP_CHANGE, Attention, Mlp, Plan


class Fields:
    """The fields of a configuration, whose errors name the field and where it stands."""

    def __init__(self, fields: dict[str, Any], where: str) -> None:
        self._fields, self._where = fields, where

    def __call__(self, name: str, default: Any = None) -> Any:
        """A field; the default where it is absent."""
        return self._fields.get(name, default)

    def wrong(self, name: str, expected: str) -> ValueError:
        """The error of a field."""
        found = f"got {self._fields[name]!r}" if name in self._fields else "it is missing"
        return ValueError(f"{self._where}: {name}: expected {expected}, {found}")

    def count(self, name: str, default: int | None = None) -> int:
        """A positive integer."""
        value = self._fields.get(name)
        value = default if value is None else value
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise self.wrong(name, "a positive integer")
        return value

    def number(self, name: str, default: float, least: float = 0.0) -> float:
        """A finite number that is not below `least`."""
        value = self._fields.get(name)
        value = default if value is None else value
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < least:
            raise self.wrong(name, f"a number of at least {least:g}")
        return float(value)

    def activation(self, *names: str) -> str:
        """The name of an activation that has a limit here: the first field that is set, or the last of `names`."""
        *fields, default = names
        name = next((field for field in fields if self._fields.get(field)), None)
        value = default if name is None else self._fields[name]
        if value not in ACTIVATIONS:
            raise self.wrong(name, f"one of {', '.join(ACTIVATIONS)}")
        return value


def fields_of(configuration: Any) -> Fields | None:
    """The fields of a configuration object, a dict, or the path of a config.json or of its folder; None for anything else."""
    if isinstance(configuration, (str, os.PathLike)):
        path = pathlib.Path(configuration)
        path = path / "config.json" if path.is_dir() else path
        try:
            read = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise FileNotFoundError(f"{path}: expected the config.json of a model, or its folder: {error.strerror}") from error
        except ValueError as error:
            raise ValueError(f"{path}: expected JSON: {error}") from error
        if not isinstance(read, dict):
            raise ValueError(f"{path}: expected an object of JSON, got {type(read).__name__}")
        return _text_fields(read, str(path))
    if isinstance(configuration, dict):
        return _text_fields(configuration, "configuration")
    if hasattr(configuration, "to_dict") and hasattr(configuration, "model_type"):
        return _text_fields(configuration.to_dict(), type(configuration).__name__)
    return None


def _text_fields(fields, where):
    """Configurations of models of images and texts hold that of the texts."""
    inner = fields.get("text_config")
    if isinstance(inner, dict):
        return Fields(inner, f"{where}: text_config")
    return Fields(fields, where)


def plans_of(fields: Fields) -> tuple[str, tuple[Plan, ...], float]:
    """(model type, the block of each layer, squared norm of the first block's tokens)."""
    row = model_type_of(fields)
    width, depth = fields.count(row.names["width"]), fields.count(row.names["depth"])
    plans = tuple(_plan(fields, row, width, depth, layer) for layer in range(depth))
    return fields("model_type"), plans, start_norm(fields, row, width)


def start_norm(fields: Fields, row: ModelType, width: int) -> float:
    """Squared norm over width of what the first block reads, for different tokens: of embeddings, of a norm behind them, or of
    patches of images whose numbers have mean 0 and variance 1."""
    variance = fields.number("initializer_range", 0.02) ** 2
    if row.start == "patches":
        return variance * (fields.count("num_channels", 3) * fields.count("patch_size", 16) ** 2 + 1)
    return {"tokens": variance, "tokens and positions": 2 * variance, "scaled tokens": variance * width, "normed": 1.0}[row.start]


def _plan(fields, row, width, depth, layer):
    deviation = fields.number("initializer_range", 0.02)
    last = deviation / math.sqrt(2 * depth) if row.residual else deviation
    return Plan(width=width, norm=row.norm, epsilon=fields.number(*row.epsilon), placement=row.placement,
                parallel=bool(fields(*row.parallel)) if row.parallel else False,
                attention=_attention(fields, row, width, layer, deviation ** 2, last ** 2),
                mlp=_mlp(fields, row, width, deviation ** 2, last ** 2))


def _mlp(fields, row, width, variance, last):
    # GPT-2 has four times its width where nothing is said.
    hidden = fields.count(row.names["hidden"], 4 * width if row.names["hidden"] == "n_inner" else None)
    return Mlp(hidden, fields.activation(*row.activation), row.gated, in_variance=variance * width, out_variance=last * hidden)


def _attention(fields, row, width, layer, variance, last):
    heads = fields.count(row.names["heads"])
    key_value_heads = fields.count("num_key_value_heads", heads)
    if heads % key_value_heads:
        raise fields.wrong("num_key_value_heads", f"a divisor of the {heads} heads")
    if row.head_width is None and fields("head_dim") is None and width % heads:
        raise fields.wrong(row.names["heads"], f"a divisor of the width {width}")
    head_width = fields.count("head_dim", row.head_width or width // heads)
    window, kind = _window(fields, row, layer)
    attention = Attention(
        heads=heads, key_value_heads=key_value_heads, head_width=head_width, causal=row.causal, query_variance=variance * width,
        key_variance=variance * width, value_variance=variance * width, output_variance=last * heads * head_width,
        logit_factor=_logit_factor(fields, row, head_width, layer), frequencies=_frequencies(fields, row, head_width, kind),
        window=window, normalised=row.normalised, soft_cap=_soft_cap(fields, row))
    if attention.soft_cap is not None and attention.cap_change > MOST_CAP_CHANGE:
        raise fields.wrong(row.soft_cap[0], f"a soft cap of logits that changes them by less than {MOST_CAP_CHANGE:.0%} at 4 standard "
                           f"deviations of {attention.query_key_std:.3g}, because the layers have none")
    return attention


def _soft_cap(fields, row):
    if row.soft_cap is None or fields(*row.soft_cap) is None:
        return None
    return fields.number(row.soft_cap[0], row.soft_cap[1] or 0.0)


def _logit_factor(fields, row, head_width, layer):
    factor = 1.0
    if row.logit_scale:
        factor = math.sqrt(head_width / fields.number(*row.logit_scale))
    if fields("scale_attn_weights", True) is False:
        factor *= math.sqrt(head_width)
    if fields("scale_attn_by_inverse_layer_idx", False):
        factor /= layer + 1
    return factor


def _window(fields, row, layer):
    """(window or None, 'sliding_attention' or 'full_attention') of a layer."""
    if row.window is None or (row.window_switch and not fields(*row.window_switch)) or fields(*row.window) is None:
        return None, "full_attention"
    kinds = fields("layer_types")
    if kinds is None:
        kind = "sliding_attention" if _slides(fields, row, layer) else "full_attention"
    elif len(kinds) > layer and kinds[layer] in ("sliding_attention", "full_attention"):
        kind = kinds[layer]
    else:
        raise fields.wrong("layer_types", "'sliding_attention' or 'full_attention' for each layer")
    return (fields.count(*row.window) if kind == "sliding_attention" else None), kind


def _slides(fields, row, layer):
    """Whether a layer has the window, where configurations do not list their layers."""
    if row.window_switch:
        return layer >= fields("max_window_layers", 28)
    if row.windows == "5:1":
        return (layer + 1) % fields.count("sliding_window_pattern", 6) != 0
    return row.windows == "all" or layer % 2 == 0


def _frequencies(fields, row, head_width, kind):
    """Of rotary positions; channels that are not turned have the frequency 0."""
    if row.rotary_base is None:
        return None
    given = fields("rope_parameters") or {}
    given = given.get(kind, given) if isinstance(given, dict) else {}
    base_field = row.sliding_base if row.sliding_base and kind == "sliding_attention" else row.rotary_base
    base = float(given.get("rope_theta") or fields.number(*base_field))
    share = given.get("partial_rotary_factor") or fields.number(*row.rotary_share)
    turned = int(head_width * share)
    if head_width % 2 or turned % 2:
        raise fields.wrong("head_dim", "an even number of channels to turn")
    frequencies = [base ** (-2 * i / turned) for i in range(turned // 2)]
    scaling = {} if row.sliding_base and kind == "sliding_attention" else (fields("rope_scaling") or given)
    scaled = _scaled_frequencies(fields, frequencies, scaling)
    return (*scaled, *[0.0] * ((head_width - turned) // 2))


def _scaled_frequencies(fields, frequencies, scaling):
    """As models for longer texts change them."""
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if kind == "default":
        return frequencies
    if kind == "linear":
        return [frequency / scaling["factor"] for frequency in frequencies]
    if kind == "llama3":
        return [_llama3(frequency, scaling) for frequency in frequencies]
    raise fields.wrong("rope_scaling" if fields("rope_scaling") else "rope_parameters",
                       "the type default, linear or llama3 of rotary positions")


def _llama3(frequency, scaling):
    """Slow frequencies are divided by the factor, fast ones stay, and those between are interpolated."""
    turns = scaling["original_max_position_embeddings"] * frequency / (2 * math.pi)
    low, high, factor = scaling["low_freq_factor"], scaling["high_freq_factor"], scaling["factor"]
    stays = min(1.0, max(0.0, (turns - low) / (high - low)))
    return frequency * (stays + (1 - stays) / factor)
