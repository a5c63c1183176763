#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "widelimit/data/npy.hpp"
#include "widelimit/error.hpp"
#include "widelimit/kernel/inputs.hpp"

namespace widelimit::cli {

/// Throws DataError with the file in front.
template <typename... Arguments>
[[noreturn]] void fail_in(const std::filesystem::path& file, fmt::format_string<Arguments...> format,
                          Arguments&&... arguments) {
  throw DataError(
      fmt::format("{}: {}", file.string(), fmt::format(format, std::forward<Arguments>(arguments)...)));
}

/// An array of any element type whose values are finite; DataError, naming the file, otherwise.
template <typename Scalar>
xt::xarray<Scalar> read_finite(const std::filesystem::path& file) {
  auto array = data::read_npy_as<Scalar>(file);
  const auto bad =
      std::find_if_not(array.begin(), array.end(), [](Scalar value) { return std::isfinite(value); });
  if (bad != array.end())
    throw DataError(fmt::format("{}: values must be finite, got {} at entry {} in row-major order",
                                file.string(), *bad, bad - array.begin()));
  return array;
}

/// DataError, naming the file, unless what belongs to the inputs is finite: padding may be anything.
template <typename Scalar>
void check_finite_inputs(const Inputs<Scalar>& inputs, const std::filesystem::path& file) {
  for (Index i = 0; i < inputs.size(); ++i) {
    const auto input = inputs[i];
    const auto bad =
        std::find_if_not(input.begin(), input.end(), [](Scalar value) { return std::isfinite(value); });
    if (bad != input.end())
      throw DataError(fmt::format("{}: values must be finite, got {} at entry {} of input {}", file.string(),
                                  *bad, bad - input.begin(), i));
  }
}

}  // namespace widelimit::cli
