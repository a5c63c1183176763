#pragma once

#include <cmath>
#include <ostream>

namespace widelimit::testing {

/// CHECK(actual == relative(expected, tolerance)): |actual - expected| <= tolerance |expected|, and exact
/// equality where 0 is expected. (doctest::Approx adds an absolute tolerance unless told otherwise, which
/// hides errors of tiny numbers.)
struct Relative {
  double expected;
  double tolerance;

  friend bool operator==(double actual, const Relative& relative) {
    return std::abs(actual - relative.expected) <= relative.tolerance * std::abs(relative.expected);
  }
  friend std::ostream& operator<<(std::ostream& stream, const Relative& relative) {
    stream.precision(17);
    return stream << relative.expected << " (1 +- " << relative.tolerance << ")";
  }
};

inline Relative relative(double expected, double tolerance) { return {expected, tolerance}; }

}  // namespace widelimit::testing
