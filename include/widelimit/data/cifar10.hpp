#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "widelimit/data/labelled_images.hpp"

/// CIFAR-10 in its binary format: records of 3,073 bytes, one label byte and 32 x 32 red, green and blue
/// values, channel after channel, row by row. A file may hold any positive number of whole records.
///
/// Every reader throws DataError naming file, offset, what was expected and what was found: a missing or
/// empty file, a size that is no multiple of 3,073, a label above 9.
///
/// Source  A. Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", 2009.
namespace widelimit::data {

/// The files data_batch_1.bin ... data_batch_5.bin that exist in `folder`, in this order. DataError if none
/// does.
std::vector<std::filesystem::path> cifar10_training_files(const std::filesystem::path& folder);

/// The file test_batch.bin in `folder`. DataError if it is missing.
std::vector<std::filesystem::path> cifar10_test_files(const std::filesystem::path& folder);

/// All records of the files in order: images [n, 32, 32, 3] (red, green, blue) in [0, 1], 10 classes. Image names are
/// "FILE#RECORD", records counted from 0. Class names are the lines of batches.meta.txt beside the first file
/// (DataError unless there are ten that are not empty), or, where it is missing, the official ones.
LabelledImages read_cifar10(std::span<const std::filesystem::path> files);

/// Disjoint random parts of all records together, e.g. counts = {training, validation}; see split_indices.
/// Only what is chosen is converted to float: memory is 3 KB a record of the files and 12 KB a chosen image.
/// Errors  as above; ArgumentError if there are too few records.
std::vector<LabelledImages> read_cifar10(std::span<const std::filesystem::path> files,
                                         std::span<const std::size_t> counts, ClassBalance balance,
                                         std::uint64_t seed);

}  // namespace widelimit::data
