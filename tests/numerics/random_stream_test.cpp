#include "widelimit/numerics/random_stream.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "widelimit/error.hpp"

using widelimit::numerics::RandomStream;

TEST_CASE("random stream: equal seeds give equal numbers, other streams other numbers") {
  RandomStream a(7, 3), b(7, 3), other_stream(7, 4), other_seed(8, 3);
  for (int i = 0; i < 100; ++i) {
    const auto bits = a();
    CHECK(bits == b());
    CHECK(bits != other_stream());
    CHECK(bits != other_seed());
  }
}

TEST_CASE("random stream: Philox 4x32-10 known answer for zero counter and key") {
  RandomStream stream(0, 0);
  CHECK(stream() == 0x6627e8d5u);
  CHECK(stream() == 0xe169c58du);
  CHECK(stream() == 0xbc57ac4cu);
  CHECK(stream() == 0x9b00dbd8u);
}

TEST_CASE("random stream: moments of normals lie within five standard errors") {
  RandomStream stream(1);
  const int n = 200'000;
  double sum = 0, squares = 0, fourth = 0;
  for (int i = 0; i < n; ++i) {
    const double z = stream.normal();
    sum += z;
    squares += z * z;
    fourth += z * z * z * z;
  }
  CHECK(std::abs(sum / n) < 5 / std::sqrt(n));
  CHECK(std::abs(squares / n - 1) < 5 * std::sqrt(2.0 / n));
  CHECK(std::abs(fourth / n - 3) < 5 * std::sqrt(96.0 / n));
}

TEST_CASE("random stream: below is uniform over its range and rejects an empty one") {
  RandomStream stream(2);
  std::vector<int> counts(7, 0);
  for (int i = 0; i < 70'000; ++i) ++counts[stream.below(7)];
  for (const int count : counts) CHECK(std::abs(count - 10'000) < 5 * std::sqrt(10'000.0));
  CHECK_THROWS_WITH_AS(stream.below(0), "RandomStream::below: bound must be positive, got 0",
                       widelimit::ArgumentError);
}
