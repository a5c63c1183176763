#include "widelimit/network/shape.hpp"

#include <doctest/doctest.h>

using namespace widelimit;

TEST_CASE("shapes: positions are counted, none are one") {
  CHECK(position_count({}) == 1);
  CHECK(position_count({7}) == 7);
  CHECK(position_count({2, 3, 4}) == 24);
}

TEST_CASE("shapes: as errors print them") {
  CHECK(to_string(Shape{32, 32}) == "32x32");
  CHECK(to_string(Shape{5}) == "5");
  CHECK(to_string(Shape{}) == "no positions");
}
