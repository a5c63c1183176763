#pragma once

#include <vector>

#include "widelimit/propagation/block_diagram.hpp"
#include "widelimit/propagation/sampled_block.hpp"
#include "widelimit/results/picture.hpp"

/// Pictures of `widelimit propagation network`.
namespace widelimit::cli {

/// Norms and cosines against depth; beside them the gradients, of every layer where there are such. Theory as lines,
/// with networks as points in the same colours if there are any.
[[nodiscard]] results::Picture block_picture(const propagation::SampledBlock& theory,
                                             const propagation::SampledBlock& networks);

/// Both exponents against one number, or over two of them in colour with the lines where each vanishes. An axis is
/// logarithmic where its values are.
[[nodiscard]] results::Picture variation_picture(const propagation::BlockVariation& variation,
                                                 const std::vector<propagation::VariedExponents>& grid,
                                                 const propagation::ZeroLine& angle_zeros,
                                                 const propagation::ZeroLine& gradient_zeros);

}  // namespace widelimit::cli
