// Tiles of pairs through all steps of a program, against the kernels straight from their formulas.
#include "kernel/backends/cpu/planes/plane_executor.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "kernel/backends/cpu/planes/engine_program.hpp"
#include "kernel/backends/reference/naive_kernel.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::testing;

namespace {

constexpr Index sequence_channels = 2;

/// The place of the only node of a kind.
template <typename Operation>
NodeId only_node(const Graph& graph) {
  for (NodeId id = 0; id < graph.nodes.size(); ++id)
    if (std::holds_alternative<Operation>(graph.nodes[id].operation)) return id;
  FAIL("no such node");
  return 0;
}

/// Sequences of two lengths, and their states as an executor records them.
class RecordedSequences {
 public:
  RecordedSequences(const EngineProgram& engine, const Shape& shape, Index count, unsigned seed)
      : layout_{make_state_layout(engine.program, node_shapes(engine.program.graph, shape), shape,
                                  sequence_channels)},
        block_(std::vector<const StateLayout*>(static_cast<std::size_t>(count), &layout_), 0) {
    std::mt19937 generator(seed);
    PlaneExecutor<double> executor(engine.program, {Purpose::state, Kernel::nngp_only, false}, 1);
    const NodeId input = only_node<InputNode>(engine.program.graph);
    for (Index i = 0; i < count; ++i) {
      const std::vector<double> numbers = normal_numbers(shape[0] * sequence_channels, generator);
      inputs_.push_back(
          {shape,
           Eigen::Map<const Matrix<double>>(numbers.data(), shape[0], sequence_channels).cast<Real>()});
      for (Index c = 0; c < sequence_channels; ++c)
        for (Index a = 0; a < shape[0]; ++a)
          block_[i].array(input, c)[a] = numbers[static_cast<std::size_t>(a * sequence_channels + c)];
      executor.record_state(block_[i]);
      states_.push_back(&block_[i]);
    }
  }
  RecordedSequences(const RecordedSequences&) = delete;
  RecordedSequences& operator=(const RecordedSequences&) = delete;

  [[nodiscard]] const std::vector<const InputState<double>*>& states() const { return states_; }
  [[nodiscard]] const NaiveInput& input(Index i) const { return inputs_[static_cast<std::size_t>(i)]; }

 private:
  StateLayout layout_;
  StateBlock<double> block_;
  std::vector<NaiveInput> inputs_;
  std::vector<const InputState<double>*> states_;
};

Tile<double> tile_of(const RecordedSequences& left, const RecordedSequences& right) {
  Tile<double> tile{left.states(), right.states(), {}};
  const bool same = &left == &right;
  for_each_pair(static_cast<Index>(tile.left.size()), static_cast<Index>(tile.right.size()),
                [&](Index i, Index j) {
                  tile.pairs.push_back({i, j, same && i == j});
                });
  return tile;
}

std::string layers_of(const std::string& body) {
  return R"([{"layer": "conv", "filter": [3], "weight_variance": 1.5, "bias_variance": 0.1}, {"layer": "relu"}, )" +
         body + R"({"layer": "global_average_pool"}])";
}

/// The values after the readout of all pairs of sequences of length 9 and 5, tile after tile.
void check_tiles(const std::string& layers) {
  CAPTURE(layers);
  const EngineProgram engine(layers, {9}, {5}, sequence_channels);
  const NaiveKernel naive(parse_network(R"({"widelimit": 1, "layers": )" + layers + "}"));
  const RecordedSequences longer(engine, {9}, 4, 1), shorter(engine, {5}, 3, 2);
  PlaneExecutor<double> executor(engine.program, {Purpose::result, Kernel::with_ntk, false}, 16);
  const NodeId readout = only_node<ReadoutNode>(engine.program.graph);
  // The shapes change, come back, and the sides shrink.
  using Sides = std::pair<const RecordedSequences*, const RecordedSequences*>;
  for (const auto& [left, right] : {Sides{&longer, &longer}, Sides{&longer, &shorter},
                                    Sides{&shorter, &shorter}, Sides{&longer, &longer}}) {
    const Tile<double> tile = tile_of(*left, *right);
    executor.run(tile);
    for (Index pair = 0; pair < tile.pair_count(); ++pair) {
      const TilePair& of = tile.pair(pair);
      const NaiveValues expected = naive(left->input(of.left), right->input(of.right), of.same_input);
      const auto entry = executor.readout(readout, pair);
      CHECK(entry.nngp == doctest::Approx(static_cast<double>(expected.nngp)).epsilon(1e-12).scale(1));
      CHECK(entry.ntk == doctest::Approx(static_cast<double>(expected.ntk)).epsilon(1e-12).scale(1));
    }
  }
}

}  // namespace

TEST_CASE("plane executor: convolutions, poolings and attention, pair by pair") {
  check_tiles(layers_of(""));
  check_tiles(layers_of(R"({"layer": "average_pool", "window": [2], "strides": [2]}, {"layer": "dense"},
                           {"layer": "relu"}, )"));
  check_tiles(layers_of(R"({"layer": "attention", "scaling": "inverse_width"}, {"layer": "relu"}, )"));
}

TEST_CASE("plane executor: the NNGP alone, and all offsets whether they are needed or not") {
  const std::string layers = layers_of("");
  const EngineProgram engine(layers, {9}, sequence_channels);
  const RecordedSequences inputs(engine, {9}, 3, 1);
  const NodeId readout = only_node<ReadoutNode>(engine.program.graph);
  const Tile<double> tile = tile_of(inputs, inputs);
  PlaneExecutor<double> both(engine.program, {Purpose::result, Kernel::with_ntk, false}, 9),
      alone(engine.program, {Purpose::result, Kernel::nngp_only, false}, 9),
      everything(engine.program, {Purpose::result, Kernel::with_ntk, true}, 9);
  for (PlaneExecutor<double>* executor : {&both, &alone, &everything}) executor->run(tile);
  for (Index pair = 0; pair < tile.pair_count(); ++pair) {
    CHECK(alone.readout(readout, pair).nngp == both.readout(readout, pair).nngp);
    CHECK(everything.readout(readout, pair).nngp == both.readout(readout, pair).nngp);
    CHECK(everything.readout(readout, pair).ntk == both.readout(readout, pair).ntk);
  }
}

TEST_CASE("plane executor: steps are timed once that is asked for, and a stop is heeded") {
  const EngineProgram engine(layers_of(""), {9}, sequence_channels);
  const RecordedSequences inputs(engine, {9}, 2, 1);
  std::stop_source source;
  const std::stop_token token = source.get_token();
  PlaneExecutor<double> executor(engine.program, {Purpose::result, Kernel::with_ntk, false}, 4,
                                 StopRequest(token));
  const Tile<double> tile = tile_of(inputs, inputs);
  std::vector<double> seconds(engine.program.graph.nodes.size());
  executor.run(tile);
  executor.timer().add_to(seconds);
  CHECK(std::all_of(seconds.begin(), seconds.end(), [](double second) { return second == 0; }));
  executor.timer().start(seconds.size());
  executor.run(tile);
  executor.timer().add_to(seconds);
  CHECK(seconds[only_node<RowNode>(engine.program.graph)] > 0);
  source.request_stop();
  CHECK_THROWS_AS(executor.run(tile), Cancelled);
}
