#pragma once

#include <array>
#include <vector>

#include "kernel/derivatives/run_tape.hpp"
#include "kernel/derivatives/window_sums.hpp"
#include "kernel/planes/affine.hpp"

namespace widelimit {

/// Planes of `count` pairs, one after the other, before a convolution and after it.
struct ConvolvedPlanes {
  const Affine& affine;
  const PlacedPlane& from;
  const PlacedPlane& to;
  Index count;
};

/// Convolutions and dense layers between planes, forth and back; circular ones are not among them.
template <typename Scalar>
class PlaneConvolution {
 public:
  using Scratch = std::array<Scalar*, 2>;

  /// Guards of the source are zero. `scratch`: two rows with a zero margin in front.
  void forth(const ConvolvedPlanes& planes, const Plane<Scalar>& source, const Plane<Scalar>& target,
             const Scratch& scratch);

  /// K-bar = scale W^T (K'-bar + T'-bar), T-bar = scale W^T T'-bar; without weights T'-bar goes to T-bar only. `from`
  /// is not empty. May change the adjoints in guards after the convolution.
  void back(const ConvolvedPlanes& planes, const Plane<Scalar>& behind, const Plane<Scalar>& in_front,
            const Scratch& scratch);

 private:
  void shift_back(const ConvolvedPlanes& planes, const Plane<Scalar>& behind, const Plane<Scalar>& in_front,
                  const Scratch& scratch);
  void spread_back(const ConvolvedPlanes& planes, const Plane<Scalar>& behind, const Plane<Scalar>& in_front);

  WindowSums<Scalar> windows_;
  std::array<std::vector<Scalar>, 2> dense_;  ///< Planes without guards.
};

}  // namespace widelimit
