// Hermite series by vectors, on whatever instruction set main() chose:
// functions that have closed forms as if they had none.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "numerics/mapped_row.hpp"
#include "numerics/row_numbers.hpp"
#include "widelimit/numerics/activations.hpp"
#include "widelimit/numerics/quadrature_activation.hpp"

using namespace widelimit::numerics;
using namespace widelimit::testing;

namespace {

ActivationPtr by_series(const ActivationPtr& closed) {
  return quadrature_activation([closed](double x) { return closed->value(x); },
                               [closed](double x) { return closed->derivative(x); });
}

/// Odd, even but for a constant, and neither: the stored orders differ.
const std::vector<RowCase>& series_cases() {
  static const std::vector<RowCase> all = {
      {"erf", by_series(widelimit::numerics::erf()), [](const WidePair& at) { return wide_erf(at); }},
      {"gelu", by_series(gelu()), wide_gelu},
      {"gaussian", by_series(gaussian()), [](const WidePair& at) { return wide_gaussian(at); }},
      {"sin with a phase", by_series(widelimit::numerics::sin(1, 1, 0.75)),
       [](const WidePair& at) { return wide_sin(at, 1, 0.75L); }}};
  return all;
}

/// What the series serves with few and with many terms, and not at all.
template <typename Scalar>
MappedRow<Scalar> all_truncations() {
  MappedRow<Scalar> row;
  for (const double p : {0.01, 0.3, 1.0, 1.7, 6.0, 40.0})
    for (const double ratio : {1.0, 0.6, 3.0})
      for (int k = -16; k <= 16; ++k) {
        const double q = ratio * p, bound = std::sqrt(p * q);
        row.add(p, q, std::clamp(k / 16.0 * bound, -bound, bound));
      }
  return row;
}

}  // namespace

TEST_CASE_TEMPLATE("rows: Hermite series are exact to 1e-7 in float and 1e-12 in double", Scalar, float,
                   double) {
  MappedRow<Scalar> row = all_truncations<Scalar>();
  // Rounding of the variances and of the correlation counts too in float.
  const double bound = sizeof(Scalar) == 4 ? 6e-7 : 1.2e-12;
  for (const RowCase& tested : series_cases()) {
    CAPTURE(tested.name);
    row.map(*tested.activation);
    const auto [value, derivative] = largest_errors(tested, row);
    CHECK(value <= bound);
    CHECK(derivative <= bound);
  }
}

TEST_CASE_TEMPLATE("rows: an entry of a Hermite series has the same bits alone", Scalar, float, double) {
  MappedRow<Scalar> row = all_truncations<Scalar>();
  for (const RowCase& tested : series_cases()) {
    CAPTURE(tested.name);
    row.map(*tested.activation);
    for (std::size_t i = 0; i < row.c.size(); i += 3) {
      MappedRow<Scalar> alone;
      alone.add(static_cast<double>(row.p[i]), static_cast<double>(row.q[i]), static_cast<double>(row.c[i]));
      alone.map(*tested.activation);
      CHECK(alone.nngp[0] == row.nngp[i]);
      CHECK(alone.ntk[0] == row.ntk[i]);
    }
  }
}

TEST_CASE_TEMPLATE("rows: what is not a number stays so in a Hermite series", Scalar, float, double) {
  MappedRow<Scalar> row;
  row.add(1, 1, 0.5);
  row.add(1, 1, std::nan(""));
  for (const RowCase& tested : series_cases()) {
    row.map(*tested.activation);
    CHECK(std::isfinite(row.nngp[0]));
    CHECK(std::isnan(row.nngp[1]));
    CHECK(std::isnan(row.ntk[1]));
  }
}
