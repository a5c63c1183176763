#pragma once

#include <array>
#include <vector>

#include "kernel/backward/planes/window_adjoint.hpp"
#include "kernel/planes/convolutions.hpp"

namespace widelimit {

/// The backward pass through convolutions and dense layers between planes; circular ones are not among them.
template <typename Scalar>
class ConvolutionAdjoint {
 public:
  using Scratch = std::array<Scalar*, 2>;

  /// K-bar = scale W^T (K'-bar + T'-bar), T-bar = scale W^T T'-bar; without weights T'-bar goes to T-bar only. `from`
  /// is not empty. May change the adjoints in guards after the convolution. `scratch`: two rows with a margin of zeros
  /// before them.
  void propagate(const ConvolvedPlanes& planes, const Plane<Scalar>& after, const Plane<Scalar>& before,
                 const Scratch& scratch);

 private:
  void shift_adjoint(const ConvolvedPlanes& planes, const Plane<Scalar>& after, const Plane<Scalar>& before,
                     const Scratch& scratch);
  void spread_adjoint(const ConvolvedPlanes& planes, const Plane<Scalar>& after, const Plane<Scalar>& before);

  WindowAdjoint<Scalar> windows_;
  std::array<std::vector<Scalar>, 2> dense_;  ///< Planes without guards.
};

}  // namespace widelimit
