#pragma once

#include "widelimit/network/layer.hpp"

namespace widelimit::layers {

/// Dropout while training: every unit is kept with probability `keep` in (0, 1] and divided by it. Variances
/// of a position with itself grow by 1 / keep, other covariances stay the same. Throws ArgumentError for `keep` out of
/// range.
///
/// Source  docs/theory/kernel-recursion.md, sections 2.3 and 4.
[[nodiscard]] Layer dropout(double keep);

}  // namespace widelimit::layers
