#include "widelimit/files/permissions.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace widelimit::files {

std::optional<Permissions> permissions_of(const std::filesystem::path& path) {
  struct stat facts {};
  if (lstat(path.c_str(), &facts) != 0 || (!S_ISREG(facts.st_mode) && !S_ISDIR(facts.st_mode))) return {};
  constexpr mode_t nine_bits = 0777;
  return Permissions{facts.st_mode & nine_bits, facts.st_uid, facts.st_gid};
}

void set_permissions(int descriptor, Permissions permissions) {
  constexpr auto unchanged = static_cast<uid_t>(-1);
  struct stat now {};
  if (fstat(descriptor, &now) != 0) return;
  // Only the administrator may give files away.
  if (now.st_uid != permissions.owner || now.st_gid != permissions.group)
    if (fchown(descriptor, permissions.owner, permissions.group) != 0 &&
        fchown(descriptor, unchanged, permissions.group) != 0) {
      constexpr mode_t of_group = 0070, of_others = 0007;
      permissions.mode &= ~of_group | ((permissions.mode & of_others) << 3);
    }
  // File systems without modes have nothing to keep.
  static_cast<void>(fchmod(descriptor, permissions.mode) == 0);
}

void set_permissions(const std::filesystem::path& folder, Permissions permissions) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return;
  set_permissions(descriptor, permissions);
  close(descriptor);
}

}  // namespace widelimit::files
