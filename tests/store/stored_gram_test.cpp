// Stores on the disk: what any Zarr reader finds there, whole matrices as .npy.
#include "widelimit/store/stored_gram.hpp"

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "store/store_support.hpp"
#include "widelimit/data/npy.hpp"
#include "widelimit/network/network_file.hpp"
#include "widelimit/store/sha256.hpp"

namespace widelimit::testing {
namespace {

using store::GramStore;
using store::StoredGram;

nlohmann::json parsed(const std::filesystem::path& file) { return nlohmann::json::parse(read_bytes(file)); }

TEST_CASE("a store is a Zarr group of version 3, as its specification has it") {
  const TemporaryFolder folder;
  static_cast<void>(GramStore<float>(folder.path(), image_network(), images(6), {.tile_side = 4}).compute());
  const auto group = parsed(folder.path() / "zarr.json");
  CHECK(group["zarr_format"] == 3);
  CHECK(group["node_type"] == "group");
  CHECK(parsed(folder.path() / "ntk" / "zarr.json") ==
        nlohmann::json::parse(
            R"({"zarr_format": 3, "node_type": "array", "shape": [6, 6], "data_type": "float32",
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 4]}},
                "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
                "fill_value": "NaN", "attributes": {},
                "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]})"));
  for (const char* chunk : {"0/0", "0/1", "1/1"})
    CHECK(std::filesystem::file_size(folder.path() / "nngp" / "c" / chunk) == 4 * 16 + 4);
  CHECK_FALSE(std::filesystem::exists(folder.path() / "nngp" / "c" / "1" / "0"));
}

TEST_CASE("the facts of a store: network, inputs, precision") {
  const TemporaryFolder folder;
  const auto x = images(6);
  GramStore<float>(folder.path(), image_network(), x, {.tile_side = 4});
  const StoredGram stored(folder.path());
  const auto& facts = stored.facts();
  CHECK(facts["network"] == nlohmann::json::parse(to_json(image_network())));
  CHECK(facts["precision"] == "float");
  CHECK(facts["symmetric"] == true);
  CHECK(facts["rows"]["shape"] == nlohmann::json({4, 4}));
  store::Sha256 sum;
  sum.add(x[0].data(), 6 * x[0].size_bytes());  // one array
  CHECK(facts["rows"]["steps"][0]["values_sha256"] == sum.digest());
  CHECK(facts["rows"]["steps"][0]["count"] == 6);
  CHECK(stored.tiles_there() == 0);
  CHECK(stored.check().missing.size() == 3);
}

TEST_CASE("inputs that differ in lengths, masks or graphs only have other facts") {
  const xt::xarray<double> values = random_inputs(1, {3, 4, 2});
  const Inputs<double> x(values);
  const auto facts_of = [](const Inputs<double>& inputs) {
    const TemporaryFolder folder;
    GramStore<double>(folder.path(), Network({layers::global_average_pool(), layers::dense()}), inputs);
    return StoredGram(folder.path()).facts()["rows"].dump();
  };
  const std::vector<Index> full{4, 4, 4}, lengths{4, 2, 4}, others{4, 4, 2};
  xt::xarray<bool> mask = xt::ones<bool>({3, 4});
  mask(2, 1) = false;
  xt::xarray<bool> other_mask = xt::ones<bool>({3, 4});
  other_mask(2, 2) = false;
  const auto with_edge = [&](double weight) {
    return Inputs<double>(
        x, std::vector<InputGraph>(3, InputGraph(4, std::vector<GraphEdge>{{0, 1, weight}, {1, 0, weight}})));
  };
  const std::vector<std::string> all{facts_of(x),
                                     facts_of(Inputs<double>(x, full)),
                                     facts_of(Inputs<double>(x, lengths)),
                                     facts_of(Inputs<double>(x, others)),
                                     facts_of(Inputs<double>(x, mask)),
                                     facts_of(Inputs<double>(x, other_mask)),
                                     facts_of(with_edge(1)),
                                     facts_of(with_edge(2))};
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) CHECK(all[i] != all[j]);
}

TEST_CASE("whole matrices as .npy, symmetric or not, and only of what is there") {
  const TemporaryFolder folder;
  const auto x = images(7), x2 = images(5, 2);
  const auto file = folder.path() / "ntk.npy";
  const auto check_file = [&](const Matrix<float>& expected) {
    const auto array = data::read_npy<float>(file);
    REQUIRE(array.shape() == xt::xarray<float>::shape_type{static_cast<std::size_t>(expected.rows()),
                                                           static_cast<std::size_t>(expected.cols())});
    CHECK(Eigen::Map<const Matrix<float>>(array.data(), expected.rows(), expected.cols()) == expected);
  };
  GramStore<float> symmetric(folder.path() / "s", image_network(), x, {.tile_side = 3});
  CHECK_THROWS_AS(StoredGram(folder.path() / "s").write_npy("ntk", file), DataError);
  CHECK_FALSE(std::filesystem::exists(file));
  static_cast<void>(symmetric.compute());
  StoredGram(folder.path() / "s").write_npy("ntk", file);
  check_file(gram(image_network(), x).ntk);
  static_cast<void>(
      GramStore<float>(folder.path() / "r", image_network(), x, x2, {.tile_side = 3}).compute());
  StoredGram(folder.path() / "r").write_npy("ntk", file);
  check_file(gram(image_network(), x, x2).ntk);
  CHECK_THROWS_WITH_AS(StoredGram(folder.path() / "r").write_npy("ntk_error", file),
                       "store: expected an array that is there (nngp, ntk), got ntk_error", ArgumentError);
}

TEST_CASE("one array of a store: tiles, rows and the whole, without a look at the others") {
  const TemporaryFolder folder;
  const auto x = images(7), x2 = images(5, 2);
  static_cast<void>(GramStore<float>(folder.path() / "s", image_network(), x, {.tile_side = 3}).compute());
  static_cast<void>(
      GramStore<float>(folder.path() / "r", image_network(), x, x2, {.tile_side = 3}).compute());
  std::filesystem::remove_all(folder.path() / "s" / "nngp" / "c");
  const StoredGram symmetric(folder.path() / "s"), rectangular(folder.path() / "r");
  const Matrix<float> ntk = gram(image_network(), x).ntk;
  const Matrix<float> cross = gram(image_network(), x, x2).ntk;
  CHECK(symmetric.matrix<float>("ntk") == ntk);
  CHECK(symmetric.matrix<double>("ntk") == ntk.cast<double>());
  CHECK(symmetric.tile<float>("ntk", {0, 2}) == ntk.block(0, 6, 3, 1));
  CHECK(rectangular.matrix<float>("ntk") == cross);
  for (Index begin = 0; begin < 7; ++begin)
    for (Index end = begin; end <= 7; ++end) {
      CHECK(symmetric.rows<float>("ntk", {begin, end}) == ntk.middleRows(begin, end - begin));
      CHECK(rectangular.rows<float>("ntk", {begin, end}) == cross.middleRows(begin, end - begin));
    }
  CHECK_THROWS_AS((void)symmetric.matrix<float>("nngp"), DataError);
  CHECK_THROWS_AS((void)symmetric.tile<float>("ntk_error", {0, 0}), ArgumentError);
  CHECK_THROWS_WITH_AS((void)symmetric.rows<float>("ntk", {5, 8}),
                       "store: expected rows within 0 to 7, got 5 to 8", ArgumentError);
}

TEST_CASE("zarr-python opens a store, finds NaN where nothing is, and refuses a flipped bit") {
  const std::string python = WIDELIMIT_PYTHON;
  if (python.empty() || std::system((python + " -c 'import zarr' 2>/dev/null").c_str()) != 0) {
    MESSAGE("skipped: zarr-python is not there (make test makes its environment)");
    std::puts("skipped: zarr-python is not there (make test makes its environment)");
    return;
  }
  const TemporaryFolder folder;
  const auto x = images(7);
  GramStore<float> gram_store(folder.path() / "s", image_network(), x, {.tile_side = 3});
  static_cast<void>(gram_store.compute([place = 0]() mutable { return place < 5 ? place++ : 99; }));
  const auto expected = gram(image_network(), x).ntk;
  const std::vector<std::size_t> shape{7, 7};
  data::write_npy(folder.path() / "expected.npy", expected.data(), shape);
  folder.write("read.py", R"(
import sys, warnings
import numpy, zarr
warnings.simplefilter("error")
root = sys.argv[1]
group = zarr.open_group(root + "/s", mode="r")
facts = group.attrs["widelimit"]
assert facts["symmetric"] and facts["precision"] == "float", facts
assert sorted(name for name, _ in group.members()) == ["nngp", "ntk"]
ntk, expected = group["ntk"], numpy.load(root + "/expected.npy")
assert ntk.shape == (7, 7) and ntk.chunks == (3, 3) and ntk.dtype == "float32"
computed = numpy.zeros((7, 7), bool)
computed[:6, :6] = computed[:6, 6:] = True
computed[3:6, :3] = False
numbers = ntk[:]
assert (numbers[computed] == expected[computed]).all() and numpy.isnan(numbers[~computed]).all(), numbers
path = root + "/s/ntk/c/0/1"
bytes_there = bytearray(open(path, "rb").read())
bytes_there[7] ^= 16
open(path, "wb").write(bytes_there)
try:
    ntk[:3, 3:6]
except ValueError as error:
    assert "checksum" in str(error), error
else:
    raise AssertionError("a flipped bit was not noticed")
)");
  CHECK(std::system(
            (python + " " + (folder.path() / "read.py").string() + " " + folder.path().string()).c_str()) ==
        0);
}

TEST_CASE(
    "kernels through a store have the bits of gram(), and the tiles of a store that is there are not "
    "computed again") {
  const TemporaryFolder folder;
  const auto network = image_network();
  const auto& x = images(6);
  const auto expected = gram<float>(network, x);
  store::StoreOptions options{.tile_side = 4};
  const auto first = store::stored_gram<float>(folder.path(), network, x, nullptr, options);
  CHECK(first.nngp == expected.nngp);
  CHECK(first.ntk == expected.ntk);
  // It has both kernels, and one of them is read from it too.
  options.gram.kernels = Kernels::nngp;
  CHECK(store::kernels_for(folder.path(), Kernels::nngp) == Kernels::both);
  CHECK(store::kernels_for(folder.path() / "other", Kernels::nngp) == Kernels::nngp);
  std::filesystem::remove(folder.path() / "nngp" / "c" / "0" / "1");
  const auto again = store::stored_gram<float>(folder.path(), network, x, nullptr, options);
  CHECK(again.nngp == expected.nngp);
}

}  // namespace
}  // namespace widelimit::testing
