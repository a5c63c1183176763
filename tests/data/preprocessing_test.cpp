#include "widelimit/data/preprocessing.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>

#include "data/fixtures.hpp"
#include "widelimit/error.hpp"

using namespace widelimit::data;
using widelimit::ArgumentError;
using widelimit::data_test::random_images;
using Images = xt::xtensor<float, 4>;

namespace {

// Rounding of a float result of size about 1.
constexpr double float_rounding = 2e-7;

}  // namespace

TEST_CASE("standardise: a pixel by hand") {
  const Images images = {{{{0.25F, 0.5F, 1.0F}}}};
  // Mean 7/12, deviations -4/12, -1/12, 5/12, variance (16 + 1 + 25) / 144 / 3.
  const double deviation = std::sqrt(42.0 / 432.0) + 0.5;
  const Images result = standardise(images, StandardisationScope::pixel, 0.5);
  CHECK(std::abs(result(0, 0, 0, 0) + 4.0 / 12 / deviation) < float_rounding);
  CHECK(std::abs(result(0, 0, 0, 1) + 1.0 / 12 / deviation) < float_rounding);
  CHECK(std::abs(result(0, 0, 0, 2) - 5.0 / 12 / deviation) < float_rounding);
}

TEST_CASE("standardise: each scope has mean 0 and mean square 1, and brightness and contrast fall out") {
  const Images images = random_images({3, 5, 4, 3}, 1);
  for (const auto scope : {StandardisationScope::pixel, StandardisationScope::image}) {
    const std::size_t group = scope == StandardisationScope::pixel ? 3 : 60;
    const Images result = standardise(images, scope, 1e-12);
    CHECK(result.shape() == images.shape());
    for (std::size_t at = 0; at < result.size(); at += group) {
      double sum = 0, squares = 0;
      for (std::size_t i = at; i < at + group; ++i) {
        sum += result.data()[i];
        squares += static_cast<double>(result.data()[i]) * result.data()[i];
      }
      const auto count = static_cast<double>(group);
      CHECK(std::abs(sum / count) < float_rounding);
      CHECK(std::abs(squares / count - 1) < 2 * float_rounding);
    }
    const Images changed = standardise(images * 0.5F + 0.25F, scope, 1e-12);
    // The input is rounded to float once more; the narrowest pixel spreads over about 0.01.
    for (std::size_t i = 0; i < result.size(); ++i)
      CHECK(std::abs(changed.data()[i] - result.data()[i]) < 1e-4);
  }
  CHECK(standardise(images) == standardise(images, StandardisationScope::pixel, 1e-5));
  CHECK(standardise(images) != standardise(images, StandardisationScope::image));
}

TEST_CASE("standardise: grey pixels and empty images become exactly 0") {
  Images images = random_images({2, 4, 4, 3}, 2);
  for (std::size_t c = 0; c < 3; ++c) images(0, 1, 2, c) = 0.1F;
  const Images by_pixel = standardise(images);
  for (std::size_t c = 0; c < 3; ++c) CHECK(by_pixel(0, 1, 2, c) == 0);
  CHECK(by_pixel(0, 1, 1, 0) != 0);
  images.fill(0.7F);
  for (const float value : standardise(images, StandardisationScope::image)) CHECK(value == 0);
  CHECK(standardise(Images::from_shape({0, 4, 4, 3})).shape()[0] == 0);
}

TEST_CASE("standardise: wrong arguments") {
  const Images grey = random_images({1, 2, 2, 1}, 3), colour = random_images({1, 2, 2, 3}, 3);
  CHECK_THROWS_WITH_AS(
      standardise(grey),
      "standardise: scope pixel needs two or more channels, got 1; use scope image for grey images",
      ArgumentError);
  CHECK(standardise(grey, StandardisationScope::image).shape() == grey.shape());
  CHECK_THROWS_WITH_AS(standardise(colour, StandardisationScope::pixel, 0),
                       "standardise: deviation_offset must be positive and finite, got 0", ArgumentError);
  CHECK_THROWS_WITH_AS(standardise(colour, StandardisationScope::pixel, std::nan("")),
                       "standardise: deviation_offset must be positive and finite, got nan", ArgumentError);
}

TEST_CASE("channel means: of the training images, taken from any images") {
  const Images train = {{{{1, 10}, {2, 20}}}, {{{3, 30}, {6, 20}}}};
  const auto means = channel_means(train);
  CHECK(means == std::vector<double>{3, 20});
  const auto centred = channel_means(subtract_channel_means(train, means));
  CHECK(centred == std::vector<double>{0, 0});
  const Images test = {{{{4, 4}}}};
  CHECK(subtract_channel_means(test, means) == Images{{{{1, -16}}}});
  CHECK_THROWS_WITH_AS(subtract_channel_means(test, std::vector<double>{1}),
                       "subtract_channel_means: expected 2 means, one a channel, got 1", ArgumentError);
  CHECK_THROWS_WITH_AS(channel_means(Images::from_shape({0, 2, 2, 3})),
                       "channel_means: there are no pixels to take the mean of", ArgumentError);
}
