#include "widelimit/data/cifar10.hpp"

#include <fmt/format.h>

#include "data/byte_images.hpp"
#include "data/input_file.hpp"
#include "data/text_lines.hpp"
#include "text/utf8.hpp"
#include "widelimit/error.hpp"

namespace widelimit::data {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t cifar_side = 32, cifar_channels = 3, cifar_classes = 10;
constexpr std::size_t image_bytes = cifar_side * cifar_side * cifar_channels;
// A record is a label and then the red, the green and the blue values, each row by row.
constexpr std::size_t record_bytes = 1 + image_bytes;

void append_records(const fs::path& path, ByteImages& images) {
  InputFile file(path);
  if (file.size() == 0 || file.size() % record_bytes != 0) {
    const std::uint64_t whole = file.size() / record_bytes;
    fail_at(
        path, whole * record_bytes,
        fmt::format("one or more whole records of {} bytes (1 label, {} values)", record_bytes, image_bytes),
        fmt::format("{} bytes in all: {} records and {} bytes", file.size(), whole,
                    file.size() % record_bytes));
  }
  const auto bytes = file.read_all();
  images.values.reserve(images.values.size() + bytes.size());
  for (std::size_t at = 0; at < bytes.size(); at += record_bytes) {
    if (bytes[at] >= cifar_classes) fail_at(path, at, "a label from 0 to 9", fmt::format("{}", bytes[at]));
    images.labels.push_back(bytes[at]);
    images.names.push_back(fmt::format("{}#{}", path.filename().string(), at / record_bytes));
    const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(at + 1);
    images.values.insert(images.values.end(), first, first + static_cast<std::ptrdiff_t>(image_bytes));
  }
}

/// As batches.meta.txt names them.
std::vector<std::string> read_class_names(const fs::path& path) {
  std::vector<std::string> names;
  TextLines lines(path);
  while (const auto line = lines.next())
    if (const auto invalid = first_invalid_utf8(*line))
      throw DataError(fmt::format("{}: line {}: expected UTF-8, found {}", path.string(), lines.line(),
                                  byte_text((*line)[*invalid])));
    else if (!line->empty())
      names.emplace_back(*line);
  if (names.size() != cifar_classes)
    throw DataError(fmt::format("{}: expected {} names of classes, one a line, found {}", path.string(),
                                cifar_classes, names.size()));
  return names;
}

/// Names from batches.meta.txt beside the file; without it, those that the data set has.
std::vector<std::string> class_names_beside(const fs::path& file) {
  const fs::path path = file.parent_path() / "batches.meta.txt";
  std::error_code error;
  if (fs::exists(path, error)) return read_class_names(path);
  return {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
}

ByteImages read_records(std::span<const fs::path> files) {
  if (files.empty()) throw ArgumentError("read_cifar10: expected at least one file, got none");
  ByteImages images{cifar_side, cifar_side, cifar_channels, ByteImages::Order::channels_first,
                    {},         {},         cifar_classes};
  images.class_names = class_names_beside(files.front());
  for (const fs::path& path : files) append_records(path, images);
  return images;
}

}  // namespace

std::vector<fs::path> cifar10_training_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (int batch = 1; batch <= 5; ++batch) {
    fs::path path = folder / fmt::format("data_batch_{}.bin", batch);
    std::error_code error;
    if (fs::exists(path, error)) files.push_back(std::move(path));
  }
  if (files.empty()) {
    throw DataError(fmt::format(
        "{}: expected one or more of data_batch_1.bin to data_batch_5.bin, found none", folder.string()));
  }
  return files;
}

std::vector<fs::path> cifar10_test_files(const fs::path& folder) {
  fs::path path = folder / "test_batch.bin";
  std::error_code error;
  if (!fs::exists(path, error)) {
    throw DataError(fmt::format("{}: expected a file, found none", path.string()));
  }
  return {std::move(path)};
}

LabelledImages read_cifar10(std::span<const fs::path> files) { return to_float(read_records(files)); }

std::vector<LabelledImages> read_cifar10(std::span<const fs::path> files, std::span<const std::size_t> counts,
                                         ClassBalance balance, std::uint64_t seed) {
  return draw(read_records(files), counts, balance, seed);
}

}  // namespace widelimit::data
