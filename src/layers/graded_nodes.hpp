#pragma once

#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "layers/graded_interpolation.hpp"

namespace widelimit::layers {

/// Chebyshev nodes on the graded intervals of GradedInterpolation, for backward passes. The functions at any wanted x
/// are a weighted sum of those at the nodes of its interval, and an adjoint at x is passed to those nodes with the
/// same weights.
class GradedNodes : private GradedIntervals {
 public:
  /// Takes `nodes` nodes in each interval, from 1 to `most`.
  explicit GradedNodes(int nodes) : nodes_{nodes} {
    first_.fill(-1);
    for (int i = 0; i < nodes; ++i) {
      const double angle = std::numbers::pi * (2 * i + 1) / (2 * nodes);
      places_.push_back(std::cos(angle));
      barycentric_.push_back((i % 2 == 0 ? 1 : -1) * std::sin(angle));
    }
  }

  static constexpr std::size_t most = 16;

  /// Says that x, 0 <= x <= 1, will be asked for.
  void want(double x) {
    const std::size_t interval = interval_of(x);
    if (first_[interval] >= 0) return;
    first_[interval] = static_cast<int>(points_.size());
    if (interval == end) return points_.push_back(1);
    for (const double place : places_) points_.push_back(1 - (centre(interval) + radius(interval) * place));
  }

  /// All nodes of the intervals that are wanted.
  [[nodiscard]] const std::vector<double>& points() const { return points_; }

  /// The weights at an x that was wanted; they belong to points() from `first` on.
  struct Weights {
    std::size_t first;
    std::size_t count;
    std::array<double, most> numbers;
  };
  [[nodiscard]] Weights weights(double x) const {
    const std::size_t interval = interval_of(x);
    const auto first = static_cast<std::size_t>(first_[interval]);
    if (interval == end) return {first, 1, {1}};
    Weights weights{first, static_cast<std::size_t>(nodes_), {}};
    const double t = (1 - x - centre(interval)) / radius(interval);
    double sum = 0;
    for (std::size_t i = 0; i < weights.count; ++i) {
      // At a node the barycentric formula would divide by 0.
      if (t == places_[i]) return {first + i, 1, {1}};
      sum += weights.numbers[i] = barycentric_[i] / (t - places_[i]);
    }
    for (std::size_t i = 0; i < weights.count; ++i) weights.numbers[i] /= sum;
    return weights;
  }

 private:
  int nodes_;
  std::vector<double> places_;       ///< The nodes in [-1, 1].
  std::vector<double> barycentric_;  ///< Berrut and Trefethen 2004, eq. 5.3.
  std::vector<double> points_;
  std::array<int, end + 1> first_{};  ///< [interval]: its first point, or -1.
};

}  // namespace widelimit::layers
