#pragma once

#include <vector>

#include "kernel/backward/planes/input_record.hpp"
#include "kernel/backward/planes/scalar_adjoints.hpp"
#include "kernel/planes/tile.hpp"

namespace widelimit {

/// An input of a block of pairs, and where the adjoints of what is recorded of it are summed up.
template <typename Scalar>
struct BlockInput {
  InputRecord<Scalar>* record;
  RecordAdjoint<Scalar>* adjoint;
};

/// Pairs of a few left inputs of one shape with a few right ones of one shape, which share what is brought into the
/// order of a plane.
template <typename Scalar>
struct PairBlock {
  std::vector<BlockInput<Scalar>> left;
  std::vector<BlockInput<Scalar>> right;
  /// Best in the order of for_each_pair(). One input with itself: at offset 0 covariances are variances.
  std::vector<TilePair> pairs;
  /// One pair, of an input with itself: variances and states are recorded in the forward pass, and their adjoints join
  /// in on the backward pass.
  bool recording = false;
  /// The adjoints of features and variances of a side are summed up.
  bool left_wanted = true;
  bool right_wanted = true;
  ScalarAdjoints* scalars = nullptr;  ///< Null: derivatives by them are not wanted.

  [[nodiscard]] const BlockInput<Scalar>& left_of(std::size_t pair) const {
    return left[static_cast<std::size_t>(pairs[pair].left)];
  }
  [[nodiscard]] const BlockInput<Scalar>& right_of(std::size_t pair) const {
    return right[static_cast<std::size_t>(pairs[pair].right)];
  }
};

}  // namespace widelimit
