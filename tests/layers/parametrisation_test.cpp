#include "widelimit/layers/parametrisation.hpp"

#include <doctest/doctest.h>

#include "layers/layer_errors.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

TEST_CASE("widths of the standard parametrisation") {
  const auto standard = [](Index width, double scale, bool zero_biases, double bias) {
    return error_of([&] { return dense({1, bias, StandardParametrisation{width, scale, zero_biases}}); });
  };
  CHECK(standard(512, 4, false, 0.1) == "no error");
  CHECK(standard(512, 4, true, 0) == "no error");
  CHECK(standard(0, 1, false, 0) == "dense: input_width must be at least 1, got 0");
  CHECK(standard(1, 0, false, 0) == "dense: width_scale must be positive and finite, got 0");
  CHECK(standard(1, infinity, false, 0) == "dense: width_scale must be positive and finite, got inf");
  CHECK(standard(1, 1, true, 0.5) == "dense: zero_biases needs a bias_variance of 0, got 0.5");
  CHECK(error_of([] {
          return conv_transpose({{3}, {}, Padding::same, 1, 0, StandardParametrisation{-1}});
        }) == "conv_transpose: input_width must be at least 1, got -1");
}

}  // namespace
}  // namespace widelimit::testing
