#include "widelimit/files/folder_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "widelimit/error.hpp"
#include "widelimit/files/replacing_file.hpp"

namespace widelimit::files {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& folder) {
  throw DataError(
      fmt::format("{}: another run writes to this folder: wait until it has ended, or choose another folder",
                  folder.string()));
}

fs::path without_slash(const fs::path& folder) {
  return folder.has_filename() ? folder : folder.parent_path();
}

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& folder)
    : descriptor_{open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)} {
  if (descriptor_ < 0 || flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  close(descriptor_);
  refuse(folder);
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

FolderClaim::FolderClaim(const fs::path& folder) : mark_{temporary_name(without_slash(folder))} {
  std::error_code error;
  // The mark first: of two at once, at least one sees the other.
  fs::create_directory(mark_.path(), error);
  const std::string target = name_in_temporary(without_slash(folder).filename().string());
  const fs::path parent = mark_.path().parent_path();
  for (fs::directory_iterator entry(parent.empty() ? "." : parent, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (target_of_writer(name) != target || !fs::is_directory(entry->symlink_status())) continue;
    std::error_code ignored;
    // A mark that a killed process left goes: it is empty.
    if (target_of_dead_writer(name)) fs::remove(entry->path(), ignored);
    if (is_of_another_here(name)) refuse(folder);
  }
}

}  // namespace widelimit::files
