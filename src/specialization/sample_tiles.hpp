#pragma once

#include <algorithm>
#include <boost/align/aligned_allocator.hpp>
#include <cstddef>
#include <vector>

#include "widelimit/specialization/samples.hpp"

namespace widelimit::specialization {

/// The numbers of a sample set where the loss kernel reads them: tiles of 64 samples, [row][token][sample],
/// and their weights [sample] (0 past the last sample). Row f < F is chi*_f, row F + h is xi_h.
template <typename Scalar>
class SampleTiles {
 public:
  static constexpr Index samples_a_tile = 64;  ///< Samples a kernel pass reads together.
  static constexpr Index samples_a_block =
      1024;  ///< Samples summed before the sum over blocks; one random stream.

  SampleTiles(const SampleShape& shape, Index features)
      : shape_{shape},
        features_{features},
        values_(static_cast<std::size_t>(tiles() * tile_size())),
        weights_(static_cast<std::size_t>(tiles() * samples_a_tile)) {
    std::fill_n(weights_.begin(), shape.count, Scalar{1});
  }

  [[nodiscard]] const SampleShape& shape() const { return shape_; }
  [[nodiscard]] Index features() const { return features_; }
  [[nodiscard]] Index tiles() const { return (shape_.count + samples_a_tile - 1) / samples_a_tile; }
  [[nodiscard]] Index tile_size() const {
    return (features_ + shape_.heads) * shape_.tokens * samples_a_tile;
  }
  [[nodiscard]] const Scalar* tile(Index index) const { return values_.data() + index * tile_size(); }
  [[nodiscard]] Scalar* tile(Index index) { return values_.data() + index * tile_size(); }
  [[nodiscard]] const Scalar* tile_weights(Index index) const {
    return weights_.data() + index * samples_a_tile;
  }

  [[nodiscard]] Scalar value(Index sample, Index token, Index row) const {
    return values_.data()[place(sample, token, row)];
  }
  [[nodiscard]] Scalar& value(Index sample, Index token, Index row) {
    return values_.data()[place(sample, token, row)];
  }
  [[nodiscard]] Scalar weight(Index sample) const { return weights_.data()[sample]; }
  [[nodiscard]] Scalar& weight(Index sample) { return weights_.data()[sample]; }

 private:
  static constexpr std::size_t cache_line = 64;
  using Numbers = std::vector<Scalar, boost::alignment::aligned_allocator<Scalar, cache_line>>;

  [[nodiscard]] Index place(Index sample, Index token, Index row) const {
    return (sample / samples_a_tile) * tile_size() + (row * shape_.tokens + token) * samples_a_tile +
           sample % samples_a_tile;
  }

  SampleShape shape_;
  Index features_;
  Numbers values_;
  Numbers weights_;
};

template <typename Scalar>
const SampleTiles<Scalar>& tiles_of(const SampleSet<Scalar>& samples) {
  return *samples.tiles_;
}

}  // namespace widelimit::specialization
