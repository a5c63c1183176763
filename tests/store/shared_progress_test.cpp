// How far a store is, and how fast all who compute it are, from what they write down; and who is waited for.
#include "store/shared_progress.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <thread>

#include "store/store_support.hpp"
#include "store/tile_claims.hpp"

namespace widelimit::testing {
namespace {

using store::GramStore;
using store::StoredGram;
using store::StoreProgress;

std::filesystem::path records_of(const TemporaryFolder& folder) { return folder.path() / "nngp" / "records"; }

/// As a process of another machine writes them down.
void write_records(const TemporaryFolder& folder, const std::string& process,
                   const std::vector<store::TileRecord>& records) {
  const store::StoreSeals seals(store::StoreFolder(folder.path()).facts());
  std::ofstream file(records_of(folder) / (process + "-0.txt"));
  for (const store::TileRecord& record : records) file << record_line(record, seals) << "\n";
}

TEST_CASE("progress of a store: tiles that are there, and the paces of all who compute") {
  const TemporaryFolder folder;
  const auto x = images(24);
  GramStore<float> half(folder.path(), image_network(), x, {.tile_side = 4, .part = {1, 2}});
  const Index tiles = static_cast<Index>(half.tiles().size());
  static_cast<void>(half.compute());
  const StoreProgress alone = StoredGram(folder.path()).progress();
  CHECK(alone.tiles == 21);
  CHECK(alone.tiles_done == tiles);
  CHECK(alone.pairs == 300);
  CHECK(alone.processes == 0);
  CHECK(alone.pairs_per_second > 0);

  write_records(folder, "node7-0123abcd-4711-9b2d4f60",
                {{{0, 0}, 10, 2, {{"nngp", 1}, {"ntk", 2}}}, {{0, 1}, 30, 2, {{"nngp", 3}, {"ntk", 4}}}});
  write_records(folder, "node8-0123abcd-4711-9b2d4f61", {{{0, 2}, 30, 1, {{"nngp", 5}, {"ntk", 6}}}});
  const StoreProgress two = StoredGram(folder.path()).progress();
  CHECK(two.processes == 2);
  CHECK(two.pairs_per_second == doctest::Approx(10 + 30));
  CHECK(two.tiles_done == tiles);  // No file came of what was written down.
  CHECK(two.seconds_left > 0);
  CHECK(two.seconds_left <= static_cast<double>(two.pairs - two.pairs_done) / 40);

  // One that has been silent for long has ended, wherever it was.
  std::filesystem::last_write_time(records_of(folder) / "node8-0123abcd-4711-9b2d4f61-0.txt",
                                   std::filesystem::file_time_type::clock::now() - std::chrono::minutes(5));
  CHECK(StoredGram(folder.path()).progress().processes == 1);
}

TEST_CASE("progress of a run counts the tiles that others put into the store meanwhile") {
  const TemporaryFolder folder;
  const auto x = images(24);
  std::vector<StoreProgress> seen;
  store::StoreOptions options{.tile_side = 4};
  options.progress = [&](const StoreProgress& progress) { seen.push_back(progress); };
  GramStore<float> run(folder.path(), image_network(), x, options);
  Index by_other = 0;
  std::jthread other([&] {
    by_other = GramStore<float>(folder.path(), image_network(), x, {.tile_side = 4, .part = {2, 2}})
                   .compute()
                   .computed;
  });
  const auto report = run.compute();
  other.join();
  CHECK(report.computed + by_other == 21);
  CHECK(seen.back().tiles_done == 21);
  CHECK(seen.back().pairs_done == 300);
  CHECK(seen.back().seconds_left == 0);
  for (std::size_t i = 1; i < seen.size(); ++i) CHECK(seen[i].pairs_done >= seen[i - 1].pairs_done);
}

TEST_CASE("progress of a store that grew: tiles that lack the new rows are not there") {
  const TemporaryFolder folder;
  static_cast<void>(GramStore<float>(folder.path(), image_network(), images(6), {.tile_side = 4}).compute());
  CHECK(StoredGram(folder.path()).progress().tiles_done == 3);
  const store::StoreOptions growing{.tile_side = 4, .grow = true};
  GramStore<float> grown(folder.path(), image_network(), images(12), growing);
  // Tile (0, 0) alone was whole.
  CHECK(StoredGram(folder.path()).progress().tiles_done == 1);
  static_cast<void>(grown.compute());
  CHECK(StoredGram(folder.path()).progress().tiles_done == 6);
}

TEST_CASE("who waits for the tile of another process says whose it is") {
  const TemporaryFolder folder;
  const auto x = images(12);
  GramStore<float> run(folder.path(), image_network(), x, {.tile_side = 4});
  store::TileClaims other(folder.path() / "nngp" / "claims");
  REQUIRE(other.claim(1));
  std::vector<std::string> said;
  store::StoreOptions options{.tile_side = 4, .silent_waiting_seconds = 0.1};
  options.report = [&](const std::string& message) {
    said.push_back(message);
    other.release(1);
  };
  static_cast<void>(GramStore<float>(folder.path(), image_network(), x, options).compute());
  REQUIRE(said.size() == 1);
  CHECK(said[0] == fmt::format("waiting for tile (0, 1) of process {} on {}", files::this_process().process,
                               files::this_process().host));
}

}  // namespace
}  // namespace widelimit::testing
