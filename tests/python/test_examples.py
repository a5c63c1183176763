"""The scripts of examples/python."""

import contextlib
import importlib.util
import pathlib
import sys
import types

import numpy as np
import pytest

from program import column, program_json
from widelimit import propagation

FOLDER = pathlib.Path(__file__).parent.parent.parent / "examples" / "python"


@pytest.fixture(scope="module")
def points():
    spec = importlib.util.spec_from_file_location("kernel_inducing_points", FOLDER / "kernel_inducing_points.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name, kernel", [("fcn", "ntk"), ("conv", "nngp")])
def test_gradients_of_the_loss_agree_with_differences(points, random, name, kernel):
    model = points.Ridge(points.network(name), kernel, 0.1, 1)
    support, labels = random.normal(size=(4, 3, 3, 2)), random.normal(size=(4, 2))
    x, y = random.normal(size=(5, 3, 3, 2)), random.normal(size=(5, 2))
    _, by_support, by_labels = model.loss_and_gradient(support, labels, x, y)
    along, turn, step = random.normal(size=support.shape), random.normal(size=labels.shape), 1e-5

    def loss(shift):
        return model.loss_and_gradient(support + shift * along, labels + shift * turn, x, y)[0]

    assert (loss(step) - loss(-step)) / (2 * step) == pytest.approx(
        (by_support * along).sum() + (by_labels * turn).sum(), rel=1e-6)


def test_distilled_images_are_better_than_those_of_the_training_set(points, tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="Matplotlib is not installed")
    before, after = points.main(["--per-class", "5", "--steps", "30", "--batch", "200", "--threads", "1", "--compare", "200",
                                 "--picture", str(tmp_path / "points.png")])
    assert after > max(before) + 0.05
    assert (tmp_path / "points.png").stat().st_size > 5000
    assert "50 training images: accuracy" in capsys.readouterr().out


def test_images_of_a_file(points, tmp_path, random):
    arrays = {"x_train": random.uniform(size=(40, 32, 32, 3)), "y_train": np.arange(40) % 4,
              "x_test": random.uniform(size=(8, 32, 32, 3)), "y_test": np.arange(8) % 4}
    np.savez(tmp_path / "images.npz", **arrays)
    (train, labels), (test, _) = points.read(tmp_path / "images.npz", random)
    assert train.shape == (40, 16, 16, 3) and test.shape == (8, 16, 16, 3)
    np.testing.assert_allclose(train[3, 2, 5], arrays["x_train"][3, 4:6, 10:12].mean((0, 1)))
    before, after = points.main(["--data", str(tmp_path / "images.npz"), "--per-class", "2", "--steps", "2", "--learn-labels"])
    assert len(before) == 5 and 0 <= after <= 1


def test_images_of_cifar10(points, tmp_path, random):
    records = np.concatenate([np.arange(4, dtype=np.uint8)[:, None], random.integers(256, size=(4, 3072), dtype=np.uint8)], 1)
    for name in ("data_batch_1.bin", "data_batch_2.bin", "test_batch.bin"):
        records.tofile(tmp_path / name)
    (train, labels), _ = points.read(tmp_path, random)
    assert labels.tolist() == [0, 1, 2, 3] * 2
    green = records[1, 1 + 1024:1 + 2048].reshape(32, 32)
    assert train[1, 0, 3, 1] == pytest.approx(green[0:2, 6:8].mean() / 255)


def test_folders_and_sizes_that_do_not_fit(points, tmp_path, random):
    with pytest.raises(SystemExit, match="expected data_batch_.*bin"):
        points.read(tmp_path, random)
    with pytest.raises(SystemExit, match="multiple of 16 x 16 pixels, got 20 x 32"):
        points.smaller(np.ones((1, 20, 32, 3)))


def module_of(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class HookedBlock:
    """Has what save_activations.py needs of a module of PyTorch."""

    def __init__(self, weight):
        self.weight, self.before, self.after = weight, [], []

    def register_forward_pre_hook(self, hook, with_kwargs):
        assert with_kwargs
        return self._added(self.before, hook)

    def register_forward_hook(self, hook):
        return self._added(self.after, hook)

    @staticmethod
    def _added(hooks, hook):
        class Handle:
            def remove(self):
                hooks.remove(hook)
        hooks.append(hook)
        return Handle()

    def __call__(self, *args, **kwargs):
        for hook in self.before:
            hook(self, args, kwargs)
        output = ((args[0] if args else kwargs["hidden_states"]) @ self.weight, "a cache")
        for hook in self.after:
            hook(self, args, output)
        return output


def test_saved_activations_are_those_of_the_blocks(tmp_path, random):
    saving = module_of("save_activations")
    blocks = [HookedBlock(random.normal(size=(8, 8)) / 3) for _ in range(3)]
    batches = random.normal(size=(2, 4, 5, 8))
    with saving.record(blocks) as runs:
        for k, tokens in enumerate(batches):
            tokens = blocks[0](tokens)[0] if k == 0 else blocks[0](hidden_states=tokens)[0]
            for block in blocks[1:]:
                tokens = block(tokens)[0]
    assert not any(block.before or block.after for block in blocks)
    layers = saving.joined(runs)
    assert len(layers) == 4
    np.testing.assert_array_equal(layers[0], batches.reshape(8, 5, 8))
    np.testing.assert_allclose(layers[3], layers[0] @ blocks[0].weight @ blocks[1].weight @ blocks[2].weight, rtol=1e-12)
    mask = np.arange(5) < np.array([5, 4, 3, 2, 5, 5, 5, 5])[:, None]
    scores = np.where(mask[:, None, None], random.normal(size=(8, 2, 5, 5)), -np.inf)
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    np.save(tmp_path / "layer_7.npy", np.ones(3))  # of another run
    saving.save(tmp_path, layers, [weights] * 3, mask.astype(np.int64))
    assert not (tmp_path / "layer_7.npy").exists()
    printed = program_json("propagation", "measure", tmp_path, "--mask", tmp_path / "mask.npy")
    found = propagation.measure(layers, mask=mask)
    assert column(printed, "q") == found.q.tolist()
    assert len(printed["attention"]) == 6


def test_activations_in_half_precision_keep_their_numbers(tmp_path, random):
    saving, ml_dtypes = module_of("save_activations"), pytest.importorskip("ml_dtypes", reason="JAX is not installed")
    exact = random.normal(size=(2, 6, 16))
    for dtype, saved in ((np.float16, "float16"), (ml_dtypes.bfloat16, "float32")):
        narrow = exact.astype(dtype)
        saving.save(tmp_path, [narrow, narrow])
        array = np.load(tmp_path / "layer_0.npy")
        assert array.dtype == saved
        np.testing.assert_array_equal(array, narrow.astype(np.float32))
        # The program sees how coarse the numbers are, and takes as rounding what is.
        epsilon = 2.0 ** -10 if saved == "float16" else 2.0 ** -7
        assert propagation.measure([array]).rounding_gap[0] == 32 * epsilon ** 2
        assert column(program_json("propagation", "measure", tmp_path), "q") == propagation.measure([array] * 2).q.tolist()


class ModuleList(list):
    """Of that name, as save_activations.py looks for the blocks."""


def stand_ins(random, width, heads):
    """Modules `torch` and `transformers` with what save_activations.py calls of them, and the model that they give."""
    class Model:
        config = types.SimpleNamespace(num_hidden_layers=3)

        def __init__(self):
            self.blocks = ModuleList(HookedBlock(random.normal(size=(width, width)) / 3) for _ in range(3))
            self.embedding = random.normal(size=(50, width))

        def eval(self):
            return self

        def modules(self):
            return [self, self.blocks, *self.blocks]

        def __call__(self, input_ids, attention_mask, output_attentions):
            tokens = self.embedding[input_ids]
            for block in self.blocks:
                tokens = block(tokens)[0]
            shape = (len(tokens), heads, tokens.shape[1], tokens.shape[1])
            weights = np.broadcast_to(attention_mask[:, None, None] / attention_mask.sum(axis=1)[:, None, None, None], shape)
            return types.SimpleNamespace(attentions=(weights,) * 3 if output_attentions else None)

    class Tokenizer:
        pad_token, eos_token = None, "end"

        def __call__(self, texts, padding, truncation, max_length, return_tensors):
            assert (padding, truncation, return_tensors, self.pad_token) == ("max_length", True, "pt", "end")
            words = [text.split()[:max_length] for text in texts]
            ids = np.array([[len(word) for word in line] + [0] * (max_length - len(line)) for line in words])
            return {"input_ids": ids, "attention_mask": np.array([[1] * len(line) + [0] * (max_length - len(line)) for line in words])}

    made = Model()
    torch = types.SimpleNamespace(float32="float32", float16="float16", bfloat16="bfloat16", no_grad=contextlib.nullcontext)
    transformers = types.SimpleNamespace(AutoTokenizer=types.SimpleNamespace(from_pretrained=lambda name: Tokenizer()),
                                         AutoModel=types.SimpleNamespace(from_pretrained=lambda name, **options: made))
    return torch, transformers, made


def test_texts_go_through_a_model_of_the_hugging_face_interface(tmp_path, random, monkeypatch, capsys):
    """The whole program, with stand-ins for PyTorch and transformers, which are not installed here."""
    saving = module_of("save_activations")
    torch, transformers, model = stand_ins(random, 8, 2)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "transformers", transformers)
    texts, folder = tmp_path / "texts.txt", tmp_path / "activations"
    texts.write_text("one two three\n\nalone\nfour words are here\na text of more words than are taken\n", encoding="utf-8")
    saving.main(["a-model", str(texts), str(folder), "--tokens", "5", "--batch", "2"])
    assert "4 layers (3, 5, 8), 3 arrays of attention weights" in capsys.readouterr().out
    # The text of one word has no angle, and is left out.
    mask = np.load(folder / "mask.npy")
    assert mask.tolist() == [[True] * 3 + [False] * 2, [True] * 4 + [False], [True] * 5]
    layers = [np.load(folder / f"layer_{k}.npy") for k in range(4)]
    np.testing.assert_array_equal(layers[0][0, :3], model.embedding[[3, 3, 5]])
    np.testing.assert_allclose(layers[3], layers[0] @ model.blocks[0].weight @ model.blocks[1].weight @ model.blocks[2].weight, rtol=1e-12)
    assert not any(block.before or block.after for block in model.blocks)
    printed = program_json("propagation", "measure", folder, "--mask", folder / "mask.npy")
    assert column(printed, "q") == propagation.measure(layers, mask=mask).q.tolist()
    assert len(printed["attention"]) == 6
    saving.main(["a-model", str(texts), str(folder), "--tokens", "5", "--no-attention"])
    assert not list(folder.glob("attention_*.npy")) and (folder / "layer_3.npy").exists()


def test_activations_of_a_model_of_pytorch(tmp_path):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    saving = module_of("save_activations")
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 3, enable_nested_tensor=False).eval()
    with saving.record(model.layers) as runs, torch.no_grad():
        output = model(torch.randn(4, 6, 16))
    saving.save(tmp_path, saving.joined(runs))
    np.testing.assert_array_equal(np.load(tmp_path / "layer_3.npy"), output.numpy())
