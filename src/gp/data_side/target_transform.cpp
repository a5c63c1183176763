#include "widelimit/gp/target_transform.hpp"

#include <fmt/format.h>

#include "widelimit/error.hpp"

namespace widelimit::gp {

Matrix<double> logarithms(const Matrix<double>& targets, const char* where) {
  for (Index i = 0; i < targets.rows(); ++i)
    for (Index k = 0; k < targets.cols(); ++k)
      if (!(targets(i, k) > 0))
        throw ArgumentError(
            fmt::format("{}: targets have logarithms where they are positive, and target {}{} (from 0) is {}",
                        where, i, targets.cols() > 1 ? fmt::format(" of output {}", k) : "", targets(i, k)));
  return targets.array().log();
}

namespace {

void require_range(const Matrix<double>& values) {
  if (!values.allFinite())
    throw NumericalError(
        "predictions of logarithms leave the range of double once they are in the units of the targets: the "
        "inputs are far from those of the training; cut them to their range, or fit the targets themselves");
}

}  // namespace

void take_from_logarithms(Matrix<double>& values, const Vector<double>& noise) {
  values = (values.rowwise() + noise.transpose() / 2).array().exp();
  require_range(values);
}

void take_from_logarithms(Matrix<double>& mean, Matrix<double>& variance, const Vector<double>& noise) {
  mean += variance / 2;
  take_from_logarithms(mean, noise);
  variance = mean.array().square() * variance.array().expm1();
  require_range(variance);
}

}  // namespace widelimit::gp
