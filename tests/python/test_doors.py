"""One problem through every door: gp, fit and predict, Model, the estimators, and models that one door saved and another one
loads. All say the same choice, means, intervals and probabilities, to bits or 1e-10; Model's are what the others are held to."""

import functools

import pytest

pytest.importorskip("sklearn")

import widelimit
from doors import ALL_DOORS, DOORS, Problem, Refused, by_model, compare

# What a door does not have: {(door, option or (option, value)): why}. A door that refuses what it should not stands in LACKING.
NOT_OFFERED = {
    ("fit", ("kernel", "both")): "a model has one kernel",
    ("fit", ("solver", "distributed")): "a model keeps its factor, of which ranks hold parts that go with them",
    ("estimator", ("kernel", "both")): "a model has one kernel",
    ("estimator", "time"): "scikit-learn's estimators are models after training",
    ("estimator", "criterion"): "the usual one is theirs",
    ("estimator", "validation"): "scikit-learn holds data back itself",
    ("estimator", "solver"): "Model has it",
    ("estimator", "amplitude"): "Model has it",
    ("estimator", "as_they_are"): "Model has it",
    ("estimator", "preprocess"): "pipelines of scikit-learn preprocess",
    ("estimator", ("source", "kept")): "Model has it",
    ("estimator", ("source", "store")): "Model has it",
    ("estimator", "diagonal"): "Model has it",
    ("estimator", "refit"): "scikit-learn holds data back itself",
    ("estimator", "flip"): "scikit-learn has vectors",
    ("estimator", "images"): "scikit-learn has vectors",
}
LACKING = {}
# What a door says otherwise: {(door, why): names of problems}. Each fails as soon as it does not.
DIFFERENCES = {}
CG = {"solver": "cg", "residual": 1e-13}

PROBLEMS = [
    # Numbers: the choice, and what it is among.
    Problem("numbers", "numbers", {}),
    Problem("numbers in float", "numbers", {"precision": "float"}),
    Problem("numbers of trained networks", "numbers", {"kernel": "ntk"}),
    Problem("numbers of trained networks in float", "numbers", {"kernel": "ntk", "precision": "float"}),
    Problem("numbers of both kernels", "numbers", {"kernel": "both"}),
    Problem("numbers at a time", "numbers", {"kernel": "ntk", "time": 5.0}),
    Problem("numbers at several times", "numbers", {"kernel": "ntk", "time": [0.0, 1.0, 20.0]}),
    Problem("numbers with a regulariser", "numbers", {"regulariser": 1e-2}),
    Problem("numbers with candidates", "numbers", {"grid": [1e-4, 3e-3, 2e-1]}),
    Problem("numbers by the evidence", "numbers", {"criterion": "evidence"}),
    Problem("numbers by errors of validation data", "numbers", {"criterion": "mse", "validation": True}),
    Problem("numbers by densities of validation data", "numbers", {"criterion": "nlpd", "validation": True}),
    Problem("numbers of trained networks by validation data", "numbers", {"kernel": "ntk", "criterion": "nlpd", "validation": True}),
    Problem("numbers fitted again with validation data", "numbers", {"criterion": "mse", "validation": True, "refit": True}),
    Problem("trained networks fitted again with validation data", "numbers", {"kernel": "ntk", "validation": True, "refit": True}),
    Problem("classes fitted again with validation data", "three", {"precision": "float", "validation": True, "refit": True}),
    Problem("conjugate gradients fitted again with validation data", "numbers",
            {**CG, "grid": [1e-2, 1e-1, 1.0], "criterion": "mse", "validation": True, "refit": True}),
    Problem("outputs at several times, fitted again", "outputs", {"kernel": "ntk", "time": [2.0, 9.0], "validation": True, "refit": True}),
    Problem("numbers with an amplitude", "numbers", {"amplitude": 2.0}),
    Problem("numbers as they are", "numbers", {"as_they_are": True}),
    # Logarithms of targets.
    Problem("logarithms", "numbers", {"target_transform": "log"}),
    Problem("logarithms in float", "numbers", {"target_transform": "log", "precision": "float"}),
    Problem("logarithms of outputs", "outputs", {"target_transform": "log"}),
    Problem("logarithms of trained networks", "numbers", {"target_transform": "log", "kernel": "ntk"}),
    Problem("logarithms at several times", "numbers", {"target_transform": "log", "kernel": "ntk", "time": [0.0, 9.0]}),
    Problem("logarithms as they are", "numbers", {"target_transform": "log", "as_they_are": True}),
    Problem("logarithms with an amplitude", "outputs", {"target_transform": "log", "amplitude": 2.0}),
    Problem("logarithms fitted again with validation data", "numbers",
            {"target_transform": "log", "criterion": "nlpd", "validation": True, "refit": True}),
    Problem("weighted logarithms", "numbers", {"target_transform": "log", "weights": True}),
    Problem("logarithms of rows that repeat", "numbers", {"target_transform": "log", "counts": 3}),
    Problem("logarithms by conjugate gradients", "numbers", {**CG, "target_transform": "log", "regulariser": 0.1}),
    Problem("logarithms by ranks", "numbers", {"target_transform": "log", "solver": "distributed"}),
    Problem("logarithms of a network that is chosen", "numbers", {"target_transform": "log", "network": "auto"}),
    Problem("relevance for logarithms", "numbers", {"target_transform": "log", "relevance": True}),
    Problem("targets of a network that is chosen", "numbers", {"target_transform": "none", "network": "auto"}),
    Problem("numbers of standardised columns", "numbers", {"preprocess": "channel"}),
    Problem("numbers of five rows", "numbers", {"regulariser": 1e-2}, rows=5),
    Problem("numbers of sixty rows", "numbers", {}, rows=60),
    # Rows of their own noise.
    Problem("weighted numbers", "numbers", {"weights": True}),
    Problem("weighted numbers in float", "numbers", {"weights": True, "precision": "float"}),
    Problem("weighted numbers with a regulariser", "numbers", {"weights": True, "regulariser": 1e-2}),
    Problem("known noise", "numbers", {"noise": True}),
    Problem("known noise of five rows", "numbers", {"noise": True}, rows=5),
    Problem("known noise in float", "numbers", {"noise": True, "precision": "float"}),
    Problem("known noise with an amplitude", "numbers", {"noise": True, "amplitude": 2.0}),
    # Equal rows, which scikit-learn's weights count.
    Problem("counted numbers", "numbers", {"counts": 3}, rows=30),
    Problem("counted numbers of trained networks", "numbers", {"counts": 3, "kernel": "ntk"}, rows=30),
    Problem("counted classes", "three", {"counts": 4, "regulariser": 0.1}, rows=30),
    # Several outputs.
    Problem("outputs", "outputs", {}),
    Problem("outputs in float", "outputs", {"precision": "float"}),
    Problem("outputs of trained networks", "outputs", {"kernel": "ntk"}),
    Problem("outputs at a time", "outputs", {"kernel": "ntk", "time": 3.0}),
    Problem("outputs with weights", "outputs", {"weights": True}),
    Problem("outputs with known noise", "outputs", {"noise": True}),
    # Classes.
    Problem("two classes", "two", {}),
    Problem("two classes in float", "two", {"precision": "float"}),
    Problem("two classes of trained networks", "two", {"kernel": "ntk"}),
    Problem("three classes", "three", {}),
    Problem("three classes of trained networks", "three", {"kernel": "ntk"}),
    Problem("three classes at a time", "three", {"kernel": "ntk", "time": 4.0}),
    Problem("three classes by the evidence", "three", {"criterion": "evidence"}),
    Problem("three classes by validation data", "three", {"criterion": "accuracy", "validation": True}),
    Problem("three classes with an amplitude", "three", {"amplitude": 2.0, "regulariser": 1e-2}),
    Problem("two weighted classes", "two", {"weights": True}),
    Problem("three weighted classes", "three", {"weights": True, "regulariser": 0.1}),
    # Solvers.
    Problem("conjugate gradients", "numbers", {**CG, "regulariser": 1e-2}),
    Problem("conjugate gradients in float", "numbers", {**CG, "regulariser": 1e-2, "precision": "float"}),
    Problem("conjugate gradients of trained networks", "numbers", {**CG, "regulariser": 1e-2, "kernel": "ntk"}),
    Problem("conjugate gradients that choose", "numbers", {**CG, "criterion": "mse", "validation": True}),
    Problem("conjugate gradients of outputs", "outputs", {**CG, "criterion": "mse", "validation": True}),
    Problem("conjugate gradients of classes", "three", {**CG, "regulariser": 1e-1}),
    Problem("conjugate gradients of weighted rows", "numbers", {**CG, "regulariser": 1e-2, "weights": True}),
    Problem("ranks", "numbers", {"solver": "distributed"}),
    Problem("ranks of trained networks with classes", "three", {"solver": "distributed", "kernel": "ntk"}),
    # Images, and their mirror images.
    Problem("images", "numbers", {"images": True}),
    Problem("images in float", "three", {"images": True, "precision": "float"}),
    Problem("images with mirror images", "two", {"images": True, "flip": True}),
    Problem("images with mirror images of trained networks", "numbers", {"images": True, "flip": True, "kernel": "ntk", "time": 2.0}),
    Problem("images by conjugate gradients", "numbers", {"images": True, "flip": True, **CG, "regulariser": 1e-2}),
    # Where kernels come from.
    Problem("kept kernels", "numbers", {"source": "kept"}),
    Problem("kept kernels of trained networks with classes", "three", {"source": "kept", "kernel": "ntk"}),
    Problem("a store", "numbers", {"source": "store"}),
    Problem("a store of trained networks with classes", "two", {"source": "store", "kernel": "ntk"}),
    Problem("a store fitted again with validation data", "numbers", {"source": "store", "criterion": "mse", "validation": True, "refit": True}),
    Problem("a store read by conjugate gradients", "numbers", {**CG, "source": "store", "regulariser": 1e-2}),
    Problem("a device", "numbers", {"source": "device"}),
    Problem("a device with trained networks and classes", "three", {"source": "device", "kernel": "ntk", "precision": "float"}),
    Problem("products on a device", "numbers", {**CG, "source": "device", "regulariser": 1e-2}),
    # What is learned of inputs, and of the network.
    Problem("relevance", "numbers", {"relevance": True}),
    Problem("learned features", "numbers", {"learn_features": 2}),
    Problem("learned factors", "two", {"learn_features": 1, "diagonal": True}),
    # A network that is chosen, with the functions of its inputs and the tails of its observations.
    Problem("a chosen network", "numbers", {"network": "auto"}),
    Problem("a chosen network in float", "numbers", {"network": "auto", "precision": "float"}),
    Problem("a chosen network after training", "numbers", {"network": "auto", "kernel": "ntk"}),
    Problem("a chosen network of outputs with weights", "outputs", {"network": "auto", "weights": True}),
    Problem("a chosen network of classes", "three", {"network": "auto", "regulariser": 1e-1}),
    Problem("a chosen network with a regulariser by conjugate gradients", "numbers", {**CG, "network": "auto", "regulariser": 1e-1}),
]


def found_in(table, door, options):
    """The reasons that a table has for this door and these options."""
    asked = [*options, *[(name, value) for name, value in options.items() if isinstance(value, str)]]
    return [reason for (of, option), reason in table.items() if of == door.split(",")[0] and option in asked]


def cases():
    for problem in PROBLEMS:
        for door in DOORS:
            if found_in(NOT_OFFERED, door, problem.options):
                continue
            if door == "Model, loaded by predict" and problem.options.get("kernel") == "both":
                continue  # Several models.
            reasons = [*found_in(LACKING, door, problem.options),
                       *[why for (of, why), names in DIFFERENCES.items()
                         if of == door.split(",")[0] and problem.name in names]]
            marks = [pytest.mark.xfail(strict=True, reason=reason) for reason in reasons[:1]]
            yield pytest.param(problem, door, marks=marks, id=f"{problem.name} by {door}")


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """What Model says of a problem, computed once."""
    return functools.cache(lambda name: by_model(next(problem for problem in PROBLEMS if problem.name == name), tmp_path_factory.mktemp("model")))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("problem, door", list(cases()))
def test_all_doors_say_the_same(problem, door, expected, tmp_path):
    wanted = expected(problem.name)
    said = DOORS[door](problem, tmp_path)
    assert len(said) == len(wanted)
    for one, other in zip(said, wanted):
        compare(one, other, problem)


# What no door takes, and what all say of it.
REFUSED = [
    (Problem("noise and weights", "numbers", {"noise": True, "weights": True}), "both"),
    (Problem("noise of classes", "two", {"noise": True}), "classes|unexpected keyword argument 'noise_variance'"),
    (Problem("noise and a regulariser", "numbers", {"noise": True, "regulariser": 0.1}), "noise"),
    (Problem("noise of trained networks", "numbers", {"noise": True, "kernel": "ntk"}), "noise"),
    (Problem("weights of trained networks", "numbers", {"weights": True, "kernel": "ntk"}), "weight"),
    (Problem("a time of the NNGP", "numbers", {"time": 2.0}), "time"),
    (Problem("a negative time", "numbers", {"time": -1.0, "kernel": "ntk"}), "time"),
    (Problem("accuracy of numbers", "numbers", {"criterion": "accuracy", "validation": True}), "accuracy"),
    (Problem("errors without validation data", "numbers", {"criterion": "mse"}), "validation"),
    (Problem("the evidence of trained networks", "numbers", {"criterion": "evidence", "kernel": "ntk"}), "evidence"),
    (Problem("candidates of zero", "numbers", {"grid": [0.0, 1.0]}), "positive|> 0|above 0"),
    (Problem("a negative regulariser", "numbers", {"regulariser": -1.0}), "positive|> 0|above 0"),
    (Problem("a negative amplitude", "numbers", {"amplitude": -1.0}), "positive|> 0|above 0"),
    (Problem("conjugate gradients without validation data", "numbers", {"solver": "cg"}), "validation"),
    (Problem("conjugate gradients by the evidence", "numbers", {"solver": "cg", "criterion": "evidence"}), "evidence|accuracy"),
    (Problem("conjugate gradients at a time", "numbers", {"solver": "cg", "regulariser": 0.1, "kernel": "ntk", "time": 2.0}), "time"),
    (Problem("conjugate gradients with known noise", "numbers", {"solver": "cg", "noise": True}), "amplitude"),
    (Problem("logarithms of numbers that have none", "numbers", {"target_transform": "log", "zeros": True}), "positive"),
    (Problem("logarithms of classes", "two", {"target_transform": "log"}), "classes|unexpected keyword argument 'target_transform'"),
    (Problem("logarithms with known noise", "numbers", {"target_transform": "log", "noise": True}), "logarithms"),
    (Problem("another transform", "numbers", {"target_transform": "sqrt"}), "none, log|none\\|log|none or log"),
    (Problem("equal targets", "numbers", {"equal": True}), "all 3.5"),
    (Problem("equal targets of an output", "outputs", {"equal": True}), "all 3.5"),
    (Problem("relevance and features", "numbers", {"relevance": True, "learn_features": 1}), "both|relevance"),
    (Problem("refit without validation data", "numbers", {"refit": True}), "validation"),
    (Problem("a single row", "numbers", {}, rows=1), "row|all|equal"),
    (Problem("mirror images of vectors", "numbers", {"flip": True}), "images|mirror|spatial|positions"),
]
# {(door, problem): why it takes it}.
TAKEN = {
    ("estimator", "equal targets"): "scikit-learn's estimators predict such a number everywhere, with a warning",
    ("estimator", "equal targets of an output"): "as above",
}


def refusals():
    for problem, message in REFUSED:
        for door in ALL_DOORS:
            if not found_in(NOT_OFFERED, door, problem.options) and not found_in(LACKING, door, problem.options) and (door, problem.name) not in TAKEN:
                yield pytest.param(problem, message, door, id=f"{problem.name} by {door}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("problem, message, door", list(refusals()))
def test_all_doors_refuse_the_same(problem, message, door, tmp_path):
    with pytest.raises((ValueError, TypeError, widelimit.Error, Refused), match=message):
        ALL_DOORS[door](problem, tmp_path)


def test_problems_are_enough_and_differ():
    assert len(PROBLEMS) >= 40 and len({problem.name for problem in PROBLEMS}) == len(PROBLEMS)
