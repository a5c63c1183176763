#include "widelimit/files/temporary_path.hpp"

#include <algorithm>
#include <system_error>
#include <vector>

namespace widelimit::files {
namespace {

struct Registry {
  std::recursive_mutex mutex;
  std::vector<const TemporaryPath*> paths;  ///< In the order in which they were made.
};

Registry& registry() {
  // It is never destroyed: a thread may end the program while static objects are.
  static auto* const instance = new Registry;
  return *instance;
}

void remove_quietly(const std::filesystem::path& path) {
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
}

}  // namespace

TemporaryPath::TemporaryPath(std::filesystem::path path) : path_{std::move(path)} {
  const std::scoped_lock lock(registry().mutex);
  registry().paths.push_back(this);
}

TemporaryPath::~TemporaryPath() {
  const std::scoped_lock lock(registry().mutex);
  if (!is_kept_) remove_quietly(path_);
  std::erase(registry().paths, this);
}

void TemporaryPath::keep() {
  const std::scoped_lock lock(registry().mutex);
  is_kept_ = true;
  std::erase(registry().paths, this);
}

TemporaryPathLock::TemporaryPathLock() : lock_{registry().mutex} {}

void remove_temporary_paths() {
  registry().mutex.lock();
  auto& paths = registry().paths;
  // Folders were made before the files in them.
  std::for_each(paths.rbegin(), paths.rend(),
                [](const TemporaryPath* path) { remove_quietly(path->path()); });
}

}  // namespace widelimit::files
