#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/gp_run.hpp"

namespace widelimit::cli {

/// What predictions are made from, and compared with, besides kernels.
struct GpTargets {
  TargetKind kind;
  const Matrix<double>& train;                ///< [n, outputs]
  const Matrix<double>* validation;           ///< [n_validation, outputs]; null without validation data.
  const std::optional<Matrix<double>>& test;  ///< [n_test, outputs], where they are known.
};

/// A regulariser, given or chosen.
struct ChosenRegulariser {
  double value;
  std::vector<gp::RegulariserScore> candidates;  ///< Empty where it was given.
  double noise_floor = 0;

  explicit ChosenRegulariser(double given) : value{given} {}
  explicit ChosenRegulariser(const gp::Selection& selection)
      : value{selection.best.value()}, candidates{selection.scores}, noise_floor{selection.noise_floor} {}
};

/// What a solver makes of a kernel.
struct Posterior {
  std::string name;
  std::optional<double> time = std::nullopt;
  double amplitude;
  double noise_variance;
  Matrix<double> mean;
  Vector<double> variance;
  std::optional<double> log_marginal_likelihood = std::nullopt;
  std::optional<IterativeSolution> iterations = std::nullopt;
};

/// With probabilities of classes, and scores where the test targets are known.
[[nodiscard]] GpPrediction prediction_of(Posterior posterior, const ChosenRegulariser& chosen,
                                         const GpTargets& targets, gp::Criterion criterion, double seconds);

/// The first prediction of gradient flow, "ntk", is that at infinite time.
[[nodiscard]] std::string flow_name(std::size_t i);

}  // namespace widelimit::cli
