#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "widelimit/gp/feature_map.hpp"
#include "widelimit/gp/fit.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/kernel/inputs.hpp"
#include "widelimit/network/network.hpp"
#include "widelimit/run_control.hpp"

/// Networks for tables, where nobody names one.
namespace widelimit::gp {

/// A network with a map of its inputs, and how it did.
struct AutomaticTrial {
  std::string
      network;  ///< Of automatic_networks(): "rbf, length 2", lengths in median distances of the inputs.
  std::string inputs;  ///< "clipped" or "normal scores", see FeatureMap.
  TargetTransform targets = TargetTransform::none;
  /// Of training targets left out, with the best regulariser: of numbers the mean negative log density, in the units of
  /// the targets, summed over outputs, with tails of its own (ObservationLaw::of_left_out()); of classes the calibrated
  /// log loss. NaN where it cannot be computed.
  double score = std::numeric_limits<double>::quiet_NaN();
  std::string unsolved = {};  ///< Why it could not be computed; usually empty.
};

/// What was chosen: a model of `network` whose inputs go through `map` (ModelOptions::input_map), and whose targets are
/// transformed.
struct AutomaticNetwork {
  Network network;
  FeatureMap map = {};
  TargetTransform transform = TargetTransform::none;
  std::vector<AutomaticTrial> trials;  ///< In the order of the candidates.
  std::size_t chosen =
      0;  ///< The trial with the lowest score, the first of equal ones; logarithms have to win by a standard error.
  Index rows = 0;  ///< Training inputs on which it was chosen.
};

struct ModelOptions;

struct AutomaticOptions {
  Kernels kernel = Kernels::nngp;                       ///< nngp or ntk: with which predictions are made.
  std::vector<double> candidates = regulariser_grid();  ///< Regularisers, among which each network chooses.
  bool targets_as_they_are = false;
  /// Absent: logarithms of targets are candidates beside the targets where all are positive, numbers, and scaled,
  /// unless left-out observations deviate from them by a factor of exp(5) or more.
  std::optional<TargetTransform> transform = {};
};

/// Those of a model: its kernel, the regulariser that is given or those it may have, and what targets may be.
[[nodiscard]] AutomaticOptions automatic_options(const ModelOptions& options);

/// Which of the networks below predicts training targets best that are left out: a linear kernel, one and three hidden
/// layers of ReLUs, squared exponentials of one, two and four median distances of the inputs, Matern kernels of the
/// smoothness 5/2 of one and two, and the Laplace kernel of two; each for inputs cut to their ranges, and for their
/// normal scores, unless these are the same; of positive numbers each for the targets and for their logarithms. The
/// choice does not change with the unit of all inputs, with the units and
/// offsets of inputs that are standardised, with the order of columns and rows, and with names of classes.
///
/// x        vectors [n, channels]; with fewer than 30, equal ones or equal targets the network is that of three layers
/// problem  with targets of a row each; of validation targets only whether they have logarithms is looked at, known
/// noise
/// Errors   ArgumentError for inputs of another kind, and for targets that do not fit; NumericalError if no network can
/// Cost     automatic_cost(): at most eighteen choices of a regulariser on at most 600 evenly spaced rows, in double.
/// Source   Sundararajan & Keerthi 2001, Predictive approaches for choosing hyperparameters in Gaussian processes.
template <typename Scalar>
[[nodiscard]] AutomaticNetwork choose_network(const Inputs<Scalar>& x, const Problem& problem,
                                              const AutomaticOptions& options = {},
                                              const RunControl& run = {});

/// Whether choose_network() takes such inputs: vectors, without graphs and masks.
template <typename Scalar>
[[nodiscard]] bool takes_automatic_network(const Inputs<Scalar>& x);

/// What choose_network() costs for n training inputs, in words.
[[nodiscard]] std::string automatic_cost(Index n);

/// What was chosen and how the next ones did, a sentence for people.
[[nodiscard]] std::string automatic_text(const AutomaticNetwork& found, TargetKind kind);

}  // namespace widelimit::gp
