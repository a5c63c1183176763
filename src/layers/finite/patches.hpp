#pragma once

#include <vector>

#include "widelimit/network/finite_activations.hpp"
#include "widelimit/network/window.hpp"

namespace widelimit::finite {

/// The positions that a window sees from each of its places.
class Patches {
 public:
  /// Throws ArgumentError if the window does not fit the shape.
  Patches(const Window& window, const Shape& input);

  [[nodiscard]] const Shape& output_shape() const { return output_shape_; }
  [[nodiscard]] Index window_size() const { return window_size_; }

  /// What the window sees, with zeros beyond the border: [n * output positions, window size * channels].
  template <typename Scalar>
  [[nodiscard]] Matrix<Scalar> gather(const Matrix<Scalar>& values, Index inputs) const;

  /// The adjoint of gather(), [n * input positions, channels].
  template <typename Scalar>
  [[nodiscard]] Matrix<Scalar> scatter(const Matrix<Scalar>& patches, Index inputs) const;

  /// Sums over windows, [n * output positions, channels]. spread_sums() is the adjoint.
  template <typename Scalar>
  [[nodiscard]] Matrix<Scalar> window_sums(const Matrix<Scalar>& values, Index inputs) const;
  template <typename Scalar>
  [[nodiscard]] Matrix<Scalar> spread_sums(const Matrix<Scalar>& sums, Index inputs) const;

 private:
  static constexpr Index outside = -1;

  [[nodiscard]] Index output_positions() const { return position_count(output_shape_); }
  [[nodiscard]] Index seen(Index output, Index tap) const {
    return positions_[static_cast<std::size_t>(output * window_size_ + tap)];
  }
  /// Calls body(row of the output, tap, row of the input) for everything that windows see inside the border.
  template <typename Body>
  void for_each_seen(Index inputs, const Body& body) const;

  Shape output_shape_;
  Index input_positions_;
  Index window_size_ = 1;
  std::vector<Index> positions_;  ///< [output positions, window size]
};

}  // namespace widelimit::finite
