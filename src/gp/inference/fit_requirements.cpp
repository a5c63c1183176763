// What Fitter expects of problems and options, said before anything is computed.
#include <fmt/format.h>

#include "gp/inference/known_noise.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/fit.hpp"

namespace widelimit::gp {

void require_criterion(Criterion criterion, TargetKind kind) {
  if (criterion == Criterion::accuracy && kind == TargetKind::numbers)
    throw ArgumentError(
        "the criterion accuracy counts classes that are right, and the targets are numbers: choose by loo "
        "(leave-one-out), evidence, mse or nlpd");
}

namespace {

/// Variances are in the squared units of the targets: beyond these bounds they would be 0, or infinite.
void require_squares(const Vector<double>& deviations) {
  constexpr double least = 1e-150, most = 1e150;
  for (Index c = 0; c < deviations.size(); ++c)
    if (deviations(c) < least || deviations(c) > most)
      throw ArgumentError(fmt::format(
          "the training targets{} have a deviation of {:.6g}, whose square leaves the range of double: give "
          "them "
          "in other units, so that it is from {:g} to {:g}",
          deviations.size() > 1 ? fmt::format(" of output {} (from 0)", c) : "", deviations(c), least, most));
}

}  // namespace

void require_varying_targets(const Matrix<double>& targets, TargetKind kind, bool as_they_are,
                             const char* remedy) {
  if (kind == TargetKind::classes || as_they_are) {
    if (targets.isZero(0))
      throw ArgumentError(fmt::format(
          "the training targets are all 0, so that no amplitude of the kernels fits them; {}", remedy));
    return;
  }
  for (Index c = 0; c < targets.cols(); ++c)
    if (targets.col(c).minCoeff() == targets.col(c).maxCoeff())
      throw ArgumentError(fmt::format(
          "the training targets{} are all {}, so that no amplitude of the kernels fits them; {}",
          targets.cols() > 1 ? fmt::format(" of output {} (from 0)", c) : "", targets(0, c) + 0.0, remedy));
  require_squares(TargetScale::fit(targets).factors());
}

std::string against_conjugate_gradients(const IterativeWishes& wishes, const SolverWords& words) {
  const auto& by = wishes.chooses_by;
  if (wishes.outputs > wishes.inputs)
    return fmt::format(
        "cg solves for no more outputs than there are training inputs, got {} outputs and {} inputs: take {}",
        wishes.outputs, wishes.inputs, words.cholesky);
  if (wishes.finite_times)
    return fmt::format("cg knows networks after training only, no {}: leave it out, or take {}", words.time,
                       words.cholesky);
  if (wishes.knows_noise && !wishes.has_amplitude)
    return fmt::format("cg takes {} with {}, as finding it takes factorizations: give one, or take {}",
                       words.amplitude, words.noise, words.cholesky);
  if (by && *by != Criterion::accuracy && *by != Criterion::mean_squared_error)
    return fmt::format(
        "cg chooses regularisers by accuracy or mean squared error on validation data alone: choose by one "
        "of these, give {}, or take {}",
        words.regulariser, words.cholesky);
  return "";
}

void require_rows(const Problem& problem, const FitOptions& options, bool nngp_alone, const char* where) {
  require_row_numbers({problem.noise_variances, problem.weights}, problem.targets.rows(),
                      problem.kind == TargetKind::classes, where);
  const bool known = problem.knows_noise();
  if (!known && problem.weights.size() == 0) return;
  if (!nngp_alone)
    throw ArgumentError(fmt::format(
        "{}: {} are for the NNGP (bayesian models without refit): networks after training have none", where,
        known ? "noise variances" : "weights"));
  if (known && options.noise)
    throw ArgumentError(
        fmt::format("{}: expected noise variances, or a regulariser or a noise; got both", where));
}

}  // namespace widelimit::gp
