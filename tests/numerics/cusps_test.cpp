// Functions without a derivative dual, and steps, whose derivative is 0: what there is of them.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "numerics/relative.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/activations.hpp"
#include "widelimit/numerics/quadrature_activation.hpp"

using namespace widelimit;
using namespace widelimit::numerics;

namespace {

/// 2F1(a, a; c; z) by its series, for z away from 1.
double hypergeometric(double a, double c, double z) {
  double sum = 0, term = 1;
  for (int n = 0; n < 4000; ++n) {
    sum += term;
    term *= (a + n) * (a + n) / ((c + n) * (1 + n)) * z;
  }
  return sum;
}

/// E |u|^a |v|^a, or of sign(u) |u|^a sign(v) |v|^a.
double power_dual(double a, bool is_odd, double p, double q, double c) {
  const double rho = c / std::sqrt(p * q);
  const double scale = std::pow(2, a) * std::pow(p * q, a / 2) / std::numbers::pi;
  if (is_odd)
    return scale * 2 * rho * std::pow(std::tgamma(a / 2 + 1), 2) *
           hypergeometric((1 - a) / 2, 1.5, rho * rho);
  return scale * std::pow(std::tgamma((a + 1) / 2), 2) * hypergeometric(-a / 2, 0.5, rho * rho);
}

double power(double x, double exponent, bool is_odd) {
  return (is_odd && x < 0 ? -1 : 1) * std::pow(std::abs(x), exponent);
}

}  // namespace

TEST_CASE("cusps: the dual of powers without a square-integrable derivative, by phi alone and with phi'") {
  for (const double a : {0.1, 0.25, 1.0 / 3, 0.5, 2.0 / 3})
    for (const bool is_odd : {false, true}) {
      CAPTURE(a);
      CAPTURE(is_odd);
      const auto phi = [=](double x) { return power(x, a, is_odd); };
      const auto slope = [=](double x) { return a * power(x, a - 1, !is_odd); };
      for (const auto& found : {quadrature_activation(phi), quadrature_activation(phi, slope)})
        for (const double p : {1e-6, 0.7, 40.0})
          for (const double rho : {-0.95, 0.0, 0.4, 0.99}) {
            const double q = 1.3 * p, c = rho * std::sqrt(p * q);
            const auto dual = found->dual(p, q, c);
            const double size = power_dual(a, false, p, q, 0.9999 * std::sqrt(p * q));
            CHECK(std::abs(dual.value - power_dual(a, is_odd, p, q, c)) <= 1e-10 * size);
            CHECK(std::isnan(dual.derivative));
          }
      CHECK(quadrature_activation(phi)->dual(2, 2, 2).value ==
            testing::relative(std::pow(4, a) * std::tgamma(a + 0.5) / std::sqrt(std::numbers::pi), 1e-10));
    }
}

TEST_CASE("cusps: off the places that a mesh halves, and logarithms") {
  // E log|u|^2 = (log p - gamma - log 2)^2 / 4 + pi^2 / 8.
  const auto logarithm = quadrature_activation([](double x) { return std::log(std::abs(x)); });
  const double mean = (std::log(1.7) - std::numbers::egamma - std::numbers::ln2) / 2;
  CHECK(logarithm->dual(1.7, 1.7, 1.7).value ==
        testing::relative(mean * mean + std::numbers::pi * std::numbers::pi / 8, 1e-9));
  for (const double place : {1.0 / 3, 0.3, -7.77, 1000.25}) {
    CAPTURE(place);
    const auto found = quadrature_activation([=](double x) { return std::cbrt(x - place); });
    const auto declared = quadrature_activation([=](double x) { return std::cbrt(x - place); },
                                                {.breakpoints = {place}, .finds_kinks = false});
    for (const double c : {-1.1, 0.5, 2.0})
      CHECK(found->dual(2, 2, c).value == testing::relative(declared->dual(2, 2, c).value, 1e-10));
  }
}

TEST_CASE("cusps: what needs a derivative dual says so") {
  const auto root = quadrature_activation([](double x) { return std::cbrt(x); }, {.name = "own"});
  const auto says = doctest::Contains(
      "needs E phi'^2, which is infinite or too close to a cusp of phi to be computed: near 0 phi is steeper "
      "than |x - 0|^0.8; ask for the NNGP alone, give the dual itself, or round the cusp off");
  CHECK_THROWS_WITH_AS((void)root->slopes(1, 1, 0.5), says, ArgumentError);
  CHECK_THROWS_WITH_AS((void)root->self_slopes(1), says, ArgumentError);
  CHECK_THROWS_WITH_AS((void)quadrature_activation([](double x) { return std::pow(std::abs(x), -0.25); }),
                       doctest::Contains("phi must be bounded, or grow like a logarithm: towards 0"),
                       ArgumentError);
  CHECK_THROWS_WITH_AS((void)quadrature_activation([](double x) { return std::cbrt(x); },
                                                   [](double x) { return std::cos(x); }),
                       doctest::Contains("the derivative, given or taken by differences, is not that of phi"),
                       ArgumentError);
}

TEST_CASE("cusps: what is smooth enough keeps its derivative dual") {
  using Function = std::function<double(double)>;
  const std::vector<Function> alone{[](double x) { return std::pow(std::abs(x), 1.5); },
                                    [](double x) { return std::abs(x); },
                                    [](double x) { return x > 0.3 ? 2.0 : x; }};
  for (std::size_t i = 0; i < alone.size(); ++i) {
    CAPTURE(i);
    CHECK(std::isfinite(quadrature_activation(alone[i])->dual(1.2, 1, 0.4).derivative));
  }
  const auto steep = [](double x) { return std::tanh(1e8 * x); };
  const auto slope = [=](double x) { return 1e8 * (1 - steep(x) * steep(x)); };
  CHECK(std::isfinite(quadrature_activation(steep, slope, {{0}})->dual(1.2, 1, 0.4).derivative));
  const auto entropy = quadrature_activation([](double x) { return x * std::log(std::abs(x) + 1e-300); },
                                             [](double x) { return 1 + std::log(std::abs(x) + 1e-300); });
  CHECK(std::isfinite(entropy->dual(1.2, 1, 0.4).derivative));
}

TEST_CASE("cusps: steps without a derivative are those of the library") {
  const auto sides = quadrature_activation([](double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : 0.0; });
  const auto step = quadrature_activation([](double x) { return x > 0 ? 1.0 : 0.0; });
  for (const double c : {-1.2, 0.0, 0.5, 1.45}) {
    CHECK(std::abs(sides->dual(1.5, 1.6, c).value - sign()->dual(1.5, 1.6, c).value) < 1e-10);
    CHECK(sides->dual(1.5, 1.6, c).derivative == 0);
    CHECK(std::abs(step->dual(1.5, 1.6, c).value - rectified_monomial(0)->dual(1.5, 1.6, c).value) < 1e-10);
    CHECK(step->dual(1.5, 1.6, c).derivative == 0);
  }
}
