#include "gp/learning/left_out_score.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <vector>

#include "widelimit/error.hpp"
#include "widelimit/gp/calibration.hpp"
#include "widelimit/gp/metrics.hpp"
#include "widelimit/gp/not_positive_definite.hpp"
#include "widelimit/gp/selection.hpp"

namespace widelimit::gp {
namespace {

/// How scores become probabilities, from training data left out one by one.
ClassCalibration calibration_of(const LeaveOneOut& others, const Matrix<double>& targets) {
  return fit_class_calibration(targets - others.residuals, others.variances, classes_of(targets)).calibration;
}

/// -log of the probability of the true class of each row.
Vector<double> log_losses(const Matrix<double>& means, const Vector<double>& variances,
                          const ClassCalibration& calibration, const Matrix<double>& targets) {
  const Matrix<double> probabilities = calibration.probabilities(means, variances);
  const std::vector<int> labels = classes_of(targets);
  Vector<double> losses(means.rows());
  for (Index i = 0; i < means.rows(); ++i)
    losses(i) = -std::log(
        std::max(probabilities(i, labels[static_cast<std::size_t>(i)]), std::numeric_limits<double>::min()));
  return losses;
}

}  // namespace

double left_out_score(const Regression& regression, const LearningTargets& train) {
  const LeftOutSets sets = all_sets(train.targets.rows(), train.groups);
  const LeaveOneOut others = regression.leave_one_out(sets);
  if (train.kind == TargetKind::numbers) return others.negative_log_predictive_density();
  const Matrix<double> seen = train.targets(sets.inputs, Eigen::all);
  return log_losses(seen - others.residuals, others.variances, calibration_of(others, seen), seen).mean();
}

Vector<double> held_out_scores(const Regression& regression, const LearningTargets& train,
                               const HeldOut& held) {
  const Matrix<double> means = regression.mean(held.cross);
  const Vector<double> variances =
      regression.variance(held.cross, held.variances).array() + regression.noise_variance();
  if (train.kind == TargetKind::classes) {
    const LeftOutSets sets = all_sets(train.targets.rows(), train.groups);
    return log_losses(means, variances,
                      calibration_of(regression.leave_one_out(sets), train.targets(sets.inputs, Eigen::all)),
                      held.targets);
  }
  const auto outputs = static_cast<double>(means.cols());
  const Vector<double> squares = (held.targets - means).rowwise().squaredNorm();
  return 0.5 *
         (outputs * (2 * std::numbers::pi * variances.array()).log() + squares.array() / variances.array());
}

LeftOutChoice left_out_choice(const Matrix<double>& gram, const LearningTargets& train, int threads) {
  std::optional<LeftOutChoice> best;
  std::optional<NotPositiveDefinite> last;
  for (const double value : regulariser_grid()) {
    try {
      const Regression regression = Regression::fit(gram, train.targets, RelativeRegulariser(value), threads);
      const double score = left_out_score(regression, train);
      if (!best || score < best->score) best = LeftOutChoice{value, score};
    } catch (const NotPositiveDefinite& error) {
      last = error;
    }
  }
  if (!best) throw *last;
  return *best;
}

}  // namespace widelimit::gp
