#include "widelimit/data/preprocessing.hpp"

#include <fmt/format.h>

#include <cmath>

#include "data/standardised_values.hpp"
#include "widelimit/error.hpp"

namespace widelimit::data {
xt::xtensor<float, 4> standardise(const xt::xtensor<float, 4>& images, StandardisationScope scope,
                                  double deviation_offset) {
  if (!(deviation_offset > 0) || !std::isfinite(deviation_offset)) {
    throw ArgumentError(
        fmt::format("standardise: deviation_offset must be positive and finite, got {}", deviation_offset));
  }
  const auto& shape = images.shape();
  const bool per_pixel = scope == StandardisationScope::pixel;
  // A single value would always become 0, as it is its own mean.
  if (per_pixel && shape[3] < 2) {
    throw ArgumentError(fmt::format(
        "standardise: scope pixel needs two or more channels, got {}; use scope image for grey images",
        shape[3]));
  }
  auto result = xt::xtensor<float, 4>::from_shape(shape);
  // Channels are last, so that the values of a pixel, and those of an image, follow each other.
  const std::size_t group = per_pixel ? shape[3] : shape[1] * shape[2] * shape[3];
  for (std::size_t at = 0; at < images.size(); at += group) {
    write_standardised(std::span(images.data() + at, group), result.data() + at, deviation_offset);
  }
  return result;
}

std::vector<double> channel_means(const xt::xtensor<float, 4>& images) {
  if (images.size() == 0) throw ArgumentError("channel_means: there are no pixels to take the mean of");
  const std::size_t channels = images.shape()[3];
  std::vector<double> means(channels, 0.0);
  for (std::size_t i = 0; i < images.size(); ++i) means[i % channels] += images.data()[i];
  const std::size_t pixels = images.size() / channels;
  for (double& mean : means) mean /= static_cast<double>(pixels);
  return means;
}

xt::xtensor<float, 4> subtract_channel_means(const xt::xtensor<float, 4>& images,
                                             std::span<const double> means) {
  const std::size_t channels = images.shape()[3];
  if (means.size() != channels) {
    throw ArgumentError(fmt::format("subtract_channel_means: expected {} means, one a channel, got {}",
                                    channels, means.size()));
  }
  auto result = xt::xtensor<float, 4>::from_shape(images.shape());
  for (std::size_t i = 0; i < images.size(); ++i) {
    result.data()[i] = static_cast<float>(images.data()[i] - means[i % channels]);
  }
  return result;
}

}  // namespace widelimit::data
