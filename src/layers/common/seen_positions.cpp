#include "layers/common/seen_positions.hpp"

#include <cstdlib>

namespace widelimit::layers {

bool sees_everything(const AttentionOptions& options) {
  return options.mask == AttentionMask::full && !options.sequence.window && !options.sequence.mask_matrix;
}

bool sees(const AttentionOptions& options, Index a, Index c) {
  if (options.mask == AttentionMask::causal && c > a && c >= options.sequence.prefix) return false;
  if (options.sequence.window && std::abs(a - c) >= *options.sequence.window) return false;
  return !options.sequence.mask_matrix || (*options.sequence.mask_matrix)(a, c);
}

SeenPositions::SeenPositions(const AttentionOptions& options, Index d, std::span<const std::uint8_t> counts)
    : ranges_(static_cast<std::size_t>(d)) {
  const bool everything = sees_everything(options) && counts.empty();
  const auto is_masked = [&](Index a) { return !counts.empty() && counts[static_cast<std::size_t>(a)] == 0; };
  for (Index a = 0; a < d; ++a) {
    auto& ranges = ranges_[static_cast<std::size_t>(a)];
    if (everything) {
      ranges.push_back({0, d});
      continue;
    }
    if (is_masked(a)) continue;
    for (Index c = 0; c < d; ++c) {
      if (!sees(options, a, c) || is_masked(c)) continue;
      if (ranges.empty() || ranges.back().end < c)
        ranges.push_back({c, c + 1});
      else
        ++ranges.back().end;
    }
  }
}

}  // namespace widelimit::layers
