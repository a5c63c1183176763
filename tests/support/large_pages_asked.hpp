#pragma once

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>

namespace widelimit::testing {

/// Whether the system was asked to back the memory at this address with large pages, by what it says of the process's
/// mappings; nothing where it does not say so.
inline std::optional<bool> large_pages_asked(const void* address) {
  std::ifstream mappings("/proc/self/smaps");
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  bool inside = false;
  for (std::string line; std::getline(mappings, line);) {
    std::uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%zx-%zx ", &begin, &end) == 2) inside = begin <= wanted && wanted < end;
    if (inside && line.starts_with("VmFlags:")) return (line + " ").find(" hg ") != std::string::npos;
  }
  return std::nullopt;
}

}  // namespace widelimit::testing
