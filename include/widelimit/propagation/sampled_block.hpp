#pragma once

#include <cstdint>

#include "widelimit/network/finite_heads.hpp"
#include "widelimit/propagation/repeated_block.hpp"

/// The same as repeated_block.hpp in random networks of finite width: theory and networks side by side.
namespace widelimit::propagation {

/// Which networks sample_block() draws.
struct SampledBlockOptions {
  Index width = 128;    ///< Channels of the tokens and of all layers, >= 1.
  Index networks = 32;  ///< >= 2, each with tokens of its own.
  finite::Heads heads = {};
  std::uint64_t seed = 0;
};

/// Means over networks with standard errors; squared_norm, cosine, log_gradient and layer gradients are defined as
/// in repeated_block.hpp, and differ from it by about 1/width of themselves.
struct SampledBlock {
  std::vector<PropagatedTokens> tokens;   ///< At the start and after each block. Without log_gradient: NaN.
  std::vector<LayerGradients> gradients;  ///< Of every layer that has parameters.
};

/// `depth` blocks, weights drawn anew in each, from tokens X = A Z, A A^T the start [n, n] and Z standard normal [n,
/// width]. Networks run one after another, each on `run.threads` threads; progress counts networks.
///
/// Errors  as propagate(), and ArgumentError for options out of range; NetworkError for layers that leave another
///         number of channels, or have no finite counterpart.
/// Cost    of a network: two forward passes and a backward pass through all blocks.
[[nodiscard]] SampledBlock sample_block(const Network& block, const Matrix<double>& start, Index depth,
                                        const SampledBlockOptions& options = {}, const RunControl& run = {});

/// The same of blocks one after another, which must have layers of the same kinds at the same places (ArgumentError).
[[nodiscard]] SampledBlock sample_block(const std::vector<Network>& blocks, const Matrix<double>& start,
                                        const SampledBlockOptions& options = {}, const RunControl& run = {});

}  // namespace widelimit::propagation
