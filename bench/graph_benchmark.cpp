// Time of a pair of graphs of 30 nodes and 60 undirected edges, NNGP and NTK, one thread: graph neural tangent
// kernels of three blocks with sums, means and jumping knowledge, and the same network without aggregations: what the
// rest costs.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "widelimit/widelimit.hpp"

namespace {

using namespace widelimit;

constexpr Index channels = 8, graph_count = 48;

/// Twice as many undirected edges as nodes.
InputGraph random_graph(Index nodes, numerics::RandomStream& random) {
  std::set<std::pair<Index, Index>> pairs;
  const auto any_node = [&] { return static_cast<Index>(random.below(static_cast<std::uint64_t>(nodes))); };
  while (static_cast<Index>(pairs.size()) < 2 * nodes) {
    const Index a = any_node(), b = any_node();
    if (a < b) pairs.emplace(a, b);
  }
  std::vector<GraphEdge> edges;
  for (const auto& [a, b] : pairs) {
    edges.push_back({a, b});
    edges.push_back({b, a});
  }
  return {nodes, edges};
}

/// Of 30 nodes, or of 20 to 40 in turn.
enum class Sizes { equal, different };

template <typename Scalar>
Inputs<Scalar> random_graphs(Sizes sizes) {
  numerics::RandomStream random(1);
  std::vector<Matrix<Scalar>> features;
  std::vector<InputGraph> graphs;
  for (Index i = 0; i < graph_count; ++i) {
    const Index nodes = sizes == Sizes::equal ? 30 : 20 + i % 21;
    features.emplace_back(nodes, channels);
    for (Scalar& value : features.back().reshaped()) value = static_cast<Scalar>(random.normal());
    graphs.push_back(random_graph(nodes, random));
  }
  return {Inputs<Scalar>(std::move(features)), std::move(graphs)};
}

Network without_aggregations() {
  return Network("plain", {layers::repeat(3, {layers::dense({.weight_variance = 2}), layers::relu()}),
                           layers::global_sum_pool(), layers::dense()});
}

template <typename Scalar>
void gram_of_graphs(benchmark::State& state, const Network& network, Sizes sizes) {
  const Inputs<Scalar> x = random_graphs<Scalar>(sizes);
  GramOptions options;
  options.threads = 1;
  for (auto _ : state) benchmark::DoNotOptimize(gram(network, x, options).ntk.data());
  constexpr double pairs = graph_count * (graph_count + 1) / 2.0;
  state.counters["us_a_pair"] = benchmark::Counter(
      pairs * 1e-6, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void register_network(const std::string& name, const Network& network, Sizes sizes = Sizes::equal) {
  benchmark::RegisterBenchmark((name + "/float").c_str(), gram_of_graphs<float>, network, sizes)
      ->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark((name + "/double").c_str(), gram_of_graphs<double>, network, sizes)
      ->Unit(benchmark::kMillisecond);
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const layers::AggregateOptions mean{.normalise = layers::GraphNormalisation::mean, .self_loops = true};
  const Network last_block("gntk", models::gntk({.blocks = 3, .jumping_knowledge = false}));
  register_network("gntk, 3 blocks", last_block);
  register_network("gntk, 3 blocks, 20 to 40 nodes", last_block, Sizes::different);
  register_network(
      "gntk, 3 blocks, mean",
      Network("gntk", models::gntk({.blocks = 3, .aggregation = mean, .jumping_knowledge = false})));
  register_network("gntk, 3 blocks, jumping knowledge", Network("gntk", models::gntk({.blocks = 3})));
  register_network("without aggregations", without_aggregations());
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
