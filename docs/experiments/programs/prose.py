"""Numbers within the sentences of the pages, computed from the files that they stand on: `python prose.py summary`.

Each is a piece of a sentence as its page has it; check_pages.py looks for it there, wherever lines break.
"""
import argparse

import numpy as np
from scipy.stats import spearmanr
from scipy.stats import t as student
from widelimit import propagation

from attention_depth import COMMITTED, DEPTHS, HEADS, right_answers
from calibration import of_most_draws
from learning_curves import NETWORKS, curves
from signal_propagation import deviations, rejected
from shaped_transformer import PATHS, of_data
from tables import DATA, EXPERIMENTS, difference_cell, mean_and_error, paired, point, rows_of, shows, welch
from trained_transformers import Networks, difference, squared_errors, tasks


def times(rows, machine):
    found = sorted({float(row["seconds"]) for row in rows if machine in row["machine"]})
    return f"{found[0]:.0f} to {found[-1]:.0f} s"


def of_small_cifar10():
    rows = rows_of("small_cifar10")
    yield f"took {times(rows, 'NVIDIA')}; one with 400 test images took {times(rows, 'x86_64')} of 16 cores"
    share = np.mean([int(row["correct"]) / int(row["test"]) for row in rows if row["train"] == "320"])
    errors = [point((share * (1 - share) / test) ** 0.5, 3) for test in (2000, 400)]
    yield f"standard error of {errors[0]} from the choice of 2,000 test images, and of {errors[1]} from that of 400"


def of_calibration():
    rows = rows_of("calibration")

    def means(variant, column):
        return [np.mean([float(row[column]) for row in of_most_draws(rows, network, kernel, variant)]) for network in NETWORKS
                for kernel in ("nngp", "ntk")]

    own, with_amplitude = means("own", "negative_log_density"), means("amplitude", "negative_log_density")
    worst = np.argsort(own)[::-1][:3]
    assert {round(with_amplitude[k], 2) for k in worst} == {0.09}
    yield f"from {own[worst[0]]:.0f}, {own[worst[1]]:.1f} and {own[worst[2]]:.1f} for the three worst kernels to about .09 for all of these"
    for variant, words in ("amplitude", "the expected error is {} to {} for every network and kernel"), ("scale", "The probability scale does: {} to {}"):
        found = means(variant, "expected_calibration_error")
        yield words.format(point(min(found), 2), point(max(found), 2))


def of_attention_depth():
    right = right_answers(COMMITTED)
    gains = [100 * (np.mean(list(right[head, DEPTHS[-1], kernel].values())) - np.mean(list(right[head, 1, kernel].values())))
             for head in HEADS for kernel in ("nngp", "ntk") if (head, 1, kernel) in right]
    yield f"by {min(gains):.1f} to {max(gains):.1f} points from one convolution to eight"
    errors = [paired(*(list(right[head, depth, kernel].values()) for depth in (DEPTHS[-1], 1)))[1] for head in HEADS for kernel in ("nngp", "ntk")
              if (head, 1, kernel) in right]
    yield f"with standard errors of {min(errors):.1f} to {max(errors):.1f}"
    yield f"{len(rows_of('attention_depth'))} of {len(HEADS) * len(DEPTHS) * 2 * 2} rows"


def of_whitened_images():
    """Pooling over flattening on whitened images, beside the images of figure 4, 1,000 of 8 x 8 each."""
    cells = []
    for kernel in ("nngp", "ntk"):
        pooled, flat = ({draw: right for (_, draw), right in curves(network, kernel)[1000].items()} for network in ("conv-gap", "conv-flatten"))
        cells.append(f"{difference_cell(pooled, flat)} points ({kernel.upper()})")
    yield " and ".join(cells)
    right = right_answers(COMMITTED)
    pixels = [difference_cell(right["gap", depth, kernel], right["flatten", depth, kernel]) for depth in (2, 4) for kernel in ("nngp", "ntk")]
    least, *_, greatest = sorted(pixels, key=lambda cell: float(cell.split()[0]))
    yield f"between {least} and {greatest} in the four cells of 2 and 4 convolutions"


def of_softmax_samples():
    ratios = {kernel: [float(row["error"]) / float(row["reported standard error"]) for row in rows_of("softmax_samples")
                       if (row["tokens"], row["kernel"]) == ("16 tokens", kernel)] for kernel in ("nngp", "ntk")}
    yield (f"are {min(ratios['nngp']):.1f} to {max(ratios['nngp']):.1f} for the NNGP and {point(min(ratios['ntk']), 1)} to "
           f"{max(ratios['ntk']):.1f} for the NTK")


def of_propagation():
    found = {name: (difference, z) for name, _, difference, z in deviations()}
    first, second = (found[f"4, {part}"][0] for part in ("alpha, sigma_w", "alpha_M, alpha_A"))
    errors = [point(mean_and_error(values)[1], 3) for values in (first, second)]
    yield (f"lie {point(-first.mean(), 2)} and {point(-second.mean(), 3)} below the map on average, with standard errors of {errors[0]} and "
           f"{errors[1]} over the points")
    first, second = (found[f"5, {part}"][0] for part in ("alpha, sigma_w", "alpha_M, alpha_A"))
    yield f"the mean difference is +{point(first.mean(), 3)} and +{point(second.mean(), 3)}"
    difference, z = found["6, gradient"]
    theory = np.array([float(row["theory"]) for row in rows_of("propagation_causal") if row["exponent"] == "gradient"])
    large = theory > 0.5
    yield f"Where the theory of the gradient is above .5 ({large.sum()} points), the root mean square of z is {np.sqrt((z[large]**2).mean()):.1f}"
    yield (f"At the other {(~large).sum()} points z has a root mean square of {np.sqrt((z[~large]**2).mean()):.1f} and the mean difference is "
           f"+{point(difference[~large].mean(), 3)}")


def of_moments():
    """Of the NTK's second moment, in logarithms, over 5 beta."""
    shares = [np.log(float(row["ntk"])) / (5 * int(row["depth"]) / int(row["width"])) for row in rows_of("finite_moments")]
    yield f"logarithm is {point(min(shares), 2)} to {point(max(shares), 2)} times 5 beta"


def of_contexts():
    rows = {(int(row["tokens"]), float(row["alpha"])): row for row in rows_of("propagation_contexts")}

    def gain(tokens, alpha, column):
        return point(float(rows[tokens, alpha][column]), 3)

    yield f"from {gain(64, 0.5, 'gradient')} at 64 tokens to {gain(131072, 0.5, 'gradient')} at 131,072, at alpha = .7 from {gain(64, 0.7, 'gradient')} to {gain(131072, 0.7, 'gradient')}"
    growth = [propagation.exponents(propagation.Parameters(tokens=tokens, alpha_A=0.5, alpha_M=0.5, sigma_w=2.0), 16, causal=True).lambda_g
              for tokens in (64, 1024, 131072)]
    yield f"is +{point(growth[0], 3)} at 64 tokens, +{point(growth[1], 3)} at 1,024 and -{point(-growth[2], 3)} at 131,072"
    yield (f"at alpha = .7 from {gain(64, 0.7, 'angle')} at 64 tokens to {gain(8192, 0.7, 'angle')} at 8,192 and is {gain(131072, 0.7, 'angle')} at 131,072")
    z = {}
    for row in rows_of("propagation_long"):
        found = (float(row["measured"]) - float(row["theory"])) / float(row["standard_error"])
        z.setdefault((row["exponent"], row["tokens"], row["width"]), []).append(found)
    yield f"lie within {max(abs(value) for (exponent, *_), values in z.items() if exponent == 'angle' for value in values):.1f} standard errors of the theory"
    near, far = z["gradient", "256", "64"], z["gradient", "1024", "64"]
    yield (f"by {near[0]:.1f} and {near[1]:.1f} standard errors in networks of width 64 with 256 tokens and by {far[0]:.1f} and {far[1]:.1f} with 1,024")


def of_normality():
    rows = rows_of("propagation_normality")
    no = rejected(rows)
    yield f"{no.sum()} of {len(no)} are rejected"
    power = {(row["shape"], row["value"]): row for row in rows_of("propagation_normality_power")}
    yield f"a skewness of .1 is found in {float(power['skewness', '0.1']['shapiro_wilk']):.0%} of samples at 5 % for one test, one of .2 in {float(power['skewness', '0.2']['shapiro_wilk']):.0%}"


def of_heads():
    rows = [[float(row[f"m{k}"]) for k in range(3)] for row in rows_of("heads_features") if (row["activation"], row["tau"]) == ("softmax", "4000")]
    m = np.array(rows)
    length = np.linalg.norm(m, axis=1)
    yield f"the median head has {point(np.median(abs(m[length > 0.3]).max(axis=1) / length[length > 0.3]), 2)} of its length along its largest component"
    late = sorted(float(row["largest_difference_m"]) for row in rows_of("heads_resampling") if row["tau"] == "100")
    assert sum(value < 0.09 for value in late) == 3
    yield f"three of five stay below .09, the others differ by {point(late[3], 2)} and {late[4]:.2f}"
    digits = np.array([[float(row[f"time_{digit}"]) for digit in range(10)] for row in rows_of("heads_digits")])
    place = digits.argsort(axis=1).argsort(axis=1) + 1
    assert place[:, :2].max() == 4 and place[:, 8].min() == 8
    yield "In every start 0 and 1 are among the first four and 8 is among the last three"


def of_heads_at_rest():
    losses = {}
    for row in rows_of("heads_rest"):
        losses.setdefault((row["prior"], row["heads"], row["activation"]), []).append(float(row["loss"]))
    assert all(len(found) == 5 for found in losses.values())
    wide = {key: found for key, found in losses.items() if max(found) - min(found) > 0.0035}
    words = {key: f"({point(min(found), 3)} to {point(max(found), 3)})" for key, found in wide.items()}
    spikes, gaussian = "spikes(4 10)", "gaussian(4 x 10)"
    yield f"softmax-1 on spikes with three heads {words.pop((spikes, '3', 'softmax1'))} and with seven {words.pop((spikes, '7', 'softmax1'))}"
    yield f"bayes on the Gaussian prior with seven {words.pop((gaussian, '7', 'bayes'))}"
    assert not words, words
    found = sorted(wide[gaussian, "7", "bayes"])
    yield f"where four starts lie within {point(np.ceil(1000 * (found[3] - found[0])) / 1000, 3)} and one rests {point(found[4] - found[3], 3)} above them"


def of_shaped_transformers():
    rows = {(row["size"], row["network"], row["place"]): (float(row["squared_gradient"]), float(row["standard_error"]))
            for row in rows_of("shaped_gradients")}

    def growth(size, mask):
        (first, first_error), (last, last_error) = (rows[size, f"unshaped Pre-LN {mask}", place] for place in ("first layer", "last layer"))
        return first / last, first / last * ((first_error / first) ** 2 + (last_error / last) ** 2) ** 0.5

    (full, full_error), (causal, causal_error) = growth("200 x 150", "full"), growth("200 x 150", "causal")
    yield f"by {full:.0f} ± {full_error:.0f} under full attention and by {causal:.0f} ± {causal_error:.0f} under a causal mask"
    (full, full_error), (causal, causal_error) = growth("64 x 24", "full"), growth("64 x 24", "causal")
    yield f"over 24 layers by {full:.1f} ± {point(full_error, 1)} and {causal:.1f} ± {point(causal_error, 1)}"
    for size in ("200 x 150", "64 x 24"):
        shaped = {mask: (rows[size, f"shaped (gamma^2 = 1/8) {mask}", "first layer"], rows[size, f"shaped (gamma^2 = 1/8) {mask}", "last layer"])
                  for mask in ("full", "causal")}
        ratios = [(first / last, first / last * ((first_error / first) ** 2 + (last_error / last) ** 2) ** 0.5)
                  for (first, first_error), (last, last_error) in shaped.values()]
        yield " and ".join(f"{value:.2f} ± {error:.2f}" for value, error in ratios)
    paths = {(float(row["gamma"]), int(row["layer"])): [float(row[f"network_{k}"]) for k in range(PATHS)] for row in rows_of("shaped_figure4_paths")}
    yield (f"between 10^{min(paths[0.1, 200]):.2f} and 10^{max(paths[0.1, 200]):.2f} after 200 layers, those of gamma = .5 beyond "
           f"10^{int(min(paths[0.5, 100]))} after 100")
    names = [f"{kind} full" for kind in ("shaped (gamma^2 = 1/8)", "unshaped Pre-LN")]
    ratios = [(first / last, first / last * ((first_error / first) ** 2 + (last_error / last) ** 2) ** 0.5) for (first, first_error), (last, last_error)
              in ((of_data(name)["first layer"], of_data(name)["last layer"]) for name in names)]
    yield "those of shaped networks by {:.2f} ± {:.2f}, those of Pre-LN by {:.1f} ± {:.1f}".format(*(number for pair in ratios for number in pair))
    correlations = sorted({float(row["mean_correlation"]) for row in rows_of("shaped_gradients_data")})
    yield f"correlations between {correlations[0]:+.2f} and {correlations[-1]:+.2f} in the mean over pairs"
    stays = {row["temperature"]: 100 * float(row["share_that_stay"]) for row in rows_of("shaped_stopping") if row["gamma"] == "1"}
    yield f"{stays['8']:.0f} % of the networks with gamma = 1 stay inside, at tau_0 = 4 still {stays['4']:.0f} %"


def of_resnets():
    """Sampled quantiles of figure 2, beside the exact ones."""
    rows = [{name: float(value) for name, value in row.items()} for row in rows_of("shaped_resnet")]
    z = [(row[name] - row["exact"]) / row[f"{name}_error"] for row in rows for name in ("sde", "networks")]
    assert max(row["distance"] for row in rows) < 0.015
    yield f"lie between {-min(z):.1f} standard errors below and {max(z):.1f} above the exact ones"


def of_gradients_by_queries():
    """Of Pre-LN, from the first of 150 layers to the last."""
    layers = {(row["network"], row["layer"]): float(row["query"]) for row in rows_of("shaped_layers")}
    decades = [np.log10(layers[f"unshaped Pre-LN {mask}", "1"] / layers[f"unshaped Pre-LN {mask}", "150"]) for mask in ("causal", "full")]
    yield f"those by queries by {decades[0]:.1f} (causal) and {decades[1]:.1f} decades"


def of_depths_left_out():
    """Beside the predictor of exponents times depth, alpha and depth on MNIST, depth by depth."""
    networks, errors = Networks("mnist"), squared_errors("mnist")
    change = errors["alpha and depth, quadratic"][1] - errors["both exponents times depth, the paper's form"][1]
    mean, error = mean_and_error(change)
    yield f"at a depth left out, of {mean / error:.1f} standard errors over all initialisations to alpha and depth"
    depths = networks.per_point(networks.column("depth"))
    folds = [change[depths == depth] for depth in sorted(set(depths))]
    yield "it is {} where 4 blocks are left out, {} where 8 are and {} where 16 are".format(*("{:+.2f} ± {:.2f}".format(*mean_and_error(fold)) for fold in folds))
    yield "a mean of {:.2f} ± {:.2f} over the three".format(*mean_and_error([fold.mean() for fold in folds]))


def losses_of(**fields):
    return [float(row["loss"]) for row in rows_of("trained_transformers") if all(row[name] == value for name, value in fields.items())]


def of_kinds_of_blocks():
    def apart(first, second, steps="150"):
        difference, error, degrees = welch(losses_of(depth="8", steps=steps, **first), losses_of(depth="8", steps=steps, **second))
        return f"{difference:.2f} ± {error:.2f} (p = {point(2 * student.sf(abs(difference / error), degrees), 3)})"

    found = [apart(*({"task": "cifar10", "kind": "cowsik", "sigma_w": gain, "alpha": alpha} for alpha in ("0.6", "0.3"))) for gain in ("0.5", "2.5")]
    yield "by {} and {}, by Student's t after Welch".format(*found)
    pre, post, unshaped = ({"task": "mnist", "kind": kind, "alpha": "0.7071"} for kind in ("pre_ln", "post_ln", "unshaped"))
    yield f"Post-LN lies {apart(post, pre)} and unshaped blocks {apart(unshaped, pre)} above Pre-LN, unshaped blocks {apart(unshaped, post)} above Post-LN"
    shaped, started = ({"task": "mnist", "kind": kind, "alpha": "0.3"} for kind in ("shaped", "shaped_start"))
    yield f"end {apart(shaped, started, steps='600')} below"


def of_figure_7():
    rows = rows_of("propagation_training")
    columns = {name: np.array([abs(float(row[name])) for row in rows]) for name in ("alpha", "lambda_a", "lambda_g", "loss", "predicted")}
    ranks = {name: point(spearmanr(values, columns["loss"]).statistic, 3) for name, values in columns.items()}
    yield (f"Rank correlations of the loss are of {ranks['lambda_a']} with |lambda_a|, {ranks['lambda_g']} with |lambda_g|, "
           f"{ranks['predicted']} with the fitted predictor")
    yield f"and {ranks['alpha']} with alpha alone"
    random, apart = np.random.default_rng(0), []
    for _ in range(2000):
        drawn = random.integers(len(rows), size=len(rows))
        apart.append(np.subtract(*(spearmanr(columns[name][drawn], columns["loss"][drawn]).statistic for name in ("predicted", "alpha"))))
    low, high = np.quantile(apart, (0.025, 0.975))
    yield f"between {low:+.2f} and {high:+.2f} with 95 % (bootstrap over the networks)"


def of_a_pair():
    """Of 14 convolutions on 16 cores: the seconds of a draw over its pairs."""
    rows = [row for row in rows_of("small_cifar10") if "x86_64" in row["machine"] and row["train"] == "320"]
    train, test = 320, 400
    seconds = np.mean([float(row["seconds"]) for row in rows])
    yield f"{1000 * seconds / (train * (train + 1) / 2 + train * test):.2f} ms in the draws of"


def of_trained_transformers():
    paper, growth, both = "both exponents, the paper's form", "both exponents times depth, the paper's form", "alpha and depth, quadratic"
    for task in tasks():
        networks, errors = Networks(task), squared_errors(task)
        without_points, without_depths = (dict(zip(errors, column)) for column in zip(*errors.values()))
        yield f"{len(networks.loss)} networks of {networks.count} initialisations"
        reference = paper if task == "copy" else growth
        for column, words in (without_points, "where initialisations are left out"), (without_depths, "where a depth is left out"):
            value, error = mean_and_error(column[both] - column[reference])
            yield f"{abs(value):.2f} ± {error:.2f} {'less' if value < 0 else 'more'} {words}"
        if task != "copy":
            for name in ("alpha, sigma_w and depth, quadratic", "alpha alone, quadratic"):
                yield " and ".join(difference(column[name], column[growth]) for column in (without_points, without_depths))
        loss = networks.per_point(networks.loss)
        ranks = [point(spearmanr(networks.per_point(abs(networks.column(name))), loss).statistic, 2)
                 for name in ("lambda_a", "lambda_g", "alpha", "sigma_w", "depth")]
        yield f"of {ranks[0]} with |lambda_a|, {ranks[1]} with |lambda_g|, {ranks[2]} with alpha, {ranks[3]} with sigma_w and {ranks[4]} with the depth"
    yield from of_depths_left_out()
    yield from of_kinds_of_blocks()
    for task, words in ("copy", "{} with 4 blocks and {} with 16"), ("mnist", "from {} to {}"):
        same = {depth: [float(row["loss"]) for row in rows_of("trained_transformers") if (row["task"], row["kind"], row["alpha"], row["sigma_w"], row["depth"])
                        == (task, "cowsik", "0.2", "1.5", depth)] for depth in ("4", "16")}
        yield words.format(*(point(np.mean(losses), 2) for losses in same.values()))


PIECES = {EXPERIMENTS.parent / "experiments.md": (of_small_cifar10, of_calibration), EXPERIMENTS / "infinite-attention.md": (of_attention_depth, of_whitened_images, of_softmax_samples),
          EXPERIMENTS.parent / "devices.md": (of_a_pair,),
          EXPERIMENTS / "signal-propagation.md": (of_figure_7, of_propagation, of_contexts, of_normality, of_trained_transformers), EXPERIMENTS / "head-specialization.md": (of_heads, of_heads_at_rest),
          EXPERIMENTS / "finite-networks.md": (of_moments,),
          EXPERIMENTS / "shaped-transformer.md": (of_shaped_transformers, of_resnets, of_gradients_by_queries)}


def pieces():
    """(page, piece) of all pages."""
    for page, makers in PIECES.items():
        for maker in makers:
            yield from ((page, piece) for piece in maker())


def missing():
    """(page, piece) of every piece that a page lacks."""
    words = {page: " ".join(page.read_text().split()) for page in PIECES}
    return [(page.name, piece) for page, piece in pieces() if piece not in words[page]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["summary"])
    shows(parser.parse_args().what, {"prose": lambda: (f"{page.name}: {piece}" for page, piece in pieces())})


if __name__ == "__main__":
    main()
