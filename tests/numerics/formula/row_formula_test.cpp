// Formulas in all readings, against the duals of the activations over their whole range: as float, as double, and as
// the text of a program in C.
#include "widelimit/numerics/formula/row_formula.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "widelimit/numerics/activations.hpp"

namespace widelimit::numerics {
namespace {

struct FormulaCase {
  std::string name;
  ActivationPtr activation;
  double smallest = -6, largest = 6;  ///< Powers of ten of the variances.
};

std::vector<FormulaCase> formula_cases() {
  return {{"identity", identity(), -12, 12},
          {"relu", relu(), -14, 14},
          {"leaky_relu", leaky_relu(0.2), -14, 14},
          {"ab_relu", homogeneous(-0.3, 0.9), -14, 14},
          {"abs", abs(), -14, 14},
          {"sign", sign(), -12, 12},
          {"step", rectified_monomial(0), -12, 12},
          {"rectified square", rectified_monomial(2), -4, 4},
          {"rectified of degree 5", rectified_monomial(5), -2, 2},
          {"erf", erf(), -12, 12},
          {"erf with numbers", erf(1.3, 0.7, 0, 0.2), -12, 12},
          {"sigmoid_like", sigmoid_like(), -12, 12},
          {"gelu", gelu(), -12, 12},
          {"gaussian", gaussian(1.2, -0.6), -12, 12},
          {"sin", sin(1.1, 0.9, 0.3), -10, 3},
          {"cos", cos(0.8, 1.2, 0), -10, 3},
          {"plain sin", sin(), -10, 3},
          {"rbf", rbf(0.6), -10, 3},
          {"exp", exponential(0.7, 0.4), -10, 1.5},
          {"square", monomial(2), -6, 6},
          {"constant", polynomial({0.7}), -6, 6},
          {"line", polynomial({0.7, 0.3}), -6, 6},
          {"cubic", polynomial({0.3, 1, -0.3}), -2, 2},
          {"hermite", hermite(3), -2, 2},
          {"gabor", gabor(), -10, 10}};
}

/// The largest error of a reading, relative to the root mean squares of both variables. Jumps have an infinite slope at
/// correlation 1, so that they are not compared near it.
template <typename Scalar>
double worst_error(const FormulaCase& of) {
  const auto formula = formula::formula_of(*of.activation);
  REQUIRE(formula != nullptr);
  REQUIRE(formula->auxiliary_count() == of.activation->auxiliary_count());
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> power(of.smallest, of.largest), correlation(-1, 1);
  const bool jumps = of.name == "sign" || of.name == "step";
  double worst = 0;
  for (int i = 0; i < 20000; ++i) {
    auto p = static_cast<Scalar>(std::pow(10, power(random))),
         q = static_cast<Scalar>(std::pow(10, power(random)));
    const int kind = i % 8;
    if (kind < 3) q = p;
    if (kind == 7) p = 0;
    double rho = correlation(random);
    if (kind == 0) rho = 1;
    if (kind == 1) rho = -1;
    if (kind == 2) rho = std::copysign(1 - std::pow(10, -6 * std::abs(rho)), rho);
    if (kind == 3) rho = 0;
    const Scalar c = kind == 0   ? p
                     : kind == 1 ? -p
                                 : static_cast<Scalar>(rho * std::sqrt(static_cast<double>(p)) *
                                                       std::sqrt(static_cast<double>(q)));
    if (jumps && kind == 2) continue;
    const auto mapped = formula->apply(formula->prepare(p), formula->prepare(q), c);
    const auto wide_p = static_cast<double>(p), wide_q = static_cast<double>(q);
    const Dual<double> exact = of.activation->dual(wide_p, wide_q, static_cast<double>(c));
    const auto own = [&](double v) { return of.activation->dual(v, v, v); };
    const double value_scale = std::sqrt(own(wide_p).value) * std::sqrt(own(wide_q).value);
    const double own_factors = std::sqrt(own(wide_p).derivative) * std::sqrt(own(wide_q).derivative);
    // Slopes of mean 0 at one variable leave a rounding error of those at the other one.
    const double factor_scale =
        own_factors > 0 ? own_factors : std::max(own(wide_p).derivative, own(wide_q).derivative);
    const auto note = [&](double error, double scale) {
      if (error == 0) return;
      const double relative = error / scale;
      if (!(relative <= worst)) worst = relative;
    };
    note(std::abs(static_cast<double>(mapped.value) - exact.value), value_scale);
    note(std::abs(static_cast<double>(mapped.factor) - exact.derivative), factor_scale);
  }
  return worst;
}

TEST_CASE("formulas agree with the duals over their whole range") {
  for (const FormulaCase& of : formula_cases()) {
    CAPTURE(of.name);
    // An exponential turns a rounding error of its exponent, up to 30 here, into as many of the result.
    CHECK(worst_error<double>(of) < 2e-14);
    CHECK(worst_error<float>(of) < (of.name == "exp" ? 1e-5 : 2e-6));
  }
}

}  // namespace
}  // namespace widelimit::numerics
