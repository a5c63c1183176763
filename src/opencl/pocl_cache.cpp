#include "opencl/pocl_cache.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "widelimit/files/user_cache.hpp"

namespace widelimit::opencl {
namespace {

/// The folder that PoCL takes. No thread of the library sets variables of the environment.
files::UserCache cache() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  if (const char* folder = std::getenv("POCL_CACHE_DIR")) return {folder, "POCL_CACHE_DIR"};
  return files::user_cache("pocl/kcache").value_or(files::UserCache{"/tmp/pocl/kcache", "no variable"});
}

/// What keeps a file from being written into a folder, in the system's words; empty if nothing does.
std::string what_fails(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return error.message();
  std::string name = (folder / "widelimit-XXXXXX").string();
  const int file = mkstemp(name.data());
  if (file < 0) return std::generic_category().message(errno);
  // A full disk shows at the first bytes.
  constexpr std::array<char, 4096> bytes{};
  const bool is_written = write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  const int code = errno;
  close(file);
  unlink(name.c_str());
  return is_written ? "" : std::generic_category().message(code);
}

constexpr const char* remedy = "set POCL_CACHE_DIR to a folder that can be written";

}  // namespace

bool is_pocl(const std::string& platform) { return platform == "Portable Computing Language"; }

std::string fatal_pocl_setting() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  const char* folder = std::getenv("POCL_CACHE_DIR");
  if (folder == nullptr || *folder != '\0') return {};
  return fmt::format("POCL_CACHE_DIR is an empty text, for which PoCL ends the process: {}, or unset it",
                     remedy);
}

std::string pocl_cache_remark(const std::string& platform) {
  if (!is_pocl(platform)) return {};
  const files::UserCache found = cache();
  const std::string failure = what_fails(found.folder);
  if (failure.empty()) return {};
  return fmt::format("; PoCL keeps what it compiles in {} (by {}), which cannot be written: {}; {}",
                     found.folder.string(), found.variable, failure, remedy);
}

}  // namespace widelimit::opencl
