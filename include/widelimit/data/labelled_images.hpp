#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>
#include <xtensor/xtensor.hpp>

namespace widelimit::data {

/// Images with one class label each, the result of every image reader and generator of this folder.
struct LabelledImages {
  xt::xtensor<float, 4> images;  ///< [n, height, width, channels], row-major; readers leave pixels in [0, 1].
  std::vector<int> labels;       ///< n labels, each in [0, classes).
  std::size_t classes = 0;
  std::vector<std::string> names = {};  ///< n: the record that each image comes from; readers fill it in.
  std::vector<std::string> class_names = {};  ///< One for each class; readers fill it in.

  std::size_t size() const { return labels.size(); }
};

/// How many images of each class a random choice takes.
enum class ClassBalance {
  as_drawn,  ///< Every image is equally likely; class counts are left to chance.
  as_in_all,  ///< The shares that classes have among all images, up to one image; a class of one is drawn from the middle.
  equal,  ///< Equal counts; if the count is not a multiple of the classes, some classes get one image more.
};

/// Disjoint random choices from `labels.size()` items: part p has `counts[p]` different indices in random order.
///
/// Equal seeds give equal parts. A part depends on the sizes of the parts before it only, so a training set stays the
/// same whether or not a validation set is drawn after it.
///
/// Errors  ArgumentError if more items are asked for than there are (with `equal`: than a class has), naming how many
///         are available, or if a label lies outside [0, classes).
std::vector<std::vector<std::size_t>> split_indices(std::span<const int> labels, std::size_t classes,
                                                    std::span<const std::size_t> counts, ClassBalance balance,
                                                    std::uint64_t seed);

/// The images at `indices`, in that order. ArgumentError if an index is not below `data.size()`.
LabelledImages select(const LabelledImages& data, std::span<const std::size_t> indices);

/// `count` different images, each as likely as any other. Errors as split_indices.
LabelledImages random_subset(const LabelledImages& data, std::size_t count, std::uint64_t seed);

/// `count` different images, equally many of each class (see ClassBalance::equal). Errors as split_indices.
LabelledImages balanced_subset(const LabelledImages& data, std::size_t count, std::uint64_t seed);

/// Disjoint random subsets of the given sizes, e.g. {training, validation}. Errors as split_indices.
std::vector<LabelledImages> random_split(const LabelledImages& data, std::span<const std::size_t> counts,
                                         ClassBalance balance, std::uint64_t seed);

}  // namespace widelimit::data
