#pragma once

#include <cstddef>
#include <vector>

namespace widelimit::numerics {

/// A Gauss-Legendre rule on [-1, 1].
struct GaussLegendre {
  std::vector<double> nodes;
  std::vector<double> weights;

  /// sum += weight * f(x) over the interval, f returning something that is scaled and added by `accumulate(x,
  /// weight)`.
  template <typename Accumulate>
  void integrate(double begin, double end, Accumulate&& accumulate) const {
    const double half = (end - begin) / 2;
    const double middle = begin + half;
    for (std::size_t i = 0; i < nodes.size(); ++i) accumulate(middle + half * nodes[i], half * weights[i]);
  }
};

/// The rule that results come from, and the one that errors are estimated with.
[[nodiscard]] const GaussLegendre& gauss_legendre_15();
[[nodiscard]] const GaussLegendre& gauss_legendre_10();

}  // namespace widelimit::numerics
