#pragma once

#include <cstddef>

namespace widelimit {

/// Sizes and positions.
using Index = std::ptrdiff_t;

}  // namespace widelimit
