#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "widelimit/numerics/dual.hpp"
#include "widelimit/numerics/formula/jet.hpp"
#include "widelimit/numerics/formula/symbol.hpp"

namespace widelimit::numerics::formula {

/// What a stage makes of one covariance entry: K' and the factor of T'.
template <typename N>
struct Mapped {
  N value;
  N factor;
};

/// The same with its slopes in the variances p and q of both positions and in the covariance c.
template <typename N>
struct MappedSlopes {
  Mapped<N> mapped;
  Mapped<N> left;
  Mapped<N> right;
  Mapped<N> covariance;
};

/// The formula of a stage that acts entry by entry (RowStage, Activation), in a form that can be read: as numbers of
/// either precision, and as text for a device. Auxiliary numbers are those of the stage's prepare(), in its order, and
/// come from the variance of one position.
class RowFormula {
 public:
  virtual ~RowFormula() = default;

  [[nodiscard]] virtual std::size_t auxiliary_count() const = 0;
  /// False if the auxiliary numbers do not come from a position's variance (masks); prepare() must not be called then.
  [[nodiscard]] virtual bool prepares() const = 0;
  /// The largest variance for which apply() is right in a precision.
  [[nodiscard]] virtual double largest_variance(Precision precision) const = 0;

  [[nodiscard]] virtual std::vector<float> prepare(float variance) const = 0;
  [[nodiscard]] virtual std::vector<double> prepare(double variance) const = 0;
  [[nodiscard]] virtual std::vector<Symbol> prepare(const Symbol& variance) const = 0;

  /// An entry with the covariance c, and the auxiliary numbers of both positions.
  [[nodiscard]] virtual Mapped<float> apply(std::span<const float> left, std::span<const float> right,
                                            float c) const = 0;
  [[nodiscard]] virtual Mapped<double> apply(std::span<const double> left, std::span<const double> right,
                                             double c) const = 0;
  [[nodiscard]] virtual Mapped<Symbol> apply(std::span<const Symbol> left, std::span<const Symbol> right,
                                             const Symbol& c) const = 0;

  /// The slopes of apply() after prepare(), of which slopes_of() says more.
  [[nodiscard]] virtual DualSlopes slopes(double p, double q, double c) const = 0;
  [[nodiscard]] virtual SelfSlopes self_slopes(double p) const = 0;
  /// The same as text for a device. Throws std::logic_error for a formula whose slopes cannot be written.
  [[nodiscard]] virtual MappedSlopes<Symbol> written_slopes(const Symbol& p, const Symbol& q,
                                                            const Symbol& c) const = 0;

  /// The factor of K' and T' of a position with itself after apply(); 1 but for dropout.
  [[nodiscard]] virtual double self_factor() const { return 1; }
};

using RowFormulaPointer = std::shared_ptr<const RowFormula>;

/// What a device would compute of a pair of positions with the variances p and q and the covariance c, in double; for
/// formulas that prepare().
[[nodiscard]] std::string text_of(const RowFormula& formula);

/// 32 hexadecimal digits that tell formulas apart by their text, the same in every process.
[[nodiscard]] std::string digest_of(const RowFormula& formula);

/// What activations and row stages also are if they have a formula that can be read.
class Readable {
 public:
  virtual ~Readable() = default;

  /// Null if this one has none after all.
  [[nodiscard]] virtual RowFormulaPointer formula() const = 0;
  /// The dual's formula also where devices cannot take its numbers; null if there is none.
  [[nodiscard]] virtual RowFormulaPointer dual_formula() const { return formula(); }
  /// phi at x as operations; nothing for what is no function of a number, or no formula.
  [[nodiscard]] virtual std::optional<Symbol> written_value(const Symbol& /*x*/) const {
    return std::nullopt;
  }
  /// Whether the digest of the formula stands for the parameters of a layer of a user's own.
  [[nodiscard]] virtual bool is_own() const { return false; }
};

/// The formula of an activation or a row stage; null if it cannot be read.
template <typename Stage>
RowFormulaPointer formula_of(const Stage& stage) {
  const auto* readable = dynamic_cast<const Readable*>(&stage);
  return readable == nullptr ? nullptr : readable->formula();
}

/// The largest variance for which a formula is right in a precision.
template <typename Formula>
double largest_variance_of(const Formula& formula, Precision precision) {
  if constexpr (requires { formula.largest_variance(precision); })
    return formula.largest_variance(precision);
  else
    return precision == Precision::narrow ? 1e30 : 1e300;
}

template <Real N>
Dual<double> dual_of(const Mapped<N>& mapped) {
  return {static_cast<double>(mapped.value), static_cast<double>(mapped.factor)};
}

/// An entry with its slopes: the formula's own (RowFormulaOf), or as jets.
template <typename N, typename Formula>
MappedSlopes<N> mapped_slopes_of(const Formula& formula, const N& p, const N& q, const N& c) {
  if constexpr (requires(std::span<const N> numbers) { formula.template slopes<N>(numbers, numbers, c); })
    return formula.template slopes<N>(formula.prepare(p), formula.prepare(q), c);
  using Number = Jet<N, 3>;
  const auto left = formula.prepare(Number::variable(p, 0)), right = formula.prepare(Number::variable(q, 1));
  const auto [value, factor] = formula.template apply<Number>(left, right, Number::variable(c, 2));
  return {{value.value, factor.value},
          {value.slopes[0], factor.slopes[0]},
          {value.slopes[1], factor.slopes[1]},
          {value.slopes[2], factor.slopes[2]}};
}

/// The same as a dual, computed in N: double, or long double for what leaves its range.
template <Real N = double, typename Formula>
DualSlopes slopes_of(const Formula& formula, double p, double q, double c) {
  const auto [mapped, left, right, covariance] =
      mapped_slopes_of<N>(formula, static_cast<N>(p), static_cast<N>(q), static_cast<N>(c));
  return {dual_of(mapped), dual_of(left), dual_of(right), static_cast<double>(covariance.factor),
          static_cast<double>(covariance.value)};
}

/// The same along p = q = c. The partial slopes may cancel there, so that they are not added up.
template <Real N = double, typename Formula>
SelfSlopes self_slopes_of(const Formula& formula, double p) {
  using Number = Jet<N, 1>;
  const Number variance = Number::variable(static_cast<N>(p), 0);
  const auto numbers = formula.prepare(variance);
  const auto [value, factor] = formula.template apply<Number>(numbers, numbers, variance);
  return {dual_of<N>({value.value, factor.value}), dual_of<N>({value.slopes[0], factor.slopes[0]})};
}

/// Implements RowFormula by the templates
///
///     std::size_t auxiliary_count() const;
///     template <typename N> std::array<N, auxiliary_count> prepare(const N& variance) const, or an std::vector;
///     template <typename N> Mapped<N> apply(std::span<const N> left, std::span<const N> right, const N& c) const;
///
/// of `Formula`, and, if it has them, double largest_variance(Precision), double self_factor(), and, where they are
/// faster than jets, its own slopes, template <typename N> MappedSlopes<N> slopes(left, right, c) const. Without
/// prepare(), auxiliary numbers come from elsewhere.
template <typename Formula>
class RowFormulaOf final : public RowFormula {
 public:
  explicit RowFormulaOf(Formula formula) : formula_{std::move(formula)} {}

  [[nodiscard]] std::size_t auxiliary_count() const override { return formula_.auxiliary_count(); }
  [[nodiscard]] bool prepares() const override { return has_prepare; }
  [[nodiscard]] double largest_variance(Precision precision) const override {
    return largest_variance_of(formula_, precision);
  }
  [[nodiscard]] double self_factor() const override {
    if constexpr (requires { formula_.self_factor(); })
      return formula_.self_factor();
    else
      return 1;
  }

  [[nodiscard]] std::vector<float> prepare(float variance) const override { return prepared(variance); }
  [[nodiscard]] std::vector<double> prepare(double variance) const override { return prepared(variance); }
  [[nodiscard]] std::vector<Symbol> prepare(const Symbol& variance) const override {
    return prepared(variance);
  }
  [[nodiscard]] Mapped<float> apply(std::span<const float> left, std::span<const float> right,
                                    float c) const override {
    return formula_.template apply<float>(left, right, c);
  }
  [[nodiscard]] Mapped<double> apply(std::span<const double> left, std::span<const double> right,
                                     double c) const override {
    return formula_.template apply<double>(left, right, c);
  }
  [[nodiscard]] Mapped<Symbol> apply(std::span<const Symbol> left, std::span<const Symbol> right,
                                     const Symbol& c) const override {
    return formula_.template apply<Symbol>(left, right, c);
  }
  [[nodiscard]] DualSlopes slopes(double p, double q, double c) const override {
    if constexpr (has_prepare)
      return slopes_of(formula_, p, q, c);
    else
      return without_slopes();
  }
  [[nodiscard]] SelfSlopes self_slopes(double p) const override {
    if constexpr (has_prepare)
      return self_slopes_of(formula_, p);
    else
      return {without_slopes().dual, {}};
  }
  [[nodiscard]] MappedSlopes<Symbol> written_slopes(const Symbol& p, const Symbol& q,
                                                    const Symbol& c) const override {
    if constexpr (has_prepare)
      return mapped_slopes_of<Symbol>(formula_, p, q, c);
    else
      without_slopes();
  }

 private:
  [[noreturn]] static DualSlopes without_slopes() {
    throw std::logic_error(
        "formula: auxiliary numbers that do not come from variances have no slopes in them");
  }
  static constexpr bool has_prepare = requires(const Formula& formula, double p) { formula.prepare(p); };
  template <typename N>
  std::vector<N> prepared(const N& variance) const {
    if constexpr (has_prepare) {
      const auto numbers = formula_.prepare(variance);
      return {numbers.begin(), numbers.end()};
    } else {
      return {};
    }
  }

  Formula formula_;
};

template <typename Formula>
RowFormulaPointer row_formula(Formula formula) {
  return std::make_shared<const RowFormulaOf<Formula>>(std::move(formula));
}

}  // namespace widelimit::numerics::formula
