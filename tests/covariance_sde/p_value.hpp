#pragma once

#include <functional>
#include <vector>

#include "widelimit/numerics/statistics.hpp"

/// Kolmogorov-Smirnov tests of samples.
namespace widelimit::covariance_sde::examples {

/// Against a distribution function.
inline double p_value(const std::vector<double>& sample, const std::function<double(double)>& distribution) {
  return numerics::kolmogorov_smirnov_p_value(numerics::kolmogorov_smirnov_distance(sample, distribution),
                                              static_cast<double>(sample.size()));
}

/// Of two samples.
inline double p_value(const std::vector<double>& a, const std::vector<double>& b) {
  return numerics::kolmogorov_smirnov_p_value(numerics::kolmogorov_smirnov_distance(a, b),
                                              numerics::two_sample_effective_size(a.size(), b.size()));
}

}  // namespace widelimit::covariance_sde::examples
