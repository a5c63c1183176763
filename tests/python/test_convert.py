"""widelimit.convert: rules, reports, parametrisations, layouts, and modules written to break it."""

import copy
import pickle
import re
import warnings

import numpy as np
import pytest
import widelimit
from widelimit import layers
from widelimit.convert import ConversionError

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
import torch.nn.functional as F  # noqa: E402
from pieces_of_torch import Of  # noqa: E402
from sampled_modules import empirical_ntk  # noqa: E402
from torch import nn  # noqa: E402


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(7)


def mlp(width=64, inputs=5, outputs=3):
    return nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, outputs))


def refused(module, x, message, **options):
    with pytest.raises(ConversionError, match=message):
        widelimit.from_torch(module, x, **options)


def kernels(module, x, **options):
    network = widelimit.from_torch(module, x, **options)
    return widelimit.gram(network, network.inputs(x).astype(float))


def test_three_lines_to_a_kernel():
    x = torch.randn(4, 5)
    network = widelimit.from_torch(mlp(), x)
    found = widelimit.gram(network, network.inputs(x))
    third = {"weight_variance": 1 / 3, "parametrisation": "standard"}
    expected = widelimit.Network([layers.dense(**third, bias_variance=1 / 15, input_width=5), layers.relu(),
                                  layers.dense(**third, bias_variance=1 / 192, input_width=64), layers.relu(),
                                  layers.dense(**third, bias_variance=1 / 192, input_width=64)])
    np.testing.assert_allclose(found.ntk, widelimit.gram(expected, x.numpy()).ntk, rtol=1e-6)


RULES = {
    "PyTorch's default": (lambda w: None, 1 / (3 * 96)), "Kaiming normal": (lambda w: nn.init.kaiming_normal_(w), 2 / 96),
    "Kaiming uniform": (lambda w: nn.init.kaiming_uniform_(w, nonlinearity="relu"), 2 / 96),
    "Xavier uniform": (lambda w: nn.init.xavier_uniform_(w), 2 / 160), "Xavier normal": (lambda w: nn.init.xavier_normal_(w), 2 / 160),
    "LeCun normal": (lambda w: nn.init.normal_(w, std=96**-0.5), 1 / 96),
    "standard deviation 0.02$": (lambda w: nn.init.normal_(w, std=0.02), 4e-4),
    "orthogonal": (lambda w: nn.init.orthogonal_(w), 1 / 96), "zeros": (lambda w: nn.init.zeros_(w), 0.0),
    "0.02 / sqrt.6., of 3": (lambda w: nn.init.normal_(w, std=0.02 / 6**0.5), 4e-4 / 6),
    "the constant 0.05": (lambda w: nn.init.constant_(w, 0.05), 0.0025),
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(4))
def test_rules(rule, seed):
    torch.manual_seed(seed)
    module = nn.Sequential(nn.Linear(5, 96), nn.ReLU(), nn.Linear(96, 64), nn.ReLU(), nn.Linear(64, 3))
    initialise, variance = RULES[rule]
    initialise(module[2].weight.data)
    network = widelimit.from_torch(module, torch.randn(3, 5))
    row = next(row for row in network.report.rows if row.parameter == "2.weight")
    assert row.variance.variance == pytest.approx(variance, rel=1e-5) and row.fan_in == 96
    assert re.search(rule, row.variance.rule), row.variance.rule


def test_trained_tensors_are_measured_with_a_warning_or_given():
    module = mlp()
    module[2].weight.data = torch.randn(64, 64) * 0.3137
    with pytest.warns(UserWarning, match=r"1 tensors follow no rule.*2\.weight; variances= says others"):
        network = widelimit.from_torch(module, torch.randn(3, 5))
    row = network.report.rows[2]
    assert row.variance.rule == "measured" and row.variance.variance == float((module[2].weight.detach().double() ** 2).mean())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        given = widelimit.from_torch(module, torch.randn(3, 5), variances={"2.weight": 0.1})
    assert given.report.rows[2].variance.variance == 0.1 and "given" in str(given.report)
    with pytest.raises(widelimit.ArgumentError, match=r"no parameter '3\.weight'; there are 0\.bias"):
        widelimit.from_torch(module, torch.randn(3, 5), variances={"3.weight": 0.1})


def test_the_report_says_what_became_of_every_tensor():
    text = str(widelimit.from_torch(mlp(), torch.randn(2, 5), parametrisation="mup", width_multiplier=4).report)
    assert "inputs [n, 5], channels last; parametrisation mup" in text
    assert "0.weight" in text and "learning rate times 4" in text and "learning rate times 0.25" in text


def test_ntk_parametrisation():
    x = torch.randn(3, 5)
    network = widelimit.from_torch(mlp(), x, parametrisation="ntk")
    expected = widelimit.Network([layers.dense(1 / 3, 1 / 15), layers.relu(), layers.dense(1 / 3, 1 / 192), layers.relu(),
                                  layers.dense(1 / 3, 1 / 192)])
    np.testing.assert_allclose(widelimit.gram(network, x.numpy()).ntk, widelimit.gram(expected, x.numpy()).ntk, rtol=1e-6)


def test_mup_is_the_ntk_with_its_learning_rates():
    """Sums over parameters of rate times products of gradients, at a width four times the base width, extrapolated in 1/width."""
    x, multiplier, ratios = torch.randn(3, 5, dtype=torch.double), 4, []

    def drawn(width):
        module = mlp(width).double()
        nn.init.normal_(module[4].weight, std=(width * multiplier) ** -0.5)
        nn.init.zeros_(module[4].bias)
        return module

    for width in (48, 96):
        limit = kernels(drawn(width), x, parametrisation="mup", width_multiplier=multiplier,
                        variances={"4.weight": 1 / (width * multiplier)}).ntk
        sample = []
        for _ in range(60):
            module, total = drawn(width), 0
            for name, rate in {"0.weight": 4, "0.bias": 4, "2.weight": 1, "2.bias": 4, "4.weight": 0.25, "4.bias": 1}.items():
                for other, parameter in module.named_parameters():
                    parameter.requires_grad_(other == name)
                total = total + rate * empirical_ntk(module, x)
            sample.append(total)
        ratios.append((np.mean(sample, 0) / limit, np.std(sample, 0) / limit / np.sqrt(60)))
    (low, low_error), (high, high_error) = ratios
    assert (np.abs(2 * high - low - 1) < 4 * np.sqrt(4 * high_error**2 + low_error**2)).all()


def test_tensors_that_are_not_trained_do_not_count():
    module, x = mlp().double(), torch.randn(3, 5, dtype=torch.double)
    for layer in (module[0], module[2]):
        layer.requires_grad_(False)
    module[4].bias.requires_grad_(False)
    found = kernels(module, x)
    np.testing.assert_allclose(found.ntk, 64 * 3 * (found.nngp - 1 / 192), rtol=1e-6)


def test_layouts():
    module = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 2))
    x = torch.randn(2, 3, 5, 4)
    network = widelimit.from_torch(module, x)
    assert network.inputs(x).shape == (2, 5, 4, 3) and network.report.shape == (5, 4) and network.report.channels == 3
    np.testing.assert_array_equal(network.inputs(x), x.permute(0, 2, 3, 1))
    assert widelimit.from_torch(nn.Linear(4, 2), torch.randn(2, 7, 4)).inputs(torch.randn(3, 7, 4)).shape == (3, 7, 4)
    with pytest.raises(widelimit.ArgumentError, match="layout: expected 'auto', 'first' or 'last', got 'NCHW'"):
        widelimit.from_torch(module, x, layout="NCHW")


def test_the_batch_may_stand_elsewhere():
    attention = nn.MultiheadAttention(16, 4)
    module = Of(lambda s, x: s.b(F.relu(s.a(s.e(x), s.e(x), s.e(x), need_weights=False)[0]).mean(0)), e=nn.Linear(4, 16), a=attention,
                b=nn.Linear(16, 2))
    refused(module, torch.randn(6, 3, 4), r"batch")
    network = widelimit.from_torch(module, torch.randn(6, 3, 4), batch_axis=1)
    assert network.inputs(torch.randn(6, 3, 4)).shape == (3, 6, 4)


def test_indices_as_one_hot_vectors():
    module = Of(lambda s, x: s.out(torch.tanh(s.hidden(s.words(x)).mean(1))), words=nn.Embedding(11, 64), hidden=nn.Linear(64, 64),
                out=nn.Linear(64, 2))
    x = torch.randint(0, 11, (3, 5))
    network = widelimit.from_torch(module, x, one_hot=True)
    assert network.inputs(x).shape == (3, 5, 11)
    same = np.array([[len(set(a.tolist()) & set(b.tolist())) for a in x] for b in x])
    assert widelimit.gram(network, network.inputs(x)).nngp[0, 1] >= 0 or same[0, 1] == 0
    dense = Of(lambda s, x: s.out(torch.tanh(s.hidden(s.words(x)).mean(1))), words=nn.Linear(11, 64, bias=False), hidden=module.hidden,
               out=module.out)
    dense.words.weight.data = module.words.weight.data.T
    expected = widelimit.from_torch(dense, F.one_hot(x, 11).float(), variances={"words.weight": 1.0})
    np.testing.assert_allclose(widelimit.gram(network, network.inputs(x)).ntk, widelimit.gram(expected, network.inputs(x)).ntk, rtol=1e-5)


def test_dropout_counts_in_training_only():
    module, x = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Dropout(0.25), nn.Linear(32, 2)), torch.randn(3, 5)
    assert [layer for layer in str(widelimit.from_torch(module, x)).split() if layer == "dropout"] == ["dropout"]
    assert "keep=0.75" in str(widelimit.from_torch(module, x)) and "dropout" not in str(widelimit.from_torch(module.eval(), x))


def test_the_same_values_however_they_are_written():
    """In-place operations, views, functional calls, lambdas, control flow, einsum, buffers, double precision, batches of one."""
    a, b, c = nn.Linear(5, 32), nn.Linear(32, 32), nn.Linear(32, 2)
    plain = nn.Sequential(a, nn.ReLU(), b, nn.ReLU(), c)

    def in_place(s, x):
        y = s.a(x)
        y.relu_()
        y = s.b(y)
        y.clamp_(min=0)
        return s.c(y)

    def branching(s, x):
        for layer in (s.a, s.b):
            x = layer(x)
            if x.shape[-1] == 32 and not s.training:
                x = x * (x > 0)
        return s.c(x)

    def by_hand(s, x):
        y = torch.einsum("bi,oi->bo", x, s.a.weight) + s.a.bias
        y = torch.where(y > 0, y, torch.zeros_like(y))
        return F.linear(F.relu(F.linear(y, s.b.weight, s.b.bias)).view(-1, 4, 8).flatten(1), s.c.weight, s.c.bias)

    def buffered(s, x):
        return s.c(F.relu(s.b(torch.relu(s.a((x - s.zero) * s.one)))))

    x = torch.randn(3, 5)
    expected = kernels(plain, x)
    for module in (Of(in_place, a=a, b=b, c=c), Of(branching, a=a, b=b, c=c).eval(), Of(by_hand, a=a, b=b, c=c),
                   nn.Sequential(nn.Sequential(
            a, nn.Sequential(nn.ReLU(), b)), nn.Sequential(nn.ReLU()), c),
                   Of(buffered, a=a, b=b, c=c, zero=torch.zeros(5), one=torch.ones(1))):
        np.testing.assert_allclose(kernels(module, x).ntk, expected.ntk, rtol=1e-6)
    np.testing.assert_allclose(kernels(copy.deepcopy(plain).double(), x.double()).ntk, expected.ntk, rtol=1e-6)
    one = widelimit.from_torch(plain, x[:1])
    np.testing.assert_allclose(widelimit.gram(one, x.numpy().astype(float)).ntk, expected.ntk, rtol=1e-6)


def test_modules_stay_as_they_are():
    module, x = nn.Sequential(nn.Linear(5, 16), nn.BatchNorm1d(16).eval(), nn.ReLU(), nn.Dropout(), nn.Linear(16, 2)), torch.randn(3, 5)
    before, state = copy.deepcopy(module.state_dict()), torch.get_rng_state()
    widelimit.from_torch(module, x)
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state) and module.training and not module[0]._forward_hooks


def test_networks_are_files_and_pickles(tmp_path):
    network = widelimit.from_torch(mlp(), torch.randn(2, 5))
    network.write(str(tmp_path / "network.json"))
    x = np.random.default_rng(0).normal(size=(3, 5))
    expected = widelimit.gram(network, x).ntk
    np.testing.assert_array_equal(widelimit.gram(widelimit.Network.read(str(tmp_path / "network.json")), x).ntk, expected)
    np.testing.assert_array_equal(widelimit.gram(pickle.loads(pickle.dumps(network)), x).ntk, expected)
    gelu = widelimit.from_torch(nn.Sequential(nn.Linear(5, 8), nn.GELU("tanh"), nn.Linear(8, 2)), torch.randn(2, 5))
    gelu.write(str(tmp_path / "gelu.json"))
    widelimit.Network.read(str(tmp_path / "gelu.json"), ["widelimit.convert.functions"])


HOSTILE = {
    "softmax over channels": (lambda s, x: s.b(torch.softmax(s.a(x), -1)), r"module: softmax over channels couples"),
    "changed view": (lambda s, x: s.b(s.change(s.a(x))), r"changed in place"),
    "max": (lambda s, x: s.b(s.a(x).max(-1, keepdim=True)[0] * s.a(x)), r"a maximum"),
    "topk": (lambda s, x: s.b(s.a(x).gather(-1, s.a(x).topk(16)[1])), r"aten::(topk|gather)"),
    "norm of a vector": (lambda s, x: s.b(F.normalize(s.a(x))), r"grows"),
    "batch mean": (lambda s, x: s.b(s.a(x) - s.a(x).mean(0)), r"depends? on all inputs"),
    "two uses": (lambda s, x: s.b(F.relu(s.c(F.relu(s.c(s.a(x)))))), r"c\.weight is used at two places"),
    "nonlinearity twice": (lambda s, x: s.b(F.relu(F.dropout(torch.tanh(s.a(x)), 0.5))), r"needs Gaussian channels"),
    "inputs first": (lambda s, x: s.b(s.a(torch.relu(x))), r"the inputs themselves"),
    "no input": (lambda s, x: s.b(torch.ones(3, 16)), r"no tensor of its output depends on the input"),
    "logarithm": (lambda s, x: s.b(torch.log(s.a(x))), r"not finite everywhere"),
    "a constant": (lambda s, x: s.b(s.a(x)) * 0 + 1, r"same for all inputs|nothing"),
    "rounded": (lambda s, x: s.b(s.a(x).round()), r"aten::round has no limit"),
    "sorted": (lambda s, x: s.b(s.a(x).sort(-1)[0]), r"aten::sort has no limit"),
    "cumulative": (lambda s, x: s.b(s.a(x).cumsum(-1)), r"aten::cumsum has no limit"),
    "pairs": (lambda s, x: s.b(torch.relu(s.a(x)[:, None] * s.a(x)[:, :, None])).mean(1), r"module"),
    "outer product": (lambda s, x: s.b(s.a(x)[:, :, None] @ s.a(x)[:, None, :]).mean(1), r"module"),
}


def _change(y):
    part = y[:, :8]
    part += 1
    return y


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_modules_are_refused_by_name(name):
    forward, message = HOSTILE[name]
    module = Of(forward, a=nn.Linear(5, 16), b=nn.Linear(16, 2), c=nn.Linear(16, 16), change=_change)
    refused(module.train(), torch.randn(3, 5), message)


def test_wrong_arguments():
    with pytest.raises(widelimit.ArgumentError, match="parametrisation: expected one of standard, ntk, mup, got 'muP'"):
        widelimit.from_torch(mlp(), torch.randn(2, 5), parametrisation="muP")
    with pytest.raises(widelimit.ArgumentError, match="width_multiplier: expected a positive number"):
        widelimit.from_torch(mlp(), torch.randn(2, 5), parametrisation="mup", width_multiplier=0)
    with pytest.raises(TypeError, match="unexpected argument 'width'; there are parametrisation"):
        widelimit.from_onnx("model.onnx", width=3)
    with pytest.raises(ConversionError, match=r"model\.onnx: there is no such file"):
        widelimit.from_onnx("model.onnx")


def test_untied_parameters_are_drawn_independently():
    module = Of(lambda s, x: s.b(F.relu(s.c(F.relu(s.c(s.a(x)))))), a=nn.Linear(5, 64), b=nn.Linear(64, 2), c=nn.Linear(64, 64))
    x = torch.randn(3, 5)
    apart = nn.Sequential(module.a, module.c, nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), module.b)
    np.testing.assert_allclose(kernels(module, x, untie=True).nngp, kernels(apart, x).nngp, rtol=1e-6)


def test_scaled_residual_branches_and_fixed_parameters():
    table = torch.linspace(-1, 1, 5 * 64).reshape(5, 64)
    module = Of(lambda s, x: s.out(F.relu(s.mix(s.a(x) + s.table)).mean(1)), a=nn.Linear(4, 64), mix=nn.Linear(64, 64),
                out=nn.Linear(64, 2),
                table=nn.Parameter(table.clone()))
    buffered = Of(module._forward, a=module.a, mix=module.mix, out=module.out, table=table)
    x = torch.randn(3, 5, 4)
    np.testing.assert_allclose(kernels(module, x, fixed=["table"]).nngp, kernels(buffered, x).nngp, rtol=1e-6)


SEQUENCES = {
    "pairs of positions": (lambda s, x: s.b(torch.relu(s.a(x)[:, :, None] + s.a(x)[:, None])).mean((1, 2)), r"pairs of positions"),
    "windows": (lambda s, x: s.b(s.windows(s.a(x))).mean(1), r"within groups of positions"),
    "class attention": (lambda s, x: s.b(s.mha(s.a(x)[:, :1], s.a(x), s.a(x))[0][:, 0]),
                        r"different values of the network \(cross attention\)"),
    "normalised queries": (lambda s, x: s.b(s.normed(s.a(x))).mean(1), r"queries and keys are normalised"),
    "soft cap": (lambda s, x: s.b(s.capped(s.a(x))).mean(1), r"soft cap"),
    "slopes": (lambda s, x: s.b(s.sloped(s.a(x))).mean(1), r"numbers are added to logits"),
    "linear attention": (lambda s, x: s.b(s.a(x) @ (s.a(x).transpose(1, 2) @ s.a(x))).mean(1), r"module"),
    "without outputs": (lambda s, x: torch.softmax(s.a(x) @ s.c(x).transpose(1, 2), -1) @ s.a(x), r"without weights for its outputs"),
    "noise in weights": (lambda s, x: s.b(F.dropout(torch.softmax(s.a(x) @ s.c(x).transpose(1, 2), -1), 0.1) @ s.a(x)).mean(1),
                         r"dropped at random"),
    "instance norm": (lambda s, x: s.b(torch.relu(F.instance_norm(s.a(x).transpose(1, 2)).transpose(1, 2))).mean(1), r"module"),
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences_without_a_limit_say_why(name):
    forward, message = SEQUENCES[name]

    def heads(layer, x, *shape):
        return layer(x).view(len(x), *shape, 8).transpose(-3, -2)

    def attend(s, y, change_queries=lambda q: q, change_logits=lambda logits: logits, shape=(4, 2)):
        q, k, v = (heads(layer, y, *shape) for layer in (s.q, s.k, s.v))
        logits = change_logits(change_queries(q) @ change_queries(k).transpose(-1, -2) / 8**0.5)
        return s.o((torch.softmax(logits, -1) @ v).transpose(-3, -2).reshape(y.shape))

    inner = {name: nn.Linear(16, 16) for name in "qkvo"}
    slopes = -torch.tensor([0.5, 0.25])[:, None, None] * (torch.arange(4)[:, None] - torch.arange(4)).abs()
    module = Of(forward, a=nn.Linear(5, 16), b=nn.Linear(16, 2), c=nn.Linear(5, 16), mha=nn.MultiheadAttention(16, 2, batch_first=True),
                windows=Of(lambda s, y: attend(s, y, shape=(2, 2, 2)), **inner),
                normed=Of(lambda s, y: attend(s, y, lambda q: F.rms_norm(q, (8,))), **inner),
                capped=Of(lambda s, y: attend(s, y, change_logits=lambda logits: 5 * torch.tanh(logits / 5)), **inner),
                sloped=Of(lambda s, y: attend(s, y, change_logits=lambda logits: logits + slopes), **inner))
    refused(module, torch.randn(3, 4, 5), message)


def test_few_biases_follow_the_rule_of_their_weights():
    from widelimit.convert._rules import measured

    weights = "PyTorch's default, uniform of variance 1 / (3 fan_in)"
    for seed in range(500):
        biases = np.random.default_rng(seed).uniform(-1, 1, 8) / 24**0.5
        assert measured(biases, 24, (8,), True, beside=weights).rule == "PyTorch's default, uniform 1 / (3 fan_in)", seed


def test_conditions_on_values_and_what_is_no_module_are_refused():
    conditional = Of(lambda s, x: s.a(x).relu() if s.a(x).sum() > 0 else s.a(x), a=nn.Linear(4, 8))
    with pytest.raises(ConversionError, match="a number is read of values that depend on the input"):
        widelimit.from_torch(conditional, torch.randn(3, 4))
    with pytest.raises(ConversionError, match="module: expected a torch.nn.Module, got 3"):
        widelimit.from_torch(3, torch.randn(3, 4))
