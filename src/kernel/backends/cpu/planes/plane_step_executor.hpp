#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "kernel/backends/cpu/planes/placed_instruction.hpp"
#include "kernel/backends/cpu/planes/plane_ends.hpp"
#include "kernel/backends/cpu/planes/product_blocks.hpp"
#include "kernel/backends/cpu/planes/stacks.hpp"
#include "kernel/backends/cpu/planes/tile_work.hpp"

namespace widelimit {

/// Evaluates a chain of instructions on tiles, plane by plane.
///
/// For every offset the planes of the chain are placed once and the auxiliary arrays of both sides are packed once.
/// Then the pairs of the tile pass through all instructions of the chain while their planes are in the cache, one by
/// one or several as a stack.
template <typename Scalar>
class PlaneStepExecutor {
 public:
  /// `geometry` is that of the step, `state` the layout of one of the inputs. Everything must outlive this.
  PlaneStepExecutor(const TileWork<Scalar>& work, const StateLayout& state, const PlaneStep& step,
                    const ChainGeometry& geometry, ReadoutSums<Scalar>& sums);

  /// Evaluates all demanded offsets of the chain's current tile.
  void execute();

 private:
  /// A plane that all instructions of equal sizes and offsets share; `instruction` is the first of them.
  struct SharedPlane {
    std::size_t instruction;
    PlacedPlane plane;
  };

  void prepare(std::size_t number, const StateLayout& state);
  [[nodiscard]] bool share_plane(std::size_t first, std::size_t second) const;
  void begin_tile();
  [[nodiscard]] bool skips_ntk(std::size_t number) const;
  void take_room_for_arrays();
  [[nodiscard]] bool stacks_pay() const;
  void execute_whole();
  void execute_offset(const PlaneOffsets& offsets, bool is_demanded);
  void begin_offset(const PlaneOffsets& offsets);
  void place(const PlaneOffsets& offsets);
  void cut_stacks();
  void place_arrays();
  void execute_stack(const Stack& stack, bool is_demanded);
  void end_group();
  [[nodiscard]] const PlacedInstruction<Scalar>& root() const { return placed_.back(); }

  /// The offsets for which planes and strips are ready.
  struct LastOffsets {
    std::optional<PlaneOffsets> placed;  ///< Planes are placed for these.
    std::optional<Index> strips;         ///< Strips are cut for this offset along the last axis.
  };

  const TileWork<Scalar>& work_;
  const PlaneStep& step_;
  const ChainGeometry& geometry_;
  std::vector<SharedPlane> planes_;
  std::vector<PlacedInstruction<Scalar>> placed_;  ///< [instruction]
  PairStacks stacks_;
  bool stacks_pay_ = false;                   ///< Whether stacks save more than packing costs.
  bool is_whole_;                             ///< Whether matrices pass through the chain as a whole.
  std::optional<std::size_t> blocked_input_;  ///< The instruction whose products are made block by block.
  ProductBlocks<Scalar> blocks_;
  std::unique_ptr<PlaneEnd<Scalar>> end_;
  LastOffsets last_;
};

}  // namespace widelimit
