#include <fmt/format.h>

#include <Eigen/Eigenvalues>
#include <limits>
#include <utility>

#include "gp/checks.hpp"
#include "gp/learning/learned_parts.hpp"
#include "gp/learning/left_out_score.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/regression.hpp"

namespace widelimit::gp {
namespace {

/// The means over the channels of each group, in the place of each of them.
Vector<double> shared_by_groups(const Vector<double>& values, const std::vector<Index>& groups) {
  if (groups.empty()) return values;
  Vector<double> sums = Vector<double>::Zero(values.size()), counts = sums;
  for (Index c = 0; c < values.size(); ++c) {
    sums(groups[static_cast<std::size_t>(c)]) += values(c);
    counts(groups[static_cast<std::size_t>(c)]) += 1;
  }
  Vector<double> shared(values.size());
  for (Index c = 0; c < values.size(); ++c) {
    const Index group = groups[static_cast<std::size_t>(c)];
    shared(c) = sums(group) / counts(group);
  }
  return shared;
}

/// The map whose metric is M: its root, [1, channels] or [channels, channels]. M has the mean diagonal 1, so that
/// inputs keep their size.
Matrix<double> root_of_metric(Matrix<double> metric, const LearningOptions& options) {
  const double mean = metric.diagonal().mean();
  if (!(mean > 0)) return {};
  metric /= mean;
  if (!options.full_matrix)
    return shared_by_groups(metric.diagonal(), options.groups).cwiseMax(0).cwiseSqrt().transpose();
  const Eigen::SelfAdjointEigenSolver<Matrix<double>> eigen(metric);
  return eigen.eigenvectors() * eigen.eigenvalues().cwiseMax(0).cwiseSqrt().asDiagonal() *
         eigen.eigenvectors().transpose();
}

/// Gradients by mapped inputs have this outer product; those by the inputs themselves have the map on both sides.
Matrix<double> by_inputs(const Matrix<double>& outer, const FeatureMap& map) {
  if (map.is_identity()) return outer;
  if (!map.is_diagonal()) return map.factors() * outer * map.factors().transpose();
  const Vector<double> factors = map.factors().row(0);
  return factors.asDiagonal() * outer * factors.asDiagonal();
}

}  // namespace

Matrix<double> gradient_outer_product(const Network& network, const Inputs<double>& x,
                                      const Matrix<double>& weights, Kernels kernel, const RunControl& run) {
  require_shape(weights, x.size(), -1, "gradient_outer_product", "the weights");
  const Index n = x.size(), channels = x.channels();
  Matrix<double> outer = Matrix<double>::Zero(channels, channels);
  for (Index output = 0; output < weights.cols(); ++output) {
    // The derivatives of L = sum_ij K(x_i, X_j) w_j by x_i, X held, are the gradients of the predictor there.
    const Matrix<double> cotangents = weights.col(output).transpose().replicate(n, 1);
    const auto slopes =
        gram_vjp(network, x, x, learning_cotangents(cotangents, kernel), VjpInputs::x1, run).x1;
    const Eigen::Map<const Matrix<double>> rows(slopes.data(), static_cast<Index>(slopes.size()) / channels,
                                                channels);
    outer.noalias() += rows.transpose() * rows;
  }
  return outer / static_cast<double>(n);
}

LearnedInputs learn_features(const Network& network, const Inputs<double>& x, const Matrix<double>& y,
                             const LearningOptions& options, const RunControl& run) {
  LearnedInputs learned{.map = {}, .network = network};
  double lowest = std::numeric_limits<double>::infinity();
  FeatureMap map;
  for (int round = 0; round <= options.rounds; ++round) {
    const Inputs<double> mapped = map.apply(x);
    const Matrix<double> kernel = learning_gram(network, mapped, options.kernel, run);
    const LeftOutChoice choice = left_out_choice(kernel, {y, options.kind, options.row_groups}, run.threads);
    learned.course.push_back(choice.score);
    if (round > 0 && choice.score < lowest) {
      learned.map = map;
      lowest = choice.score;
      learned.regulariser = choice.regulariser;
    }
    if (round == options.rounds) break;
    const Regression regression =
        Regression::fit(kernel, y, RelativeRegulariser(choice.regulariser), run.threads);
    Matrix<double> root = root_of_metric(
        by_inputs(gradient_outer_product(network, mapped, regression.weights(), options.kernel, run), map),
        options);
    if (root.size() == 0) break;  // The predictor is constant: no inputs matter.
    map = FeatureMap(std::move(root));
  }
  return learned;
}

}  // namespace widelimit::gp
