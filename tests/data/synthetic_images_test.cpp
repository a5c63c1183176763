#include "widelimit/data/synthetic_images.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

using namespace widelimit::data;

namespace {

/// Mean products of the slopes of (red - blue): in x, in y, mixed.
struct Slopes {
  double xx = 0, yy = 0, xy = 0;
};

Slopes mean_slopes(const LabelledImages& data, std::size_t n) {
  const auto tone = [&](std::size_t row, std::size_t column) {
    return data.images(n, row, column, 0) - data.images(n, row, column, 2);
  };
  Slopes slopes;
  for (std::size_t row = 2; row < 30; ++row) {
    for (std::size_t column = 2; column < 30; ++column) {
      const double x = tone(row, column + 2) - tone(row, column - 2);
      const double y = tone(row + 2, column) - tone(row - 2, column);
      slopes.xx += x * x;
      slopes.yy += y * y;
      slopes.xy += x * y;
    }
  }
  return slopes;
}

}  // namespace

TEST_CASE("synthetic images: equal seeds give equal images, a longer set begins with the shorter one") {
  const auto data = generate_synthetic_images(40, 3);
  REQUIRE(data.images.shape() == std::array<std::size_t, 4>{40, 32, 32, 3});
  CHECK(data.size() == 40);
  CHECK(data.classes == 10);
  const auto shorter = generate_synthetic_images(25, 3);
  CHECK(std::equal(shorter.images.begin(), shorter.images.end(), data.images.begin()));
  CHECK(std::equal(shorter.labels.begin(), shorter.labels.end(), data.labels.begin()));
  const auto other = generate_synthetic_images(25, 4);
  CHECK(other.images != shorter.images);
  CHECK(other.labels != shorter.labels);
  CHECK(generate_synthetic_images(0, 3).size() == 0);
}

TEST_CASE("synthetic images: ten consecutive images hold each class once, values lie in [0, 1]") {
  const auto data = generate_synthetic_images(100, 1);
  for (std::size_t i = 0; i < 100; i += 10) {
    std::vector<int> labels(data.labels.begin() + static_cast<std::ptrdiff_t>(i),
                            data.labels.begin() + static_cast<std::ptrdiff_t>(i + 10));
    CHECK_FALSE(std::is_sorted(labels.begin(), labels.end()));
    std::sort(labels.begin(), labels.end());
    CHECK(labels == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  }
  CHECK(*std::min_element(data.images.begin(), data.images.end()) >= 0);
  CHECK(*std::max_element(data.images.begin(), data.images.end()) <= 1);
  std::set<float> first_values;
  for (std::size_t i = 0; i < 100; ++i) first_values.insert(data.images(i, 16, 16, 0));
  CHECK(first_values.size() > 90);  // no image is another one's copy
}

TEST_CASE("synthetic images: pooled slopes tell the direction of the stripes, the mean image does not") {
  const auto data = generate_synthetic_images(1000, 2);
  std::array<int, 4> right{};
  for (std::size_t i = 0; i < data.size(); ++i) {
    const auto label = static_cast<std::size_t>(data.labels[i]);
    if (label >= 4) continue;
    const Slopes slopes = mean_slopes(data, i);
    // Angle of the steepest direction: stripes at 0 degrees change along y, at 90 along x.
    const double steepest = 0.5 * std::atan2(2 * slopes.xy, slopes.xx - slopes.yy);
    const double stripe = steepest + std::numbers::pi / 2;
    const double error =
        std::remainder(stripe + static_cast<double>(label) * std::numbers::pi / 4, std::numbers::pi);
    right[label] += std::abs(error) < std::numbers::pi / 8;
  }
  for (const int count : right) CHECK(count >= 90);
}
