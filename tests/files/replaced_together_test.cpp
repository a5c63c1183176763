#include "widelimit/files/replaced_together.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <list>
#include <map>
#include <random>
#include <string>

#include "data/temporary_folder.hpp"
#include "support/error_message.hpp"
#include "widelimit/error.hpp"

using namespace widelimit::files;
using widelimit::DataError;
using widelimit::testing::error_message;
namespace fs = std::filesystem;

namespace {

/// The files of a folder with their bytes, and the folders in it.
std::map<std::string, std::string> content_of(const fs::path& folder) {
  std::map<std::string, std::string> content;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    content[entry.path().lexically_relative(folder).string()] =
        entry.is_regular_file() ? read_bytes(entry.path()) : "a folder";
  return content;
}

}  // namespace

TEST_CASE("replaced together: all take their places, and nothing else is left") {
  const TemporaryFolder folder;
  folder.write("old", "old"), folder.write("gone", "gone");
  ReplacingFile old(folder.path() / "old"), fresh(folder.path() / "fresh");
  old.write("new"), fresh.write("fresh");
  ReplacedTogether together;
  together.put(old), together.put(fresh), together.remove(folder.path() / "gone");
  together.finish();
  CHECK(content_of(folder.path()) == std::map<std::string, std::string>{{"old", "new"}, {"fresh", "fresh"}});
}

TEST_CASE("replaced together: without an end everything is as it was") {
  const TemporaryFolder folder;
  folder.write("old", "old"), folder.write("gone", "gone");
  const auto before = content_of(folder.path());
  {
    ReplacingFile old(folder.path() / "old"), fresh(folder.path() / "fresh"), again(folder.path() / "old");
    old.write("new"), fresh.write("fresh"), again.write("newer");
    ReplacedTogether together;
    together.put(old), together.put(fresh), together.remove(folder.path() / "gone"), together.put(again);
    CHECK(read_bytes(folder.path() / "old") == "newer");
  }
  CHECK(content_of(folder.path()) == before);
}

TEST_CASE("replaced together: whichever step fails, everything is as it was, and the message says so") {
  std::mt19937 random(1);
  for (int draw = 0; draw < 60; ++draw) {
    const TemporaryFolder folder;
    const int count = 1 + static_cast<int>(random() % 5), blocked = static_cast<int>(random() % count);
    std::list<ReplacingFile> files;
    for (int k = 0; k < count; ++k) {
      const std::string name = "file" + std::to_string(k);
      if (random() % 2 == 0) folder.write(name, "old " + name);
      files.emplace_back(folder.path() / name).write("new " + name);
    }
    // A folder takes the place of one file meanwhile, empty or not.
    const fs::path place = folder.path() / ("file" + std::to_string(blocked));
    fs::remove(place);
    fs::create_directory(place);
    if (random() % 2 == 0) std::ofstream(place / "mine") << "mine";
    const bool removes = random() % 2 == 0;
    std::map<std::string, std::string> before;
    for (const auto& [name, bytes] : content_of(folder.path()))
      if (!name.ends_with(".part")) before[name] = bytes;
    const std::string message = error_message<DataError>([&] {
      ReplacedTogether together;
      int k = 0;
      for (ReplacingFile& file : files)
        if (removes && k++ == blocked)
          together.remove(file.target());
        else
          together.put(file);
      together.finish();
    });
    files.clear();
    CAPTURE(draw);
    CHECK(message ==
          place.string() +
              ": cannot be replaced: expected a regular file or none, found a folder, link or device; all "
              "files are as they were");
    CHECK(content_of(folder.path()) == before);
  }
}

TEST_CASE("replaced together: the earlier file keeps its mode when it comes back") {
  const TemporaryFolder folder;
  const auto path = folder.write("secret", "old");
  chmod(path.c_str(), 0600);
  {
    ReplacingFile file(path);
    file.write("new");
    ReplacedTogether together;
    together.put(file);
  }
  CHECK(read_bytes(path) == "old");
  CHECK(fs::status(path).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
}
