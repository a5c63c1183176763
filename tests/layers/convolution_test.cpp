#include "widelimit/layers/convolution.hpp"

#include <doctest/doctest.h>

#include "layers/layer_errors.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

TEST_CASE("convolutions: variances must be finite and not negative") {
  CHECK(error_of([] {
          return conv({{3}, {}, Padding::same, -1, 0});
        }) == "conv: weight_variance must be finite and not negative, got -1");
  CHECK(error_of([] {
          return local_conv({{3}, {}, Padding::same, 1, -1});
        }) == "local_conv: bias_variance must be finite and not negative, got -1");
}

}  // namespace
}  // namespace widelimit::testing
