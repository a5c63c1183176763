#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>

namespace widelimit::files {

/// Whose a file or folder is, and who may read and write it: what takes its place keeps both.
struct Permissions {
  mode_t mode;  ///< The nine bits of owner, group and others.
  uid_t owner;
  gid_t group;
};

/// Nothing where neither a regular file nor a folder is.
[[nodiscard]] std::optional<Permissions> permissions_of(const std::filesystem::path& path);

/// Gives them to an open file or folder, as far as the system lets this process. Where the group cannot be kept, it may
/// do no more than others may.
void set_permissions(int descriptor, Permissions permissions);

/// Gives them to a folder.
void set_permissions(const std::filesystem::path& folder, Permissions permissions);

}  // namespace widelimit::files
