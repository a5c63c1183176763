// The rows of ReLU-like functions, there and back, on whatever instruction set main() chose.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "numerics/row_numbers.hpp"
#include "numerics/rows/homogeneous_row.hpp"

using namespace widelimit::numerics;
using namespace widelimit::testing;

TEST_CASE_TEMPLATE("rows: the ReLU map on the whole arc, ends and gaps included", Scalar, float, double) {
  // Correlations 1 - 2^-k and -1 + 2^-k crowd at the ends of the arc.
  std::vector<Scalar> nngp;
  for (int k = 0; k < std::numeric_limits<Scalar>::digits; ++k)
    for (const double sign : {1.0, -1.0})
      nngp.push_back(static_cast<Scalar>(sign * (1 - std::ldexp(1.0, -k))));
  nngp.insert(nngp.end(), {Scalar{1}, Scalar{-1}, Scalar{3}});
  const std::size_t size = nngp.size();
  std::vector<Scalar> variance(size, Scalar{1}), left(2 * size), ntk(size, Scalar{1}), mapped = nngp;
  variance.back() = 0;  // a gap: the covariance of 3 stands for whatever lies there
  const std::array<Scalar*, 2> auxiliary{left.data(), left.data() + size};
  const std::array<const Scalar*, 2> packed{left.data(), left.data() + size};
  homogeneous_rows<Scalar>().prepare(variance.data(), auxiliary.data(), size);
  left.back() = 0;
  const formula::HomogeneousDual relu{.aligned = 0.5, .opposed = 0, .weight = 0.5 / std::numbers::pi};
  homogeneous_rows<Scalar>().apply(relu, {mapped.data(), ntk.data(), packed.data(), packed.data(), size});
  const double bound = sizeof(Scalar) == 4 ? 3e-7 : 1e-15;
  for (std::size_t i = 0; i + 1 < size; ++i) {
    CAPTURE(i);
    const auto c = static_cast<long double>(nngp[i]);
    const long double sine = std::sqrt((1 - c) * (1 + c)), angle = std::atan2(sine, c);
    const long double pi = std::numbers::pi_v<long double>;
    const auto expected = static_cast<double>((sine + (pi - angle) * c) / (2 * pi));
    CHECK(std::abs(static_cast<double>(mapped[i]) - expected) <= bound);
    CHECK(std::abs(static_cast<double>(ntk[i]) - static_cast<double>((pi - angle) / (2 * pi))) <= bound);
  }
  CHECK(mapped.back() == 0);
  CHECK(ntk.back() == 0);
  CHECK(mapped[size - 3] == Scalar{0.5});
  CHECK(ntk[size - 3] == Scalar{0.5});
}

TEST_CASE_TEMPLATE("rows: the backward pass through ReLU on the whole arc, ends and gaps included", Scalar,
                   float, double) {
  std::vector<Scalar> c{Scalar{1}, Scalar{-1}, Scalar{3}};
  for (int k = 0; k < std::numeric_limits<Scalar>::digits - 8; ++k)
    for (const double sign : {1.0, -1.0}) c.push_back(static_cast<Scalar>(sign * (1 - std::ldexp(1.0, -k))));
  const std::size_t size = c.size();
  std::vector<Scalar> variance(size, Scalar{1}), packed(2 * size), ntk(size, Scalar{2}),
      above(size, Scalar{3}), ntk_above(size, Scalar{5}), left(size), right(size);
  variance[2] = 0;  // a gap
  const std::array<Scalar*, 2> auxiliary{packed.data(), packed.data() + size};
  const std::array<const Scalar*, 2> prepared{packed.data(), packed.data() + size};
  homogeneous_rows<Scalar>().prepare(variance.data(), auxiliary.data(), size);
  packed[size + 2] = 0;
  homogeneous_rows<Scalar>().apply_adjoint(
      {.aligned = 0.5, .opposed = 0, .weight = 0.5 / std::numbers::pi},
      {c.data(), ntk.data(), variance.data(), variance.data(), prepared.data(), prepared.data(), above.data(),
       ntk_above.data(), left.data(), right.data(), size});
  CHECK(above[2] == 0);
  CHECK(ntk_above[2] == 0);
  CHECK(left[2] == 0);
  CHECK(above[0] == Scalar{1.5});  // 3 / 2, and nothing through the derivative
  CHECK(ntk_above[0] == Scalar{2.5});
  CHECK(above[1] == 0);
  CHECK(right[1] == 0);
  for (std::size_t i = 3; i < size; ++i) {
    CAPTURE(i);
    const auto at = static_cast<double>(c[i]);
    const double sine = std::sqrt((1 - at) * (1 + at)), weight = 0.5 / std::numbers::pi;
    const double derivative = 0.5 - weight * std::atan2(sine, at), bend = 5 * 2 * weight / sine;
    const double in_variance = (3 * weight * sine - at * bend) / 2, bound = 40 * epsilon<Scalar> * (1 + bend);
    CHECK(std::abs(static_cast<double>(above[i]) - (3 * derivative + bend)) <= bound);
    CHECK(std::abs(static_cast<double>(ntk_above[i]) - 5 * derivative) <= bound);
    CHECK(std::abs(static_cast<double>(left[i]) - in_variance) <= bound);
    CHECK(right[i] == left[i]);
  }
}

TEST_CASE_TEMPLATE("rows: a position without variance is uncorrelated, there and back", Scalar, float,
                   double) {
  // Either, both or none without variance.
  const std::vector<Scalar> p{0, 0, 2, 2}, q{0, 3, 0, 3};
  const std::size_t size = p.size();
  for (const auto& [negative, positive] :
       {std::array{0.0, 1.0}, std::array{0.5, 1.0}, std::array{-1.0, 1.0}}) {
    CAPTURE(negative);
    const formula::HomogeneousDual dual{
        .aligned = (negative * negative + positive * positive) / 2,
        .opposed = negative * positive,
        .weight = (positive - negative) * (positive - negative) / (2 * std::numbers::pi)};
    const double at_zero = (negative + positive) / 2, bound = 4 * epsilon<Scalar>;
    for (const Scalar zero : {Scalar{0}, -Scalar{0}}) {
      std::vector<Scalar> left(2 * size), right(2 * size), c(size, zero), ntk(size, Scalar{2}),
          mapped = c, mapped_ntk = ntk, above(size, Scalar{3}), ntk_above(size, Scalar{5}), p_bar(size),
          q_bar(size);
      const std::array<Scalar*, 2> on_left{left.data(), left.data() + size},
          on_right{right.data(), right.data() + size};
      homogeneous_rows<Scalar>().prepare(p.data(), on_left.data(), size);
      homogeneous_rows<Scalar>().prepare(q.data(), on_right.data(), size);
      const std::array<const Scalar*, 2> from_left{on_left[0], on_left[1]},
          from_right{on_right[0], on_right[1]};
      homogeneous_rows<Scalar>().apply(
          dual, {mapped.data(), mapped_ntk.data(), from_left.data(), from_right.data(), size});
      homogeneous_rows<Scalar>().apply_adjoint(
          dual, {c.data(), ntk.data(), p.data(), q.data(), from_left.data(), from_right.data(), above.data(),
                 ntk_above.data(), p_bar.data(), q_bar.data(), size});
      for (std::size_t i = 0; i < size; ++i) {
        CAPTURE(i);
        const double derivative = at_zero * at_zero;
        CHECK(std::abs(static_cast<double>(mapped_ntk[i]) - 2 * derivative) <= bound);
        CHECK(std::abs(static_cast<double>(ntk_above[i]) - 5 * derivative) <= 3 * bound);
        if (p[i] * q[i] > 0) continue;
        CHECK(mapped[i] == 0);
        CHECK(std::abs(static_cast<double>(above[i]) - 3 * derivative) <= 2 * bound);
        CHECK(p_bar[i] == 0);
        CHECK(q_bar[i] == 0);
      }
    }
  }
}
