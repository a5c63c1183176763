#include "widelimit/gp/selection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "gp/linear_algebra.hpp"
#include "numerics/blas_threads.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/metrics.hpp"
#include "widelimit/gp/not_positive_definite.hpp"

namespace widelimit::gp {
namespace {

using Eigen::Index;

constexpr const char* where = "select_regulariser";

void require_grid(const std::vector<double>& grid) {
  if (grid.empty()) throw ArgumentError(fmt::format("{}: the grid must hold at least one value", where));
  for (std::size_t i = 0; i < grid.size(); ++i)
    if (!(grid[i] > 0) || !std::isfinite(grid[i]))
      throw ArgumentError(
          fmt::format("{}: every value of the grid must be positive and finite, but value {} (from 0) "
                      "is {}",
                      where, i, grid[i]));
}

// (K + lambda I)^-1 y for every lambda, side by side: [n, lambdas x outputs], from one product with the
// eigenvectors.
Matrix<double> weights_of_grid(const SymmetricEigen& eigen, const Matrix<double>& targets,
                               const std::vector<double>& lambdas) {
  const Matrix<double> projected = multiply(eigen.vectors, Transpose::no, targets, Transpose::no);
  Matrix<double> scaled(targets.rows(), targets.cols() * static_cast<Index>(lambdas.size()));
  for (std::size_t g = 0; g < lambdas.size(); ++g)
    scaled.middleCols(static_cast<Index>(g) * targets.cols(), targets.cols()) =
        (eigen.values.array() + lambdas[g]).inverse().matrix().asDiagonal() * projected;
  return multiply(eigen.vectors, Transpose::yes, scaled, Transpose::no);
}

/// How far K + lambda I must stand above the error of K: predictions from directions that are nothing but
/// error then have a tenth of the targets' size, and their squares no weight.
constexpr double signal_to_noise = 10;

bool is_better(const RegulariserScore& candidate, const RegulariserScore& best, Criterion criterion) {
  if (!candidate.above_noise || !best.above_noise) return candidate.above_noise;
  if (criterion == Criterion::accuracy && candidate.accuracy != best.accuracy)
    return candidate.accuracy > best.accuracy;
  return candidate.mean_squared_error < best.mean_squared_error;
}

const RegulariserScore& best_of(const std::vector<RegulariserScore>& scores, Criterion criterion) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < scores.size(); ++i)
    if (is_better(scores[i], scores[best], criterion)) best = i;
  return scores[best];
}

void require_validation(const Matrix<double>& cross, const Matrix<double>& validation_targets, Index n,
                        Index outputs) {
  require_cross_gram(cross, n, where, "the validation cross Gram matrix");
  if (cross.rows() == 0)
    throw ArgumentError(fmt::format("{}: there must be validation inputs, got none", where));
  require_shape(validation_targets, cross.rows(), outputs, where, "the validation targets");
  require_finite(validation_targets, where, "the validation targets");
}

/// `means`: the predictions with every value of the grid, side by side.
std::vector<RegulariserScore> scores_of(const std::vector<double>& grid, double noise_floor,
                                        const Matrix<double>& means, const Matrix<double>& targets) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<RegulariserScore> scores;
  scores.reserve(grid.size());
  for (std::size_t g = 0; g < grid.size(); ++g) {
    scores.push_back({grid[g], grid[g] >= noise_floor, nan, nan});
    if (!scores[g].above_noise) continue;
    const Matrix<double> mean = means.middleCols(static_cast<Index>(g) * targets.cols(), targets.cols());
    scores[g].accuracy = accuracy(mean, targets);
    scores[g].mean_squared_error = mean_squared_error(mean, targets);
  }
  return scores;
}

void require_some_above_noise(const std::vector<RegulariserScore>& scores, const Vector<double>& eigenvalues,
                              double error, double noise_floor) {
  if (std::any_of(scores.begin(), scores.end(), [](const auto& score) { return score.above_noise; })) return;
  // A little more, so that the six digits of the message are enough as well.
  const double enough = noise_floor * (1 + 1e-5);
  throw NotPositiveDefinite(
      fmt::format("{}: no value of the grid lifts the {} x {} Gram matrix above its own errors: its smallest "
                  "eigenvalue is {:.6g}, its errors are about {:.6g}; a relative regulariser of {:.6g} is "
                  "enough",
                  where, eigenvalues.size(), eigenvalues.size(), eigenvalues(0), error, enough),
      eigenvalues(0), enough);
}

}  // namespace

std::vector<double> regulariser_grid(double smallest, double largest, int count) {
  if (!(smallest > 0) || !(largest > smallest) || !std::isfinite(largest) || count < 2)
    throw ArgumentError(
        fmt::format("regulariser_grid: expected 0 < smallest < largest, finite, and count >= 2, got "
                    "smallest {}, largest {}, count {}",
                    smallest, largest, count));
  std::vector<double> grid(static_cast<std::size_t>(count));
  const double step = std::log10(largest / smallest) / (count - 1);
  for (int i = 0; i < count; ++i) grid[static_cast<std::size_t>(i)] = smallest * std::pow(10.0, step * i);
  grid.back() = largest;
  return grid;
}

Selection select_regulariser(DoubleMatrix gram, const Matrix<double>& targets, DoubleMatrix validation_cross,
                             const Matrix<double>& validation_targets, const std::vector<double>& grid,
                             Criterion criterion, int threads) {
  threads = numerics::resolve_threads(threads, where);
  require_grid(grid);
  const double entry_epsilon = gram.epsilon();
  Matrix<double> k = std::move(gram).take();
  const Matrix<double> cross = std::move(validation_cross).take();
  const Index n = k.rows(), outputs = targets.cols();
  require_gram(k, where, "the Gram matrix", threads);
  require_targets(targets, n, where);
  require_validation(cross, validation_targets, n, outputs);

  const double mean_diagonal = k.diagonal().mean();
  std::vector<double> lambdas;
  lambdas.reserve(grid.size());
  for (const double value : grid)
    lambdas.push_back(noise_variance(RelativeRegulariser(value), mean_diagonal));

  const numerics::BlasThreads guard(threads);
  const SymmetricEigen eigen = symmetric_eigen(std::move(k), where);
  const Matrix<double> means =
      multiply(cross, Transpose::no, weights_of_grid(eigen, targets, lambdas), Transpose::no);

  const double error = gram_error(eigen.values, entry_epsilon);
  const double noise_floor = std::max(0.0, (signal_to_noise * error - eigen.values(0)) / mean_diagonal);
  std::vector<RegulariserScore> scores = scores_of(grid, noise_floor, means, validation_targets);
  require_some_above_noise(scores, eigen.values, error, noise_floor);
  return {RelativeRegulariser(best_of(scores, criterion).relative_regulariser), std::move(scores),
          noise_floor};
}

}  // namespace widelimit::gp
