#include "widelimit/files/permissions.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "data/temporary_folder.hpp"

using widelimit::files::permissions_of;
using widelimit::files::set_permissions;

namespace {

mode_t mode_of(const std::filesystem::path& path) { return permissions_of(path)->mode; }

TEST_CASE("permissions: a file and a folder take those of another") {
  const TemporaryFolder made;
  const std::filesystem::path& folder = made.path();
  const auto first = folder / "first", second = folder / "second", inner = folder / "inner";
  std::ofstream(first) << "a";
  std::ofstream(second) << "b";
  std::filesystem::create_directory(inner);
  chmod(first.c_str(), 0600);
  chmod(second.c_str(), 0644);
  chmod(inner.c_str(), 0755);
  const auto wanted = permissions_of(first);
  REQUIRE(wanted);
  CHECK(wanted->mode == 0600);
  CHECK(wanted->owner == geteuid());
  const int descriptor = open(second.c_str(), O_RDONLY);
  REQUIRE(descriptor >= 0);
  set_permissions(descriptor, *wanted);
  close(descriptor);
  CHECK(mode_of(second) == 0600);
  set_permissions(inner, {0700, wanted->owner, wanted->group});
  CHECK(mode_of(inner) == 0700);
}

TEST_CASE("permissions: nothing where neither a regular file nor a folder is") {
  const TemporaryFolder made;
  const std::filesystem::path& folder = made.path();
  CHECK(!permissions_of(folder / "nothing"));
  std::filesystem::create_symlink("nowhere", folder / "link");
  CHECK(!permissions_of(folder / "link"));
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(!permissions_of(folder / "pipe"));
}

}  // namespace
