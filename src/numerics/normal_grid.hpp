#pragma once

#include <cmath>
#include <numeric>
#include <vector>

#include "numerics/arguments.hpp"
#include "numerics/block_sums.hpp"

namespace widelimit::numerics {

/// Tensor trapezoid rule for independent standard normals: `points` nodes on [-span, span] for each of them.
/// Converges geometrically in the spacing; 0.3 gives about 1e-9.
class NormalGrid {
 public:
  NormalGrid(Index points, double span, Index dimensions) : dimensions_{dimensions} {
    require_at_least("quadrature", "points", points, 2);
    require_at_least("quadrature", "dimensions", dimensions, 1);
    require_positive("quadrature", "span", span);
    // The trapezium rule on a window: weights are densities, and their sum is made 1 so that constants are exact.
    double total = 0;
    for (Index i = 0; i < points; ++i) {
      nodes_.push_back(-span + 2 * span * static_cast<double>(i) / static_cast<double>(points - 1));
      weights_.push_back(std::exp(-nodes_.back() * nodes_.back() / 2));
      total += weights_.back();
    }
    for (double& weight : weights_) weight /= total;
  }

  Index points() const { return static_cast<Index>(nodes_.size()); }

  /// ArgumentError where `grids` of these have more than 1e9 nodes, with what to use instead.
  void require_affordable(std::string_view where, std::size_t grids, std::string_view instead) const {
    constexpr double most = 1e9;
    const double nodes = std::pow(static_cast<double>(points()), static_cast<double>(dimensions_)) *
                         static_cast<double>(grids);
    if (!(nodes <= most))
      throw ArgumentError(fmt::format("{}: {} nodes ({} for each of {} variables) are more than {}; use {}",
                                      where, nodes, points(), dimensions_, most, instead));
  }

  /// Node number `index` in the first `digits` dimensions; returns its weight.
  double node(Index index, Index digits, double* z) const {
    double weight = 1;
    for (Index k = 0; k < digits; ++k) {
      const auto digit = static_cast<std::size_t>(index % points());
      z[k] = nodes_[digit];
      weight *= weights_[digit];
      index /= points();
    }
    return weight;
  }

  /// E f(z), f called with a pointer to `dimensions` numbers, from several threads.
  template <typename Function>
  double mean(const Function& f, const RunControl& run) const {
    // The slices of the last dimension are the blocks: sums do not depend on how many threads share them.
    const Index inner = power(dimensions_ - 1);
    const auto slice_sum = [&](Index slice, Index) {
      const auto outer = static_cast<std::size_t>(slice);
      const StopRequest stop(run.stop);
      std::vector<double> z(static_cast<std::size_t>(dimensions_));
      z.back() = nodes_[outer];
      double sum = 0;
      for (Index i = 0; i < inner; ++i) {
        stop.check();
        const double weight = node(i, dimensions_ - 1, z.data());
        sum += weight * f(z.data());
      }
      return weights_[outer] * sum;
    };
    return on_threads(run.threads, [&] {
      const std::vector<double> sums = parts_of_blocks(points(), 1, run, slice_sum);
      return std::accumulate(sums.begin(), sums.end(), 0.0);
    });
  }

  Index power(Index exponent) const {
    Index result = 1;
    for (Index k = 0; k < exponent; ++k) result *= points();
    return result;
  }

 private:
  Index dimensions_;
  std::vector<double> nodes_;
  std::vector<double> weights_;
};

}  // namespace widelimit::numerics
