#include "numerics/formula/homogeneous.hpp"

#include <fmt/format.h>

#include <numbers>

#include "numerics/checks.hpp"
#include "numerics/closed_form.hpp"
#include "numerics/rows/homogeneous_row.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/activations.hpp"

namespace widelimit::numerics {
namespace {

/// Variances that rows accept: products of two must stay clear of the ends of the range.
template <typename Scalar>
constexpr Scalar smallest_variance = sizeof(Scalar) == 4 ? Scalar(1e-15) : Scalar(1e-140);
template <typename Scalar>
constexpr Scalar largest_variance = sizeof(Scalar) == 4 ? Scalar(1e15) : Scalar(1e140);

class Homogeneous final : public Activation, public formula::Readable {
 public:
  Homogeneous(double negative, double positive)
      : negative_{negative},
        positive_{positive},
        // The derivative dual at correlation 1 and at -1, and omega of docs/theory/kernel-recursion.md, section 3.
        dual_{.aligned = (negative * negative + positive * positive) / 2,
              .opposed = negative * positive,
              .weight = (positive - negative) * (positive - negative) / (2 * std::numbers::pi)} {}

  [[nodiscard]] double value(double x) const override { return x < 0 ? negative_ * x : positive_ * x; }
  [[nodiscard]] double derivative(double x) const override {
    if (x == 0) return (negative_ + positive_) / 2;
    return x < 0 ? negative_ : positive_;
  }
  [[nodiscard]] std::optional<HomogeneousSlopes> homogeneous() const override {
    return HomogeneousSlopes{negative_, positive_};
  }

  /// The angle is measured from the nearer of perfect correlation and perfect anticorrelation, where the
  /// derivative is the mean square and the product of the slopes: both ends are exact.
  [[nodiscard]] Dual<double> dual(double p, double q, double c) const override {
    const double root = root_determinant(p, q, c);
    // A variance of 0 counts as uncorrelated (docs/theory/kernel-recursion.md, section 3).
    const double angle = p > 0 && q > 0 ? std::atan2(root, std::abs(c)) : std::numbers::pi / 2;
    const double derivative =
        c < 0 ? dual_.opposed + dual_.weight * angle : dual_.aligned - dual_.weight * angle;
    return {dual_.weight * root + derivative * c, derivative};
  }

  [[nodiscard]] DualSlopes slopes(double p, double q, double c) const override {
    return formula::activation_slopes(formula::HomogeneousFormula{dual_}, p, q, c);
  }
  /// The formula takes a variance of 0 as uncorrelated, with itself too; the limit of the slopes does not.
  [[nodiscard]] SelfSlopes self_slopes(double p) const override {
    return {dual(p, p, p), {dual_.aligned, 0}};
  }

  [[nodiscard]] std::size_t auxiliary_count() const override { return 2; }
  void prepare(const float* variance, float* const* auxiliary, std::size_t size) const override {
    prepare_row(variance, auxiliary, size);
  }
  void prepare(const double* variance, double* const* auxiliary, std::size_t size) const override {
    prepare_row(variance, auxiliary, size);
  }
  [[nodiscard]] bool clears_gaps() const override { return true; }
  [[nodiscard]] formula::RowFormulaPointer formula() const override {
    return formula::row_formula(formula::HomogeneousFormula{dual_});
  }
  /// The mean slope and half of what the slopes differ by: the slope at 0 is the mean.
  [[nodiscard]] std::optional<formula::Symbol> written_value(const formula::Symbol& x) const override {
    return formula::Symbol((negative_ + positive_) / 2) * x +
           formula::Symbol((positive_ - negative_) / 2) * magnitude(x);
  }
  void apply(const DualRow<float>& row) const override { homogeneous_rows<float>().apply(dual_, row); }
  void apply(const DualRow<double>& row) const override { homogeneous_rows<double>().apply(dual_, row); }
  void apply_to_multiples(const DualRow<float>& row) const override { apply_row_to_multiples(row); }
  void apply_to_multiples(const DualRow<double>& row) const override { apply_row_to_multiples(row); }
  void apply_adjoint(const AdjointRow<float>& row) const override {
    homogeneous_rows<float>().apply_adjoint(dual_, row);
  }
  void apply_adjoint(const AdjointRow<double>& row) const override {
    homogeneous_rows<double>().apply_adjoint(dual_, row);
  }

 private:
  /// Equal variances and covariances give the bits of apply().
  template <typename Scalar>
  void apply_row_to_multiples(const DualRow<Scalar>& row) const {
    for (std::size_t i = 0; i < row.size; ++i) {
      const Scalar p = row.left[0][i], q = row.right[0][i], c = row.nngp[i];
      Dual<double> entry;
      if (const std::optional<double> perfect = perfect_covariance(p, q, c)) {
        entry.derivative = *perfect < 0 ? dual_.opposed : dual_.aligned;
        entry.value = entry.derivative * *perfect;
      } else {
        entry = dual(static_cast<double>(p), static_cast<double>(q), static_cast<double>(c));
      }
      row.nngp[i] = static_cast<Scalar>(entry.value);
      if (row.ntk != nullptr) row.ntk[i] *= static_cast<Scalar>(entry.derivative);
    }
  }

  template <typename Scalar>
  void prepare_row(const Scalar* variance, Scalar* const* auxiliary, std::size_t size) const {
    for (std::size_t i = 0; i < size; ++i)
      if (variance[i] != 0 &&
          !(variance[i] >= smallest_variance<Scalar> && variance[i] <= largest_variance<Scalar>))
        throw NumericalError(
            fmt::format("a variance before a ReLU-like activation must be 0 or in [{:g}, {:g}] in this "
                        "precision, got {:g}; rescale the inputs or weights, or use double",
                        smallest_variance<Scalar>, largest_variance<Scalar>, variance[i]));
    homogeneous_rows<Scalar>().prepare(variance, auxiliary, size);
  }

  double negative_;
  double positive_;
  formula::HomogeneousDual dual_;
};

}  // namespace

ActivationPtr homogeneous(double negative, double positive) {
  require_finite("homogeneous", "the negative slope", negative);
  require_finite("homogeneous", "the positive slope", positive);
  // Equal slopes have no kink, so no angle is needed, and variances may have any size.
  if (negative == positive) return make_closed_form(formula::LinearFormula{positive});
  return std::make_shared<Homogeneous>(negative, positive);
}

ActivationPtr relu() { return std::make_shared<Homogeneous>(0, 1); }

ActivationPtr leaky_relu(double slope) {
  require_finite("leaky_relu", "slope", slope);
  return homogeneous(slope, 1);
}

ActivationPtr abs() { return std::make_shared<Homogeneous>(-1, 1); }

}  // namespace widelimit::numerics
