#include "widelimit/gp/selection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "gp/selection/selection_scores.hpp"
#include "gp/solvers/linear_algebra.hpp"
#include "gp/solvers/rounding_error.hpp"
#include "gp/solvers/shifted_solver.hpp"
#include "numerics/blas_threads.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/iterative_regression.hpp"
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

bool is_better(const RegulariserScore& candidate, const RegulariserScore& best, Criterion criterion) {
  const auto is_sound = [](const RegulariserScore& score) {
    return score.above_noise && score.unsolved.empty();
  };
  // A value that lies in the noise or could not be solved with is worse than any other.
  if (!is_sound(candidate) || !is_sound(best)) return is_sound(candidate) && !is_sound(best);
  switch (criterion) {
    case Criterion::accuracy:
      // Equal accuracies are told apart by the squared error below.
      if (candidate.accuracy != best.accuracy) return candidate.accuracy > best.accuracy;
      break;
    case Criterion::mean_squared_error:
      break;
    case Criterion::negative_log_predictive_density:
      return candidate.negative_log_predictive_density < best.negative_log_predictive_density;
    case Criterion::evidence:
      return candidate.log_marginal_likelihood > best.log_marginal_likelihood;
    case Criterion::leave_one_out:
      return candidate.leave_one_out < best.leave_one_out;
  }
  return candidate.mean_squared_error < best.mean_squared_error;
}

const RegulariserScore& best_of(const std::vector<RegulariserScore>& scores, Criterion criterion) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < scores.size(); ++i)
    if (is_better(scores[i], scores[best], criterion)) best = i;
  return scores[best];
}

void require_some_above_noise(const std::vector<RegulariserScore>& scores, const GramAccuracy& gram) {
  if (std::any_of(scores.begin(), scores.end(), [](const auto& score) { return score.above_noise; })) return;
  // A little more, so that the six digits of the message are enough as well.
  const double enough = gram.noise_floor() * (1 + 1e-5);
  const Index n = gram.size;
  throw NotPositiveDefinite(
      fmt::format("{}: no value of the grid lifts the {} x {} Gram matrix above its own errors: its smallest "
                  "eigenvalue is {:.6g}, its errors are about {:.6g}; a relative regulariser of {:.6g} is "
                  "enough",
                  where, n, n, gram.smallest_eigenvalue, gram.error, enough),
      gram.smallest_eigenvalue, enough);
}

void require_validation(const ConstMatrixRef& cross, const Matrix<double>& validation_targets, Index n,
                        Index outputs) {
  require_cross_gram(cross, n, where, "the validation cross Gram matrix");
  if (cross.rows() == 0)
    throw ArgumentError(fmt::format("{}: there must be validation inputs, got none", where));
  require_shape(validation_targets, cross.rows(), outputs, where, "the validation targets");
  require_finite(validation_targets, where, "the validation targets");
}

const char* name_of(Criterion criterion) {
  switch (criterion) {
    case Criterion::accuracy:
      return "accuracy";
    case Criterion::mean_squared_error:
      return "mean_squared_error";
    case Criterion::negative_log_predictive_density:
      return "negative_log_predictive_density";
    case Criterion::evidence:
      return "evidence";
    case Criterion::leave_one_out:
      return "leave_one_out";
  }
  return "";
}

void require_data_for(Criterion criterion, bool has_validation) {
  if (needs_validation(criterion) && !has_validation)
    throw ArgumentError(fmt::format(
        "{}: the criterion {} takes validation data; give them, or choose evidence or leave_one_out", where,
        name_of(criterion)));
}

/// Under the amplitude of targets that are all 0 every density is infinite, and tells nothing apart.
void require_density_for(Criterion criterion, const Matrix<double>& targets) {
  const bool is_error = criterion == Criterion::accuracy || criterion == Criterion::mean_squared_error;
  if (is_error || !targets.isZero(0)) return;
  throw ArgumentError(
      fmt::format("{}: the targets are all 0, so that no amplitude fits them and {} tells no regularisers "
                  "apart; give the regulariser, or choose by errors on validation data",
                  where, name_of(criterion)));
}

/// The values of a grid, and those that lift K + lambda I above the noise.
struct CheckedGrid {
  std::vector<RegulariserScore> scores;  ///< Not scored yet; one a value.
  std::vector<double> lambdas;           ///< Those of the values above the noise.
  GramAccuracy gram;
};

CheckedGrid checked_grid(const GramAccuracy& gram, const std::vector<double>& grid) {
  CheckedGrid checked{{}, {}, gram};
  for (const double value : grid) {
    RegulariserScore& score = checked.scores.emplace_back(no_scores());
    score.relative_regulariser = value;
    score.above_noise = value >= gram.noise_floor();
    if (score.above_noise)
      checked.lambdas.push_back(noise_variance(RelativeRegulariser(value), gram.mean_diagonal));
  }
  require_some_above_noise(checked.scores, gram);
  return checked;
}

[[noreturn]] void throw_none_solved(const RegulariserScore& score, const GramAccuracy& gram) {
  const double enough = gram.sufficient_regulariser();
  throw NotPositiveDefinite(fmt::format("{}: no value of the grid can be solved with: of {:.6g}, {}; a "
                                        "relative regulariser of {:.6g} should "
                                        "be enough",
                                        where, score.relative_regulariser, score.unsolved, enough),
                            gram.smallest_eigenvalue, enough);
}

/// Chooses among the values above the noise, whose scores are `found`, in their order. `others` holds their
/// leave-one-out predictions, where these are known.
Selection selection_by(const CheckedGrid& checked, const std::vector<RegulariserScore>& found,
                       Criterion criterion, std::vector<LeaveOneOut> others = {}) {
  std::vector<RegulariserScore> scores = checked.scores;
  // `found` has no entries for values below the noise.
  auto next = found.begin();
  for (RegulariserScore& score : scores) {
    if (!score.above_noise) continue;
    const double value = score.relative_regulariser;
    score = *next++;
    score.relative_regulariser = value;
    score.above_noise = true;
  }
  const RegulariserScore& best = best_of(scores, criterion);
  if (!best.unsolved.empty()) throw_none_solved(best, checked.gram);
  LeaveOneOut of_best;
  // `others` has no entries for values in the noise either, so that the place of the best is counted without them.
  if (!others.empty())
    of_best = std::move(others[static_cast<std::size_t>(
        std::count_if(scores.begin(), scores.begin() + (&best - scores.data()),
                      [](const auto& score) { return score.above_noise; }))]);
  return {RelativeRegulariser(best.relative_regulariser), std::move(scores), checked.gram.noise_floor(),
          checked.gram, std::move(of_best)};
}

/// Reduces the matrix to a band once; scores_of(form, lambdas) then scores all candidates by it.
template <typename Scores>
std::vector<Selection> select_by_band(DoubleMatrix gram, const std::vector<double>& grid, Criterion criterion,
                                      const Scores& scores_of) {
  const double entry_epsilon = gram.epsilon();
  Matrix<double> k = std::move(gram).take();
  const double mean_diagonal = k.diagonal().mean();
  static_cast<void>(noise_variance(RelativeRegulariser(1), mean_diagonal));  // checks it
  BandForm form(std::move(k));
  const CheckedGrid checked =
      checked_grid(gram_accuracy(form.spectrum(), mean_diagonal, entry_epsilon), grid);
  OutputScores found = scores_of(std::move(form), checked.lambdas);
  std::vector<Selection> selections;
  for (std::size_t c = 0; c < found.scores.size(); ++c)
    selections.push_back(selection_by(checked, found.scores[c], criterion, std::move(found.others[c])));
  return selections;
}

}  // namespace

bool needs_validation(Criterion criterion) {
  return criterion != Criterion::evidence && criterion != Criterion::leave_one_out;
}

std::vector<double> regulariser_grid(double smallest, double largest, int count) {
  if (!(smallest > 0) || !(largest > smallest) || !std::isfinite(largest) || count < 2)
    throw ArgumentError(
        fmt::format("regulariser_grid: expected 0 < smallest < largest, finite, and count >= 2, got "
                    "smallest {}, largest {}, count {}",
                    smallest, largest, count));
  std::vector<double> grid(static_cast<std::size_t>(count));
  const double step = std::log10(largest / smallest) / (count - 1);
  for (int i = 0; i < count; ++i) grid[static_cast<std::size_t>(i)] = smallest * std::pow(10.0, step * i);
  // Rounding would leave the last value beside `largest`.
  grid.back() = largest;
  return grid;
}

Selection select_regulariser(DoubleMatrix gram, const Matrix<double>& targets, DoubleMatrix validation_cross,
                             const Matrix<double>& validation_targets, const std::vector<double>& grid,
                             Criterion criterion, int threads) {
  if (criterion == Criterion::negative_log_predictive_density)
    throw ArgumentError(
        fmt::format("{}: the criterion {} takes the variances of the validation inputs, see ValidationKernel",
                    where, name_of(criterion)));
  return select_regulariser(std::move(gram), targets,
                            ValidationKernel{std::move(validation_cross), {}, validation_targets}, criterion,
                            grid, threads);
}

namespace {

std::vector<Selection> select_by_regression(DoubleMatrix gram, const Matrix<double>& targets,
                                            std::optional<ValidationKernel> validation, Criterion criterion,
                                            const std::vector<double>& grid, int threads,
                                            const LeftOut& left_out, OutputChoice choice) {
  threads = numerics::resolve_threads(threads, where);
  require_grid(grid);
  require_data_for(criterion, validation.has_value());
  const DoubleMatrix& checked = gram;
  const Index n = checked.matrix().rows();
  require_gram(checked.matrix(), where, "the Gram matrix", threads);
  require_targets(targets, n, where);
  require_density_for(criterion, targets);
  std::optional<ValidationPart> seen;
  if (validation) {
    seen.emplace(std::move(validation->cross).take(), std::move(validation->variances),
                 std::move(validation->targets));
    require_validation(seen->cross, seen->targets, n, targets.cols());
    if (seen->variances.size() > 0) require_test_variances(seen->variances, seen->cross.rows(), where);
  }
  const numerics::BlasThreads guard(useful_threads(n, threads));
  return select_by_band(
      std::move(gram), grid, criterion, [&](BandForm form, const std::vector<double>& lambdas) {
        return regression_scores(std::move(form), targets, lambdas, seen,
                                 criterion == Criterion::leave_one_out ? &left_out : nullptr, choice);
      });
}

}  // namespace

Selection select_regulariser(DoubleMatrix gram, const Matrix<double>& targets,
                             std::optional<ValidationKernel> validation, Criterion criterion,
                             const std::vector<double>& grid, int threads, const LeftOut& left_out) {
  return select_by_regression(std::move(gram), targets, std::move(validation), criterion, grid, threads,
                              left_out, OutputChoice::together)
      .front();
}

std::vector<Selection> select_regularisers(DoubleMatrix gram, const Matrix<double>& targets,
                                           std::optional<ValidationKernel> validation, Criterion criterion,
                                           const std::vector<double>& grid, int threads,
                                           const LeftOut& left_out) {
  return select_by_regression(std::move(gram), targets, std::move(validation), criterion, grid, threads,
                              left_out, OutputChoice::apart);
}

namespace {

std::vector<Selection> select_by_flow(DoubleMatrix nngp, DoubleMatrix ntk, const Matrix<double>& targets,
                                      std::optional<ValidationKernels> validation, Criterion criterion,
                                      const std::vector<double>& grid, int threads, const LeftOut& left_out,
                                      OutputChoice choice) {
  threads = numerics::resolve_threads(threads, where);
  require_grid(grid);
  require_data_for(criterion, validation.has_value());
  if (criterion == Criterion::evidence)
    throw ArgumentError(fmt::format(
        "{}: trained networks have no evidence; choose leave_one_out, or a criterion on validation "
        "data",
        where));
  const Index n = ntk.matrix().rows();
  require_gram(ntk.matrix(), where, "the NTK", threads);
  Matrix<double> k = std::move(nngp).take();
  require_shape(k, n, n, where, "the NNGP Gram matrix (as large as the NTK)");
  require_gram(k, where, "the NNGP Gram matrix", threads);
  require_targets(targets, n, where);
  require_density_for(criterion, targets);
  std::optional<FlowValidationPart> seen;
  if (validation) {
    seen.emplace(std::move(validation->nngp_cross).take(), std::move(validation->ntk_cross).take(),
                 std::move(validation->variances), std::move(validation->targets));
    require_validation(seen->ntk_cross, seen->targets, n, targets.cols());
    require_shape(seen->nngp_cross, seen->ntk_cross.rows(), n, where,
                  "the validation cross NNGP Gram matrix");
    require_finite(seen->nngp_cross, where, "the validation cross NNGP Gram matrix");
    require_test_variances(seen->variances, seen->ntk_cross.rows(), where);
  }
  const numerics::BlasThreads guard(useful_threads(n, threads));
  const bool densities =
      criterion == Criterion::leave_one_out || criterion == Criterion::negative_log_predictive_density;
  // Without densities the NNGP is not needed, and its memory is freed.
  if (!densities) k = Matrix<double>();
  return select_by_band(
      std::move(ntk), grid, criterion, [&](BandForm form, const std::vector<double>& lambdas) {
        return flow_scores(std::move(form), std::move(k), targets, lambdas, seen, left_out, choice);
      });
}

}  // namespace

Selection select_flow_regulariser(DoubleMatrix nngp, DoubleMatrix ntk, const Matrix<double>& targets,
                                  std::optional<ValidationKernels> validation, Criterion criterion,
                                  const std::vector<double>& grid, int threads, const LeftOut& left_out) {
  return select_by_flow(std::move(nngp), std::move(ntk), targets, std::move(validation), criterion, grid,
                        threads, left_out, OutputChoice::together)
      .front();
}

std::vector<Selection> select_flow_regularisers(DoubleMatrix nngp, DoubleMatrix ntk,
                                                const Matrix<double>& targets,
                                                std::optional<ValidationKernels> validation,
                                                Criterion criterion, const std::vector<double>& grid,
                                                int threads, const LeftOut& left_out) {
  return select_by_flow(std::move(nngp), std::move(ntk), targets, std::move(validation), criterion, grid,
                        threads, left_out, OutputChoice::apart);
}

namespace {

Matrix<double> all_columns(const std::vector<Matrix<double>>& blocks) {
  const Index columns = blocks.front().cols();
  Matrix<double> all(blocks.front().rows(), columns * static_cast<Index>(blocks.size()));
  for (std::size_t i = 0; i < blocks.size(); ++i)
    all.middleCols(static_cast<Index>(i) * columns, columns) = blocks[i];
  return all;
}

void require_iterative_selection(const KernelOperator& gram, const Matrix<double>& targets,
                                 const CrossGram& cross, const Matrix<double>& validation_targets,
                                 Criterion criterion) {
  if (criterion != Criterion::accuracy && criterion != Criterion::mean_squared_error)
    throw ArgumentError(
        fmt::format("{}: conjugate gradients serve the criteria accuracy and mean_squared_error, got {}",
                    where, name_of(criterion)));
  require_targets(targets, gram.size(), where);
  if (cross.rows() < 1 || cross.columns() != gram.size())
    throw ArgumentError(
        fmt::format("{}: the validation cross Gram matrix must be [at least one, {}], got [{}, {}]", where,
                    gram.size(), cross.rows(), cross.columns()));
  require_shape(validation_targets, cross.rows(), targets.cols(), where, "the validation targets");
  require_finite(validation_targets, where, "the validation targets");
}

}  // namespace

RegulariserScore validation_score(const Matrix<double>& mean, const Matrix<double>& validation_targets) {
  RegulariserScore score = no_scores();
  score.accuracy = accuracy(mean, validation_targets);
  score.mean_squared_error = mean_squared_error(mean, validation_targets);
  return score;
}

std::vector<Selection> select_by_scores(
    const KernelOperator& gram, const std::vector<double>& grid, Criterion criterion,
    const std::function<std::vector<std::vector<RegulariserScore>>(const std::vector<double>& lambdas)>&
        scores) {
  require_grid(grid);
  const CheckedGrid checked = checked_grid(gram_accuracy(gram), grid);
  std::vector<Selection> selections;
  for (const auto& found : scores(checked.lambdas))
    selections.push_back(selection_by(checked, found, criterion));
  return selections;
}

std::vector<RegulariserScore> validation_scores(const Matrix<double>& mean, const Matrix<double>& targets,
                                                bool apart) {
  if (!apart) return {validation_score(mean, targets)};
  std::vector<RegulariserScore> scores;
  for (Index c = 0; c < targets.cols(); ++c) scores.push_back(validation_score(mean.col(c), targets.col(c)));
  return scores;
}

std::vector<IterativeSelection> IterativeRegression::select_all(
    std::shared_ptr<const KernelOperator> gram, const Matrix<double>& targets,
    const CrossGram& validation_cross, const Matrix<double>& validation_targets,
    const std::vector<double>& grid, Criterion criterion, const ConjugateGradientOptions& options,
    bool apart) {
  require_iterative_selection(*gram, targets, validation_cross, validation_targets, criterion);
  const IterativeRegression base(std::move(gram), options);
  const KernelOperator& k = *base.gram_;
  ShiftedSolutions path;
  std::vector<double> solved;
  const auto selections = select_by_scores(k, grid, criterion, [&](const std::vector<double>& lambdas) {
    solved = lambdas;
    // A candidate that cannot be solved for must not end the search.
    ConjugateGradientOptions lenient = options;
    lenient.leave_out_unsolved = true;
    path = solve_shifted(k, *base.preconditioner_, targets, lambdas, lenient);
    const Matrix<double> means = validation_cross.multiply(all_columns(path.solutions));
    std::vector<std::vector<RegulariserScore>> scores(apart ? static_cast<std::size_t>(targets.cols()) : 1);
    for (std::size_t i = 0; i < lambdas.size(); ++i) {
      const auto of_value =
          validation_scores(means.middleCols(static_cast<Index>(i) * targets.cols(), targets.cols()),
                            validation_targets, apart);
      for (std::size_t c = 0; c < scores.size(); ++c) {
        scores[c].push_back(path.unsolved[i].empty() ? of_value[c] : no_scores());
        scores[c].back().unsolved = path.unsolved[i];
      }
    }
    return scores;
  });
  std::vector<IterativeSelection> results;
  for (std::size_t c = 0; c < selections.size(); ++c) {
    // checked_grid() made lambda of the same numbers, so that it is found with equal bits.
    const double best = gp::noise_variance(selections[c].best, k.diagonal().mean());
    IterativeRegression regression = base;
    regression.take_weights(
        path, static_cast<std::size_t>(std::find(solved.begin(), solved.end(), best) - solved.begin()),
        solved);
    Matrix<double> own = targets;
    if (apart) {
      own = targets.col(static_cast<Index>(c));
      regression.weights_ = Matrix<double>(regression.weights_.col(static_cast<Index>(c)));
    }
    regression.fit_amplitude(own);
    results.push_back({selections[c], std::move(regression)});
  }
  return results;
}

IterativeSelection IterativeRegression::select(std::shared_ptr<const KernelOperator> gram,
                                               const Matrix<double>& targets,
                                               const CrossGram& validation_cross,
                                               const Matrix<double>& validation_targets,
                                               const std::vector<double>& grid, Criterion criterion,
                                               const ConjugateGradientOptions& options) {
  return std::move(select_all(std::move(gram), targets, validation_cross, validation_targets, grid, criterion,
                              options, false)
                       .front());
}

std::vector<IterativeSelection> IterativeRegression::select_each(
    std::shared_ptr<const KernelOperator> gram, const Matrix<double>& targets,
    const CrossGram& validation_cross, const Matrix<double>& validation_targets,
    const std::vector<double>& grid, Criterion criterion, const ConjugateGradientOptions& options) {
  return select_all(std::move(gram), targets, validation_cross, validation_targets, grid, criterion, options,
                    true);
}

}  // namespace widelimit::gp
