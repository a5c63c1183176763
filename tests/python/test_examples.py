"""The scripts of examples/python."""

import importlib.util
import pathlib

import numpy as np
import pytest

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
