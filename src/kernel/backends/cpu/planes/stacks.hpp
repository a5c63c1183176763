#pragma once

#include <array>
#include <vector>

#include "kernel/backends/cpu/planes/tile.hpp"

namespace widelimit {

/// Pairs along a diagonal of a tile, whose planes are one after the other: left inputs from `left` on with right
/// inputs from `right` on, which are packed from `right_place` on. Inputs with themselves are in stacks of their own,
/// because stages treat them apart.
struct Stack {
  Index left;
  Index right;
  Index right_place;
  Index first_pair;
  Index count;
  bool same_input;
};

/// How many planes of this length are stacked: as many as fit, or one if fewer than three would.
[[nodiscard]] Index planes_a_stack(Index plane_length);

/// Cuts the pairs of a tile into stacks.
class PairStacks {
 public:
  /// Takes the pairs of a tile with so many right inputs. They must outlive the stacks.
  void begin_tile(const std::vector<TilePair>& pairs, Index right_inputs);

  /// Cuts the pairs into stacks of at most `most` planes; does nothing if they are already cut so.
  void cut(Index most);
  /// Cuts like cut(). If no pairs are stacked, they follow each other by blocks of block_side x block_side inputs.
  void cut_by_blocks(Index most, Index block_side);

  [[nodiscard]] auto begin() const { return stacks_.begin(); }
  [[nodiscard]] auto end() const { return stacks_.end(); }
  /// True if some stack has more than one pair.
  [[nodiscard]] bool has_many() const { return has_many_; }
  /// The number of right inputs that are packed one after the other. A diagonal continues after the last right input,
  /// where the first ones follow again.
  [[nodiscard]] Index right_places() const { return right_places_; }

 private:
  [[nodiscard]] Index right_place(const TilePair& pair) const;

  const std::vector<TilePair>* pairs_ = nullptr;
  Index right_inputs_ = 0;
  Index right_places_ = 0;
  Index most_ = 0;  ///< 0 if the tile is not cut yet.
  bool has_many_ = false;
  std::vector<Stack> stacks_;
};

}  // namespace widelimit
