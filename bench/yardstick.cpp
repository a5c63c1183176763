#include "yardstick.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <numbers>

namespace {

constexpr int row_length = 512;

template <typename Scalar>
struct Rows {
  alignas(64) std::array<Scalar, row_length> nngp, ntk, variance, inverse_root, mapped_nngp, mapped_ntk;
};

/// arccos(a) / sqrt(1 - a) at Chebyshev nodes of [0, 1], as a polynomial by Newton's divided differences.
template <typename Scalar, int degree>
std::array<Scalar, degree + 1> arccos_polynomial() {
  std::array<long double, degree + 1> node, value, power{};
  for (int i = 0; i <= degree; ++i) {
    node[i] = (1 + std::cos(std::numbers::pi_v<long double> * (2 * i + 1) / (2 * degree + 2))) / 2;
    value[i] = std::acos(node[i]) / std::sqrt(1 - node[i]);
  }
  for (int j = 1; j <= degree; ++j)
    for (int i = degree; i >= j; --i) value[i] = (value[i] - value[i - 1]) / (node[i] - node[i - j]);
  for (int i = degree; i >= 0; --i) {
    for (int k = degree; k > 0; --k) power[k] = power[k - 1] - node[i] * power[k];
    power[0] = value[i] - node[i] * power[0];
  }
  std::array<Scalar, degree + 1> result;
  for (int k = 0; k <= degree; ++k) result[k] = static_cast<Scalar>(power[k]);
  return result;
}

template <typename Scalar, int degree, bool with_ntk>
[[gnu::noinline]] void map(Rows<Scalar>& rows, const std::array<Scalar, degree + 1>& polynomial,
                           Scalar variance, Scalar inverse_root) {
  const auto inverse_two_pi = static_cast<Scalar>(0.5 / std::numbers::pi), pi = std::numbers::pi_v<Scalar>;
  for (int i = 0; i < row_length; ++i) {
    const Scalar c = rows.nngp[i] * (inverse_root * rows.inverse_root[i]),
                 a = std::min(std::fabs(c), Scalar{1});
    const Scalar root = std::sqrt(1 - a), sine = root * std::sqrt(1 + a);
    Scalar value = polynomial[degree];
#pragma GCC unroll 32
    for (int k = degree - 1; k >= 0; --k) value = value * a + polynomial[k];
    const Scalar rest = c < 0 ? root * value : pi - root * value;
    rows.mapped_nngp[i] = variance * rows.variance[i] * inverse_two_pi * (sine + rest * c);
    if constexpr (with_ntk) rows.mapped_ntk[i] = rows.ntk[i] * (rest * inverse_two_pi);
  }
}

template <typename Scalar, int degree, bool with_ntk>
double nanoseconds_an_entry() {
  Rows<Scalar> rows;
  const auto polynomial = arccos_polynomial<Scalar, degree>();
  for (int i = 0; i < row_length; ++i) {
    rows.nngp[i] = static_cast<Scalar>(std::sin(i * 0.7));
    rows.ntk[i] = rows.variance[i] = rows.inverse_root[i] = 1;
  }
  double best = 1e9;
  for (int trial = 0; trial < 20; ++trial) {
    const auto start = std::chrono::steady_clock::now();
    for (int k = 0; k < 2000; ++k) {
      map<Scalar, degree, with_ntk>(rows, polynomial, 1, 1);
      asm volatile("" ::: "memory");
    }
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
    best = std::min(best, time.count() / (2000.0 * row_length));
  }
  return best;
}

}  // namespace

Yardstick measure_yardstick() {
  return {.float_both = nanoseconds_an_entry<float, 7, true>(),
          .float_nngp = nanoseconds_an_entry<float, 7, false>(),
          .double_both = nanoseconds_an_entry<double, 17, true>()};
}
