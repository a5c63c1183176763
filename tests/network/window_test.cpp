#include "widelimit/network/window.hpp"

#include <doctest/doctest.h>

#include "layers/layer_errors.hpp"
#include "widelimit/layers/convolution.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

TEST_CASE("windows need 1 to 3 positive sizes and as many positive strides") {
  const auto window = [](std::vector<Index> sizes, std::vector<Index> strides) {
    return error_of([&] { return conv({sizes, strides, Padding::same, 1, 0}); });
  };
  CHECK(window({1}, {}) == "no error");
  CHECK(window({1, 2, 3}, {3, 2, 1}) == "no error");
  CHECK(window({}, {}) == "conv: expected a window with 1, 2 or 3 axes, got 0");
  CHECK(window({1, 1, 1, 1}, {}) == "conv: expected a window with 1, 2 or 3 axes, got 4");
  CHECK(window({3, 0}, {}) == "conv: window sizes must be positive, got 0");
  CHECK(window({3, 3}, {1}) == "conv: expected one stride an axis (2), got 1");
  CHECK(window({3}, {0}) == "conv: strides must be positive, got 0");
  CHECK(window({3}, {Index{1} << 20}) == "no error");
  CHECK(window({3}, {4'000'000'000}) == "conv: strides must be at most 1048576, got 4000000000");
}

}  // namespace
}  // namespace widelimit::testing
