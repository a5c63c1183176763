#pragma once

#include <cstdint>

#include "widelimit/index.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::covariance_sde {

/// `count` outputs X W / sqrt(n) [count, m] of one network or path whose tokens have the covariance v [m, m], W
/// standard normal: given v, each is N(0, v). Paths of one seed draw apart from each other, and from the paths
/// themselves.
///
/// Errors  ArgumentError for count < 1 or path < 0; as lower_root().
[[nodiscard]] Matrix<double> sampled_outputs(const Matrix<double>& v, Index count, std::uint64_t seed,
                                             Index path);

}  // namespace widelimit::covariance_sde
