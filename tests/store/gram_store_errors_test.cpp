// What stops a store: other facts, other files, a full disk, numbers that are none. Nothing is lost or touched.
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "store/sealed_records.hpp"
#include "store/store_support.hpp"
#include "widelimit/layers/positions.hpp"

namespace widelimit::testing {
namespace {

using store::GramStore;
using store::StoredGram;
using store::StoreOptions;

std::string refusal(const std::filesystem::path& folder, const Network& network, const Inputs<float>& x,
                    const StoreOptions& options = {}) {
  const auto before = contents(folder);
  const std::string message =
      error_message<DataError>([&] { return GramStore<float>(folder, network, x, options); });
  CHECK(contents(folder) == before);
  return message;
}

void check_refused(const std::string& message, const std::string& part) {
  CAPTURE(message);
  CHECK(message.find(part) != std::string::npos);
}

TEST_CASE("a store of something else is refused, with the difference, and not touched") {
  const TemporaryFolder folder;
  const auto x = images(6);
  static_cast<void>(GramStore<float>(folder.path(), image_network(), x, {.tile_side = 4}).compute());
  check_refused(
      refusal(folder.path(), image_network(1.75), x),
      ": the store is another one: network.layers[0].weight_variance is 1.5 there and 1.75 here; nothing was "
      "touched");
  check_refused(refusal(folder.path(), image_network(), x, {.gram = {.kernels = Kernels::nngp}}),
                "arrays[1] is \"ntk\" there and missing here");
  check_refused(refusal(folder.path(), image_network(), x, {.gram = {.exact_attention = true}}),
                "exact_attention is missing there and true here");
  check_refused(refusal(folder.path(), image_network(), x, {.tile_side = 5}),
                "tile_side is 4 there and 5 here");
  check_refused(refusal(folder.path(), image_network(), images(6, 2)), "rows.steps[0].values_sha256 is \"");
  check_refused(refusal(folder.path(), image_network(), x.slice(0, 5)), "it has 6 rows, 5 inputs were given");
  const auto before = contents(folder.path());
  CHECK(error_message<DataError>([&] {
          return GramStore<double>(folder.path(), image_network(), images<double>(6));
        }).find("precision is \"float\" there and \"double\" here") != std::string::npos);
  CHECK(error_message<DataError>([&] {
          return GramStore<float>(folder.path(), image_network(), x, x);
        }).find("symmetric is true there and false here") != std::string::npos);
  CHECK(contents(folder.path()) == before);
}

TEST_CASE("tiles whose store has lost its document are nobody's, and not touched") {
  const TemporaryFolder folder;
  const auto x = images(6);
  static_cast<void>(GramStore<float>(folder.path(), image_network(), x, {.tile_side = 4}).compute());
  std::filesystem::remove(folder.path() / "zarr.json");
  for (const Kernels kernels : {Kernels::both, Kernels::nngp})
    check_refused(
        refusal(folder.path(), image_network(1.75), x, {.gram = {.kernels = kernels}}),
        ", but zarr.json, which says what they are of, is gone: put it back, or take another folder");
}

TEST_CASE("documents of arrays that are torn or of something else are written again") {
  const auto x = images(6);
  for (const char* text : {"", "{\"zarr_for", "[]", "{\"shape\": [1, 1]}"}) {
    CAPTURE(text);
    const TemporaryFolder folder;
    static_cast<void>(GramStore<float>(folder.path(), image_network(), x, {.tile_side = 4}).compute());
    const std::string before = read_bytes(folder.path() / "ntk" / "zarr.json");
    folder.write("ntk/zarr.json", text);
    CHECK(StoredGram(folder.path()).check().damaged ==
          std::vector<std::string>{(folder.path() / "ntk" / "zarr.json").string()});
    const auto report = GramStore<float>(folder.path(), image_network(), x, {.tile_side = 4}).compute();
    CHECK(report.computed == 0);
    CHECK(read_bytes(folder.path() / "ntk" / "zarr.json") == before);
  }
}

TEST_CASE("sizes that no store has are refused where they stand") {
  const TemporaryFolder folder;
  const auto x = images(6);
  static_cast<void>(GramStore<float>(folder.path(), image_network(), x, {.tile_side = 4}).compute());
  std::string text = read_bytes(folder.path() / "zarr.json");
  const std::string count = "\"count\": 6";
  const auto place = text.find(count);
  REQUIRE(place != std::string::npos);
  folder.write("zarr.json", text.replace(place, count.size(), "\"count\": 9223372036854775807"));
  check_refused(error_message<DataError>([&] { return StoredGram(folder.path()); }),
                "rows.steps[0].count: expected a positive number, 2147483648 at most in all");
}

TEST_CASE("a store of another version or another processor is refused; the latter may be gone on with") {
  const TemporaryFolder folder;
  const auto x = images(6);
  static_cast<void>(GramStore<float>(folder.path(), image_network(), x, {.tile_side = 4}).compute());
  const auto document = read_bytes(folder.path() / "zarr.json");
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = document;
    const auto place = text.find(from);
    REQUIRE(place != std::string::npos);
    folder.write("zarr.json", text.replace(place, from.size(), to));
  };
  changed("\"library_version\": \"", "\"library_version\": \"9");
  check_refused(refusal(folder.path(), image_network(), x), "library_version is \"9");
  changed("\"blas\": \"", "\"blas\": \"Other");
  check_refused(refusal(folder.path(), image_network(), x), "arithmetic.blas is \"Other");
  seal_records(folder.path());
  CHECK(GramStore<float>(folder.path(), image_network(), x, {.other_arithmetic = true}).compute().found == 3);
  changed("widelimit Gram store", "another format");
  check_refused(refusal(folder.path(), image_network(), x),
                R"(expected the format "widelimit Gram store", got "another format")");
  folder.write("zarr.json", R"({"zarr_format": 3, "node_type": "group", "attributes": {}})");
  check_refused(refusal(folder.path(), image_network(), x),
                "expected a store of widelimit, got another Zarr group");
  folder.write("zarr.json", document.substr(0, 100));
  check_refused(refusal(folder.path(), image_network(), x), "zarr.json");
}

TEST_CASE("a folder with other files, a file in its place, a place that cannot be written to") {
  const TemporaryFolder folder;
  const auto x = images(6);
  folder.write("thesis.txt", "three years");
  check_refused(refusal(folder.path(), image_network(), x),
                folder.path().string() + ": expected a store or an empty folder, it holds thesis.txt");
  const auto message_at = [&](const std::filesystem::path& place) {
    return error_message<DataError>([&] { return GramStore<float>(place, image_network(), x); });
  };
  check_refused(message_at(folder.path() / "thesis.txt"), "expected a folder for the store, found a file");
  check_refused(message_at("/proc/widelimit-store"), "the store cannot be made: ");
  CHECK_THROWS_AS(GramStore<float>("", image_network(), x), ArgumentError);
  CHECK(error_message<DataError>([&] { return StoredGram(folder.path()); }).find("there is no store") !=
        std::string::npos);
}

TEST_CASE("a read-only store is an error for those who must compute, and none for those who read") {
  const TemporaryFolder folder;
  const auto x = images(6);
  static_cast<void>(GramStore<float>(folder.path() / "s", image_network(), x, {.tile_side = 4}).compute());
  GramStore<float> part(folder.path() / "part", image_network(), x, {.tile_side = 4});
  static_cast<void>(part.compute([place = 0]() mutable { return place < 1 ? place++ : 100; }));
  const auto permit = [&](std::filesystem::perms mode) {
    std::filesystem::permissions(folder.path(), std::filesystem::perms::all);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
      std::filesystem::permissions(entry.path(),
                                   entry.is_directory() ? mode | std::filesystem::perms(0111) : mode);
  };
  permit(std::filesystem::perms(0444));
  const bool is_root = geteuid() == 0;
  constexpr uid_t nobody = 65534;
  if (is_root) REQUIRE(seteuid(nobody) == 0);
  const auto message = error_message<DataError>(
      [&] { return GramStore<float>(folder.path() / "part", image_network(), x).compute(); });
  const auto computed = GramStore<float>(folder.path() / "s", image_network(), x).compute().computed;
  const auto check = StoredGram(folder.path() / "s").check();
  if (is_root) REQUIRE(seteuid(0) == 0);
  permit(std::filesystem::perms(0644));
  check_refused(message, "part: the store cannot be written to, and 2 of 3 tiles are missing in it");
  CHECK(computed == 0);
  CHECK(check.is_complete());
}

TEST_CASE("a full disk is an error that names the file; what was written stays, and the next run goes on") {
  const TemporaryFolder folder;
  const auto x = images(24);
  GramStore<float> gram_store(folder.path(), image_network(), x, {.tile_side = 8});
  static_cast<void>(gram_store.compute([place = 0]() mutable { return place < 2 ? place++ : 100; }));
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  rlimit little = before;
  // A record is shorter, a tile longer.
  little.rlim_cur = 200;
  REQUIRE(setrlimit(RLIMIT_FSIZE, &little) == 0);
  const auto message = error_message<DataError>([&] { return gram_store.compute(); });
  REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
  check_refused(message,
                (folder.path() / "ntk" / "c" / "0" / "2").string() + ": cannot be written: failed to write");
  const auto check = StoredGram(folder.path()).check();
  CHECK(check.whole == 2);
  CHECK(check.damaged.empty());
  for (const std::string& file : contents(folder.path())) CHECK(file.find(".part") == std::string::npos);
  CHECK(GramStore<float>(folder.path(), image_network(), x).compute().computed == 4);
  check_same_kernels(StoredGram(folder.path()).matrix<float>(), gram(image_network(), x));
}

TEST_CASE("a number that is not finite stops the run with its pair, and is not stored") {
  const TemporaryFolder folder;
  // Of the positions' covariances, the map makes infinity where both inputs have large ones.
  xt::xarray<float> values = random_inputs(2, {6, 4, 3});
  Matrix<double> huge = Matrix<double>::Zero(1, 4);
  huge(0, 0) = 1e25;
  const Network network({layers::dense(), layers::relu(), layers::dense(), layers::positions_map(huge),
                         layers::global_average_pool()});
  const Inputs<float> x(values);
  const auto of_gram = error_message<NumericalError>([&] { return gram(network, x); });
  CHECK(of_gram.find("of pair (0, 0)") != std::string::npos);
  GramStore<float> gram_store(folder.path(), network, x, {.tile_side = 2});
  const auto at = [&](Index tile) {
    return error_message<NumericalError>([&] {
      return gram_store.compute(
          [tile, first = true]() mutable { return std::exchange(first, false) ? tile : 99; });
    });
  };
  CHECK(at(0) == of_gram);
  check_refused(at(4), "of pair (2, 4)");
  const auto check = StoredGram(folder.path()).check();
  CHECK(check.missing.size() == 6);
  CHECK(check.damaged.empty());
}

TEST_CASE("parts, tiles and counts out of range") {
  const TemporaryFolder folder;
  const auto x = images(6);
  const auto message = [&](const StoreOptions& options) {
    return error_message<ArgumentError>(
        [&] { return GramStore<float>(folder.path(), image_network(), x, options); });
  };
  CHECK(message({.part = {0, 3}}) == "store: expected a part from 1/1 to 3/3, got 0/3");
  CHECK(message({.part = {4, 3}}) == "store: expected a part from 1/1 to 3/3, got 4/3");
  CHECK(message({.tile_side = -1}) == "store: expected a positive side of tiles, or 0, got -1");
  const Network vectors({layers::dense(), layers::relu(), layers::dense()});
  xt::xarray<float> values = random_inputs(3, {20, 5});
  CHECK(error_message<ArgumentError>([&] {
          return GramStore<float>(folder.path(), vectors, values, {.tile_side = 100});
        }) == "store: expected a multiple of 512 as the side of tiles of vectors, got 100");
  GramStore<float> gram_store(folder.path(), image_network(), x);
  CHECK_THROWS_AS(static_cast<void>(gram_store.recompute(0, 1)), ArgumentError);
}

}  // namespace
}  // namespace widelimit::testing
