#pragma once

#include <vector>

#include "kernel/derivatives/pair_block.hpp"
#include "kernel/derivatives/tape_entry.hpp"

namespace widelimit {

enum class PairSide { left, right };

/// What row stages of a run read of the inputs of one side of a block, in the order of the planes of an offset: auxiliary
/// arrays and variances; and the adjoints of those variances. All pairs of an input share it.
template <typename Scalar>
class SidePlanes {
 public:
  SidePlanes(PairSide side, std::size_t instructions) : side_{side}, instructions_{instructions} {}

  /// Of the next offset: nothing is there yet.
  void begin_offset(std::size_t inputs);

  /// The arrays of a stage, one behind the other, the variances last; brought into order when they are first asked for.
  /// `sizes`: of the node on this side.
  const Scalar* arrays(std::size_t input, std::size_t instruction, InputRecord<Scalar>& record, NodeId node,
                       const TapeEntry<Scalar>& entry, const Index3& left_sizes, const Index3& right_sizes);

  /// Adds the adjoints of a plane's variances.
  void add(std::size_t input, std::size_t instruction, const Scalar* adjoints, std::size_t size);

  /// Adds all that was added to what belongs to the inputs.
  template <typename NodeOf, typename EntryOf, typename SizesOf>
  void end_offset(const std::vector<BlockInput<Scalar>>& inputs, const NodeOf& node_of,
                  const EntryOf& entry_of, const SizesOf& sizes_of);

 private:
  struct StagePlanes {
    std::vector<Scalar> arrays;
    std::vector<Scalar> adjoints;
    bool has_arrays = false;
    bool has_adjoints = false;
  };
  [[nodiscard]] StagePlanes& at(std::size_t input, std::size_t instruction) {
    return planes_[input * instructions_ + instruction];
  }

  PairSide side_;
  std::size_t instructions_;
  std::vector<StagePlanes> planes_;  ///< [input][instruction]
};

template <typename Scalar>
template <typename NodeOf, typename EntryOf, typename SizesOf>
void SidePlanes<Scalar>::end_offset(const std::vector<BlockInput<Scalar>>& inputs, const NodeOf& node_of,
                                    const EntryOf& entry_of, const SizesOf& sizes_of) {
  for (std::size_t input = 0; input < inputs.size(); ++input)
    for (std::size_t i = 0; i < instructions_; ++i) {
      const StagePlanes& planes = at(input, i);
      if (!planes.has_adjoints) continue;
      Scalar* variances = inputs[input].adjoint->variances(node_of(i));
      const auto [left_sizes, right_sizes] = sizes_of(i);
      for_each_row_of(entry_of(i).plane, left_sizes, right_sizes,
                      [&](Index entry, Index a, Index b, Index count) {
                        Scalar* to = variances + (side_ == PairSide::left ? a : b);
                        for (Index z = 0; z < count; ++z)
                          to[z] += planes.adjoints[static_cast<std::size_t>(entry + z)];
                      });
    }
}

}  // namespace widelimit
