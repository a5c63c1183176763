"""scripts/new-layer, new-nonlinearity and new-experiment: what they write, and what they refuse; and scripts/test-one.sh."""
import importlib.util
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

PROJECT = pathlib.Path(__file__).resolve().parents[2]
# What the scripts read and change; the whole project would take seconds to copy.
COPIED = (".clang-format", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "README.md", "SECURITY.md", "bench/CMakeLists.txt", "docs/experiments.md",
          "docs/experiments/*.md", "docs/experiments/programs", "include/widelimit/kernels.hpp", "include/widelimit/layers", "include/widelimit/numerics",
          "python/widelimit/__init__.py", "scripts", "src/layers", "src/numerics", "tests/layers", "tests/numerics", "tests/python/test_re*.py",
          "tests/kernel/backends/reference/naive_activations.cpp")
LONGEST = "a_name_that_is_as_long_as_names_may_bexx"
SCRIPTS = ("new-layer", "new-nonlinearity", "new-experiment")


def times(project):
    """When each file was written: enough to see that none was, and much less to read."""
    return {str(path): path.stat().st_mtime_ns for folder in ("src", "include", "tests", "docs") for path in (project / folder).rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    for path in (path for pattern in COPIED for path in PROJECT.glob(pattern)):
        copy = folder / path.relative_to(PROJECT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, copy, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(path, copy)
    for name in ("data", "docs/experiments/data", "docs/experiments/infinite-attention"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def project(original, tmp_path):
    """A copy of the project as far as these scripts know it."""
    shutil.copytree(original, tmp_path / "copy")
    return tmp_path / "copy"


def call(project, script, *arguments):
    return subprocess.run([sys.executable, str(project / "scripts" / script), *arguments], capture_output=True, text=True)


def texts(project):
    return {path.relative_to(project): path.read_bytes() for path in project.rglob("*") if path.is_file() and "__pycache__" not in path.parts}


def house_breaches(project, written):
    """What check-house.py says of these files; of the whole it knows more, which the copy lacks."""
    spec = importlib.util.spec_from_file_location("check_house", PROJECT / "scripts/check-house.py")
    house = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(house)
    lines_of = {pathlib.Path(path): (project / path).read_text().splitlines() for path in written}
    sources = {path: lines for path, lines in lines_of.items() if path.suffix in (".cpp", ".hpp")}
    found = [breach for breach in house.include_breaches(project, sources) if not breach.startswith("CONTRIBUTING.md")]
    for path, lines in sources.items():
        found += [*house.size_breaches(path, lines), *house.test_breaches(project, path, lines)]
        found += [*house.member_breaches(path, lines), *house.output_breaches(path, lines)] if path.parts[0] != "tests" else []
    for path, lines in lines_of.items():
        found += house.page_breaches(path, lines) if path.suffix == ".md" else []
    return found


def untested(project):
    """Headers without a test of their own."""
    return subprocess.run(["sh", str(project / "tests/headers/tested.sh"), str(project)], capture_output=True, text=True).stdout


def page_breaches(project):
    """What page_structure.py finds: also what the copy lacks."""
    found = subprocess.run([sys.executable, str(project / "docs/experiments/programs/page_structure.py")], capture_output=True, text=True)
    return {re.sub(r":\d+:", ":", line) for line in found.stdout.splitlines()}


@pytest.mark.parametrize("name", ["x", LONGEST])
def test_what_is_written_passes_the_checks_and_is_listed(project, name):
    before, breaches = texts(project), (page_breaches(project), untested(project))
    names = [name, *(name[:39] + end for end in "yz"), name]
    for script, made in zip((SCRIPTS[0], SCRIPTS[1], SCRIPTS[1], SCRIPTS[2]), (names[0], names[1], ("--formula", names[2]), names[3])):
        made = made if isinstance(made, tuple) else (made,)
        done = call(project, script, *made)
        assert done.returncode == 0, done.stderr
        for path in re.findall(r"^(?:new    |changed) (\S+)$", done.stdout, re.MULTILINE):
            assert (project / path).read_bytes() != before.get(pathlib.Path(path)), path
        assert call(project, script, *made).returncode == 1
    after = texts(project)
    written = {str(path) for path in after if after[path] != before.get(path)}
    assert written >= {f"src/layers/{name}.cpp", f"include/widelimit/layers/{name}.hpp", f"tests/layers/{name}_test.cpp", "src/layers/kinds.cpp",
                       "src/layers/activations.cpp", "src/numerics/closed_forms.cpp", "tests/numerics/CMakeLists.txt", f"docs/experiments/programs/{name}.py", "docs/experiments.md"}
    assert f"\n  {name}.cpp\n" in (project / "src/layers/CMakeLists.txt").read_text()
    assert f"\n  {name}_test.cpp\n" in (project / "tests/layers/CMakeLists.txt").read_text()
    assert house_breaches(project, written) == []
    assert (page_breaches(project), untested(project)) == breaches
    if shutil.which("clang-format"):
        sources = [path for path in written if path.endswith((".cpp", ".hpp"))]
        subprocess.run(["clang-format", "--dry-run", "--Werror", *sources], cwd=project, check=True)
    for path in written:
        if path.endswith(".py"):
            compile((project / path).read_text(), path, "exec")


@pytest.mark.parametrize("script, name, message", [
    *((script, name, "expected the name of") for script in SCRIPTS
      for name in ("", "9lives", "a-b", "Upper", "two__lines", "tail_", "class", "lambda", "a" * 41, "../up", "é")),
    ("new-layer", "dense", "there is a layer dense already: src/layers/dense.cpp"),
    ("new-layer", "tanh", "there is a layer tanh already: src/layers/activations.cpp"),
    ("new-layer", "activation_of", "there is a function activation_of already"),
    ("new-layer", "covariance_roots", "src/layers/covariance_roots.cpp is there already"),
    ("new-nonlinearity", "gabor", "there is a layer gabor already"),
    ("new-nonlinearity", "exponential", "there is a function exponential already"),
    ("new-nonlinearity", "memory", "src/numerics/memory.cpp is there already"),
    ("new-experiment", "reviews", "is there already"),
    ("new-experiment", "infinite_attention", "docs/experiments/infinite-attention is there already"),
    ("new-experiment", "random", "random is a module"),
])
def test_names_that_exist_or_are_none_are_refused_and_nothing_is_written(original, script, name, message):
    before = times(original)
    done = call(original, script, name)
    assert done.returncode == 1 and done.stdout == "" and message in done.stderr and done.stderr.startswith(f"{script}: "), done.stderr
    assert times(original) == before


def test_no_name_and_a_file_of_another_form_are_refused(project):
    assert "expected one NAME, got 0 arguments" in call(project, "new-layer").stderr
    assert "expected one NAME, got 2 arguments" in call(project, "new-layer", "a", "b").stderr
    kinds = project / "src/layers/kinds.cpp"
    kinds.write_text(kinds.read_text().replace("add_dropout_kinds", "add_others"))
    before = times(project)
    assert "src/layers/kinds.cpp: expected one place" in call(project, "new-layer", "squared_norm").stderr
    assert times(project) == before


def test_a_new_experiment_fails_until_it_is_filled_in(project):
    assert call(project, "new-experiment", "coins").returncode == 0
    (project / "pyproject.toml").write_text("")

    def passes():
        return subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/python/test_coins.py"], cwd=project,
                              capture_output=True, text=True)

    assert re.search(r"^2 failed", passes().stdout, re.MULTILINE)
    program, page, subjects = project / "docs/experiments/programs/coins.py", project / "docs/experiments/coins.md", project / "docs/experiments.md"
    text = re.sub(r"    raise NotImplementedError.*", "    return random.integers(2)", program.read_text())
    text = text.replace('"""Fill in: the question that this experiment answers, in one sentence.', '"""How often do coins fall on their heads?')
    program.write_text(text.replace("One draw of a case. Fill in.", "One draw.").replace('("fill in",)', '("coin",)'))
    subprocess.run([sys.executable, str(program), "compute", "4"], check=True)
    table = subprocess.run([sys.executable, str(program), "summary"], check=True, capture_output=True, text=True).stdout
    page.write_text("# Coins\n\n" + table)
    assert re.search(r"^1 failed, 1 passed", passes().stdout, re.MULTILINE)
    subjects.write_text(subjects.read_text().replace("fill in: the subject", "coins"))
    done = passes()
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("arguments, message", [
    ((), "expected BUILD ROOM [FILE [CASE]], got 0 arguments"),
    (("release", ""), "expected a folder of tests/ with tests in C++, one of: "),
    (("release", "python"), "got python"),
    (("release", "layers", "dense"), "there is no dense.cpp in tests/layers"),
    (("none", "layers", "dense_test"), "build/none is not configured: cmake --preset none -G Ninja"),
])
def test_one_test_says_what_it_does_not_find(arguments, message):
    done = subprocess.run([str(PROJECT / "scripts/test-one.sh"), *arguments], capture_output=True, text=True)
    assert done.returncode == 1 and message in done.stderr, done.stderr


def test_hooks_and_the_workflow_call_what_is_there():
    hooks = (PROJECT / ".pre-commit-config.yaml").read_text()
    called = re.findall(r"(?:scripts|docs)/[\w./-]+\.py", hooks)
    assert len(called) == 5 and all((PROJECT / path).exists() for path in called), called
    workflow, makefile = (PROJECT / ".github/workflows/tests.yml").read_text(), (PROJECT / "Makefile").read_text()
    assert (PROJECT / ".ci/run").exists() and "run: .ci/run" in workflow and "secrets." not in workflow
    targets = {*re.findall(r"run: make ([\w-]+)", workflow), *re.search(r"target: \[(.*)\]", workflow)[1].split(", ")}
    assert targets == {"test", "test-asan", "test-tsan"} and all(f"\n{target}:" in makefile for target in targets)
