// Inputs that are equal, or multiples of each other: their correlation is 1 or -1, where the NTK of a ReLU
// has an infinite slope, so that a rounding error of the covariance becomes its root in the NTK.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "support/random_inputs.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/kernel/position_covariances.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/layer_norm.hpp"

namespace widelimit::testing {
namespace {

template <typename Scalar>
constexpr double tolerance = sizeof(Scalar) == 4 ? 1e-6 : 1e-14;

/// depth x (dense, layer), dense.
Network deep(Index depth, double weight_variance, double bias_variance, const Layer& layer) {
  const Layer dense = layers::dense({.weight_variance = weight_variance, .bias_variance = bias_variance});
  return Network({layers::repeat(depth, {dense, layer}), dense});
}

struct KernelPair {
  long double nngp;
  long double ntk;
};

/// deep() of an input with itself, p = |x|^2 / C, for an activation with E[phi^2] = s p, E[phi'^2] = s.
KernelPair of_itself(Index depth, double weight_variance, double bias_variance, long double s,
                     long double p) {
  const long double w = weight_variance, b = bias_variance;
  long double nngp = w * p + b, ntk = nngp;
  for (Index i = 0; i < depth; ++i) {
    nngp = w * s * nngp + b;
    ntk = nngp + w * s * ntk;
  }
  return {nngp, ntk};
}

template <typename Scalar>
long double mean_square(const xt::xarray<Scalar>& x, std::size_t i) {
  long double sum = 0;
  for (std::size_t k = 0; k < x.shape(1); ++k) sum += static_cast<long double>(x(i, k)) * x(i, k);
  return sum / static_cast<long double>(x.shape(1));
}

/// Row i + n is factor times row i, rounded.
template <typename Scalar>
xt::xarray<Scalar> with_multiples(const xt::xarray<Scalar>& x, double factor) {
  const std::size_t n = x.shape(0), channels = x.shape(1);
  xt::xarray<Scalar> both = xt::zeros<Scalar>({2 * n, channels});
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < channels; ++k) {
      both(i, k) = x(i, k);
      both(i + n, k) = static_cast<Scalar>(factor * static_cast<double>(x(i, k)));
    }
  return both;
}

template <typename Scalar>
void check_close(Scalar value, long double expected) {
  CAPTURE(static_cast<double>(value));
  CAPTURE(static_cast<double>(expected));
  CHECK(std::abs(static_cast<long double>(value) - expected) <= tolerance<Scalar> * std::abs(expected));
}

/// 1 between multiples.
template <typename Scalar>
void check_correlation(Scalar value, Scalar left, Scalar right) {
  const double roots = std::sqrt(static_cast<double>(left)) * std::sqrt(static_cast<double>(right));
  CAPTURE(static_cast<double>(value) / roots);
  CHECK(std::abs(static_cast<double>(value) / roots - 1) <= tolerance<Scalar>);
}

}  // namespace

TEST_CASE_TEMPLATE("duplicate vectors have the kernels of an input with itself", Scalar, float, double) {
  for (const Index channels : {1, 2, 7, 100, 1000, 3072})
    for (const Index depth : {1, 5, 24, 100})
      for (const double bias : {0.0, 0.1}) {
        CAPTURE(channels);
        CAPTURE(depth);
        CAPTURE(bias);
        const Index n = 6;
        const auto x = with_multiples<Scalar>(random_inputs<Scalar>(3, {n, channels}), 1);
        const double weight = bias > 0 ? 1.7 : 2;
        const Network network = deep(depth, weight, bias, layers::relu());
        const auto one = gram<Scalar>(network, x);
        const auto two = gram<Scalar>(network, x, x);
        for (Index i = 0; i < n; ++i) {
          const KernelPair expected =
              of_itself(depth, weight, bias, 0.5L, mean_square(x, static_cast<std::size_t>(i)));
          check_close(one.nngp(i, i + n), expected.nngp);
          check_close(one.ntk(i, i + n), expected.ntk);
          // Equal inputs have equal bits, whether the two are one or not.
          CHECK(one.ntk(i, i + n) == one.ntk(i, i));
          CHECK(one.nngp(i, i + n) == one.nngp(i, i));
          CHECK(two.ntk(i, i) == one.ntk(i, i));
          CHECK(two.ntk(i, i + n) == one.ntk(i, i));
          CHECK(two.nngp(i, i + n) == one.nngp(i, i));
        }
      }
}

TEST_CASE_TEMPLATE("multiples of a vector have a multiple of its kernels", Scalar, float, double) {
  const Index n = 6;
  for (const Index channels : {1, 2, 7, 100, 1000, 3072})
    for (const Index depth : {1, 5, 24, 100})
      for (const double factor : {3.0, 0.7, 1e-3, 1.0000001, -1.3}) {
        CAPTURE(channels);
        CAPTURE(depth);
        CAPTURE(factor);
        const auto x = with_multiples<Scalar>(random_inputs<Scalar>(4, {n, channels}), factor);
        // |.| keeps the correlation -1 too, as 1.
        const bool opposed = factor < 0;
        const Network network = deep(depth, opposed ? 1.0 : 2.0, 0, opposed ? layers::abs() : layers::relu());
        const auto one = gram<Scalar>(network, x);
        const auto two = gram<Scalar>(network, x, x);
        for (Index i = 0; i < n; ++i) {
          const auto row = static_cast<std::size_t>(i);
          const long double p = std::sqrt(mean_square(x, row)) * std::sqrt(mean_square(x, row + n));
          const KernelPair expected = of_itself(depth, opposed ? 1 : 2, 0, opposed ? 1 : 0.5L, p);
          check_close(one.nngp(i, i + n), expected.nngp);
          check_close(one.ntk(i, i + n), expected.ntk);
          check_correlation(one.nngp(i, i + n), one.nngp(i, i), one.nngp(i + n, i + n));
          check_correlation(one.ntk(i, i + n), one.ntk(i, i), one.ntk(i + n, i + n));
          CHECK(two.ntk(i, i + n) == one.ntk(i, i + n));
          CHECK(two.ntk(i + n, i) == one.ntk(i, i + n));
        }
      }
}

/// After what equalises them, biases and other nonlinearities part multiples no more.
TEST_CASE_TEMPLATE("multiples of a vector are duplicates after a norm", Scalar, float, double) {
  const Index n = 8;
  const Layer dense = layers::dense({.weight_variance = 1.6, .bias_variance = 0.3});
  const Layer skip = layers::sum({{1, {}}, {0.7, {layers::relu(), dense}}});
  for (const Layer& first : {layers::layer_norm({.epsilon = 0}), layers::rms_norm({.epsilon = 0})})
    for (const Layer& layer : {layers::relu(), layers::erf(), layers::leaky_relu(0.3), layers::gelu()})
      for (const double factor : {3.0, 0.7}) {
        CAPTURE(factor);
        CAPTURE(layer.kind());
        const auto x = with_multiples<Scalar>(random_inputs<Scalar>(5, {n, 50}), factor);
        const Network network({first, layers::repeat(1, {dense, layer, dense, layers::layer_norm(), skip}),
                               layers::relu(), dense});
        const auto one = gram<Scalar>(network, x);
        for (Index i = 0; i < n; ++i) {
          check_correlation(one.nngp(i, i + n), one.nngp(i, i), one.nngp(i, i));
          check_correlation(one.ntk(i, i + n), one.ntk(i, i), one.ntk(i, i));
        }
      }
}

/// One channel: every pair is one of multiples, of either sign. Here a bias parts them, so that only exact
/// arithmetic on the covariances is right.
TEST_CASE_TEMPLATE("numbers as inputs, with and without biases", Scalar, float, double) {
  const auto x = random_inputs<Scalar>(6, {30, 1});
  const auto of_pair = [](long double p, long double q, long double c) {
    const long double rest = p * q - c * c;
    // Without biases the correlation is 1 or -1, and 0 after the first layer.
    const long double root = rest > 1e-15L * p * q ? std::sqrt(rest) : 0, angle = std::atan2(root, c);
    const long double slope = 0.5L - angle / (2 * std::numbers::pi_v<long double>);
    return KernelPair{root / (2 * std::numbers::pi_v<long double>)+slope * c, slope};
  };
  for (const double bias : {0.0, 0.5}) {
    CAPTURE(bias);
    const auto kernels = gram<Scalar>(deep(3, 1.5, bias, layers::relu()), x);
    for (std::size_t i = 0; i < 30; ++i)
      for (std::size_t j = 0; j < 30; ++j) {
        const auto product = [&](std::size_t a, std::size_t b) {
          return 1.5L * static_cast<long double>(x(a, 0)) * x(b, 0) + bias;
        };
        long double p = product(i, i), q = product(j, j), c = product(i, j), ntk = c;
        // An angle loses half the digits of a covariance near 1; the inputs' own rounding sets the bound.
        if (i != j && bias > 0 && 1 - c / std::sqrt(p * q) < 1e-3L) continue;
        for (int layer = 0; layer < 3; ++layer) {
          const KernelPair both = of_pair(p, q, c);
          c = 1.5L * both.nngp + bias;
          p = 0.75L * p + bias;
          q = 0.75L * q + bias;
          ntk = c + 1.5L * both.ntk * ntk;
        }
        const auto row = static_cast<Index>(i), column = static_cast<Index>(j);
        const double scale = static_cast<double>(std::sqrt(p * q)) * 4;
        CHECK(std::abs(static_cast<double>(kernels.ntk(row, column) - ntk)) <= 3 * tolerance<Scalar> * scale);
        CHECK(std::abs(static_cast<double>(kernels.nngp(row, column) - c)) <= tolerance<Scalar> * scale);
      }
  }
}

/// One channel, and filters of one position: all positions of all inputs are multiples of each other. The factors are
/// such that no product is exact.
template <typename Scalar>
void check_jumps_of_positions(const Layer& jump, double of_parallel, double of_opposed) {
  const auto is_negative = [](Index i, Index a) { return (20 * i + a) % 7 == 3; };
  xt::xarray<Scalar> x = xt::zeros<Scalar>({3, 4, 5, 1});
  for (Index k = 0; k < 60; ++k)
    x.flat(static_cast<std::size_t>(k)) =
        static_cast<Scalar>((is_negative(0, k) ? -1 : 1) * (0.1 + 0.37 * static_cast<double>(k % 11)));
  const Layer conv = layers::conv({.filter = {1, 1}, .weight_variance = 1.7});
  for (const Index depth : {1, 2, 4, 6, 12}) {
    CAPTURE(depth);
    const Network network({layers::repeat(depth, {conv, jump})});
    bool right = true;
    for (Index i = 0; i < 3; ++i)
      for (Index j = 0; j < 3; ++j) {
        const auto nngp = position_covariances<Scalar>(network, Inputs<Scalar>(x), i, j).nngp;
        for (Index a = 0; a < 20; ++a)
          for (Index b = 0; b < 20; ++b) {
            const bool opposed = is_negative(i, a) != is_negative(j, b);
            // What a step makes of opposed positions is uncorrelated, and not perfectly correlated after the next one.
            if (opposed && depth > 1 && of_opposed == 0) continue;
            right = right && static_cast<double>(nngp(a, b)) == (opposed ? of_opposed : of_parallel);
          }
      }
    CHECK(right);
  }
}

TEST_CASE("sign and step of positions that are multiples of each other are exact at any depth") {
  check_jumps_of_positions<double>(layers::sign(), 1, -1);
  check_jumps_of_positions<float>(layers::sign(), 1, -1);
  check_jumps_of_positions<double>(layers::rectified_monomial(0), 0.5, 0);
  check_jumps_of_positions<float>(layers::rectified_monomial(0), 0.5, 0);
}

}  // namespace widelimit::testing
