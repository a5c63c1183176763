#pragma once

#include <fmt/format.h>

#include <cmath>

#include "widelimit/error.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::finite {

/// Rotary positions of queries and keys: at position a, channels 2i and 2i + 1 of a head are rotated by the angle a
/// theta_i, where the frequencies theta are repeated as often as the key width needs. Without rotary positions
/// nothing happens.
template <typename Scalar>
class HeadRotation {
 public:
  /// Throws ArgumentError unless the key width is a multiple of twice the number of frequencies.
  HeadRotation(const layers::AttentionOptions& options, Index key_width, Index d) : d_{d} {
    if (!options.sequence.rotary) return;
    const auto& frequencies = options.sequence.rotary->frequencies;
    const auto pairs = static_cast<Index>(frequencies.size());
    if (key_width % (2 * pairs) != 0)
      throw ArgumentError(fmt::format(
          "expected a key width of heads that is a multiple of {}, two channels for each of {} rotary "
          "frequencies, got {}",
          2 * pairs, pairs, key_width));
    cosines_.resize(d, pairs);
    sines_.resize(d, pairs);
    for (Index a = 0; a < d; ++a)
      for (Index i = 0; i < pairs; ++i) {
        const double angle = static_cast<double>(a) * frequencies[static_cast<std::size_t>(i)];
        cosines_(a, i) = static_cast<Scalar>(std::cos(angle));
        sines_(a, i) = static_cast<Scalar>(std::sin(angle));
      }
  }

  /// Rotates queries, keys or their tangents [n d, heads * key width], in place.
  void turn(Matrix<Scalar>& all) const { turn(all, Scalar{1}); }
  /// Rotates back. The inverse of a rotation is its transpose, so this is the backward pass.
  void turn_back(Matrix<Scalar>& all) const { turn(all, Scalar{-1}); }

 private:
  void turn(Matrix<Scalar>& all, Scalar direction) const {
    if (cosines_.size() == 0) return;
    for (Index row = 0; row < all.rows(); ++row)
      for (Index pair = 0; pair < all.cols() / 2; ++pair) {
        const Scalar cosine = cosines_(row % d_, pair % cosines_.cols());
        const Scalar sine = direction * sines_(row % d_, pair % cosines_.cols());
        const Scalar x = all(row, 2 * pair), y = all(row, 2 * pair + 1);
        all(row, 2 * pair) = cosine * x - sine * y;
        all(row, 2 * pair + 1) = sine * x + cosine * y;
      }
  }

  Index d_;
  Matrix<Scalar> cosines_;  ///< [d, frequencies]; empty without rotary positions.
  Matrix<Scalar> sines_;
};

}  // namespace widelimit::finite
