#include "kernel/inputs/typical_inputs.hpp"

#include <doctest/doctest.h>

#include <cmath>

namespace widelimit::testing {
namespace {

/// The correlation of numbers that are `step` positions apart along the last axis.
double neighbour_correlation(const Inputs<double>& x, Index step) {
  double product = 0, square = 0, sum = 0;
  Index count = 0;
  for (Index i = 0; i < x.size(); ++i) {
    const Index width = x.shape(i).back(), channels = x.channels();
    const auto numbers = x[i];
    for (Index at = 0; at < static_cast<Index>(numbers.size()); ++at) {
      if (at / channels % width + step >= width) continue;
      const double one = numbers[static_cast<std::size_t>(at)],
                   other = numbers[static_cast<std::size_t>(at + step * channels)];
      product += one * other;
      square += (one * one + other * other) / 2;
      sum += one;
      ++count;
    }
  }
  const double mean = sum / static_cast<double>(count);
  return (product / static_cast<double>(count) - mean * mean) /
         (square / static_cast<double>(count) - mean * mean);
}

TEST_CASE("typical inputs: images are smooth, sequences are not") {
  const auto images = typical_inputs<double>(8, {32, 32}, 3);
  CHECK(images.size() == 8);
  CHECK(images.shape() == Shape{32, 32});
  CHECK(neighbour_correlation(images, 1) > 0.9);
  CHECK(neighbour_correlation(images, 8) < 0.8);
  CHECK(neighbour_correlation(typical_inputs<double>(2, {6, 12, 16}, 2), 1) > 0.8);
  CHECK(std::abs(neighbour_correlation(typical_inputs<double>(40, {50}, 4), 1)) < 0.1);
}

TEST_CASE("typical inputs: the same in every call, different from each other, with graphs for sequences") {
  const auto once = typical_inputs<float>(3, {5, 4}, 2), again = typical_inputs<float>(4, {5, 4}, 2);
  for (Index i = 0; i < 3; ++i)
    for (std::size_t k = 0; k < once[i].size(); ++k) CHECK(once[i][k] == again[i][k]);
  CHECK(once[0][0] != once[1][0]);
  CHECK(typical_inputs<float>(3, {7}, 2).graphs().size() == 3);
  CHECK(typical_inputs<float>(2, {}, 9).channels() == 9);
}

}  // namespace
}  // namespace widelimit::testing
