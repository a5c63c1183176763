#include "kernel/backends/cpu/planes/workspace.hpp"

#include "kernel/backends/cpu/planes/plane_map.hpp"
#include "kernel/backends/cpu/planes/plane_pool.hpp"
#include "kernel/readouts/pair_sums.hpp"
#include "kernel/vector_padding.hpp"

namespace widelimit {
namespace {

using Part = WorkspacePart;

/// Every part begins on a page, as buffers of their own would. What one part reads and another writes is then as far
/// from multiples of 4096 bytes as slots are from each other (plane_sizes()).
constexpr Index page = 1024;

Index whole_pages(Index numbers) { return (numbers + page - 1) / page * page; }

/// Finds the sizes of the parts: each is as large as the step that needs most of it.
class WorkspaceSizes {
 public:
  WorkspaceSizes(const PairLayout& pair, const StateLayout& state, const TileSize& tile,
                 WorkspaceLayout& layout)
      : pair_{pair}, state_{state}, tile_{tile}, copies_{pair.with_ntk() ? 2 : 1}, layout_{layout} {}

  void add(const PlaneStep& step) {
    Index arrays = 0;
    for (const Instruction& instruction : step.chain.instructions)
      if (reads_arrays(pair_.program, instruction)) arrays += state_.arrays[instruction.node];
    need(Part::packs, arrays * (tile_.left + 2 * tile_.right) * pair_.planes.capacity);
    if (pair_.geometry.uses_strips(step.chain.root))
      need(Part::strips, arrays * (tile_.left + tile_.right) * pair_.planes.strip);
    layout_.slot_count = std::max(layout_.slot_count, step.chain.slot_count);
    const Reads target = reads_of(pair_.node(step.target).operation);
    if (target == Reads::pooled) need(Part::row_sums, pool_row_sums(pair_, step.target, tile_.pairs()));
    if (target == Reads::mapped) need(Part::row_sums, mapped_row_sums(pair_, step.target, tile_.pairs()));
  }

  void add(const PairStep& step) {
    const NodeId input = pair_.input_of(step.node);
    const Shape &left = pair_.geometry.shapes.left[input], &right = pair_.geometry.shapes.right[input];
    const auto& stage = *pair_stage_of(pair_.node(step.node).operation);
    Index matrices = padded(static_cast<Index>(stage.scratch_size(left, right)));
    // Functional stages read planes in place, except for an input's own state, which is made of matrices.
    const bool assembles = pair_.purpose == Purpose::state || functional_stage(stage) == nullptr;
    if (assembles && !pair_.program.as_matrix[input])
      matrices += copies_ * padded(position_count(left) * position_count(right));
    need(Part::matrices, matrices);
  }

  void add(const InputStep& /*step*/) {}

  void add_slots_and_stores() {
    // The two further slots are the scratch of convolutions.
    need(Part::slots, static_cast<Index>(layout_.slot_count + 2) * copies_ * pair_.planes.slot());
    // Convolutions clear what follows a plane. For the last product this is a margin of its own.
    const Index products = std::min(tile_.left, block_side) * std::min(tile_.right, block_side);
    need(Part::products, products * pair_.planes.slot() + pair_.planes.front);
    // Rows are read by whole vectors, also the last one.
    need(Part::stores, tile_.pairs() * pair_.stores.size + row_padding);
  }

 private:
  void need(Part part, Index numbers) { layout_.of(part) = std::max(layout_.of(part), whole_pages(numbers)); }

  const PairLayout& pair_;
  const StateLayout& state_;
  TileSize tile_;
  Index copies_;
  WorkspaceLayout& layout_;
};

}  // namespace

bool reads_arrays(const Program& program, const Instruction& instruction) {
  if (instruction.loads) return false;
  const Recorded recorded = recorded_of(program.graph.nodes[instruction.node].operation);
  return recorded == Recorded::auxiliaries || recorded == Recorded::features;
}

WorkspaceLayout::WorkspaceLayout(const PairLayout& pair, const StateLayout& state, const TileSize& tile) {
  WorkspaceSizes sizes(pair, state, tile, *this);
  for (const Step& step : pair.program.steps)
    std::visit([&](const auto& of_kind) { sizes.add(of_kind); }, step);
  sizes.add_slots_and_stores();
}

}  // namespace widelimit
