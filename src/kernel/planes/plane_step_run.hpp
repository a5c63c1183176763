#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "kernel/planes/placed_instruction.hpp"
#include "kernel/planes/plane_ends.hpp"
#include "kernel/planes/product_blocks.hpp"
#include "kernel/planes/stacks.hpp"
#include "kernel/planes/tile_run.hpp"

namespace widelimit {

/// Evaluates a run of instructions on tiles, plane by plane.
///
/// For every offset the planes of the run are laid out once and the auxiliary arrays of both sides packed
/// once; then the pairs of the tile go through all instructions of the run while their planes are in the
/// cache: one by one, or several as a stack of small planes.
template <typename Scalar>
class PlaneStepRun {
 public:
  /// `geometry`: that of the step; `state`: the layout of one of the inputs. All must outlive this.
  PlaneStepRun(const TileRun<Scalar>& run, const StateLayout& state, const PlaneStep& step,
               const RunGeometry& geometry, ReadoutSums<Scalar>& sums);

  /// Evaluates all demanded offsets of the run's current tile.
  void execute();

 private:
  /// The plane of instructions whose sizes and offsets agree, of which this is the first.
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

  /// The offsets for which arrays lie ready.
  struct LastOffsets {
    std::optional<PlaneOffsets> placed;  ///< Planes are placed for these.
    std::optional<Index> strips;         ///< Strips are cut for this one along the last axis.
  };

  const TileRun<Scalar>& run_;
  const PlaneStep& step_;
  const RunGeometry& geometry_;
  std::vector<SharedPlane> planes_;
  std::vector<PlacedInstruction<Scalar>> placed_;  ///< [instruction]
  PairStacks stacks_;
  bool stacks_pay_ = false;                   ///< Small planes are better stacked.
  bool is_whole_;                             ///< Matrices go through the run as they are.
  std::optional<std::size_t> blocked_input_;  ///< The instruction whose products are made block by block.
  ProductBlocks<Scalar> blocks_;
  std::unique_ptr<PlaneEnd<Scalar>> end_;
  LastOffsets last_;
};

}  // namespace widelimit
