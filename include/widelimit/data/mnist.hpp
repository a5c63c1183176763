#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "widelimit/data/labelled_images.hpp"

/// MNIST (and sets of the same form) in IDX format, plain or packed with gzip, which is detected by content.
///
/// Every reader throws DataError naming file, offset, what was expected and what was found: wrong magic
/// number or image size, a file shorter or longer than its header says, damaged gzip data, a label above 9,
/// different numbers of images and labels. Offsets count unpacked bytes, except for damaged gzip data.
///
/// Source  Y. LeCun, C. Cortes, C. J. C. Burges, "The MNIST database of handwritten digits".
namespace widelimit::data {

/// The two files of a set.
struct MnistFiles {
  std::filesystem::path images;
  std::filesystem::path labels;
};

/// train-images-idx3-ubyte and train-labels-idx1-ubyte in `folder`, each with or without ".gz".
/// DataError if one is missing.
MnistFiles mnist_training_files(const std::filesystem::path& folder);

/// Whether `folder` has at least one of the training files; the test files alone make a small data set too.
bool holds_mnist_training_files(const std::filesystem::path& folder);

/// t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte in `folder`, each with or without ".gz".
/// DataError if one is missing.
MnistFiles mnist_test_files(const std::filesystem::path& folder);

/// All images: [n, 28, 28, 1] in [0, 1] (0 is background), 10 classes, "0" to "9". Image names are "FILE#NUMBER" of the
/// file of images, counted from 0.
LabelledImages read_mnist(const MnistFiles& files);

/// Disjoint random parts, e.g. counts = {training, validation}; see split_indices.
/// Errors  as above; ArgumentError if there are too few images.
std::vector<LabelledImages> read_mnist(const MnistFiles& files, std::span<const std::size_t> counts,
                                       ClassBalance balance, std::uint64_t seed);

}  // namespace widelimit::data
