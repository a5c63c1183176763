// Real files, where the working copy has the project's data folder beside it.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <set>
#include <vector>

#include "data/fixtures.hpp"
#include "widelimit/data/cifar10.hpp"
#include "widelimit/data/mnist.hpp"

using namespace widelimit::data;
using widelimit::data_test::shared_data;
namespace fs = std::filesystem;

namespace {

bool is_missing(const char* name) {
  if (fs::exists(shared_data / name)) return false;
  MESSAGE("skipped: there is no shared data folder with ", name, " beside the source tree");
  return true;
}

std::vector<int> class_counts(const LabelledImages& data) {
  std::vector<int> counts(data.classes, 0);
  for (const int label : data.labels) ++counts[static_cast<std::size_t>(label)];
  return counts;
}

/// Mean and standard deviation of every channel as the data's README states them, with four digits.
void check_channels(const LabelledImages& data, std::array<double, 3> means,
                    std::array<double, 3> deviations) {
  std::array<double, 3> sums{}, squares{};
  for (std::size_t i = 0; i < data.images.size(); ++i) {
    const double value = data.images.data()[i];
    sums[i % 3] += value;
    squares[i % 3] += value * value;
  }
  const std::size_t pixel_count = data.images.size() / 3;
  const auto pixels = static_cast<double>(pixel_count);
  for (std::size_t c = 0; c < 3; ++c) {
    const double mean = sums[c] / pixels;
    CHECK(std::abs(mean - means[c]) < 5.1e-5);
    CHECK(std::abs(std::sqrt(squares[c] / pixels - mean * mean) - deviations[c]) < 5.1e-5);
  }
}

}  // namespace

TEST_CASE("shared cifar10: counts, means and deviations of each file") {
  if (is_missing("cifar10")) return;
  const auto files = cifar10_training_files(shared_data / "cifar10");
  REQUIRE(files.size() == 2);
  const auto first = read_cifar10(std::span(files).first(1));
  CHECK(class_counts(first) == std::vector<int>(10, 600));
  check_channels(first, {0.4920, 0.4839, 0.4489}, {0.2457, 0.2430, 0.2612});
  const auto second = read_cifar10(std::span(files).last(1));
  CHECK(class_counts(second) == std::vector<int>(10, 400));
  check_channels(second, {0.4911, 0.4822, 0.4456}, {0.2459, 0.2428, 0.2600});
  const auto test = read_cifar10(cifar10_test_files(shared_data / "cifar10"));
  CHECK(class_counts(test) == std::vector<int>(10, 200));
  check_channels(test, {0.4944, 0.4861, 0.4529}, {0.2443, 0.2413, 0.2608});
}

TEST_CASE("shared cifar10: training and validation images of one seed are disjoint and balanced") {
  if (is_missing("cifar10")) return;
  const std::vector<std::size_t> counts = {2000, 1000};
  const auto parts =
      read_cifar10(cifar10_training_files(shared_data / "cifar10"), counts, ClassBalance::equal, 1);
  CHECK(class_counts(parts[0]) == std::vector<int>(10, 200));
  CHECK(class_counts(parts[1]) == std::vector<int>(10, 100));
  std::set<std::vector<float>> images;
  for (const auto& part : parts) {
    for (std::size_t i = 0; i < part.size(); ++i) {
      const float* image = part.images.data() + i * 3072;
      images.emplace(image, image + 3072);
    }
  }
  CHECK(images.size() == 3000);
}

TEST_CASE("shared mnist: the digits of the test set") {
  if (is_missing("mnist")) return;
  const auto data = read_mnist(mnist_test_files(shared_data / "mnist"));
  REQUIRE(data.images.shape() == std::array<std::size_t, 4>{10'000, 28, 28, 1});
  CHECK(class_counts(data) == std::vector<int>{980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009});
  // Background at the corners, a full white somewhere, ink in 10 to 25 % of all pixels.
  std::size_t inked = 0;
  float largest = 0, corners = 0;
  for (const float value : data.images) {
    inked += value > 0;
    largest = std::max(largest, value);
  }
  for (std::size_t i = 0; i < data.size(); ++i) corners = std::max(corners, data.images(i, 0, 0, 0));
  CHECK(largest == 1);
  CHECK(corners == 0);
  CHECK(inked > data.images.size() / 10);
  CHECK(inked < data.images.size() / 4);
}
