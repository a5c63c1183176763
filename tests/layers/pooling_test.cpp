#include "widelimit/layers/pooling.hpp"

#include <doctest/doctest.h>

#include "layers/layer_errors.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

TEST_CASE("poolings: windows, and the edges of means") {
  CHECK(error_of([] {
          return average_pool({{0}, {}, Padding::valid});
        }) == "average_pool: window sizes must be positive, got 0");
  CHECK(error_of([] {
          return sum_pool({{2}, {-1}, Padding::valid});
        }) == "sum_pool: strides must be positive, got -1");
  CHECK(error_of([] {
          return sum_pool({{2}, {}, Padding::same, true});
        }) == "sum_pool: normalize_edges is for means; take average_pool");
}

}  // namespace
}  // namespace widelimit::testing
