#include "widelimit/propagation/measured_layer.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "support/error_message.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::propagation;

namespace {

std::string refused(const std::vector<double>& activations, Index sequences, Index tokens) {
  return testing::error_message<ArgumentError>(
      [&] { return measured_layer(activations, sequences, tokens).gap; });
}

}  // namespace

TEST_CASE("measured layer: norms, angles and the Gram matrix, over sequences") {
  // Two tokens at right angles, then two of one direction.
  const std::vector<double> activations{2, 0, 0, 4, 2, 1, 4, 2};
  const MeasuredLayer layer = measured_layer(activations, 2, 2);
  const double first_q = (4 + 16) / 4.0, second_q = (5 + 20) / 4.0, second_p = 10 / 2.0;
  CHECK(layer.norm.value == doctest::Approx((first_q + second_q) / 2));
  CHECK(layer.norm.standard_error == doctest::Approx((second_q - first_q) / 2));
  CHECK(layer.cosine.value == doctest::Approx(second_p / second_q / 2));
  CHECK(layer.gap == doctest::Approx(1 - second_p / second_q / 2));
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
  CHECK(refused({1, std::numeric_limits<double>::quiet_NaN()}, 1, 2) == "expected finite activations");
  CHECK(refused({1, 2, 0, 0}, 2, 2) == "all activations of sequence 1 are 0");
}
