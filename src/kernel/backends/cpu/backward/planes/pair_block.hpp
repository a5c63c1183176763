#pragma once

#include <vector>

#include "kernel/backends/cpu/backward/planes/input_record.hpp"
#include "kernel/backends/cpu/backward/planes/scalar_adjoints.hpp"
#include "kernel/backends/cpu/planes/tile.hpp"

namespace widelimit {

/// An input of a block of pairs, and where the adjoints of what is recorded of it are summed up.
template <typename Scalar>
struct BlockInput {
  InputRecord<Scalar>* record;
  RecordAdjoint<Scalar>* adjoint;
};

/// Pairs of a few left inputs of one shape with a few right inputs of one shape. They share the arrays that are
/// packed into the order of a plane.
template <typename Scalar>
struct PairBlock {
  std::vector<BlockInput<Scalar>> left;
  std::vector<BlockInput<Scalar>> right;
  /// The pairs, best in the order of for_each_pair(), so that stacks are long. For an input with itself, covariances
  /// at offset 0 are variances.
  std::vector<TilePair> pairs;
  /// True for a block of one input with itself. Its forward pass records variances and states, and their adjoints
  /// join in on its backward pass.
  bool recording = false;
  /// Whether the adjoints of a side's features and variances are summed up.
  bool left_wanted = true;
  bool right_wanted = true;
  ScalarAdjoints* scalars = nullptr;  ///< Null if derivatives with respect to scalars are not wanted.

  [[nodiscard]] const BlockInput<Scalar>& left_of(std::size_t pair) const {
    return left[static_cast<std::size_t>(pairs[pair].left)];
  }
  [[nodiscard]] const BlockInput<Scalar>& right_of(std::size_t pair) const {
    return right[static_cast<std::size_t>(pairs[pair].right)];
  }
};

}  // namespace widelimit
