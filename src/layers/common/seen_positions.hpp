#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "widelimit/layers/attention.hpp"

namespace widelimit::layers {

/// The positions begin, ..., end - 1.
struct PositionRange {
  Index begin;
  Index end;
};

/// True if every position sees every other one, whatever the length of the input.
[[nodiscard]] bool sees_everything(const AttentionOptions& options);

/// Whether position a sees position c (docs/theory/attention.md, section 4).
[[nodiscard]] bool sees(const AttentionOptions& options, Index a, Index c);

/// Which of d positions each of them sees, as ranges in ascending order that do not touch.
class SeenPositions {
 public:
  /// `counts` [d] is 0 at masked positions, which neither see nor are seen. It is empty if there are none.
  SeenPositions(const AttentionOptions& options, Index d, std::span<const std::uint8_t> counts = {});

  [[nodiscard]] Index size() const { return static_cast<Index>(ranges_.size()); }
  [[nodiscard]] const std::vector<PositionRange>& of(Index a) const {
    return ranges_[static_cast<std::size_t>(a)];
  }

 private:
  std::vector<std::vector<PositionRange>> ranges_;
};

}  // namespace widelimit::layers
