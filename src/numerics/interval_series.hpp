#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "widelimit/numerics/quadrature_activation.hpp"

namespace widelimit::numerics {

/// Chebyshev series of a function on an interval, without the terms that are smaller than its rounding.
class IntervalSeries {
 public:
  static constexpr std::size_t value_count = 26;
  using Numbers = std::array<double, value_count>;

  /// Where values are taken in [begin, end].
  [[nodiscard]] static Numbers places(double begin, double end);

  /// values: those of f at the places. `noise`: theirs, beside 1e-14 of the largest and what the rounding of x makes.
  IntervalSeries(std::span<const double, value_count> values, double begin, double end, double noise);

  /// The largest of the last coefficients, infinite where f is not finite.
  [[nodiscard]] double tail() const { return tail_; }
  /// What the rounding of x makes of f, by its slope.
  [[nodiscard]] double place_rounding() const { return place_rounding_; }
  /// The largest value at the nodes.
  [[nodiscard]] double size() const { return size_; }
  [[nodiscard]] std::size_t degree() const { return coefficients_.size() - 1; }
  /// Beyond the interval too: rounding then grows like a polynomial of the degree.
  [[nodiscard]] double operator()(double x) const;

 private:
  double begin_, end_, tail_, size_ = 0, place_rounding_ = 0;
  std::vector<double> coefficients_;
};

}  // namespace widelimit::numerics
