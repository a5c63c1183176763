#include "widelimit/gp/target_scale.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "gp/checks.hpp"
#include "widelimit/error.hpp"

namespace widelimit::gp {
namespace {

void require_columns(const Matrix<double>& matrix, Index outputs, const char* where) {
  require_shape(matrix, -1, outputs, where, "the matrix");
}

/// The mean of a column, from differences to its first number: equal numbers have that number, without rounding.
double mean_of(const Matrix<double>& targets, Index column) {
  const double first = targets(0, column);
  return first + (targets.col(column).array() - first).mean();
}

double deviation_of(const Matrix<double>& targets, Index column, double mean) {
  const auto values = targets.col(column).array();
  // Equal targets have no scale of their own.
  if (values.minCoeff() == values.maxCoeff()) return 1;
  const Vector<double> residuals = (values - mean).matrix();
  // The stable norm neither overflows nor underflows where squares would.
  return residuals.stableNorm() / std::sqrt(static_cast<double>(targets.rows()));
}

}  // namespace

TargetScale::TargetScale(Vector<double> offsets, Vector<double> factors)
    : offsets_{std::move(offsets)}, factors_{std::move(factors)} {
  const bool is_sound = offsets_.size() == factors_.size() && offsets_.allFinite() && factors_.allFinite() &&
                        (factors_.array() > 0).all();
  if (!is_sound)
    throw ArgumentError(
        "TargetScale: expected a finite offset and a positive, finite factor for each output");
}

TargetScale TargetScale::identity(Index outputs) {
  return {Vector<double>::Zero(outputs), Vector<double>::Ones(outputs)};
}

TargetScale TargetScale::centre(const Matrix<double>& targets) {
  constexpr const char* where = "TargetScale";
  require_targets(targets, targets.rows(), where);
  if (targets.rows() < 1) throw ArgumentError(fmt::format("{}: expected a target or more, got none", where));
  Vector<double> offsets(targets.cols());
  for (Index c = 0; c < targets.cols(); ++c) offsets(c) = mean_of(targets, c);
  return {std::move(offsets), Vector<double>::Ones(targets.cols())};
}

TargetScale TargetScale::fit(const Matrix<double>& targets) {
  TargetScale scale = centre(targets);
  for (Index c = 0; c < targets.cols(); ++c) scale.factors_(c) = deviation_of(targets, c, scale.offsets_(c));
  return {std::move(scale.offsets_), std::move(scale.factors_)};
}

TargetScale TargetScale::within(Matrix<double> range) const {
  const bool is_range = range.rows() == 2 && range.cols() == outputs() && range.allFinite() &&
                        (range.row(0).array() <= range.row(1).array()).all();
  if (!is_range)
    throw ArgumentError(fmt::format(
        "TargetScale: expected a range [2, {}], the least above the greatest number of each output",
        outputs()));
  TargetScale scale = *this;
  scale.range_ = std::move(range);
  return scale;
}

Matrix<double> TargetScale::standardised(const Matrix<double>& targets) const {
  require_columns(targets, outputs(), "TargetScale::standardised");
  if (is_identity()) return targets;
  return ((targets.rowwise() - offsets_.transpose()).array().rowwise() / factors_.transpose().array())
      .matrix();
}

Matrix<double> TargetScale::restored(const Matrix<double>& means) const {
  require_columns(means, outputs(), "TargetScale::restored");
  Matrix<double> numbers = means;
  if (!is_identity())
    numbers =
        ((means.array().rowwise() * factors_.transpose().array()).rowwise() + offsets_.transpose().array())
            .matrix();
  for (Index c = 0; c < range_.cols(); ++c)
    numbers.col(c) = numbers.col(c).cwiseMax(range_(0, c)).cwiseMin(range_(1, c));
  return numbers;
}

bool TargetScale::is_identity() const { return offsets_.isZero(0) && (factors_.array() == 1).all(); }

}  // namespace widelimit::gp
