#include "widelimit/data/cifar10.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "data/temporary_folder.hpp"
#include "widelimit/error.hpp"

using namespace widelimit::data;
using widelimit::DataError;

namespace {

using Paths = std::vector<std::filesystem::path>;

unsigned char value_at(std::size_t record, std::size_t channel, std::size_t row, std::size_t column) {
  return static_cast<unsigned char>(record * 7 + channel * 101 + row * 13 + column * 3);
}

/// Records whose labels count up from `first` modulo 10 and whose values are value_at().
std::string records(std::size_t count, std::size_t first = 0) {
  std::string bytes;
  for (std::size_t i = first; i < first + count; ++i) {
    bytes += static_cast<char>(i % 10);
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t p = 0; p < 1024; ++p) bytes += static_cast<char>(value_at(i, c, p / 32, p % 32));
    }
  }
  return bytes;
}

void check_error(const Paths& files, const std::string& message) {
  CHECK_THROWS_WITH_AS(read_cifar10(files), message.c_str(), DataError);
}

}  // namespace

TEST_CASE("cifar10: records become images with channels last, in order, over several files") {
  const TemporaryFolder folder;
  folder.write("data_batch_2.bin", records(3, 0));
  folder.write("data_batch_5.bin", records(11, 3));
  const auto files = cifar10_training_files(folder.path());
  CHECK(files == Paths{folder.path() / "data_batch_2.bin", folder.path() / "data_batch_5.bin"});
  const LabelledImages data = read_cifar10(files);
  REQUIRE(data.images.shape() == std::array<std::size_t, 4>{14, 32, 32, 3});
  CHECK(data.classes == 10);
  for (std::size_t i = 0; i < 14; ++i) {
    CHECK(data.labels[i] == static_cast<int>(i % 10));
    std::size_t wrong = 0;
    for (std::size_t row = 0; row < 32; ++row) {
      for (std::size_t column = 0; column < 32; ++column) {
        for (std::size_t c = 0; c < 3; ++c) {
          wrong += data.images(i, row, column, c) != static_cast<float>(value_at(i, c, row, column)) / 255.0F;
        }
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("cifar10: random parts are the records that split_indices chooses") {
  const TemporaryFolder folder;
  const Paths files = {folder.write("a.bin", records(40))};
  const auto all = read_cifar10(files);
  const std::vector<std::size_t> counts = {20, 10};
  for (const auto balance : {ClassBalance::as_drawn, ClassBalance::equal}) {
    const auto parts = read_cifar10(files, counts, balance, 9);
    const auto expected = random_split(all, counts, balance, 9);
    for (std::size_t p = 0; p < 2; ++p) {
      CHECK(parts[p].images == expected[p].images);
      CHECK(parts[p].labels == expected[p].labels);
    }
  }
  CHECK_THROWS_WITH_AS(
      read_cifar10(files, std::vector<std::size_t>{50}, ClassBalance::equal, 9),
      "balanced split: part 0 with 50 items asks for 5 of class 0, but of its 4 only 4 are left",
      widelimit::ArgumentError);
}

TEST_CASE("cifar10: damaged files name file, offset, expected and found") {
  const TemporaryFolder folder;
  const auto good = folder.write("good.bin", records(2));
  const std::string expected =
      "expected one or more whole records of 3073 bytes (1 label, 3072 values), found ";
  const auto cut = folder.write("cut.bin", records(2).substr(0, 2 * 3073 - 1));
  check_error({good, cut}, fmt::format("{}: offset 3073: {}6145 bytes in all: 1 records and 3072 bytes",
                                       cut.string(), expected));
  const auto longer = folder.write("longer.bin", records(2) + "x");
  check_error({longer}, fmt::format("{}: offset 6146: {}6147 bytes in all: 2 records and 1 bytes",
                                    longer.string(), expected));
  const auto empty = folder.write("empty.bin", "");
  check_error({empty},
              fmt::format("{}: offset 0: {}0 bytes in all: 0 records and 0 bytes", empty.string(), expected));

  std::string bytes = records(3);
  bytes[3073] = 10;
  const auto label = folder.write("label.bin", bytes);
  check_error({label}, label.string() + ": offset 3073: expected a label from 0 to 9, found 10");
  bytes[3073] = 9;
  CHECK(read_cifar10(Paths{folder.write("label.bin", bytes)}).labels[1] == 9);

  const auto missing = folder.path() / "missing.bin";
  check_error({missing}, missing.string() + ": expected a file, found none");
  CHECK_THROWS_WITH_AS(read_cifar10(Paths{}), "read_cifar10: expected at least one file, got none",
                       widelimit::ArgumentError);
}

TEST_CASE("cifar10: a folder without the files is an error") {
  const TemporaryFolder folder;
  const std::string name = folder.path().string();
  CHECK_THROWS_WITH_AS(
      cifar10_training_files(folder.path()),
      (name + ": expected one or more of data_batch_1.bin to data_batch_5.bin, found none").c_str(),
      DataError);
  CHECK_THROWS_WITH_AS(cifar10_test_files(folder.path()),
                       (name + "/test_batch.bin: expected a file, found none").c_str(), DataError);
  folder.write("test_batch.bin", records(1));
  CHECK(read_cifar10(cifar10_test_files(folder.path())).size() == 1);
}
