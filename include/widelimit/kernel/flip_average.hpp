#pragma once

#include <xtensor/xarray.hpp>

#include "widelimit/kernel/gram.hpp"
#include "widelimit/network/network.hpp"

namespace widelimit {

/// Every input [spatial..., channels] reversed along its last spatial axis: images with left and right exchanged.
/// ArgumentError for inputs without spatial axes.
template <typename Scalar>
[[nodiscard]] xt::xarray<Scalar> flipped(const xt::xarray<Scalar>& x);

/// Kernels of the functions (f(x) + f(sx)) / 2, f being a network of random weights and sx the flipped input: what does
/// not change if an image is exchanged for its mirror image. Training on images and mirror images together learns such
/// functions, with twice the training data.
///
/// The kernel is the mean of K(x, x'), K(sx, x'), K(x, sx') and K(sx, sx'). For most networks K(sx, sx') = K(x, x'),
/// and then the mean of K(x, x') and K(x, sx') is the same: only one side is flipped. Strides and poolings that do not
/// fit the width, positional encodings and causal masks break that. The constructor finds out, by computing both sides
/// of the equation for a few inputs; equality means within 100 roundings of Scalar, relative to the variances.
///
/// Cost    for n inputs with themselves three (flipping one side) or four times that of gram(); for two batches twice
///         or four times.
/// Source  Lee et al. 2020, Finite versus infinite neural networks, arXiv:2007.15801, on data augmentation of kernels.
template <typename Scalar>
class FlipAverage {
 public:
  /// `probes` [n, spatial..., channels], of which the first four are computed. They should be generic, such as training
  /// inputs. Throws what gram() and flipped() throw.
  FlipAverage(const Network& network, const xt::xarray<Scalar>& probes, const GramOptions& options = {});

  /// Whether all four kernels are computed.
  [[nodiscard]] bool flips_both() const noexcept { return flips_both_; }

  /// [n, n], exactly symmetric. Standard errors of sampled networks are upper bounds: the means of those of the parts.
  /// Throws what gram() throws.
  [[nodiscard]] GramResult<Scalar> gram(const xt::xarray<Scalar>& x, const GramOptions& options = {}) const;

  /// [n1, n2].
  [[nodiscard]] GramResult<Scalar> gram(const xt::xarray<Scalar>& x1, const xt::xarray<Scalar>& x2,
                                        const GramOptions& options = {}) const;

  /// Inputs with themselves, [n, 1].
  [[nodiscard]] GramResult<Scalar> diagonal(const xt::xarray<Scalar>& x,
                                            const GramOptions& options = {}) const;

 private:
  Network network_;
  bool flips_both_ = true;
};

}  // namespace widelimit
