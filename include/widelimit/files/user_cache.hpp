#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace widelimit::files {

/// A folder for what can be made again, and the variable of the environment that names it.
struct UserCache {
  std::filesystem::path folder;
  std::string variable;
};

/// Where a user's programs keep what they can make again: `name` in XDG_CACHE_HOME, or in .cache of HOME. Nothing where
/// neither is set, or both are empty. The folder need not be there.
[[nodiscard]] std::optional<UserCache> user_cache(const std::filesystem::path& name);

}  // namespace widelimit::files
