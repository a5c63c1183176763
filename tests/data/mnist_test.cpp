#include "widelimit/data/mnist.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "data/encoded.hpp"
#include "data/temporary_folder.hpp"
#include "support/error_message.hpp"
#include "widelimit/error.hpp"

using namespace widelimit::data;
using widelimit::DataError;

namespace {

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

std::string image_file(std::uint32_t count) {
  std::string bytes = big_endian(0x803) + big_endian(count) + big_endian(28) + big_endian(28);
  for (std::uint32_t i = 0; i < count * 784; ++i) bytes += static_cast<char>(i % 251);
  return bytes;
}

std::string label_file(std::uint32_t count) {
  std::string bytes = big_endian(0x801) + big_endian(count);
  for (std::uint32_t i = 0; i < count; ++i) bytes += static_cast<char>(i % 10);
  return bytes;
}

/// The message of the error that reading these two files throws, with the file's name as "images" or
/// "labels".
std::string read_error(const std::string& images, const std::string& labels) {
  const TemporaryFolder folder;
  const MnistFiles files{folder.write("images", images), folder.write("labels", labels)};
  try {
    read_mnist(files);
  } catch (const DataError& error) {
    std::string message = error.what();
    const std::string prefix = folder.path().string() + "/";
    REQUIRE(message.starts_with(prefix));
    for (auto at = message.find(prefix); at != std::string::npos; at = message.find(prefix)) {
      message.erase(at, prefix.size());
    }
    return message;
  }
  return "no error";
}

std::string with(std::string bytes, std::size_t offset, const std::string& replacement) {
  return bytes.replace(offset, replacement.size(), replacement);
}

}  // namespace

TEST_CASE("mnist: plain and packed files give the same images, whatever their names") {
  const TemporaryFolder folder;
  const MnistFiles plain{folder.write("i", image_file(12)), folder.write("l", label_file(12))};
  const MnistFiles gzip{folder.write("i2", packed(image_file(12))),
                        folder.write("l.dat", packed(label_file(12)))};
  const auto data = read_mnist(plain);
  REQUIRE(data.images.shape() == std::array<std::size_t, 4>{12, 28, 28, 1});
  CHECK(data.classes == 10);
  for (std::size_t i = 0; i < 12; ++i) {
    CHECK(data.labels[i] == static_cast<int>(i % 10));
    CHECK(data.images(i, 3, 5, 0) == static_cast<float>((i * 784 + 3 * 28 + 5) % 251) / 255.0F);
  }
  const auto unpacked = read_mnist(gzip);
  CHECK(unpacked.images == data.images);
  CHECK(unpacked.labels == data.labels);

  // A gzip file may consist of several members; together they are one file.
  const std::string bytes = image_file(12);
  const MnistFiles members{folder.write("m", packed(bytes.substr(0, 1000)) + packed(bytes.substr(1000))),
                           plain.labels};
  CHECK(read_mnist(members).images == data.images);

  const auto parts = read_mnist(plain, std::vector<std::size_t>{5, 7}, ClassBalance::as_drawn, 4);
  const auto expected = random_split(data, std::vector<std::size_t>{5, 7}, ClassBalance::as_drawn, 4);
  CHECK(parts[1].images == expected[1].images);
  CHECK(parts[1].labels == expected[1].labels);
}

TEST_CASE("mnist: the files of a folder are found plain or packed") {
  const TemporaryFolder folder;
  const auto images = folder.write("train-images-idx3-ubyte.gz", packed(image_file(2)));
  const auto labels = folder.write("train-labels-idx1-ubyte", label_file(2));
  const auto files = mnist_training_files(folder.path());
  CHECK(files.images == images);
  CHECK(files.labels == labels);
  CHECK(read_mnist(files).size() == 2);
  const std::string message = folder.path().string() +
                              ": expected t10k-images-idx3-ubyte or t10k-images-idx3-ubyte.gz, found neither";
  CHECK_THROWS_WITH_AS(mnist_test_files(folder.path()), message.c_str(), DataError);
}

TEST_CASE("mnist: wrong headers name offset, expected and found") {
  const std::string images = image_file(3), labels = label_file(3);
  CHECK(read_error(images, labels) == "no error");
  CHECK(read_error(labels, labels) ==
        "images: offset 0: expected the magic number of an IDX image file 0x00000803, found 0x00000801");
  CHECK(read_error(images, images) ==
        "labels: offset 0: expected the magic number of an IDX label file 0x00000801, found 0x00000803");
  CHECK(read_error(with(images, 8, big_endian(27)), labels) ==
        "images: offset 8: expected a number of rows of 28, found 27");
  CHECK(read_error(with(images, 12, big_endian(29)), labels) ==
        "images: offset 12: expected a number of columns of 28, found 29");
  CHECK(read_error("", labels) ==
        "images: offset 0: expected 4 bytes of the magic number of an IDX image file, found 0 before the end "
        "of the "
        "file");
  CHECK(read_error(images.substr(0, 6), labels) ==
        "images: offset 4: expected 4 bytes of the number of images, found 2 before the end of the file");
}

TEST_CASE("mnist: truncated, oversized and mismatched files") {
  const std::string images = image_file(3), labels = label_file(3);
  const std::string needs = "expected 2352 bytes for 3 images of 28 x 28, found ";
  CHECK(read_error(images.substr(0, images.size() - 1), labels) ==
        "images: offset 2367: " + needs + "2351 (the file is truncated)");
  CHECK(read_error(images + "x", labels) ==
        "images: offset 2368: " + needs + "2353 (the file is longer than its header says)");
  CHECK(read_error(packed(images + "x"), labels) ==
        "images: offset 2368: " + needs + "2353 (the unpacked file is longer than its header says)");
  CHECK(read_error(with(images, 4, big_endian(0xffffffff)), labels) ==
        "images: offset 2368: expected 3367254359280 bytes for 4294967295 images of 28 x 28, found 2352 (the "
        "file is "
        "truncated)");
  CHECK(
      read_error(images, labels + "x") ==
      "labels: offset 11: expected 3 bytes for 3 labels, found 4 (the file is longer than its header says)");
  CHECK(read_error(images, label_file(4)) ==
        "labels: offset 4: expected 3 labels, as many as images in images, found 4");
  CHECK(read_error(images, with(labels, 9, "\x0a")) ==
        "labels: offset 9: expected a label from 0 to 9, found 10");
}

TEST_CASE("mnist: a gzip file that unpacks to more than its header says is refused before it is unpacked") {
  const std::string labels = label_file(3), filling(std::size_t{64} << 20, '\0');
  CHECK(read_error(packed(with(image_file(3), 0, "\x01") + filling), labels)
            .starts_with("images: offset 0: expected "));
  const std::string message = read_error(packed(image_file(3) + filling), labels);
  CHECK(message.find("at most 1050944 bytes of unpacked data, found more") != std::string::npos);
}

TEST_CASE("mnist: sparse files are judged by their sizes") {
  const TemporaryFolder folder;
  const auto images = folder.write("images", image_file(3)), labels = folder.write("labels", label_file(3));
  std::filesystem::resize_file(images, std::uintmax_t{1} << 40);
  CHECK(widelimit::testing::error_message<DataError>([&] {
          return read_mnist({images, labels});
        }).find("found 1099511627760 (the file is longer than its header says)") != std::string::npos);
}

TEST_CASE("mnist: damaged gzip data") {
  const std::string labels = label_file(3), gzip = packed(image_file(3));
  CHECK(read_error(gzip, labels) == "no error");
  for (const std::size_t length :
       {gzip.size() - 1, gzip.size() - 8, gzip.size() / 2, std::size_t{12}, std::size_t{2}}) {
    CHECK(read_error(gzip.substr(0, length), labels) ==
          fmt::format(
              "images: offset {}: expected more gzip data, found the end of the file (the file is truncated)",
              length));
  }
  CHECK(read_error(gzip + "xyz", labels) ==
        fmt::format(
            "images: offset {}: expected the end of the file or another gzip member, found 3 other bytes "
            "(the file is longer than its content)",
            gzip.size()));
  std::string checksum = gzip;
  checksum[gzip.size() - 8] = static_cast<char>(checksum[gzip.size() - 8] ^ 1);
  const std::string message = read_error(checksum, labels);
  CHECK(message.ends_with("expected valid gzip data, found corrupt data (incorrect data check)"));
}
