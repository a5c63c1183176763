#include "widelimit/layers/activations.hpp"

#include <doctest/doctest.h>

#include "layers/layer_errors.hpp"
#include "widelimit/layers/dense.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

TEST_CASE("activations: their numbers") {
  CHECK(error_of([] { return hermite((Index{1} << 32) + 2); }) ==
        "hermite: degree must be within 0 .. 64, got 2147483647");
  CHECK(error_of([] { return hermite(-1); }) == "hermite: degree must not be negative, got -1");
  CHECK(error_of([] { return monomial(-1); }) == "monomial: degree must not be negative, got -1");
  CHECK(error_of([] { return rectified_monomial(33); }) ==
        "rectified_monomial: degree must be within 0 .. 32, got 33");
  CHECK(error_of([] { return ab_relu(nan, 1); }) != "no error");
  CHECK(error_of([] { return layers::erf(1, infinity); }) == "erf: b must be a finite number, got inf");
  CHECK(error_of([] { return leaky_relu(nan); }) != "no error");
  CHECK(error_of([] { return rbf(0); }) != "no error");
  CHECK(error_of([] { return polynomial({}); }) != "no error");
  CHECK(error_of([] { return nonlinearity("mine", nullptr); }) ==
        "mine: expected an activation, got a null pointer");
  CHECK(error_of([] { return activation_of(dense()); }) ==
        "expected a nonlinearity such as relu, got the layer dense");
  CHECK(activation_of(relu())->value(-2) == 0);
}

}  // namespace
}  // namespace widelimit::testing
