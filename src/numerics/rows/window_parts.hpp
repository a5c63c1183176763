#pragma once

#include <cstddef>

/// What window sums are made of: the rows that a window reads, and the row that its sums go to.
namespace widelimit::numerics {

/// The source rows of a window.
template <typename Scalar>
struct WindowOfRows {
  const Scalar* first;
  std::ptrdiff_t slabs;
  std::ptrdiff_t rows;
  std::ptrdiff_t ntk;  ///< How far the ntk's rows are from these.
};

/// A target row, and what its sums are added to.
template <typename Scalar>
struct TargetRow {
  Scalar* first;
  const Scalar* start;
  Scalar scale;
  Scalar bias;
  std::ptrdiff_t ntk;  ///< How far the ntk's row is from this.
};

/// What sums are added to: the bias; numbers; or, for a kernel and its ntk together, the bias and the kernel.
enum class Start { bias, numbers, bias_and_nngp };

/// Neighbouring rows of windows and of the target.
template <typename Scalar>
struct WindowRows {
  WindowOfRows<Scalar> window;
  TargetRow<Scalar> target;
  std::ptrdiff_t window_step;
  std::ptrdiff_t target_step;
  std::ptrdiff_t count;
};

/// What is known of a window when compiling; 0: not known. Small loops of known length save some per cent
/// of a pooling.
template <std::ptrdiff_t stride_, bool inside_, Start start_, std::ptrdiff_t rows_ = 0,
          std::ptrdiff_t taps_ = 0>
struct KnownWindow {
  static constexpr std::ptrdiff_t stride = stride_;
  static constexpr bool inside = inside_;  ///< Windows stay in the source and its guards along the last axis.
  static constexpr Start start = start_;
  static constexpr std::ptrdiff_t rows = rows_;  ///< Rows in a slab.
  static constexpr std::ptrdiff_t taps = taps_;  ///< Taps along the last axis.
};

}  // namespace widelimit::numerics
