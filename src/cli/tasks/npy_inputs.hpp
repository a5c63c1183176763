#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <vector>
#include <xtensor/xarray.hpp>

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

/// An array of any element type. DataError, naming the file, if rounding to float leaves nothing of an input (along the
/// first axis) that is not 0: its kernels would be 0 without a word.
template <typename Scalar>
xt::xarray<Scalar> read_numbers(const std::filesystem::path& file) {
  auto array = data::read_npy_as<Scalar>(file);
  if (sizeof(Scalar) == sizeof(double) || array.dimension() == 0 || array.size() == 0) return array;
  const std::size_t inputs = array.shape(0), numbers = array.size() / inputs;
  const auto is_zero = [numbers](const auto& values, std::size_t i) {
    const auto* first = values.data() + i * numbers;
    return std::all_of(first, first + numbers, [](auto value) { return value == 0; });
  };
  xt::xarray<double> exact;
  for (std::size_t i = 0; i < inputs; ++i) {
    if (!is_zero(array, i)) continue;
    if (exact.size() != array.size()) exact = data::read_npy_as<double>(file);
    if (!is_zero(exact, i))
      throw DataError(
          fmt::format("{}: all numbers of input {} are rounded to 0, they leave the range of float: rescale "
                      "the inputs, or use double",
                      file.string(), i));
  }
  return array;
}

/// An array of any element type whose values are finite; DataError, naming the file, otherwise.
template <typename Scalar>
xt::xarray<Scalar> read_finite(const std::filesystem::path& file) {
  auto array = read_numbers<Scalar>(file);
  const auto bad =
      std::find_if_not(array.begin(), array.end(), [](Scalar value) { return std::isfinite(value); });
  if (bad != array.end())
    throw DataError(fmt::format("{}: values must be finite, got {} at entry {} in row-major order",
                                file.string(), *bad, bad - array.begin()));
  return array;
}

/// Booleans, or the numbers 0 and 1; DataError, naming the file, for others.
inline xt::xarray<bool> read_mask(const std::filesystem::path& file) {
  const auto numbers = data::read_npy_as<std::int64_t>(file);
  const auto bad = std::find_if(numbers.begin(), numbers.end(),
                                [](std::int64_t value) { return value != 0 && value != 1; });
  if (bad != numbers.end())
    throw DataError(fmt::format("{}: expected booleans, or 0 and 1, got {}", file.string(), *bad));
  return xt::cast<bool>(numbers);
}

/// DataError, naming the file, unless what belongs to the inputs is finite: padding, and what is masked, may be
/// anything.
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

/// The inputs with their mask; errors name its file.
template <typename Scalar>
Inputs<Scalar> masked_inputs(const Inputs<Scalar>& inputs, const xt::xarray<bool>& mask,
                             const std::filesystem::path& file) {
  try {
    return Inputs<Scalar>(inputs, mask);
  } catch (const ArgumentError& error) {
    throw DataError(fmt::format("{}: {}", file.string(), error.what()));
  }
}

/// The view of an array; its errors name the file.
template <typename Scalar>
Inputs<Scalar> inputs_of(const xt::xarray<Scalar>& array, const std::filesystem::path& file) {
  try {
    return Inputs<Scalar>(array);
  } catch (const ArgumentError& error) {
    throw DataError(fmt::format("{}: {}", file.string(), error.what()));
  }
}

/// The inputs, cut to their lengths if there is a file of them.
template <typename Scalar>
Inputs<Scalar> cut_inputs(const Inputs<Scalar>& inputs, const std::filesystem::path& file) {
  if (file.empty()) return inputs;
  const auto numbers = data::read_npy_as<std::int64_t>(file);
  if (numbers.dimension() != 1)
    throw DataError(
        fmt::format("{}: expected one dimension [n], got {}", file.string(), numbers.dimension()));
  const std::vector<Index> lengths(numbers.begin(), numbers.end());
  try {
    return Inputs<Scalar>(inputs, lengths);
  } catch (const ArgumentError& error) {
    throw DataError(fmt::format("{}: {}", file.string(), error.what()));
  }
}

}  // namespace widelimit::cli
