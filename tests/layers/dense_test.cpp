#include "widelimit/layers/dense.hpp"

#include <doctest/doctest.h>

#include "layers/layer_errors.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

TEST_CASE("dense: variances must be finite and not negative") {
  CHECK(error_of([] {
          return dense({-0.1, 0});
        }) == "dense: weight_variance must be finite and not negative, got -0.1");
  CHECK(error_of([] {
          return dense({1, nan});
        }) == "dense: bias_variance must be finite and not negative, got nan");
  CHECK(error_of([] {
          return dense({infinity, 0});
        }) == "dense: weight_variance must be finite and not negative, got inf");
  CHECK(error_of([] { return dense({0, 0}); }) == "no error");
}

}  // namespace
}  // namespace widelimit::testing
