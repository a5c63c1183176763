// Stores that grow by rows: old pairs stay, new ones have the bits of gram() of all rows.
#include "store/store_support.hpp"
#include "widelimit/layers/attention.hpp"

namespace widelimit::testing {
namespace {

using store::GramStore;
using store::StoredGram;
using store::StoreOptions;

template <typename Scalar>
store::StoreRunReport grow(const std::filesystem::path& folder, const Network& network,
                           const Inputs<Scalar>& x, Index side) {
  return GramStore<Scalar>(folder, network, x, {.tile_side = side, .grow = true}).compute();
}

TEST_CASE("a store that grew is gram() of all rows, and old pairs were not computed again") {
  const TemporaryFolder folder;
  const auto x = images(30);
  for (const Index rows : {6, 7, 16, 30}) {
    const auto report = grow(folder.path(), image_network(), x.slice(0, rows), 4);
    check_same_kernels(StoredGram(folder.path()).matrix<float>(), gram(image_network(), x.slice(0, rows)));
    CHECK(report.damaged.empty());
    // Tiles in which nothing is new are found.
    if (rows == 16) CHECK(report.found == 1);
  }
  GramStore<float> grown(folder.path(), image_network(), x);
  CHECK(grown.compute().computed == 0);
  CHECK(grown.recompute(300, 1).empty());
}

TEST_CASE("growth: what is computed is what is new") {
  const TemporaryFolder folder;
  const auto x = images(16);
  static_cast<void>(grow(folder.path(), image_network(), x.slice(0, 8), 4));
  const auto old = folder.path() / "nngp" / "c" / "0" / "1";
  const auto before = std::filesystem::last_write_time(old);
  const auto report = grow(folder.path(), image_network(), x, 4);
  CHECK(report.found == 3);
  CHECK(report.computed == 7);
  CHECK(std::filesystem::last_write_time(old) == before);
}

TEST_CASE("growth of vectors: a pair has the bits of the rows there were when it joined") {
  const Network vectors({layers::dense(), layers::relu(), layers::dense()});
  xt::xarray<float> values = random_inputs(3, {1500, 5});
  const Inputs<float> x(std::move(values));
  const TemporaryFolder folder;
  static_cast<void>(grow(folder.path(), vectors, x.slice(0, 700), 512));
  static_cast<void>(grow(folder.path(), vectors, x, 512));
  const auto grown = StoredGram(folder.path()).matrix<float>();
  const auto old = gram(vectors, x.slice(0, 700)), all = gram(vectors, x);
  CHECK(grown.ntk.topLeftCorner(700, 700) == old.ntk);
  CHECK(grown.ntk.rightCols(800) == all.ntk.rightCols(800));
  CHECK(grown.ntk.bottomRows(800) == all.ntk.bottomRows(800));
  CHECK(GramStore<float>(folder.path(), vectors, x).recompute(50, 2).empty());
}

TEST_CASE("growth of sequences by longer ones, of two batches, and of a damaged store") {
  std::vector<xt::xarray<double>> batch;
  for (const Index length : {3, 5, 2, 4, 9, 1, 20, 6})
    batch.push_back(random_inputs(static_cast<unsigned>(length), {length, 3}));
  const Inputs<double> x(batch);
  const Network network(
      {layers::attention(), layers::dense({1.5, 0.1}), layers::relu(), layers::global_average_pool()});
  const TemporaryFolder folder;
  static_cast<void>(grow(folder.path(), network, x.slice(0, 4), 3));
  static_cast<void>(grow(folder.path(), network, x, 3));
  check_same_kernels(StoredGram(folder.path()).matrix<double>(), gram(network, x));
  std::filesystem::resize_file(folder.path() / "ntk" / "c" / "0" / "1", 3);
  CHECK(GramStore<double>(folder.path(), network, x).compute().damaged.size() == 1);
  check_same_kernels(StoredGram(folder.path()).matrix<double>(), gram(network, x));

  const TemporaryFolder rectangle;
  const auto x1 = images(10), x2 = images(5, 2);
  for (const Index rows : {5, 10})
    static_cast<void>(GramStore<float>(rectangle.path(), image_network(), x1.slice(0, rows), x2,
                                       {.tile_side = 3, .grow = rows > 5})
                          .compute());
  check_same_kernels(StoredGram(rectangle.path()).matrix<float>(), gram(image_network(), x1, x2));
}

TEST_CASE("a store grows only when it is asked to, while nobody uses it, and a crash on the way is mended") {
  const TemporaryFolder folder;
  const auto x = images(9);
  static_cast<void>(
      GramStore<float>(folder.path(), image_network(), x.slice(0, 5), {.tile_side = 4}).compute());
  const auto before = contents(folder.path());
  const auto refusal =
      error_message<DataError>([&] { return GramStore<float>(folder.path(), image_network(), x); });
  CHECK(refusal.find("it has 5 rows, 9 inputs were given; let it grow") != std::string::npos);
  CHECK(contents(folder.path()) == before);
  {
    const GramStore<float> user(folder.path(), image_network(), x.slice(0, 5));
    CHECK(error_message<DataError>([&] {
            return GramStore<float>(folder.path(), image_network(), x, {.grow = true});
          }).find("another process uses the store") != std::string::npos);
  }
  // The group's document is written first: one of the arrays' may be old.
  const auto old_document = read_bytes(folder.path() / "ntk" / "zarr.json");
  static_cast<void>(GramStore<float>(folder.path(), image_network(), x, {.grow = true}));
  std::ofstream(folder.path() / "ntk" / "zarr.json") << old_document;
  CHECK(StoredGram(folder.path()).check().damaged.size() == 1);
  static_cast<void>(GramStore<float>(folder.path(), image_network(), x).compute());
  CHECK(StoredGram(folder.path()).check().is_complete());
}

}  // namespace
}  // namespace widelimit::testing
