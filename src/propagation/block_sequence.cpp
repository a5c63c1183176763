#include "propagation/block_sequence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "propagation/block_layers.hpp"
#include "widelimit/error.hpp"

namespace widelimit::propagation {

BlockSequence BlockSequence::repeated(const Network& block, Index depth) {
  BlockSequence sequence;
  sequence.kinds_ = {block};
  sequence.order_.assign(static_cast<std::size_t>(depth), 0);
  return sequence;
}

BlockSequence BlockSequence::of(const std::vector<Network>& blocks) {
  BlockSequence sequence;
  sequence.kinds_ = blocks;
  sequence.order_.resize(blocks.size());
  std::iota(sequence.order_.begin(), sequence.order_.end(), std::size_t{0});
  return sequence;
}

std::vector<Layers> BlockSequence::layers(Index first) const {
  std::vector<Layers> parts;
  for (Index place = first; place < depth(); ++place) parts.push_back((*this)[place].layers());
  return parts;
}

std::optional<BlockSequence> BlockSequence::of_two(Index tokens) const {
  BlockSequence two;
  two.order_ = order_;
  for (const Network& kind : kinds_) {
    std::optional<Network> found = block_of_two(kind, tokens);
    if (!found) return std::nullopt;
    two.kinds_.push_back(*std::move(found));
  }
  return two;
}

void require_same_kinds(const char* where, const BlockSequence& blocks) {
  const std::vector<BlockLayer> first = layers_of_block(blocks[0].layers());
  for (std::size_t l = 1; l < blocks.kinds().size(); ++l) {
    const std::vector<BlockLayer> here = layers_of_block(blocks.kinds()[l].layers());
    const bool alike = std::equal(here.begin(), here.end(), first.begin(), first.end(),
                                  [](const BlockLayer& one, const BlockLayer& other) {
                                    return one.path == other.path && one.layer.kind() == other.layer.kind();
                                  });
    if (!alike)
      throw ArgumentError(
          fmt::format("{}: blocks[{}]: expected layers of the same kinds at the same places as in blocks[0], "
                      "got others: gradients are told layer by layer",
                      where, l));
  }
}

}  // namespace widelimit::propagation
