// Duals by quadrature of functions that grow, drawn at random, against closed forms in 50 digits: right to what the
// header promises, or refused where no double could hold what they need.
#include <doctest/doctest.h>

#include <algorithm>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "widelimit/error.hpp"
#include "widelimit/numerics/quadrature_activation.hpp"

using namespace widelimit;
using namespace widelimit::numerics;

namespace {

using Precise = boost::multiprecision::cpp_bin_float_50;

/// sum_k coefficients[k] x^k exp(b x + a x^2).
struct Product {
  std::vector<double> coefficients;
  double b, a;

  [[nodiscard]] double operator()(double x) const {
    double sum = 0;
    for (std::size_t k = coefficients.size(); k-- > 0;) sum = sum * x + coefficients[k];
    return sum * std::exp(b * x + a * x * x);
  }
  [[nodiscard]] Product derivative() const {
    Product result{std::vector<double>(coefficients.size() + 1, 0.0), b, a};
    for (std::size_t k = 0; k < coefficients.size(); ++k) {
      if (k > 0) result.coefficients[k - 1] += static_cast<double>(k) * coefficients[k];
      result.coefficients[k] += b * coefficients[k];
      result.coefficients[k + 1] += 2 * a * coefficients[k];
    }
    return result;
  }
  [[nodiscard]] std::string text() const {
    return "degree " + std::to_string(coefficients.size() - 1) + ", b " + std::to_string(b) + ", a " +
           std::to_string(a);
  }
};

/// E[f(u) f(v)] for centred Gaussians: the exponentials tilt them, and the moments of tilted Gaussians follow from
/// Stein's lemma. The expectation must be finite.
Precise expectation(const Product& f, double p_double, double q_double, double c_double) {
  const Precise p = p_double, q = q_double, c = c_double, a = f.a, b = f.b;
  const Precise determinant = p * q - c * c;
  // (Sigma^-1 - 2 a)^-1 = adj / scale, with scale = (1 - 2ap)(1 - 2aq) - 4 a^2 c^2.
  const Precise scale = 1 - 2 * a * (p + q) + 4 * a * a * determinant;
  const Precise left = (p - 2 * a * determinant) / scale, right = (q - 2 * a * determinant) / scale,
                both = c / scale;
  const Precise left_mean = b * (left + both), right_mean = b * (right + both);
  const std::size_t size = f.coefficients.size();
  std::vector<std::vector<Precise>> moments(size, std::vector<Precise>(size));
  for (std::size_t i = 0; i < size; ++i)
    for (std::size_t j = 0; j < size; ++j) {
      Precise& moment = moments[i][j];
      if (i == 0 && j == 0) {
        moment = 1;
      } else if (i == 0) {
        moment = right_mean * moments[0][j - 1];
        if (j > 1) moment += (j - 1) * right * moments[0][j - 2];
      } else {
        moment = left_mean * moments[i - 1][j];
        if (i > 1) moment += (i - 1) * left * moments[i - 2][j];
        if (j > 0) moment += j * both * moments[i - 1][j - 1];
      }
    }
  Precise sum = 0;
  for (std::size_t i = 0; i < size; ++i)
    for (std::size_t j = 0; j < size; ++j)
      sum += Precise(f.coefficients[i]) * f.coefficients[j] * moments[i][j];
  return sum * exp(b * (left_mean + right_mean) / 2) / sqrt(scale);
}

/// Whether E f(u)^2 is finite, and doubles hold it and f where it comes from.
bool is_within_double(const Product& f, double p) {
  const double rest = 1 - 4 * f.a * p;
  if (rest <= 0.05) return false;
  const double deviation = std::sqrt(p / rest), farthest = 2 * std::abs(f.b) * p / rest + 13 * deviation;
  const auto degree = static_cast<double>(f.coefficients.size());
  const double log_size = std::abs(f.b) * farthest + std::max(f.a, 0.0) * farthest * farthest +
                          degree * std::log(std::max(farthest, 1.0));
  // Powers spread the energy too.
  return log_size < 600 && farthest + std::sqrt(degree) * deviation < 40 * std::sqrt(p) &&
         2 * f.b * f.b * p / rest < 600;
}

class Draw {
 public:
  double between(double low, double high) { return std::uniform_real_distribution<>(low, high)(engine_); }
  double logarithmic(double low, double high) { return std::exp(between(std::log(low), std::log(high))); }
  bool happens(double probability) { return between(0, 1) < probability; }

  Product product() {
    const auto degree = static_cast<std::size_t>(happens(0.5) ? between(0, 4) : between(0, 25));
    Product f{std::vector<double>(degree + 1, 0.0), happens(0.6) ? between(-3, 3) : 0.0,
              happens(0.6) ? between(-1, 1) : 0.0};
    f.coefficients.back() = 1;
    for (double& coefficient : f.coefficients)
      if (happens(0.2)) coefficient = between(-2, 2);
    return f;
  }

 private:
  std::mt19937_64 engine_{20261128};
};

TEST_CASE("quadrature: growing functions are right or refused") {
  Draw draw;
  int right = 0, refused = 0;
  for (int example = 0; example < 60; ++example) {
    const Product f = draw.product(), slope = f.derivative();
    const auto phi =
        quadrature_activation([f](double x) { return f(x); }, [slope](double x) { return slope(x); });
    for (int place = 0; place < 6; ++place) {
      const double p = draw.logarithmic(1e-6, 1e4);
      const double q = draw.happens(0.3)   ? p
                       : draw.happens(0.5) ? draw.logarithmic(1e-6, 1e4)
                                           : p * draw.between(0.3, 1);
      const double rho = draw.happens(0.3) ? 1 - draw.logarithmic(1e-9, 0.3) : draw.between(-1, 1);
      const double c = rho * std::sqrt(p * q);
      const std::string tested = f.text();
      CAPTURE(tested);
      CAPTURE(p);
      CAPTURE(q);
      CAPTURE(rho);
      const bool is_possible = is_within_double(f, p) && is_within_double(f, q);
      const bool is_finite = 4 * f.a * std::max(p, q) < 1;
      try {
        const Dual<double> dual = phi->dual(p, q, c);
        // Of functions with an infinite energy nothing is right.
        REQUIRE(is_finite);
        const auto error = [&](const Product& of, double found) {
          const Precise size = sqrt(expectation(of, p, p, p) * expectation(of, q, q, q));
          if (size < 1e-290) return 0.0;  // What is so small has no digits.
          return static_cast<double>(abs(expectation(of, p, q, c) - found) / size);
        };
        CHECK(error(f, dual.value) <= 1e-10);
        CHECK(error(slope, dual.derivative) <= 1e-10);
        ++right;
      } catch (const NumericalError&) {
        CHECK_FALSE(is_possible);
        ++refused;
      }
    }
  }
  CHECK(right > 100);
  CHECK(refused > 50);
}

}  // namespace
