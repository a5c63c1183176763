#include "kernel/backends/reference/naive_activations.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace widelimit::testing {
namespace {

using nlohmann::json;

const Real pi = std::acos(Real{-1});

Real number(const json& layer, const char* field, double otherwise) { return layer.value(field, otherwise); }

Real square(Real x) { return x * x; }

/// A variance of 0 counts as uncorrelated: an angle of pi / 2.
Real angle(const NaiveGaussian& g) {
  if (g.p == 0 || g.q == 0) return pi / 2;
  return std::atan2(std::sqrt(std::max<Real>(g.determinant, 0)), g.c);
}

struct Slopes {
  Real below, above;
};

std::optional<Slopes> slopes_of(const json& layer) {
  const std::string kind = layer["layer"];
  if (kind == "relu") return Slopes{0, 1};
  if (kind == "abs") return Slopes{-1, 1};
  if (kind == "leaky_relu") return Slopes{layer["slope"].get<double>(), 1};
  if (kind == "ab_relu") return Slopes{layer["a"].get<double>(), layer["b"].get<double>()};
  return std::nullopt;
}

/// Cho and Saul: moments of two Gaussians over the quadrant where both are positive.
Real quadrant_moment(int degree, const NaiveGaussian& g) {
  const Real theta = angle(g);
  Real before = 0, moment = (pi - theta) / (2 * pi);
  if (degree == 0) return moment;
  Real after = std::sqrt(std::max<Real>(g.determinant, 0)) / (2 * pi) + g.c * moment;
  for (int k = 1; k < degree; ++k) {
    before = moment;
    moment = after;
    after = (2 * k + 1) * g.c * moment + square(k) * std::max<Real>(g.determinant, 0) * before;
  }
  return after;
}

DualValue homogeneous(const Slopes& slopes, const NaiveGaussian& g) {
  const Real kink = square(slopes.above - slopes.below) / (2 * pi);
  const Real derivative = (square(slopes.above) + square(slopes.below)) / 2 - kink * angle(g);
  return {kink * std::sqrt(std::max<Real>(g.determinant, 0)) + g.c * derivative, derivative};
}

DualValue sine(Real amplitude, Real frequency, Real phase, const NaiveGaussian& g) {
  const Real scale = square(amplitude) / 2, rate = square(frequency) / 2;
  const Real difference = std::exp(-rate * (g.p + g.q - 2 * g.c)),
             sum = std::exp(-rate * (g.p + g.q + 2 * g.c)) * std::cos(2 * phase);
  return {scale * (difference - sum), scale * square(frequency) * (difference + sum)};
}

/// x Phi(x): the square root of 2 pi is never formed.
DualValue gelu(const NaiveGaussian& g) {
  const Real r2 = 1 + g.p + g.q + g.determinant, r = std::sqrt(r2), h = 1 / (1 + g.p) + 1 / (1 + g.q);
  const Real s = Real{0.25} + std::atan(g.c / r) / (2 * pi);
  return {g.c * s + (g.determinant + square(g.c) * h) / (2 * pi * r), s + g.c * (h + 1 / r2) / (2 * pi * r)};
}

/// exp(-x^2) sin(x): the exponentials make a Gaussian of covariance (S^-1 + 2)^-1 out of one of covariance S.
DualValue gabor(const NaiveGaussian& g) {
  const Real delta = std::max<Real>(g.determinant, 0), slope = -8 * g.c;
  // (1 + 2p) (1 + 2q) - 4 c^2, without a difference of large numbers.
  const Real size = 1 + 2 * (g.p + g.q) + 4 * delta;
  const Real p = (g.p + 2 * delta) / size, q = (g.q + 2 * delta) / size, c = g.c / size;
  const Real of_p = (-4 * g.c - p * slope) / size, of_q = (-4 * g.c - q * slope) / size,
             of_c = (1 - c * slope) / size;
  const Real near = std::exp(-(p + q - 2 * c) / 2), far = std::exp(-(p + q + 2 * c) / 2),
             root = std::sqrt(size);
  const Real value = (near - far) / (2 * root);
  const Real of_near = -near * (of_p + of_q - 2 * of_c) / 2, of_far = -far * (of_p + of_q + 2 * of_c) / 2;
  return {value, (of_near - of_far) / (2 * root) - value * slope / (2 * size)};
}

/// E[u^i v^j] for i, j <= degree, by Isserlis' theorem.
std::vector<std::vector<Real>> mixed_moments(std::size_t degree, const NaiveGaussian& g) {
  std::vector<std::vector<Real>> m(degree + 1, std::vector<Real>(degree + 1, 0));
  m[0][0] = 1;
  for (std::size_t j = 2; j <= degree; ++j) m[0][j] = static_cast<Real>(j - 1) * g.q * m[0][j - 2];
  for (std::size_t i = 1; i <= degree; ++i)
    for (std::size_t j = 0; j <= degree; ++j) {
      if (i >= 2) m[i][j] += static_cast<Real>(i - 1) * g.p * m[i - 2][j];
      if (j >= 1) m[i][j] += static_cast<Real>(j) * g.c * m[i - 1][j - 1];
    }
  return m;
}

DualValue polynomial(const std::vector<Real>& coefficients, const NaiveGaussian& g) {
  const auto m = mixed_moments(coefficients.size() - 1, g);
  DualValue result{0, 0};
  for (std::size_t i = 0; i < coefficients.size(); ++i)
    for (std::size_t j = 0; j < coefficients.size(); ++j) {
      const Real product = coefficients[i] * coefficients[j];
      result.value += product * m[i][j];
      if (i > 0 && j > 0) result.derivative += product * static_cast<Real>(i * j) * m[i - 1][j - 1];
    }
  return result;
}

/// Lowest order first; nothing for what is no polynomial.
std::optional<std::vector<Real>> coefficients_of(const json& layer) {
  const std::string kind = layer["layer"];
  std::vector<Real> result;
  if (kind == "identity") return std::vector<Real>{0, 1};
  if (kind == "polynomial") {
    for (const json& coefficient : layer["coefficients"]) result.push_back(coefficient.get<double>());
    return result;
  }
  if (kind == "monomial") {
    result.assign(layer["degree"].get<std::size_t>() + 1, 0);
    result.back() = 1;
    return result;
  }
  if (kind != "hermite") return std::nullopt;
  // He_{n+1} = x He_n - n He_{n-1}
  const auto degree = layer["degree"].get<std::size_t>();
  std::vector<Real> before(degree + 1, 0), here(degree + 1, 0);
  here[0] = 1;
  Real factorial = 1;
  for (std::size_t n = 0; n < degree; ++n) {
    std::vector<Real> after(degree + 1, 0);
    for (std::size_t i = 0; i <= degree; ++i) {
      if (i > 0) after[i] = here[i - 1];
      after[i] -= static_cast<Real>(n) * before[i];
    }
    before = here;
    here = after;
    factorial *= static_cast<Real>(n + 1);
  }
  for (Real& coefficient : here) coefficient /= std::sqrt(factorial);
  return here;
}

struct SmoothFunction {
  Real value, derivative;
};

/// In double: the rule's other errors are of that size.
SmoothFunction smooth(const json& layer, double x) {
  const std::string kind = layer["layer"];
  const double logistic = 1 / (1 + std::exp(-x));
  if (kind == "tanh") return {std::tanh(x), 1 - std::tanh(x) * std::tanh(x)};
  if (kind == "sigmoid") return {logistic, logistic * (1 - logistic)};
  if (kind == "silu") return {x * logistic, logistic * (1 + x * (1 - logistic))};
  if (kind == "softplus") return {x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)), logistic};
  if (kind != "erf") throw std::logic_error("the naive kernel does not know " + kind);
  const double a = layer["a"], b = layer["b"], c = layer["c"], d = layer["d"];
  const double z = b * x + c;
  return {a * std::erf(z) + d, static_cast<Real>(2 * a * b / std::sqrt(M_PI) * std::exp(-z * z))};
}

/// The nearest poles of the functions are pi / 2 from the axis: a spacing h of the standard normal variable leaves
/// exp(-pi^2 / (h sqrt(p))).
DualValue by_quadrature(const json& layer, const NaiveGaussian& g) {
  constexpr Real reach = 9, largest_variance = 150;
  if (g.p > largest_variance || g.q > largest_variance)
    throw BeyondNaive("a variance for the trapezium rule");
  const auto spacing = [](Real variance) {
    return std::min<Real>(0.45L, 0.29L / std::sqrt(variance + 1e-30L));
  };
  const Real root = std::sqrt(g.p), along = g.p == 0 ? 0 : g.c / root,
             across = g.p == 0 ? std::sqrt(g.q) : std::sqrt(std::max<Real>(g.determinant, 0) / g.p);
  const Real first_step = spacing(std::max(g.p, g.q)), second_step = spacing(across * across);
  const auto first_count = static_cast<int>(reach / first_step),
             second_count = static_cast<int>(reach / second_step);
  DualValue sum{0, 0};
  for (int i = -first_count; i <= first_count; ++i) {
    const Real x = static_cast<Real>(i) * first_step;
    SmoothFunction inner{0, 0};
    for (int j = -second_count; j <= second_count; ++j) {
      const Real y = static_cast<Real>(j) * second_step, weight = std::exp(-y * y / 2);
      const SmoothFunction right = smooth(layer, static_cast<double>(along * x + across * y));
      inner.value += weight * right.value;
      inner.derivative += weight * right.derivative;
    }
    const SmoothFunction left = smooth(layer, static_cast<double>(root * x));
    const Real weight = std::exp(-x * x / 2);
    sum.value += weight * left.value * inner.value;
    sum.derivative += weight * left.derivative * inner.derivative;
  }
  const Real density = first_step * second_step / (2 * pi);
  return {sum.value * density, sum.derivative * density};
}

/// Positions of one covariance are many, and rules over the plane slow.
DualValue kept_quadrature(const json& layer, const NaiveGaussian& g) {
  static thread_local std::map<std::array<Real, 4>, DualValue> kept;
  static thread_local std::string kept_of;
  const std::string here = layer.dump();
  if (kept_of != here || kept.size() > 100'000) kept.clear();
  kept_of = here;
  const std::array<Real, 4> key{g.p, g.q, g.c, g.determinant};
  const auto found = kept.find(key);
  if (found != kept.end()) return found->second;
  return kept[key] = by_quadrature(layer, g);
}

DualValue of_erf(const json& layer, const NaiveGaussian& g) {
  const Real a = number(layer, "a", 1), b2 = square(number(layer, "b", 1)), d = number(layer, "d", 0);
  // (1 + 2 b^2 p) (1 + 2 b^2 q) - 4 b^4 c^2, without a difference of large numbers.
  const Real rest = 1 + 2 * b2 * (g.p + g.q) + 4 * square(b2) * std::max<Real>(g.determinant, 0);
  return {square(a) * 2 / pi * std::atan2(2 * b2 * g.c, std::sqrt(rest)) + square(d),
          square(a) * b2 * 4 / pi / std::sqrt(rest)};
}

}  // namespace

DualValue naive_dual(const json& layer, const NaiveGaussian& g) {
  const std::string kind = layer["layer"];
  if (const auto slopes = slopes_of(layer)) return homogeneous(*slopes, g);
  if (const auto coefficients = coefficients_of(layer)) return polynomial(*coefficients, g);
  if (kind == "sign") {
    if (g.p == 0 || g.q == 0) return {0, 0};
    return {2 / pi * (pi / 2 - angle(g)), 0};
  }
  if (kind == "rectified_monomial") {
    const int degree = layer["degree"];
    return {quadrant_moment(degree, g),
            degree == 0 ? 0 : square(static_cast<Real>(degree)) * quadrant_moment(degree - 1, g)};
  }
  if (kind == "sin") return sine(number(layer, "a", 1), number(layer, "b", 1), number(layer, "c", 0), g);
  if (kind == "cos")
    return sine(number(layer, "a", 1), number(layer, "b", 1), number(layer, "c", 0) + pi / 2, g);
  if (kind == "rbf") return sine(std::sqrt(Real{2}), std::sqrt(2 * number(layer, "gamma", 1)), pi / 4, g);
  if (kind == "gelu") return gelu(g);
  if (kind == "gabor") return gabor(g);
  if (kind == "exp") {
    const Real rate = square(number(layer, "b", 1));
    const Real value = square(number(layer, "a", 1)) * std::exp(rate * (g.p + g.q + 2 * g.c) / 2);
    return {value, rate * value};
  }
  if (kind == "gaussian") {
    const Real a = number(layer, "a", 1), b = number(layer, "b", -1);
    const Real size = 1 - 2 * b * (g.p + g.q) + 4 * square(b) * g.determinant;
    return {square(a) / std::sqrt(size), 4 * square(a * b) * g.c / (size * std::sqrt(size))};
  }
  if (kind == "exp_normalized") {
    const Real gamma = number(layer, "gamma", 1), shift = number(layer, "shift", -1);
    const Real size = std::sqrt(g.p) * std::sqrt(g.q);
    const Real factor = std::exp(gamma * ((size == 0 ? 0 : g.c / size) + shift));
    return {size * factor, gamma * factor};
  }
  if (kind == "sigmoid_like") return of_erf({{"a", 0.5}, {"b", 1 / 2.4020563531719796}, {"d", 0.5}}, g);
  if (kind == "erf" && number(layer, "c", 0) == 0) return of_erf(layer, g);
  return kept_quadrature(layer, g);
}

Real naive_function(const json& layer, Real x) {
  const std::string kind = layer["layer"];
  if (const auto slopes = slopes_of(layer)) return x < 0 ? slopes->below * x : slopes->above * x;
  if (const auto coefficients = coefficients_of(layer)) {
    Real value = 0;
    for (std::size_t i = coefficients->size(); i-- > 0;) value = value * x + (*coefficients)[i];
    return value;
  }
  if (kind == "rectified_monomial") return x > 0 ? std::pow(x, Real(layer["degree"].get<int>())) : 0;
  if (kind == "sin")
    return number(layer, "a", 1) * std::sin(number(layer, "b", 1) * x + number(layer, "c", 0));
  if (kind == "cos")
    return number(layer, "a", 1) * std::cos(number(layer, "b", 1) * x + number(layer, "c", 0));
  if (kind == "rbf")
    return std::sqrt(Real{2}) * std::sin(std::sqrt(2 * number(layer, "gamma", 1)) * x + pi / 4);
  if (kind == "gelu") return x * std::erfc(-x / std::sqrt(Real{2})) / 2;
  if (kind == "gabor") return std::exp(-x * x) * std::sin(x);
  if (kind == "exp") return number(layer, "a", 1) * std::exp(number(layer, "b", 1) * x);
  if (kind == "gaussian") return number(layer, "a", 1) * std::exp(number(layer, "b", -1) * x * x);
  if (kind == "sigmoid_like") return (std::erf(x / 2.4020563531719796L) + 1) / 2;
  if (kind == "erf")
    return number(layer, "a", 1) * std::erf(number(layer, "b", 1) * x + number(layer, "c", 0)) +
           number(layer, "d", 0);
  return smooth(layer, static_cast<double>(x)).value;
}

bool has_kink(const json& layer) {
  const std::string kind = layer["layer"];
  return slopes_of(layer).has_value() || kind == "sign" || kind == "rectified_monomial";
}

}  // namespace widelimit::testing
