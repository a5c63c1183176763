#include <fmt/format.h>

#include "gp/checks.hpp"
#include "gp/linear_algebra.hpp"
#include "numerics/blas_threads.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/regression.hpp"

namespace widelimit::gp {
namespace {

/// The derivative of leave-one-out's density by way of those of the inverse P of K + lambda I, of the weights and of the
/// amplitude: residuals are w_i / P_ii, variances a / P_ii.
double density_derivative(const Vector<double>& inverse, const Vector<double>& inverse_change,
                          const Matrix<double>& weights, const Matrix<double>& weights_change,
                          double amplitude, double amplitude_change) {
  double sum = 0;
  for (Eigen::Index i = 0; i < inverse.size(); ++i) {
    const double variance = amplitude / inverse(i), change = inverse_change(i) / inverse(i),
                 variance_change = amplitude_change / inverse(i) - variance * change;
    for (Eigen::Index c = 0; c < weights.cols(); ++c) {
      const double residual = weights(i, c) / inverse(i),
                   residual_change = weights_change(i, c) / inverse(i) - residual * change;
      sum += (variance_change + 2 * residual * residual_change -
              residual * residual * variance_change / variance) /
             (2 * variance);
    }
  }
  return sum / static_cast<double>(inverse.size());
}

void require_symmetric(const Matrix<double>& derivative, const char* where) {
  constexpr double rounding = 1e-8;
  const double gap = (derivative - derivative.transpose()).cwiseAbs().maxCoeff(),
               largest = derivative.cwiseAbs().maxCoeff();
  if (gap > rounding * largest)
    throw ArgumentError(fmt::format(
        "{}: a derivative of the Gram matrix must be symmetric, but entries that mirror each other "
        "differ by {:.3g} where the largest is {:.3g}",
        where, gap, largest));
}

}  // namespace

std::vector<Regression::ScoreDerivatives> Regression::score_derivatives(
    std::span<const Matrix<double>> gram_derivatives) const {
  constexpr const char* where = "Regression::score_derivatives";
  if (!noise_)
    throw ArgumentError(fmt::format(
        "{}: this posterior was made of parts, which do not say what its noise follows; use fit()", where));
  if (!(amplitude_ > 0))
    throw NumericalError(fmt::format("{}: the amplitude is 0, as of targets that are all 0", where));
  const Eigen::Index n = weights_.rows();
  const auto outputs = static_cast<double>(weights_.cols());
  const auto* relative = std::get_if<RelativeRegulariser>(&*noise_);
  const numerics::BlasThreads guard(threads_);
  const Matrix<double> inverse = Cholesky(*cholesky_).take_inverse(where);
  const Vector<double> diagonal = inverse.diagonal();
  std::vector<ScoreDerivatives> results;
  for (const Matrix<double>& derivative : gram_derivatives) {
    require_shape(derivative, n, n, where, "a derivative of the Gram matrix");
    require_finite(derivative, where, "a derivative of the Gram matrix");
    require_symmetric(derivative, where);
    Matrix<double> change = derivative;
    if (relative != nullptr) change.diagonal().array() += relative->value() * derivative.diagonal().mean();
    const Matrix<double> of_inverse = multiply(inverse, Transpose::no, change, Transpose::no);
    const Matrix<double> weights_change = -multiply(of_inverse, Transpose::no, weights_, Transpose::no);
    const double misfit_change =
        -weights_.cwiseProduct(multiply(change, Transpose::no, weights_, Transpose::no)).sum();
    // At the most likely amplitude the evidence does not change with it.
    const double amplitude_change =
        amplitude_follows_ ? misfit_change / (static_cast<double>(n) * outputs) : 0;
    const Vector<double> inverse_change = -of_inverse.cwiseProduct(inverse).rowwise().sum();
    results.push_back({-0.5 * (misfit_change / amplitude_ + outputs * of_inverse.diagonal().sum()),
                       density_derivative(diagonal, inverse_change, weights_, weights_change, amplitude_,
                                          amplitude_change)});
  }
  return results;
}

}  // namespace widelimit::gp
