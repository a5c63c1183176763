#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "widelimit/numerics/dual.hpp"

namespace widelimit::numerics {

/// Entries of a row, without their auxiliary numbers.
template <typename Scalar>
AdjointRow<Scalar> part_of(const AdjointRow<Scalar>& row, std::size_t begin, std::size_t size) {
  const auto after = [begin](auto* numbers) { return numbers == nullptr ? nullptr : numbers + begin; };
  return {after(row.nngp),
          after(row.ntk),
          after(row.left_variance),
          after(row.right_variance),
          nullptr,
          nullptr,
          after(row.nngp_adjoint),
          after(row.ntk_adjoint),
          after(row.left_adjoint),
          after(row.right_adjoint),
          size};
}

/// Calls backward_pass(row) with copies in double of a row, without auxiliary numbers, and writes what comes of it.
template <typename GoBack>
void in_double(const AdjointRow<float>& all, const GoBack& backward_pass) {
  constexpr std::size_t block = 128;
  std::array<std::array<double, block>, 8> numbers;
  auto& [nngp, ntk, p, q, nngp_adjoint, ntk_adjoint, left_adjoint, right_adjoint] = numbers;
  for (std::size_t begin = 0; begin < all.size; begin += block) {
    const std::size_t size = std::min(block, all.size - begin);
    const AdjointRow<float> row = part_of(all, begin, size);
    const bool with_ntk = row.ntk_adjoint != nullptr;
    std::copy_n(row.nngp, size, nngp.begin());
    std::copy_n(row.left_variance, size, p.begin());
    std::copy_n(row.right_variance, size, q.begin());
    std::copy_n(row.nngp_adjoint, size, nngp_adjoint.begin());
    if (with_ntk) {
      std::copy_n(row.ntk, size, ntk.begin());
      std::copy_n(row.ntk_adjoint, size, ntk_adjoint.begin());
    }
    backward_pass(AdjointRow<double>{nngp.data(), with_ntk ? ntk.data() : nullptr, p.data(), q.data(),
                                     nullptr, nullptr, nngp_adjoint.data(),
                                     with_ntk ? ntk_adjoint.data() : nullptr, left_adjoint.data(),
                                     right_adjoint.data(), size});
    const auto give = [size](const auto& from, float* to) {
      std::transform(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(size), to,
                     [](double number) { return static_cast<float>(number); });
    };
    give(nngp_adjoint, row.nngp_adjoint);
    if (with_ntk) give(ntk_adjoint, row.ntk_adjoint);
    give(left_adjoint, row.left_adjoint);
    give(right_adjoint, row.right_adjoint);
  }
}

}  // namespace widelimit::numerics
