#include "widelimit/layers/layer_norm.hpp"

#include <doctest/doctest.h>

#include "layers/layer_errors.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

TEST_CASE("norms: what is added to variances must be finite and not negative") {
  CHECK(error_of([] {
          return layer_norm({NormAxes::channels, -1e-9});
        }) == "layer_norm: epsilon must be finite and not negative, got -1e-09");
  CHECK(error_of([] { return rms_norm({NormAxes::channels, 0}); }) == "no error");
}

TEST_CASE("norms: axes, each once") {
  CHECK(error_of([] {
          return layer_norm({NormAxes::channels, 1, {0, 3}});
        }) == "layer_norm: spatial axes must be 0, 1 or 2, each once, got [0, 3]");
  CHECK(error_of([] {
          return rms_norm({NormAxes::channels_and_space, 1, {0}});
        }) == "rms_norm: spatial_axes go with NormAxes::channels, which leaves the others out");
}

}  // namespace
}  // namespace widelimit::testing
