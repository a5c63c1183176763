#include "widelimit/layers/exp_normalized.hpp"

#include <doctest/doctest.h>

#include "layers/layer_errors.hpp"
#include "widelimit/layers/activations.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

TEST_CASE("exp_normalized: its numbers; it is no nonlinearity") {
  CHECK(error_of([] { return exp_normalized(-1, 0); }) ==
        "exp_normalized: gamma must be finite and not negative, got -1");
  CHECK(error_of([] { return exp_normalized(1, nan); }) == "exp_normalized: shift must be finite, got nan");
  CHECK(error_of([] { return activation_of(exp_normalized()); }) ==
        "expected a nonlinearity such as relu, got the layer exp_normalized");
}

}  // namespace
}  // namespace widelimit::testing
