#include "widelimit/layers/dropout.hpp"

#include <doctest/doctest.h>

#include "layers/layer_errors.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

TEST_CASE("dropout: units are kept with a probability above 0") {
  CHECK(error_of([] { return dropout(0); }) == "dropout: keep must be in (0, 1], got 0");
  CHECK(error_of([] { return dropout(1.01); }) == "dropout: keep must be in (0, 1], got 1.01");
  CHECK(error_of([] { return dropout(nan); }) == "dropout: keep must be in (0, 1], got nan");
  CHECK(error_of([] { return dropout(1); }) == "no error");
}

}  // namespace
}  // namespace widelimit::testing
