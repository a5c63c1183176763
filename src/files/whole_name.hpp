#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "widelimit/error.hpp"

namespace widelimit::files {

/// The same path. DataError where it has a character of code 0, at which the system would take it for ended: it would
/// open, replace or remove another file.
inline const std::filesystem::path& whole_name(const std::filesystem::path& path) {
  if (path.native().find('\0') == std::string::npos) return path;
  throw DataError(
      fmt::format("{}\\0...: expected the name of a file without a character of code 0", path.c_str()));
}

}  // namespace widelimit::files
