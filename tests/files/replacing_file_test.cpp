#include "widelimit/files/replacing_file.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <fstream>
#include <vector>

#include "data/temporary_folder.hpp"
#include "support/error_message.hpp"
#include "widelimit/error.hpp"

using namespace widelimit::files;
using widelimit::DataError;
using widelimit::testing::error_message;

namespace {

std::ptrdiff_t entries(const std::filesystem::path& folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

}  // namespace

TEST_CASE("replacing file: the old file stays until the commit, and without one") {
  const TemporaryFolder folder;
  const auto path = folder.write("a.csv", "old");
  {
    ReplacingFile file(path);
    file.write("new");
    file.close();
    CHECK(read_bytes(path) == "old");
    CHECK(entries(folder.path()) == 2);
  }
  CHECK(read_bytes(path) == "old");
  CHECK(entries(folder.path()) == 1);
  ReplacingFile file(path);
  file.write("new");
  file.commit();
  CHECK(read_bytes(path) == "new");
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("replacing file: two writers of one file do not mix") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.csv";
  ReplacingFile first(path), second(path);
  first.write("first");
  second.write("second");
  first.write(" again");
  second.commit();
  first.commit();
  CHECK(read_bytes(path) == "first again");
}

TEST_CASE("replacing file: what cannot be replaced is told at once") {
  const TemporaryFolder folder;
  const auto fifo = folder.path() / "fifo", link = folder.path() / "link";
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  std::filesystem::create_directory(folder.path() / "folder");
  std::filesystem::create_symlink(fifo, link);
  const std::string expected =
      ": cannot be written: expected a regular file or none, found a folder or device";
  for (const auto& path : {fifo, folder.path() / "folder", folder.path()})
    CHECK(error_message<DataError>([&] { check_replaceable(path); }) == path.string() + expected);
  CHECK(error_message<DataError>([&] { check_replaceable(link); }) ==
        std::filesystem::canonical(fifo).string() + expected);
  CHECK(error_message<DataError>([&] { check_replaceable(folder.path() / "none/a.csv"); })
            .starts_with((folder.path() / "none/a.csv").string() +
                         ": cannot be written: failed to create a.csv."));
  CHECK(error_message<DataError>([&] { check_replaceable(folder.path() / "free"); }) == "no error");
  CHECK(entries(folder.path()) == 3);
}

TEST_CASE("replacing file: at a limit of the file's size the process lives, and nothing stays behind") {
  const TemporaryFolder folder;
  const auto path = folder.write("a.csv", "old");
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{4096, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  // The signal, SIGXFSZ, would end this process.
  const std::string message =
      error_message<DataError>([&] { replace_file(path, std::string(100'000, 'x')); });
  setrlimit(RLIMIT_FSIZE, &before);
  CHECK(message.starts_with(path.string() + ": cannot be written: failed to write a.csv."));
  CHECK(message.ends_with("File too large"));
  CHECK(read_bytes(path) == "old");
  CHECK(entries(folder.path()) == 1);
}
