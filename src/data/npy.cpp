#include "widelimit/data/npy.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <limits>
#include <string_view>
#include <system_error>
#include <type_traits>

#include "data/input_file.hpp"
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

// Writing through a symbolic link replaces what it points to, not the link.
fs::path resolve(const fs::path& path) {
  std::error_code error;
  if (!fs::is_symlink(path, error)) return path;
  fs::path resolved = fs::weakly_canonical(path, error);
  return error ? path : resolved;
}

/// A file that takes the place of `target` when committed and vanishes otherwise.
class ReplacingFile {
 public:
  explicit ReplacingFile(const fs::path& target) : target_{resolve(target)} {
    static std::atomic<unsigned> counter{0};
    // Process and counter in the name: two writers of one file must not share a temporary one.
    temporary_ = target_;
    temporary_ += fmt::format(".{}-{}.part", getpid(), counter++);
    std::error_code error;
    const auto status = fs::status(target_, error);
    if (fs::exists(status) && !fs::is_regular_file(status)) {
      throw DataError(
          fmt::format("{}: cannot be written: expected a regular file or none, found a folder or device",
                      target_.string()));
    }
    errno = 0;
    stream_.open(temporary_, std::ios::binary | std::ios::trunc);
    if (!stream_) fail("create");
  }
  ReplacingFile(const ReplacingFile&) = delete;
  ReplacingFile& operator=(const ReplacingFile&) = delete;

  ~ReplacingFile() {
    std::error_code ignored;
    if (!committed_) fs::remove(temporary_, ignored);
  }

  void write(const void* bytes, std::size_t count) {
    errno = 0;
    stream_.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(count));
    if (!stream_) fail("write");
  }

  void commit() {
    errno = 0;
    stream_.close();
    if (!stream_) fail("write");
    std::error_code error;
    fs::rename(temporary_, target_, error);
    if (error) {
      throw DataError(fmt::format("{}: cannot be replaced: {}", target_.string(), error.message()));
    }
    committed_ = true;
  }

 private:
  [[noreturn]] void fail(std::string_view action) const {
    const int code = errno;
    throw DataError(fmt::format("{}: cannot be written: failed to {} {}: {}", target_.string(), action,
                                temporary_.filename().string(), std::generic_category().message(code)));
  }

  fs::path target_;
  fs::path temporary_;
  std::ofstream stream_;
  bool committed_ = false;
};

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
  ReplacingFile file(path);
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
