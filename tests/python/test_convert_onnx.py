"""widelimit.from_onnx and python -m widelimit.convert: files of PyTorch's two exporters, and files written by hand as others write them."""

import contextlib
import io
import subprocess
import sys

import numpy as np
import pytest
import widelimit
from widelimit.convert import ConversionError
from widelimit.convert.__main__ import main

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
onnx = pytest.importorskip("onnx", reason="ONNX is not installed (torch's environment has it)")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from pieces_of_torch import FUNCTIONS, PIECES  # noqa: E402
from torch import nn  # noqa: E402


def exported(module, x, by_trace):
    """A ModelProto of torch.onnx.export, by TorchScript or by torch.export."""
    file = io.BytesIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        if not by_trace:
            pytest.importorskip("onnxscript", reason="onnxscript, which torch.export's exporter needs, is not installed (torch's "
                                                     "environment has it)")
            return torch.onnx.export(module, (x,), dynamo=True).model_proto
        torch.onnx.export(module, (x,), file, dynamo=False, opset_version=17)
    return onnx.load_from_string(file.getvalue())


CHOSEN = ["gelu by hand", "softplus", "circular", "transposed", "padded pool", "squeeze-excite", "group norm", "layer norm by hand", "glu",
          "causal",
          "rotary halves"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("by_trace", [True, False])
@pytest.mark.parametrize("name", CHOSEN)
def test_files_have_the_limits_of_their_modules(name, by_trace):
    torch.manual_seed(0)
    build, shape, options = (FUNCTIONS | PIECES)[name]
    module, x = build(64 if name in ("causal", "sdpa window", "rotary halves") else 32).eval(), torch.randn(2, *shape)
    expected = widelimit.from_torch(module, x, **options)
    found = widelimit.from_onnx(exported(module, x, by_trace), x.numpy(), **options)
    first, second = (widelimit.gram(network, network.inputs(x)) for network in (expected, found))
    np.testing.assert_allclose(second.nngp, first.nngp, rtol=5e-3)
    # Exporters leave out biases that are zero, whose gradients the module has: 1 beside width.
    np.testing.assert_allclose(second.ntk, first.ntk, rtol=8e-2 if name in ("causal",) else 5e-3)


def file_of(nodes, tensors, shape, out, opset=17):
    """A ModelProto of nodes, with tensors by their names, from x of a shape to the value `out`."""
    graph = helper.make_graph(nodes, "made by hand", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info(out, TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(np.asarray(value, np.asarray(value).dtype), name) for name,
                               value in tensors.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def normal(random, *shape, std=1.0):
    return (std * random.normal(size=shape)).astype(np.float32)


def test_a_file_with_gemm_automatic_padding_and_norms_written_out(random):
    """As Keras' exporters write: constants as nodes, MatMul and Add, pads by auto_pad, a norm by its means, GELU by Erf."""
    w = 128
    tensors = {"k1": normal(random, w, 3, 3, 3, std=27**-0.5), "b1": normal(random, w, 1, 1, std=0.1),
               "k2": normal(random, w, w, 3, 3, std=(9 * w)**-0.5),
               "gain": np.ones((w, 1, 1), np.float32), "two": np.float32(2), "epsilon": np.float32(1e-3), "root": np.float32(2**0.5),
               "one": np.float32(1), "half": np.float32(0.5), "d": normal(random, w, 16, std=w**-0.5), "e": normal(random, 16, std=0.1)}
    node = helper.make_node
    nodes = [node("Conv", ["x", "k1"], ["c1"], auto_pad="SAME_UPPER", strides=[2, 2]), node("Add", ["c1", "b1"], ["c2"]),
             node("ReduceMean", ["c2"], ["mean"], axes=[1], keepdims=1), node("Sub", ["c2", "mean"], ["centred"]),
             node("Pow", ["centred", "two"], ["squares"]), node("ReduceMean", ["squares"], ["variance"], axes=[1], keepdims=1),
             node("Add", ["variance", "epsilon"], ["above"]), node("Sqrt", ["above"], ["deviation"]),
             node("Div", ["centred", "deviation"], ["n"]),
             node("Mul", ["n", "gain"], ["g"]), node("Div", ["g", "root"], ["z1"]), node("Erf", ["z1"], ["z2"]),
             node("Add", ["z2", "one"], ["z3"]),
             node("Mul", ["g", "z3"], ["z4"]), node("Mul", ["z4", "half"], ["phi"]),
             node("Conv", ["phi", "k2"], ["c3"], auto_pad="SAME_LOWER"),
             node("Relu", ["c3"], ["r"]), node("GlobalAveragePool", ["r"], ["p"]), node("Flatten", ["p"], ["f"]),
             node("MatMul", ["f", "d"], ["m"]), node("Add", ["m", "e"], ["y"])]
    network = widelimit.from_onnx(file_of(nodes, tensors, ["n", 3, 5, 6], "y"), normal(random, 2, 3, 5, 6))
    from widelimit import layers
    standard = {"parametrisation": "standard"}
    expected = widelimit.Network([
        layers.conv([3, 3], [2, 2], pads=[1, 0, 1, 1], weight_variance=1, bias_variance=0.01, input_width=3, **standard),
        layers.layer_norm(epsilon=1e-3),
        layers.gelu(), layers.conv([3, 3], pads=[1, 1], weight_variance=1, input_width=w, trainable="weights", **standard), layers.relu(),
        layers.global_average_pool(), layers.dense(1, 0.01, input_width=w, **standard)])
    x = normal(random, 3, 5, 6, 3)
    np.testing.assert_allclose(widelimit.gram(network, x).ntk, widelimit.gram(expected, x).ntk, rtol=1e-4)


def test_what_files_cannot_say(random, tmp_path):
    tensors, node = {"a": normal(random, 5, 5), "w": normal(random, 4, 64, std=0.5), "v": normal(random, 64, 2, std=0.1)}, helper.make_node
    nodes = [node("MatMul", ["a", "x"], ["g"]), node("MatMul", ["g", "w"], ["h"]), node("Relu", ["h"], ["r"]),
             node("MatMul", ["r", "v"], ["y"])]
    graph = file_of(nodes, tensors, ["n", 5, 4], "y")
    with pytest.raises(ConversionError, match=r"node g \(MatMul\): learned weights mix positions.*a fixed matrix"):
        widelimit.from_onnx(graph, layout="last")
    assert widelimit.from_onnx(graph, fixed=["a"]).report.shape == (5,)
    with pytest.raises(ConversionError, match="for one input at a time"):
        widelimit.from_onnx(file_of(nodes, tensors, [1, 5, 4], "y"))
    with pytest.raises(ConversionError, match=r"sizes of input x are not in the file \(\[0, 0, 4\]\); pass an example"):
        widelimit.from_onnx(file_of(nodes, tensors, ["n", "t", 4], "y"))
    with pytest.raises(ConversionError, match=r"node y \(MaxPool\): a maximum over positions"):
        widelimit.from_onnx(file_of([node("MaxPool", ["x"], ["y"], kernel_shape=[2])], {}, ["n", 4, 6], "y"))
    with pytest.raises(ConversionError, match=r"node y \(Hardmax\): the operation Hardmax has no limit here"):
        widelimit.from_onnx(file_of([node("Hardmax", ["x"], ["y"])], {}, ["n", 4], "y"))
    (tmp_path / "broken.onnx").write_bytes(b"no model at all")
    with pytest.raises(ConversionError, match="broken.onnx: expected an ONNX file"):
        widelimit.from_onnx(tmp_path / "broken.onnx")


def test_the_command(tmp_path, capsys):
    torch.manual_seed(0)
    module, x = nn.Sequential(nn.Linear(5, 64), nn.Tanh(), nn.Linear(64, 2)), torch.randn(2, 5)
    model, network = tmp_path / "model.onnx", tmp_path / "network.json"
    onnx.save(exported(module, x, True), str(model))
    assert main([str(model), str(network)]) == 0
    printed = capsys.readouterr().out
    assert "PyTorch's default" in printed and "channels last" in printed
    np.testing.assert_allclose(widelimit.gram(widelimit.Network.read(str(network)), x.numpy()).ntk,
                               widelimit.gram(widelimit.from_torch(module, x), x.numpy()).ntk, rtol=1e-6)
    assert main([str(model), str(network), "--quiet", "--parametrisation", "ntk"]) == 0 and capsys.readouterr().out == ""
    assert main([str(tmp_path / "none.onnx"), str(network)]) == 1
    assert capsys.readouterr().err == f"error: {tmp_path / 'none.onnx'}: there is no such file\n"
    ran = subprocess.run([sys.executable, "-m", "widelimit.convert", "--help"], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("usage: python -m widelimit.convert")
