// Vectorised duals against plain formulas in long double, on whatever instruction set main() chose.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "numerics/mapped_row.hpp"
#include "numerics/relative.hpp"
#include "numerics/row_numbers.hpp"
#include "numerics/wide_duals.hpp"
#include "widelimit/numerics/activations.hpp"

using namespace widelimit::numerics;
using namespace widelimit::testing;

namespace {

std::vector<RowCase> row_cases() {
  return {{"erf", widelimit::numerics::erf(), [](const WidePair& at) { return wide_erf(at); }},
          {"affine erf", widelimit::numerics::erf(1.5, 0.25, 0, 0.5),
           [](const WidePair& at) {
             const WideDual odd = wide_erf(at, 8, 4.5L / std::numbers::pi_v<long double>);
             return WideDual{odd.value + 0.25L, odd.derivative};
           }},
          {"gelu", gelu(), wide_gelu},
          {"gaussian", gaussian(1, -1), [](const WidePair& at) { return wide_gaussian(at); }},
          {"narrow gaussian", gaussian(1, -32), [](const WidePair& at) { return wide_gaussian(at, 32); }},
          {"sin", widelimit::numerics::sin(), [](const WidePair& at) { return wide_sin(at); }},
          {"sin with a phase", widelimit::numerics::sin(1, 2, 0.75),
           [](const WidePair& at) { return wide_sin(at, 2, 0.75L); }},
          {"cos", widelimit::numerics::cos(1, 0.5),
           [](const WidePair& at) { return wide_sin(at, 0.5L, std::numbers::pi_v<long double> / 2); }},
          {"rbf", rbf(0.5), [](const WidePair& at) { return wide_rbf(at, 0.5L); }},
          {"exp", exponential(1, 0.25), [](const WidePair& at) { return wide_exponential(at, 0.25L); }, 10}};
}

/// Variances of twelve orders on both sides of 1, correlations that crowd at 0, 1 and -1.
template <typename Scalar>
MappedRow<Scalar> whole_domain(int step = 1) {
  MappedRow<Scalar> row;
  constexpr int digits = std::numeric_limits<Scalar>::digits;
  for (int left = -12; left <= 12; left += step)
    for (int right = left; right <= 12; right += 3)
      for (const double ratio : {1.0, 0.7, 1 + 0x1p-20}) {
        const double p = std::pow(10.0, left), q = ratio * std::pow(10.0, right);
        const auto narrow_p = static_cast<Scalar>(p), narrow_q = static_cast<Scalar>(q);
        const double bound = std::sqrt(static_cast<double>(narrow_p) * static_cast<double>(narrow_q));
        row.add(p, q, 0);
        for (int k = 0; k <= digits; k += 3)
          for (const double sign : {1.0, -1.0}) {
            row.add(p, q, sign * bound * (1 - std::ldexp(1.0, -k - 1)));
            row.add(p, q, sign * bound * std::ldexp(1.0, -k));
          }
      }
  return row;
}

}  // namespace

TEST_CASE_TEMPLATE("rows: duals of 24 orders of variance and all correlations", Scalar, float, double) {
  MappedRow<Scalar> row = whole_domain<Scalar>();
  const double bound = sizeof(Scalar) == 4 ? 4e-7 : 1e-15;
  for (const RowCase& tested : row_cases()) {
    CAPTURE(tested.name);
    row.map(*tested.activation);
    const auto [value, derivative] = largest_errors(tested, row);
    CHECK(value <= bound);
    CHECK(derivative <= bound);
  }
}

TEST_CASE_TEMPLATE("rows: an entry of a dual has the same bits alone, and from both sides", Scalar, float,
                   double) {
  MappedRow<Scalar> row = whole_domain<Scalar>(4);
  for (const RowCase& tested : row_cases()) {
    CAPTURE(tested.name);
    row.map(*tested.activation);
    for (std::size_t i = 0; i < row.c.size(); i += 5) {
      MappedRow<Scalar> alone;
      alone.p = {row.p[i], row.q[i]};
      alone.q = {row.q[i], row.p[i]};
      alone.c = {row.c[i], row.c[i]};
      alone.map(*tested.activation);
      CHECK(alone.nngp[0] == row.nngp[i]);
      CHECK(alone.ntk[0] == row.ntk[i]);
      CHECK(alone.nngp[1] == row.nngp[i]);
      CHECK(alone.ntk[1] == row.ntk[i]);
    }
  }
}

TEST_CASE_TEMPLATE("rows: what leaves the range does not touch its neighbours", Scalar, float, double) {
  MappedRow<Scalar> tame, wild;
  for (int i = 0; i < 40; ++i) tame.add(0.5 + 0.1 * i, 1.5, 0.02 * i);
  wild = tame;
  const double huge = sizeof(Scalar) == 4 ? 1e30 : 1e200;
  wild.add(huge, 2 * huge, huge);
  for (const RowCase& tested : row_cases()) {
    CAPTURE(tested.name);
    tame.map(*tested.activation);
    wild.map(*tested.activation);
    for (std::size_t i = 0; i < tame.c.size(); ++i) {
      CHECK(wild.nngp[i] == tame.nngp[i]);
      CHECK(wild.ntk[i] == tame.ntk[i]);
    }
    const Dual<double> exact =
        tested.activation->dual(static_cast<double>(wild.p.back()), static_cast<double>(wild.q.back()), huge);
    const auto value = static_cast<double>(wild.nngp.back());
    CHECK((value == exact.value || value == relative(exact.value, 32 * epsilon<Scalar>)));
  }
}

TEST_CASE_TEMPLATE("rows: equal inputs among multiples have the bits of an input with itself", Scalar, float,
                   double) {
  MappedRow<Scalar> row;
  for (const double p : {1e-9, 0.3, 1.0, 7.0, 1e6})
    for (const double sign : {1.0, -1.0}) row.add(p, p, sign * p);
  row.add(0.3, 1.2, 0.6);
  row.add(0.3, 1.2, -0.1);
  for (const RowCase& tested : row_cases()) {
    CAPTURE(tested.name);
    MappedRow<Scalar> multiples = row;
    row.map(*tested.activation);
    multiples.map(*tested.activation, true);
    for (std::size_t i = 0; i < row.c.size(); ++i) {
      if (row.p[i] != row.q[i]) continue;
      CHECK(multiples.nngp[i] == row.nngp[i]);
      CHECK(multiples.ntk[i] == row.ntk[i]);
    }
    const auto [value, derivative] = largest_errors(tested, multiples);
    CHECK(value <= 20 * epsilon<Scalar>);
    CHECK(derivative <= 20 * epsilon<Scalar>);
  }
}

TEST_CASE_TEMPLATE("rows: what is not a number stays so in a dual", Scalar, float, double) {
  for (const RowCase& tested : row_cases()) {
    CAPTURE(tested.name);
    MappedRow<Scalar> row;
    row.add(1, 1, std::numeric_limits<double>::quiet_NaN());
    row.map(*tested.activation);
    CHECK(std::isnan(row.nngp[0]));
    CHECK(std::isnan(row.ntk[0]));
  }
}

TEST_CASE_TEMPLATE("rows: exponentials up to the end of the range and infinite beyond", Scalar, float,
                   double) {
  const double end = std::log(std::numeric_limits<Scalar>::max());
  const ActivationPtr activation = exponential();
  MappedRow<Scalar> row;
  for (int i = 1; i <= 60; ++i) {
    const double p = end * i / 101;  // never just at the end
    row.add(p, p, p);
  }
  row.map(*activation);
  for (std::size_t i = 0; i < row.c.size(); ++i) {
    const auto p = static_cast<double>(row.p[i]);
    CAPTURE(p);
    if (2 * p > end)
      CHECK(row.nngp[i] == std::numeric_limits<Scalar>::infinity());
    else
      CHECK(static_cast<double>(row.nngp[i]) == relative(std::exp(2 * p), (1 + 2 * p) * 2 * epsilon<Scalar>));
  }
}
