#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <utility>

#include "data/fixtures.hpp"
#include "widelimit/data/preprocessing.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/random_stream.hpp"

using widelimit::data::resize_anti_aliased;
using widelimit::data_test::random_images;
using Images = xt::xtensor<float, 4>;
using Size = std::pair<std::size_t, std::size_t>;

namespace {

// Results lie in [0, 1] and are rounded to float once; sums run in double.
constexpr double resize_rounding = 1.2e-7;

/// Walks to `target` from pixel 0, turning round at the end pixels.
std::size_t bounce(int target, std::size_t size) {
  if (size == 1) return 0;
  int at = 0, step = target < 0 ? -1 : 1;
  for (int i = 0; i < std::abs(target); ++i) {
    if (at + step < 0 || at + step >= static_cast<int>(size)) step = -step;
    at += step;
  }
  return static_cast<std::size_t>(at);
}

/// The value of one output pixel, straight from the definition: a plane of blurred pixels, four of them
/// mixed.
double slow_pixel(const Images& images, std::size_t n, std::size_t channel, Size size, std::size_t row,
                  std::size_t column) {
  const std::size_t height = images.shape()[1], width = images.shape()[2];
  const double vertical = static_cast<double>(height) / static_cast<double>(size.first);
  const double horizontal = static_cast<double>(width) / static_cast<double>(size.second);
  const double deviation_v = std::max(0.0, (vertical - 1) / 2),
               deviation_h = std::max(0.0, (horizontal - 1) / 2);
  const auto gauss = [](int offset, double deviation) {
    if (deviation == 0) return offset == 0 ? 1.0 : 0.0;
    return std::exp(-0.5 * offset * offset / (deviation * deviation));
  };
  const int radius_v = static_cast<int>(std::lround(4 * deviation_v)),
            radius_h = static_cast<int>(std::lround(4 * deviation_h));
  const auto blurred = [&](int y, int x) {
    const auto at_y = static_cast<int>(bounce(y, height)), at_x = static_cast<int>(bounce(x, width));
    double sum = 0, weights = 0;
    for (int i = -radius_v; i <= radius_v; ++i) {
      for (int j = -radius_h; j <= radius_h; ++j) {
        const double weight = gauss(i, deviation_v) * gauss(j, deviation_h);
        sum += weight * images(n, bounce(at_y + i, height), bounce(at_x + j, width), channel);
        weights += weight;
      }
    }
    return sum / weights;
  };
  const double y = (static_cast<double>(row) + 0.5) * vertical - 0.5;
  const double x = (static_cast<double>(column) + 0.5) * horizontal - 0.5;
  const int top = static_cast<int>(std::floor(y)), left = static_cast<int>(std::floor(x));
  const double down = y - top, across = x - left;
  return (1 - down) * ((1 - across) * blurred(top, left) + across * blurred(top, left + 1)) +
         down * ((1 - across) * blurred(top + 1, left) + across * blurred(top + 1, left + 1));
}

}  // namespace

TEST_CASE("resize: agrees with the definition evaluated pixel by pixel") {
  const Images images = random_images({2, 9, 12, 3}, 1);
  for (const Size& size :
       {Size{3, 4}, Size{4, 5}, Size{9, 6}, Size{1, 1}, Size{2, 1}, Size{8, 11}, Size{5, 17}}) {
    const Images result = resize_anti_aliased(images, size.first, size.second);
    REQUIRE(result.shape() == std::array<std::size_t, 4>{2, size.first, size.second, 3});
    double largest = 0;
    for (std::size_t n = 0; n < 2; ++n) {
      for (std::size_t row = 0; row < size.first; ++row) {
        for (std::size_t column = 0; column < size.second; ++column) {
          for (std::size_t c = 0; c < 3; ++c) {
            const double expected = slow_pixel(images, n, c, size, row, column);
            largest = std::max(largest, std::abs(expected - result(n, row, column, c)));
          }
        }
      }
    }
    CHECK(largest < resize_rounding);
  }
}

TEST_CASE("resize: four pixels to two by hand") {
  // Factor 2: standard deviation 1/2, radius 2, weights 1, e^-2, e^-8; the new pixels lie at 0.5 and 2.5.
  const double w1 = std::exp(-2.0), w2 = std::exp(-8.0), sum = 1 + 2 * w1 + 2 * w2;
  const Images result = resize_anti_aliased(Images{{{{1}, {0}, {0}, {0}}}}, 1, 2);
  CHECK(std::abs(result(0, 0, 0, 0) - (1 + w1) / sum / 2) < resize_rounding);
  CHECK(std::abs(result(0, 0, 1, 0) - w2 / sum / 2) < resize_rounding);
  // The second pixel is also its own mirror image's neighbour: it counts twice for the first one.
  const Images inner = resize_anti_aliased(Images{{{{0}, {1}, {0}, {0}}}}, 1, 2);
  CHECK(std::abs(inner(0, 0, 0, 0) - (2 * w1 + 1 + w2) / sum / 2) < resize_rounding);
}

TEST_CASE("resize: enlarging is linear interpolation with a mirrored border") {
  const Images result = resize_anti_aliased(Images{{{{0}, {1}}}}, 1, 4);
  CHECK(result == Images{{{{0.25F}, {0.25F}, {0.75F}, {0.75F}}}});
}

TEST_CASE("resize: an equal size changes nothing") {
  const Images images = random_images({2, 7, 5, 3}, 2);
  CHECK(resize_anti_aliased(images, 7, 5) == images);
}

TEST_CASE("resize: constant images stay constant and the mean is nearly kept") {
  Images constant = Images::from_shape({1, 32, 32, 3});
  constant.fill(0.3F);
  for (const float value : resize_anti_aliased(constant, 8, 5))
    CHECK(std::abs(value - 0.3) < resize_rounding);

  // For a ramp the blur is symmetric away from the border: inner pixels take the ramp's value at their
  // centre.
  Images ramp = Images::from_shape({1, 32, 32, 1});
  for (std::size_t i = 0; i < ramp.size(); ++i) ramp.data()[i] = static_cast<float>(i % 32) / 32;
  const Images small = resize_anti_aliased(ramp, 8, 8);
  for (std::size_t c = 2; c < 6; ++c) {
    CHECK(std::abs(small(0, 3, c, 0) - (4 * static_cast<double>(c) + 1.5) / 32) < resize_rounding);
  }
  double mean = 0;
  for (const float value : small) mean += value / 64;
  CHECK(std::abs(mean - 15.5 / 32) < 1e-6);  // the border's errors cancel left and right
}

TEST_CASE("resize: a pattern finer than the new pixels is blurred away, not aliased") {
  Images stripes = Images::from_shape({1, 32, 32, 1});
  for (std::size_t i = 0; i < stripes.size(); ++i) stripes.data()[i] = static_cast<float>(i % 3 == 0);
  // Every third column, but 32 / 8 = 4: taking every fourth pixel would leave stripes of full height. The
  // blur multiplies a wave of period 3 by exp(-2 pi^2 1.5^2 / 9) = 0.0072 (its amplitude here: 2/3).
  const Images small = resize_anti_aliased(stripes, 8, 8);
  for (std::size_t c = 2; c < 6; ++c) CHECK(std::abs(small(0, 4, c, 0) - 1.0 / 3) < 0.0072 * 2 / 3);
}

TEST_CASE("resize: sizes of 0 are errors") {
  const Images images = random_images({1, 4, 4, 1}, 3);
  CHECK_THROWS_WITH_AS(resize_anti_aliased(images, 0, 4),
                       "resize_anti_aliased: sizes must be positive, got 4 x 4 to 0 x 4",
                       widelimit::ArgumentError);
  CHECK_THROWS_AS(resize_anti_aliased(Images::from_shape({1, 4, 0, 1}), 2, 2), widelimit::ArgumentError);
  CHECK(resize_anti_aliased(Images::from_shape({0, 4, 4, 1}), 2, 2).shape()[1] == 2);
}
