#pragma once

#include <array>
#include <vector>

#include "kernel/planes/tile.hpp"

namespace widelimit {

/// Pairs along a diagonal of a tile, whose planes lie one after the other: the left inputs from `left` on
/// with the right ones from `right` on, which are packed from `right_place` on. Inputs with themselves form
/// stacks of their own.
struct Stack {
  Index left;
  Index right;
  Index right_place;
  Index first_pair;
  Index count;
  bool same_input;
};

/// How many planes of this length are stacked: as many as fit, or each alone where only two would.
[[nodiscard]] Index planes_a_stack(Index plane_length);

/// Cuts the pairs of a tile into stacks.
class PairStacks {
 public:
  /// Takes the pairs of a tile with so many right inputs; they must outlive the stacks.
  void begin_tile(const std::vector<TilePair>& pairs, Index right_inputs);

  /// Cuts them into stacks of `most` planes at most; does nothing if they are. `most` = 1 : pairs stand
  /// alone.
  void cut(Index most);
  /// The same, and pairs that stand alone follow each other by blocks of block_side x block_side inputs.
  void cut_by_blocks(Index most, Index block_side);

  [[nodiscard]] auto begin() const { return stacks_.begin(); }
  [[nodiscard]] auto end() const { return stacks_.end(); }
  /// True if some stack has more than one pair.
  [[nodiscard]] bool has_many() const { return has_many_; }
  /// Right inputs that stacks want packed one after the other. Diagonals run on after the last right input,
  /// where the first ones follow again.
  [[nodiscard]] Index right_places() const { return right_places_; }

 private:
  [[nodiscard]] Index right_place(const TilePair& pair) const;

  const std::vector<TilePair>* pairs_ = nullptr;
  Index right_inputs_ = 0;
  Index right_places_ = 0;
  Index most_ = 0;  ///< 0: nothing of the tile is cut yet.
  bool has_many_ = false;
  std::vector<Stack> stacks_;
};

}  // namespace widelimit
