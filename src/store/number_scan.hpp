#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "widelimit/matrix.hpp"

namespace widelimit::store {

/// Whether some of the numbers' bits without the sign agree with what is asked for; several at a time.
template <typename Scalar, typename Ask>
[[nodiscard]] bool any_bits(const Scalar* numbers, Index count, const Ask& ask) {
  using Bits = std::conditional_t<sizeof(Scalar) == sizeof(std::uint32_t), std::uint32_t, std::uint64_t>;
  constexpr Bits infinity = std::bit_cast<Bits>(std::numeric_limits<Scalar>::infinity());
  constexpr Bits without_sign = std::numeric_limits<Bits>::max() >> 1;
  Bits found = 0;
  for (Index i = 0; i < count; ++i)
    found |= static_cast<Bits>(ask(std::bit_cast<Bits>(numbers[i]) & without_sign, infinity));
  return found != 0;
}

template <typename Scalar>
[[nodiscard]] bool has_infinity(const Matrix<Scalar>& numbers) {
  return any_bits(numbers.data(), numbers.size(), [](auto bits, auto infinity) { return bits == infinity; });
}

/// Whether a number in the first rows and columns of a matrix is NaN.
template <typename Scalar>
[[nodiscard]] bool has_nan(const Matrix<Scalar>& numbers, Index rows, Index columns) {
  for (Index i = 0; i < rows; ++i)
    if (any_bits(numbers.data() + i * numbers.cols(), columns,
                 [](auto bits, auto infinity) { return bits > infinity; }))
      return true;
  return false;
}

}  // namespace widelimit::store
