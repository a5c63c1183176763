#include "widelimit/numerics/number_range.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "widelimit/error.hpp"

namespace widelimit::numerics {
namespace {

/// Numbers whose least and greatest are at chosen places, of both signs.
template <typename Scalar>
std::vector<Scalar> waves(std::size_t count) {
  std::vector<Scalar> numbers(count);
  for (std::size_t i = 0; i < count; ++i)
    numbers[i] = static_cast<Scalar>(std::sin(0.1 * static_cast<double>(i)) + 0.25);
  return numbers;
}

template <typename Scalar>
void check_range(std::size_t count) {
  CAPTURE(count);
  const std::vector<Scalar> numbers = waves<Scalar>(count);
  const NumberRange range = number_range(numbers.data(), count);
  CHECK(range.smallest == *std::min_element(numbers.begin(), numbers.end()));
  CHECK(range.largest == *std::max_element(numbers.begin(), numbers.end()));
  const double sum = std::accumulate(numbers.begin(), numbers.end(), 0.0);
  CHECK(range.mean == doctest::Approx(sum / static_cast<double>(count)).epsilon(1e-12));
}

TEST_CASE("number range: as plain loops find it, for counts around those of lanes and blocks") {
  for (const std::size_t count : {1, 2, 15, 16, 17, 31, 65535, 65536, 65537, 200003}) {
    check_range<float>(count);
    check_range<double>(count);
  }
}

TEST_CASE("number range: an extreme at any place of a block is found") {
  for (const std::size_t place : {0, 7, 16, 40, 65535, 65536, 70000, 70001}) {
    CAPTURE(place);
    std::vector<float> numbers(70002, 1.0F);
    numbers[place] = -2;
    CHECK(number_range(numbers.data(), numbers.size()).smallest == -2);
    numbers[place] = 5;
    CHECK(number_range(numbers.data(), numbers.size()).largest == 5);
  }
}

TEST_CASE("number range: the same bits for any number of threads") {
  const std::vector<float> numbers = waves<float>(300001);
  const NumberRange one = number_range(numbers.data(), numbers.size(), 1);
  for (const int threads : {0, 2, 3}) {
    const NumberRange many = number_range(numbers.data(), numbers.size(), threads);
    CHECK(many.smallest == one.smallest);
    CHECK(many.mean == one.mean);
    CHECK(many.largest == one.largest);
  }
}

TEST_CASE("number range: NaN is seen in the mean, no numbers are an error") {
  std::vector<double> numbers{1, 3, std::numeric_limits<double>::quiet_NaN()};
  const NumberRange range = number_range(numbers.data(), numbers.size());
  CHECK(range.smallest == 1);
  CHECK(range.largest == 3);
  CHECK(std::isnan(range.mean));
  CHECK_THROWS_WITH_AS(static_cast<void>(number_range(numbers.data(), 0)),
                       "number_range: expected at least one number, got none", ArgumentError);
}

}  // namespace
}  // namespace widelimit::numerics
