#pragma once

#include <cmath>

namespace widelimit {

/// The larger of two deviations, or NaN if one of them is NaN, so that a NaN fails the law. std::max drops a NaN that
/// is not its first argument.
inline double larger(double left, double right) { return left <= right || std::isnan(right) ? right : left; }

}  // namespace widelimit
