#include "data/input_file.hpp"

#include <fmt/format.h>

#include "widelimit/error.hpp"
#include "widelimit/numerics/memory.hpp"

namespace widelimit::data {

void fail_at(const std::filesystem::path& path, std::uint64_t offset, std::string_view expected,
             std::string_view found) {
  throw DataError(
      fmt::format("{}: offset {}: expected {}, found {}", path.string(), offset, expected, found));
}

void InputFile::read(std::uint64_t offset, void* destination, std::size_t count,
                     std::string_view what) const {
  // The subtraction avoids offset + count, which could overflow.
  if (offset > size() || count > size() - offset) {
    const std::uint64_t left = offset > size() ? 0 : size() - offset;
    fail_at(path(), offset, fmt::format("{} bytes of {}", count, what),
            fmt::format("{} before the end of the file", left));
  }
  const std::size_t found = file_.read(offset, destination, count);
  if (found != count)
    throw DataError(fmt::format("{}: offset {}: reading {} bytes of {} failed after {}", path().string(),
                                offset, count, what, found));
}

std::vector<std::uint8_t> InputFile::read_all() const {
  numerics::require_memory(path().string(), "the content of the file", static_cast<double>(size()),
                           "is it the right file?");
  std::vector<std::uint8_t> bytes(size());
  read(0, bytes.data(), bytes.size(), "content");
  return bytes;
}

}  // namespace widelimit::data
