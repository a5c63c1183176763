#pragma once

#include <memory>
#include <optional>
#include <xtensor/xarray.hpp>

#include "widelimit/kernel/gram.hpp"
#include "widelimit/kernel/inputs.hpp"
#include "widelimit/kernel/prepared_inputs.hpp"
#include "widelimit/network/network.hpp"

namespace widelimit {

class MirrorSymmetry;

/// Every input [spatial..., channels] reversed along its last spatial axis: images with left and right exchanged.
/// ArgumentError for inputs without spatial axes.
template <typename Scalar>
[[nodiscard]] xt::xarray<Scalar> flipped(const xt::xarray<Scalar>& x);

/// The same with their masks. ArgumentError for inputs with graphs, which have no left and right.
template <typename Scalar>
[[nodiscard]] Inputs<Scalar> flipped(const Inputs<Scalar>& x);

/// Kernels of the functions (f(x) + f(sx)) / 2, where f is a network of random weights and sx the flipped input: these
/// functions do not change if an image is exchanged for its mirror image. Training on images and mirror images together
/// learns such functions, with twice the training data.
///
/// The kernel is the mean of K(x, x'), K(sx, x'), K(x, sx') and K(sx, sx'). For most networks K(sx, sx') = K(x, x'),
/// and then the mean of K(x, x') and K(x, sx') is the same: only one side is flipped. Strides and poolings that do not
/// fit the width, positional encodings and causal masks break that. The constructor finds out, by computing both sides
/// of the equation for random inputs of the shapes that it is given, three of each, in double; equality means to 1e-11,
/// relative to the variances. Inputs of other shapes, and batches of more than 8 shapes, are flipped on both sides.
///
/// Cost    for n inputs with themselves three (flipping one side) or four times that of gram(); for two batches twice
///         or four times.
/// Source  Lee et al. 2020, Finite versus infinite neural networks, arXiv:2007.15801, on data augmentation of kernels.
template <typename Scalar>
class FlipAverage {
 public:
  /// Inputs whose states are kept (PreparedInputs): those of the inputs, and of the flipped ones if both sides are.
  struct Prepared {
    PreparedInputs<Scalar> inputs;
    std::optional<PreparedInputs<Scalar>> mirrored;
  };

  /// `like`: inputs with the shapes and channels, masked or not, of those whose kernels are wanted, such as training
  /// inputs. Their numbers are not read. ArgumentError for inputs without a spatial axis, or with graphs; Cancelled.
  FlipAverage(const Network& network, const Inputs<Scalar>& like, const GramOptions& options = {});

  /// Whether all four kernels are computed for these inputs: false if the constructor found that two suffice.
  [[nodiscard]] bool flips_both(const Inputs<Scalar>& x) const;

  /// [n, n], exactly symmetric. Standard errors of sampled networks are upper bounds: the means of those of the parts.
  /// Throws what gram() throws.
  [[nodiscard]] GramResult<Scalar> gram(const Inputs<Scalar>& x, const GramOptions& options = {}) const;

  /// [n1, n2].
  [[nodiscard]] GramResult<Scalar> gram(const Inputs<Scalar>& x1, const Inputs<Scalar>& x2,
                                        const GramOptions& options = {}) const;

  /// Throws what PreparedInputs throws. `options`: those of the states.
  [[nodiscard]] Prepared prepare(const Inputs<Scalar>& x, const GramOptions& options = {}) const;

  /// [n1, n], those of gram(x1, prepared inputs) up to rounding.
  [[nodiscard]] GramResult<Scalar> gram_with(const Inputs<Scalar>& x1, const Prepared& prepared,
                                             const GramOptions& options = {}) const;

  /// Inputs with themselves, [n, 1].
  [[nodiscard]] GramResult<Scalar> diagonal(const Inputs<Scalar>& x, const GramOptions& options = {}) const;

 private:
  /// The NNGP of every input with itself.
  [[nodiscard]] Vector<double> variances_of(const Inputs<Scalar>& x, const GramOptions& options) const;

  Network network_;
  std::shared_ptr<const MirrorSymmetry> symmetry_;
};

}  // namespace widelimit
