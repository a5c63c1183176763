#pragma once

#include <functional>
#include <string>
#include <vector>

namespace widelimit::numerics {

/// The least a of |x - place|^a for which E phi'^2 is right to 1e-10 by panels that end 1e-18 beside the place.
inline constexpr double steepest_exponent = 0.8;

/// Those of some places towards which phi runs steeper than that from a side, as cube roots and logarithms do:
/// E phi'^2 is infinite there, or lies so close to the place that no rule finds it. ArgumentError, which begins with
/// `name`, for a place towards which phi grows without bound faster than a logarithm.
[[nodiscard]] std::vector<double> cusps_among(const std::vector<double>& places,
                                              const std::function<double(double)>& phi,
                                              const std::string& name);

}  // namespace widelimit::numerics
