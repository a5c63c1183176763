#include "data/input_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "widelimit/error.hpp"

namespace widelimit::data {

void fail_at(const std::filesystem::path& path, std::uint64_t offset, std::string_view expected,
             std::string_view found) {
  throw DataError(
      fmt::format("{}: offset {}: expected {}, found {}", path.string(), offset, expected, found));
}

InputFile::InputFile(std::filesystem::path path) : path_{std::move(path)} {
  std::error_code error;
  const auto status = std::filesystem::status(path_, error);
  if (!std::filesystem::exists(status)) {
    throw DataError(fmt::format("{}: expected a file, found none", path_.string()));
  }
  if (!std::filesystem::is_regular_file(status)) {
    throw DataError(fmt::format("{}: expected a regular file, found a folder or device", path_.string()));
  }
  // Streams do not say why they fail; the system call behind them does.
  errno = 0;
  stream_.open(path_, std::ios::binary);
  if (!stream_) {
    throw DataError(fmt::format("{}: cannot be opened for reading: {}", path_.string(),
                                std::generic_category().message(errno)));
  }
  size_ = std::filesystem::file_size(path_);
}

void InputFile::read(std::uint64_t offset, void* destination, std::size_t count, std::string_view what) {
  // The subtraction avoids offset + count, which could overflow.
  if (offset > size_ || count > size_ - offset) {
    const std::uint64_t left = offset > size_ ? 0 : size_ - offset;
    fail_at(path_, offset, fmt::format("{} bytes of {}", count, what),
            fmt::format("{} before the end of the file", left));
  }
  stream_.seekg(static_cast<std::streamoff>(offset));
  stream_.read(static_cast<char*>(destination), static_cast<std::streamsize>(count));
  if (!stream_) {
    throw DataError(fmt::format("{}: offset {}: reading {} bytes of {} failed after {}", path_.string(),
                                offset, count, what, stream_.gcount()));
  }
}

std::vector<std::uint8_t> InputFile::read_all() {
  std::vector<std::uint8_t> bytes(size_);
  read(0, bytes.data(), bytes.size(), "content");
  return bytes;
}

}  // namespace widelimit::data
