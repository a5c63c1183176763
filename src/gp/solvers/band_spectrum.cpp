#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gp/solvers/band_form.hpp"
#include "widelimit/numerics/random_stream.hpp"

namespace widelimit::gp {
namespace {

using Eigen::Index;

/// The largest eigenvalue of a symmetric operator on n numbers, apply(x [n, 1]), by Lanczos iterations whose basis is
/// kept orthogonal.
template <typename Apply>
double largest_eigenvalue(Index n, const Apply& apply) {
  constexpr Index most_steps = 1000, steps_between_looks = 8;
  constexpr double residual = 1e-7;  // Relative; the error of the eigenvalue is of its square.
  numerics::RandomStream stream(0);
  Vector<double> start(n);
  for (Index i = 0; i < n; ++i) start(i) = stream.normal();
  const Index last = std::min(n, most_steps);
  Matrix<double> basis(last, n);
  basis.row(0) = start.normalized();
  std::vector<double> diagonal, beside;
  for (Index step = 0;; ++step) {
    Vector<double> next = apply(basis.row(step).transpose()).col(0);
    const auto known = basis.topRows(step + 1);
    const Vector<double> parts = known * next;
    diagonal.push_back(parts(step));
    next -= known.transpose() * parts;
    next -= known.transpose() * (known * next).eval();
    const double length = next.norm();
    const bool ends = step + 1 == last || length <= std::numeric_limits<double>::epsilon() * parts.norm();
    if (ends || (step + 1) % steps_between_looks == 0) {
      Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> ritz;
      ritz.computeFromTridiagonal(Eigen::Map<const Eigen::VectorXd>(diagonal.data(), step + 1),
                                  Eigen::Map<const Eigen::VectorXd>(beside.data(), step));
      const double value = ritz.eigenvalues()(step);
      if (ends || std::abs(length * ritz.eigenvectors()(step, step)) <= residual * std::abs(value))
        return value;
    }
    beside.push_back(length);
    basis.row(step + 1) = next.transpose() / length;
  }
}

}  // namespace

// The smallest one is the largest of the inverse, shifted until that exists.
Spectrum BandForm::spectrum() const {
  constexpr double step = 16;
  const double largest =
      largest_eigenvalue(size(), [&](const Matrix<double>& x) { return multiply_band(x); });
  double shift = 0;
  std::optional<BandCholesky> factor = BandCholesky::of(*this, shift);
  while (!factor) {
    const double rounding =
        static_cast<double>(size()) * std::numeric_limits<double>::epsilon() * frobenius_norm_;
    shift = std::max({step * shift, rounding, std::numeric_limits<double>::min()});
    factor = BandCholesky::of(*this, shift);
  }
  const double inverse = largest_eigenvalue(size(), [&](Matrix<double> x) {
    factor->whiten(x);
    factor->unwhiten(x);
    return x;
  });
  return {1 / inverse - shift, largest, frobenius_norm_, size()};
}

}  // namespace widelimit::gp
