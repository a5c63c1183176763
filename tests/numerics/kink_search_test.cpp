// Kinks that nobody declared: where they are, and that duals and their slopes know of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "numerics/relative.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/activations.hpp"
#include "widelimit/numerics/quadrature_activation.hpp"

using namespace widelimit;
using namespace widelimit::numerics;

namespace {

using Function = std::function<double(double)>;

Kinks kinks_of(const Function& function, const std::vector<double>& known = {}) {
  return find_kinks(
      [&](std::span<const double> x, double* values) {
        for (const double at : x) *values++ = function(at);
      },
      known);
}

struct KinkCase {
  std::string name;
  Function function;
  std::vector<double> places;
};

double elu(double x) { return x > 0 ? x : std::expm1(x); }
double hat(double x) { return std::max(1 - std::abs(x - 0.3), 0.0); }

std::vector<KinkCase> kinked_functions() {
  return {
      {"relu", [](double x) { return std::max(x, 0.0); }, {0}},
      {"hat", hat, {-0.7, 0.3, 1.3}},
      {"hard tanh", [](double x) { return std::clamp(x, -1.0, 1.0); }, {-1, 1}},
      {"hard swish", [](double x) { return x * std::clamp(x + 3, 0.0, 6.0) / 6; }, {-3, 3}},
      {"soft shrinkage", [](double x) { return x > 0.5    ? x - 0.5
                                               : x < -0.5 ? x + 0.5
                                                          : 0.0; }, {-0.5, 0.5}},
      {"second derivative: elu", elu, {0}},
      {"second derivative, terms that cancel", [](double x) { return x > 0 ? x : std::exp(x) - 1; }, {0}},
      {"second derivative: softsign", [](double x) { return x / (1 + std::abs(x)); }, {0}},
      {"third derivative", [](double x) { return std::abs(x * x * x); }, {0}},
      {"sign", [](double x) { return x > 0   ? 1.0
                                     : x < 0 ? -1.0
                                             : 0.0; }, {0}},
      {"step", [](double x) { return x < 0.3 ? 0.0 : 1.0; }, {0.3}},
      {"cusp", [](double x) { return std::sqrt(std::abs(x)); }, {0}},
      {"far away", [](double x) { return std::abs(x - 1000.25); }, {1000.25}},
      {"close together", [](double x) { return std::abs(x) + std::max(x, 0.001); }, {0, 0.001}}};
}

}  // namespace

TEST_CASE("find_kinks: jumps, kinks of the first derivatives and cusps") {
  for (const auto& [name, function, places] : kinked_functions()) {
    CAPTURE(name);
    const Kinks kinks = kinks_of(function);
    REQUIRE(kinks.places.size() == places.size());
    for (std::size_t i = 0; i < places.size(); ++i)
      CHECK(std::abs(kinks.places[i] - places[i]) <= 4e-16 * std::abs(places[i]));
    CHECK(kinks.reach == std::numeric_limits<double>::infinity());
    CHECK(kinks_of(function, places).places.empty());
  }
}

TEST_CASE("find_kinks: wherever they are, also where the function is 0 all around 0") {
  for (int i = -120; i <= 120; ++i) {
    const double place = std::round(2.5e4 * std::sin(1.7 * i)) / 1e4;
    CAPTURE(place);
    const std::vector<Function> functions{[&](double x) { return std::max(x - place, 0.0); },
                                          [&](double x) { return std::max(place - x, 0.0); },
                                          [&](double x) { return 1e3 * std::max(x - place, 0.0); },
                                          [&](double x) { return std::abs(x - place); },
                                          [&](double x) { return x > place ? 1.0 : 0.0; }};
    for (const Function& function : functions) {
      const Kinks kinks = kinks_of(function);
      REQUIRE(kinks.places.size() == 1);
      CHECK(std::abs(kinks.places[0] - place) <= 4e-16 * std::max(1.0, std::abs(place)));
    }
  }
}

TEST_CASE("find_kinks: smooth functions have none, however fast they change") {
  const std::vector<Function> smooth{
      [](double x) { return std::tanh(x); },
      [](double x) { return std::tanh(100 * x); },
      [](double x) { return std::exp(-1000 * x * x); },
      [](double x) { return std::sqrt(x * x + 1e-6); },
      [](double x) { return x * 0.5 * (1 + std::tanh(0.75 * x)); },
      [](double x) { return std::exp(x); },
      [](double x) { return std::pow(x, 5) - x; },
      [](double x) { return std::sin(5 * x); },
      [](double x) { return std::log1p(std::exp(-std::abs(x))) + std::max(x, 0.0); },
      [](double x) { return static_cast<double>(static_cast<float>(std::tanh(x))); }};
  for (std::size_t i = 0; i < smooth.size(); ++i) {
    CAPTURE(i);
    CHECK(kinks_of(smooth[i]).places.empty());
  }
}

TEST_CASE("find_kinks: of too many those near 0, and how far") {
  const Kinks kinks = kinks_of([](double x) { return std::floor(x); });
  CHECK(kinks.reach > 30);
  CHECK(kinks.reach < 300);
  REQUIRE(kinks.places.size() == 2 * static_cast<std::size_t>(kinks.reach) + 1);
  CHECK(kinks.places.front() == -std::floor(kinks.reach));
  const auto stairs =
      quadrature_activation([](double x) { return std::floor(x); }, [](double) { return 0.0; });
  CHECK(std::isfinite(stairs->dual(2, 2, 1).value));
  CHECK_THROWS_WITH_AS(static_cast<void>(stairs->dual(1e4, 1e4, 1)),
                       doctest::Contains("phi could be resolved for |x| <="), NumericalError);
}

TEST_CASE("quadrature: undeclared kinks change nothing of duals and slopes") {
  for (const ActivationPtr& closed : {relu(), leaky_relu(0.2), numerics::abs(), sign(), rectified_monomial(0),
                                      rectified_monomial(2), rectified_monomial(3)}) {
    const auto found = quadrature_activation([closed](double x) { return closed->value(x); },
                                             [closed](double x) { return closed->derivative(x); });
    for (const double c : {-1.2, 0.0, 0.5, 1.45}) {
      CAPTURE(c);
      const auto ours = found->slopes(1.5, 1.6, c), theirs = closed->slopes(1.5, 1.6, c);
      CHECK(std::abs(ours.dual.value - theirs.dual.value) < 1e-9);
      CHECK(std::abs(ours.dual.derivative - theirs.dual.derivative) < 1e-10);
      CHECK(std::abs(ours.left.value - theirs.left.value) < 1e-6);
      CHECK(std::abs(ours.right.derivative - theirs.right.derivative) < 1e-6);
      CHECK(std::abs(ours.value_in_c - theirs.value_in_c) < 1e-6);
      CHECK(std::abs(ours.derivative_in_c - theirs.derivative_in_c) < 1e-6);
    }
  }
}

TEST_CASE("quadrature: kinks off the places that a mesh halves, phi alone") {
  const auto alone = quadrature_activation(hat);
  const auto declared = quadrature_activation(
      hat, [](double x) { return std::abs(x - 0.3) > 1 ? 0.0
                                 : x < 0.3             ? 1.0
                                                       : -1.0; }, {{-0.7, 0.3, 1.3}});
  for (const double c : {-0.7, 0.2, 0.99}) {
    const auto ours = alone->dual(1, 1.1, c), theirs = declared->dual(1, 1.1, c);
    CHECK(ours.value == testing::relative(theirs.value, 1e-10));
    CHECK(ours.derivative == testing::relative(theirs.derivative, 1e-8));
  }
}

TEST_CASE("quadrature: phi alone, of any growth") {
  const std::vector<std::pair<ActivationPtr, ActivationPtr>> twins{
      {quadrature_activation([](double x) { return 0.1 + x - 0.5 * x * x + 0.2 * x * x * x; }),
       polynomial({0.1, 1, -0.5, 0.2})},
      {quadrature_activation([](double x) { return x * x * x * x; }), monomial(4)},
      {quadrature_activation([](double x) { return x > 0 ? x * x : 0; }), rectified_monomial(2)},
      {quadrature_activation([](double x) { return std::exp(0.3 * x); }), exponential(1, 0.3)},
      {quadrature_activation([](double x) { return x > 0 ? x : 0.2 * x; }), leaky_relu(0.2)}};
  for (const auto& [alone, closed] : twins)
    for (const double c : {-1.2, 0.3, 1.4}) {
      const auto ours = alone->dual(1.3, 1.7, c), theirs = closed->dual(1.3, 1.7, c);
      CHECK(std::abs(ours.value - theirs.value) <= 1e-10 * closed->dual(1.7, 1.7, 1.7).value);
      CHECK(std::abs(ours.derivative - theirs.derivative) <= 1e-9 * closed->dual(1.7, 1.7, 1.7).derivative);
    }
}
