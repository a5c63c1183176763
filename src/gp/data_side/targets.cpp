#include "widelimit/gp/targets.hpp"

#include <fmt/format.h>

#include <cmath>

#include "widelimit/error.hpp"

namespace widelimit::gp {
namespace {

void require_labels(std::span<const int> labels, int classes, const char* where) {
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (labels[i] < 0 || labels[i] >= classes)
      throw ArgumentError(fmt::format("{}: labels must be 0 .. {}, but label {} (from 0) is {}", where,
                                      classes - 1, i, labels[i]));
}

}  // namespace

Matrix<double> class_targets(std::span<const int> labels, int classes) {
  if (classes < 2)
    throw ArgumentError(fmt::format("class_targets: classes must be at least 2, got {}", classes));
  require_labels(labels, classes, "class_targets");
  Matrix<double> targets =
      Matrix<double>::Constant(static_cast<Eigen::Index>(labels.size()), classes, -1.0 / classes);
  for (std::size_t i = 0; i < labels.size(); ++i)
    targets(static_cast<Eigen::Index>(i), labels[i]) = (classes - 1.0) / classes;
  return targets;
}

Matrix<double> binary_targets(std::span<const int> labels, double magnitude) {
  if (!(magnitude > 0) || !std::isfinite(magnitude))
    throw ArgumentError(
        fmt::format("binary_targets: magnitude must be positive and finite, got {}", magnitude));
  require_labels(labels, 2, "binary_targets");
  Matrix<double> targets(static_cast<Eigen::Index>(labels.size()), 1);
  for (std::size_t i = 0; i < labels.size(); ++i)
    targets(static_cast<Eigen::Index>(i), 0) = labels[i] == 1 ? magnitude : -magnitude;
  return targets;
}

Matrix<double> class_scores(std::span<const int> labels, int classes) {
  return classes == 2 ? binary_targets(labels) : class_targets(labels, classes);
}

}  // namespace widelimit::gp
