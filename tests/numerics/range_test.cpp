// Closed forms over the whole range of double, against plain formulas in long double, whose range is wider.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "widelimit/numerics/activations.hpp"

using namespace widelimit;
using namespace widelimit::numerics;

namespace {

static_assert(std::numeric_limits<long double>::max_exponent > 2 * std::numeric_limits<double>::max_exponent);

constexpr long double pi = std::numbers::pi_v<long double>;

struct WideDual {
  long double value;
  long double derivative;
};

struct RangeCase {
  std::string name;
  ActivationPtr activation;
  std::function<WideDual(long double, long double, long double)> dual;
};

WideDual wide_gelu(long double p, long double q, long double c) {
  const long double det = p * q - c * c, root = std::sqrt(1 + p + q + det);
  const long double s = c < 0 ? std::atan2(root, -c) / (2 * pi) : 0.5L - std::atan2(root, c) / (2 * pi);
  const long double shrinkage = 1 / (1 + p) + 1 / (1 + q);
  return {c * s + (det + c * c * shrinkage) / (2 * pi * root),
          s + c * (shrinkage + 1 / (root * root)) / (2 * pi * root)};
}

/// exp(-(p + q) / 2) sinh(c) and cosh(c), without overflow.
WideDual wide_sin(long double p, long double q, long double c) {
  const long double near = std::exp(-(p + q - 2 * c) / 2), far = std::exp(-(p + q + 2 * c) / 2);
  const long double odd = std::abs(c) < 1 ? std::exp(-(p + q) / 2) * std::sinh(c) : (near - far) / 2;
  return {odd, (near + far) / 2};
}

std::vector<RangeCase> cases() {
  return {{"sign", sign(),
           [](long double p, long double q, long double c) {
             return WideDual{2 / pi * std::asin(c / std::sqrt(p * q)), 0};
           }},
          {"step", rectified_monomial(0),
           [](long double p, long double q, long double c) {
             return WideDual{0.25L + std::asin(c / std::sqrt(p * q)) / (2 * pi), 0};
           }},
          {"erf", erf(),
           [](long double p, long double q, long double c) {
             const long double root = std::sqrt(1 + 2 * (p + q) + 4 * (p * q - c * c));
             return WideDual{2 / pi * std::atan2(2 * c, root), 4 / (pi * root)};
           }},
          {"gelu", gelu(), wide_gelu},
          {"gaussian", gaussian(1, -1),
           [](long double p, long double q, long double c) {
             const long double square = (1 + 2 * p) * (1 + 2 * q) - 4 * c * c;
             return WideDual{1 / std::sqrt(square), 4 * c / (square * std::sqrt(square))};
           }},
          {"sin", numerics::sin(), wide_sin},
          {"rbf", rbf(), [](long double p, long double q, long double c) {
             const long double value = std::exp(-(p + q - 2 * c));
             return WideDual{value, 2 * value};
           }}};
}

template <typename Scalar>
Dual<Scalar> by_rows(const Activation& activation, Scalar p, Scalar q, Scalar c) {
  Scalar left = 0, right = 0, derivative = 1;
  Scalar* const left_arrays[] = {&left};
  Scalar* const right_arrays[] = {&right};
  activation.prepare(&p, left_arrays, 1);
  activation.prepare(&q, right_arrays, 1);
  const Scalar* const lefts[] = {&left};
  const Scalar* const rights[] = {&right};
  activation.apply(DualRow<Scalar>{&c, &derivative, lefts, rights, 1});
  return {c, derivative};
}

}  // namespace

TEST_CASE_TEMPLATE("range: closed forms at all exponents and correlations", Scalar, float, double) {
  const bool is_float = sizeof(Scalar) == 4;
  const int last = is_float ? 37 : 300, step = is_float ? 1 : 12;
  const double tolerance = is_float ? 4e-6 : 4e-14;
  for (const RangeCase& tested : cases())
    for (int left = -last; left <= last; left += step)
      for (int right = left; right <= last; right += 3 * step)
        for (const double rho : {-0.9999, -0.7, -0.1, 0.0, 1e-5, 0.3, 0.8, 0.999}) {
          const auto p = static_cast<Scalar>(1.7 * std::pow(10, left)),
                     q = static_cast<Scalar>(0.6 * std::pow(10, right));
          const auto c = static_cast<Scalar>(rho * std::sqrt(static_cast<double>(p)) *
                                             std::sqrt(static_cast<double>(q)));
          // Covariances far below both ends of the range are not numbers any more.
          if (c != 0 && std::abs(c) < std::numeric_limits<Scalar>::min()) continue;
          CAPTURE(tested.name);
          CAPTURE(left);
          CAPTURE(right);
          CAPTURE(rho);
          const WideDual expected = tested.dual(p, q, c), first = tested.dual(p, p, p),
                         second = tested.dual(q, q, q);
          const auto [value, derivative] = by_rows<Scalar>(*tested.activation, p, q, c);
          const double scale = static_cast<double>(std::sqrt(first.value) * std::sqrt(second.value));
          const double slope =
              static_cast<double>(std::sqrt(first.derivative) * std::sqrt(second.derivative));
          const double smallest = std::numeric_limits<Scalar>::min();
          CHECK(std::abs(static_cast<double>(value - expected.value)) <= tolerance * scale + smallest);
          CHECK(std::abs(static_cast<double>(derivative - expected.derivative)) <=
                tolerance * slope + smallest);
        }
}
