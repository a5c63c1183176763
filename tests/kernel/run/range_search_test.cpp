// The layer after which a kernel leaves the range.
#include "kernel/run/range_search.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "support/random_inputs.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::testing::range_search_test {
namespace {

/// `count` dense layers, one of which scales by 1e300, and what follows it by 1e100.
std::string layers_with_growth(int count, int growing) {
  std::string layers;
  for (int i = 0; i < count; ++i)
    layers +=
        fmt::format(R"({}{{"layer": "dense", "weight_variance": {}, "bias_variance": 0}})", i > 0 ? ", " : "",
                    i == growing  ? "1e300"
                    : i > growing ? "1e100"
                                  : "1");
  return R"({"widelimit": 1, "layers": [)" + layers + "]}";
}

TEST_CASE("layer_out_of_range: the first layer after which a kernel is not finite, wherever it stands") {
  const Inputs<double> x(random_inputs(1, {1, 4})), y(random_inputs(2, {1, 4}));
  for (const int growing : {0, 1, 5, 8}) {
    // 1e300 is still finite, the next layer's 1e400 is not.
    const auto network = parse_network(layers_with_growth(10, growing));
    CHECK(layer_out_of_range(network, x, y, false) == fmt::format("layers[{}] (dense)", growing + 1));
    CHECK(layer_out_of_range(network, x, x, true) == fmt::format("layers[{}] (dense)", growing + 1));
  }
}

TEST_CASE("layer_out_of_range: nothing where all is finite, and of inputs of too many positions") {
  const Inputs<double> x(random_inputs(1, {1, 4}));
  CHECK_FALSE(layer_out_of_range(parse_network(layers_with_growth(4, 3)), x, x, true));
  const Inputs<double> large(xt::xarray<double>(xt::ones<double>({1, 4200, 1})));
  const auto network = parse_network(
      R"({"widelimit": 1, "layers": [{"layer": "dense", "weight_variance": 1e300},
          {"layer": "dense", "weight_variance": 1e300}, {"layer": "flatten"}]})");
  CHECK_FALSE(layer_out_of_range(network, large, large, true));
}

TEST_CASE("layer_out_of_range: in the precision of the inputs") {
  const Inputs<float> x(xt::xarray<float>(xt::ones<float>({1, 4})));
  const Inputs<double> wide(xt::xarray<double>(xt::ones<double>({1, 4})));
  const auto network = parse_network(
      R"({"widelimit": 1, "layers": [{"layer": "dense", "weight_variance": 1e30},
          {"layer": "dense", "weight_variance": 1e30}]})");
  CHECK(layer_out_of_range(network, x, x, true) == "layers[1] (dense)");
  CHECK_FALSE(layer_out_of_range(network, wide, wide, true));
}

}  // namespace
}  // namespace widelimit::testing::range_search_test
