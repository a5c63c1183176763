// Gram matrices in a store: the bits of gram(), over runs that end early, by several at once.
#include "widelimit/store/gram_store.hpp"

#include <nlohmann/json.hpp>
#include <stop_token>
#include <thread>

#include "store/sealed_records.hpp"
#include "store/store_support.hpp"
#include "widelimit/layers/attention.hpp"

namespace widelimit::testing {
namespace {

using store::GramStore;
using store::StoredGram;
using store::StoreOptions;

template <typename Scalar>
void check_store(const Network& network, const Inputs<Scalar>& x, const StoreOptions& options) {
  const TemporaryFolder folder;
  const auto place = folder.path() / "store";
  const auto report = GramStore<Scalar>(place, network, x, options).compute();
  const StoredGram stored(place);
  CHECK(report.computed == stored.grid().count());
  CHECK(stored.check().is_complete());
  check_same_kernels(stored.matrix<Scalar>(), gram(network, x, options.gram));
}

TEST_CASE("stores hold the bits of gram()") {
  check_store(image_network(), images(13), {.tile_side = 4});
  check_store(image_network(), images<double>(13), {.tile_side = 5});
  check_store(image_network(), images(6), {.gram = {.kernels = Kernels::ntk}, .tile_side = 4});
  check_store(image_network(), images(6), {.gram = {.kernels = Kernels::nngp, .threads = 2}});
  const Network vectors({layers::dense(), layers::relu(), layers::dense()});
  xt::xarray<float> many = random_inputs(3, {1200, 6});
  check_store(vectors, Inputs<float>(std::move(many)), {.tile_side = 512});
}

TEST_CASE("stores of sampled layers hold standard errors, and say where the samples come from") {
  layers::AttentionOptions softmax;
  softmax.scaling = layers::AttentionScaling::inverse_sqrt_width;
  softmax.samples = 4;
  softmax.seed = 3;
  const Network network({layers::attention(softmax), layers::global_average_pool(), layers::dense()});
  xt::xarray<double> values = random_inputs(1, {5, 4, 3});
  const Inputs<double> x(std::move(values));
  check_store(network, x, {.tile_side = 2});
  const TemporaryFolder folder;
  GramStore<double>(folder.path() / "s", network, x);
  const StoredGram stored(folder.path() / "s");
  CHECK(stored.arrays() == std::vector<std::string>{"nngp", "ntk", "nngp_error", "ntk_error"});
  CHECK(stored.facts()["sampled_layers"].dump() == R"([{"path":"/layers/0","samples":4,"seed":3}])");
}

TEST_CASE("many that make or enlarge one store at the same time all come to use it") {
  // Locks belong to open files: threads here meet as processes do.
  constexpr int users = 8;
  const auto x = images(6);
  for (int attempt = 0; attempt < 20; ++attempt) {
    const TemporaryFolder folder;
    for (const Index rows : {4, 6}) {
      std::vector<std::string> errors(users);
      {
        std::vector<std::jthread> threads;
        for (std::string& error : errors)
          threads.emplace_back([&] {
            try {
              GramStore<float>(folder.path() / "s", image_network(), x.slice(0, rows),
                               {.tile_side = 2, .grow = true});
            } catch (const std::exception& failure) {
              error = failure.what();
            }
          });
      }
      for (const std::string& error : errors) CHECK(error == "");
    }
    CHECK(StoredGram(folder.path() / "s").grid().rows() == 6);
  }
}

TEST_CASE("stores of two batches are rectangles") {
  const TemporaryFolder folder;
  const auto x1 = images(7), x2 = images(5, 2);
  const auto report = GramStore<float>(folder.path(), image_network(), x1, x2, {.tile_side = 3}).compute();
  CHECK(report.computed == 6);
  check_same_kernels(StoredGram(folder.path()).matrix<float>(), gram(image_network(), x1, x2));
}

TEST_CASE("a run goes on where another one ended") {
  const TemporaryFolder folder;
  const auto x = images(13);
  std::stop_source stop;
  StoreOptions options{.gram = {.stop = stop.get_token()}, .tile_side = 4};
  options.progress = [&](const store::StoreProgress& progress) {
    if (progress.pairs_done > 40) stop.request_stop();
  };
  CHECK_THROWS_AS(GramStore<float>(folder.path(), image_network(), x, options).compute(), Cancelled);
  const Index there = StoredGram(folder.path()).check().whole;
  CHECK(there > 0);
  CHECK(there < 10);
  CHECK(error_message<DataError>([&] {
          return StoredGram(folder.path()).matrix<float>();
        }).find("is not computed yet") != std::string::npos);
  const auto report = GramStore<float>(folder.path(), image_network(), x).compute();
  CHECK(report.found == there);
  CHECK(report.computed == 10 - there);
  CHECK(report.damaged.empty());
  check_same_kernels(StoredGram(folder.path()).matrix<float>(), gram(image_network(), x));
}

TEST_CASE("damaged tiles are named and computed again, missing ones of one kernel too") {
  const TemporaryFolder folder;
  const auto x = images(9);
  static_cast<void>(GramStore<float>(folder.path(), image_network(), x, {.tile_side = 4}).compute());
  const auto torn = folder.path() / "ntk" / "c" / "0" / "1";
  std::filesystem::resize_file(torn, 10);
  std::filesystem::remove(folder.path() / "nngp" / "c" / "2" / "2");
  const auto check = StoredGram(folder.path()).check();
  CHECK(check.damaged == std::vector<std::string>{torn.string()});
  CHECK(check.missing == std::vector<store::TileIndex>{{2, 2}});
  CHECK(check.whole == 4);
  CHECK(error_message<DataError>([&] {
          return StoredGram(folder.path()).tile<float>({0, 1});
        }).find(torn.string() + ": damaged") == 0);
  std::vector<std::string> heard;
  StoreOptions options;
  options.report = [&](const std::string& message) { heard.push_back(message); };
  const auto report = GramStore<float>(folder.path(), image_network(), x, options).compute();
  CHECK(report.damaged == std::vector<std::string>{torn.string()});
  CHECK(heard.size() == 1);
  CHECK(report.computed == 2);
  check_same_kernels(StoredGram(folder.path()).matrix<float>(), gram(image_network(), x));
}

TEST_CASE("several at once share the tiles, and each ends when all are there") {
  const TemporaryFolder folder;
  const auto x = images(40);
  const StoreOptions options{.gram = {.threads = 1}, .tile_side = 4};
  std::vector<store::StoreRunReport> reports(4);
  {
    std::vector<std::jthread> threads;
    for (auto& report : reports)
      threads.emplace_back([&] {
        report = GramStore<float>(folder.path() / "s", image_network(), x, options).compute();
        CHECK(StoredGram(folder.path() / "s").check().is_complete());
      });
  }
  Index computed = 0;
  for (const auto& report : reports) {
    CHECK(report.computed + report.found == 55);
    computed += report.computed;
  }
  CHECK(computed == 55);
  check_same_kernels(StoredGram(folder.path() / "s").matrix<float>(), gram(image_network(), x));
}

TEST_CASE("parts need no word of each other") {
  const TemporaryFolder folder;
  const auto x = images(21);
  Index computed = 0;
  for (const Index number : {3, 1, 2}) {
    GramStore<float> part(folder.path(), image_network(), x, {.tile_side = 4, .part = {number, 3}});
    const auto report = part.compute();
    CHECK(report.computed == static_cast<Index>(part.tiles().size()));
    computed += report.computed;
  }
  CHECK(computed == 21);
  check_same_kernels(StoredGram(folder.path()).matrix<float>(), gram(image_network(), x));
}

TEST_CASE("pairs that are computed again have the same bits, and a wrong number is found") {
  const TemporaryFolder folder;
  const auto x = images(9);
  GramStore<float> gram_store(folder.path(), image_network(), x, {.tile_side = 4});
  static_cast<void>(gram_store.compute());
  Index compared = 0;
  CHECK(gram_store.recompute(200, 5, &compared).empty());
  CHECK(compared == 45);
  CHECK(gram_store.recompute(20, 5, &compared).empty());
  CHECK(compared == 20);
  // A store of other numbers whose checksums and records are right: that of other weights, with these facts.
  const auto facts = read_bytes(folder.path() / "zarr.json");
  std::filesystem::remove_all(folder.path() / "nngp"), std::filesystem::remove_all(folder.path() / "ntk");
  std::filesystem::remove(folder.path() / "zarr.json");
  static_cast<void>(GramStore<float>(folder.path(), image_network(1.5001), x, {.tile_side = 4}).compute());
  folder.write("zarr.json", facts);
  seal_records(folder.path());
  const auto mismatches =
      GramStore<float>(folder.path(), image_network(), x, {.tile_side = 4}).recompute(50, 5);
  // Both kernels of every pair, once.
  CHECK(mismatches.size() == 90);
  CHECK(mismatches[0].array == "nngp");
  CHECK(mismatches[0].stored != mismatches[0].computed);
}

TEST_CASE("progress counts what is found, and knows the pace of earlier runs") {
  const TemporaryFolder folder;
  const auto x = images(24);
  GramStore<float> first(folder.path(), image_network(), x, {.tile_side = 4, .part = {1, 2}});
  static_cast<void>(first.compute());
  std::vector<store::StoreProgress> seen;
  StoreOptions options{.tile_side = 4, .part = {1, 2}};
  options.progress = [&](const store::StoreProgress& progress) { seen.push_back(progress); };
  static_cast<void>(GramStore<float>(folder.path(), image_network(), x, options).compute());
  REQUIRE_FALSE(seen.empty());
  CHECK(seen.front().pairs_done > 0);
  CHECK(seen.front().pairs_per_second > 0);
  CHECK(seen.front().seconds_left < 1e6);
  CHECK(seen.back().pairs_done == seen.back().pairs);
  CHECK(seen.back().seconds_left == 0);
}

}  // namespace
}  // namespace widelimit::testing
