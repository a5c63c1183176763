#pragma once

#include <Eigen/Core>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace widelimit::propagation {

/// Loss after training predicted from both exponents (section 5 of the paper):
/// min(bias + max(weight_a |lambda_a|, weight_g |lambda_g|), ceiling).
struct LossPredictor {
  double weight_a = 1, weight_g = 1, bias = 0;
  double ceiling = HUGE_VAL;  ///< Of an untrained classifier: ln(number of classes).

  [[nodiscard]] double operator()(double lambda_a, double lambda_g) const;
};

/// A trained network.
struct TrainingOutcome {
  double lambda_a = 0, lambda_g = 0, loss = 0;
};

/// A fit, and how well it describes the losses to which it was fitted.
struct PredictorFit {
  LossPredictor predictor;
  double root_mean_square_error = 0;
  double explained_variance = 0;  ///< 1 - squared error over the variance of the losses.
  double rank_correlation = 0;    ///< Spearman's, between predicted and actual losses.
};

/// Least squares over weights >= 0 and the bias, by a local search (Nelder-Mead) from many starts: the
/// objective is only piecewise smooth. Use one form of lambda_a, and lambda_g at the depth and number of
/// tokens of the task, throughout.
/// Errors: ArgumentError for fewer than four outcomes, numbers that are not finite, or equal losses.
[[nodiscard]] PredictorFit fit_loss_predictor(std::span<const TrainingOutcome> outcomes,
                                              double ceiling = HUGE_VAL);

/// Standard errors of the weights and the bias (its ceiling is 0): the scatter of fits to as many outcomes drawn with
/// replacement, `draws` >= 2 times, each searched from the fit to all. Errors as fit_loss_predictor().
[[nodiscard]] LossPredictor bootstrap_errors(std::span<const TrainingOutcome> outcomes,
                                             const PredictorFit& fit, Eigen::Index draws,
                                             std::uint64_t seed = 0);

/// Spearman's rank correlation, ties averaged. At least two values each, as many of one as of the other.
[[nodiscard]] double rank_correlation(std::span<const double> first, std::span<const double> second);

/// Rows of a CSV file (data::read_csv()) whose header has the columns lambda_a, lambda_g and loss, and perhaps others.
/// Lines that begin with # are comments. DataError naming file, line and column.
[[nodiscard]] std::vector<TrainingOutcome> read_training_outcomes(const std::filesystem::path& file);

}  // namespace widelimit::propagation
