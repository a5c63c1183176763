#include "widelimit/gp/target_transform.hpp"

#include <fmt/format.h>

#include "widelimit/error.hpp"

namespace widelimit::gp {

Matrix<double> logarithms(const Matrix<double>& targets, const char* which) {
  for (Index i = 0; i < targets.rows(); ++i)
    for (Index k = 0; k < targets.cols(); ++k)
      if (!(targets(i, k) > 0))
        throw ArgumentError(
            fmt::format("targets have logarithms where they are positive, and {} target {}{} (from 0) is {}",
                        which, i, targets.cols() > 1 ? fmt::format(" of output {}", k) : "", targets(i, k)));
  return targets.array().log();
}

namespace {

void require_range(const Matrix<double>& values) {
  constexpr double least = 1e-150, most = 1e150;
  for (Index i = 0; i < values.rows(); ++i)
    for (Index k = 0; k < values.cols(); ++k)
      if (!(values(i, k) >= least && values(i, k) <= most))
        throw NumericalError(fmt::format(
            "the prediction of input {} (from 0) is {:.3g} in the units of the targets, which are fitted as "
            "logarithms: numbers outside {:g} to {:g} have no squares in double. The input is far from those "
            "of the training, or the logarithms have a deviation of which means say nothing: leave it out, "
            "or fit the targets themselves",
            i, values(i, k), least, most));
}

}  // namespace

void take_from_logarithms(Matrix<double>& values, const Vector<double>& noise) {
  values = (values.rowwise() + noise.transpose() / 2).array().exp();
  require_range(values);
}

void take_from_logarithms(Matrix<double>& mean, Matrix<double>& variance, const Vector<double>& noise,
                          double scale) {
  variance *= scale * scale;
  mean += variance / 2;
  take_from_logarithms(mean, Vector<double>(scale * scale * noise));
  variance = mean.array().square() * variance.array().expm1();
  if (!variance.allFinite())
    throw NumericalError(
        "variances of logarithms leave the range of double in the units of the targets: fit the targets "
        "themselves");
}

}  // namespace widelimit::gp
