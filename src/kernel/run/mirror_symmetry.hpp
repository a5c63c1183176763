#pragma once

#include <functional>
#include <set>

#include "widelimit/kernel/gram.hpp"
#include "widelimit/kernel/inputs.hpp"
#include "widelimit/network/network.hpp"

namespace widelimit {

/// Whether K(sx, sx') = K(x, x') for a network and all inputs of some shapes, sx being the mirror image of x.
/// FlipAverage asks this, because it saves a Gram matrix.
///
/// It is found out by computing both kernels, in double, for three normal random inputs of every shape. Kernels that
/// are equal for inputs in general position are equal for all. The data themselves cannot answer: symmetric images
/// have equal kernels under any network.
class MirrorSymmetry {
 public:
  /// Exchanges left and right.
  using Flip = std::function<Inputs<double>(const Inputs<double>&)>;

  /// `like`: inputs of the shapes, channels and kind (masked or not) that are asked about; their numbers are not read.
  /// Throws Cancelled. A network that refuses the random inputs counts as one that tells left from right.
  template <typename Scalar>
  MirrorSymmetry(const Network& network, const Inputs<Scalar>& like, const Flip& flip, GramOptions options);

  /// Whether the equation holds for these inputs, with one another and with all others of which this is true. False for
  /// shapes and masks that were not asked about.
  template <typename Scalar>
  [[nodiscard]] bool holds_for(const Inputs<Scalar>& x) const;

 private:
  std::set<Shape> shapes_;  ///< The shapes for which the equation holds.
  bool masked_ = false;
};

}  // namespace widelimit
