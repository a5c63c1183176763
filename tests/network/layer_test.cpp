#include "widelimit/network/layer.hpp"

#include <doctest/doctest.h>

#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/dense.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

TEST_CASE("layers have the kinds of network files") {
  CHECK(dense().kind() == "dense");
  CHECK(repeat(2, {relu()}).kind() == "repeat");
}

TEST_CASE("layers differ by any field") {
  CHECK(dense({1, 0}) != dense({1, 1e-300}));
  CHECK(relu() != layers::abs());
  CHECK(repeat(2, {relu()}) != repeat(2, {gelu()}));
  CHECK(dense({1, 0.5}) == dense({1, 0.5}));
}

}  // namespace
}  // namespace widelimit::testing
