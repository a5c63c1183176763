"""The theories of the program and of the package side by side: what one can be told the other can be told too, under the same
name and with the same default, or a table here says why not."""

import inspect
import os
import re
import subprocess

import pytest

from widelimit import heads, propagation, sde

# Where results go and how they are shown; the package returns them.
OUTPUT = {"help", "out", "json", "plot", "quiet", "force", "no_pictures", "config"}
# Not options: what the functions of the package get from each other.
BETWEEN = {"progress", "parameters", "model", "network", "ensemble", "constants", "task", "prior"}

# {option: the package's word} where the words differ.
MODEL_WORDS = {"alpha": "alpha_A", "skip": "skip_A", "block": "Parameters.block"}
SDE_WORDS = {"gamma": "gamma_squared", "lambda": "gamma_squared", "gamma_feedforward": "gamma_squared_feedforward", "lambda_feedforward": "gamma_squared_feedforward",
             "gammas": "a loop", "temperatures": "a loop"}
TIME_WORDS = {"horizon": "times", "depth": "times", "width": "times", "points": "times"}
MODEL_OF_SDE = {"model": "a function each", "finite_width_drift": "width"}
NETWORK_WORDS = {"network": "name"}
LAYER_WORDS = {"depth": "layers", "points": "layers"}
HEADS_WORDS = {"prior": "Prior", "scan": "a loop"}
# Of single numbers, which one thread computes.
THREADS = {"threads": "one"}
KEPT = {"trajectories": "Ensemble.covariances"}
STARTS = {"starts": "a loop over seeds"}

MODELS = [sde.mlp, sde.resnet, sde.attention, sde.transformer, sde.with_finite_width_drift, sde.start]
NETWORKS = [sde.Network, sde.start, sde.sample_networks]
SIMULATED = [propagation.Parameters]

# (command, the functions that do the same, {option: word}, {argument that the program lacks: why}).
TABLE = [
    ("propagation trajectory", [*SIMULATED, propagation.trajectory], MODEL_WORDS, {}),
    ("propagation exponents", [*SIMULATED, propagation.exponents, propagation.width_spread], MODEL_WORDS, {}),
    ("propagation phase", [*SIMULATED, propagation.phase_diagram, propagation.critical_lines],
     MODEL_WORDS | {"block": "refused: blocks differ from point to point"}, {}),
    ("propagation critical", [*SIMULATED, propagation.critical, propagation.width_spread], MODEL_WORDS, {}),
    ("propagation fit", [*SIMULATED, propagation.exponents, propagation.fit_losses],
     MODEL_WORDS | {"file": "loss"},
     {"lambda_a": "a column of the file", "lambda_g": "a column of the file", "published": "exponents() has it"}),
    ("propagation simulate trajectory", [*SIMULATED, propagation.simulate_trajectory], MODEL_WORDS, {}),
    ("propagation simulate histograms", [*SIMULATED, propagation.simulate_samples], MODEL_WORDS | {"samples": "the values", "depth": "depths"},
     {}),
    ("propagation simulate angle", [*SIMULATED, propagation.simulate_angle], MODEL_WORDS | {"depth": "one block"}, {}),
    ("propagation simulate gradient", [*SIMULATED, propagation.simulate_gradient], MODEL_WORDS, {}),
    ("propagation simulate groups", [*SIMULATED, propagation.simulate_groups], MODEL_WORDS, {}),
    ("propagation simulate phase", [*SIMULATED, propagation.simulate_angle, propagation.simulate_gradient],
     MODEL_WORDS | {"x": "a loop", "y": "a loop", "one_block": "q0=1"}, {"q0": "of --one-block and the fixed point"}),
    ("propagation network", [propagation.propagate, propagation.block_exponents, propagation.layer_gradients,
                             propagation.sample_block, propagation.start_gram],
     {"q0": "q", "c0": "cosine", "gram": "start", "grams": "Propagated.grams", "gradients": "layer_gradients",
      "vary": "a loop over block_exponents", "network": "block"}, {"start_norm": "the norm of --q0 beside --vary"}),
    ("propagation measure", [propagation.measure, propagation.measure_attention], {"folder": "layers", "network": "block"},
     {"attention": "files of the folder", "threads": "the program computes one file after the other"}),
    ("heads flow", [heads.flow], HEADS_WORDS, {}),
    ("heads prune", [heads.flow, heads.prune], HEADS_WORDS, {}),
    ("heads attention", [heads.flow, heads.judge, heads.fresh_sequences, heads.attention_map], HEADS_WORDS,
     {"chi_star": "of fresh_sequences()", "xi": "of fresh_sequences()"}),
    ("heads sgd", [heads.sgd], HEADS_WORDS | STARTS, {}),
    ("heads compare", [heads.compare], HEADS_WORDS | STARTS, {}),
    ("heads bayes", [heads.bayes_risk, heads.bayes_optimal_heads], HEADS_WORDS, {}),
    ("heads hessian", [heads.hessian, heads.escape_rates, heads.split_rate], HEADS_WORDS,
     {"b": "the program expands about the start of flows", "eigenvalue": "those of the prior", "nu1": "of the prior",
      "nu2": "of the prior", "samples": "the program takes its own number"}),
    ("heads phase-transition", [heads.specialisation_times],
     HEADS_WORDS | {"activations": "a loop over activation", "dimensions": "a loop over dimension"},
     {"features": "heads feature-times"}),
    ("heads feature-times", [heads.specialisation_times], HEADS_WORDS,
     {"features": "the command itself", "dynamics": "times of features are those of flows", "gamma": "of SGD",
      "batch": "of SGD"}),
    ("heads digits", [heads.ImageTask, heads.digits], {"mnist": "images"}, {"labels": "of --mnist"}),
    ("heads digit-times", [heads.ImageTask, heads.digit_times], {"mnist": "images"}, {"labels": "of --mnist"}),
    ("heads resampling", [heads.resampling], HEADS_WORDS, {}),
    ("sde simulate", [*MODELS, sde.simulate], KEPT | SDE_WORDS | TIME_WORDS | MODEL_OF_SDE, {}),
    ("sde network", NETWORKS, KEPT | SDE_WORDS | LAYER_WORDS | NETWORK_WORDS | {"networks": "a loop"}, {}),
    ("sde compare", [*NETWORKS, sde.compare], SDE_WORDS | LAYER_WORDS | NETWORK_WORDS, {}),
    ("sde stopping-time", [sde.Network, sde.start, sde.stopping_times], SDE_WORDS | LAYER_WORDS | NETWORK_WORDS, {}),
    ("sde output", [*MODELS, sde.simulate, sde.outputs],
     SDE_WORDS | TIME_WORDS | MODEL_OF_SDE | {"network": "sample_networks()"}, {}),
    ("sde entropy", [sde.Network, sde.start, sde.entropy], SDE_WORDS | LAYER_WORDS | NETWORK_WORDS, {}),
    ("sde explosion", [*MODELS, sde.explosion], SDE_WORDS | TIME_WORDS | MODEL_OF_SDE, {}),
    ("sde law", [*MODELS, sde.correlation_law, sde.gap_law], THREADS | SDE_WORDS | TIME_WORDS | MODEL_OF_SDE | {"times": "time", "V0": "gap0"},
     {"gamma_squared_feedforward": "laws are those of one block"}),
    ("sde coefficients", [*MODELS, sde.coefficients, sde.drift, sde.diffusion], THREADS | SDE_WORDS | MODEL_OF_SDE | {"V0": "v"}, {}),
    ("sde flow", [*MODELS, sde.flow, sde.commuting_limit], THREADS | SDE_WORDS | TIME_WORDS | MODEL_OF_SDE | {"flow": "a function each"},
     {"heads": "of the noise, which a flow has not", "hidden_ratio": "of the noise"}),
    ("sde gradients", [sde.start, sde.gradients], {"networks": "a call each", "width": "Network.width"}, {}),
]

# {(command, option): why the default is another}.
OTHER_DEFAULTS = {
    ("propagation simulate phase", "networks"): "the program draws them at each of 64 points",
    ("heads prune", "starts"): "the program prunes five flows, the package the heads that it is given",
    ("heads attention", "starts"): "the program shows the median of five flows, the package the heads that it is given",
}


def said(command):
    """{option or field: its default, as the help prints it, or None}."""
    program = os.environ.get("WIDELIMIT_PROGRAM")
    if not program:
        pytest.skip("WIDELIMIT_PROGRAM, the program, is not set")
    text = subprocess.run([program, *command.split(), "--help"], check=True, capture_output=True, text=True).stdout
    found = {}
    options, _, fields = text.partition("\nConfiguration ")
    for line in options.splitlines():
        if option := re.match(r"  (?:-h,)?--([\w-]+)", line):
            found[option[1].replace("-", "_")] = printed_default(line)
        elif argument := re.match(r"  (\w+) .*REQUIRED", line):
            found[argument[1]] = None
    for line in fields.splitlines():
        if field := re.match(r"  (\w+): ", line):
            found[field[1]] = printed_default(line.partition(";")[0])
    assert len(found) > 5
    return {name: default for name, default in found.items() if name not in OUTPUT}


def printed_default(line):
    default = re.search(r"\[([^\[\]]*)\]$", line.split("; results")[0].strip())
    return default and default[1]


def arguments_of(functions):
    """{argument: its default, or None}; of several functions' equal arguments that of the first."""
    found = {}
    for function in functions:
        for name, parameter in inspect.signature(function).parameters.items():
            if name not in BETWEEN and name != "self":
                found.setdefault(name, None if parameter.default is parameter.empty else parameter.default)
    return found


@pytest.mark.parametrize("command, functions, words, only_here", TABLE, ids=[row[0] for row in TABLE])
def test_options_and_arguments_are_the_same(command, functions, words, only_here):
    options, arguments = said(command), arguments_of(functions)
    lacking = [option for option in options if option not in arguments and option not in words]
    assert lacking == [], f"options of {command} without an argument in Python"
    targets = {words[option] for option in options if option in words}
    unknown = [argument for argument in arguments
               if argument not in options and argument not in targets and argument not in only_here]
    assert unknown == [], f"arguments in Python without an option of {command}"
    # Reasons for what is not, or no longer, so.
    assert [name for name in only_here if name not in arguments or name in options] == []


@pytest.mark.parametrize("command, functions, words, only_here", TABLE, ids=[row[0] for row in TABLE])
def test_defaults_are_the_same(command, functions, words, only_here):
    options, arguments = said(command), arguments_of(functions)
    different = []
    for option, default in options.items():
        own = arguments.get(option)
        if option in words or isinstance(own, bool) or not isinstance(own, (int, float)) or (command, option) in OTHER_DEFAULTS:
            continue
        if default is not None and re.fullmatch(r"[-+.\de]+", default) and float(default) != own:
            different.append((option, default, own))
    assert different == []


def test_every_command_of_the_theories_is_in_the_table():
    program = os.environ.get("WIDELIMIT_PROGRAM")
    if not program:
        pytest.skip("WIDELIMIT_PROGRAM, the program, is not set")

    def commands(*group):
        text = subprocess.run([program, *group, "--help"], check=True, capture_output=True, text=True).stdout
        listed = re.findall(r"^  ([\w-]+) {2,}", text.partition("Subcommands:")[2], re.M)
        return [" ".join([*group, name]) for name in listed]

    found = [name for group in ("propagation", "heads", "sde") for name in commands(group)]
    found = [name for name in found if name != "propagation simulate"] + commands("propagation", "simulate")
    assert sorted(found) == sorted(row[0] for row in TABLE)


def test_every_function_of_the_theories_is_in_the_table():
    named = {function for row in TABLE for function in row[1]}
    # What commands do not do by themselves: parts of others, and values.
    parts = {propagation.critical_values, propagation.collapsed_norm, heads.bayes_posterior, heads.noise_start, sde.stack,
             sde.explosion_probability}
    # What there is in Python alone: transformers as others write them.
    parts |= {propagation.activations, propagation.attention_entropy, propagation.block_from, propagation.critical_factors, propagation.report}
    for module in (propagation, heads, sde):
        functions = {getattr(module, name) for name in module.__all__ if inspect.isfunction(getattr(module, name))}
        assert {function.__name__ for function in functions - named - parts} == set()
