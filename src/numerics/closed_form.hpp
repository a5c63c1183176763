#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <type_traits>
#include <utility>

#include "widelimit/numerics/activation.hpp"

namespace widelimit::numerics {

/// pq - c^2 in double, at least 0. The plain difference loses all digits near perfect correlation, where
/// near-duplicate inputs sit; the two fused products (Kahan) keep them. p == q == c gives exactly 0.
inline double determinant(double p, double q, double c) {
  const double cc = c * c;
  return std::max(std::fma(p, q, -cc) + std::fma(-c, c, cc), 0.0);
}

/// The products of two floats are exact in double.
inline double determinant(float p, float q, float c) {
  return std::max(
      static_cast<double>(p) * static_cast<double>(q) - static_cast<double>(c) * static_cast<double>(c), 0.0);
}

/// sqrt(pq - c^2), rounded to Scalar only at the end: in float the determinant itself may underflow.
template <typename Scalar>
Scalar root_determinant(Scalar p, Scalar q, Scalar c) {
  return static_cast<Scalar>(std::sqrt(determinant(p, q, c)));
}

/// An Activation from a formula: a small immutable object with
///   double value(double) const, double derivative(double) const,
///   template <typename Scalar> Dual<Scalar> dual(Scalar p, Scalar q, Scalar c) const,
/// and, where phi is positively homogeneous, slopes(). One virtual call serves a row; the formula is inlined
/// there.
template <typename Formula>
class ClosedForm final : public Activation {
 public:
  explicit ClosedForm(Formula formula) : formula_{std::move(formula)} {}

  [[nodiscard]] double value(double x) const override { return formula_.value(x); }
  [[nodiscard]] double derivative(double x) const override { return formula_.derivative(x); }
  [[nodiscard]] Dual<double> dual(double p, double q, double c) const override {
    return formula_.dual(p, q, c);
  }

  [[nodiscard]] std::optional<HomogeneousSlopes> homogeneous() const override {
    if constexpr (requires { formula_.slopes(); }) {
      return formula_.slopes();
    } else {
      return std::nullopt;
    }
  }

  void apply(const DualRow<float>& row) const override { apply_row(row); }
  void apply(const DualRow<double>& row) const override { apply_row(row); }

 private:
  template <typename Scalar>
  void apply_row(const DualRow<Scalar>& row) const {
    const Scalar* const p = row.left[0];
    const Scalar* const q = row.right[0];
    for (std::size_t i = 0; i < row.size; ++i) {
      const Dual<Scalar> entry = formula_.dual(p[i], q[i], row.nngp[i]);
      row.nngp[i] = entry.value;
      if (row.ntk != nullptr) row.ntk[i] *= entry.derivative;
    }
  }

  Formula formula_;
};

template <typename Formula>
ActivationPtr make_closed_form(Formula formula) {
  return std::make_shared<ClosedForm<Formula>>(std::move(formula));
}

}  // namespace widelimit::numerics
