// Devices whose memory other programs fill: what is taken at once shrinks, and results stay as they are.
#include <doctest/doctest.h>

#include <string>
#include <xtensor/xview.hpp>

#include "kernel/backends/device/device_comparison.hpp"
#include "opencl/session.hpp"
#include "support/error_message.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/device_error.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::testing::device_memory_test {
namespace {

/// What a pair keeps before the pooling takes 2 * 36^2 numbers.
const char* const network_text = R"({"widelimit": 1, "layers": [
    {"layer": "conv", "filter": [3, 3]}, {"layer": "relu"}, {"layer": "average_pool", "window": [2, 2], "strides": [1, 1]},
    {"layer": "conv", "filter": [3, 3]}, {"layer": "relu"}, {"layer": "global_average_pool"}, {"layer": "dense"}]})";

TEST_CASE("what is kept of pairs, and of inputs, shrinks to what is free, and results keep their bits") {
  const Network network = parse_network(network_text);
  const xt::xarray<float> numbers = random_inputs<float>(5, {40, 6, 6, 2});
  const Inputs<float> x(numbers);
  const auto whole = gram(network, x, on_device());
  // 820 pairs keep more than 8 MB; states of 40 inputs take less than a megabyte.
  const opencl::BufferLimit limit(std::uint64_t{3} << 20);
  const auto in_parts = gram(network, x, on_device());
  CHECK(in_parts.nngp == whole.nngp);
  CHECK(in_parts.ntk == whole.ntk);
}

TEST_CASE("a device without room is an error that says so") {
  const Network network = parse_network(network_text);
  const xt::xarray<float> numbers = random_inputs<float>(5, {4, 6, 6, 2});
  const opencl::BufferLimit limit(1000);
  const std::string message =
      error_message<DeviceError>([&] { return gram(network, Inputs<float>(numbers), on_device()); });
  CHECK(message.find("has no room for two pieces of 1048576 bytes now") != std::string::npos);
  CHECK(message.find("choose the device cpu") != std::string::npos);
}

}  // namespace
}  // namespace widelimit::testing::device_memory_test
