#pragma once

#include <vector>

#include "kernel/aligned_buffer.hpp"
#include "kernel/backends/cpu/pair_rows/pair_rows.hpp"
#include "kernel/backends/cpu/planes/plane.hpp"
#include "kernel/plan/program.hpp"

namespace widelimit {

/// The auxiliary arrays of a row stage for both sides of rows of pairs: array k at left[k] and right[k].
template <typename Scalar>
struct PairRowArrays {
  NodeId node = 0;
  std::vector<Scalar*> left;
  std::vector<Scalar*> right;

  /// Fills the right side of a row, and repeats it for `count` rows.
  void gather_right(const PairRows<Scalar>& rows, Index count) const {
    for (std::size_t k = 0; k < right.size(); ++k) {
      for (std::size_t j = 0; j < rows.right.size(); ++j)
        right[k][j] = rows.right[j]->array(node, static_cast<Index>(k))[0];
      // Stages read whole vectors. After the last input they read variances of 0, not those of a wider tile.
      std::fill(right[k] + rows.right.size(), right[k] + rows.step(), Scalar{0});
      for (Index row = 1; row < count; ++row)
        std::copy_n(right[k], rows.step(), right[k] + row * rows.step());
    }
  }
  // A left input's number is the same along its whole row.
  void gather_left(const PairRows<Scalar>& rows) const {
    rows.for_each([&](const PairRow<Scalar>& row, Index place) {
      for (std::size_t k = 0; k < left.size(); ++k)
        std::fill_n(left[k] + place, rows.step(), row.left->array(node, static_cast<Index>(k))[0]);
    });
  }
};

/// The memory of the chain of rows of pairs: slots of its instructions, the values with which it begins, auxiliary
/// arrays, and the scratch of pair stages.
template <typename Scalar>
class PairRowMemory {
 public:
  /// A slot has room for `capacity` numbers of each kernel. `state` is the layout of any input.
  PairRowMemory(const Program& program, const StateLayout& state, bool with_ntk, Index capacity,
                std::size_t sources);

  [[nodiscard]] Plane<Scalar> slot(std::size_t number) { return plane(slots_, number); }
  [[nodiscard]] Plane<Scalar> source(std::size_t number) { return plane(sources_, number); }
  [[nodiscard]] const PairRowArrays<Scalar>& arrays(std::size_t instruction) const {
    return arrays_[instruction];
  }
  [[nodiscard]] Scalar* scratch() { return scratch_.data(); }
  [[nodiscard]] bool with_ntk() const { return with_ntk_; }

 private:
  [[nodiscard]] Plane<Scalar> plane(AlignedBuffer<Scalar>& buffer, std::size_t number) const;

  bool with_ntk_;
  Index capacity_;
  AlignedBuffer<Scalar> slots_;
  AlignedBuffer<Scalar> sources_;
  AlignedBuffer<Scalar> auxiliary_;
  AlignedBuffer<Scalar> scratch_;
  std::vector<PairRowArrays<Scalar>> arrays_;  ///< [instruction]
};

}  // namespace widelimit
