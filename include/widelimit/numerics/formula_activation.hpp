#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "widelimit/error.hpp"
#include "widelimit/numerics/activation.hpp"
#include "widelimit/numerics/formula/row_formula.hpp"
#include "widelimit/numerics/quadrature_activation.hpp"

namespace widelimit::numerics {

/// phi' at x of a function that is written as a template over the number type (formula/number.hpp).
template <typename Function>
double slope_at(const Function& function, double x) {
  return function.value(formula::Jet<double, 1>::variable(x, 0)).slopes[0];
}

/// A template dual(p, q, c) as a formula: the factor of the NTK is its slope in c (Price's theorem).
template <typename Function>
struct DualFormula {
  Function function;

  [[nodiscard]] static std::size_t auxiliary_count() { return 1; }
  template <typename N>
  static std::array<N, 1> prepare(const N& variance) {
    return {variance};
  }
  template <typename N>
  [[nodiscard]] formula::Mapped<N> apply(std::span<const N> left, std::span<const N> right,
                                         const N& c) const {
    using Number = formula::Jet<N, 1>;
    const Number dual = function.dual(Number(left[0]), Number(right[0]), Number::variable(c, 0));
    return {dual.value, dual.slopes[0]};
  }
};

template <typename Function>
class FormulaActivation final : public Activation, public formula::Readable {
 public:
  explicit FormulaActivation(Function function) : formula_{std::move(function)} {}

  [[nodiscard]] double value(double x) const override {
    if constexpr (has_value)
      return formula_.function.value(x);
    else
      return no_function();
  }
  [[nodiscard]] double derivative(double x) const override {
    if constexpr (has_value)
      return slope_at(formula_.function, x);
    else
      return no_function();
  }
  [[nodiscard]] Dual<double> dual(double p, double q, double c) const override {
    const auto [value, factor] = formula_.template apply<double>(formula_.prepare(p), formula_.prepare(q), c);
    return {value, factor};
  }
  [[nodiscard]] DualSlopes slopes(double p, double q, double c) const override {
    return formula::slopes_of(formula_, p, q, c);
  }
  [[nodiscard]] SelfSlopes self_slopes(double p) const override {
    return formula::self_slopes_of(formula_, p);
  }
  [[nodiscard]] formula::RowFormulaPointer formula() const override { return formula::row_formula(formula_); }
  [[nodiscard]] std::optional<formula::Symbol> written_value(const formula::Symbol& x) const override {
    if constexpr (has_value)
      return formula_.function.value(x);
    else
      return std::nullopt;
  }
  [[nodiscard]] bool is_own() const override { return true; }

 private:
  static constexpr bool has_value = requires(const Function& function, double x) { function.value(x); };

  [[noreturn]] static double no_function() {
    throw ArgumentError(
        "a nonlinearity of which only the dual is known has no finite network: give its formula a template "
        "value(x), which is phi");
  }

  DualFormula<Function> formula_;
};

/// An activation of your own from one template over the number type. An immutable object that can be copied, with
/// `template <typename N> N dual(const N& p, const N& q, const N& c) const`,
/// E[phi(u) phi(v)] for variances p and q and the covariance c, and, for finite networks,
/// `template <typename N> N value(const N& x) const`,
/// which is phi. Both call the functions of widelimit/numerics/formula/number.hpp, and write constants as N(2). N is
/// float, double, formula::Jet, whose slopes make the NTK and the backward pass, and formula::Symbol, whose text is
/// what devices compute and what tells the formula from others, in prints and in stores. is_less() and choose() stand
/// for conditions, as a Symbol has no value. The dual must obey the laws of Activation, also where a variance is 0.
///
/// Without dual(), the dual comes from phi by quadrature (quadrature_activation()), with its derivative by jets.
template <typename Function>
ActivationPtr formula_activation(Function function) {
  if constexpr (requires(double x) { function.dual(x, x, x); })
    return std::make_shared<const FormulaActivation<Function>>(std::move(function));
  else
    return quadrature_activation([function](double x) { return function.value(x); },
                                 [function](double x) { return slope_at(function, x); });
}

}  // namespace widelimit::numerics
