#include "widelimit/data/mnist.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "data/byte_images.hpp"
#include "data/gzip.hpp"
#include "data/input_file.hpp"
#include "widelimit/error.hpp"

namespace widelimit::data {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t mnist_side = 28, mnist_classes = 10;
// IDX magic numbers: two zero bytes, 8 for unsigned bytes, and the number of axes.
constexpr std::uint32_t images_magic = 0x803, labels_magic = 0x801;

/// An IDX file, unpacked where needed. All fields of its header are big-endian 32-bit numbers.
class IdxFile {
 public:
  /// Reads the header of so many bytes: it is judged before anything else is read or unpacked.
  IdxFile(const fs::path& path, std::size_t header_bytes) : path_{path}, file_(path) {
    bytes_.resize(std::min<std::uint64_t>(header_bytes, file_.size()));
    file_.read(0, bytes_.data(), bytes_.size(), "header");
    if (!is_gzip(bytes_)) return;
    bytes_ = unpack_gzip_start(file_, header_bytes);
    is_packed_ = true;
    unpacked_ = " unpacked";
  }

  std::uint32_t field(std::size_t offset, std::string_view what) const {
    if (bytes_.size() < offset + 4) {
      fail_at(path_, offset, fmt::format("4 bytes of {}", what),
              fmt::format("{} before the end of the{} file", bytes_.size() - offset, unpacked_));
    }
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) value = value << 8 | bytes_[offset + i];
    return value;
  }

  void expect_field(std::size_t offset, std::uint32_t wanted, std::string_view what) const {
    const std::uint32_t found = field(offset, what);
    if (found == wanted) return;
    const bool hexadecimal = offset == 0;
    fail_at(path_, offset,
            hexadecimal ? fmt::format("{} 0x{:08x}", what, wanted) : fmt::format("{} {}", what, wanted),
            hexadecimal ? fmt::format("0x{:08x}", found) : fmt::format("{}", found));
  }

  /// What follows the header: exactly `count` items of `item_bytes` each. Once.
  std::span<const std::uint8_t> items(std::uint32_t count, std::size_t item_bytes, std::string_view what) {
    const std::uint64_t offset = bytes_.size(), wanted = std::uint64_t{count} * item_bytes;
    // Of a little more than should be there, the error says how much it is.
    constexpr std::uint64_t little = std::uint64_t{1} << 20, most = std::uint64_t{2} << 30;
    if (is_packed_) bytes_ = unpack_gzip(file_, std::min(offset + wanted + little, most));
    const std::uint64_t held = (is_packed_ ? bytes_.size() : file_.size()) - offset;
    if (held != wanted) {
      fail_at(path_, offset + std::min(held, wanted), fmt::format("{} bytes for {} {}", wanted, count, what),
              fmt::format("{} (the{} file is {})", held, unpacked_,
                          held < wanted ? "truncated" : "longer than its header says"));
    }
    if (!is_packed_) bytes_ = file_.read_all();
    return std::span(bytes_).subspan(offset);
  }

 private:
  fs::path path_;
  InputFile file_;
  std::vector<std::uint8_t> bytes_;  ///< The header, then all.
  bool is_packed_ = false;           ///< By gzip.
  std::string_view unpacked_;
};

ByteImages read_images(const MnistFiles& files) {
  ByteImages images{mnist_side, mnist_side, 1, ByteImages::Order::channels_last, {}, {}, mnist_classes};

  for (std::size_t c = 0; c < mnist_classes; ++c) images.class_names.push_back(std::to_string(c));

  IdxFile image_file(files.images, 16);
  image_file.expect_field(0, images_magic, "the magic number of an IDX image file");
  const std::uint32_t count = image_file.field(4, "the number of images");
  image_file.expect_field(8, mnist_side, "a number of rows of");
  image_file.expect_field(12, mnist_side, "a number of columns of");
  const auto values = image_file.items(count, mnist_side * mnist_side, "images of 28 x 28");
  images.values.assign(values.begin(), values.end());

  IdxFile label_file(files.labels, 8);
  label_file.expect_field(0, labels_magic, "the magic number of an IDX label file");
  const std::uint32_t labels = label_file.field(4, "the number of labels");
  const auto label_values = label_file.items(labels, 1, "labels");
  if (labels != count) {
    fail_at(files.labels, 4, fmt::format("{} labels, as many as images in {}", count, files.images.string()),
            fmt::format("{}", labels));
  }
  for (std::size_t i = 0; i < label_values.size(); ++i) {
    if (label_values[i] >= mnist_classes) {
      fail_at(files.labels, 8 + i, "a label from 0 to 9", fmt::format("{}", label_values[i]));
    }
    images.labels.push_back(label_values[i]);
    images.names.push_back(fmt::format("{}#{}", files.images.filename().string(), i));
  }
  return images;
}

constexpr std::string_view training_images = "train-images-idx3-ubyte";
constexpr std::string_view training_labels = "train-labels-idx1-ubyte";

/// The file of this name, plain or with .gz added; the plain one comes first.
std::optional<fs::path> find_plain_or_packed(const fs::path& folder, std::string_view name) {
  for (const std::string_view ending : {"", ".gz"}) {
    fs::path path = folder / fmt::format("{}{}", name, ending);
    std::error_code error;
    if (fs::exists(path, error)) return path;
  }
  return std::nullopt;
}

fs::path plain_or_packed(const fs::path& folder, std::string_view name) {
  if (const auto path = find_plain_or_packed(folder, name)) return *path;
  throw DataError(fmt::format("{}: expected {} or {}.gz, found neither", folder.string(), name, name));
}

}  // namespace

MnistFiles mnist_training_files(const fs::path& folder) {
  return {plain_or_packed(folder, training_images), plain_or_packed(folder, training_labels)};
}

bool holds_mnist_training_files(const fs::path& folder) {
  return find_plain_or_packed(folder, training_images) || find_plain_or_packed(folder, training_labels);
}

MnistFiles mnist_test_files(const fs::path& folder) {
  return {plain_or_packed(folder, "t10k-images-idx3-ubyte"),
          plain_or_packed(folder, "t10k-labels-idx1-ubyte")};
}

LabelledImages read_mnist(const MnistFiles& files) { return to_float(read_images(files)); }

std::vector<LabelledImages> read_mnist(const MnistFiles& files, std::span<const std::size_t> counts,
                                       ClassBalance balance, std::uint64_t seed) {
  return draw(read_images(files), counts, balance, seed);
}

}  // namespace widelimit::data
