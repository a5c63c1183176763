#include "widelimit/numerics/activation.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>

using namespace widelimit::numerics;
using doctest::Approx;

namespace {

/// phi(x) = x^2, of which everything is known: E[u^2 v^2] = pq + 2 c^2 and E[2u 2v] = 4c (Isserlis' theorem).
class Square final : public Activation {
 public:
  [[nodiscard]] double value(double x) const override { return x * x; }
  [[nodiscard]] double derivative(double x) const override { return 2 * x; }
  [[nodiscard]] Dual<double> dual(double p, double q, double c) const override {
    return {p * q + 2 * c * c, 4 * c};
  }
};

template <typename Scalar>
void check_rows(double tolerance) {
  const Square square;
  const Activation& activation = square;
  const std::array<Scalar, 3> p{1, 2, 0.5}, q{3, 1, 0.25}, c{0.5, -1, 0.3F}, t{1, 2, 3};
  std::array<Scalar, 3> p_kept{}, q_kept{};
  Scalar* p_place = p_kept.data();
  Scalar* q_place = q_kept.data();
  REQUIRE(activation.auxiliary_count() == 1);
  activation.prepare(p.data(), &p_place, 3);
  activation.prepare(q.data(), &q_place, 3);
  CHECK(p_kept == p);
  CHECK(q_kept == q);
  const Scalar* left = p_place;
  const Scalar* right = q_place;
  for (const bool multiples : {false, true}) {
    std::array<Scalar, 3> nngp = c, ntk = t, alone = c;
    const DualRow<Scalar> row{nngp.data(), ntk.data(), &left, &right, 3};
    const DualRow<Scalar> row_alone{alone.data(), nullptr, &left, &right, 3};
    multiples ? activation.apply_to_multiples(row) : activation.apply(row);
    multiples ? activation.apply_to_multiples(row_alone) : activation.apply(row_alone);
    CHECK(alone == nngp);
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(nngp[i] == Approx(p[i] * q[i] + 2 * c[i] * c[i]).epsilon(tolerance));
      CHECK(ntk[i] == Approx(t[i] * 4 * c[i]).epsilon(tolerance));
    }
  }
}

}  // namespace

TEST_CASE("activation: rows without functions of their own call dual() entry by entry") {
  check_rows<float>(1e-6);
  check_rows<double>(1e-15);
}

TEST_CASE("activation: an activation that says no more claims nothing") {
  CHECK_FALSE(Square().homogeneous().has_value());
  CHECK_FALSE(Square().clears_gaps());
}

TEST_CASE("activation: slopes without a closed form are differences, to 1e-9 of their scale") {
  const Square square;
  for (const auto& [p, q, c] :
       {std::array{1.0, 2.0, 0.3}, std::array{0.01, 40.0, -0.2}, std::array{5.0, 5.0, 0.0}}) {
    const DualSlopes slopes = square.slopes(p, q, c);
    const double value = p * q + 2 * c * c, root = std::sqrt(p * q);
    CHECK(slopes.dual.value == value);
    CHECK(slopes.dual.derivative == 4 * c);
    CHECK(std::abs(slopes.left.value - q) < 1e-8 * value / p);
    CHECK(std::abs(slopes.right.value - p) < 1e-8 * value / q);
    CHECK(std::abs(slopes.value_in_c - 4 * c) < 1e-8 * value / root);
    CHECK(std::abs(slopes.derivative_in_c - 4) < 4e-8);
    CHECK(std::abs(slopes.left.derivative) < 4e-8 * root / p);
    CHECK(std::abs(slopes.right.derivative) < 4e-8 * root / q);
  }
  for (const double p : {0.01, 1.0, 30.0}) {
    const SelfSlopes slopes = square.self_slopes(p);
    CHECK(slopes.dual.value == p * p + 2 * p * p);  // In this order, as the dual of equal variances rounds.
    CHECK(slopes.slope.value == Approx(6 * p).epsilon(1e-8));
    CHECK(slopes.slope.derivative == Approx(4).epsilon(1e-8));
  }
}

TEST_CASE("activation: the backward pass through a row is the chain rule in p, q, c and T") {
  const Square square;
  const std::array<double, 2> p{1, 2}, q{3, 1}, c{0.5, -1}, t{1, -2}, behind{0.7, 2}, ntk_after{1.1, 3};
  const double* left = p.data();
  const double* right = q.data();
  std::array<double, 2> nngp_adjoint = behind, ntk_adjoint = ntk_after, p_adjoint{}, q_adjoint{};
  square.apply_adjoint(AdjointRow<double>{c.data(), t.data(), p.data(), q.data(), &left, &right,
                                          nngp_adjoint.data(), ntk_adjoint.data(), p_adjoint.data(),
                                          q_adjoint.data(), 2});
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(nngp_adjoint[i] == Approx(behind[i] * 4 * c[i] + ntk_after[i] * t[i] * 4).epsilon(1e-7));
    CHECK(ntk_adjoint[i] == Approx(ntk_after[i] * 4 * c[i]).epsilon(1e-12));
    CHECK(p_adjoint[i] == Approx(behind[i] * q[i]).epsilon(1e-6));
    CHECK(q_adjoint[i] == Approx(behind[i] * p[i]).epsilon(1e-6));
  }
}
