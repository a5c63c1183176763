#include "widelimit/layers/branches.hpp"

#include <doctest/doctest.h>

#include "layers/layer_errors.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/dense.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

TEST_CASE("branches: their number, scales and shares") {
  CHECK(error_of([] { return sum({}); }) == "sum: expected at least one branch, got none");
  CHECK(error_of([] { return product({}); }) == "product: expected at least one branch, got none");
  CHECK(error_of([] { return sum({{nan, {}}}); }) == "sum: scale must be finite, got nan");
  CHECK(error_of([] { return sum({{-2, {}}}); }) == "no error");
  CHECK(error_of([] { return concat({{0.5, {}}, {0.4, {}}}); }) == "concat: shares must sum to 1, got 0.9");
  CHECK(error_of([] {
          return concat({{1.5, {}}, {-0.5, {}}});
        }) == "concat: share must be in (0, 1], got 1.5");
  CHECK(error_of([] { return concat({{0, {}}, {1, {}}}); }) == "concat: share must be in (0, 1], got 0");
  CHECK(error_of([] { return concat({{1.0 / 3, {}}, {1.0 / 3, {}}, {1.0 / 3, {}}}); }) == "no error");
  CHECK(error_of([] { return repeat(0, {dense()}); }) == "repeat: times must be at least 1, got 0");
}

TEST_CASE("concatenated positions: the axis, and at least one branch") {
  CHECK(error_of([] { return concat_positions(3, {{}}); }) == "concat: axis must be 0, 1 or 2, got 3");
  CHECK(error_of([] { return concat_positions(0, {}); }) == "concat: expected at least one branch, got none");
}

TEST_CASE("layers within layers: their number and depth are limited") {
  CHECK(error_of([] { return repeat(49'999, {dense(), relu()}); }) == "no error");
  CHECK(error_of([] { return repeat(1'000'000, {dense()}); }) ==
        "repeat: expected at most 100000 layers in all, repeats written out, got 1e+06");
  CHECK(error_of([] { return repeat(1000, {repeat(1000, {repeat(1'000'000'000'000, {dense()})})}); }) ==
        "repeat: expected at most 100000 layers in all, repeats written out, got 1e+12");
  CHECK(error_of([] { return repeat(1'000'000'000'000'000, {}); }) == "no error");
  const auto nested = [](int levels) {
    Layer layer = dense();
    for (int i = 1; i < levels; ++i) layer = sum({{1, {layer}}});
    return layer;
  };
  CHECK(error_of([&] { return nested(60); }) == "no error");
  CHECK(error_of([&] { return nested(100'000); }) ==
        "sum: expected at most 60 layers within one another, got 61");
  // The same layer twice, again and again: 2^40 layers in a few hundred bytes.
  CHECK(error_of([] {
          Layer layer = dense();
          for (int i = 0; i < 40; ++i) layer = sum({{1, {layer}}, {1, {layer}}});
          return layer;
        }).starts_with("sum: expected at most 100000 layers in all"));
}

}  // namespace
}  // namespace widelimit::testing
