#include "kernel/backends/cpu/pair_rows/pair_row_memory.hpp"

#include <algorithm>

namespace widelimit {
namespace {

/// The largest scratch that a pair stage after the positions asks for.
Index scratch_size(const Program& program) {
  Index size = 0;
  for (const Instruction& instruction : program.pair_rows.instructions)
    if (const PairStage* pair = pair_stage_of(program.graph.nodes[instruction.node].operation))
      size = std::max(size, static_cast<Index>(pair->scratch_size({}, {})));
  return padded(size);
}

/// The number of arrays on each side of an instruction. Only row stages have any; pair stages read states.
Index array_count(const Program& program, const Instruction& instruction, const StateLayout& state) {
  const Operation& operation = program.graph.nodes[instruction.node].operation;
  return recorded_of(operation) == Recorded::auxiliaries ? state.arrays[instruction.node] : 0;
}

}  // namespace

template <typename Scalar>
PairRowMemory<Scalar>::PairRowMemory(const Program& program, const StateLayout& state, bool with_ntk,
                                     Index capacity, std::size_t sources)
    : with_ntk_{with_ntk},
      capacity_{capacity},
      slots_(static_cast<Index>(program.pair_rows.slot_count) * (with_ntk ? 2 : 1) * capacity),
      sources_(static_cast<Index>(sources) * (with_ntk ? 2 : 1) * capacity),
      scratch_(scratch_size(program)) {
  Index arrays = 0;
  for (const Instruction& instruction : program.pair_rows.instructions)
    arrays += 2 * array_count(program, instruction, state);
  auxiliary_ = AlignedBuffer<Scalar>(arrays * capacity);
  Scalar* next = auxiliary_.data();
  const auto take = [&](std::vector<Scalar*>& of_side, Index count) {
    for (Index k = 0; k < count; ++k, next += capacity_) of_side.push_back(next);
  };
  for (const Instruction& instruction : program.pair_rows.instructions) {
    PairRowArrays<Scalar>& of_instruction = arrays_.emplace_back();
    of_instruction.node = instruction.node;
    take(of_instruction.left, array_count(program, instruction, state));
    take(of_instruction.right, array_count(program, instruction, state));
  }
}

template <typename Scalar>
Plane<Scalar> PairRowMemory<Scalar>::plane(AlignedBuffer<Scalar>& buffer, std::size_t number) const {
  Scalar* nngp = buffer.data() + static_cast<Index>(number) * capacity_ * (with_ntk_ ? 2 : 1);
  return {nngp, with_ntk_ ? nngp + capacity_ : nullptr};
}

template class PairRowMemory<float>;
template class PairRowMemory<double>;

}  // namespace widelimit
