#include <doctest/doctest.h>

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/program.hpp"

using widelimit::testing::file_text;
using widelimit::testing::lines_of;
using widelimit::testing::run_program;
using widelimit::testing::TemporaryFolder;

namespace {

constexpr std::uint32_t side = 28, classes = 10;

void write_number(std::ofstream& file, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) file.put(static_cast<char>(value >> shift & 0xff));
}

/// Digits of a kind that any kernel tells apart: class c is a bar at rows 2 c + 4 and 2 c + 5, a little
/// longer from image to image. `per_class` images of each class, classes in turn.
void write_set(const TemporaryFolder& folder, const std::string& name, std::uint32_t per_class) {
  std::ofstream images(folder / (name + "-images-idx3-ubyte"), std::ios::binary);
  std::ofstream labels(folder / (name + "-labels-idx1-ubyte"), std::ios::binary);
  const std::uint32_t count = per_class * classes;
  for (const std::uint32_t field : {0x803u, count, side, side}) write_number(images, field);
  for (const std::uint32_t field : {0x801u, count}) write_number(labels, field);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t label = i % classes, length = 12 + i / classes;
    labels.put(static_cast<char>(label));
    for (std::uint32_t row = 0; row < side; ++row)
      for (std::uint32_t column = 0; column < side; ++column)
        images.put(static_cast<char>(row / 2 == label + 2 && column < length ? 255 : 0));
  }
}

std::string command(const TemporaryFolder& folder, const std::string& counts) {
  return "gp --network fcn --kernel nngp --size 14 --data mnist --path " + folder.string() + counts;
}

}  // namespace

TEST_CASE("gp: MNIST files, training and test sets apart") {
  const TemporaryFolder folder;
  write_set(folder, "train", 6);
  write_set(folder, "t10k", 2);
  const auto result = run_program(command(
      folder, " --train 40 --validation 20 --test 20 --no-pictures --out " + (folder / "out").string()));
  CAPTURE(result.errors);
  REQUIRE(result.code == 0);
  CHECK(lines_of(result.output)[0] ==
        "mnist: 40 training, 20 validation, 20 test images of 14x14x1, 10 classes, seed 0, preprocessing "
        "image, "
        "float");
  CHECK(lines_of(result.output)[1].starts_with("amplitude of the kernels: "));  // No note before it.
  const auto results = nlohmann::json::parse(file_text(folder / "out/results.json"));
  CHECK(results["results"][0]["accuracy"] == 1);
}

TEST_CASE("gp: MNIST without training files is split, and says so") {
  const TemporaryFolder folder;
  write_set(folder, "t10k", 4);
  const auto result = run_program(command(folder, " --train 20 --validation 10 --test 10"));
  CAPTURE(result.errors);
  REQUIRE(result.code == 0);
  CHECK(lines_of(result.output)[0].starts_with("mnist: 20 training, 10 validation, 10 test images"));
  CHECK(lines_of(result.output)[1].find("no train-images-idx3-ubyte") != std::string::npos);
  CHECK(result.output.find("100.00 %") != std::string::npos);

  const auto too_many = run_program(command(folder, " --train 20 --validation 10 --test 20"));
  CHECK(too_many.code == 1);
  CHECK(too_many.errors.find("only 0 are left") != std::string::npos);
}

TEST_CASE("gp: half a pair of MNIST files is an error, not a reason to split") {
  const TemporaryFolder folder;
  write_set(folder, "train", 2);
  write_set(folder, "t10k", 2);
  std::filesystem::remove(folder / "train-labels-idx1-ubyte");
  const auto result = run_program(command(folder, " --train 10 --validation 10 --test 10"));
  CHECK(result.code == 1);
  CHECK(result.errors.find("expected train-labels-idx1-ubyte or train-labels-idx1-ubyte.gz") !=
        std::string::npos);
}
