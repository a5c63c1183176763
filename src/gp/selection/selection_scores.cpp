#include "gp/selection/selection_scores.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <span>
#include <utility>

#include "gp/solvers/left_out_by_sets.hpp"
#include "gp/solvers/variances.hpp"
#include "widelimit/gp/metrics.hpp"

namespace widelimit::gp {
namespace {

using Eigen::Index;

/// The evidence at the most likely amplitude a, at which y^T (K + lambda I)^-1 y / a is n outputs.
double evidence(double amplitude, double log_determinant, Index n, Index outputs) {
  const auto count = static_cast<double>(n);
  return -0.5 * static_cast<double>(outputs) *
         (count + log_determinant + count * std::log(2 * std::numbers::pi * amplitude));
}

/// The columns of regulariser number i.
auto columns_of_path(const Matrix<double>& side_by_side, Index outputs, std::size_t i) {
  return side_by_side.middleCols(static_cast<Index>(i) * outputs, outputs);
}

/// (B + lambda I)^-1 x, from both triangular halves.
Matrix<double> solved(const BandCholesky& factor, Matrix<double> x) {
  factor.whiten(x);
  factor.unwhiten(x);
  return x;
}

/// Columns of targets that share an amplitude.
struct Columns {
  Index first;
  Index count;

  [[nodiscard]] auto of(const Matrix<double>& matrix) const { return matrix.middleCols(first, count); }
};

std::vector<Columns> columns_by(OutputChoice choice, Index outputs) {
  if (choice == OutputChoice::together) return {{0, outputs}};
  std::vector<Columns> all;
  for (Index c = 0; c < outputs; ++c) all.push_back({c, 1});
  return all;
}

/// Why a candidate is left out that lies above the known errors of K and still has no factorization.
constexpr const char* not_definite = "K + lambda I is not positive definite in double precision";

/// Weights (K + lambda I)^-1 y of some outputs for all regularisers, and the scores of their means and densities.
class Path {
 public:
  Path(Index first, Index outputs, std::size_t candidates)
      : first_{first},
        outputs_{outputs},
        scores_(candidates, no_scores()),
        others_(candidates),
        amplitudes_(candidates, 0.0) {}

  /// Columns of L^-1 Q^T y, L L^T = B + lambda I, of candidate number i.
  void take(std::size_t i, const Matrix<double>& whitened) {
    amplitudes_[i] = whitened.squaredNorm() / static_cast<double>(whitened.size());
  }
  void take_weights(Matrix<double> weights) { weights_ = std::move(weights); }
  void leave_out(std::size_t i) { scores_[i].unsolved = not_definite; }

  void compare(const Matrix<double>& cross, Matrix<double> targets) {
    validation_targets_ = std::move(targets);
    means_ = multiply(cross, Transpose::no, weights_, Transpose::no);
    for (std::size_t i = 0; i < scores_.size(); ++i) {
      if (!scores_[i].unsolved.empty()) continue;
      scores_[i].accuracy = accuracy(mean(i), validation_targets_);
      scores_[i].mean_squared_error = mean_squared_error(mean(i), validation_targets_);
    }
  }

  /// Adds the density of the validation targets, from variances of the amplitude 1.
  void add_density(std::size_t i, double amplitude, const Vector<double>& variances, double lambda) {
    scores_[i].negative_log_predictive_density = negative_log_predictive_density(
        mean(i), amplitude * variances, amplitude * lambda, validation_targets_);
  }

  [[nodiscard]] Matrix<double> mean(std::size_t i) const { return columns_of_path(means_, outputs_, i); }
  [[nodiscard]] Matrix<double> weights(std::size_t i) const { return columns_of_path(weights_, outputs_, i); }
  /// The amplitude of a Regression: y^T (K + lambda I)^-1 y / (n outputs).
  [[nodiscard]] double amplitude(std::size_t i) const { return amplitudes_[i]; }
  [[nodiscard]] RegulariserScore& score(std::size_t i) { return scores_[i]; }
  /// Takes the leave-one-out predictions of candidate number i, with the amplitude 1, and their score under
  /// `amplitude`.
  void take_others(std::size_t i, LeaveOneOut others, double amplitude, double lambda,
                   const LeftOutScore& score) {
    scores_[i].leave_one_out =
        score ? score(others, amplitude, lambda, first_)
              : LeaveOneOut{others.residuals, amplitude * others.variances}.negative_log_predictive_density();
    others_[i] = std::move(others);
  }
  void give(OutputScores& all) && {
    all.scores.push_back(std::move(scores_));
    all.others.push_back(std::move(others_));
  }

 private:
  Index first_;  ///< Of the outputs.
  Index outputs_;
  std::vector<RegulariserScore> scores_;
  std::vector<LeaveOneOut> others_;
  std::vector<double> amplitudes_;
  Matrix<double> weights_;
  Matrix<double> means_;
  Matrix<double> validation_targets_;
};

/// A path for each set of columns, compared with validation targets where there are some.
struct Paths {
  std::vector<Path> of_columns;
  std::vector<double> log_determinants;
  std::vector<bool> solved;
};

Paths paths_of(const BandForm& form, const std::vector<double>& lambdas, const Matrix<double>& targets,
               const Matrix<double>* cross, const Matrix<double>* validation_targets, OutputChoice choice) {
  const std::vector<Columns> all_columns = columns_by(choice, targets.cols());
  const Matrix<double> projected = form.to_band(targets);
  Matrix<double> solutions =
      Matrix<double>::Zero(targets.rows(), targets.cols() * static_cast<Index>(lambdas.size()));
  Paths paths;
  for (const Columns& columns : all_columns)
    paths.of_columns.emplace_back(columns.first, columns.count, lambdas.size());
  for (std::size_t i = 0; i < lambdas.size(); ++i) {
    const auto factor = BandCholesky::of(form, lambdas[i]);
    paths.solved.push_back(factor.has_value());
    paths.log_determinants.push_back(factor ? factor->log_determinant() : 0);
    if (!factor) {
      for (Path& path : paths.of_columns) path.leave_out(i);
      continue;
    }
    // The squares of the whitened targets give the amplitudes halfway to the weights.
    Matrix<double> x = projected;
    factor->whiten(x);
    for (std::size_t c = 0; c < all_columns.size(); ++c) paths.of_columns[c].take(i, all_columns[c].of(x));
    factor->unwhiten(x);
    solutions.middleCols(static_cast<Index>(i) * targets.cols(), targets.cols()) = x;
  }
  const Matrix<double> weights = form.from_band(std::move(solutions));
  // Weights stand side by side by candidate, those of all outputs together; each path gathers its own columns.
  for (std::size_t c = 0; c < all_columns.size(); ++c) {
    Matrix<double> own(targets.rows(), all_columns[c].count * static_cast<Index>(lambdas.size()));
    for (std::size_t i = 0; i < lambdas.size(); ++i)
      own.middleCols(static_cast<Index>(i) * all_columns[c].count, all_columns[c].count) =
          all_columns[c].of(weights.middleCols(static_cast<Index>(i) * targets.cols(), targets.cols()));
    paths.of_columns[c].take_weights(std::move(own));
    if (cross != nullptr) paths.of_columns[c].compare(*cross, all_columns[c].of(*validation_targets));
  }
  return paths;
}

OutputScores scores_in(Paths paths) {
  OutputScores scores;
  for (Path& path : paths.of_columns) std::move(path).give(scores);
  return scores;
}

/// Columns of Q^T for some inputs. If all are wanted, Q^T is made in the memory of the form, of
/// which only the band is left.
Matrix<double> basis_columns(BandForm& form, const std::vector<Index>& inputs) {
  if (static_cast<Index>(inputs.size()) == form.size()) {
    Matrix<double> basis = form.take_basis();
    // Sets have an order of their own.
    return std::ranges::is_sorted(inputs) ? basis : Matrix<double>(basis(Eigen::all, inputs));
  }
  return form.to_band(unit_columns(form.size(), inputs));
}

/// Entries of the diagonal of (K + lambda I)^-1, from columns of Q^T.
Vector<double> inverse_diagonal(const BandCholesky& factor, const Matrix<double>& basis) {
  Vector<double> diagonal(basis.cols());
  for_each_row_block(basis.cols(), [&](Index first, Index count) {
    Matrix<double> columns = basis.middleCols(first, count);
    factor.whiten(columns);
    diagonal.segment(first, count) = columns.colwise().squaredNorm().transpose();
  });
  return diagonal;
}

/// What leave-one-out predictions take from the kernels: residuals are the blocks of the sets times weights, and the
/// variances, of the amplitude 1, are those of observations.
class OthersOfWeights {
 public:
  /// Inputs that are left out one by one: residuals are weights over g.
  OthersOfWeights(Vector<double> g, Vector<double> variances)
      : g_{std::move(g)}, variances_{std::move(variances)} {}
  /// Inputs in sets: unit weights of all, side by side, give the blocks.
  OthersOfWeights(LeftOutSets sets, Matrix<double> blocks, Vector<double> variances)
      : variances_{std::move(variances)}, sets_{std::move(sets)}, blocks_{std::move(blocks)} {}

  [[nodiscard]] LeaveOneOut of(const Matrix<double>& weights) const {
    if (sets_.ends.empty()) return {g_.cwiseInverse().asDiagonal() * weights, variances_};
    LeaveOneOut others{weights, variances_};
    for (Index begin = 0; const Index end : sets_.ends) {
      const Index size = end - begin;
      others.residuals.middleRows(begin, size) =
          blocks_.block(begin, 0, size, size) * weights.middleRows(begin, size);
      begin = end;
    }
    return others;
  }

 private:
  Vector<double> g_;
  Vector<double> variances_;
  LeftOutSets sets_;
  Matrix<double> blocks_;  ///< [inputs, largest set]: G_gg^-1 of each set, below each other.
};

/// In sets, from columns of Q^T and the NNGP in the same basis, which is null for a regression.
OthersOfWeights others_by_sets(const BandCholesky& factor, double lambda, const Matrix<double>& basis,
                               const Matrix<double>* nngp, const LeftOutSets& sets) {
  Index largest = 0;
  for (Index begin = 0; const Index end : sets.ends) {
    largest = std::max(largest, end - begin);
    begin = end;
  }
  // Unit weights of the first input of each set, then of the second, give the columns of the blocks.
  Matrix<double> units = Matrix<double>::Zero(basis.cols(), largest);
  for (Index begin = 0; const Index end : sets.ends) {
    for (Index k = begin; k < end; ++k) units(k, k - begin) = 1;
    begin = end;
  }
  LeaveOneOut found = left_out_by_sets(
      sets, units, nngp, lambda, [&](std::span<const Index> places, Index first) -> InverseColumns {
        const Matrix<double> own = basis.middleCols(first, static_cast<Index>(places.size()));
        Matrix<double> columns = solved(factor, own);
        Matrix<double> among = own.transpose() * columns;
        return {std::move(columns), std::move(among)};
      });
  return {sets, std::move(found.residuals), std::move(found.variances)};
}

OthersOfWeights regression_others(const BandCholesky& factor, const Matrix<double>& basis,
                                  const LeftOutSets& sets) {
  if (!sets.ends.empty()) return others_by_sets(factor, 0, basis, nullptr, sets);
  Vector<double> g = inverse_diagonal(factor, basis), variances = g.cwiseInverse();
  return {std::move(g), std::move(variances)};
}

/// Of converged networks, see GradientFlow::leave_one_out(). `nngp` and columns of `basis` in the basis of the NTK's
/// band.
OthersOfWeights flow_others(const BandCholesky& factor, double lambda, const Matrix<double>& basis,
                            const Matrix<double>& nngp, const LeftOutSets& sets) {
  if (!sets.ends.empty()) return others_by_sets(factor, lambda, basis, &nngp, sets);
  Vector<double> diagonal(basis.cols()), of_observations(basis.cols());
  for_each_row_block(basis.cols(), [&](Index first, Index count) {
    const Matrix<double> columns = basis.middleCols(first, count), inverse = solved(factor, columns);
    const Vector<double> g = inverse.cwiseProduct(columns).colwise().sum().transpose();
    const Vector<double> variances = quadratic_forms(nngp, inverse).cwiseMax(0);
    diagonal.segment(first, count) = g;
    of_observations.segment(first, count) = variances.array() / g.array().square() + lambda;
  });
  return {std::move(diagonal), std::move(of_observations)};
}

}  // namespace

RegulariserScore no_scores() {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  return {nan, false, nan, nan, nan, nan, nan, {}};
}

OutputScores regression_scores(BandForm form, const Matrix<double>& targets,
                               const std::vector<double>& lambdas,
                               const std::optional<ValidationPart>& validation, const LeftOut* left_out,
                               OutputChoice choice) {
  Paths paths = paths_of(form, lambdas, targets, validation ? &validation->cross : nullptr,
                         validation ? &validation->targets : nullptr, choice);
  Matrix<double> cross;
  if (validation && validation->variances.size() > 0) cross = form.to_band(validation->cross.transpose());
  LeftOutSets sets;
  if (left_out != nullptr) sets = representative_sets(targets.rows(), left_out->groups);
  const Matrix<double> basis = left_out != nullptr ? basis_columns(form, sets.inputs) : Matrix<double>();
  const Index n = targets.rows(), outputs = choice == OutputChoice::together ? targets.cols() : 1;
  for (std::size_t i = 0; i < lambdas.size(); ++i) {
    if (!paths.solved[i]) continue;
    std::optional<OthersOfWeights> others;
    Vector<double> seen;
    if (left_out != nullptr || cross.size() > 0) {
      // The factor is computed again instead of being kept for every candidate, since a band is cheap to factor.
      const BandCholesky factor = BandCholesky::of(form, lambdas[i]).value();
      if (left_out != nullptr) others = regression_others(factor, basis, sets);
      if (cross.size() > 0) {
        Matrix<double> whitened = cross;
        factor.whiten(whitened);
        seen = (validation->variances - whitened.colwise().squaredNorm().transpose()).cwiseMax(0);
      }
    }
    for (Path& path : paths.of_columns) {
      const double amplitude = path.amplitude(i);
      if (amplitude == 0) continue;  // Targets that are all 0 have no finite density.
      path.score(i).log_marginal_likelihood = evidence(amplitude, paths.log_determinants[i], n, outputs);
      if (others)
        path.take_others(i, others->of(path.weights(i)(sets.inputs, Eigen::all)), amplitude, lambdas[i],
                         left_out->score);
      if (cross.size() > 0) path.add_density(i, amplitude, seen, lambdas[i]);
    }
  }
  return scores_in(std::move(paths));
}

OutputScores flow_scores(BandForm ntk, Matrix<double> nngp, const Matrix<double>& targets,
                         const std::vector<double>& lambdas,
                         const std::optional<FlowValidationPart>& validation, const LeftOut& left_out,
                         OutputChoice choice) {
  Paths paths = paths_of(ntk, lambdas, targets, validation ? &validation->ntk_cross : nullptr,
                         validation ? &validation->targets : nullptr, choice);
  if (nngp.size() == 0) return scores_in(std::move(paths));
  // Q^T K Q: each call multiplies with Q^T from the left, the second one the transpose.
  nngp = ntk.to_band(std::move(nngp));
  nngp.transposeInPlace();
  nngp = ntk.to_band(std::move(nngp));
  Matrix<double> ntk_cross, nngp_cross;
  if (validation) {
    ntk_cross = ntk.to_band(validation->ntk_cross.transpose());
    nngp_cross = ntk.to_band(validation->nngp_cross.transpose());
  }
  const LeftOutSets sets = representative_sets(targets.rows(), left_out.groups);
  const Matrix<double> basis = basis_columns(ntk, sets.inputs);
  for (std::size_t i = 0; i < lambdas.size(); ++i) {
    if (!paths.solved[i]) continue;
    const BandCholesky factor = BandCholesky::of(ntk, lambdas[i]).value();
    const OthersOfWeights others = flow_others(factor, lambdas[i], basis, nngp, sets);
    Vector<double> seen;
    if (validation) {
      // docs/theory/inference.md, section 3, at infinite time: with b = (T + lambda I)^-1 T_*^T the variance is K_** +
      // b^T K b - 2 b^T K_*^T, all in the basis of the band.
      const Matrix<double> response = solved(factor, ntk_cross);
      seen = (validation->variances + quadratic_forms(nngp, response) -
              2 * response.cwiseProduct(nngp_cross).colwise().sum().transpose())
                 .cwiseMax(0);
    }
    for (Path& path : paths.of_columns) {
      LeaveOneOut unit = others.of(path.weights(i)(sets.inputs, Eigen::all));
      const double amplitude = unit.most_likely_scale("select_regulariser");
      if (amplitude == 0) continue;
      path.take_others(i, std::move(unit), amplitude, lambdas[i], left_out.score);
      if (validation) path.add_density(i, amplitude, seen, lambdas[i]);
    }
  }
  return scores_in(std::move(paths));
}

}  // namespace widelimit::gp
