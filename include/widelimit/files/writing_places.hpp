#pragma once

#include <filesystem>
#include <string>

/// Where a process may write, for programs that do what a stranger's file says (docs/security.md).
namespace widelimit::files {

/// From now on this process writes nothing outside of a folder, which need not be there yet: the library's functions
/// that write or make folders throw first. `advice` ends their message.
void confine_writing(const std::filesystem::path& folder, std::string advice);

/// DataError naming `path` where it lies outside of that folder, links followed.
void require_may_write(const std::filesystem::path& path);

/// DataError naming `path` where it is a symbolic link: what is written to a folder stays in it, whoever made it.
void require_no_link(const std::filesystem::path& path);

/// The same for every part of `name` below `folder`.
void require_no_links(const std::filesystem::path& folder, const std::filesystem::path& name);

/// The working directory. DataError where it was removed or cannot be seen.
[[nodiscard]] std::filesystem::path working_directory();

}  // namespace widelimit::files
