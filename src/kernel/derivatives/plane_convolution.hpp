#pragma once

#include <array>
#include <vector>

#include "kernel/derivatives/tape_entry.hpp"
#include "kernel/derivatives/window_sums.hpp"
#include "kernel/planes/affine.hpp"

namespace widelimit {

/// Convolutions and dense layers between planes, forth and back; circular ones are not among them.
template <typename Scalar>
class PlaneConvolution {
 public:
  void forth(const Affine& affine, TapeEntry<Scalar>& from, TapeEntry<Scalar>& to);

  /// K-bar += scale W^T (K'-bar + T'-bar), T-bar += scale W^T T'-bar; without weights T'-bar goes to T-bar only. May change
  /// the adjoints in guards of `to`.
  void back(const Affine& affine, TapeEntry<Scalar>& from, TapeEntry<Scalar>& to);

 private:
  /// By shifted copies of whole planes, guards included, of what is given for the two kernels.
  void shift(const Affine& affine, const PlaneLayout& layout, const Plane<Scalar>& source, double bias,
             const Plane<Scalar>& target);
  void shift_back(const Affine& affine, TapeEntry<Scalar>& from, TapeEntry<Scalar>& to);

  WindowSums<Scalar> windows_;
  std::array<std::vector<Scalar>, 2> dense_;   ///< Planes without guards.
  std::array<GuardedRow<Scalar>, 2> scratch_;  ///< Of shifted copies.
  std::array<GuardedRow<Scalar>, 2> sums_;     ///< What they make.
};

}  // namespace widelimit
