#include "widelimit/network/network_numbers.hpp"

#include <doctest/doctest.h>

#include "widelimit/error.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/dropout.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

Network small_network() {
  return Network({average_pool({.window = {2}}), dense({.weight_variance = 1.5, .bias_variance = 0.25}),
                  dropout(0.75), relu(), global_average_pool(), dense()});
}

TEST_CASE("NetworkNumbers: values in the order of the paths, and networks with others") {
  const NetworkNumbers numbers(small_network(), {"layers[2].keep", "layers[1].weight_variance"});
  CHECK(numbers.values() == std::vector<double>{0.75, 1.5});
  const Network changed = numbers.with({0.5, 2});
  CHECK(NetworkNumbers(changed, {"layers[1].weight_variance", "layers[1].bias_variance", "layers[2].keep"})
            .values() == std::vector<double>{2, 0.25, 0.5});
  CHECK(to_json(numbers.with(numbers.values())) == to_json(small_network()));
}

TEST_CASE("NetworkNumbers: integers are rounded where they may change") {
  const NetworkNumbers numbers(small_network(), {"layers[0].window[0]", "layers[2].keep"},
                               IntegerNumbers::rounded);
  CHECK(numbers.values() == std::vector<double>{2, 0.75});
  CHECK(numbers.is_integer(0));
  CHECK_FALSE(numbers.is_integer(1));
  CHECK(NetworkNumbers(numbers.with({2.6, 0.5}), {"layers[0].window[0]"}, IntegerNumbers::rounded).values() ==
        std::vector<double>{3});
  CHECK_THROWS_WITH_AS(static_cast<void>(numbers.is_integer(2)),
                       "NetworkNumbers::is_integer: expected one of 2 numbers, got number 2", ArgumentError);
}

TEST_CASE("NetworkNumbers: errors name the path") {
  const Network network = small_network();
  const auto fails = [&](const std::string& path, const char* message) {
    CHECK_THROWS_WITH_AS(NetworkNumbers(network, {path}), doctest::Contains(message), ArgumentError);
  };
  fails("layers[1].weight", "'layers[1].weight': the network has no such field; layers[1] has bias_variance");
  fails("layers[9].keep", "the network has no such field; layers has 6 entries, counted from 0");
  fails("layers[1].layer", "expected a number there, the network has \"dense\"");
  fails("layers[0].window[0]", "an integer there, which cannot change continuously");
  fails("widelimit", "'widelimit': the network has no such field; it has layers");
  fails("", "expected names between the dots");
  fails("layers[x]", "expected [NUMBER] in the path");
  CHECK_THROWS_WITH_AS(NetworkNumbers(network, {"layers[2].keep", "layers[2].keep"}),
                       "'layers[2].keep': this number is named twice", ArgumentError);
  const NetworkNumbers keep(network, {"layers[2].keep"});
  CHECK_THROWS_WITH_AS(static_cast<void>(keep.with({1, 2})), "NetworkNumbers::with: expected 1 values, got 2",
                       ArgumentError);
  CHECK_THROWS_WITH_AS(static_cast<void>(keep.with({1.5})),
                       doctest::Contains("layers[2]: dropout: keep must be in (0, 1], got 1.5"),
                       NetworkError);
}

}  // namespace
}  // namespace widelimit::testing
