// Graphs from folders: Gram matrices, and cycles told from trees.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "cli/program.hpp"
#include "widelimit/data/graph_folder.hpp"
#include "widelimit/data/npy.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/models/named_networks.hpp"
#include "widelimit/numerics/random_stream.hpp"

using namespace widelimit;
using widelimit::testing::run_program;
using widelimit::testing::TemporaryFolder;

namespace {

struct LabelledGraphs {
  data::GraphFolder<double> graphs;
  xt::xarray<std::int64_t> labels;
};

/// Cycles (label 0) and random trees (label 1) of 6 to 12 nodes in turn, in equal numbers of either size. Features
/// are a one and noise: a readout of nodes alone cannot tell them apart.
LabelledGraphs cycles_and_trees(std::uint64_t seed, std::size_t count) {
  numerics::RandomStream random(seed);
  LabelledGraphs set{{}, xt::xarray<std::int64_t>::from_shape({count})};
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_tree = i % 2 == 1;
    const auto nodes = static_cast<Index>(6 + i / 2 % 7);
    std::vector<GraphEdge> edges;
    const auto join = [&](Index a, Index b) {
      edges.push_back({a, b});
      edges.push_back({b, a});
    };
    for (Index node = 1; node < nodes; ++node)
      join(node, is_tree ? static_cast<Index>(random.below(static_cast<std::uint64_t>(node))) : node - 1);
    if (!is_tree) join(0, nodes - 1);
    auto features = xt::xarray<double>::from_shape({static_cast<std::size_t>(nodes), 2});
    for (std::size_t k = 0; k < features.size(); ++k)
      features.data()[k] = k % 2 == 0 ? 1 : 0.2 * random.normal();
    set.graphs.features.push_back(features);
    set.graphs.graphs.emplace_back(nodes, edges);
    set.labels(i) = is_tree ? 1 : 0;
  }
  return set;
}

void write_graph_set(const std::filesystem::path& folder, const LabelledGraphs& set) {
  data::write_graphs(folder, set.graphs);
  data::write_npy(folder / "labels.npy", set.labels);
}

/// Training, validation and test graphs.
struct ClassificationFolder : TemporaryFolder {
  ClassificationFolder() {
    write_graph_set(*this / "train", cycles_and_trees(1, 120));
    write_graph_set(*this / "validation", cycles_and_trees(2, 80));
    write_graph_set(*this / "test", cycles_and_trees(3, 200));
  }

  [[nodiscard]] testing::ProgramResult run(const std::string& options) const {
    return run_program("gp --data graphs --path " + string() + " " + options);
  }

  void check_fails(const std::string& message, const std::string& options = "--network gntk") const {
    const auto result = run(options);
    CHECK(result.code == 1);
    CHECK(result.errors == "widelimit: " + message + "\n");
  }
};

double test_accuracy(const TemporaryFolder& folder, const std::string& kernel) {
  const auto results = nlohmann::json::parse(testing::file_text(folder / "results.json"))["results"];
  for (const auto& result : results)
    if (result["files"] == kernel) return result["accuracy"];
  return -1;
}

}  // namespace

TEST_CASE("graphs: gp tells cycles from trees, which a network without aggregation cannot") {
  const ClassificationFolder folder;
  const TemporaryFolder out, blind;
  const auto result = folder.run("--network gntk:blocks=2 --no-pictures --out " + out.string());
  CAPTURE(result.errors);
  REQUIRE(result.code == 0);
  CHECK(result.output.find("120 training, 80 validation, 200 test graphs of 6 to 12 nodes and 2 channels, 2 "
                           "classes") != std::string::npos);
  CHECK(test_accuracy(out, "nngp") > 0.95);
  CHECK(test_accuracy(out, "ntk") > 0.95);
  REQUIRE(folder.run("--network gntk:blocks=0 --no-pictures --out " + blind.string()).code == 0);
  CHECK(test_accuracy(blind, "ntk") < 0.7);
}

TEST_CASE("graphs: gram of folders") {
  const TemporaryFolder folder;
  const auto rows = cycles_and_trees(1, 5), columns = cycles_and_trees(2, 3);
  data::write_graphs(folder / "rows", rows.graphs);
  data::write_graphs(folder / "columns", columns.graphs);
  const auto result =
      run_program("gram gntk --precision double --graphs " + (folder / "rows").string() + " --graphs2 " +
                  (folder / "columns").string() + " --out " + (folder / "out").string());
  CAPTURE(result.errors);
  REQUIRE(result.code == 0);
  const Inputs<double> x(rows.graphs.features, rows.graphs.graphs),
      x2(columns.graphs.features, columns.graphs.graphs);
  const auto expected = gram(models::named_network("gntk"), x, x2);
  const auto ntk = data::read_npy<double>(folder / "out/ntk.npy");
  REQUIRE(ntk.shape() == xt::xarray<double>::shape_type{5, 3});
  for (Index i = 0; i < 5; ++i)
    for (Index j = 0; j < 3; ++j) CHECK(ntk(i, j) == expected.ntk(i, j));
}

TEST_CASE("graphs: what is wrong with a folder or a command") {
  const ClassificationFolder folder;
  const auto check_gram_usage = [](const std::string& arguments, const std::string& part) {
    const auto result = run_program("gram gntk " + arguments + " --out out");
    CAPTURE(result.errors);
    CHECK(result.code == 2);
    CHECK(result.errors.find(part) != std::string::npos);
  };
  check_gram_usage("", "--x FILE or --graphs DIR is required");
  check_gram_usage("--x a --graphs b", "--x excludes --graphs");
  check_gram_usage("--x a --graphs2 b", "--graphs2 requires --graphs");
  check_gram_usage("--graphs a --x2 b", "--x2 requires --x");
  check_gram_usage("--graphs a --lengths b", "--lengths requires --x");
  CHECK(folder.run("--network gntk --train 3")
            .errors.find("--train: for --data sample, reviews, cifar10, mnist, imdb, npy and csv only") !=
        std::string::npos);

  const auto images = folder.run("--network conv-gap:axes=2");
  CHECK(images.code == 1);
  CHECK(images.errors.find("layers[0] (conv): expected inputs with 2 spatial axes") != std::string::npos);
}

TEST_CASE("graphs: files that do not fit each other") {
  const ClassificationFolder labels, channels, alone, isolated;
  data::write_npy(labels / "test/labels.npy", xt::xarray<std::int64_t>{0, 1, 2});
  labels.check_fails((labels / "test/labels.npy").string() +
                     ": expected 200 rows, one for each input, got 3");
  std::filesystem::remove_all(alone / "validation");
  alone.check_fails(
      alone.string() +
          ": no folder validation to choose the regulariser on; add it or give --criterion loo or "
          "--regulariser",
      "--network gntk --criterion accuracy");
  CHECK(alone.run("--network gntk --regulariser 0.1").code == 0);
  data::write_graphs<double>(channels / "test", {{xt::xarray<double>{{1, 2, 3}}}, {InputGraph(1, {})}});
  channels.check_fails((channels / "test/node_features.npy").string() +
                       ": expected 2 channels as in train, got 3");
  data::write_graphs<double>(isolated / "test", {{xt::xarray<double>{{1, 2}}}, {InputGraph(1, {})}});
  std::filesystem::remove(isolated / "test/labels.npy");
  const auto result = isolated.run("--network gntk:normalise=1,self_loops=0,jumping_knowledge=0");
  CHECK(result.code == 0);
}
