#pragma once

#include <filesystem>

#include "widelimit/files/temporary_path.hpp"

namespace widelimit::files {

/// While an object lives, no other process, and no other object of this one, has the lock of the same folder. Nothing
/// is written into it, and the lock of a process that was killed is free. Some file systems of networks have no locks
/// of folders: there every lock is given.
class FolderLock {
 public:
  /// DataError naming the folder where somebody else has its lock.
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_;
};

/// The same for a folder that is made elsewhere and takes its place as a whole: while an object lives, an empty folder
/// with a temporary name (temporary_name()) beside the place says that this process makes it. Processes of other
/// machines are not asked.
class FolderClaim {
 public:
  /// DataError naming the folder where another process of this machine makes it.
  explicit FolderClaim(const std::filesystem::path& folder);

 private:
  TemporaryPath mark_;
};

}  // namespace widelimit::files
