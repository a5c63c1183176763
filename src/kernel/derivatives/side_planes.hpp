#pragma once

#include <vector>

#include "kernel/derivatives/pair_block.hpp"
#include "kernel/derivatives/tape_entry.hpp"
#include "kernel/derivatives/walked_run.hpp"

namespace widelimit {

enum class PairSide { left, right };

/// What row stages of a run read of the inputs of one side of a block, in the order of the planes of an offset: auxiliary
/// arrays and variances; and the adjoints of those variances. All pairs of an input share it.
template <typename Scalar>
class SidePlanes {
 public:
  /// `run` must outlive this.
  SidePlanes(PairSide side, const WalkedRun& run) : side_{side}, run_{run} {}

  /// Of the next offset: nothing is there yet.
  void begin_offset(std::size_t inputs);

  /// The arrays of a stage, one behind the other, the variances last; brought into order when they are first asked for.
  /// `tape`: of all instructions, with their planes.
  const Scalar* arrays(std::size_t input, std::size_t instruction, InputRecord<Scalar>& record,
                       const std::vector<TapeEntry<Scalar>>& tape);

  /// Adds the adjoints of a plane's variances.
  void add(std::size_t input, std::size_t instruction, const Scalar* adjoints, std::size_t size);

  /// Adds all that was added to what belongs to the inputs.
  void end_offset(const std::vector<BlockInput<Scalar>>& inputs, const std::vector<TapeEntry<Scalar>>& tape);

 private:
  struct StagePlanes {
    std::vector<Scalar> arrays;
    std::vector<Scalar> adjoints;
    bool has_arrays = false;
    bool has_adjoints = false;
  };
  [[nodiscard]] StagePlanes& at(std::size_t input, std::size_t instruction) {
    return planes_[input * run_.run.instructions.size() + instruction];
  }
  /// Calls body(entry of the plane, position on this side, count) for the rows of an instruction's plane.
  template <typename Body>
  void for_each_row_here(std::size_t instruction, const std::vector<TapeEntry<Scalar>>& tape,
                         const Body& body) const {
    for_each_row_of(tape[instruction].plane, run_.left_sizes(instruction), run_.right_sizes(instruction),
                    [&](Index entry, Index a, Index b, Index count) {
                      body(entry, side_ == PairSide::left ? a : b, count);
                    });
  }

  PairSide side_;
  const WalkedRun& run_;
  std::vector<StagePlanes> planes_;  ///< [input][instruction]
};

}  // namespace widelimit
