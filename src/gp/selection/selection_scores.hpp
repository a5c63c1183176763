#pragma once

#include <optional>
#include <vector>

#include "gp/solvers/band_form.hpp"
#include "gp/solvers/linear_algebra.hpp"
#include "widelimit/gp/leave_one_out.hpp"
#include "widelimit/gp/selection.hpp"
#include "widelimit/matrix.hpp"

/// Scores of regularisers, from one reduction to a band for all of them. One for which K + lambda I is not positive
/// definite is RegulariserScore::unsolved.
namespace widelimit::gp {

/// Validation data for regression_scores(): the kernel with the training inputs, [validation, n], and targets.
struct ValidationPart {
  Matrix<double> cross;
  Vector<double> variances;  ///< Empty if not known.
  Matrix<double> targets;

  ValidationPart(Matrix<double> k, Vector<double> prior, Matrix<double> y)
      : cross{std::move(k)}, variances{std::move(prior)}, targets{std::move(y)} {}
};

/// Whether all outputs share a regulariser and an amplitude, or each has its own.
enum class OutputChoice { together, apart };

/// Scores for each of `lambdas`, in their order: one list for all outputs together, or a list for each output.
struct OutputScores {
  std::vector<std::vector<RegulariserScore>> scores;
  /// Predictions of representative_sets() from all others, with the amplitude 1; empty where they were not asked for.
  std::vector<std::vector<LeaveOneOut>> others;
};

/// Scores of Regression. The Gram matrix is used up. `left_out` is null where nothing is.
[[nodiscard]] OutputScores regression_scores(BandForm form, const Matrix<double>& targets,
                                             const std::vector<double>& lambdas,
                                             const std::optional<ValidationPart>& validation,
                                             const LeftOut* left_out, OutputChoice choice);

struct FlowValidationPart {
  Matrix<double> nngp_cross;
  Matrix<double> ntk_cross;
  Vector<double> variances;
  Matrix<double> targets;

  FlowValidationPart(Matrix<double> k, Matrix<double> t, Vector<double> prior, Matrix<double> y)
      : nngp_cross{std::move(k)},
        ntk_cross{std::move(t)},
        variances{std::move(prior)},
        targets{std::move(y)} {}
};

/// Scores of GradientFlow at infinite time, with the amplitude of leave-one-out residuals. Both matrices are used up;
/// the NNGP is empty where no densities are wanted.
[[nodiscard]] OutputScores flow_scores(BandForm ntk, Matrix<double> nngp, const Matrix<double>& targets,
                                       const std::vector<double>& lambdas,
                                       const std::optional<FlowValidationPart>& validation,
                                       const LeftOut& left_out, OutputChoice choice);

}  // namespace widelimit::gp
