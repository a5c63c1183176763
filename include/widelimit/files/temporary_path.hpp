#pragma once

#include <filesystem>
#include <mutex>

namespace widelimit::files {

/// A file, or a folder while it is empty, that is removed in the end unless it is kept.
class TemporaryPath {
 public:
  /// The caller makes what stands at `path` afterwards.
  explicit TemporaryPath(std::filesystem::path path);
  ~TemporaryPath();
  TemporaryPath(const TemporaryPath&) = delete;
  TemporaryPath& operator=(const TemporaryPath&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  /// It is temporary no longer.
  void keep();

 private:
  std::filesystem::path path_;
  bool is_kept_ = false;
};

/// While an object lives, remove_temporary_paths() in other threads waits: for steps that belong together.
class TemporaryPathLock {
 public:
  TemporaryPathLock();

 private:
  std::unique_lock<std::recursive_mutex> lock_;
};

/// Removes what every TemporaryPath of the process stands for, for a program that ends without destroying
/// them. From then on all TemporaryPath objects wait for that end.
void remove_temporary_paths();

}  // namespace widelimit::files
