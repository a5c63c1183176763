#include "widelimit/files/writing_places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include "files/whole_name.hpp"
#include "widelimit/error.hpp"

namespace widelimit::files {
namespace {

namespace fs = std::filesystem;

struct Confinement {
  fs::path folder;
  std::string advice;
};

std::mutex confinement_mutex;
std::optional<Confinement> confinement;

/// Where a path leads, whether or not all of it is there.
fs::path place_of(const fs::path& path) {
  fs::path place = path.is_absolute() ? path : working_directory() / path;
  // Links to nothing are followed, too: weakly_canonical() takes them for the end of a path.
  constexpr int most_links = 40;
  std::error_code error;
  for (int links = 0; links < most_links && fs::is_symlink(fs::symlink_status(place, error)); ++links) {
    const fs::path target = fs::read_symlink(place, error);
    if (error) break;
    place = place.parent_path() / target;
  }
  place = fs::weakly_canonical(place);
  // After a slash at the end, the last component is empty.
  return place.has_filename() ? place : place.parent_path();
}

}  // namespace

void confine_writing(const fs::path& folder, std::string advice) {
  const std::scoped_lock lock(confinement_mutex);
  confinement = Confinement{place_of(folder), std::move(advice)};
}

void require_may_write(const fs::path& path) {
  static_cast<void>(whole_name(path));
  const std::scoped_lock lock(confinement_mutex);
  if (!confinement) return;
  const fs::path place = place_of(path), &folder = confinement->folder;
  if (std::mismatch(folder.begin(), folder.end(), place.begin(), place.end()).first == folder.end()) return;
  throw DataError(fmt::format("{}: lies outside of {}, the only folder that this run may write to; {}",
                              path.string(), folder.string(), confinement->advice));
}

void require_no_link(const fs::path& path) {
  std::error_code error;
  if (fs::is_symlink(fs::symlink_status(path, error)))
    throw DataError(
        fmt::format("{}: is a link, and nothing is written through links within a folder: remove it, or "
                    "choose another folder",
                    path.string()));
}

void require_no_links(const fs::path& folder, const fs::path& name) {
  fs::path path = folder;
  for (const fs::path& part : name) require_no_link(path /= part);
}

fs::path working_directory() {
  std::error_code error;
  fs::path directory = fs::current_path(error);
  if (error)
    throw DataError(
        fmt::format("the working directory is not there any more, or cannot be seen ({}): change to another "
                    "one, and run again",
                    error.message()));
  return directory;
}

}  // namespace widelimit::files
