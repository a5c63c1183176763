#include "widelimit/files/regular_file.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "data/temporary_folder.hpp"
#include "support/error_message.hpp"
#include "widelimit/error.hpp"
#include "widelimit/files/replacing_file.hpp"
#include "widelimit/files/writing_places.hpp"

using namespace widelimit::files;
using widelimit::DataError;
using widelimit::testing::error_message;
namespace fs = std::filesystem;

TEST_CASE("regular files: pipes, devices, sockets and folders are refused, and nothing waits for them") {
  const TemporaryFolder folder;
  const fs::path pipe = folder.path() / "pipe", link = folder.path() / "link",
                 socket_path = folder.path() / "socket";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  fs::create_symlink(pipe, link);
  const int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(socket_path.string().size() < sizeof address.sun_path);
  std::strcpy(address.sun_path, socket_path.c_str());
  REQUIRE(bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  for (const fs::path& path :
       {pipe, link, socket_path, folder.path(), fs::path("/dev/zero"), fs::path("/dev/null")}) {
    const std::string expected =
        path.string() + ": cannot be read: expected a regular file, found a folder, pipe or device";
    CHECK(error_message<DataError>([&] { return RegularFile(path); }) == expected);
    CHECK(error_message<DataError>([&] { return read_file(path, 100, "a text"); }) == expected);
    CHECK(error_message<DataError>([&] { return RegularFile::if_there(path); }) == expected);
  }
  close(descriptor);
  CHECK(error_message<DataError>([&] { return RegularFile(folder.path() / "none"); }) ==
        (folder.path() / "none").string() + ": expected a file, found none");
  CHECK_FALSE(RegularFile::if_there(folder.path() / "none"));
  CHECK_FALSE(RegularFile::if_there(folder.write("file", "x") / "none"));
}

TEST_CASE("regular files: reading, links, and what is larger than it may be, before a byte is read") {
  const TemporaryFolder folder;
  const fs::path file = folder.write("file", "0123456789"), link = folder.path() / "link";
  fs::create_symlink(file, link);
  for (const fs::path& path : {file, link}) {
    const RegularFile open(path);
    CHECK(open.size() == 10);
    std::array<char, 4> bytes{};
    CHECK(open.read(7, bytes.data(), 4) == 3);
    CHECK(bytes == std::array<char, 4>{'7', '8', '9', '\0'});
    CHECK(open.read(11, bytes.data(), 4) == 0);
    CHECK(read_file(path, 10, "a text") == "0123456789");
    CHECK(error_message<DataError>([&] { return read_file(path, 9, "a text"); }) ==
          path.string() + ": expected a text of at most 9 bytes, found 10");
  }
  // Nothing of it is on the disk.
  constexpr std::uintmax_t terabyte = std::uintmax_t{1} << 40;
  fs::resize_file(file, terabyte);
  CHECK(RegularFile(file).size() == terabyte);
  CHECK(error_message<DataError>([&] {
          return read_file(file, 1 << 30, "a text");
        }).find("found 1099511627776") != std::string::npos);
}

TEST_CASE("regular file: a name does not end at a character of code 0") {
  const TemporaryFolder folder;
  const auto file = folder.write("a.npy", "numbers");
  const std::string longer = file.string() + std::string("\0.json", 6);
  const std::string expected =
      file.string() + "\\0...: expected the name of a file without a character of code 0";
  CHECK(error_message<DataError>([&] { return read_file(longer, 100, "a file"); }) == expected);
  CHECK(error_message<DataError>([&] { return RegularFile::if_there(longer).has_value(); }) == expected);
  for (const Links links : {Links::followed, Links::refused})
    CHECK(error_message<DataError>([&] { replace_file(longer, "mine", links); }) == expected);
  CHECK(error_message<DataError>([&] { require_may_write(longer); }) == expected);
  CHECK(read_bytes(file) == "numbers");
}
