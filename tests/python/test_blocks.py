"""Blocks of transformers from their configurations: what is read, what is refused, and what the theory says of them."""

import copy
import json
import math

import numpy as np
import pytest

import widelimit
from widelimit import layers, propagation

GPT2 = {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_inner": None, "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5, "initializer_range": 0.02, "vocab_size": 50257, "resid_pdrop": 0.1}
LLAMA = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2,
         "intermediate_size": 160, "hidden_act": "silu", "initializer_range": 0.1, "rms_norm_eps": 1e-6, "rope_theta": 500.0}
GEMMA2 = {"model_type": "gemma2", "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
          "head_dim": 32, "intermediate_size": 96, "query_pre_attn_scalar": 64, "sliding_window": 8, "attn_logit_softcapping": 30.0}
VIT = {"model_type": "vit", "hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 96,
       "hidden_act": "gelu", "layer_norm_eps": 1e-12, "initializer_range": 0.05, "patch_size": 4, "num_channels": 3}


def changed(configuration, **fields):
    return {**copy.deepcopy(configuration), **fields}


def test_gpt2_has_the_variances_of_its_initialisation():
    block = propagation.block_from(GPT2)
    plan = block.plans[0]
    assert (block.name, block.depth, block.is_repeated) == ("gpt2", 12, True)
    assert (plan.norm, plan.placement, plan.parallel, plan.epsilon) == ("layer_norm", "pre", False, 1e-5)
    assert plan.attention.query_key_std == pytest.approx(0.0004 * 768)
    # The last weights of both branches have a variance of .0004 / (2 * 12).
    assert plan.attention.output_variance == pytest.approx(0.0004 * 768 / 24)
    assert (plan.mlp.hidden, plan.mlp.gated) == (3072, False)
    assert plan.mlp.out_variance == pytest.approx(0.0004 * 3072 / 24)
    # Embeddings of tokens and positions.
    assert block.start_norm == pytest.approx(0.0008)


def test_the_network_is_the_one_that_is_written_by_hand():
    block = propagation.block_from(LLAMA, samples=64)
    frequencies = [500 ** (-i / 4) for i in range(4)]
    attention = layers.attention("inverse_sqrt_width", query_key_std=0.01 * 64, output_value_variance=0.64 ** 2, causal=True,
                                 rotary={"frequencies": frequencies}, samples=64)
    mlp = [layers.product([layers.dense(0.64), layers.silu()], [layers.dense(0.64)]), layers.dense(0.01 * 160)]
    norm = layers.rms_norm(epsilon=1e-6)
    ours = widelimit.Network([layers.sum([], [norm, attention]), layers.sum([], [norm, *mlp])])
    given, expected = (json.loads(network.to_json(), parse_float=lambda text: round(float(text), 12)) for network in (block.network, ours))
    assert given == expected
    gram = propagation.start_gram(5, 1, 0.3)
    np.testing.assert_allclose(propagation.propagate(block, gram, 1).grams, propagation.propagate(ours, gram, 1).grams, rtol=1e-12)


def test_a_configuration_may_be_a_dict_an_object_a_file_or_a_folder(tmp_path):
    class Configuration:
        model_type = "llama"

        def to_dict(self):
            return dict(LLAMA)

    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    expected = propagation.block_from(LLAMA)
    for source in (Configuration(), tmp_path, str(tmp_path / "config.json")):
        assert propagation.block_from(source) == expected
    nested = {"model_type": "anything", "text_config": LLAMA, "vision_config": {}}
    assert propagation.block_from(nested) == expected


def test_windows_caps_and_scales_of_gemma():
    block = propagation.block_from(GEMMA2)
    assert not block.is_repeated and block.start_norm == pytest.approx(0.0004 * 64)
    assert [plan.attention.window for plan in block.plans] == [8, None, 8, None]
    attention = block.plans[0].attention
    assert attention.soft_cap == 30
    assert attention.query_key_std == pytest.approx(0.0004 * 64 * math.sqrt(32 / 64))
    assert block.plans[0].placement == "both"
    with pytest.raises(ValueError, match="network: expected blocks that are alike, got 2 kinds in 4 blocks"):
        block.network
    assert block.layer(1).is_repeated and len(block.networks) == 4


def test_layers_of_gemma3_alternate_in_window_and_rotary_base():
    given = changed(GEMMA2, model_type="gemma3_text", num_hidden_layers=7, rope_theta=1e6, rope_local_base_freq=100.0,
                    attn_logit_softcapping=None)
    attentions = [plan.attention for plan in propagation.block_from(given).plans]
    assert [attention.window for attention in attentions] == [8, 8, 8, 8, 8, None, 8]
    assert attentions[0].frequencies[1] == pytest.approx(100 ** (-1 / 16))
    assert attentions[5].frequencies[1] == pytest.approx(1e6 ** (-1 / 16))
    assert attentions[0].normalised and attentions[0].soft_cap is None
    # Norms of queries and keys take the scale of their weights out.
    assert attentions[0].query_key_std == pytest.approx(math.sqrt(32 / 64))


def test_rotary_positions_as_models_for_longer_texts_change_them():
    def frequencies(**fields):
        return np.array(propagation.block_from(changed(LLAMA, **fields)).plans[0].attention.frequencies)

    plain = frequencies()
    np.testing.assert_allclose(frequencies(rope_scaling={"type": "linear", "factor": 4.0}), plain / 4)
    scaling = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 64}
    scaled = frequencies(rope_scaling=scaling)
    turns = 64 * plain / (2 * math.pi)
    assert scaled[0] == plain[0] and turns[0] > 4
    slow = turns < 1
    np.testing.assert_allclose(scaled[slow], plain[slow] / 8)
    assert slow.any() and ((scaled <= plain) & (scaled >= plain / 8)).all()
    half = frequencies(partial_rotary_factor=0.5)
    assert (half[2:] == 0).all() and half[1] == pytest.approx(500 ** -0.5)
    given = {"rope_theta": 500.0, "rope_type": "linear", "factor": 4.0}
    np.testing.assert_allclose(frequencies(rope_parameters=given, rope_theta=1e4), plain / 4)


@pytest.mark.parametrize("fields, message", [
    ({"model_type": "rwkv"}, "model_type: expected one of gpt2, llama"),
    ({"model_type": None}, "model_type: expected one of gpt2, llama.*got None"),
    ({"hidden_act": "relu6"}, "configuration: hidden_act: expected one of relu, gelu.*got 'relu6'"),
    ({"num_local_experts": 8}, "num_local_experts: expected a block without experts, got 8: a mixture of experts sends each token"),
    ({"add_cross_attention": True}, "add_cross_attention: expected False, got True, which makes another block than that of llama"),
    ({"residual_multiplier": 0.2}, "residual_multiplier: expected 1.0, got 0.2"),
    ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, "rope_scaling: expected the type default, linear or llama3"),
    ({"hidden_size": None}, "hidden_size: expected a positive integer, got None"),
    ({"num_hidden_layers": 2.5}, "num_hidden_layers: expected a positive integer, got 2.5"),
    ({"num_attention_heads": 7}, "num_attention_heads|num_key_value_heads"),
    ({"num_key_value_heads": 3}, "num_key_value_heads: expected a divisor of the 8 heads, got 3"),
    ({"initializer_range": -0.1}, "initializer_range: expected a number of at least 0, got -0.1"),
    ({"initializer_range": "small"}, "initializer_range: expected a number of at least 0, got 'small'"),
])
def test_what_is_not_known_is_refused_by_name(fields, message):
    with pytest.raises(ValueError, match=message):
        propagation.block_from(changed(LLAMA, **fields))


def test_soft_caps_that_matter_are_refused():
    given = changed(GEMMA2, initializer_range=0.5)
    with pytest.raises(ValueError, match="attn_logit_softcapping: expected a soft cap of logits that changes them by less than 1% at 4 "
                                         "standard deviations of 11.3, because the layers have none, got 30.0"):
        propagation.block_from(given)
    assert "soft cap 30 left out, 0.00% of logits" in str(propagation.block_from(GEMMA2))
    assert propagation.block_from(changed(given, attn_logit_softcapping=None)).plans[0].attention.cap_change == 0


def test_fields_that_are_missing_and_files_that_are_none_are_named(tmp_path):
    given = changed(LLAMA)
    del given["intermediate_size"]
    with pytest.raises(ValueError, match="intermediate_size: expected a positive integer, it is missing"):
        propagation.block_from(given)
    with pytest.raises(FileNotFoundError, match="nowhere.json: expected the config.json of a model"):
        propagation.block_from(tmp_path / "nowhere.json")
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ValueError, match="config.json: expected JSON"):
        propagation.block_from(tmp_path)
    (tmp_path / "config.json").write_text("[1]")
    with pytest.raises(ValueError, match="expected an object of JSON, got list"):
        propagation.block_from(tmp_path)
    for source in (3, None, object()):
        with pytest.raises(TypeError, match="source: expected a configuration"):
            propagation.block_from(source)
    with pytest.raises(ValueError, match="is_decoder: expected False, got True"):
        propagation.block_from(changed(VIT, model_type="bert", is_decoder=True))


def test_scales_multiply_what_they_say():
    block = propagation.block_from(VIT)
    more = block.scaled(query_key=2, value_output=2, mlp_in=2, mlp_out=2, attention_branch=3, mlp_branch=5, skip=7)
    before, after = (json.loads(one.network.to_json())["layers"] for one in (block, more))
    assert [branch.get("scale", 1) for branch in after[0]["branches"]] == [7, 3]
    assert [branch.get("scale", 1) for branch in after[1]["branches"]] == [7, 5]
    attention = [one[0]["branches"][1]["layers"][1] for one in (before, after)]
    assert attention[1]["query_key_std"] == pytest.approx(4 * attention[0]["query_key_std"])
    assert attention[1]["output_value_variance"] == pytest.approx(16 * attention[0]["output_value_variance"])
    assert block.scaled(skip=2).scaled(skip=3).plans[0].factor("skip") == 6
    with pytest.raises(TypeError, match="scaled: expected factors of query_key, .* got 'values'"):
        block.scaled(values=2)
    with pytest.raises(ValueError, match="skip: expected a factor of at least 0, got -1"):
        block.scaled(skip=-1)


def test_blocks_of_a_list_are_those_of_a_repetition():
    block = propagation.block_from(VIT)
    gram = propagation.start_gram(6, block.start_norm, 0.2)
    repeated, listed = propagation.propagate(block, gram), propagation.propagate(block.networks, gram)
    assert len(repeated.q) == 4
    np.testing.assert_array_equal(repeated.grams, listed.grams)
    np.testing.assert_array_equal(repeated.log_gradient, listed.log_gradient)
    assert len(propagation.propagate(block, gram, 5).q) == 6
    one = propagation.block_exponents(block, 6, start_norm=1)
    assert one == propagation.block_exponents(block.networks, 6, start_norm=1)
    with pytest.raises(ValueError, match="depth: expected that of the list of blocks, 3, or none, got 5"):
        propagation.propagate(block.networks, gram, 5)
    with pytest.raises(TypeError, match="block: expected a Network, a list of Networks or a Block, got 'vit'"):
        propagation.propagate("vit", gram)


def test_entropies_of_nearly_uniform_attention_follow_from_the_variance_of_logits():
    gram = propagation.start_gram(6, 1, 0.25)
    block = propagation.block_from(VIT)
    for factor in (0.2, 0.4):
        plan = block.scaled(query_key=factor).plans[0]
        std = factor ** 2 * plan.attention.query_key_std
        found = propagation.attention_entropy([plan], gram[None], draws=4000)
        # To second order the entropy is ln n minus half the variance of a row's logits.
        expected = math.log(6) - std ** 2 * (1 - 0.25) * (5 / 6) / 2
        assert abs(found.entropy[0] - expected) < 4 * found.error[0] + std ** 4
        assert found.uniform[0] == pytest.approx(math.log(6))
    causal = propagation.attention_entropy(propagation.block_from(GPT2).scaled(query_key=0).plans[:1], gram[None])
    assert causal.entropy[0] == pytest.approx(np.mean(np.log(np.arange(1, 7))), rel=1e-12)
    window = propagation.block_from(GEMMA2).scaled(query_key=0).plans[:1]
    grams = propagation.start_gram(20, 1, 0.25)[None]
    assert propagation.attention_entropy(window, grams).uniform[0] == pytest.approx(
        np.mean(np.log(np.minimum(np.arange(1, 21), 8))))


def test_a_report_says_what_the_functions_say():
    block = propagation.block_from(VIT)
    found = propagation.report(block, tokens=6, cosine=0.1)
    theory = propagation.propagate(block, propagation.start_gram(6, block.start_norm, 0.1))
    np.testing.assert_array_equal(found.tokens.q, theory.q)
    assert found.exponents == propagation.block_exponents(block, 6, start_norm=block.start_norm)
    columns = found.columns()
    assert set(columns) == {"q", "cosine", "ln_gradient", "entropy", "uniform"}
    assert all(len(values) == 4 for values in columns.values()) and math.isnan(columns["entropy"][-1])
    assert [one.scale for one in found.sensitivities] == ["query_key", "value_output", "mlp_in", "mlp_out", "attention_branch",
                                                        "mlp_branch", "skip"]
    # Scales of the weights of one linear branch and of the branch itself are the same but for their powers.
    values, branch = (next(one for one in found.sensitivities if one.scale == name) for name in ("value_output", "attention_branch"))
    assert values.lambda_g == pytest.approx(2 * branch.lambda_g, rel=0.02)
    text = str(found)
    for part in ("vit: 3 blocks of width 48", "block", "a block: ", "tokens stay apart", "stay alive", "mlp_branch"):
        assert part in text


def test_a_report_counts_the_blocks_for_which_tokens_stay_apart_and_gradients_alive():
    block = propagation.block_from(VIT, depth=12).scaled(value_output=2)
    found = propagation.report(block, tokens=6, cosine=0.1, apart=0.3, alive=1.3, sensitivities=False)
    gaps, gradients = 1 - found.tokens.cosine, np.abs(found.tokens.log_gradient - np.log(found.tokens.q / found.tokens.q[0]))
    assert 0 < found.tokens_apart < 12 and 0 < found.gradients_alive < 12
    assert gaps[found.tokens_apart] >= 0.3 > gaps[found.tokens_apart + 1]
    assert gradients[found.gradients_alive] <= math.log(1.3) < gradients[found.gradients_alive + 1]
    assert found.sensitivities == ()
    with pytest.raises(TypeError, match="block: expected a Block of block_from"):
        propagation.report(block.network)


def test_exponents_vanish_at_critical_factors():
    block = propagation.block_from(VIT).scaled(skip=0.8)
    for which in ("angle", "gradient", "relative gradient"):
        factors = propagation.critical_factors(which, "mlp_in", block, tokens=5)
        assert len(factors) == 1
        for factor in factors:
            found = propagation.block_exponents(block.scaled(mlp_in=factor), 5, start_norm=None)
            value = {"angle": found.lambda_a_log.value, "gradient": found.lambda_g.value,
                     "relative gradient": found.lambda_g.value - found.norm_growth.value}[which]
            assert abs(value) < 1e-7
    # Without a fixed point of the norm, gradients of relative changes are others than gradients.
    grows = propagation.block_from(VIT)
    assert len(propagation.critical_factors("gradient", "skip", grows, tokens=5, low=0.5, high=2)) == 1
    assert propagation.critical_factors("gradient", "mlp_in", grows, tokens=5).size == 0
    with pytest.raises(ValueError, match="which: expected one of angle, gradient, relative gradient, got 'norm'"):
        propagation.critical_factors("norm", "skip", block)
    with pytest.raises(ValueError, match="low, high: expected a range of positive factors, got 2.0 and 1.0"):
        propagation.critical_factors("angle", "skip", block, low=2, high=1)
    with pytest.raises(TypeError, match="block: expected a Block"):
        propagation.critical_factors("angle", "skip", block.network)


def test_a_report_has_a_picture(tmp_path):
    pytest.importorskip("matplotlib")
    found = propagation.report(propagation.block_from(VIT), tokens=4, sensitivities=False)
    figure = found.plot(tmp_path / "report.png")
    assert (tmp_path / "report.png").read_bytes()[:4] == b"\x89PNG"
    assert [axes.get_title() for axes in figure.axes] == ["squared norm / width", "1 - cosine", "ln squared gradient",
                                                         "entropy of attention (nats)"]


def test_activations_of_blocks_in_jax_are_those_of_their_functions():
    pytest.importorskip("jax")
    weights = np.random.default_rng(0).standard_normal((2, 5, 5)) / np.sqrt(5)
    blocks = [lambda x, w=w: x @ w for w in weights]
    x = np.random.default_rng(1).standard_normal((2000, 3, 5))
    found = propagation.activations(blocks, x)
    np.testing.assert_allclose(found.layers[2], x @ weights[0] @ weights[1], rtol=1e-3, atol=1e-5)
    for depth, product in enumerate((np.eye(5), weights[0], weights[0] @ weights[1])):
        exact = math.log(np.square(product).sum() / 5)
        assert abs(found.log_gradient[depth] - exact) < 4 * found.log_gradient_error[depth]
    plain = propagation.activations(blocks, x, gradients=False)
    assert plain.log_gradient is None and propagation.measure(plain.layers).q.shape == (3,)
    with pytest.raises(ValueError, match=r"blocks\[1\]: expected tokens of shape \(2000, 3, 5\), as came"):
        propagation.activations([blocks[0], lambda x: x[:, :2]], x)
    with pytest.raises(TypeError, match="model: expected a module of PyTorch, or a list of functions of JAX, got 3"):
        propagation.activations(3, x)
