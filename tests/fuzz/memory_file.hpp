#pragma once

#include <filesystem>

#include "targets.hpp"

namespace widelimit::fuzz {

/// Bytes that readers can open by a path and that lie in memory, so that a fuzzer writes to no disk.
class MemoryFile {
 public:
  explicit MemoryFile(Bytes bytes);
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  int descriptor_;
  std::filesystem::path path_;
};

/// Takes the first `count` bytes, fewer if there are not as many, away from `bytes`.
Bytes take(Bytes& bytes, std::size_t count);

/// body(), which may throw the errors of this library and nothing else.
template <typename Body>
void expect_our_errors(const Body& body);

}  // namespace widelimit::fuzz

#include "widelimit/error.hpp"

template <typename Body>
void widelimit::fuzz::expect_our_errors(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    // A message is one line of text: that is part of what is tested.
    if (error.what()[0] == '\0') throw;
  }
}
