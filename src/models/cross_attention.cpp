#include "widelimit/models/cross_attention.hpp"

#include <fmt/format.h>

#include <optional>

#include "widelimit/error.hpp"
#include "widelimit/layers/positions.hpp"

namespace widelimit::models {
namespace {

/// A mask needs longest x longest truth values.
constexpr Index most_positions = 65'536;

void check(const CrossAttentionOptions& options) {
  if (options.sources < 1)
    throw ArgumentError(fmt::format("cross_attention: sources must be at least 1, got {}", options.sources));
  if (options.longest <= options.sources || options.longest > most_positions)
    throw ArgumentError(
        fmt::format("cross_attention: longest must be in {}..{} (sources and targets), got {}",
                    options.sources + 1, most_positions, options.longest));
  const layers::AttentionOptions& attention = options.attention;
  if (attention.mask != AttentionMask::full || attention.sequence.window || attention.sequence.mask_matrix)
    throw ArgumentError(
        "cross_attention: expected attention without masks, windows or causality; targets see all sources");
}

}  // namespace

Layers cross_attention(const CrossAttentionOptions& options) {
  check(options);
  layers::AttentionOptions attention = options.attention;
  // What the sources see does not matter, since they are dropped; softmax wants them to see something.
  Matrix<bool>& mask = attention.sequence.mask_matrix.emplace(options.longest, options.longest);
  mask.setConstant(false);
  mask.leftCols(options.sources).setConstant(true);
  Layers result{layers::attention(attention)};
  const Layers targets = targets_of(options);
  result.insert(result.end(), targets.begin(), targets.end());
  return result;
}

Layers targets_of(const CrossAttentionOptions& options) {
  check(options);
  return {layers::slice({{.begin = options.sources, .end = std::nullopt, .step = 1}})};
}

}  // namespace widelimit::models
