#pragma once

#include <cstddef>
#include <cstdint>

#include "widelimit/data/labelled_images.hpp"

namespace widelimit::data {

/// Draws a set of 32 x 32 colour images of ten classes, for examples and tests that need no download.
///
/// The class is a local pattern: 0 to 3 stripes at 0, 45, 90 and 135 degrees, 4 checks, 5 dots, 6 rings, 7 a
/// cross, 8 a corner, 9 a filled disc. Its place, size, phase, contrast and exact colours are random; it is
/// painted in warm colours over an uneven cold background with a stray stroke or two, and noise is added.
/// Single pixels thus say little about the class, pooled local statistics much; patterns are coarse enough to
/// survive a reduction to 8 x 8 and differ from their ground in hue, so that they also survive
/// standardisation of each pixel.
///
/// Every ten consecutive images hold each class once, in random order. Image i depends on (seed, i) only: a
/// longer set begins with the shorter one, and consecutive pieces of one set serve as training and test
/// images. Images are [count, 32, 32, 3] in [0, 1] and named "image NUMBER".
LabelledImages generate_synthetic_images(std::size_t count, std::uint64_t seed);

}  // namespace widelimit::data
