"""Examples of the reference of the Python package: for every name a line or a few that run behind PRELUDE
(tests/python/test_reference.py runs them)."""

import json

from widelimit import _core

PRELUDE = """\
import tempfile

import numpy as np
import widelimit
from widelimit import heads, layers, predict, propagation, sde, stax, transfer

random = np.random.default_rng(0)
x, test = random.normal(size=(20, 3)), random.normal(size=(4, 3))
y = np.sin(x[:, :1])
images = random.normal(size=(6, 5, 5, 2))
network = widelimit.Network([layers.dense(2, 0.1), layers.relu(), layers.dense()])
"""

_STAX = "init_fn, apply_fn, kernel_fn = stax.serial(stax.Dense(64), stax.Relu(), stax.Dense(1))\n"
_PARAMS = _STAX + "params = init_fn(0, x.shape)[1]\n"
_GPT2 = "block = propagation.block_from({'model_type': 'gpt2', 'n_embd': 768, 'n_layer': 2, 'n_head': 12})\n"
_TRANSFORMER = "parameters = propagation.Parameters(tokens=8, sigma_w=2, alpha_A=0.4, alpha_M=0.3)\n"
_HEADS = "prior = heads.Prior.flip2(10, 10)\n"
_FLOW = _HEADS + "(found,) = heads.flow('softmax', prior, tokens=3, heads=2, tau=5, samples=500, fresh_samples=500)\n"
_DIGITS = "task = heads.ImageTask(random.integers(0, 256, (20, 28, 28)), np.arange(20) % 3, 0.2)\n"
_SDE = "model, v0 = sde.transformer(gamma_squared=0.25), sde.start(tokens=2, rho0=0.2)\n"
_NETWORK = "shaped, v0 = sde.Network('shaped_transformer', 16, 0.25), sde.start(tokens=2, rho0=0.2)\n"
_MODULE = ("import torch\nmodule = torch.nn.Sequential(torch.nn.Linear(3, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))\n"
           "a = torch.tensor(x, dtype=torch.float32)\n")
_FILE = ("import onnx\nfrom onnx import helper, numpy_helper\nw = numpy_helper.from_array((random.normal(size=(3, 64)) / 3**0.5), 'w')\n"
         "file = helper.make_model(helper.make_graph([helper.make_node('MatMul', ['x', 'w'], ['y'])], 'a graph',\n"
         "    [helper.make_tensor_value_info('x', onnx.TensorProto.DOUBLE, ['n', 3])],\n"
         "    [helper.make_tensor_value_info('y', onnx.TensorProto.DOUBLE, None)], [w]))\n")
_MLP = "model = sde.mlp(0, -1)\n"
_FITTED = "model = widelimit.Model.fit(network, x, y)\n"
_KERNELS = "gram = widelimit.gram(network, x).nngp\ncross = widelimit.gram(network, test, x).nngp\n"
_CLASSES = "means, variances, labels = random.normal(size=(50, 3)), np.ones(50), random.integers(3, size=50)\n"
_RELU_BETWEEN = "stax.serial(stax.Dense(64), {}, stax.Dense(1))[2](x, None, 'ntk')"
_CONV = "stax.serial(stax.Conv(8, (3, 3), padding='SAME'), stax.Relu(), {}, stax.Flatten())[2](images, None, 'nngp')"
_BRANCHES = "stax.serial(stax.Dense(8), stax.FanOut(2), stax.parallel(stax.Dense(8), stax.Dense(8)), {})[2](x, None, 'ntk')"


def _between(argument):
    return f"widelimit.gram(widelimit.Network([layers.dense(), {argument}, layers.dense()]), x).ntk"


def _of_images(argument):
    return (f"widelimit.gram(widelimit.Network([layers.conv([3, 3]), layers.relu(), {argument}, layers.flatten()]), "
            "images).nngp")


# The library's table of kinds has an example of each.
_ACTIVATIONS = [kind for kind in json.loads(_core.layer_kinds()) if kind["group"] == "activation"]


def _arguments(fields):
    return ", ".join(f"{name}={value!r}" for name, value in fields.items())


def _stax_arguments(kind):
    """The example's, by the names of neural-tangents."""
    names = {field: name for name, field in kind["neural_tangents"]["arguments"]}
    return _arguments({names[field]: value for field, value in kind["example"].items()})


EXAMPLES = {
    "widelimit": {
        "convert": _MODULE + "print(widelimit.convert.from_torch(module, a).report)",
        "from_flax": "from flax import nnx\nclass Module(nnx.Module):\n    def __init__(self, rngs):\n"
                     "        self.a, self.b = nnx.Linear(3, 64, rngs=rngs), nnx.Linear(64, 1, rngs=rngs)\n"
                     "    def __call__(self, x):\n        return self.b(nnx.relu(self.a(x)))\n"
                     "widelimit.gram(widelimit.from_flax(Module(nnx.Rngs(0)), x), x).ntk",
        "from_onnx": _FILE + "widelimit.gram(widelimit.from_onnx(file, x), x).ntk",
        "from_torch": _MODULE + "limit = widelimit.from_torch(module, a)\nwidelimit.gram(limit, limit.inputs(a)).ntk",
        "ArgumentError": "try:\n    widelimit.gram(network, x * np.nan)\nexcept widelimit.ArgumentError as error:\n    print(error)",
        "Calibration": _CLASSES + "widelimit.calibration(widelimit.class_probabilities(means, variances), labels).expected_error",
        "CalibrationBin": _CLASSES + "widelimit.calibration(widelimit.class_probabilities(means, variances), labels).bins[0].count",
        "Cancelled": "issubclass(widelimit.Cancelled, widelimit.Error)",
        "DataError": "try:\n    widelimit.Network.read('no-such-file.json')\nexcept widelimit.DataError as error:\n    print(error)",
        "Device": "[found.name for found in widelimit.devices() if found.is_gpu]",
        "Error": "try:\n    layers.dense(-1)\nexcept widelimit.Error as error:\n    print(type(error).__name__)",
        "FiniteNetwork": "sampled = widelimit.FiniteNetwork(network, (), 3, hidden=64, seed=1)\nsampled(x), sampled.ntk(x, test)",
        "GradientFlow": _KERNELS + "widelimit.GradientFlow.fit(widelimit.gram(network, x).ntk, gram, y, regulariser=1e-6)",
        "Gram": "nngp, ntk, *_ = widelimit.gram(network, x)",
        "Graph": "widelimit.Graph.from_adjacency(np.array([[0.0, 1], [1, 0]]))",
        "Kernel": _STAX + "kernel = kernel_fn(x, test)\nstax.Relu()[2](kernel.replace(nngp=0.5 * kernel.nngp)).ntk",
        "Layer": "layers.relu().kind",
        "Model": _FITTED + "model.predict(test).standard_deviation, model.score(x, y)",
        "Network": "print(network)\nwidelimit.Network.from_json(network.to_json()) == network",
        "NetworkError": "try:\n    widelimit.gram(widelimit.Network([layers.relu(), layers.relu()]), x)\n"
                        "except widelimit.NetworkError as error:\n    print(error)",
        "NtkImplementation": "widelimit.NtkImplementation.AUTO",
        "NumericalError": "issubclass(widelimit.NumericalError, ArithmeticError)",
        "Preprocessing": "widelimit.Preprocessing.fit('channel', images).apply(images).std((0, 1, 2))",
        "Regression": _KERNELS + "posterior = widelimit.Regression.fit(gram, y, regulariser=1e-3)\nposterior.mean(cross)",
        "ShortenedAttention": "widelimit.gram(network, x).shortened.inputs",
        "__version__": "print(widelimit.__version__)",
        "batch": _STAX + "widelimit.batch(kernel_fn, 10)(x, None, 'ntk')",
        "ClassCalibration": _CLASSES + "widelimit.fit_class_calibration(means, variances, labels).probabilities(means, variances)",
        "fit_class_calibration": _CLASSES + "widelimit.fit_class_calibration(means, variances, labels)",
        "calibration": _CLASSES + "widelimit.calibration(widelimit.class_probabilities(means, variances), labels, bins=10)",
        "check_laws": "passed, table = widelimit.check_laws(layers.relu())\nprint(table)",
        "check_limit": "passed, table = widelimit.check_limit(network, widths=(16, 32), draws=8, shapes=[()])\nprint(table)",
        "class_probabilities": _CLASSES + "widelimit.class_probabilities(means, variances)",
        "device": "with widelimit.device('cpu'):\n    widelimit.gram(network, x)",
        "devices": "for found in widelimit.devices():\n    print(found.name, found.memory_bytes)",
        "empirical_kernel_fn": _PARAMS + "widelimit.empirical_kernel_fn(apply_fn)(x, test, ('nngp', 'ntk'), params).ntk",
        "empirical_nngp_fn": _PARAMS + "widelimit.empirical_nngp_fn(apply_fn)(x, None, params)",
        "empirical_ntk_fn": _PARAMS + "widelimit.empirical_ntk_fn(apply_fn, trace_axes=(), diagonal_axes=(-1,))(x, None, params)",
        "empirical_ntk_vp_fn": _PARAMS + "widelimit.empirical_ntk_vp_fn(apply_fn, x, None, params)(y)",
        "experimental": "widelimit.experimental.__all__",
        "explain": "print(widelimit.explain(network, (), 3, measure_seconds=0))",
        "gram": "widelimit.gram(network, x, test, kernels='ntk').ntk.shape",
        "gram_diagonal": "widelimit.gram_diagonal(network, x).nngp",
        "gram_diagonal_vjp": "widelimit.gram_diagonal_vjp(network, x, ntk=np.ones(20)).shape",
        "gram_gradient": "widelimit.gram_gradient(network, x, numbers=['layers[0].weight_variance'])[0].ntk",
        "gram_jvp": "widelimit.gram_jvp(network, x, direction={'layers[0].bias_variance': 1.0}).nngp",
        "gram_number_vjp": "widelimit.gram_number_vjp(network, x, numbers=['layers[0].weight_variance'], ntk=np.ones((20, 20)))",
        "gram_vjp": "dx, dtest = widelimit.gram_vjp(network, x, test, ntk=np.ones((20, 4)))",
        "heads": _FLOW + "found.loss",
        "layers": "layers.__all__[:5]",
        "linearize": _PARAMS + "widelimit.linearize(apply_fn, params)(params, x)",
        "median_distance": "length = widelimit.median_distance(x)\nwidelimit.Network.named('laplace', {'length': length})",
        "monte_carlo_kernel_fn": _STAX + "widelimit.monte_carlo_kernel_fn(init_fn, apply_fn, 1, 4)(x, None, 'ntk')",
        "position_covariances": "widelimit.position_covariances(widelimit.Network([layers.conv([3, 3])]), images[:2]).nngp.shape",
        "position_variances": "widelimit.position_variances(widelimit.Network([layers.conv([3, 3])]), images, diagonal=True).nngp.shape",
        "predict": "predict.__all__",
        "propagation": _TRANSFORMER + "propagation.exponents(parameters).phase",
        "sde": _SDE + "sde.drift(model, v0)",
        "search": "widelimit.search([('bias', 0.01, 1, 'log')], lambda values: (values[0] - 0.3) ** 2, trials=8)[0].score",
        "stax": "stax.__all__[:5]",
        "taylor_expand": _PARAMS + "widelimit.taylor_expand(apply_fn, params, 1)(params, x)",
        "transfer": "transfer.first_step(network, x, y, 'mup', width=512).output_change",
    },
    "widelimit.transfer": {
        "FeatureStep": "transfer.first_step(network, x, y).features[0].change",
        "FirstStep": "transfer.first_step(network, x, y, 'ntk', width=256).largest_rate",
        "PARAMETRISATIONS": "transfer.PARAMETRISATIONS",
        "SampledStep": "transfer.sampled_step(network, x, y, 'mup', width=32, networks=2).changes",
        "first_step": "transfer.first_step(network, x, y, 'standard', width=256).output_change",
        "sampled_step": "transfer.sampled_step(network, x, y, 'mup', width=32, networks=2)",
        "table": "print(transfer.table(lambda depth: network, x, y, widths=(64, 256)))",
        "with_depth_scaled": "transfer.with_depth_scaled(network)",
    },
    "widelimit.layers": {
        **{kind["name"]: _between(f"layers.{kind['name']}({_arguments(kind['example'])})") for kind in _ACTIVATIONS},
        "Branch": "skip: layers.Branch = []\nlayers.sum(skip, (0.5, [layers.relu(), layers.dense()]))",
        "aggregate": "graphs = random.integers(0, 2, size=(6, 5, 5))\nnodes = widelimit.Network([layers.aggregate('none', True), "
                     "layers.dense(), layers.global_sum_pool()])\nwidelimit.gram(nodes, images[:, 0], graphs1=list(graphs)).ntk",
        "recurrent": "widelimit.gram(widelimit.Network([layers.recurrent(0.8, 1.3, 0.1, 'erf'), layers.index(0, -1), layers.dense()]), "
                     "images[:, 0]).ntk",
        "attention": "widelimit.gram(widelimit.Network([layers.attention(query_key_std=1.2, causal=True), layers.flatten()]), "
                     "images[:, 0]).nngp",
        "average_pool": _of_images("layers.average_pool([2, 2])"),
        "concat": _between("layers.concat((0.25, [layers.dense()]), (0.75, [layers.dense(2)])), layers.relu()"),
        "concat_positions": _of_images("layers.concat_positions(0, [layers.dense()], [layers.dense(2)])"),
        "conv": _of_images("layers.conv([3, 3], strides=[2, 2], weight_variance=2, bias_variance=0.1)"),
        "conv_transpose": _of_images("layers.conv_transpose([3, 3], strides=[2, 2])"),
        "cross_attention": "both = widelimit.Network([layers.dense(), *layers.cross_attention(3, 5), layers.global_average_pool()])\n"
                           "widelimit.gram(both, images[:, 0]).nngp",
        "decoder_block": "decoder = widelimit.Network([layers.dense(), layers.repeat(2, layers.decoder_block()), layers.rms_norm(), "
                         "layers.global_average_pool()])\nwidelimit.gram(decoder, images[:, 0]).ntk",
        "dense": _between("layers.dense(2, bias_variance=0.1)"),
        "dropout": _between("layers.dropout(0.8)"),
        "elementwise": _between("layers.elementwise(lambda z: z * np.exp(-z**2))"),
        "elementwise_dual": _between("layers.elementwise_dual(lambda p, q, c: c * c, lambda p, q, c: 2 * c)"),
        "flatten": "widelimit.gram(widelimit.Network([layers.flatten(), layers.dense()]), images).nngp",
        "from_fields": _between("layers.from_fields('leaky_relu', slope=0.1)"),
        "gated_mlp": _between("*layers.gated_mlp(layers.gelu())"),
        "global_average_pool": "widelimit.gram(widelimit.Network([layers.conv([3, 3]), layers.global_average_pool()]), images).nngp",
        "global_sum_pool": "widelimit.gram(widelimit.Network([layers.conv([3, 3]), layers.global_sum_pool()]), images).nngp",
        "image_resize": _of_images("layers.image_resize([10, 10], 'cubic')"),
        "index": "widelimit.gram(widelimit.Network([layers.conv([3]), layers.index(0, -1)]), images[:, 0]).nngp",
        "layer_norm": _between("layers.layer_norm(['channels'], epsilon=1e-5)"),
        "local_conv": _of_images("layers.local_conv([3, 3])"),
        "nonlinearity": _between("layers.nonlinearity('silu')"),
        "pair": "halved = layers.pair(lambda nngp, ntk, p, q: (nngp / 2, None if ntk is None else ntk / 2))\n" + _between("halved"),
        "positions_map": "widelimit.gram(widelimit.Network([layers.conv([3]), layers.positions_map(np.eye(5)[:2]), "
                         "layers.flatten()]), images[:, 0]).nngp",
        "product": _between("layers.product([layers.dense()], [layers.relu(), layers.dense()]), layers.dense()"),
        "repeat": _between("layers.repeat(3, [layers.relu(), layers.dense(2)])"),
        "rms_norm": _between("layers.rms_norm()"),
        "slice": _of_images("layers.slice([1, None], [4, None])"),
        "sum": _between("layers.sum([], (0.5, [layers.relu(), layers.dense()]))"),
        "sum_pool": _of_images("layers.sum_pool([2, 2])"),
        "transformer_block": "blocks = layers.transformer_block(layers.attention(query_key_std=1.2), skip_scale=0.8, attention_scale=0.6)\n"
                             "widelimit.gram(widelimit.Network([layers.dense(), *blocks, layers.flatten()]), images[:, 0]).nngp",
    },
    "widelimit.stax": {
        **{kind["neural_tangents"]["function"]: _RELU_BETWEEN.format(
            f"stax.{kind['neural_tangents']['function']}({_stax_arguments(kind)})") for kind in _ACTIVATIONS if kind["neural_tangents"]},
        **{name: _RELU_BETWEEN.format(f"stax.{name}({arguments})") for name, arguments in {
            "Dropout": "0.8", "Elementwise": "np.tanh", "ElementwiseNumerical": "np.tanh, deg=25", "LayerNorm": ""}.items()},
        **{name: _CONV.format(f"stax.{name}({arguments})") for name, arguments in {
            "AvgPool": "(2, 2)", "SumPool": "(2, 2)", "Conv": "4, (3, 3), W_std=1.4", "ConvLocal": "4, (3, 3)",
            "ConvTranspose": "4, (3, 3), strides=(2, 2)", "ImageResize": "(-1, 10, 10, -1), 'linear'",
            "Index": "stax.Slice[:, 1:4]", "GlobalSelfAttention": "8, 4, 4, 2", "Identity": ""}.items()},
        "Recurrent": "stax.serial(stax.Recurrent(8, stax.Erf(), R_std=1.2), stax.GlobalAvgPool(), stax.Dense(1))[2](images[:, 0], None, 'ntk')",
        **{name: _BRANCHES.format(f"stax.{name}()") for name in ("FanInSum", "FanInProd", "FanInConcat")},
        "Aggregate": "graphs = random.integers(0, 2, size=(6, 5, 5))\nstax.serial(stax.Dense(8), stax.Aggregate(), "
                     "stax.GlobalSumPool())[2](images[:, 0], None, 'ntk', pattern=(graphs, graphs))",
        "AggregateImplementation": "stax.Aggregate(implementation=stax.AggregateImplementation.SPARSE)",
        "AttentionMechanism": "stax.GlobalSelfAttention(8, 4, 4, 2, attention_mechanism=stax.AttentionMechanism.RELU)",
        "Bool": "stax.Bool.YES & stax.Bool.MAYBE",
        "Dense": "stax.Dense(64, W_std=1.5, b_std=0.1)[2](x, None, 'ntk')",
        "Diagonal": "stax.Diagonal(input=stax.Bool.YES) >> stax.Diagonal(output=stax.Bool.YES)",
        "DotGeneral": "stax.serial(stax.Conv(8, (3, 3)), stax.DotGeneral(rhs=2.0), stax.Flatten())[2](images, None, 'nngp')",
        "FanOut": _BRANCHES.format("stax.FanInSum()"),
        "Flatten": "stax.serial(stax.Conv(8, (3, 3)), stax.Flatten())[2](images, None, 'nngp')",
        "GlobalAvgPool": "stax.serial(stax.Conv(8, (3, 3)), stax.GlobalAvgPool())[2](images, None, 'nngp')",
        "GlobalSumPool": "stax.serial(stax.Conv(8, (3, 3)), stax.GlobalSumPool())[2](images, None, 'nngp')",
        "Kernel": _STAX + "kernel_fn(x, test).asdict()['shape2']",
        "MaskedArray": _PARAMS + "apply_fn(params, x, mask_constant=10.0).mask",
        "Padding": "stax.Conv(8, (3, 3), padding=stax.Padding.CIRCULAR)",
        "PositionalEmbedding": "stax.GlobalSelfAttention(8, 4, 4, 2, pos_emb_type=stax.PositionalEmbedding.SUM)",
        "Slice": "stax.Slice[:, 1:4, ::2]",
        "layer": "@stax.layer\ndef Twice():\n    def kernel_fn(k, **kwargs):\n        return 2 * k\n"
                 "    return lambda key, shape: (shape, ()), lambda params, x, **kwargs: 2 * x, kernel_fn\n\n"
                 "stax.serial(stax.Dense(64), Twice(), stax.Dense(1))[2](x, None, 'ntk')",
        "parallel": _BRANCHES.format("stax.FanInSum()"),
        "repeat": "stax.repeat(stax.serial(stax.Dense(64), stax.Relu()), 3)[2](x, None, 'nngp')",
        "requires": "@stax.requires(diagonal_spatial=stax.Diagonal())\ndef kernel_fn(k, **kwargs):\n    return 2 * k",
        "serial": _STAX + "kernel_fn(x, test, ('nngp', 'ntk')).ntk",
        "supports_masking": "@stax.layer\n@stax.supports_masking(remask_kernel=False)\ndef Same():\n"
                            "    return lambda key, shape: (shape, ()), lambda params, x, mask=None, **kwargs: x, lambda k, **kwargs: k",
        "unmask_fn": _PARAMS + "stax.unmask_fn(apply_fn)(params, x, mask_constant=10.0)",
    },
    "widelimit.predict": {
        "Gaussian": _STAX + "predict.gradient_descent_mse_ensemble(kernel_fn, x, y, diag_reg=1e-4)(\n"
                            "    x_test=test, get='nngp', compute_cov=True).covariance",
        "ODEState": "predict.ODEState(fx_train=y).replace(fx_test=0.0)",
        "gp_inference": _STAX + "predict_fn = predict.gp_inference(kernel_fn(x, None, ('nngp', 'ntk')), y, diag_reg=1e-4)\n"
                                "predict_fn('ntk', kernel_fn(test, x, ('nngp', 'ntk')))",
        "gradient_descent": _STAX + "predict_fn = predict.gradient_descent(lambda f, y: ((f - y) ** 2).mean(), kernel_fn(x, None, 'ntk'), y)\n"
                                    "predict_fn(1.0)",
        "gradient_descent_mse": _STAX + "predict.gradient_descent_mse(kernel_fn(x, None, 'ntk'), y)(2.0)",
        "gradient_descent_mse_ensemble": _STAX + "predict.gradient_descent_mse_ensemble(kernel_fn, x, y, diag_reg=1e-4)(x_test=test).ntk",
        "max_learning_rate": _STAX + "predict.max_learning_rate(kernel_fn(x, None, 'ntk'), y.size)",
    },
    "widelimit.propagation": {
        **{name: _GPT2 + call for name, call in {
            "Activations": "propagation.activations([lambda x: x + np.tanh(x)], random.normal(size=(3, 6, 16)), gradients=False).layers",
            "AttentionEntropy": "propagation.report(block, tokens=4, sensitivities=False).entropy.uniform",
            "Block": "block.scaled(attention_branch=0.5).repeated(24).network",
            "Report": "propagation.report(block, tokens=4, sensitivities=False).columns()",
            "Sensitivity": "propagation.report(block, tokens=4).sensitivities[0].lambda_g",
            "activations": "propagation.activations([lambda x: x + np.tanh(x)], random.normal(size=(3, 6, 16)), gradients=False)",
            "attention_entropy": "propagation.attention_entropy(block.plans, np.array([propagation.start_gram(4)] * 2)).entropy",
            "block_from": "block.start_norm",
            "critical_factors": "propagation.critical_factors('relative gradient', 'mlp_branch', block, tokens=4)",
            "report": "print(propagation.report(block, tokens=4, sensitivities=False))"}.items()},
        **{name: _TRANSFORMER + call for name, call in {
            "BlockExponents": "propagation.block_exponents(parameters.block(), tokens=8, depth=4).lambda_a_log",
            "BlockMap": "propagation.BlockMap(parameters).block(propagation.start_gram(8, 1, 0.2))",
            "CriticalInitialisation": "propagation.critical(parameters, depth=8).parameters.sigma_w",
            "CriticalLines": "propagation.critical_lines(parameters, ('alpha', 0.2, 0.8), ('sigma_w', 1, 3)).angle",
            "Curve": "propagation.critical_lines(parameters, ('alpha', 0.2, 0.8), ('sigma_w', 1, 3)).angle[:1]",
            "Estimate": "propagation.simulate_angle(parameters, width=16, networks=2).value",
            "Exponents": "propagation.exponents(parameters, depth=8).lambda_a",
            "FixedPoint": "propagation.BlockMap(parameters).fixed_points()",
            "LayerGradients": "propagation.layer_gradients(parameters.block(), propagation.start_gram(8, 1, 0.2), depth=2)[0].gradients",
            "MeasuredGradient": "propagation.simulate_gradient(parameters, depth=2, width=16, networks=2)",
            "Parameters": "parameters.block()",
            "PhaseDiagram": "propagation.phase_diagram(parameters, ('alpha', [0.2, 0.6]), ('sigma_w', [1, 2])).lambda_a",
            "Propagated": "propagation.propagate(parameters.block(), propagation.start_gram(8, 1, 0.2), depth=2).q",
            "SampledBlock": "propagation.sample_block(parameters.block(), propagation.start_gram(8, 1, 0.2), depth=2, width=16, networks=2)",
            "SimulatedTrajectory": "propagation.simulate_trajectory(parameters, depth=2, width=16, networks=2).q_error",
            "TokenSamples": "propagation.simulate_samples(parameters, [1, 2], width=16, networks=2)[0]",
            "TokenState": "propagation.TokenState.from_cosine(1.5, 0.2).gap",
            "WidthSpread": "propagation.width_spread(parameters, width=256, depth=8).limit_depth",
            "width_spread": "propagation.width_spread(parameters, width=256, depth=8).lambda_g",
            "Trajectory": "propagation.trajectory(parameters, depth=4, c0=0.2).cosine",
            "block_exponents": "propagation.block_exponents(parameters.block(), tokens=8, depth=4)",
            "collapsed_norm": "propagation.collapsed_norm(parameters.block(), tokens=8)",
            "critical": "propagation.critical(parameters, depth=8)",
            "critical_lines": "propagation.critical_lines(parameters, ('alpha', 0.2, 0.8), ('sigma_w', 1, 3)).gradient",
            "critical_values": "propagation.critical_values('angle', 'sigma_w', parameters)",
            "exponents": "propagation.exponents(parameters, depth=8).phase",
            "layer_gradients": "propagation.layer_gradients(parameters.block(), propagation.start_gram(8, 1, 0.2), depth=2)",
            "phase_diagram": "propagation.phase_diagram(parameters, ('alpha', [0.2, 0.6]), ('sigma_w', [1, 2])).lambda_g",
            "propagate": "propagation.propagate(parameters.block(), propagation.start_gram(8, 1, 0.2), depth=2).grams.shape",
            "sample_block": "propagation.sample_block(parameters.block(), propagation.start_gram(8, 1, 0.2), depth=2, width=16, networks=2)",
            "simulate_angle": "propagation.simulate_angle(parameters, width=16, networks=2)",
            "simulate_gradient": "propagation.simulate_gradient(parameters, depth=2, width=16, networks=2)",
            "simulate_groups": "propagation.simulate_groups(parameters, depth=2, width=16, networks=2)[0]",
            "simulate_samples": "propagation.simulate_samples(parameters, [1, 2], width=16, networks=2)",
            "simulate_trajectory": "propagation.simulate_trajectory(parameters, depth=2, c0=0.2, width=16, networks=2).q",
            "start_gram": "propagation.start_gram(4, q=1, cosine=0.2)",
            "trajectory": "propagation.trajectory(parameters, depth=4, c0=0.2).q"}.items()},
        "LossFit": "lambda_a, lambda_g = random.uniform(-1, 1, 40), random.uniform(-1, 1, 40)\n"
                   "propagation.fit_losses(lambda_a, lambda_g, 1 + lambda_a**2 + lambda_g**2, bootstrap=5)",
        "MeasuredAttention": "propagation.measure_attention([np.full((3, 2, 6, 6), 1 / 6)]).entropy",
        "measure_attention": "propagation.measure_attention([np.full((3, 2, 6, 6), 1 / 6)]).first_weight",
        "Measured": "propagation.measure([random.normal(size=(3, 6, 16)) for _ in range(3)])",
        "fit_losses": "lambda_a, lambda_g = random.uniform(-1, 1, 40), random.uniform(-1, 1, 40)\n"
                      "propagation.fit_losses(lambda_a, lambda_g, 1 + lambda_a**2 + lambda_g**2, bootstrap=5)",
        "measure": "propagation.measure([random.normal(size=(3, 6, 16)) for _ in range(3)])",
    },
    "widelimit.heads": {
        **{name: _FLOW + call for name, call in {
            "FlowPath": "found.path.loss[-1]", "HeadParameters": "found.path.end.m", "TrainedHeads": "found.converged",
            "LeftSaddle": "found.left_saddles",
            "Judged": "heads.judge('softmax', found.path.end, prior, 3, fresh_samples=500).loss",
            "Pruned": "heads.prune('softmax', found.path.end, prior, 3, fresh_samples=500).losses",
            "flow": "found.loss", "judge": "heads.judge('softmax', found.path.end, prior, 3, fresh_samples=500)",
            "prune": "heads.prune('softmax', found.path.end, prior, 3, fresh_samples=500)"}.items()},
        **{name: _HEADS + call for name, call in {
            "Comparison": "heads.compare('softmax', prior, 3, 2, 20, tau=2, step=0.02, samples=500).largest_difference_m",
            "Estimate": "heads.bayes_risk(prior, tokens=3, samples=500).value",
            "Prior": "prior, heads.Prior.spikes(2, 10)",
            "Resampled": "heads.resampling('softmax', prior, 3, 2, tau=1, samples=500)[0].largest_difference_m",
            "SgdPath": "heads.sgd('softmax', prior, 3, 2, 20, tau=1, batch=4).m[-1]",
            "SpecialisationTimes": "heads.specialisation_times('softmax', heads.Prior.spikes(2, 10), 3, 2, 20, [0.5], tau=2)",
            "bayes_optimal_heads": "heads.bayes_optimal_heads(prior, heads=2).m",
            "bayes_posterior": "heads.bayes_posterior(prior, random.normal(size=(3, 2)))",
            "bayes_risk": "heads.bayes_risk(prior, tokens=3, samples=500)",
            "fresh_sequences": "heads.fresh_sequences(prior, 3, 2, 2, fresh_samples=500)[0].shape",
            "resampling": "heads.resampling('softmax', prior, 3, 2, tau=1, samples=500)[0].largest_difference_m",
            "compare": "heads.compare('softmax', prior, 3, 2, 20, tau=2, step=0.02, samples=500).largest_difference_m",
            "sgd": "heads.sgd('softmax', prior, 3, 2, 20, tau=1, batch=4)",
            "specialisation_times": "heads.specialisation_times('softmax', heads.Prior.spikes(2, 10), 3, 2, 20, [0.5], tau=2)",
            "attention_map": "heads.attention_map('bayes', heads.bayes_optimal_heads(prior, 2), random.normal(size=(3, 2)), random.normal(size=(3, 2)))",
        }.items()},
        **{name: _DIGITS + call for name, call in {
            "ImageHeads": "heads.digits('softmax1', task, 1, tokens=3, heads=2, batch=16, fresh_samples=50, risk_samples=60).loss",
            "ImageTask": "task.class_means.shape",
            "digit_times": "heads.digit_times('softmax1', task, [1, 0.5], 1, tokens=3, heads=2, batch=16).times.shape",
            "digits": "heads.digits('softmax1', task, 1, tokens=3, heads=2, batch=16, fresh_samples=50, risk_samples=60).loss",
        }.items()},
        "EscapeRates": "heads.escape_rates(heads.hessian('softmax', 3, 2), 2, 10)",
        "HessianConstants": "heads.hessian('softmax', 3, 2)",
        "escape_rates": "heads.escape_rates(heads.hessian('softmax', 3, 2), 2, 10)",
        "hessian": "heads.hessian('softmax', 3, 2)",
        "noise_start": "heads.noise_start('softmax', 2, 2, eta=0.1).m",
        "split_rate": "heads.split_rate('softmax', 3, 2, 10, 10, samples=500)",
    },
    "widelimit.sde": {
        **{name: _SDE + call for name, call in {
            "Ensemble": "sde.simulate(model, v0, times=[0.1], paths=20).covariances.shape",
            "Outputs": "sde.outputs(sde.simulate(model, v0, times=[0.1], paths=20), 2).kurtosis",
            "outputs": "sde.outputs(sde.simulate(model, v0, times=[0.1], paths=20), 2).values.shape",
            "Model": "model", "Coefficients": "sde.coefficients(v0).linear", "coefficients": "sde.coefficients(v0).second_moment",
            "diffusion": "sde.diffusion(model, v0)", "drift": "sde.drift(model, v0)",
            "flow": "sde.flow(sde.with_finite_width_drift(model, 64), v0, [0.1, 0.2])",
            "simulate": "sde.simulate(model, v0, times=[0.1, 0.2], paths=20).ends", "start": "v0",
            "transformer": "model", "with_finite_width_drift": "sde.with_finite_width_drift(model, 64)",
            "commuting_limit": "sde.commuting_limit(v0, [0.1, 0.2])"}.items()},
        **{name: _NETWORK + call for name, call in {
            "Comparison": "sde.compare(shaped, v0, layers=[8], samples=100, paths=100).distances['rho01'].p_value",
            "Distance": "sde.compare(shaped, v0, layers=[8], samples=100, paths=100).distances['rho01']",
            "Entropy": "sde.entropy(shaped, v0, layers=[8], samples=20)",
            "GradientNorms": "sde.gradients(shaped, v0, 4, samples=2)",
            "Network": "shaped", "compare": "sde.compare(shaped, v0, layers=[8], samples=100, paths=100)",
            "entropy": "sde.entropy(shaped, v0, layers=[8], samples=20)", "gradients": "sde.gradients(shaped, v0, 4, samples=2)",
            "sample_networks": "sde.sample_networks(shaped, v0, layers=[8], samples=20).covariances.shape",
            "stopping_times": "sde.stopping_times(shaped, v0, layers=[8], samples=20)"}.items()},
        **{name: _MLP + call for name, call in {
            "Explosion": "sde.explosion(sde.mlp(1, 0), sde.start(2, 1, 0.2), [0.1], paths=20)",
            "Law": "sde.correlation_law(model, 0.2, 0.5).quantile(0.5)",
            "correlation_law": "sde.correlation_law(model, 0.2, 0.5).density(0.3)",
            "explosion": "sde.explosion(sde.mlp(1, 0), sde.start(2, 1, 0.2), [0.1], paths=20)",
            "explosion_probability": "sde.explosion_probability(sde.attention(0.25), 0.5)",
            "gap_law": "sde.gap_law(sde.attention(0.25), 0.5, 0.2).quantile(0.5)", "mlp": "model"}.items()},
        "attention": "sde.attention(gamma_squared=0.25)", "resnet": "sde.resnet(gamma_squared=0.25)",
        "stack": "sde.stack(sde.attention(0.25), sde.mlp(0, -1))",
    },
    "widelimit.sklearn": {
        "NetworkKernel": "from sklearn.gaussian_process import GaussianProcessRegressor\n"
                         "from widelimit.sklearn import NetworkKernel\n"
                         "GaussianProcessRegressor(NetworkKernel(network), alpha=1e-3).fit(x, y[:, 0]).predict(test)",
        "WideNetworkClassifier": "from widelimit.sklearn import WideNetworkClassifier\n"
                                 "WideNetworkClassifier(kernel='ntk').fit(x, y[:, 0] > 0).predict_proba(test)",
        "WideNetworkRegressor": "from widelimit.sklearn import WideNetworkRegressor\n"
                                "WideNetworkRegressor().fit(x, y[:, 0]).predict(test, return_std=True)",
        "default_network": "from widelimit.sklearn import default_network\nprint(default_network())",
    },
    "widelimit.jax": {
        "gram": "import jax\nimport widelimit.jax\n"
                "jax.grad(lambda a: widelimit.jax.gram(network, a, kernels='ntk').ntk.sum())(jax.numpy.asarray(x))",
        "gram_diagonal": "import jax\nimport widelimit.jax\n"
                         "jax.grad(lambda a: widelimit.jax.gram_diagonal(network, a, 'nngp').nngp.sum())(jax.numpy.asarray(x))",
    },
    "widelimit.convert": {
        "ConversionError": _MODULE + "try:\n    widelimit.from_torch(torch.nn.MaxPool1d(2), a[:, None])\nexcept widelimit.convert.ConversionError as error:\n"
                           "    print(error)",
        "ConvertedNetwork": _MODULE + "widelimit.from_torch(module, a).inputs(a).shape",
        "Measured": _MODULE + "[row.variance.rule for row in widelimit.from_torch(module, a).report.rows]",
        "Report": _MODULE + "print(widelimit.from_torch(module, a).report)",
        "Row": _MODULE + "[(row.parameter, row.fan_in) for row in widelimit.from_torch(module, a).report.rows]",
        "from_flax": "from flax import nnx\nwidelimit.convert.from_flax(nnx.Linear(3, 2, rngs=nnx.Rngs(0)), x)",
        "from_onnx": _FILE + "widelimit.convert.from_onnx(file, x).report",
        "from_torch": _MODULE + "widelimit.convert.from_torch(module, a, parametrisation='ntk')",
    },
    "widelimit.torch": {
        "gram": "import torch\nimport widelimit.torch\na = torch.tensor(x, requires_grad=True)\n"
                "widelimit.torch.gram(network, a, kernels='ntk').ntk.sum().backward()",
        "gram_diagonal": "import torch\nimport widelimit.torch\na = torch.tensor(x, requires_grad=True)\n"
                         "widelimit.torch.gram_diagonal(network, a, 'nngp').nngp.sum().backward()",
    },
}
