#pragma once

#include <functional>
#include <set>

#include "widelimit/kernel/gram.hpp"
#include "widelimit/kernel/inputs.hpp"
#include "widelimit/network/network.hpp"

namespace widelimit {

/// Whether K(sx, sx') = K(x, x') for a network and all inputs of some shapes, sx being the mirror image of x.
///
/// Found out with normal random numbers, three inputs of every shape, in double. A kernel that is equal for numbers
/// that are as good as any is equal for all, and data never say so:
/// symmetric images have equal kernels after any network.
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
  std::set<Shape> shapes_;  ///< For which it holds.
  bool masked_ = false;
};

}  // namespace widelimit
