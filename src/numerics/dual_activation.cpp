#include "widelimit/numerics/dual_activation.hpp"

#include <utility>

#include "widelimit/error.hpp"

namespace widelimit::numerics {
namespace {

using DualFunction = std::function<Dual<double>(double, double, double)>;

/// A user's dual without phi: kernels exist, finite networks do not.
class DualActivation final : public Activation {
 public:
  explicit DualActivation(DualFunction dual) : dual_{std::move(dual)} {
    if (!dual_) throw ArgumentError("dual_activation: expected a function, got an empty one");
  }

  [[nodiscard]] double value(double) const override { return no_function(); }
  [[nodiscard]] double derivative(double) const override { return no_function(); }
  [[nodiscard]] Dual<double> dual(double p, double q, double c) const override { return dual_(p, q, c); }

 private:
  [[noreturn]] static double no_function() {
    throw ArgumentError(
        "a nonlinearity of which only the dual is known has no finite network; make it of phi and phi' with "
        "quadrature_activation()");
  }

  DualFunction dual_;
};

}  // namespace

ActivationPtr dual_activation(DualFunction dual) { return std::make_shared<DualActivation>(std::move(dual)); }

}  // namespace widelimit::numerics
