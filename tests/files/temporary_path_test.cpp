#include "widelimit/files/temporary_path.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "data/temporary_folder.hpp"
#include "widelimit/files/replacing_file.hpp"

using namespace widelimit::files;
namespace fs = std::filesystem;

TEST_CASE("temporary path: removed unless it is kept; folders only while they are empty") {
  const TemporaryFolder folder;
  const auto gone = folder.write("gone", ""), kept = folder.write("kept", "");
  const auto empty = folder.path() / "empty", full = folder.path() / "full";
  {
    const TemporaryPath first(gone), third(empty), fourth(full);
    TemporaryPath second(kept);
    second.keep();
    fs::create_directory(empty);
    fs::create_directory(full);
    std::ofstream(full / "file") << "x";
  }
  CHECK_FALSE(fs::exists(gone));
  CHECK_FALSE(fs::exists(empty));
  CHECK(fs::exists(kept));
  CHECK(fs::exists(full / "file"));
}

TEST_CASE("temporary path: a program that ends at once removes all of them") {
  const TemporaryFolder folder;
  const auto inner = folder.path() / "inner";
  const pid_t child = fork();
  if (child == 0) {
    const TemporaryPath made(inner);
    fs::create_directory(inner);
    ReplacingFile file(inner / "a.csv");
    file.write("half");
    const bool there = fs::exists(inner) && !fs::is_empty(inner);
    remove_temporary_paths();
    _exit(there ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK_FALSE(fs::exists(inner));
}
