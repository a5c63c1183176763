#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>

#include "data/array_bytes.hpp"
#include "data/npy_elements.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/memory.hpp"

namespace widelimit::data {
namespace {

namespace fs = std::filesystem;

template <typename T>
constexpr bool is_floating =
    std::is_floating_point_v<T> || std::is_same_v<T, Eigen::half> || std::is_same_v<T, Eigen::bfloat16>;

void swap_bytes(std::span<std::uint8_t> bytes, std::size_t element) {
  for (std::size_t i = 0; i + element <= bytes.size(); i += element)
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i),
                 bytes.begin() + static_cast<std::ptrdiff_t>(i + element));
}

/// Values in the order of the file.
template <typename T>
void read_stored(const fs::path& path, const NpyHeader& header, T* values, std::size_t count) {
  ArrayBytes(path).read(header.data_offset, values, count * sizeof(T), "values");
  if (header.big_endian) swap_bytes({reinterpret_cast<std::uint8_t*>(values), count * sizeof(T)}, sizeof(T));
  if (header.type != NpyType::boolean) return;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(values);
  const auto* wrong = std::find_if(bytes, bytes + count, [](std::uint8_t byte) { return byte > 1; });
  if (wrong != bytes + count)
    fail_at(path, header.data_offset + static_cast<std::size_t>(wrong - bytes), "0 or 1 as a truth value",
            fmt::format("{}", *wrong));
}

/// The array whose values fill(data) writes in the order of the file.
template <typename T, typename Fill>
xt::xarray<T> arranged(const fs::path& path, const NpyHeader& header, const Fill& fill) {
  // Sparse files cost nothing on a disk, whatever their size.
  numerics::require_memory(path.string(), "its array", static_cast<double>(header.size()) * sizeof(T),
                           "is it the right file?");
  if (!header.fortran_order || header.shape.size() < 2) {
    auto values = xt::xarray<T>::from_shape(header.shape);
    fill(values.data(), values.size());
    return values;
  }
  // The file holds such an array column by column; on return it is converted to rows.
  using Columns = xt::xarray<T, xt::layout_type::column_major>;
  auto columns = Columns::from_shape(header.shape);
  fill(columns.data(), columns.size());
  return columns;
}

/// One value, rounded to nearest where the types are floating point; nothing if `To` cannot hold it.
template <typename To, typename From>
std::optional<To> converted(From value) {
  if constexpr (std::is_same_v<To, float> && std::is_same_v<From, double>) {
    // The cast would turn a finite number into an infinite one.
    if (std::isfinite(value) && std::abs(value) > std::numeric_limits<float>::max()) return std::nullopt;
  }
  if constexpr (std::is_integral_v<To> && std::is_integral_v<From>) {
    if (!std::in_range<To>(value)) return std::nullopt;
  }
  return static_cast<To>(value);
}

template <typename To, typename From>
xt::xarray<To> read_converted(const fs::path& path, const NpyHeader& header) {
  return arranged<To>(path, header, [&](To* target, std::size_t count) {
    std::vector<From> stored(count);
    read_stored(path, header, stored.data(), count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto value = converted<To>(stored[i]);
      if (!value)
        fail_at(
            path, header.data_offset + i * sizeof(From),
            fmt::format("a value within the range of {}", element_of(npy_type_of<To>()).name),
            fmt::format("{}", static_cast<std::conditional_t<is_floating<From>, double, From>>(stored[i])));
      target[i] = *value;
    }
  });
}

}  // namespace

template <typename T>
xt::xarray<T> read_npy(const fs::path& path) {
  const NpyHeader header = read_npy_header(path);
  const NpyType wanted = npy_type_of<T>();
  if (header.type != wanted)
    throw DataError(fmt::format("{}: expected elements of type {}, found {}", path.string(),
                                element_of(wanted).name, element_of(header.type).name));
  return arranged<T>(path, header,
                     [&](T* values, std::size_t count) { read_stored(path, header, values, count); });
}

template <typename T>
xt::xarray<T> read_npy_as(const fs::path& path) {
  const NpyHeader header = read_npy_header(path);
  return with_element_type(header.type, [&](auto element) -> xt::xarray<T> {
    using From = decltype(element);
    // Floating-point numbers in a file are not rounded to integers but refused.
    if constexpr (is_floating<T> || !is_floating<From>) {
      return read_converted<T, From>(path, header);
    } else {
      throw DataError(fmt::format("{}: expected integers, found elements of type {}", path.string(),
                                  element_of(header.type).name));
    }
  });
}

template xt::xarray<float> read_npy<float>(const fs::path&);
template xt::xarray<double> read_npy<double>(const fs::path&);
template xt::xarray<std::int8_t> read_npy<std::int8_t>(const fs::path&);
template xt::xarray<std::int16_t> read_npy<std::int16_t>(const fs::path&);
template xt::xarray<std::int32_t> read_npy<std::int32_t>(const fs::path&);
template xt::xarray<std::int64_t> read_npy<std::int64_t>(const fs::path&);
template xt::xarray<std::uint8_t> read_npy<std::uint8_t>(const fs::path&);
template xt::xarray<std::uint16_t> read_npy<std::uint16_t>(const fs::path&);
template xt::xarray<std::uint32_t> read_npy<std::uint32_t>(const fs::path&);
template xt::xarray<std::uint64_t> read_npy<std::uint64_t>(const fs::path&);

template xt::xarray<float> read_npy_as<float>(const fs::path&);
template xt::xarray<double> read_npy_as<double>(const fs::path&);
template xt::xarray<std::int64_t> read_npy_as<std::int64_t>(const fs::path&);

}  // namespace widelimit::data
