#include "widelimit/files/replacing_file.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <fstream>
#include <vector>

#include "data/temporary_folder.hpp"
#include "support/error_message.hpp"
#include "widelimit/error.hpp"
#include "widelimit/text/visible_text.hpp"

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

TEST_CASE("replacing file: what takes a file's place has its mode, whatever the mask") {
  const TemporaryFolder folder;
  const mode_t mask = umask(0027);
  for (const mode_t mode : {0600, 0640, 0400, 0666, 0777}) {
    const auto path = folder.write("a.csv", "old");
    chmod(path.c_str(), mode);
    ReplacingFile file(path);
    struct stat temporary {};
    REQUIRE(fstat(file.descriptor(), &temporary) == 0);
    CHECK((temporary.st_mode & 0777) == mode);
    file.write("new");
    file.commit();
    CHECK(read_bytes(path) == "new");
    CHECK(permissions_of(path)->mode == mode);
    std::filesystem::remove(path);
  }
  replace_file(folder.path() / "fresh", "x");
  CHECK(permissions_of(folder.path() / "fresh")->mode == 0640);
  umask(mask);
}

TEST_CASE("replacing file: links are followed or refused, and second names keep what they had") {
  const TemporaryFolder folder;
  const auto precious = folder.write("precious", "old"), link = folder.path() / "link",
             second = folder.path() / "second", nowhere = folder.path() / "nowhere";
  std::filesystem::create_symlink(precious, link);
  std::filesystem::create_symlink(folder.path() / "none", nowhere);
  std::filesystem::create_hard_link(precious, second);
  for (const auto& path : {link, nowhere})
    CHECK(
        error_message<DataError>([&] {
          replace_file(path, "new", Links::refused);
        }).starts_with(path.string() + ": is a link, and nothing is written through links within a folder"));
  replace_file(second, "new", Links::refused);
  CHECK(read_bytes(precious) == "old");
  CHECK(read_bytes(second) == "new");
  replace_file(link, "followed");
  CHECK(read_bytes(precious) == "followed");
  CHECK(std::filesystem::is_symlink(link));
}

TEST_CASE("replacing file: names of every length that a file system takes") {
  const TemporaryFolder folder;
  for (const std::size_t length : {1, 159, 160, 161, 200, 215, 216, 250, 255}) {
    // Characters of two bytes, which must not be cut.
    std::string name(length % 2, 'x');
    while (name.size() < length) name += "\u00e9";
    const auto path = folder.path() / name;
    CAPTURE(length);
    {
      ReplacingFile file(path);
      file.write("new");
      for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
        const std::string temporary = entry.path().filename().string();
        CHECK(temporary.size() <= 255);
        CHECK_FALSE(widelimit::first_invalid_utf8(temporary));
        CHECK(target_of_writer(temporary) == name_in_temporary(name));
        // Its process runs.
        CHECK_FALSE(target_of_dead_writer(temporary));
      }
      file.commit();
    }
    CHECK(read_bytes(path) == "new");
    CHECK(entries(folder.path()) == 1);
    std::filesystem::remove(path);
  }
  const auto longer = folder.path() / std::string(256, 'x');
  CHECK(error_message<DataError>([&] { check_replaceable(longer); }) ==
        longer.string() + ": cannot be written: File name too long");
  CHECK(name_in_temporary(std::string(161, 'x')) != name_in_temporary(std::string(162, 'x')));
  CHECK(name_in_temporary("folder/" + std::string(200, 'x')) ==
        "folder/" + name_in_temporary(std::string(200, 'x')));
  CHECK(entries(folder.path()) == 0);
}
