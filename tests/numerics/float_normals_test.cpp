#include "numerics/float_normals.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "numerics/block_sums.hpp"

using namespace widelimit;

namespace {

std::vector<float> float_normals(std::size_t count, std::uint64_t seed, std::uint64_t stream) {
  std::vector<float> numbers(count);
  numerics::fill_normals(numbers, seed, stream);
  return numbers;
}

}  // namespace

TEST_CASE("float normals: the first numbers of a stream do not depend on how many are drawn") {
  const std::vector<float> many = float_normals(2000, 3, 5);
  for (const std::size_t count : {1, 511, 512, 513, 1999}) {
    CAPTURE(count);
    const std::vector<float> few = float_normals(count, 3, 5);
    CHECK(std::equal(few.begin(), few.end(), many.begin()));
  }
}

TEST_CASE("float normals: seeds and streams differ, beyond 32 bits too") {
  const std::vector<float> one = float_normals(64, 3, 5);
  const std::uint64_t far = std::uint64_t{1} << 32;
  CHECK(float_normals(64, 3, 5) == one);
  CHECK(float_normals(64, 4, 5) != one);
  CHECK(float_normals(64, 3, 6) != one);
  CHECK(float_normals(64, 3 + far, 5) != one);
  CHECK(float_normals(64, 3, 5 + far) != one);
}

TEST_CASE("float normals: moments, and independence of neighbours") {
  constexpr std::size_t count = 400'000;
  const std::vector<float> numbers = float_normals(count, 11, 0);
  numerics::MonteCarloSums first, second, fourth, neighbours;
  for (std::size_t i = 0; i + 1 < count; ++i) {
    const double x = numbers[i], y = numbers[i + 1];
    first.add(x);
    second.add(x * x);
    fourth.add(x * x * x * x);
    neighbours.add(x * y);
  }
  CHECK(std::abs(first.mean()) < 5 * first.standard_error());
  CHECK(std::abs(second.mean() - 1) < 5 * second.standard_error());
  CHECK(std::abs(fourth.mean() - 3) < 5 * fourth.standard_error());
  CHECK(std::abs(neighbours.mean()) < 5 * neighbours.standard_error());
}
