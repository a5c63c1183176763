#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "numerics/adjoint_entry.hpp"
#include "numerics/adjoint_rows.hpp"
#include "numerics/formula/activation_slopes.hpp"
#include "numerics/rows/formula_rows.hpp"
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

/// sqrt(pq - c^2), in double: in float the determinant itself may leave the range.
inline double root_determinant(float p, float q, float c) { return std::sqrt(determinant(p, q, c)); }

/// sqrt(pq - c^2) over the whole range of double: where the products would leave it, p, q and c are scaled by powers of
/// two, which changes no digit.
inline double root_determinant(double p, double q, double c) {
  const double product = p * q;
  if ((product > 1e-280 && product < 1e280) || !(p > 0 && q > 0 && std::isfinite(p) && std::isfinite(q)))
    return std::sqrt(determinant(p, q, c));
  // p is divided by 4^left, q by 4^right and c by 2^(left + right), so that pq - c^2 is divided by 4^(left + right).
  const int left = std::ilogb(p) / 2, right = std::ilogb(q) / 2;
  const double scaled =
      determinant(std::scalbn(p, -2 * left), std::scalbn(q, -2 * right), std::scalbn(c, -left - right));
  return std::scalbn(std::sqrt(scaled), left + right);
}

/// sqrt(a + root^2), where root^2 may leave the range.
inline double root_of_sum(double a, double root) {
  return std::abs(root) < 1e150 ? std::sqrt(a + root * root) : std::hypot(std::sqrt(a), root);
}

/// Rounding errors of a covariance that is known to be that of multiples.
constexpr double perfect_tolerance = 32;

/// Rounding errors within which any covariance counts as perfect before a function that jumps: the angle, and with
/// it the value, has an infinite slope at perfect correlation, so that layer after layer would take the square
/// root of a rounding error.
constexpr double jump_tolerance = 8;

/// The covariance +-sqrt(pq) that c is but for `tolerance` rounding errors; nothing if it is not.
template <typename Scalar>
std::optional<Scalar> perfect_covariance(Scalar p, Scalar q, Scalar c, double tolerance = perfect_tolerance) {
  if (!(p > 0 && q > 0)) return std::nullopt;
  // Equal variances have no rounding error.
  const double product =
      p == q ? static_cast<double>(p) : std::sqrt(static_cast<double>(p)) * std::sqrt(static_cast<double>(q));
  const double rest = 1 - std::abs(static_cast<double>(c)) / product;
  if (!(std::abs(rest) <= tolerance * std::numeric_limits<Scalar>::epsilon())) return std::nullopt;
  return static_cast<Scalar>(std::copysign(product, static_cast<double>(c)));
}

/// An Activation from a formula: a small immutable object with
///   double value(double) const, double derivative(double) const,
///   auto text() const: the dual's formula as all readers have it (numerics/formula/), whose first auxiliary number is
///   the variance; and bool on_devices() const if these cannot always read it;
/// and perhaps
///   template <typename Scalar> Dual<Scalar> dual(Scalar p, Scalar q, Scalar c) const or dual(p, q, c, double root),
///   root = root_determinant(p, q, c): right in a wider range than the text, or faster;
///   HomogeneousSlopes slopes() const, where phi is positively homogeneous;
///   DualSlopes slopes(double p, double q, double c, double root) const, SelfSlopes self_slopes(double p) const, which
///   stand for those of the text; needed, with a dual, where there is none;
///   bool jumps() const: whether phi is discontinuous, see jump_tolerance.
/// One virtual call serves a row; the formula is inlined there.
template <typename Formula>
class ClosedForm : public Activation, public formula::Readable {
 public:
  explicit ClosedForm(Formula formula) : formula_{std::move(formula)} {}

  [[nodiscard]] double value(double x) const override { return formula_.value(x); }
  [[nodiscard]] double derivative(double x) const override { return formula_.derivative(x); }
  [[nodiscard]] Dual<double> dual(double p, double q, double c) const override { return entry(p, q, c); }

  [[nodiscard]] std::optional<HomogeneousSlopes> homogeneous() const override {
    if constexpr (requires { formula_.slopes(); }) {
      return formula_.slopes();
    } else {
      return std::nullopt;
    }
  }

  [[nodiscard]] formula::RowFormulaPointer formula() const override {
    if constexpr (requires { formula_.on_devices(); })
      if (!formula_.on_devices()) return nullptr;
    if constexpr (has_text)
      return formula::row_formula(formula_.text());
    else
      return nullptr;
  }

  [[nodiscard]] DualSlopes slopes(double p, double q, double c) const override {
    return entry_slopes(p, q, c);
  }
  [[nodiscard]] SelfSlopes self_slopes(double p) const override {
    if constexpr (has_slopes)
      return formula_.self_slopes(p);
    else
      return formula::activation_self_slopes(*this, formula_.text(), p);
  }

  void apply(const DualRow<float>& row) const override { apply_row(row); }
  void apply(const DualRow<double>& row) const override { apply_row(row); }
  void apply_adjoint(const AdjointRow<float>& row) const override { apply_adjoint_row(row); }
  void apply_adjoint(const AdjointRow<double>& row) const override { apply_adjoint_row(row); }
  void apply_to_multiples(const DualRow<float>& row) const override { apply_row_to_multiples(row); }
  void apply_to_multiples(const DualRow<double>& row) const override { apply_row_to_multiples(row); }

 protected:
  static constexpr bool takes_root = requires(const Formula& formula, double x) {
    formula.template dual<double>(x, x, x, x);
  };

  template <typename Scalar>
  Dual<Scalar> entry(Scalar p, Scalar q, Scalar c) const {
    if constexpr (requires { formula_.jumps(); })
      if (formula_.jumps())
        if (const auto perfect = perfect_covariance(p, q, c, jump_tolerance))
          return perfect_entry(p, q, *perfect);
    if constexpr (takes_root)
      return formula_.dual(p, q, c, root_determinant(p, q, c));
    else
      return entry_without_root(p, q, c);
  }

  /// The dual where c^2 = pq but for the rounding of c: the determinant is exactly 0.
  template <typename Scalar>
  Dual<Scalar> perfect_entry(Scalar p, Scalar q, Scalar c) const {
    if constexpr (takes_root)
      return formula_.dual(p, q, c, 0.0);
    else
      return entry_without_root(p, q, c);
  }

 private:
  static constexpr bool has_text = requires(const Formula& formula) { formula.text(); };
  static constexpr bool has_slopes = requires(const Formula& formula, double x) {
    formula.slopes(x, x, x, x);
  };

  template <typename Scalar>
  Dual<Scalar> entry_without_root(Scalar p, Scalar q, Scalar c) const {
    if constexpr (requires { formula_.dual(p, q, c); }) {
      return formula_.dual(p, q, c);
    } else {
      const auto [value, factor] =
          formula_.text().template apply<Scalar>(std::span(&p, 1), std::span(&q, 1), c);
      return {value, factor};
    }
  }

  /// Always inlined, as write_adjoint() is.
  template <typename Scalar>
  [[gnu::always_inline]] DualSlopes entry_slopes(Scalar p, Scalar q, Scalar c) const {
    const auto wide_p = static_cast<double>(p), wide_q = static_cast<double>(q);
    if constexpr (has_slopes)
      return formula_.slopes(wide_p, wide_q, static_cast<double>(c), root_determinant(p, q, c));
    else
      return formula::activation_slopes(*this, formula_.text(), wide_p, wide_q, static_cast<double>(c));
  }

  template <typename Scalar>
  void apply_adjoint_row(const AdjointRow<Scalar>& row) const {
    if constexpr (has_slopes) {
      for (std::size_t i = 0; i < row.size; ++i)
        write_adjoint(row, i, entry_slopes(row.left_variance[i], row.right_variance[i], row.nngp[i]));
    } else {
      go_back_by_vectors(row);
    }
  }

  void go_back_by_vectors(const AdjointRow<float>& row) const {
    in_double(row, [this](const AdjointRow<double>& wide) { go_back_by_vectors(wide); });
  }
  /// Entries out of range are done by themselves, so that they do not change the bits of the others.
  void go_back_by_vectors(const AdjointRow<double>& row) const {
    const auto text = formula_.text();
    const auto within = [&](std::size_t i) {
      return formula::is_within_range(text, row.left_variance[i], row.right_variance[i]);
    };
    for (std::size_t begin = 0, end = 0; begin < row.size; begin = end) {
      while (end < row.size && within(end)) ++end;
      if (end > begin) backward_pass(text, part_of(row, begin, end - begin));
      if (end == row.size) return;
      write_adjoint(row, end, slopes(row.left_variance[end], row.right_variance[end], row.nngp[end]));
      ++end;
    }
  }

  /// The caller knows that the two positions may be multiples of each other, so the wider perfect_tolerance applies.
  template <typename Scalar>
  Dual<Scalar> entry_of_multiples(Scalar p, Scalar q, Scalar c) const {
    const std::optional<Scalar> perfect = perfect_covariance(p, q, c);
    return perfect ? perfect_entry(p, q, *perfect) : entry(p, q, c);
  }

  template <typename Scalar, typename Entry>
  static void apply_entries(const DualRow<Scalar>& row, const Entry& entry) {
    const Scalar* const p = row.left[0];
    const Scalar* const q = row.right[0];
    for (std::size_t i = 0; i < row.size; ++i) {
      const Dual<Scalar> dual = entry(p[i], q[i], row.nngp[i]);
      row.nngp[i] = dual.value;
      if (row.ntk != nullptr) row.ntk[i] *= dual.derivative;
    }
  }

  template <typename Scalar>
  void apply_row(const DualRow<Scalar>& row) const {
    apply_entries(row, [&](Scalar p, Scalar q, Scalar c) { return entry(p, q, c); });
  }

  template <typename Scalar>
  void apply_row_to_multiples(const DualRow<Scalar>& row) const {
    apply_entries(row, [&](Scalar p, Scalar q, Scalar c) { return entry_of_multiples(p, q, c); });
  }

  Formula formula_;
};

template <typename Formula>
ActivationPtr make_closed_form(Formula formula) {
  return std::make_shared<ClosedForm<Formula>>(std::move(formula));
}

}  // namespace widelimit::numerics
