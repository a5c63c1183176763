#include "widelimit/propagation/block_diagram.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "widelimit/error.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/dense.hpp"

using namespace widelimit;
using namespace widelimit::propagation;
using doctest::Approx;

namespace {

/// At every token; small differences grow where the weights are large.
Network tanh_block() {
  return Network({layers::dense({.weight_variance = 1.2, .bias_variance = 0.1}), layers::tanh()});
}

const char* const weights = "layers[0].weight_variance";
const char* const biases = "layers[0].bias_variance";

}  // namespace

TEST_CASE("block diagram: values are even, or even in the logarithm") {
  CHECK(evenly_varied("a", 1, 3, 3).values == std::vector<double>{1, 2, 3});
  const VariedNumber number = evenly_varied("a", 0.01, 100, 5, true);
  CHECK(number.values.size() == 5);
  CHECK(number.values[2] == Approx(1));
  CHECK(number.values.back() == 100);
  CHECK(number.logarithmic);
  const auto fails = [](double from, double to, Index count, bool logarithmic, const char* message) {
    CHECK_THROWS_WITH_AS(static_cast<void>(evenly_varied("a", from, to, count, logarithmic)), message,
                         ArgumentError);
  };
  fails(1, 2, 1, false, "evenly_varied: 'a': expected a count of at least 2, got 1");
  fails(2, 1, 3, false, "evenly_varied: 'a': expected ascending bounds, got 2 and 1");
  fails(0, 1, 3, true, "evenly_varied: 'a': a log scale needs positive bounds, got 0");
}

TEST_CASE("block diagram: points of the grid are block_exponents() of their networks, whatever the threads") {
  const BlockVariation variation(tanh_block(), {{weights, {0.5, 2}}, {biases, {0.1, 0.2, 0.4}}});
  std::ptrdiff_t last = 0, all = 0;
  VariationRun run{2, 3, 1.0, {}};
  run.control.threads = 1;
  run.control.progress = [&](std::ptrdiff_t done, std::ptrdiff_t total) {
    CHECK(done >= last);
    last = done;
    all = total;
  };
  const auto grid = exponents_over(variation, run);
  CHECK(last == all);
  REQUIRE(grid.size() == 6);
  CHECK(grid[1].values == std::vector<double>{0.5, 0.2});
  CHECK(grid[3].values == std::vector<double>{2, 0.1});
  run.control = {};
  const auto again = exponents_over(variation, run);
  for (std::size_t i = 0; i < 6; ++i) {
    const BlockExponents one = block_exponents(variation.network_with(grid[i].values), 2, 3, 1.0);
    CHECK(grid[i].exponents.angle.value == one.angle.value);
    CHECK(grid[i].exponents.gradient.value == one.gradient.value);
    CHECK(again[i].exponents.angle.value == one.angle.value);
  }
}

TEST_CASE("block diagram: the gradient exponent of a linear block vanishes where weights have variance 1") {
  // dX^l / dX^0 of l linear layers grows as (weight variance)^l, whatever the biases.
  const Network linear({layers::dense({.weight_variance = 1.2, .bias_variance = 0.1})});
  const VariationRun run{2, 3, 1.0, {}};
  const BlockVariation line(linear, {evenly_varied(weights, 0.3, 2, 4)});
  const ZeroLine one = zeros_over(line, exponents_over(line, run), ZeroOf::gradient, run);
  REQUIRE(one.points.size() == 1);
  CHECK(one.points[0][0] == Approx(1).epsilon(1e-12));
  CHECK(one.segments.empty());

  const BlockVariation plane(linear, {evenly_varied(weights, 0.3, 2, 4), evenly_varied(biases, 0.1, 0.4, 3)});
  const ZeroLine whole = zeros_over(plane, exponents_over(plane, run), ZeroOf::gradient, run);
  REQUIRE(whole.points.size() == 3);
  for (const auto& point : whole.points) CHECK(point[0] == Approx(1).epsilon(1e-12));
  CHECK(whole.segments.size() == 2);
}

TEST_CASE("block diagram: a root lies where block_exponents() vanish") {
  const VariationRun run{2, 2, {}, {}};
  const BlockVariation line(tanh_block(), {evenly_varied(weights, 0.5, 4, 4)});
  const ZeroLine zeros = zeros_over(line, exponents_over(line, run), ZeroOf::angle, run);
  REQUIRE(zeros.points.size() == 1);
  CHECK(std::abs(block_exponents(line.network_with(zeros.points[0]), 2, 2).angle.value) < 1e-9);
}

TEST_CASE("block diagram: errors name the number") {
  const Network block = tanh_block();
  const auto fails = [&](std::vector<VariedNumber> numbers, const char* message) {
    CHECK_THROWS_WITH_AS(BlockVariation(block, std::move(numbers)), doctest::Contains(message),
                         ArgumentError);
  };
  fails({}, "expected one or two numbers of the network, got 0");
  fails({{weights, {1, 1}}}, "'layers[0].weight_variance': expected at least two ascending values");
  fails({{"layers[0].nothing", {1, 2}}}, "the network has no such field");
  fails({{weights, {1, 2}}, {weights, {1, 2}}}, "named twice");
  const BlockVariation variation(block, {{weights, {-1, 1}}});
  CHECK_THROWS_AS(static_cast<void>(exponents_over(variation, {2, 2, 1.0, {}})), NetworkError);
}
