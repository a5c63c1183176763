#pragma once

#include <cmath>
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

/// Spearman's rank correlation, ties averaged. At least two values each, as many of one as of the other.
[[nodiscard]] double rank_correlation(std::span<const double> first, std::span<const double> second);

/// Rows of a CSV file whose header has the columns lambda_a, lambda_g and loss (and perhaps others).
/// Lines that begin with # are comments. DataError naming file and line.
[[nodiscard]] std::vector<TrainingOutcome> read_training_outcomes(const std::filesystem::path& file);

}  // namespace widelimit::propagation
