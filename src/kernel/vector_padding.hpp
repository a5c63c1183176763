#pragma once

#include "widelimit/network/shape.hpp"

namespace widelimit {

/// Rows are padded to a multiple of this many numbers, so that vector loops have no remainders and every row begins
/// at a cache line (64 bytes of float).
inline constexpr Index row_padding = 16;

inline Index padded(Index size) { return (size + row_padding - 1) / row_padding * row_padding; }

}  // namespace widelimit
