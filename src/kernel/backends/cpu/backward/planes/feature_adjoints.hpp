#pragma once

#include <span>
#include <vector>

#include "network/graph.hpp"

namespace widelimit {

/// The backward pass through transformed_features(): `adjoint` [C', d'] of what the transforms made, channel by
/// channel, becomes that of the input, [spatial..., C], and is added to `target`.
template <typename Scalar>
void add_feature_adjoint(std::span<const Scalar> input, const Shape& shape, Index channels,
                         const std::vector<FeatureTransform>& transforms,
                         std::span<const std::uint8_t> counts, std::vector<double> adjoint, Scalar* target);

}  // namespace widelimit
