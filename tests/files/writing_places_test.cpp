// What is confined stays so until the process ends, so that each case has a process of its own.
#include "widelimit/files/writing_places.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>

#include "data/temporary_folder.hpp"
#include "support/error_message.hpp"
#include "widelimit/error.hpp"
#include "widelimit/files/replacing_file.hpp"

using namespace widelimit::files;
using widelimit::DataError;
using widelimit::testing::error_message;
namespace fs = std::filesystem;

namespace {

/// Whether it is true in a process that may write to this folder only.
bool confined(const fs::path& folder, const std::function<bool()>& is_true) {
  const pid_t child = fork();
  if (child == 0) {
    confine_writing(folder, "do something else");
    _exit(is_true() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

TEST_CASE("writing places: everywhere as long as nothing is said") {
  CHECK_NOTHROW(require_may_write("/anywhere"));
}

TEST_CASE("writing places: the folder and what lies below it, links followed") {
  const TemporaryFolder folder;
  const fs::path inside = folder.path() / "inside", outside = folder.path() / "inside and more";
  fs::create_directory(inside);
  fs::create_directory(outside);
  fs::create_directory_symlink(outside, inside / "out");
  fs::create_symlink(outside / "file", inside / "file");
  const auto refuses = [&](const fs::path& path) {
    return error_message<DataError>([&] { require_may_write(path); }) ==
           path.string() + ": lies outside of " + fs::canonical(inside).string() +
               ", the only folder that this run may write to; do something else";
  };
  for (const fs::path& path : {outside, outside / "x", folder.path(), fs::path("/"), inside / ".." / "x",
                               inside / "out", inside / "out" / "x", inside / "file"})
    CHECK_MESSAGE(confined(inside, [&] { return refuses(path); }), path.string());
  for (const fs::path& path :
       {inside, inside / "", inside / "a", inside / "none" / "there", inside / "out" / ".." / "inside"})
    CHECK_MESSAGE(confined(inside / "", [&] { return !refuses(path); }), path.string());
  CHECK(confined(inside, [&] {
    return error_message<DataError>([&] { replace_file(outside / "file", "x"); }).find("lies outside of") !=
           std::string::npos;
  }));
  CHECK_FALSE(fs::exists(outside / "file"));
}

TEST_CASE("writing places: links within a folder are named, the folder itself may be one") {
  const TemporaryFolder folder;
  const fs::path real = folder.path() / "real", link = folder.path() / "link";
  fs::create_directories(real / "sub");
  fs::create_directory_symlink(real, link);
  fs::create_directory_symlink(folder.path(), real / "out");
  fs::create_symlink(folder.path() / "none", real / "sub" / "file");
  const auto message = [&](const fs::path& place, const fs::path& name) {
    return error_message<DataError>([&] { require_no_links(place, name); });
  };
  CHECK(message(link, "sub/other") == "no error");
  CHECK(message(link, "none/there") == "no error");
  CHECK(message(link, "out/x")
            .starts_with((link / "out").string() + ": is a link, and nothing is written through"));
  CHECK(message(real, "sub/file").starts_with((real / "sub/file").string() + ": is a link"));
}

TEST_CASE("writing places: a working directory that was removed is said to be") {
  const TemporaryFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    fs::current_path(folder.path());
    fs::remove(folder.path());
    const std::string message = error_message<DataError>([] { return working_directory(); });
    _exit(message.starts_with("the working directory is not there any more, or cannot be seen (") ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(working_directory() == fs::current_path());
}
