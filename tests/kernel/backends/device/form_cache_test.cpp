// Forms that are kept between processes: which are found again, and that a folder or a file that is no good costs a
// notice and nothing else.
#include "kernel/backends/device/form_cache.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "data/temporary_folder.hpp"
#include "kernel/backends/device/device_notes.hpp"
#include "support/environment_variable.hpp"

namespace widelimit::testing::form_cache_test {
namespace {

namespace fs = std::filesystem;

const DeviceForm wide{.items = 64, .planes = 4, .unrolled = true}, narrow{.items = 32};
const std::vector<DeviceForm> candidates{{.items = 64}, narrow, wide};
const FormKey card{"a card", "a platform", "1.2", "0123"};

/// An empty folder in which forms are kept while it lives.
struct Cache {
  TemporaryFolder folder;
  EnvironmentVariable variable{cache_variable, (folder.path() / "forms").string()};

  [[nodiscard]] fs::path path() const { return folder.path() / "forms"; }
  [[nodiscard]] std::vector<fs::path> files() const {
    std::vector<fs::path> all;
    for (const auto& entry : fs::directory_iterator(path())) all.push_back(entry.path());
    return all;
  }
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("forms that are kept are found by device, platform, driver and chain") {
  const Cache cache;
  DeviceNotes notes;
  CHECK_FALSE(kept_form(card, candidates));
  const auto file = keep_form(card, wide);
  REQUIRE(file);
  CHECK(file->parent_path() == cache.path());
  CHECK(kept_form(card, candidates) == wide);
  for (std::string FormKey::*part :
       {&FormKey::device, &FormKey::platform, &FormKey::driver, &FormKey::chain}) {
    FormKey other = card;
    other.*part += "3";
    CHECK_FALSE(kept_form(other, candidates));
    keep_form(other, narrow);
    CHECK(kept_form(other, candidates) == narrow);
  }
  CHECK(kept_form(card, candidates) == wide);
  CHECK(cache.files().size() == 5);
  keep_form(card, narrow);
  CHECK(kept_form(card, candidates) == narrow);
  CHECK(cache.files().size() == 5);
  CHECK(notes.taken().empty());
}

TEST_CASE("digests of chains tell sources apart, but not their constants") {
  const auto digest = [](const std::vector<std::string>& sources) { return chain_digest(sources); };
  const std::string source = "a = fma(0.25f, b3, (-1.5e-07f)); for (i = 0; i < 32; ++i) c[0x1F] = x1.y;";
  CHECK(digest({source}).size() == 32);
  CHECK(digest({source}) ==
        digest({"a = fma(2.0f, b3, (-17.0f)); for (i = 0; i < 32; ++i) c[0x1F] = x1.y;"}));
  CHECK(digest({source}) == digest({"a = fma(3e+20, b3, (-0.0)); for (i = 0; i < 32; ++i) c[0x1F] = x1.y;"}));
  CHECK(digest({source}) !=
        digest({"a = fma(0.25f, b3, (-1.5f)); for (i = 0; i < 31; ++i) c[0x1F] = x1.y;"}));
  CHECK(digest({source}) !=
        digest({"a = fma(0.25f, b4, (-1.5f)); for (i = 0; i < 32; ++i) c[0x1F] = x1.y;"}));
  CHECK(digest({source}) !=
        digest({"a = fma(0.25f, b3, (-1.5f)); for (i = 0; i < 32; ++i) c[0x1E] = x1.y;"}));
  CHECK(digest({"ab", "c"}) != digest({"a", "bc"}));
  CHECK(digest({"ab"}) != digest({"ab", ""}));
}

TEST_CASE("files that are damaged, or of others, are told, and written anew") {
  const Cache cache;
  DeviceNotes notes;
  const fs::path file = keep_form(card, wide).value();
  const std::string good = read_bytes(file);
  std::string other_driver = good, no_form = good, not_here = good, twice = good + good;
  other_driver.replace(other_driver.find("1.2"), 3, "1.3");
  no_form.replace(no_form.find("planes=4"), 8, "planes=$");
  not_here.replace(not_here.find("items=64"), 8, "items=99");
  for (const std::string& bad :
       {std::string(), good.substr(0, good.size() - 1), good.substr(0, 20), good + " ", other_driver, no_form,
        not_here, twice, std::string(300, '\0'), std::string(1 << 20, 'a')}) {
    CAPTURE(bad.substr(0, 400));
    // Every file is told of once a process: these are in folders of their own.
    const Cache own;
    fs::create_directories(own.path());
    const fs::path damaged = own.path() / file.filename();
    std::ofstream(damaged) << bad;
    CHECK_FALSE(kept_form(card, candidates));
    const auto told = notes.taken();
    REQUIRE(told.size() == 1);
    CHECK(has(told[0], damaged.string() + ": expected a form of a card as it was kept, got another text"));
    CHECK(keep_form(card, wide) == damaged);
    CHECK(read_bytes(damaged) == good);
    CHECK(notes.taken().empty());
  }
}

TEST_CASE("a place where no file can be is told, and fails nothing") {
  DeviceNotes notes;
  const TemporaryFolder folder;
  const auto check_unkept = [&](const std::optional<std::string>& value, const std::string& with) {
    const EnvironmentVariable cache(cache_variable, value);
    CHECK_FALSE(keep_form(card, wide));
    const auto told = notes.taken();
    REQUIRE(told.size() == 1);
    CAPTURE(told[0]);
    CHECK(has(told[0], "the fastest form cannot be kept"));
    CHECK(has(told[0], with));
    CHECK(has(told[0], "WIDELIMIT_CACHE"));
    CHECK_FALSE(kept_form(card, candidates));
    static_cast<void>(notes.taken());
  };
  const fs::path file = folder.path() / "file";
  std::ofstream(file) << "no folder";
  check_unkept(file.string(), file.string());
  check_unkept((file / "below").string(), "file/below");
  check_unkept("/proc/widelimit", "/proc/widelimit");
  check_unkept(std::string(5000, 'x'), "File name too long");
  {
    const EnvironmentVariable caches("XDG_CACHE_HOME", std::nullopt), home("HOME", "");
    check_unkept("", "none of WIDELIMIT_CACHE, XDG_CACHE_HOME and HOME names a folder");
  }
}

TEST_CASE("what stands where the file of a form should be is not followed or waited for") {
  for (const char* kind : {"folder", "pipe", "link"}) {
    CAPTURE(kind);
    const Cache cache;
    DeviceNotes notes;
    const fs::path file = keep_form(card, wide).value(), target = cache.folder.path() / "target";
    fs::remove(file);
    if (kind == std::string("folder")) fs::create_directory(file);
    if (kind == std::string("pipe")) REQUIRE(mkfifo(file.c_str(), 0600) == 0);
    if (kind == std::string("link")) {
      std::ofstream(target) << "precious";
      fs::create_symlink(target, file);
    }
    CHECK_FALSE(kept_form(card, candidates));
    CHECK_FALSE(keep_form(card, wide));
    CHECK(notes.taken().size() == 2);
    if (fs::exists(target)) CHECK(read_bytes(target) == "precious");
  }
}

TEST_CASE("the folder is that of the environment") {
  const TemporaryFolder folder;
  const EnvironmentVariable own(cache_variable, std::nullopt),
      home("HOME", (folder.path() / "home").string());
  {
    const EnvironmentVariable caches("XDG_CACHE_HOME", std::nullopt);
    CHECK(keep_form(card, wide).value().parent_path() == folder.path() / "home/.cache/widelimit");
  }
  const EnvironmentVariable caches("XDG_CACHE_HOME", (folder.path() / "caches").string());
  CHECK(keep_form(card, wide).value().parent_path() == folder.path() / "caches/widelimit");
}

TEST_CASE("threads that keep and look for one form see whole files only") {
  const Cache cache;
  DeviceNotes notes;
  std::atomic<int> others = 0;
  keep_form(card, wide);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int n = 0; n < 200; ++n) {
        if (t % 2 == 0) keep_form(card, n % 2 == 0 ? wide : narrow);
        const auto found = kept_form(card, candidates);
        if (found != wide && found != narrow) ++others;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(others == 0);
  CHECK(notes.taken().empty());
  CHECK(cache.files().size() == 1);
}

}  // namespace
}  // namespace widelimit::testing::form_cache_test
