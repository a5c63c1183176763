#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "widelimit/kernel/gram.hpp"
#include "widelimit/kernel/gram_vjp.hpp"

/// Derivatives of Gram matrices by differences of gram(), for comparisons.
namespace widelimit::testing {

/// sum_ij (nngp_ij K_ij + ntk_ij T_ij)
inline double weighted_sum(const KernelCotangents<double>& weights, const GramResult<double>& result) {
  double sum = 0;
  if (weights.nngp.size() > 0) sum += weights.nngp.cwiseProduct(result.nngp).sum();
  if (weights.ntk.size() > 0) sum += weights.ntk.cwiseProduct(result.ntk).sum();
  return sum;
}

/// The largest error of `gradient`, relative to its largest entry (or .001, if that is smaller), against differences of
/// fourth order of value(x) in some entries of x, which are spread over all of it.
template <typename Value>
double worst_difference(const xt::xarray<double>& x, const xt::xarray<double>& gradient, const Value& value) {
  constexpr std::size_t most_entries = 12;
  constexpr double step = 2e-4;
  double largest = 1e-3, worst = 0;
  for (const double entry : gradient) largest = std::max(largest, std::abs(entry));
  const std::size_t count = std::min(most_entries, x.size());
  for (std::size_t t = 0; t < count; ++t) {
    const std::size_t entry = t * x.size() / count + (t * 7) % std::max<std::size_t>(1, x.size() / count);
    const auto at = [&](double shift) {
      xt::xarray<double> shifted = x;
      shifted.flat(entry) += shift;
      return value(shifted);
    };
    const double near = (at(step) - at(-step)) / (2 * step),
                 far = (at(2 * step) - at(-2 * step)) / (4 * step);
    worst = std::max(worst, std::abs((4 * near - far) / 3 - gradient.flat(entry)));
  }
  return worst / largest;
}

}  // namespace widelimit::testing
