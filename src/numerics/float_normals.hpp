#pragma once

#include <cstdint>
#include <span>

namespace widelimit::numerics {

/// Fills `out` with standard normals of stream `stream` of `seed`: Philox counters as in RandomStream, Box-Muller in
/// single precision (24 bits, |z| < 6.7). About five times as fast as RandomStream::normal.
void fill_normals(std::span<float> out, std::uint64_t seed, std::uint64_t stream);

}  // namespace widelimit::numerics
