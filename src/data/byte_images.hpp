#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "widelimit/data/labelled_images.hpp"

namespace widelimit::data {

/// Images as they stand in a file, a byte a value: a quarter of the memory of floats, so that a small choice
/// from a large set stays cheap.
struct ByteImages {
  enum class Order {
    channels_first,
    channels_last
  };  ///< [channels, height, width] or [height, width, channels].

  std::size_t height = 0, width = 0, channels = 0;
  Order order = Order::channels_last;
  std::vector<std::uint8_t> values;  ///< n images one after another.
  std::vector<int> labels;
  std::size_t classes = 0;
  std::vector<std::string> names = {};        ///< As in LabelledImages.
  std::vector<std::string> class_names = {};  ///< One for each class.
};

/// The images at `indices` (each below the number of labels), interleaved, divided by 255.
LabelledImages to_float(const ByteImages& bytes, std::span<const std::size_t> indices);

/// All images.
LabelledImages to_float(const ByteImages& bytes);

/// Disjoint random subsets; see split_indices.
std::vector<LabelledImages> draw(const ByteImages& bytes, std::span<const std::size_t> counts,
                                 ClassBalance balance, std::uint64_t seed);

}  // namespace widelimit::data
