"""Tables of the experiments' pages are those of the committed files."""

import argparse
import importlib
import pathlib
import sys

import numpy as np
import pytest

import widelimit
from widelimit import layers

PROGRAMS = pathlib.Path(__file__).parent.parent.parent / "docs/experiments/programs"


@pytest.fixture
def programs(monkeypatch):
    """import_module that finds the experiments' programs, and forgets them afterwards."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(PROGRAMS))
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if (PROGRAMS / f"{name}.py").exists():
            del sys.modules[name]


def test_pages_have_what_their_files_make(programs):
    assert list(programs("check_pages").missing()) == []


def test_every_line_of_a_table_is_made_by_a_file(programs):
    assert list(programs("check_pages").without_file()) == []


def test_sentences_have_the_numbers_of_their_files(programs):
    assert programs("prose").missing() == []


def test_the_coverage_of_the_papers_stands(programs):
    coverage = programs("coverage")
    assert coverage.missing() == []
    assert len(programs("tables").rows_of("coverage")) >= 60


@pytest.mark.parametrize("column, value, complaint", [
    ("agrees", "yes: the largest difference is .0219 in m", ".0219 stands neither in its rows nor on its page"),
    ("agrees", "yes: so it is", "says that it agrees or not without a number"),
    ("agrees", "surely: .0214", "expected one of yes, partly, no, open, nothing"),
    ("agrees", "open:", "expected one of yes, partly, no, open, nothing"),
    ("by", "heads.py sgdd", "heads.py has no sgdd"),
    ("by", "head.py sgd", "there is no program head.py"),
    ("by", "widelimit heads compares", "there is no command heads compares"),
    ("by", "heads_sgd", "there is no program heads_sgd"),
    ("rows", "data/heads_sgdd.csv", "there is no heads_sgdd.csv"),
    ("rows", "head-specialization.md#what-came-in", "head-specialization.md has no heading what-came-in"),
    ("rows", "", "has a verdict without rows or a page"),
    ("pictures", "head-specialization/sgdd.png", "there is no picture head-specialization/sgdd.png"),
])
def test_what_is_wrong_of_a_row_of_the_coverage_is_found(programs, monkeypatch, column, value, complaint):
    coverage = programs("coverage")
    row = {"paper": "a paper", "item": "figure 1", "by": "heads.py sgd; widelimit heads compare", "here": "D = 10,000", "there": "D = 10,000",
           "agrees": "yes: the largest difference is .0214 in m", "rows": "data/heads_sgd.csv", "pictures": "head-specialization/sgd.png", "hours": "rows"}
    monkeypatch.setattr(coverage, "rows_of", lambda name: [row])
    assert coverage.missing() == []
    row[column] = value
    assert any(complaint in found for found in coverage.missing())


def test_a_number_that_no_file_makes_is_found(programs, tmp_path, monkeypatch):
    check, page = programs("check_pages"), programs("tables").EXPERIMENTS / "finite-networks.md"
    changed = tmp_path / page.name
    changed.write_text(page.read_text().replace("| softmax | .77 |", "| softmax | .78 |"))
    monkeypatch.setattr(check, "PAGES", [changed])
    rows = [(changed, name, line) for made_page, name, line in check.made() if made_page == page]
    monkeypatch.setattr(check, "made", lambda: rows)
    assert [line for _, line in check.without_file()] == [next(line for line in changed.read_text().splitlines() if ".78 |" in line)]
    assert [line for _, _, line in check.missing()] == [line for line in page.read_text().splitlines() if line.startswith("| softmax | .77 |")]


def test_every_file_has_its_head(programs):
    tables = programs("tables")
    for file in tables.DATA.rglob("*.csv"):
        head, columns, rows = tables.read(file)
        assert head.startswith("# ") and "widelimit" in head and ("seed" in head or "draw" in head), file.name
        assert rows and {len(row) for row in rows} == {len(columns)}, file.name
        assert "version" in columns or any(f"widelimit {version}" in head for version in ("0.1", "0.2", "0.3")), file.name


def test_leave_one_out_of_learning_curves_is_that_of_refits(programs):
    curves = programs("learning_curves")
    random = np.random.default_rng(1)
    x, targets = random.normal(size=(12, 3)), random.normal(size=(12, 2))
    square = np.exp(-((x[:, None] - x) ** 2).sum(axis=2))
    found = curves.LeaveOneOut(square, targets, 0.1)
    for i in range(12):
        others = np.arange(12) != i
        inverse = np.linalg.inv(square[np.ix_(others, others)] + 0.1 * np.eye(11))
        assert found.residual[i] == pytest.approx(targets[i] - square[i, others] @ inverse @ targets[others], rel=1e-9)
        assert found.variance[i] == pytest.approx(1.1 - square[i, others] @ inverse @ square[others, i], rel=1e-9)


def test_search_uphill_finds_the_best_of_all(programs):
    curves = programs("learning_curves")
    random = np.random.default_rng(2)
    x = random.normal(size=(60, 4))
    square, targets = np.exp(-((x[:, None] - x) ** 2).sum(axis=2)), np.sin(x[:, :1]) + 0.3 * random.normal(size=(60, 1))
    best, place = curves.best_leave_one_out(square, targets)
    assert best.density == max(curves.LeaveOneOut(square, targets, r).density for r in curves.REGULARISERS)
    for start in (0, 8, 16):
        assert curves.best_leave_one_out(square, targets, start)[1] == place


NETWORK = widelimit.Network([layers.conv([3, 3]), layers.relu(), layers.global_average_pool(), layers.dense()])


def computer_of(programs, tmp_path, device="cpu", minutes=None):
    parser, computing = argparse.ArgumentParser(), programs("computing")
    computing.add_arguments(parser)
    arguments = ["--device", device, "--out", str(tmp_path / "rows")] + ([] if minutes is None else ["--minutes", str(minutes)])
    return computing.Computer(parser.parse_args(arguments))


def test_tiles_are_the_kernels_and_are_computed_once(programs, tmp_path):
    random = np.random.default_rng(3)
    x, others = (random.normal(size=(n, 4, 4, 2)).astype(np.float32) for n in (7, 5))
    computer, computed = computer_of(programs, tmp_path), []
    gram = computer.gram
    computer.gram = lambda network, *inputs: computed.append([len(some) for some in inputs]) or gram(network, *inputs)
    tiles = programs("computing").Tiles(computer, NETWORK, tmp_path / "tiles", x, others, side=3)
    assert tiles.pairs() == 7 * 8 / 2 + 5 * 7
    square, cross = tiles.compute()
    assert np.allclose(square, np.stack(widelimit.gram(NETWORK, x)[:2]), rtol=1e-5)
    assert np.allclose(cross, np.stack(widelimit.gram(NETWORK, others, x)[:2]), rtol=1e-5)
    assert tiles.pairs() == 0 and len(computed) == 6 + 6
    (tmp_path / "tiles" / "test_3_3.npz").unlink()
    assert tiles.pairs() == 2 * 3
    for again, first in zip(tiles.compute(), (square, cross)):
        assert np.array_equal(again, first)
    assert computed[12:] == [[2, 3]]
    # Fewer inputs took part of a tile; with more of them that tile is not taken.
    fewer = programs("computing").Tiles(computer, NETWORK, tmp_path / "fewer", x[:4], others[:0], side=3)
    fewer.compute()
    more = programs("computing").Tiles(computer, NETWORK, tmp_path / "fewer", x, others[:0], side=3)
    assert more.pairs() == 7 * 8 / 2 - 3 * 4 / 2
    assert np.array_equal(more.compute()[0], square)


def test_a_cell_without_time_is_left_out_and_a_device_that_cannot_is_said(programs, tmp_path, capsys):
    x, computing = np.ones((4, 4, 4, 2), np.float32), programs("computing")
    late = computer_of(programs, tmp_path, minutes=0)
    with pytest.raises(SystemExit) as left:
        late.begin("a cell", [(NETWORK, x, 10)])
    assert left.value.code == computing.TOO_LONG and "a cell: 10 pairs, about" in capsys.readouterr().err
    unable = computer_of(programs, tmp_path, "pocl")

    def gram(network, *inputs):
        raise widelimit.Error("layers[2] (attention)")

    unable.gram = gram
    with pytest.raises(SystemExit) as left:
        unable.begin("a cell", [(NETWORK, x, 10)])
    said = capsys.readouterr().err
    assert left.value.code == computing.UNABLE and "layers[2] (attention)" in said and "no row" in said
    on_processor = computer_of(programs, tmp_path)
    on_processor.gram = gram
    with pytest.raises(widelimit.Error):
        on_processor.begin("a cell", [(NETWORK, x, 10)])


def test_a_table_goes_on_where_it_was_and_names_versions(programs, tmp_path):
    tables = programs("tables")
    computer = computer_of(programs, tmp_path)
    table = tables.Table("cases", ("name", "n"), ("value",), "seed 1", computer)
    assert table.lacks("a, b", 1)
    table.append(("a, b", 1, 0.5))
    assert not tables.Table("cases", ("name", "n"), ("value",), "seed 1", computer).lacks("a, b", 1)
    _, columns, rows = tables.read(computer.out / "cases.csv")
    assert columns == ["name", "n", "value", "seconds", "version", "machine"]
    assert rows[0][:3] == ["a, b", "1", "0.5"] and rows[0][-2:] == [widelimit.__version__, computer.machine]
    with pytest.raises(ValueError, match="expected columns"):
        tables.Table("cases", ("name", "m"), ("value",), "seed 1", computer)
    # A file of older rows without these columns says in its first line where the new ones begin.
    (computer.out / "old.csv").write_text("# program; widelimit 0.1.0; machine; seed 1\nname,value,seconds\na,1,2\n")
    tables.Table("old", ("name",), ("value",), "seed 1", computer).append(("b", 2))
    first, _, rows = tables.read(computer.out / "old.csv")
    assert first == f"# program; widelimit 0.1.0, from row 2 on {widelimit.__version__}; machine; seed 1"
    assert [row[:2] for row in rows] == [["a", "1"], ["b", "2"]]


@pytest.fixture
def cifar(tmp_path):
    """Files of CIFAR-10's layout: 40 training and 10 test images of noise."""
    random, folder = np.random.default_rng(5), tmp_path / "cifar"
    folder.mkdir()
    for name, count in ("data_batch_1.bin", 40), ("test_batch.bin", 10):
        records = random.integers(0, 256, size=(count, 3073), dtype=np.uint8)
        records[:, 0] = np.arange(count) % 10
        records.tofile(folder / name)
    return folder


def test_programs_append_rows_and_leave_out_those_they_have(programs, cifar, tmp_path, monkeypatch):
    out, work = tmp_path / "rows", tmp_path / "work"

    def run(name, *arguments):
        monkeypatch.setattr(sys, "argv", [f"{name}.py", *map(str, arguments), "--data", str(cifar), "--work", str(work), "--out", str(out)])
        programs(name).main()
        return programs("tables").read(out / f"{name}.csv")[2]

    monkeypatch.setitem(programs("small_cifar10").NETWORKS, "conv-gap-14", ("conv-gap", {"depth": 1}))
    small = ("small_cifar10", "conv-gap-14", 0, "--size", 4, "--train", 20, "--test", 10)
    rows = run(*small)
    assert [(row[3], row[6]) for row in rows] == [("10", "nngp"), ("10", "ntk"), ("20", "nngp"), ("20", "ntk")]
    assert run(*small) == rows
    on_device = run(*small[:-4], "--train", 10, "--test", 5, "--device", "pocl")
    assert [row[-1] for row in on_device[4:]] == [computer_of(programs, tmp_path, "pocl").machine] * 2
    assert len(run(*small, "--flips")) == 10
    depth = ("attention_depth", "gap", 1, 0, "--size", 4, "--train", 10, "--validation", 10, "--test", 10)
    rows = run(*depth)
    assert len(rows) == 2 and run(*depth) == rows
    assert all(int(row[10]) == sum(bin(byte).count("1") for byte in bytes.fromhex(row[11])) for row in rows)
    with pytest.raises(SystemExit, match="too few"):
        run("attention_depth", "gap", 1, 0, "--size", 4, "--train", 100, "--validation", 10, "--test", 10)
    scale = ("residual_scale", 1, 1, "--size", 4, "--train", 10, "--validation", 10, "--test", 5)
    rows = run(*scale)
    assert [(row[0], row[7]) for row in rows] == [(scale, kernel) for scale in ("published", "scaled") for kernel in ("nngp", "ntk")]
    assert run(*scale) == rows
    with pytest.raises(SystemExit, match="too few"):  # images of a third draw
        run("residual_scale", 1, 2, "--size", 4, "--train", 10, "--validation", 10, "--test", 5)
    assert len(run("hyperparameters", "search", "--size", 4, "--train", 10, "--validation", 10, "--settings", 2, "--depth", 1)) == 4


def test_draws_of_their_own_images_are_compared_image_by_image(programs, monkeypatch):
    scale = programs("residual_scale")
    published, scaled = np.array([[1, 1, 0, 0, 1], [1, 0, 0, 0, 0.0]]), np.array([[1, 0, 0, 1, 0], [0, 0, 0, 0, 0.0]])
    difference, error = scale.difference_and_error(published - scaled)
    each = 100 * np.array([0, 1, 0, -1, 1, 1, 0, 0, 0, 0.0])
    assert difference == pytest.approx(20) and error == pytest.approx(each.std(ddof=1) / np.sqrt(10))
    monkeypatch.setattr(scale, "right_answers", lambda: {(1, "nngp"): {"published": dict(enumerate(published)), "scaled": dict(enumerate(scaled))}})
    assert list(scale.summary())[2].endswith("| 40.0 % | 20.0 % | +20.0 ± 20.0 | -234.1 to +274.1 | 3, 1 |")


def test_files_of_examples_are_kept_with_their_head(programs, tmp_path, monkeypatch):
    examples, tables = programs("example_tables"), programs("tables")
    (tmp_path / "out").mkdir()
    (tmp_path / "rows").mkdir()
    (tmp_path / "out" / "run.json").write_text(
        '{"widelimit": "0.2.0", "command": "./propagation_figure3 --out /somewhere", "arguments": ["--out", "/somewhere", "--networks", "32"]}')
    (tmp_path / "out" / "figure3.csv").write_text("block,ratio_theory,ratio,ratio_error\n2,1.37,1.41,0.02\n")
    monkeypatch.setattr(examples, "DATA", tmp_path / "rows")
    examples.keep(tmp_path / "out")
    # Another example's file of this name is not taken for it.
    assert [file.name for file in (tmp_path / "rows").iterdir()] == ["propagation_groups.csv"]
    head, columns, rows = tables.read(tmp_path / "rows" / "propagation_groups.csv")
    assert head == f"# propagation_figure3 --networks 32; widelimit 0.2.0; {tables.processor()}; seed 0"
    assert rows == [["2", "1.37", "1.41", "0.02"]]


def test_inducing_points_append_a_row_a_case(programs, cifar, tmp_path, monkeypatch):
    points, tables = programs("inducing_points"), programs("tables")
    for module in points, tables:
        if hasattr(module, "DATA"):
            monkeypatch.setattr(module, "DATA", tmp_path)
    monkeypatch.setattr(points, "CASES", {"NTK": ("--network", "fcn", "--steps", "2", "--batch", "5", "--per-class", "2")})
    monkeypatch.setattr(points, "COUNTS", {"fcn": (10, 20), "conv": (10,)})
    for what in ("distil", "compare", "distil"):
        monkeypatch.setattr(sys, "argv", ["inducing_points.py", what, "--data", str(cifar)])
        points.main()
    _, _, (row,) = tables.read(tmp_path / "inducing_points.csv")
    mean, least, greatest, first, distilled = map(float, row[2:7])
    assert row[0] == "NTK" and least <= mean <= greatest and least <= first <= greatest and 0 <= distilled <= 1
    assert [row[:2] for row in tables.read(tmp_path / "inducing_points_compared.csv")[2]] == [["fcn", "10"], ["fcn", "20"], ["conv", "10"]]


def test_mirror_images_follow_their_images(programs):
    images, labels = np.arange(2 * 2 * 3).reshape(2, 2, 3, 1), np.array([4, 7])
    both, of_both = programs("small_cifar10").with_mirrors(images, labels)
    assert np.array_equal(both[0::2], images) and np.array_equal(both[1::2], images[:, :, ::-1]) and list(of_both) == [4, 4, 7, 7]


def test_trained_transformers_have_the_gradients_of_the_theory_before_training(programs):
    jax = pytest.importorskip("jax")
    train, propagation = programs("train_transformers"), widelimit.propagation
    tokens, width, depth, alpha, sigma_w = 8, 128, 4, 0.4, 2.0
    network = propagation.Parameters(tokens=tokens, alpha_A=alpha, alpha_M=alpha, sigma_w=sigma_w)
    theory = propagation.exponents(network, depth)
    _, blocks = train.network_of(jax, "cowsik", False)
    gradient_of = jax.jit(jax.grad(lambda start, parameters, direction: (blocks(parameters, start, alpha)[0] * direction).sum()))
    random, ratios = np.random.default_rng(7), []
    for seed in range(24):
        x = np.zeros((1, tokens, width), np.float32)
        parameters = train.made_parameters(jax, "cowsik", sigma_w, depth, width, x, 10, seed, alpha)
        token = random.normal(size=width)
        start = np.tile(token / np.sqrt((token**2).mean()) * np.sqrt(theory.q_star), (1, tokens, 1)).astype(np.float32)
        direction = random.normal(size=start.shape).astype(np.float32)
        gradient = gradient_of(start, parameters, direction)
        ratios.append(float((gradient**2).sum() / (direction**2).sum()))
    error = np.std(ratios, ddof=1) / np.mean(ratios) / len(ratios) ** 0.5
    assert error < 0.08
    assert np.log(np.mean(ratios)) == pytest.approx(depth * theory.lambda_g, abs=3.5 * error)


@pytest.mark.parametrize("kind, alpha, name", [("shaped", 0.6, "shaped_transformer"), ("shaped_start", 0.6, "shaped_transformer"), ("unshaped", 0.4, "unshaped"),
                                               ("pre_ln", 0.5**0.5, "unshaped_pre_ln"), ("post_ln", 0.3, "unshaped_post_ln")])
def test_blocks_to_train_are_the_networks_of_the_theory(programs, kind, alpha, name):
    """Correlations of tokens behind the last block are those of networks that the library draws, which have other code throughout."""
    jax = pytest.importorskip("jax")
    train, trained, sde = programs("train_transformers"), programs("trained_transformers"), widelimit.sde
    tokens, width, depth, networks = 4, 32, 4, 160
    start = np.array([[1.0, 0.5, 0.2, -0.1], [0.5, 1.0, 0.3, 0.0], [0.2, 0.3, 1.0, 0.4], [-0.1, 0.0, 0.4, 1.0]])
    network = sde.Network(name, width, None if kind == "pre_ln" else alpha**2)
    theory = trained.correlations(sde.sample_networks(network, start, [depth], samples=4000 if kind != "post_ln" else 400, seed=3).covariances[-1])
    blocks = jax.jit(lambda parameters, x: train.network_of(jax, kind, False)[1](parameters, x, alpha)[0])
    random, found = np.random.default_rng(5), []
    for seed in range(networks):
        axes = np.linalg.qr(random.normal(size=(width, tokens)))[0]
        x = (width**0.5 * np.linalg.cholesky(start) @ axes.T).astype(np.float32)[None]
        after = np.asarray(blocks(train.made_parameters(jax, kind, 1.0, depth, width, x, 10, seed, alpha), x)[0], float)
        found.append(after @ after.T / width)
    found = trained.correlations(np.array(found))
    error = (found.var(ddof=1) / networks + theory.var(ddof=1) / len(theory)) ** 0.5
    assert error < 0.03 and abs(theory.mean() - start[np.triu_indices(4, 1)].mean()) > (0 if train.is_shaped(kind) else 0.1)
    assert found.mean() == pytest.approx(theory.mean(), abs=3.5 * error)
    assert np.median(found) == pytest.approx(np.median(theory), abs=5 * error)


def test_the_factor_of_shaped_scores_may_stand_in_the_initial_weights(programs):
    jax = pytest.importorskip("jax")
    train = programs("train_transformers")
    x = np.random.default_rng(2).normal(size=(2, 5, 32)).astype(np.float32)
    after = [train.network_of(jax, kind, False)[1](train.made_parameters(jax, kind, 1.0, 4, 32, x, 10, 1, 0.6), x, 0.6)[0]
             for kind in ("shaped", "shaped_start")]
    assert np.allclose(*after, atol=1e-4) and not np.allclose(after[0], x, atol=0.1)


def test_tokens_to_train_on_have_the_covariance_that_theories_start_from(programs):
    jax = pytest.importorskip("jax")
    train = programs("train_transformers")
    x = np.random.default_rng(4).normal(size=(2, 6, 30)).astype(np.float32)
    x[:, 3] = x[:, 2] + 0.1 * x[:, 3]
    width, networks, found = 512, 16, []
    for seed in range(networks):
        parameters = train.made_parameters(jax, "cowsik", 1.0, 1, width, x, 10, seed, 0.1)
        tokens = np.asarray(train.network_of(jax, "cowsik", False)[0](parameters, x), float)
        found.append(tokens @ tokens.transpose(0, 2, 1) / width)
    for one, covariance in zip(x, np.mean(found, axis=0)):
        assert np.allclose(covariance, train.start_covariance(one), atol=5 / (width * networks) ** 0.5)


def test_what_theories_say_of_initialisations(programs):
    trained = programs("trained_transformers")
    starts = [widelimit.sde.start(tokens=4, rho0=0.3), widelimit.sde.start(tokens=4, rho0=0.1)]
    keeps, error, exploded = trained.theory_of("shaped", 0.1, 1.0, 4, 32, starts, False)
    assert abs(keeps - 0.2) < 4 * error and error < 0.02 and exploded == 0
    assert trained.theory_of("shaped", 0.9, 1.0, 200, 32, starts, False)[2] > 0
    assert trained.theory_of("cowsik", 0.3, 0.5, 16, 32, starts, False)[0] > 0.75 > trained.theory_of("cowsik", 0.3, 3.5, 16, 32, starts, False)[0] > 0.2
    assert trained.theory_of("pre_ln", 0.5, 1.0, 4, 32, starts, False) is None
    assert 0.3 < trained.theory_of("pre_ln", 0.7071, 1.0, 4, 32, starts, False)[0] < trained.theory_of("post_ln", 0.7071, 1.0, 4, 32, starts, True)[0]


def test_tests_of_normality_hold_at_the_level_of_all(programs):
    signal = programs("signal_propagation")
    assert signal.rejected([{"shapiro_wilk_p": str(p)} for p in (0.03, 1e-5, 0.012, 0.9)]).tolist() == [False, True, True, False]
    assert not signal.rejected([{"shapiro_wilk_p": str(p)} for p in (0.013, 0.02, 0.03, 0.9)]).any()
    assert signal.zero(lambda gain: gain - 2.5) == pytest.approx(2.5) and np.isnan(signal.zero(lambda gain: 1.0))
    skewed = {(shape, value): draw(200_000, np.random.default_rng(1)) for shape, value, draw in signal.alternatives()}
    for (shape, value), numbers in skewed.items():
        if shape == "skewness":
            assert abs(signal.skewness(numbers)) == pytest.approx(value, abs=0.02)
        else:
            assert signal.excess_kurtosis(numbers) == pytest.approx(value, abs=0.08)


def test_blocks_of_strength_almost_nothing_keep_their_tokens(programs):
    jax = pytest.importorskip("jax")
    train = programs("train_transformers")
    x = np.random.default_rng(1).normal(size=(2, 5, 32)).astype(np.float32)
    for kind in "shaped", "unshaped", "pre_ln":
        parameters = train.made_parameters(jax, kind, 1.0, 3, 32, x, 10, 1, 1e-4)
        found, entropies = train.network_of(jax, kind, True)[1](parameters, x, 1e-4)
        assert np.allclose(found, x, atol=0.01) and not np.array_equal(found, x)
        assert entropies.shape == (3,) and np.all(entropies > 0) and np.all(entropies < np.log(5))
    shaped = train.made_parameters(jax, "shaped", 1.0, 1, 32, x, 10, 1, 0.5)["blocks"]
    assert (shaped["g1"], shaped["g2"], shaped["gamma"]) == (1, 1, 0.5)


def test_grids_of_training_come_in_an_order_that_a_stop_may_cut(programs):
    train = programs("train_transformers")
    given = argparse.Namespace(kinds=["cowsik", "post_ln"], alphas=[0.1, 0.5], sigmas=[1.0, 2.0], depths=[4, 8], widths=[32], seeds=[1, 2, 3])
    found = train.cases(given)
    assert len(found) == len(set(found)) == (2 * 2 * 2 + 2 * 2) * 3 and found == train.cases(given)
    points = [case[:-1] for case in found]
    assert points[::3] == points[1::3] == points[2::3] and points != sorted(points)
    with pytest.raises(SystemExit, match="needs the folder"):
        train.inputs_of("mnist", None)
    x, y = train.inputs_of("copy", None)
    assert x.shape == (train.TRAIN + train.TEST, 15, 16) and np.array_equal(x[:, 8:].argmax(2), y[:, :7])
    assert np.array_equal(x[:, :8].argmax(2), y)
    images = np.random.default_rng(2).normal(size=(3, 4, 6, 2))
    patch = train.patches(images, 2)
    assert patch.shape == (3, 6, 8) and np.allclose(patch.mean((1, 2)), 0, atol=1e-6) and np.allclose(patch.std((1, 2)), 1, atol=1e-5)
    raw = images[1, 2:4, 4:6].reshape(-1)
    assert np.allclose(np.corrcoef(patch[1, 5], raw), 1)


def test_predictions_of_trained_transformers_do_not_see_what_is_left_out(programs):
    trained = programs("trained_transformers")
    networks = object.__new__(trained.Networks)
    random = np.random.default_rng(3)
    networks.points, networks.classes, networks.count = np.repeat(np.arange(12), 3), 10, 12
    alpha = np.repeat(random.uniform(0.1, 0.9, 12), 3)
    networks.rows = [{"alpha": str(value)} for value in alpha]
    networks.loss = 0.2 + alpha + alpha**2 / 5
    folds = networks.folds()
    assert all(len(set(folds[networks.points == point])) == 1 for point in range(12)) and set(folds) == set(range(trained.FOLDS))
    assert np.allclose(networks.out_of_sample(networks.quadratic("alpha"), folds), networks.loss, atol=0.02)
    away, before = folds == 0, networks.out_of_sample(networks.quadratic("alpha"), folds)
    networks.loss = np.where(away, 5.0, networks.loss)
    assert np.allclose(networks.out_of_sample(networks.quadratic("alpha"), folds)[away], before[away])
    networks.loss = np.arange(36.0)
    assert networks.of_other_seeds()[:3].tolist() == [1.5, 1.0, 0.5]
