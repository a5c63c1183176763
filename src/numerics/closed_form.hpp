#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "numerics/adjoint_entry.hpp"
#include "numerics/adjoint_rows.hpp"
#include "numerics/determinant.hpp"
#include "numerics/formula/activation_slopes.hpp"
#include "numerics/rows/formula_rows.hpp"
#include "widelimit/numerics/activation.hpp"
#include "widelimit/numerics/formula_activation.hpp"

namespace widelimit::numerics {

/// An Activation from one of formula::VectorFormulas, or a formula that jumps: what RowFormulaOf asks of it, whose
/// first auxiliary number is the variance,
///   template <typename N> N value(const N& x) const: phi, and double derivative(double x) const where phi has a kink;
/// and perhaps
///   template <typename N> Mapped<N> with_determinant(left, right, c, det) const: apply() where pq - c^2 is known;
///   bool has_rows() const: false for numbers that vectors and devices cannot take;
///   void check(double p, double q, double c) const: throws where there is no expectation;
///   static constexpr double jump: see jump_slopes(), of a function that is discontinuous at 0;
///   std::optional<HomogeneousSlopes> homogeneous() const.
/// Everything is read from the formula: rows as vectors, single entries, and variances beyond the range of double's
/// squares in long double. No entry depends on its neighbours.
template <typename Formula>
class ClosedForm final : public Activation, public formula::Readable {
 public:
  explicit ClosedForm(const Formula& formula) : formula_{formula} {
    if constexpr (requires { formula.has_rows(); }) has_rows_ = formula.has_rows();
  }

  [[nodiscard]] double value(double x) const override { return formula_.value(x); }
  [[nodiscard]] double derivative(double x) const override {
    if constexpr (requires { formula_.derivative(x); })
      return formula_.derivative(x);
    else
      return slope_at(formula_, x);
  }
  [[nodiscard]] Dual<double> dual(double p, double q, double c) const override { return entry(p, q, c); }

  [[nodiscard]] std::optional<HomogeneousSlopes> homogeneous() const override {
    if constexpr (requires { formula_.homogeneous(); })
      return formula_.homogeneous();
    else
      return std::nullopt;
  }

  [[nodiscard]] formula::RowFormulaPointer formula() const override {
    return has_rows_ ? dual_formula() : nullptr;
  }
  [[nodiscard]] formula::RowFormulaPointer dual_formula() const override {
    return formula::row_formula(formula_);
  }
  [[nodiscard]] std::optional<formula::Symbol> written_value(const formula::Symbol& x) const override {
    return formula_.value(x);
  }

  [[nodiscard]] DualSlopes slopes(double p, double q, double c) const override {
    if constexpr (jumps)
      return jump_slopes(entry(p, q, c), p, q, c, root_determinant(p, q, c));
    else
      return formula::activation_slopes(formula_, p, q, c);
  }
  [[nodiscard]] SelfSlopes self_slopes(double p) const override {
    if constexpr (jumps)
      return {entry(p, p, p), {0, 0}};
    else
      return formula::activation_self_slopes(formula_, p);
  }

  [[nodiscard]] std::size_t auxiliary_count() const override {
    return has_rows_ ? formula_.auxiliary_count() : 1;
  }
  void prepare(const float* variance, float* const* auxiliary, std::size_t size) const override {
    prepare_row(variance, auxiliary, size);
  }
  void prepare(const double* variance, double* const* auxiliary, std::size_t size) const override {
    prepare_row(variance, auxiliary, size);
  }

  void apply(const DualRow<float>& row) const override { apply_row(row); }
  void apply(const DualRow<double>& row) const override { apply_row(row); }
  void apply_to_multiples(const DualRow<float>& row) const override { apply_row_to_multiples(row); }
  void apply_to_multiples(const DualRow<double>& row) const override { apply_row_to_multiples(row); }
  void apply_adjoint(const AdjointRow<float>& row) const override {
    if constexpr (jumps)
      Activation::apply_adjoint(row);
    else if (has_rows_ && formula_rows<Formula>().narrow.apply_adjoint != nullptr)
      go_back(row);
    else
      in_double(row, [this](const AdjointRow<double>& wide) { go_back(wide); });
  }
  void apply_adjoint(const AdjointRow<double>& row) const override {
    if constexpr (jumps)
      Activation::apply_adjoint(row);
    else
      go_back(row);
  }

 private:
  static constexpr bool jumps = requires { Formula::jump; };
  static constexpr double smallest_variance = 1e-140;  ///< Whose products are numbers of double.
  static constexpr std::size_t numbers =
      std::tuple_size_v<decltype(std::declval<const Formula&>().prepare(double{}))>;

  /// The value of a homogeneous function of degree 0 depends on the angle alone: its slope in c is jump / sqrt(pq -
  /// c^2), and Euler's relation 2p f_p + c f_c = 0 gives the others. At perfect correlation, and beyond it by rounding,
  /// the slope is infinite and counts as 0. By hand, because a formula of the angle knows the angle of nearly equal
  /// variables less well.
  [[nodiscard]] static DualSlopes jump_slopes(const Dual<double>& dual, double p, double q, double c,
                                              double root) {
    if (!(p > 0 && q > 0 && root > 0) || perfect_covariance(p, q, c, jump_tolerance))
      return {dual, {0, 0}, {0, 0}, 0, 0};
    const double slope = Formula::jump / root;
    return {dual, {-c / (2 * p) * slope, 0}, {-c / (2 * q) * slope, 0}, 0, slope};
  }

  /// The formula at one entry, whose determinant is exactly 0 if the two variables are multiples of each other.
  template <typename N>
  [[nodiscard]] Dual<double> read(const N& p, const N& q, const N& c, bool are_multiples) const {
    const auto left = formula_.prepare(p), right = formula_.prepare(q);
    if constexpr (requires { formula_.template with_determinant<N>(left, right, c, c); })
      if (are_multiples) return formula::dual_of(formula_.template with_determinant<N>(left, right, c, N(0)));
    return formula::dual_of(formula_.template apply<N>(left, right, c));
  }

  [[nodiscard]] Dual<double> read_in_range(double p, double q, double c, bool are_multiples) const {
    if constexpr (requires { formula_.check(p, q, c); }) formula_.check(p, q, c);
    if (formula::is_within_range(formula_, p, q)) return read(p, q, c, are_multiples);
    return read(static_cast<long double>(p), static_cast<long double>(q), static_cast<long double>(c),
                are_multiples);
  }

  template <typename Scalar>
  [[nodiscard]] Dual<double> entry(Scalar p, Scalar q, Scalar c) const {
    if constexpr (jumps)
      if (const auto perfect = perfect_covariance(p, q, c, jump_tolerance))
        return read_in_range(static_cast<double>(p), static_cast<double>(q), *perfect, true);
    return read_in_range(static_cast<double>(p), static_cast<double>(q), static_cast<double>(c), false);
  }

  template <typename Scalar>
  static void write(const DualRow<Scalar>& row, std::size_t i, const Dual<double>& dual) {
    row.nngp[i] = static_cast<Scalar>(dual.value);
    if (row.ntk != nullptr) row.ntk[i] *= static_cast<Scalar>(dual.derivative);
  }

  template <typename Scalar>
  [[nodiscard]] VarianceRange<Scalar> range(double least) const {
    const auto precision =
        sizeof(Scalar) == sizeof(float) ? formula::Precision::narrow : formula::Precision::wide;
    return {static_cast<Scalar>(least),
            static_cast<Scalar>(formula::largest_variance_of(formula_, precision))};
  }

  /// Calls by_rows(i, count) for parts of a row whose variances vectors take, and alone(i) for other entries.
  template <typename Scalar, typename ByRows, typename Alone>
  void split(VarianceRange<Scalar> range, const Scalar* left, const Scalar* right, std::size_t size,
             const ByRows& by_rows, const Alone& alone) const {
    if (has_rows_ && has_all(range, left, right, size)) return by_rows(0, size);
    for (std::size_t i = 0; i < size; ++i)
      if (has_rows_ && range.has(left[i]) && range.has(right[i]))
        by_rows(i, 1);
      else
        alone(i);
  }

  template <typename Scalar>
  void prepare_row(const Scalar* variance, Scalar* const* auxiliary, std::size_t size) const {
    if constexpr (!jumps)
      if (has_rows_)
        return formula_rows<Formula>().template in<Scalar>().prepare(formula_, variance, auxiliary, size);
    std::copy_n(variance, size, auxiliary[0]);
  }

  template <typename Scalar>
  void apply_row(const DualRow<Scalar>& row) const {
    apply_part(row, 0, row.size);
  }

  template <typename Scalar>
  void apply_part(const DualRow<Scalar>& row, std::size_t begin, std::size_t size) const {
    const Scalar *const p = row.left[0] + begin, *const q = row.right[0] + begin;
    const auto alone = [&](std::size_t i) { write(row, begin + i, entry(p[i], q[i], row.nngp[begin + i])); };
    if constexpr (jumps) {
      for (std::size_t i = 0; i < size; ++i) alone(i);
    } else {
      // Formulas that say no largest variance take all.
      if constexpr (!requires { formula_.largest_variance(formula::Precision::wide); })
        if (has_rows_) return apply_vectors(row, begin, size);
      split(
          range<Scalar>(0), p, q, size,
          [&](std::size_t i, std::size_t count) { apply_vectors(row, begin + i, count); }, alone);
    }
  }

  /// The auxiliary numbers from `begin` on; null where a row has none.
  template <typename Scalar>
  static std::array<const Scalar*, numbers> numbers_from(const Scalar* const* auxiliary, std::size_t begin) {
    std::array<const Scalar*, numbers> from{};
    for (std::size_t k = 0; auxiliary != nullptr && k < numbers; ++k) from[k] = auxiliary[k] + begin;
    return from;
  }

  template <typename Scalar>
  void apply_vectors(const DualRow<Scalar>& row, std::size_t begin, std::size_t size) const {
    const auto left = numbers_from(row.left, begin), right = numbers_from(row.right, begin);
    formula_rows<Formula>().template in<Scalar>().apply(
        formula_,
        {row.nngp + begin, row.ntk == nullptr ? nullptr : row.ntk + begin, left.data(), right.data(), size});
  }

  template <typename Scalar>
  void go_back_by_vectors(const AdjointRow<Scalar>& row, std::size_t begin, std::size_t size) const {
    const auto left = numbers_from(row.left, begin), right = numbers_from(row.right, begin);
    AdjointRow<Scalar> part = part_of(row, begin, size);
    part.left = left.data();
    part.right = right.data();
    formula_rows<Formula>().template in<Scalar>().apply_adjoint(formula_, part);
  }

  /// The caller knows that the two positions may be multiples of each other, so the wider perfect_tolerance applies.
  /// Equal variances have the angle 0 in apply() already, and get its bits; others get an exact determinant of 0.
  template <typename Scalar>
  void apply_row_to_multiples(const DualRow<Scalar>& row) const {
    for (std::size_t i = 0; i < row.size; ++i) {
      const Scalar p = row.left[0][i], q = row.right[0][i];
      const std::optional<double> perfect = perfect_covariance(p, q, row.nngp[i]);
      if (perfect) row.nngp[i] = static_cast<Scalar>(*perfect);
      if (perfect && p != q)
        write(row, i, read_in_range(static_cast<double>(p), static_cast<double>(q), *perfect, true));
      else
        apply_part(row, i, 1);
    }
  }

  template <typename Scalar>
  void go_back(const AdjointRow<Scalar>& row) const {
    const Scalar *const p = row.left_variance, *const q = row.right_variance;
    split(
        range<Scalar>(smallest_variance), p, q, row.size,
        [&](std::size_t begin, std::size_t size) { go_back_by_vectors(row, begin, size); },
        [&](std::size_t i) {
          write_adjoint(
              row, i,
              slopes(static_cast<double>(p[i]), static_cast<double>(q[i]), static_cast<double>(row.nngp[i])));
        });
  }

  Formula formula_;
  bool has_rows_ = true;
};

template <typename Formula>
ActivationPtr make_closed_form(const Formula& formula) {
  return std::make_shared<ClosedForm<Formula>>(formula);
}

}  // namespace widelimit::numerics
