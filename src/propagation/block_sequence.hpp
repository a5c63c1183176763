#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "propagation/exchangeable_tokens.hpp"
#include "widelimit/network/network.hpp"

namespace widelimit::propagation {

using Eigen::Index;

/// Blocks one after another: one that is repeated, or others from place to place.
class BlockSequence {
 public:
  [[nodiscard]] static BlockSequence repeated(const Network& block, Index depth);
  [[nodiscard]] static BlockSequence of(const std::vector<Network>& blocks);

  [[nodiscard]] Index depth() const { return static_cast<Index>(order_.size()); }
  /// The different blocks, each where it stands first: one of a block that is repeated.
  [[nodiscard]] const std::vector<Network>& kinds() const { return kinds_; }
  [[nodiscard]] std::size_t kind_at(Index place) const { return order_[static_cast<std::size_t>(place)]; }
  [[nodiscard]] const Network& operator[](Index place) const { return kinds_[kind_at(place)]; }
  /// The layers of the blocks from place `first` on.
  [[nodiscard]] std::vector<Layers> layers(Index first = 0) const;

  /// Each kind of block for two of n tokens, as block_of_two(); nothing if it has none for one of them.
  [[nodiscard]] std::optional<BlockSequence> of_two(Index tokens) const;

 private:
  std::vector<Network> kinds_;
  std::vector<std::size_t> order_;  ///< Block l is kinds_[order_[l]].
};

/// ArgumentError unless every block has layers of the kinds of the first one, at its places: what is told layer by
/// layer needs the same layers in each block.
void require_same_kinds(const char* where, const BlockSequence& blocks);

/// compute(blocks, gram) for two of the tokens where that says all, else for the tokens themselves.
template <typename Compute>
auto on_fewest_tokens(const BlockSequence& blocks, const Matrix<double>& gram, const Compute& compute) {
  if (const std::optional<Matrix<double>> two = two_of_exchangeable(gram))
    if (const std::optional<BlockSequence> of_two = blocks.of_two(gram.rows())) try {
        return compute(*of_two, *two);
      } catch (const LogitsTooSharp&) {
        // The blocks themselves then draw samples of their attention.
      }
  return compute(blocks, gram);
}

/// compute(blocks, tokens) for two of n equal tokens where that says all, else for all of them.
template <typename Compute>
auto on_fewest_equal_tokens(const BlockSequence& blocks, Index tokens, const Compute& compute) {
  if (const std::optional<BlockSequence> of_two = blocks.of_two(tokens)) try {
      return compute(*of_two, Index{2});
    } catch (const LogitsTooSharp&) {
    }
  // Logits that are too sharp for the integrals are left to the blocks themselves, which draw samples.
  return compute(blocks, tokens);
}

}  // namespace widelimit::propagation
