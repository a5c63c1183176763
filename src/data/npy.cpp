#include "widelimit/data/npy.hpp"

#include <fmt/format.h>

#include <type_traits>

#include "widelimit/error.hpp"
#include "widelimit/files/replacing_file.hpp"

namespace widelimit::data {

namespace fs = std::filesystem;

template <typename T>
NpyType npy_type_of() {
  if constexpr (std::is_same_v<T, float>) return NpyType::float32;
  if constexpr (std::is_same_v<T, double>) return NpyType::float64;
  if constexpr (std::is_same_v<T, std::int8_t>) return NpyType::int8;
  if constexpr (std::is_same_v<T, std::int16_t>) return NpyType::int16;
  if constexpr (std::is_same_v<T, std::int32_t>) return NpyType::int32;
  if constexpr (std::is_same_v<T, std::int64_t>) return NpyType::int64;
  if constexpr (std::is_same_v<T, std::uint8_t>) return NpyType::uint8;
  if constexpr (std::is_same_v<T, std::uint16_t>) return NpyType::uint16;
  if constexpr (std::is_same_v<T, std::uint32_t>) return NpyType::uint32;
  return NpyType::uint64;
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

#define WIDELIMIT_INSTANTIATE_NPY(T) \
  template NpyType npy_type_of<T>(); \
  template void write_npy<T>(const fs::path&, const T*, std::span<const std::size_t>);

WIDELIMIT_INSTANTIATE_NPY(float)
WIDELIMIT_INSTANTIATE_NPY(double)
WIDELIMIT_INSTANTIATE_NPY(std::int8_t)
WIDELIMIT_INSTANTIATE_NPY(std::int16_t)
WIDELIMIT_INSTANTIATE_NPY(std::int32_t)
WIDELIMIT_INSTANTIATE_NPY(std::int64_t)
WIDELIMIT_INSTANTIATE_NPY(std::uint8_t)
WIDELIMIT_INSTANTIATE_NPY(std::uint16_t)
WIDELIMIT_INSTANTIATE_NPY(std::uint32_t)
WIDELIMIT_INSTANTIATE_NPY(std::uint64_t)
#undef WIDELIMIT_INSTANTIATE_NPY

}  // namespace widelimit::data
