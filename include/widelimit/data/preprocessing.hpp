#pragma once

#include <cstddef>
#include <span>
#include <vector>
#include <xtensor/xtensor.hpp>

#include "widelimit/matrix.hpp"

/// Preprocessing of images and labels before a kernel sees them. Images are [n, height, width, channels]; sums
/// run in double.
namespace widelimit::data {

/// The values that share a mean and a standard deviation when images are standardised.
enum class StandardisationScope {
  pixel,  ///< The channels of one pixel, as a layer norm before the network; needs two or more channels.
  image,  ///< All values of one image.
};

/// Subtracts the mean over the scope and divides by (standard deviation + `deviation_offset`).
///
/// The standard deviation divides by the number of values. The offset keeps constant scopes (a grey pixel, an empty
/// image) at exactly 0.
///
/// Errors  ArgumentError for scope `pixel` on images with one channel, which would erase them, and for an offset that
///         is not positive and finite.
/// Source  Hron, Bahri, Sohl-Dickstein, Novak, "Infinite attention", ICML 2020, experiments.
xt::xtensor<float, 4> standardise(const xt::xtensor<float, 4>& images,
                                  StandardisationScope scope = StandardisationScope::pixel,
                                  double deviation_offset = 1e-5);

/// Resizes every channel to `height` x `width`, anti-aliased.
///
/// Along each axis, with factor = old size / new size: a Gaussian of standard deviation max(0, (factor - 1) / 2)
/// pixels, cut at 4 standard deviations and normalised; then linear interpolation at (i + 1/2) factor - 1/2. Beyond the
/// border the image is mirrored about the centre of its outermost pixel. This is what scikit-image's `transform.resize`
/// does with `anti_aliasing=True` and otherwise default arguments. An axis that keeps its size is unchanged; one
/// that grows is only interpolated.
///
/// Errors  ArgumentError if an old or new size is 0.
/// Cost    n (old height + new height) (old width) (new width) channels operations at most.
xt::xtensor<float, 4> resize_anti_aliased(const xt::xtensor<float, 4>& images, std::size_t height,
                                          std::size_t width);

/// Mean of each channel over images and positions. ArgumentError if there are no pixels.
std::vector<double> channel_means(const xt::xtensor<float, 4>& images);

/// Subtracts `means[c]` from channel c. Give training, validation and test images the means of the training images.
///
/// Errors  ArgumentError if there are not as many means as channels.
xt::xtensor<float, 4> subtract_channel_means(const xt::xtensor<float, 4>& images,
                                             std::span<const double> means);

}  // namespace widelimit::data
