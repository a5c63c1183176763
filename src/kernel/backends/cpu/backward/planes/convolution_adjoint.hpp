#pragma once

#include <array>
#include <vector>

#include "kernel/backends/cpu/backward/planes/window_adjoint.hpp"
#include "kernel/backends/cpu/planes/convolutions.hpp"

namespace widelimit {

/// The backward pass through dense layers and convolutions between planes. Circular convolutions are not among them;
/// ChainBackwardPass reads their windows from kept nodes.
template <typename Scalar>
class ConvolutionAdjoint {
 public:
  using Scratch = std::array<Scalar*, 2>;

  /// Writes K-bar = scale W^T (K'-bar + T'-bar) and T-bar = scale W^T T'-bar; without trained weights T'-bar goes to
  /// T-bar only. W sums over windows. The plane before the convolution must not be empty. Adjoints in guards after
  /// the convolution may change. `scratch` has two rows with a margin of zeros before them.
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
