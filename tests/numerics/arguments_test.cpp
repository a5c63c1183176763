#include "numerics/arguments.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "support/error_message.hpp"

using namespace widelimit;
using namespace widelimit::numerics;
using widelimit::testing::error_message;

namespace {

constexpr double without_end = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("arguments: what lies within is let through") {
  CHECK_NOTHROW(require_finite("f", "x", -1.0));
  CHECK_NOTHROW(require_finite("f", "x", Matrix<double>{{1.0, 2.0}}));
  CHECK_NOTHROW(require_positive("f", "x", 1e-300));
  CHECK_NOTHROW(require_not_negative("f", "x", 0));
  CHECK_NOTHROW(require_at_least("f", "x", 2.5, 2.5));
  CHECK_NOTHROW(require_at_least("f", "n", Index{2}, 2));
  CHECK_NOTHROW(require_at_most("f", "n", 2, 2));
  CHECK_NOTHROW(require_index("f", "n", 1, 2));
  CHECK_NOTHROW(require_shape("f", "x", Matrix<double>(2, 3), 2, 3));
}

TEST_CASE("arguments: messages name the function, the argument, what was expected and what came") {
  CHECK(error_message<ArgumentError>([] { require_finite("f", "x", without_end); }) ==
        "f: x must be finite, got inf");
  CHECK(error_message<ArgumentError>([] {
          require_finite("f", "x", Matrix<double>{{1.0, without_end}});
        }) == "f: x must be finite, got inf at (0, 1)");
  for (const double wrong : {0.0, -1.0, without_end, std::numeric_limits<double>::quiet_NaN()})
    CHECK(error_message<ArgumentError>([&] {
            require_positive("f", "x", wrong);
          }).find("f: x must be positive and finite, got ") == 0);
  CHECK(error_message<ArgumentError>([] { require_not_negative("f", "x", -1); }) ==
        "f: x must be at least 0 and finite, got -1");
  CHECK(error_message<ArgumentError>([] { require_at_least("f", "x", 2.4, 2.5); }) ==
        "f: x must be at least 2.5, got 2.4");
  CHECK(error_message<ArgumentError>([] { require_at_least("f", "n", Index{1}, 2); }) ==
        "f: n must be at least 2, got 1");
  CHECK(error_message<ArgumentError>([] { require_at_most("f", "n", 3, 2); }) ==
        "f: n must be at most 2, got 3");
  for (const Index wrong : {-1, 2})
    CHECK(error_message<ArgumentError>([&] {
            require_index("f", "n", wrong, 2);
          }).find("f: n must lie in [0, 2), got ") == 0);
  CHECK(error_message<ArgumentError>([] { require_shape("f", "x", Matrix<double>(2, 3), 3, 2); }) ==
        "f: x must be 3 x 2, got 2 x 3");
}
