#include "widelimit/propagation/measured_layer.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "support/error_message.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/random_stream.hpp"

using namespace widelimit;
using namespace widelimit::propagation;

namespace {

std::string refused(const std::vector<double>& activations, Index sequences, Index tokens,
                    const std::vector<bool>& kept = {}) {
  return testing::error_message<ArgumentError>(
      [&] { return measured_layer(activations, sequences, tokens, {.kept = kept}).gap; });
}

/// Normal tokens [sequences, tokens, width], each with its own factor, on a common direction.
std::vector<double> drawn(Index sequences, Index tokens, Index width, double common, std::uint64_t seed) {
  numerics::RandomStream random(seed);
  std::vector<double> values;
  for (Index s = 0; s < sequences; ++s) {
    std::vector<double> direction;
    for (Index k = 0; k < width; ++k) direction.push_back(common * random.normal());
    for (Index i = 0; i < tokens; ++i) {
      const double factor = std::exp(random.normal());
      for (Index k = 0; k < width; ++k)
        values.push_back(factor * (direction[static_cast<std::size_t>(k)] + random.normal()));
    }
  }
  return values;
}

/// Mean cosine of two tokens, pair by pair and in numbers of 80 bits.
double mean_cosine(const std::vector<double>& values, Index sequences, Index tokens) {
  const Index width = static_cast<Index>(values.size()) / (sequences * tokens);
  const auto product = [&](Index s, Index i, Index j) {
    long double sum = 0;
    for (Index k = 0; k < width; ++k)
      sum += static_cast<long double>(values[static_cast<std::size_t>((s * tokens + i) * width + k)]) *
             static_cast<long double>(values[static_cast<std::size_t>((s * tokens + j) * width + k)]);
    return sum;
  };
  long double sum = 0;
  for (Index s = 0; s < sequences; ++s)
    for (Index i = 0; i < tokens; ++i)
      for (Index j = 0; j < i; ++j) sum += product(s, i, j) / std::sqrt(product(s, i, i) * product(s, j, j));
  return static_cast<double>(2 * sum / static_cast<long double>(sequences * tokens * (tokens - 1)));
}

}  // namespace

TEST_CASE("measured layer: norms, angles and the Gram matrix, over sequences") {
  // Two tokens at right angles, then two of one direction.
  const std::vector<double> activations{2, 0, 0, 4, 2, 1, 4, 2};
  const MeasuredLayer layer = measured_layer(activations, 2, 2);
  const double first_q = (4 + 16) / 4.0, second_q = (5 + 20) / 4.0, second_p = 10 / 2.0;
  CHECK(layer.norm.value == doctest::Approx((first_q + second_q) / 2));
  CHECK(layer.norm.standard_error == doctest::Approx((second_q - first_q) / 2));
  CHECK(layer.cosine.value == doctest::Approx(0.5));
  CHECK(layer.gap == doctest::Approx(0.5));
  // The mean product over the mean squared norm, as of the Gram matrix, not the mean of both ratios.
  const double ratio = second_p / (first_q + second_q);
  CHECK(layer.product_ratio.value == doctest::Approx(ratio));
  CHECK(layer.product_ratio.value == doctest::Approx(2 * layer.gram(0, 1) / layer.gram.trace()));
  CHECK(layer.product_ratio.standard_error == doctest::Approx(2 * ratio * first_q / (first_q + second_q)));
  // Norms 4 and 16, then 5 and 20: .6 of their mean on both sides.
  CHECK(layer.norm_spread.value == doctest::Approx(0.6));
  CHECK(layer.gram(0, 0) == doctest::Approx((4 / 2.0 + 5 / 2.0) / 2));
  CHECK(layer.gram(0, 1) == doctest::Approx(second_p / 2));
}

TEST_CASE("measured layer: a single sequence has no standard error") {
  const MeasuredLayer layer = measured_layer(std::vector<double>{1, 0, 0, 1}, 1, 2);
  CHECK(layer.norm.value == doctest::Approx(0.5));
  CHECK(std::isnan(layer.norm.standard_error));
  CHECK(std::isnan(layer.cosine.standard_error));
}

TEST_CASE("measured layer: what is refused") {
  CHECK(refused({1, 2}, 1, 1) ==
        "expected activations [sequences, tokens, width] of at least two tokens, got 2 numbers for 1 "
        "sequences of "
        "1 tokens");
  CHECK(refused({1, 2, 3}, 1, 2).starts_with("expected activations"));
  CHECK(refused({}, 0, 2).starts_with("expected activations"));
  CHECK(refused({1, std::numeric_limits<double>::quiet_NaN()}, 1, 2) ==
        "expected finite activations, got others in token 1 of sequence 0");
  CHECK(refused({1, 2, 0, 0}, 2, 2) ==
        "token 0 of sequence 1 is 0 and has no direction; if it is padding, leave it out by lengths or a "
        "mask");
  CHECK(
      refused({1, 2, 3, 4}, 2, 2, {true, true, true, false}) ==
      "sequence 1 keeps 1 of its tokens: expected two at least, which have an angle; leave the sequence out");
  CHECK(refused({1, 2, 3, 4}, 2, 2, {true}) == "expected a mask of 2 x 2 tokens, got 1 entries");
  CHECK(testing::error_message<NumericalError>([] {
          return measured_layer(std::vector<double>{1e200, 1}, 1, 2).gap;
        }) ==
        "measured_layer: the squared norm of sequence 0 must be finite, but came out as inf: rescale the "
        "activations");
}

TEST_CASE("measured layer: the mean cosine is that of directions, whatever the norms") {
  std::vector<double> activations = drawn(3, 8, 16, 1.5, 1);
  const double expected = mean_cosine(activations, 3, 8);
  CHECK(measured_layer(activations, 3, 8).cosine.value == doctest::Approx(expected).epsilon(1e-12));
  // One token of eight fifty times as long changes the ratio of means and not the cosine.
  for (std::size_t k = 0; k < 16; ++k) activations[k] *= 50;
  const MeasuredLayer longer = measured_layer(activations, 3, 8);
  CHECK(longer.cosine.value == doctest::Approx(expected).epsilon(1e-12));
  CHECK(longer.product_ratio.value < 0.8 * expected);
  CHECK(longer.norm_spread.value > 1);
}

TEST_CASE("measured layer: permuted, rescaled and duplicated tokens") {
  const Index sequences = 2, tokens = 5, width = 7;
  const std::vector<double> given = drawn(sequences, tokens, width, 1, 2);
  const MeasuredLayer layer = measured_layer(given, sequences, tokens);
  std::vector<double> permuted, twice;
  for (Index s = 0; s < sequences; ++s) {
    for (const Index i : {3, 0, 4, 2, 1})
      for (Index k = 0; k < width; ++k)
        permuted.push_back(given[static_cast<std::size_t>((s * tokens + i) * width + k)]);
    for (Index i = 0; i < 2 * tokens; ++i)
      for (Index k = 0; k < width; ++k)
        twice.push_back(given[static_cast<std::size_t>((s * tokens + i % tokens) * width + k)]);
  }
  const MeasuredLayer other = measured_layer(permuted, sequences, tokens);
  CHECK(other.cosine.value == doctest::Approx(layer.cosine.value).epsilon(1e-13));
  CHECK(other.norm_spread.value == doctest::Approx(layer.norm_spread.value).epsilon(1e-13));
  CHECK(other.product_ratio.value == doctest::Approx(layer.product_ratio.value).epsilon(1e-12));
  // Of n tokens given twice n (2 n - 1) pairs, n are of equal ones.
  const auto n = static_cast<double>(tokens);
  CHECK(measured_layer(twice, sequences, 2 * tokens).cosine.value ==
        doctest::Approx((4 * layer.cosine.value * n * (n - 1) / 2 + n) / (n * (2 * n - 1))).epsilon(1e-12));
  for (const double factor : {1e3, 1e-3, 1e120}) {
    std::vector<double> scaled = given;
    for (double& value : scaled) value *= factor;
    const MeasuredLayer found = measured_layer(scaled, sequences, tokens);
    CHECK(found.cosine.value == doctest::Approx(layer.cosine.value).epsilon(1e-12));
    CHECK(found.gap == doctest::Approx(layer.gap).epsilon(1e-12));
    CHECK(found.norm_spread.value == doctest::Approx(layer.norm_spread.value).epsilon(1e-12));
    CHECK(found.norm.value == doctest::Approx(layer.norm.value * factor * factor).epsilon(1e-12));
  }
}

TEST_CASE("measured layer: padding may be anything, and changes nothing") {
  const Index tokens = 4, width = 6;
  const std::vector<double> given = drawn(2, tokens, width, 1, 3);
  const double nothing = std::numeric_limits<double>::quiet_NaN();
  // Three places of padding behind each sequence.
  std::vector<double> padded;
  std::vector<bool> kept;
  for (Index s = 0; s < 2; ++s)
    for (Index i = 0; i < 7; ++i) {
      kept.push_back(i < tokens);
      for (Index k = 0; k < width; ++k)
        padded.push_back(i < tokens ? given[static_cast<std::size_t>((s * tokens + i) * width + k)]
                                    : nothing);
    }
  const MeasuredLayer layer = measured_layer(given, 2, tokens),
                      found = measured_layer(padded, 2, 7, {.kept = kept});
  CHECK(found.norm.value == layer.norm.value);
  CHECK(found.cosine.value == layer.cosine.value);
  CHECK(found.gap == layer.gap);
  CHECK(found.gram == layer.gram);
  // Sequences that keep other places have no common Gram matrix.
  kept[3] = false;
  CHECK(measured_layer(padded, 2, 7, {.kept = kept}).gram.size() == 0);
}

TEST_CASE("measured layer: gaps that rounding makes of equal tokens are none") {
  // Equal tokens, rounded anew in a type with so many bits: what is left is of the order of epsilon^2.
  const auto rounded = [](int bits, double distance) {
    numerics::RandomStream random(5);
    std::vector<double> values, direction;
    for (Index k = 0; k < 64; ++k) direction.push_back(random.normal());
    for (Index i = 0; i < 8; ++i)
      for (const double entry : direction) {
        int exponent = 0;
        const double noise = std::ldexp(random.uniform() - 0.5, -bits + 1);
        const double mantissa = std::frexp(entry * (1 + noise) + distance * random.normal(), &exponent);
        values.push_back(std::ldexp(std::round(std::ldexp(mantissa, bits)), exponent - bits));
      }
    return values;
  };
  for (const int bits : {8, 11, 24, 53}) {
    const double epsilon = std::ldexp(1.0, 1 - bits);
    const MeasuredLayer equal = measured_layer(rounded(bits, 0), 1, 8),
                        apart = measured_layer(rounded(bits, 20 * epsilon), 1, 8);
    CHECK(equal.rounding_gap == rounding_gap(epsilon));
    CHECK_FALSE(equal.has_gap());
    CHECK(apart.has_gap());
    const std::vector<MeasuredLayer> layers{apart, equal, equal, apart, apart};
    const AngleGrowth growth = angle_growth(layers);
    CHECK(growth.layers[0] == 0);
    for (const std::size_t l : {1, 2, 3}) CHECK(std::isnan(growth.layers[l]));
    CHECK(growth.layers[4] == 0);
    CHECK(growth.mean == 0);
    CHECK(growth.left_out == 3);
  }
  // A type that is named counts where the numbers are too few to show one.
  CHECK(measured_layer(std::vector<double>{1, 0, 1, 0}, 1, 2, {.epsilon = 0x1p-10}).rounding_gap ==
        rounding_gap(0x1p-10));
  const std::vector<MeasuredLayer> collapsed(3, measured_layer(rounded(24, 0), 1, 8));
  CHECK(std::isnan(angle_growth(collapsed).mean));
  CHECK(std::isnan(angle_growth(collapsed).layers[0]));
}
