#pragma once

#include <cstddef>

/// What one core of this machine can do at most, compiled for it.

/// Single-precision additions and multiplications a nanosecond in fused multiply-adds on registers.
double measure_peak_flops();

/// Bytes a nanosecond, read and written, of a[i] += factor b[i] on arrays of `bytes` together: for a size
/// that fits into a cache, that cache's bandwidth.
double measure_bandwidth(std::size_t bytes);
