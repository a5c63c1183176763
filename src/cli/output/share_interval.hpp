#pragma once

#include <cmath>

#include "widelimit/index.hpp"

namespace widelimit::cli {

struct ShareInterval {
  double low;
  double high;
};

/// The 95 % interval of Wilson (1927) for a probability, from the share of independent inputs that had it. Unlike the
/// share and two standard errors it has a width where all inputs, or none, had it, and stays within 0 and 1.
inline ShareInterval share_interval(double share, Index count) {
  constexpr double quantile = 1.959963984540054;  // Of the normal distribution, at 0.975.
  const auto n = static_cast<double>(count);
  const double added = quantile * quantile / n;
  const double middle = share + added / 2,
               reach = quantile * std::sqrt((share * (1 - share) + added / 4) / n);
  // Exactly, the ends at the shares 0 and 1 are 0 and 1.
  return {share == 0 ? 0 : (middle - reach) / (1 + added), share == 1 ? 1 : (middle + reach) / (1 + added)};
}

}  // namespace widelimit::cli
