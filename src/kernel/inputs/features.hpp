#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "network/graph.hpp"

namespace widelimit {

/// An input, or what layers on raw inputs make of it, channel by channel: [C, d].
template <typename Scalar>
struct Features {
  Shape shape;
  Index channels = 0;
  std::vector<Scalar> values;
};

/// Applies the transforms of a node to one input [spatial..., C]. `counts` [d] is 0 at masked positions, where
/// the input is 0; it is empty without a mask. Norms leave masked positions out of their statistics and unchanged. No
/// other transform of inputs with masks becomes part of a node.
template <typename Scalar>
Features<Scalar> transformed_features(std::span<const Scalar> input, const Shape& shape, Index channels,
                                      const std::vector<FeatureTransform>& transforms,
                                      std::span<const std::uint8_t> counts = {});

/// Channels after the transforms (flatten makes channels of positions).
Index transformed_channels(const Shape& shape, Index channels,
                           const std::vector<FeatureTransform>& transforms);

}  // namespace widelimit
