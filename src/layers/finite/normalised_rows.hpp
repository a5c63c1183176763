#pragma once

#include <cmath>

#include "widelimit/matrix.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit::finite {

enum class Centring { none, mean };

/// Rows divided by the root of (their variance + epsilon), and the derivative of that. With y = (x - m) r and r = (v
/// + epsilon)^(-1/2), the derivative y' = r (x' - mean(x') - y mean(y x')) is symmetric in the numbers of a row, so
/// gradients pass backward by the same formula. Without centring there is no mean of x'.
template <typename Scalar>
class NormalisedRows {
 public:
  NormalisedRows(Centring centring, double epsilon) : centring_{centring}, epsilon_{epsilon} {}

  /// Normalises in place, and returns r, [rows, 1].
  [[nodiscard]] Matrix<Scalar> normalise(Eigen::Map<Matrix<Scalar>> rows) const {
    Matrix<Scalar> roots(rows.rows(), 1);
    for (Index i = 0; i < rows.rows(); ++i) {
      if (centring_ == Centring::mean) rows.row(i).array() -= rows.row(i).mean();
      const Scalar shifted =
          rows.row(i).squaredNorm() / static_cast<Scalar>(rows.cols()) + static_cast<Scalar>(epsilon_);
      roots(i, 0) = shifted > 0 ? 1 / std::sqrt(shifted) : Scalar{0};
      rows.row(i) *= roots(i, 0);
    }
    return roots;
  }

  /// Replaces x' by y', given the rows and roots of normalise().
  void differentiate(const Eigen::Map<const Matrix<Scalar>>& rows, const Matrix<Scalar>& roots,
                     Eigen::Map<Matrix<Scalar>> direction) const {
    const auto channels = static_cast<Scalar>(rows.cols());
    for (Index i = 0; i < rows.rows(); ++i) {
      auto x = direction.row(i);
      const Scalar along = rows.row(i).dot(x) / channels;
      if (centring_ == Centring::mean) x.array() -= x.mean();
      x = roots(i, 0) * (x - along * rows.row(i));
    }
  }

 private:
  Centring centring_;
  double epsilon_;
};

}  // namespace widelimit::finite
