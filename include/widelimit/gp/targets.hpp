#pragma once

#include <span>

#include "widelimit/matrix.hpp"

namespace widelimit::gp {

/// The kind of targets.
enum class TargetKind {
  classes,  ///< Scores of classes: the largest output (or the sign of a single one) names a class.
  numbers
};

/// Regression targets of M classes, [n, M]: (M - 1) / M in the column of the input's class, -1 / M elsewhere,
/// so that each row sums to 0, the prior mean. Labels are 0 .. classes - 1, classes >= 2 (ArgumentError).
[[nodiscard]] Matrix<double> class_targets(std::span<const int> labels, int classes);

/// Regression targets of two classes in one column, [n, 1]: +magnitude for label 1, -magnitude for label 0.
/// Other labels, and a magnitude that is not positive and finite, are an ArgumentError.
[[nodiscard]] Matrix<double> binary_targets(std::span<const int> labels, double magnitude = 0.5);

/// The targets of classes: two classes are always one output (binary_targets()), which counts
/// their evidence once; more classes have one output each (class_targets()).
[[nodiscard]] Matrix<double> class_scores(std::span<const int> labels, int classes);

}  // namespace widelimit::gp
