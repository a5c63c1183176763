"""Blocks of modules of PyTorch: their fresh weights have the variances that are read, and their activations those of the theory."""

import math

import numpy as np
import pytest

from widelimit import propagation

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

LIKE_LLAMA = dict(vocab_size=64, hidden_size=256, num_hidden_layers=3, num_attention_heads=16, intermediate_size=512,
                  initializer_range=0.07, pad_token_id=None, bos_token_id=None, eos_token_id=None)
CONFIGURATIONS = {
    "gpt2": lambda: transformers.GPT2Config(vocab_size=64, n_embd=256, n_layer=3, n_head=16, initializer_range=0.1,
                                            bos_token_id=None, eos_token_id=None),
    "llama": lambda: transformers.LlamaConfig(num_key_value_heads=16, **LIKE_LLAMA),
    "mistral": lambda: transformers.MistralConfig(num_key_value_heads=8, sliding_window=3, **LIKE_LLAMA),
    "qwen3": lambda: transformers.Qwen3Config(num_key_value_heads=16, head_dim=32, **LIKE_LLAMA),
    "gemma": lambda: transformers.GemmaConfig(num_key_value_heads=16, head_dim=16, **LIKE_LLAMA),
    "gemma2": lambda: transformers.Gemma2Config(num_key_value_heads=16, head_dim=16, query_pre_attn_scalar=16, sliding_window=3,
                                                **LIKE_LLAMA),
    "gpt_neox": lambda: transformers.GPTNeoXConfig(**LIKE_LLAMA),
    "vit": lambda: transformers.ViTConfig(hidden_size=256, num_hidden_layers=3, num_attention_heads=16, intermediate_size=512,
                                          image_size=8, patch_size=4, initializer_range=0.07),
    "bert": lambda: transformers.BertConfig(vocab_size=64, hidden_size=256, num_hidden_layers=3, num_attention_heads=16,
                                            intermediate_size=512, initializer_range=0.07),
}


def fresh(configuration, seed):
    torch.manual_seed(seed)
    return transformers.AutoModel.from_config(configuration, attn_implementation="eager").eval()


def batch_of(name, seed):
    drawn = torch.Generator().manual_seed(seed)
    if name == "vit":
        return {"pixel_values": torch.randn(1, 3, 8, 8, generator=drawn)}
    return {"input_ids": torch.randperm(64, generator=drawn)[None, :5]}


def weights_of(plan, depth, name, module):
    """(expected variance of a weight, tensors) of a module that has one block's weights."""
    attention, mlp, width = plan.attention, plan.mlp, plan.width
    inner = attention.heads * attention.head_width
    kinds = {"query": attention.query_variance / width, "q_proj": attention.query_variance / width,
             "key": attention.key_variance / width, "k_proj": attention.key_variance / width,
             "value": attention.value_variance / width, "v_proj": attention.value_variance / width,
             "c_attn": attention.query_variance / width, "query_key_value": attention.query_variance / width,
             "o_proj": attention.output_variance / inner, "attn.c_proj": attention.output_variance / inner,
             "attention.dense": attention.output_variance / inner, "attention.output.dense": attention.output_variance / inner,
             "gate_proj": mlp.in_variance / width, "up_proj": mlp.in_variance / width, "fc1": mlp.in_variance / width,
             "c_fc": mlp.in_variance / width, "dense_h_to_4h": mlp.in_variance / width, "intermediate.dense": mlp.in_variance / width,
             "down_proj": mlp.out_variance / mlp.hidden, "mlp.c_proj": mlp.out_variance / mlp.hidden,
             "fc2": mlp.out_variance / mlp.hidden, "dense_4h_to_h": mlp.out_variance / mlp.hidden,
             "output.dense": mlp.out_variance / mlp.hidden}
    matches = sorted((kind for kind in kinds if name.endswith(f"{kind}.weight")), key=len)
    return kinds[matches[-1]] if matches else None


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_fresh_weights_have_the_variances_that_are_read(name):
    configuration = CONFIGURATIONS[name]()
    model = fresh(configuration, 0)
    plan = propagation.block_from(configuration).plans[0]
    seen = 0
    for parameter_name, parameter in model.named_parameters():
        expected = weights_of(plan, 3, parameter_name, model) if parameter.ndim == 2 else None
        if expected is None or "emb" in parameter_name or "pooler" in parameter_name:
            continue
        seen += 1
        found = parameter.double().square().mean().item()
        assert abs(found / expected - 1) < 5 * math.sqrt(2 / parameter.numel()), parameter_name
    assert seen >= 3 * 4


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_activations_of_fresh_models_are_those_of_the_theory(name):
    configuration = CONFIGURATIONS[name]()
    block = propagation.block_from(configuration, samples=128)
    differences = []
    for seed in range(5):
        found = propagation.activations(fresh(configuration, seed), directions=2, **batch_of(name, seed))
        measured = propagation.measure(found.layers)
        theory = propagation.propagate(block, measured.start)
        differences.append([np.log(measured.q / theory.q), measured.cosine - theory.cosine, found.log_gradient - theory.log_gradient])
    differences = np.array(differences)
    means, errors = differences.mean(axis=0), differences.std(axis=0, ddof=1) / math.sqrt(5)
    # Heads of 16 channels and 16 heads are what is far from the limit: of relative order 1/16 and 1/heads.
    allowed = np.array([[0.06], [0.03], [0.12]])
    assert (np.abs(means) < 4 * errors + allowed).all(), (means, errors)
    # What the theory says differs from the start, so that the test can fail.
    assert abs(np.log(theory.q[-1] / theory.q[0])) > 0.1 or name == "bert"
    assert abs(theory.cosine[-1] - theory.cosine[0]) > 0.03


def test_first_norms_are_those_of_the_embeddings():
    for name in ("gpt2", "llama", "gemma", "gemma2", "gpt_neox", "bert"):
        configuration = CONFIGURATIONS[name]()
        block = propagation.block_from(configuration)
        runs = [propagation.activations(fresh(configuration, seed), gradients=False, **batch_of(name, seed)) for seed in range(4)]
        norms = [propagation.measure(run.layers).q[0] for run in runs]
        assert abs(np.mean(norms) / block.start_norm - 1) < 5 * math.sqrt(2 / (256 * 5 * 4)), name


def test_models_and_their_layers_are_read_like_their_configurations():
    for name in ("gpt2", "llama", "gemma2", "vit"):
        configuration = CONFIGURATIONS[name]()
        model, block = fresh(configuration, 0), propagation.block_from(configuration)
        assert propagation.block_from(model) == block
        layers = next(part for part in model.modules() if isinstance(part, torch.nn.ModuleList) and len(part) == 3)
        one = propagation.block_from(layers[1])
        assert one.depth == 3 and one.plans[0] == block.plans[1 if name == "gemma2" else 0]


@pytest.mark.parametrize("norm_first", [False, True])
def test_encoder_layers_of_pytorch_have_the_activations_of_the_theory(norm_first):
    drawn = torch.Generator().manual_seed(0)
    # A part that all tokens share makes their cosine a half.
    x = torch.randn(1, 6, 256, generator=drawn) + torch.randn(1, 1, 256, generator=drawn)
    differences = []
    for seed in range(6):
        torch.manual_seed(seed)
        # Layers that are made anew: nn.TransformerEncoder copies one, with its weights.
        stack = torch.nn.Sequential(*[torch.nn.TransformerEncoderLayer(
            256, 16, 512, activation="gelu", norm_first=norm_first, batch_first=True) for _ in range(3)]).eval()
        block = propagation.block_from(stack[0], depth=3)
        found = propagation.activations(stack, x, blocks=list(stack), directions=4)
        measured = propagation.measure(found.layers)
        theory = propagation.propagate(block, measured.start)
        differences.append([np.log(measured.q / theory.q), measured.cosine - theory.cosine, found.log_gradient - theory.log_gradient])
    means, errors = np.mean(differences, axis=0), np.std(differences, axis=0, ddof=1) / math.sqrt(6)
    assert (np.abs(means) < 4 * errors + 0.03).all(), (means, errors)
    assert block.plans[0].placement == ("pre" if norm_first else "post")
    encoder = torch.nn.TransformerEncoder(stack[0], 5)
    assert propagation.block_from(encoder).depth == 5
    assert propagation.block_from(encoder).plans[0] == block.plans[0]


def test_modules_that_are_no_blocks_are_refused_by_name():
    decoder = torch.nn.TransformerDecoderLayer(16, 4)
    with pytest.raises(ValueError, match="got an nn.TransformerDecoderLayer: its second attention reads another sequence"):
        propagation.block_from(decoder)
    with pytest.raises(ValueError, match="got a Linear, which has no configuration"):
        propagation.block_from(torch.nn.Linear(3, 3))
    strange = torch.nn.TransformerEncoderLayer(16, 4, activation=torch.sin)
    with pytest.raises(ValueError, match="activation: expected one of relu"):
        propagation.block_from(strange)


def test_three_lines_from_a_model_to_the_theory_beside_it():
    model = fresh(CONFIGURATIONS["llama"](), 0)
    seen = propagation.activations(model, torch.randint(64, (4, 6), generator=torch.Generator().manual_seed(1)), attention=True)
    found = propagation.report(propagation.block_from(model), beside=seen, sensitivities=False)
    columns = found.columns()
    assert {"q_measured", "cosine_measured", "ln_gradient_measured", "entropy_measured"} <= set(columns)
    assert len(seen.attention) == 3 and seen.attention[0].shape == (4, 16, 6, 6)
    # The theory starts from the mean of the sequences.
    assert columns["q"][0] == pytest.approx(columns["q_measured"][0], rel=1e-6)
    np.testing.assert_allclose(columns["entropy_measured"][:3], columns["entropy"][:3], rtol=0.1)
    assert "ln_gradient_measured" in str(found)


def test_blocks_that_are_not_found_or_not_called_are_errors():
    with pytest.raises(ValueError, match="blocks: expected them for a Linear"):
        propagation.activations(torch.nn.Linear(3, 3), torch.zeros(1, 2, 3))
    first, second = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
    with pytest.raises(ValueError, match="blocks: expected 2 blocks that are called once each, one after another, got 1 calls"):
        propagation.activations(torch.nn.Sequential(first), torch.zeros(1, 2, 3), blocks=[first, second])
    with pytest.raises(ValueError, match="attention: expected a model that gives its weights"):
        model = transformers.AutoModel.from_config(CONFIGURATIONS["llama"](), attn_implementation="sdpa").eval()
        propagation.activations(model, torch.arange(4)[None], attention=True)
