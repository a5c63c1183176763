#pragma once

#include <array>
#include <optional>
#include <vector>

#include "kernel/backends/cpu/planes/placed_instruction.hpp"
#include "kernel/backends/cpu/planes/tile_work.hpp"

namespace widelimit {

/// The products of up to block_side left inputs with as many right inputs, made together for the plane of an offset.
///
/// The features that planes which are not stacked read do not fit into the first-level cache, and would be loaded
/// again for every pair. Products of all inputs of a block with each other share these loads.
template <typename Scalar>
class ProductBlocks {
 public:
  /// The chain must outlive the blocks.
  explicit ProductBlocks(const TileWork<Scalar>& work)
      : work_{work}, products_{work.workspace.part(WorkspacePart::products)} {}

  /// Forgets all products, which belong to the last offset.
  void begin_offset() { block_ = {-1, -1}; }
  /// The product of the inputs of a stack of one pair. Its ntk, which is zero, is not written.
  [[nodiscard]] Plane<Scalar> product(const PlacedInstruction<Scalar>& input, const Stack& stack);

 private:
  using Rows = std::vector<const Scalar*>;

  void multiply(const PlacedInstruction<Scalar>& input);
  [[nodiscard]] std::size_t find_rows(const PlacedInstruction<Scalar>& input, Side side, Rows& rows) const;
  [[nodiscard]] Scalar* place(Index left, Index right) const;

  const TileWork<Scalar>& work_;
  Scalar* products_;
  std::array<Index, 2> block_{-1, -1};  ///< The block whose products are there.
  Rows left_;                           ///< [input of the block, array]
  Rows right_;
};

/// The instruction of a chain whose products are made in blocks: its only input, if the NTK need not be written.
template <typename Scalar>
[[nodiscard]] std::optional<std::size_t> blocked_input(const TileWork<Scalar>& work,
                                                       const std::vector<PlacedInstruction<Scalar>>& placed);

}  // namespace widelimit
