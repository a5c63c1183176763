#pragma once

#include <array>
#include <cstddef>

namespace widelimit::numerics {

/// Windows of any stride and position on planes of up to three axes: along each axis, output entry i sums the
/// source's entries first + stride i + t, 0 <= t < taps; those outside of the source count as zero.
///
/// A plane is an array of slabs of rows of neighbouring numbers.
struct PlaneWindows {
  std::array<std::ptrdiff_t, 3> first;
  std::array<std::ptrdiff_t, 3> stride;
  std::array<std::ptrdiff_t, 3> taps;
  std::array<std::ptrdiff_t, 3> source_extent;
  std::array<std::ptrdiff_t, 3> target_extent;
  std::array<std::ptrdiff_t, 2> source_step;  ///< Distances between slabs and between rows.
  std::array<std::ptrdiff_t, 2> target_step;
  /// So many numbers before and after every source row are read as they are: zeros, or what only
  /// entries see that do not matter.
  std::ptrdiff_t source_guard = 0;
  double scale = 1;
  double bias = 0;
  /// Source entries from gap_at on lie gap_size further on: a gap is left out. Only for stride 1 and one tap
  /// along the last axis.
  std::ptrdiff_t gap_at = 0;
  std::ptrdiff_t gap_size = 0;
};

/// Planes of one layout, this far from each other.
struct PlaneSteps {
  std::ptrdiff_t planes;
  std::ptrdiff_t source_plane;
  std::ptrdiff_t target_plane;
};

/// target[i] = start[i] + scale times the sum over the window, for all output entries i; without `start`
/// (null) it is the bias. `start` lies like the target and may be it, if the target's rows are whole vectors.
///
/// Whole vectors are moved: less than one vector before and after a source row is read, and less than
/// one after a target row written before the next row is, so that rows must follow each other in memory.
/// (Writing a part of a vector would make the next row wait for it.)
template <typename Scalar>
void window_sums(const PlaneWindows& windows, const PlaneSteps& steps, const Scalar* source,
                 const Scalar* start, Scalar* target);

template <typename Scalar>
struct KernelPair {
  Scalar* nngp;
  Scalar* ntk;
};

/// Both kernels of a convolution in one pass: nngp = bias + scale sum, ntk = nngp + scale sum of the ntk.
template <typename Scalar>
void convolve_windows(const PlaneWindows& windows, const PlaneSteps& steps,
                      const KernelPair<const Scalar>& source, const KernelPair<Scalar>& target);

}  // namespace widelimit::numerics
