#include "widelimit/files/user_cache.hpp"

#include <cstdlib>

namespace widelimit::files {

std::optional<UserCache> user_cache(const std::filesystem::path& name) {
  // No thread of the library sets variables of the environment.
  // NOLINTBEGIN(concurrency-mt-unsafe)
  const char* caches = std::getenv("XDG_CACHE_HOME");
  if (caches != nullptr && *caches != '\0')
    return UserCache{std::filesystem::path(caches) / name, "XDG_CACHE_HOME"};
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home != '\0')
    return UserCache{std::filesystem::path(home) / ".cache" / name, "HOME"};
  // NOLINTEND(concurrency-mt-unsafe)
  return std::nullopt;
}

}  // namespace widelimit::files
