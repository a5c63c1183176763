#include "data/byte_images.hpp"

#include <numeric>

namespace widelimit::data {

LabelledImages to_float(const ByteImages& bytes, std::span<const std::size_t> indices) {
  LabelledImages result;
  result.classes = bytes.classes;
  result.class_names = bytes.class_names;
  result.labels.reserve(indices.size());
  result.images.resize({indices.size(), bytes.height, bytes.width, bytes.channels});
  const std::size_t pixels = bytes.height * bytes.width;
  const bool channels_first = bytes.order == ByteImages::Order::channels_first;
  // Distances in the file's values between neighbouring pixels and between the channels of a pixel;
  // the result is channels last.
  const std::size_t pixel_step = channels_first ? 1 : bytes.channels;
  const std::size_t channel_step = channels_first ? pixels : 1;
  float* target = result.images.data();
  for (const std::size_t index : indices) {
    result.labels.push_back(bytes.labels[index]);
    result.names.push_back(bytes.names[index]);
    const std::uint8_t* image = bytes.values.data() + index * pixels * bytes.channels;
    for (std::size_t p = 0; p < pixels; ++p) {
      for (std::size_t c = 0; c < bytes.channels; ++c) {
        *target++ = static_cast<float>(image[p * pixel_step + c * channel_step]) / 255.0F;
      }
    }
  }
  return result;
}

LabelledImages to_float(const ByteImages& bytes) {
  std::vector<std::size_t> all(bytes.labels.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return to_float(bytes, all);
}

std::vector<LabelledImages> draw(const ByteImages& bytes, std::span<const std::size_t> counts,
                                 ClassBalance balance, std::uint64_t seed) {
  std::vector<LabelledImages> parts;
  for (const auto& part : split_indices(bytes.labels, bytes.classes, counts, balance, seed)) {
    parts.push_back(to_float(bytes, part));
  }
  return parts;
}

}  // namespace widelimit::data
