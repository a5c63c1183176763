// What disks, other programs and hands do to a store: named by check(), mended by the next run, nothing else touched.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <functional>
#include <limits>
#include <stop_token>
#include <thread>

#include "store/crc32c.hpp"
#include "store/image_store.hpp"

namespace widelimit::testing {
namespace {

using store::GramStore;
using store::StoreCheck;
using store::StoredGram;
using store::StoreOptions;
namespace fs = std::filesystem;
using Damaged = ImageStore;

TEST_CASE("infinity in a tile is damage, whatever its checksum") {
  for (const float sign : {1.0F, -1.0F}) {
    const Damaged store;
    const auto file = store.chunk("nngp/c/0/2");
    std::string bytes = read_bytes(file);
    const auto infinity = std::bit_cast<std::array<char, 4>>(sign * std::numeric_limits<float>::infinity());
    std::copy(infinity.begin(), infinity.end(), bytes.begin());
    const auto sum = std::bit_cast<std::array<char, 4>>(store::crc32c(bytes.data(), 64));
    std::copy(sum.begin(), sum.end(), bytes.begin() + 64);
    std::ofstream(file, std::ios::binary) << bytes;
    CHECK(store.check().damaged == std::vector<std::string>{file.string()});
    CHECK(store.check().reasons == std::vector<std::string>{"a number in it is infinite"});
    store.check_mended(1);
  }
}

TEST_CASE("folders, pipes and files in the way are all named, then removed by hand") {
  const Damaged store;
  fs::remove_all(store.chunk("nngp/c/1"));
  store.folder.write("nngp/c/1", "no folder");
  fs::remove(store.chunk("nngp/c/0/0"));
  fs::create_directory(store.chunk("nngp/c/0/0"));
  fs::remove(store.chunk("ntk/c/0/2"));
  REQUIRE(mkfifo(store.chunk("ntk/c/0/2").c_str(), 0600) == 0);
  fs::remove(store.chunk("ntk/zarr.json"));
  fs::create_directory(store.chunk("ntk/zarr.json"));
  const StoreCheck check = store.check();
  CHECK(check.obstacles ==
        std::vector<std::string>{store.chunk("ntk/zarr.json").string(), store.chunk("nngp/c/0/0").string(),
                                 store.chunk("ntk/c/0/2").string(), store.chunk("nngp/c/1").string()});
  CHECK(check.whole == 2);
  for (const std::string& path : check.obstacles) fs::remove_all(path);
  store.check_mended(4);
}

TEST_CASE("an array whose folder was removed is computed again") {
  for (const char* array : {"nngp", "ntk"}) {
    const Damaged store;
    fs::remove_all(store.chunk(array));
    const StoredGram stored(store.folder.path());
    CHECK(stored.tiles_there() == 0);
    CHECK(stored.tiles_there(array) == 0);
    // The records went with the first array.
    const bool are_recorded = array != std::string("nngp");
    const StoreCheck check = stored.check();
    CHECK(check.whole == 0);
    CHECK(check.missing.size() == (are_recorded ? 6 : 0));
    CHECK(check.unrecorded == (are_recorded ? 0 : 6));
    CHECK(store.run().computed == 6);
    CHECK(store.check().is_complete());
    check_same_kernels(StoredGram(store.folder.path()).matrix<float>(), gram(image_network(), store.x));
  }
}

TEST_CASE("a side of tiles that somebody has changed is refused; who says the right one has it put back") {
  const Damaged store;
  const std::string document = read_bytes(store.chunk("zarr.json"));
  std::string changed = document;
  const std::string side = "\"tile_side\": 4";
  REQUIRE(changed.find(side) != std::string::npos);
  store.folder.write("zarr.json", changed.replace(changed.find(side), side.size(), "\"tile_side\": 5"));
  const auto before = contents(store.folder.path());
  for (const Index given : {0, 5})
    CHECK(
        error_message<DataError>([&] {
          return GramStore<float>(store.folder.path(), image_network(), store.x, {.tile_side = given});
        })
            .find("zarr.json says tile_side 5, but the tiles that are there have 4 a side: it was changed by "
                  "hand; nothing was touched; --tile 4 puts it back") != std::string::npos);
  CHECK(contents(store.folder.path()) == before);
  const StoreCheck check = store.check();
  CHECK(check.tile_side == 4);
  CHECK(check.whole == 6);
  CHECK(check.damaged == std::vector<std::string>{store.chunk("zarr.json").string()});
  store.check_mended(0);
  CHECK(read_bytes(store.chunk("zarr.json")) == document);
}

TEST_CASE("temporary files that nobody writes any more are removed, also beside tiles that are whole") {
  const Damaged store;
  const auto write = [&](const std::string& name, std::chrono::minutes ago) {
    store.folder.write(name, "half");
    fs::last_write_time(store.chunk(name.c_str()), fs::file_time_type::clock::now() - ago);
  };
  using std::chrono::minutes;
  const std::string elsewhere = ".elsewhere-00000000-17-0badcafe-0.part";
  write("ntk/c/0/1" + elsewhere, minutes(61));
  write("nngp/c/1/2" + elsewhere, minutes(59));
  write("zarr.json" + elsewhere, minutes(61));
  write("ntk/c/0/1.99999999-0.part", minutes(61));
  write("ntk/c/0/notes.txt", minutes(1000));
  static_cast<void>(store.run());
  CHECK_FALSE(fs::exists(store.chunk(("ntk/c/0/1" + elsewhere).c_str())));
  CHECK(fs::exists(store.chunk(("nngp/c/1/2" + elsewhere).c_str())));
  CHECK_FALSE(fs::exists(store.chunk(("zarr.json" + elsewhere).c_str())));
  CHECK_FALSE(fs::exists(store.chunk("ntk/c/0/1.99999999-0.part")));
  CHECK(fs::exists(store.chunk("ntk/c/0/notes.txt")));
}

/// The error of a run over a store that lacks tiles, to which something happens once one was computed.
std::string error_where(const std::function<void(const fs::path& folder)>& happens, Index tile_side = 2) {
  const TemporaryFolder folder;
  const fs::path place = folder.path() / "store";
  StoreOptions options{.tile_side = tile_side};
  bool has_happened = false;
  options.progress = [&](const store::StoreProgress& progress) {
    if (has_happened || progress.tiles_done < 3) return;
    has_happened = true;
    // The tile before is written by another thread, in a few milliseconds.
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    happens(place);
  };
  const std::string message = error_message<DataError>(
      [&] { return GramStore<float>(place, image_network(), images(10), options).compute(); });
  CHECK(has_happened);
  const std::string begin = place.string();
  return message.starts_with(begin) ? message.substr(begin.size()) : message;
}

TEST_CASE("a store that is moved, removed or loses a file while it is computed is no success") {
  const std::string gone = ": the store was moved or removed while it was computed";
  CHECK(error_where([](const fs::path& store) {
          fs::rename(store, store.parent_path() / "moved");
        }).starts_with(gone));
  CHECK(error_where([](const fs::path& store) { fs::remove_all(store); }).starts_with(gone));
  CHECK(error_where([](const fs::path& store) { fs::remove(store / "zarr.json"); }).starts_with(gone));
  const std::string lost = ": of 15 tiles, 1 are missing or of another size, the first (0, 0)";
  CHECK(error_where([](const fs::path& store) { fs::remove(store / "nngp/c/0/0"); }).starts_with(lost));
  CHECK(error_where([](const fs::path& store) { fs::remove(store / "ntk/c/0/0"); }).starts_with(lost));
  CHECK(
      error_where([](const fs::path& store) { fs::resize_file(store / "ntk/c/0/0", 3); }).starts_with(lost));
  CHECK(error_where([](const fs::path& store) {
          fs::remove(store / "ntk/c/0/0");
          fs::create_directory(store / "ntk/c/0/0");
        }).starts_with(lost));
  CHECK(error_where([](const fs::path& store) {
          fs::rename(store / "ntk/c", store.parent_path() / "c");
        }).find(" are missing or of another size, the first (0, 0)") != std::string::npos);
  const std::string unrecorded = ": the record of tile (0, 0) has gone while the store was computed";
  CHECK(error_where([](const fs::path& store) {
          fs::remove_all(store / "nngp/records");
        }).starts_with(unrecorded));
  CHECK(error_where([](const fs::path& store) {
          for (const auto& file : fs::directory_iterator(store / "nngp/records"))
            fs::resize_file(file.path(), 0);
        }).starts_with(unrecorded));
  CHECK(error_where([](const fs::path& store) {
          fs::remove(store / "ntk/zarr.json");
        }).starts_with("/ntk/zarr.json: it is not there, or does not say what the array is"));
  CHECK(error_where([](const fs::path& store) {
          const TemporaryFolder other;
          static_cast<void>(
              GramStore<float>(other.path(), image_network(2.5), images(10), {.tile_side = 2}).compute());
          fs::copy_file(other.path() / "zarr.json", store / "zarr.json",
                        fs::copy_options::overwrite_existing);
        }).starts_with(": zarr.json is of another store now"));
}

TEST_CASE("what a run finds is looked at in the end, too") {
  const Damaged store;
  StoreOptions options{.tile_side = 4};
  int looks = 0;
  options.progress = [&](const store::StoreProgress&) {
    if (++looks == 4) fs::remove(store.chunk("nngp/c/0/0"));
  };
  CHECK(error_message<DataError>([&] {
          return store.run(options);
        }).find("of 6 tiles, 1 are missing or of another size, the first (0, 0)") != std::string::npos);
  store.check_mended(1);
}

TEST_CASE("a stop in the midst of a tile is told by the tiles that are there") {
  const TemporaryFolder folder;
  std::stop_source stop;
  StoreOptions options{.tile_side = 2};
  options.gram.stop = stop.get_token();
  options.progress = [&](const store::StoreProgress& progress) {
    if (progress.tiles_done >= 4 && progress.pairs_computed > 0) stop.request_stop();
  };
  const std::string message = error_message<Cancelled>(
      [&] { return GramStore<float>(folder.path(), image_network(), images(12), options).compute(); });
  CHECK(message.starts_with("store: stopped on request after "));
  CHECK(message.ends_with(" tiles, which are in the store"));
  CHECK(message.find(fmt::format(" after {} tiles", StoredGram(folder.path()).tiles_there())) !=
        std::string::npos);
}

}  // namespace
}  // namespace widelimit::testing
