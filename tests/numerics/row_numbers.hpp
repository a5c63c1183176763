#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "widelimit/numerics/random_stream.hpp"

namespace widelimit::testing {

/// Standard normals.
template <typename Scalar>
std::vector<Scalar> normal_numbers(std::size_t count, std::uint64_t seed) {
  numerics::RandomStream stream(seed);
  std::vector<Scalar> numbers(count);
  for (Scalar& number : numbers) number = static_cast<Scalar>(stream.normal());
  return numbers;
}

template <typename Scalar>
constexpr double epsilon = static_cast<double>(std::numeric_limits<Scalar>::epsilon());

}  // namespace widelimit::testing
