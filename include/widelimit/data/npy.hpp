#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>
#include <xtensor/xarray.hpp>

/// NumPy's .npy files: one array, format versions 1.0, 2.0 and 3.0; C or Fortran order and either byte order
/// are read, C order and little-endian written. So are arrays of .npz and .safetensors files, which the ending tells:
/// the path of one is that of the file with its name, "data.npz/x_train" or "data.npz/x_train.npy", or of an only array
/// that of the file alone.
///
/// Every reader throws DataError naming file, offset, what was expected and what was found: wrong magic
/// bytes, a malformed header or archive, a wrong checksum, an array that an archive lacks, more than 64 axes, an
/// element type other than the ones below, a truth value other than 0 and 1, a file shorter or longer than its
/// header says.
namespace widelimit::data {

/// Element types. All are read; float16, bfloat16 (ml_dtypes) and truth values are not written.
enum class NpyType {
  boolean,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  float16,
  bfloat16,
  float32,
  float64
};

/// float16, bfloat16, float32 or float64; the others are integers and truth values.
bool is_floating_point(NpyType type);

/// Bytes of one element.
std::size_t size_of(NpyType type);

/// The NpyType of a C++ type: float, double, or a signed or unsigned integer of 8, 16, 32 or 64 bits.
template <typename T>
NpyType npy_type_of();

/// The header before the values.
struct NpyHeader {
  NpyType type = NpyType::float64;
  std::vector<std::size_t> shape;  ///< Empty for a single number; an extent may be 0.
  std::uint64_t data_offset = 0;   ///< Where the values begin, in bytes from the start of the file.
  bool big_endian = false;
  bool fortran_order = false;  ///< The first index runs fastest.

  std::size_t size() const;  ///< Number of elements: the product of the shape, 1 if it is empty.
};

/// Reads the header and checks that the file is exactly as long as it says; reads no values.
NpyHeader read_npy_header(const std::filesystem::path& path);

/// Whether the ending of a file is .npz or .safetensors.
bool is_array_archive(const std::filesystem::path& path);

/// Whether there is such a file, or such an array in an archive. DataError for an archive that cannot be read.
bool array_exists(const std::filesystem::path& path);

/// Reads an array whose elements are of type T, one of npy_type_of, into row-major order.
/// Errors  DataError as above, also if the file holds another element type.
template <typename T>
xt::xarray<T> read_npy(const std::filesystem::path& path);

/// Reads an array of any element type into T = float or double, rounding to nearest, or of any integers or
/// truth values into T = std::int64_t; row-major.
/// Errors  DataError as above, also if T cannot hold a value, or is an integer and the elements are not.
template <typename T>
xt::xarray<T> read_npy_as(const std::filesystem::path& path);

/// The bytes of a version 1.0 header (its length is a multiple of 64), for writers that place values themselves.
///
/// Errors  ArgumentError if the shape needs more than the 65,535 bytes version 1.0 allows.
std::string npy_header_bytes(NpyType type, std::span<const std::size_t> shape);

/// Writes `values` (row-major, as many as the shape says) as version 1.0. T as in read_npy.
///
/// The bytes go to a temporary file next to `path`, which replaces `path` only when complete: no reader ever sees half
/// a file, and after an error an existing file is unchanged.
///
/// Errors  DataError if the file cannot be created or written in full, or `path` exists and is not a regular file.
template <typename T>
void write_npy(const std::filesystem::path& path, const T* values, std::span<const std::size_t> shape);

/// The same for a container.
template <typename T>
void write_npy(const std::filesystem::path& path, const xt::xarray<T>& array) {
  const std::vector<std::size_t> shape(array.shape().begin(), array.shape().end());
  write_npy(path, array.data(), shape);
}

}  // namespace widelimit::data
