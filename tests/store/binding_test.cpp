// Every tile belongs to one place of one array of one store: whatever else is put there is damage to every reader, and
// the next run computes it again.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <regex>

#include "store/image_store.hpp"
#include "store/tile_records.hpp"
#include "widelimit/version.hpp"

namespace widelimit::testing {
namespace {

using store::GramStore;
using store::StoredGram;
using store::StoreOptions;
using store::UnrecordedTiles;
namespace fs = std::filesystem;
constexpr auto over = fs::copy_options::overwrite_existing | fs::copy_options::recursive;

/// The files of all tiles: ntk/c/0/1 and so on.
std::vector<std::string> all_chunks() {
  std::vector<std::string> names;
  for (const char* array : {"nngp", "ntk"})
    for (int i = 0; i < 3; ++i)
      for (int j = i; j < 3; ++j) names.push_back(fmt::format("{}/c/{}/{}", array, i, j));
  return names;
}

/// That these files are damage to every reader of the store, and nothing else is.
void check_damaged(const ImageStore& store, std::vector<std::string> chunks, const std::string& reason = "") {
  for (std::string& chunk : chunks) chunk = store.chunk(chunk).string();
  std::sort(chunks.begin(), chunks.end());
  auto found = store.check();
  if (!reason.empty())
    for (const std::string& given : found.reasons) CHECK(given == reason);
  std::sort(found.damaged.begin(), found.damaged.end());
  CHECK(found.damaged == chunks);
  CHECK_FALSE(found.is_complete());
  for (const char* array : {"nngp", "ntk"}) {
    const auto folder = store.chunk(array).string() + "/";
    const auto is_of_array = [&](const std::string& chunk) { return chunk.starts_with(folder); };
    const bool is_damaged = std::ranges::any_of(chunks, is_of_array);
    const fs::path npy = store.chunk("export.npy");
    if (is_damaged) {
      CHECK_THROWS_AS(static_cast<void>(store.stored().matrix<float>(array)), DataError);
      CHECK_THROWS_AS(static_cast<void>(store.stored().rows<double>(array, {0, 10})), DataError);
      CHECK_THROWS_AS(store.stored().write_npy(array, npy), DataError);
    } else {
      CHECK_NOTHROW(static_cast<void>(store.stored().matrix<float>(array)));
    }
  }
  CHECK_THROWS_AS(static_cast<void>(store.stored().matrix<float>()), DataError);
}

/// How many tiles have one of these files.
Index tiles_of(std::vector<std::string> chunks) {
  for (std::string& chunk : chunks) chunk = chunk.substr(chunk.find('/'));
  std::sort(chunks.begin(), chunks.end());
  return std::unique(chunks.begin(), chunks.end()) - chunks.begin();
}

fs::path records_file(const ImageStore& store) {
  return *fs::directory_iterator(store.chunk("nngp/records"));
}

/// The lines of the one file of records, changed.
void change_records(const ImageStore& store, const std::function<void(std::vector<std::string>&)>& change) {
  const fs::path file = records_file(store);
  std::ifstream stream(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  change(lines);
  std::ofstream out(file);
  for (const std::string& line : lines) out << line << "\n";
}

/// The store as version 0.2 leaves it: without seals.
void make_unsealed(const ImageStore& store) {
  change_records(store, [](std::vector<std::string>& lines) {
    for (std::string& line : lines) line = std::regex_replace(line, std::regex(" steps 1| seal .*"), "");
  });
  std::string document = read_bytes(store.chunk("zarr.json"));
  const auto change = [&](const std::string& is, const std::string& was) {
    REQUIRE(document.find(is) != std::string::npos);
    document.replace(document.find(is), is.size(), was);
  };
  change("\"format_version\": 2", "\"format_version\": 1");
  change(fmt::format("\"library_version\": \"{}\"", version), "\"library_version\": \"0.2.0\"");
  store.folder.write("zarr.json", document);
}

TEST_CASE("tiles that were swapped, of one kernel or of two, are damage") {
  const auto chunks = all_chunks();
  const ImageStore store;
  for (std::size_t a = 0; a < chunks.size(); ++a)
    for (std::size_t b = a + 1; b < chunks.size(); ++b) {
      CAPTURE(chunks[a]);
      CAPTURE(chunks[b]);
      const auto one = store.chunk(chunks[a]), other = store.chunk(chunks[b]), aside = store.chunk("aside");
      fs::rename(one, aside), fs::rename(other, one), fs::rename(aside, other);
      check_damaged(store, {chunks[a], chunks[b]});
      store.check_mended(tiles_of({chunks[a], chunks[b]}));
    }
}

TEST_CASE("a tile that was copied to another place is damage, and the message says which it is") {
  const ImageStore store;
  const auto reason_of = [&](const char* from, const char* to) {
    fs::copy_file(store.chunk(from), store.chunk(to), over);
    const auto check = store.check();
    REQUIRE(check.damaged.size() == 1);
    store.check_mended(1);
    return check.reasons.front();
  };
  CHECK(reason_of("ntk/c/0/0", "ntk/c/0/1") == "it holds tile (0, 0)");
  CHECK(reason_of("ntk/c/0/1", "nngp/c/0/1") == "it holds tile (0, 1) of ntk");
  CHECK(reason_of("nngp/c/1/2", "ntk/c/0/1") == "it holds tile (1, 2) of nngp");
}

TEST_CASE("tiles of other stores are damage, whether or not their records come with them") {
  const ImageStore other_network(1.4), other_inputs(1.5, 2);
  for (const ImageStore* other : {&other_network, &other_inputs}) {
    const ImageStore store;
    for (const std::string& chunk : all_chunks()) {
      fs::copy_file(other->chunk(chunk), store.chunk(chunk), over);
      check_damaged(store, {chunk}, "the record of its place is of other numbers");
      store.check_mended(1);
    }
    fs::copy(other->chunk("nngp/records"), store.chunk("nngp/records"), over);
    for (const std::string& chunk : all_chunks())
      fs::copy_file(other->chunk(chunk), store.chunk(chunk), over);
    check_damaged(store, all_chunks());
    CHECK(store.check().strange_records == 6);
    store.check_mended(6);
  }
}

TEST_CASE("a store whose tiles and records are all of another one is refused, and nothing is touched") {
  const ImageStore store, other(1.4);
  for (const char* array : {"nngp", "ntk"}) {
    fs::remove_all(store.chunk(array));
    fs::copy(other.chunk(array), store.chunk(array), over);
  }
  const auto before = contents(store.folder.path());
  CHECK(error_message<DataError>([&] {
          return store.run();
        }).find("no record says that its tiles are of this store") != std::string::npos);
  CHECK(contents(store.folder.path()) == before);
  check_damaged(store, all_chunks());
  // Nor does the option help: the records are there, and are not of this store.
  CHECK(store.check(UnrecordedTiles::accepted).damaged.size() == 12);
}

TEST_CASE("a tile of a store with more inputs, or of another precision, is damage") {
  const ImageStore store;
  const TemporaryFolder more, wide;
  static_cast<void>(
      GramStore<float>(more.path(), image_network(), images(11, 3), {.tile_side = 4}).compute());
  static_cast<void>(
      GramStore<double>(wide.path(), image_network(), images<double>(10), {.tile_side = 4}).compute());
  for (const TemporaryFolder* from : {&more, &wide}) {
    fs::copy_file(from->path() / "ntk/c/0/2", store.chunk("ntk/c/0/2"), over);
    check_damaged(store, {"ntk/c/0/2"});
    store.check_mended(1);
  }
}

TEST_CASE("tiles that were cut short are damage") {
  const ImageStore store;
  for (const std::string& chunk : all_chunks())
    for (const std::uintmax_t bytes : {0, 3, 64, 67}) {
      fs::resize_file(store.chunk(chunk), bytes);
      check_damaged(store, {chunk}, store::wrong_checksum);
      store.check_mended(1);
    }
}

TEST_CASE("a record that was changed, in whatever place, or removed leaves its tile without one") {
  // tile R C pairs P seconds S steps 1 nngp SUM ntk SUM seal SEAL
  for (const char* pattern : {"^tile (.)", "^tile . (.)", "pairs (.)", "steps (.)", "nngp (.)",
                              "ntk .......(.)", " (n)tk", "seal (.)", "seal .{31}(.)"}) {
    CAPTURE(pattern);
    const ImageStore store;
    change_records(store, [&](std::vector<std::string>& lines) {
      std::smatch found;
      REQUIRE(std::regex_search(lines[1], found, std::regex(pattern)));
      const auto place = static_cast<std::size_t>(found.position(1));
      lines[1][place] = lines[1][place] == '2' ? '1' : '2';
    });
    CHECK(store.check().strange_records == 1);
    check_damaged(store, {"nngp/c/0/1", "ntk/c/0/1"});
    store.check_mended(1);
  }
  for (std::size_t line = 0; line < 6; ++line) {
    const ImageStore store;
    change_records(store, [&](std::vector<std::string>& lines) {
      lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(line));
    });
    CHECK(store.check().unrecorded == 2);
    CHECK(store.check().damaged.size() == 2);
    CHECK(store.check().reasons.front() == "no record of the store says that it belongs there");
    store.check_mended(1);
  }
}

TEST_CASE("records end where a line is not: what is longer than any record, and what has no end") {
  const ImageStore store;
  std::ofstream(records_file(store), std::ios::app) << std::string(100'000, 'x') << "\ntile 0 0";
  CHECK(store.check().is_complete());
  CHECK(store.check().strange_records == 1);
}

TEST_CASE("tiles without a record are taken only if the caller says so, and are then written down") {
  const ImageStore store;
  fs::remove_all(store.chunk("nngp/records"));
  fs::remove(store.chunk("ntk/c/0/1"));
  const auto before = contents(store.folder.path());
  const std::string refusal = error_message<DataError>([&] { return store.run(); });
  CHECK(refusal.find("no record says that its tiles are of this store") != std::string::npos);
  CHECK(refusal.find("--accept-unrecorded") != std::string::npos);
  CHECK(contents(store.folder.path()) == before);
  CHECK(store.check().unrecorded == 11);
  CHECK(store.check().damaged.size() == 11);
  CHECK(store.check(UnrecordedTiles::accepted).unrecorded == 11);
  CHECK(store.check(UnrecordedTiles::accepted).damaged.empty());
  CHECK_THROWS_AS(static_cast<void>(store.stored().matrix<float>("nngp")), DataError);
  CHECK(store.stored(UnrecordedTiles::accepted).matrix<float>("nngp") == gram(store.network, store.x).nngp);
  CHECK(store.run({.unrecorded = UnrecordedTiles::accepted}).computed == 1);
  CHECK(store.check().is_complete());
  CHECK(store.check().unrecorded == 0);
  store.check_mended(0);
}

TEST_CASE("documents that were changed by hand are not those of the tiles") {
  const ImageStore store, other(1.4);
  fs::copy_file(other.chunk("zarr.json"), store.chunk("zarr.json"), over);
  CHECK(store.check().damaged.size() == 12);
  CHECK_THROWS_AS(static_cast<void>(store.stored().tile<float>({0, 1})), DataError);
  fs::copy_file(ImageStore().chunk("zarr.json"), store.chunk("zarr.json"), over);
  CHECK(store.check().is_complete());
  // A store of this version is not one of version 0.2 by saying so.
  std::string document = read_bytes(store.chunk("zarr.json"));
  const std::string is = "\"format_version\": 2";
  document.replace(document.find(is), is.size(), "\"format_version\": 1");
  store.folder.write("zarr.json", document);
  CHECK(store.check().damaged.size() == 12);
}

TEST_CASE("a store of version 0.2 is read and gone on with: only its records, without seals, are believed") {
  const ImageStore store, other(1.4);
  make_unsealed(store);
  CHECK(store.check().is_complete());
  CHECK_FALSE(store.check().records_name_store);
  check_same_kernels(store.stored().matrix<float>(), gram(store.network, store.x));
  fs::copy_file(other.chunk("ntk/c/0/1"), store.chunk("ntk/c/0/1"), over);
  check_damaged(store, {"ntk/c/0/1"});
  store.check_mended(1);
  CHECK(read_bytes(store.chunk("zarr.json")).find("\"library_version\": \"0.2.0\"") != std::string::npos);
  CHECK(ImageStore().check().records_name_store);
}

TEST_CASE("a reader of a store that grows meanwhile believes the records of the grown one") {
  const TemporaryFolder folder;
  const auto x = images(14);
  const StoreOptions options{.tile_side = 4, .grow = true};
  static_cast<void>(GramStore<float>(folder.path(), image_network(), x.slice(0, 10), options).compute());
  const StoredGram reader(folder.path());
  static_cast<void>(GramStore<float>(folder.path(), image_network(), x, options).compute());
  check_same_kernels(reader.matrix<float>(), gram(image_network(), x.slice(0, 10)));
}

}  // namespace
}  // namespace widelimit::testing
