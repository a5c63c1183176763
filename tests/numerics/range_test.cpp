// Closed forms over the whole range of double, against plain formulas in long double, whose range is wider.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "numerics/wide_duals.hpp"
#include "widelimit/numerics/activations.hpp"

using namespace widelimit;
using namespace widelimit::numerics;
using namespace widelimit::testing;

namespace {

static_assert(std::numeric_limits<long double>::max_exponent > 2 * std::numeric_limits<double>::max_exponent);

constexpr long double pi = std::numbers::pi_v<long double>;

struct RangeCase {
  std::string name;
  ActivationPtr activation;
  std::function<WideDual(const WidePair&)> wide;

  [[nodiscard]] WideDual dual(long double p, long double q, long double c) const {
    return wide({p, q, c, p * q - c * c});
  }
};

std::vector<RangeCase> cases() {
  return {{"sign", sign(),
           [](const WidePair& at) {
             return WideDual{2 / pi * std::asin(at.c / std::sqrt(at.p * at.q)), 0};
           }},
          {"step", rectified_monomial(0),
           [](const WidePair& at) {
             return WideDual{0.25L + std::asin(at.c / std::sqrt(at.p * at.q)) / (2 * pi), 0};
           }},
          {"erf", erf(), [](const WidePair& at) { return wide_erf(at); }},
          {"gelu", gelu(), wide_gelu},
          {"gaussian", gaussian(1, -1), [](const WidePair& at) { return wide_gaussian(at); }},
          {"sin", numerics::sin(), [](const WidePair& at) { return wide_sin(at); }},
          {"rbf", rbf(), [](const WidePair& at) { return wide_rbf(at); }}};
}

template <typename Scalar>
Dual<Scalar> by_rows(const Activation& activation, Scalar p, Scalar q, Scalar c) {
  const std::size_t count = activation.auxiliary_count();
  std::vector<Scalar> numbers(2 * count);
  std::vector<Scalar*> arrays;
  for (Scalar& number : numbers) arrays.push_back(&number);
  activation.prepare(&p, arrays.data(), 1);
  activation.prepare(&q, arrays.data() + count, 1);
  Scalar derivative = 1;
  activation.apply(DualRow<Scalar>{&c, &derivative, arrays.data(), arrays.data() + count, 1});
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
