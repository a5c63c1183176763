#pragma once

#include <vector>

#include "widelimit/gp/inference.hpp"
#include "widelimit/gp/regression.hpp"

namespace widelimit::gp {

/// Targets [n, outputs] of what something is learned from.
struct LearningTargets {
  const Matrix<double>& targets;
  TargetKind kind;
  const std::vector<Index>& groups;  ///< LearningOptions::row_groups
};

/// How well training data are predicted from all others, smaller is better: the mean negative log density of numbers,
/// or the log loss of classes, whose scores have the scale that suits them.
[[nodiscard]] double left_out_score(const Regression& regression, const LearningTargets& train);

/// The relative regulariser of the usual grid whose score is the best. Values with which K + lambda I is not
/// positive definite are left out; NotPositiveDefinite if there are no others.
struct LeftOutChoice {
  double regulariser;
  double score;
};
[[nodiscard]] LeftOutChoice left_out_choice(const Matrix<double>& gram, const LearningTargets& train,
                                            int threads);

/// The same scores of other data, for each row: targets [m, outputs], cross [m, n] with the training inputs of the
/// regression, variances [m] of the test inputs.
struct HeldOut {
  const Matrix<double>& cross;
  const Vector<double>& variances;
  const Matrix<double>& targets;
};
[[nodiscard]] Vector<double> held_out_scores(const Regression& regression, const LearningTargets& train,
                                             const HeldOut& held);

}  // namespace widelimit::gp
