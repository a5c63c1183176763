#include "widelimit/data/npy.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string_view>
#include <type_traits>

#include "data/input_file.hpp"
#include "files/replacing_file.hpp"
#include "widelimit/error.hpp"

namespace widelimit::data {
namespace {

namespace fs = std::filesystem;

std::string_view name_of(NpyType type) {
  switch (type) {
    case NpyType::float32:
      return "float32";
    case NpyType::float64:
      return "float64";
    case NpyType::int32:
      return "int32";
    case NpyType::int64:
      return "int64";
    case NpyType::uint8:
      return "uint8";
  }
  return "unknown";
}

template <typename T>
xt::xarray<T> read_values(const fs::path& path, const NpyHeader& header) {
  auto values = xt::xarray<T>::from_shape(header.shape);
  InputFile(path).read(header.data_offset, values.data(), values.size() * sizeof(T), "values");
  return values;
}

template <typename To, typename From>
xt::xarray<To> read_converted(const fs::path& path, const NpyHeader& header) {
  const auto values = read_values<From>(path, header);
  auto converted = xt::xarray<To>::from_shape(header.shape);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const From value = values.data()[i];
    if constexpr (std::is_same_v<From, double> && std::is_same_v<To, float>) {
      if (std::isfinite(value) && std::abs(value) > std::numeric_limits<float>::max()) {
        fail_at(path, header.data_offset + i * sizeof(From), "a value within the range of float32",
                fmt::format("{}", value));
      }
    }
    converted.data()[i] = static_cast<To>(value);
  }
  return converted;
}

}  // namespace

template <typename T>
NpyType npy_type_of() {
  if constexpr (std::is_same_v<T, float>) return NpyType::float32;
  if constexpr (std::is_same_v<T, double>) return NpyType::float64;
  if constexpr (std::is_same_v<T, std::int32_t>) return NpyType::int32;
  if constexpr (std::is_same_v<T, std::int64_t>) return NpyType::int64;
  return NpyType::uint8;
}

template <typename T>
xt::xarray<T> read_npy(const fs::path& path) {
  const NpyHeader header = read_npy_header(path);
  if (header.type != npy_type_of<T>()) {
    throw DataError(fmt::format("{}: expected elements of type {}, found {}", path.string(),
                                name_of(npy_type_of<T>()), name_of(header.type)));
  }
  return read_values<T>(path, header);
}

template <typename T>
xt::xarray<T> read_npy_as(const fs::path& path) {
  const NpyHeader header = read_npy_header(path);
  switch (header.type) {
    case NpyType::float32:
      return read_converted<T, float>(path, header);
    case NpyType::float64:
      return read_converted<T, double>(path, header);
    case NpyType::int32:
      return read_converted<T, std::int32_t>(path, header);
    case NpyType::int64:
      return read_converted<T, std::int64_t>(path, header);
    case NpyType::uint8:
      return read_converted<T, std::uint8_t>(path, header);
  }
  throw DataError(fmt::format("{}: unknown element type", path.string()));
}

template <typename T>
void write_npy(const fs::path& path, const T* values, std::span<const std::size_t> shape) {
  const NpyType type = npy_type_of<T>();
  const std::string header = npy_header_bytes(type, shape);
  const NpyHeader extents{type, {shape.begin(), shape.end()}, header.size()};
  files::ReplacingFile file(path);
  file.write(header.data(), header.size());
  file.write(values, extents.size() * sizeof(T));
  file.commit();
}

#define WIDELIMIT_INSTANTIATE_NPY(T)                   \
  template NpyType npy_type_of<T>();                   \
  template xt::xarray<T> read_npy<T>(const fs::path&); \
  template void write_npy<T>(const fs::path&, const T*, std::span<const std::size_t>);

WIDELIMIT_INSTANTIATE_NPY(float)
WIDELIMIT_INSTANTIATE_NPY(double)
WIDELIMIT_INSTANTIATE_NPY(std::int32_t)
WIDELIMIT_INSTANTIATE_NPY(std::int64_t)
WIDELIMIT_INSTANTIATE_NPY(std::uint8_t)
#undef WIDELIMIT_INSTANTIATE_NPY

template xt::xarray<float> read_npy_as<float>(const fs::path&);
template xt::xarray<double> read_npy_as<double>(const fs::path&);

}  // namespace widelimit::data
