#include <fmt/format.h>

#include "gp/checks.hpp"
#include "gp/solvers/linear_algebra.hpp"
#include "numerics/blas_threads.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/regression.hpp"

namespace widelimit::gp {
namespace {

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

/// Derivatives of the leave-one-out density with respect to K + lambda I, whose inverse is P: residuals are w_i / P_ii
/// and variances a / P_ii, so that the density is the mean of log(2 pi a / P_ii) / 2 + w_i^2 / (2 a P_ii) over the
/// inputs.
struct DensityDerivatives {
  Matrix<double> by_weights;  ///< [n, outputs]
  Vector<double> by_inverse;  ///< In the diagonal of P.
  double by_amplitude;

  DensityDerivatives(const Vector<double>& inverse, const Matrix<double>& weights, double amplitude) {
    const auto n = static_cast<double>(weights.rows()), outputs = static_cast<double>(weights.cols());
    const Vector<double> squares = weights.rowwise().squaredNorm();
    by_weights = (amplitude * n * inverse).cwiseInverse().asDiagonal() * weights;
    by_inverse = -(outputs + squares.array() / (amplitude * inverse.array())) / (2 * n * inverse.array());
    by_amplitude =
        (n * outputs - (squares.array() / inverse.array()).sum() / amplitude) / (2 * n * amplitude);
  }
};

}  // namespace

Regression::ScoreCotangents Regression::score_cotangents() const {
  constexpr const char* where = "Regression::score_cotangents";
  if (!noise_)
    throw ArgumentError(fmt::format(
        "{}: this posterior was made of parts, which do not say what its noise follows; use fit()", where));
  require_fitted_amplitude(amplitude_, where);
  const auto n = static_cast<double>(weights_.rows()), outputs = static_cast<double>(weights_.cols());
  const numerics::BlasThreads guard(threads_);
  const Matrix<double> inverse = Cholesky(*cholesky_).take_inverse(where);
  const DensityDerivatives density(inverse.diagonal(), weights_, amplitude_);
  ScoreCotangents cotangents;
  // d log p / dK = (w w^T / a - outputs P) / 2, summed over outputs. At the most likely amplitude the evidence does not
  // change with it, so that there is no term of the amplitude.
  Matrix<double>& of_evidence = cotangents.log_marginal_likelihood = -0.5 * outputs * inverse;
  add_scaled_gram(of_evidence, 0.5 / amplitude_, weights_);
  // dP = -P dK P and dw = -P dK w lead from derivatives in P and w to those in K, whose symmetric part counts.
  Matrix<double>& of_density = cotangents.leave_one_out_density =
      multiply(inverse, Transpose::no, density.by_inverse.asDiagonal() * inverse, Transpose::no);
  const Matrix<double> moved = multiply(inverse, Transpose::no, density.by_weights, Transpose::no);
  const Matrix<double> of_weights = multiply(moved, Transpose::no, weights_, Transpose::yes);
  of_density = -of_density - 0.5 * (of_weights + of_weights.transpose());
  // The amplitude that fit() chose is y^T w / (n outputs), with the derivative -w w^T / (n outputs).
  if (amplitude_follows_) add_scaled_gram(of_density, -density.by_amplitude / (n * outputs), weights_);
  // With lambda = regulariser tr(K) / n every entry of the diagonal of K moves all of the diagonal of K + lambda I.
  if (const auto* relative = std::get_if<RelativeRegulariser>(&*noise_))
    for (Matrix<double>* cotangent : {&of_evidence, &of_density})
      cotangent->diagonal().array() += relative->value() / n * cotangent->trace();
  return cotangents;
}

std::vector<Regression::ScoreDerivatives> Regression::score_derivatives(
    std::span<const Matrix<double>> gram_derivatives) const {
  constexpr const char* where = "Regression::score_derivatives";
  const Eigen::Index n = weights_.rows();
  const ScoreCotangents cotangents = score_cotangents();
  std::vector<ScoreDerivatives> results;
  for (const Matrix<double>& derivative : gram_derivatives) {
    require_shape(derivative, n, n, where, "a derivative of the Gram matrix");
    require_finite(derivative, where, "a derivative of the Gram matrix");
    require_symmetric(derivative, where);
    results.push_back({cotangents.log_marginal_likelihood.cwiseProduct(derivative).sum(),
                       cotangents.leave_one_out_density.cwiseProduct(derivative).sum()});
  }
  return results;
}

}  // namespace widelimit::gp
